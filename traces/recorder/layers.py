"""What a model holds: a first look at its attention layers, and its metadata."""

import dataclasses
import inspect
import json

import torch
import transformers

from .errors import RecordError
from .interface import attention_through, eager_attention, layer_number


@dataclasses.dataclass(frozen=True)
class Layer:
    """What the first look at a model tells about one attention layer."""

    query_heads: int
    kv_heads: int
    key_width: int
    value_width: int
    scale: float
    softcap: float | None
    window: int | None
    sinks: torch.Tensor | None

    @property
    def group(self) -> int:
        """How many query heads share a KV head."""
        return self.query_heads // self.kv_heads


def attention_layers(model, token_ids: list[int]) -> dict[int, Layer]:
    """Run a single token through the model and note every attention layer that it passes."""
    layers: dict[int, Layer] = {}

    def look(module, query, key, value, mask, **extras):
        number = layer_number(module)
        if number in layers:
            raise RecordError(f"layer {number} attends twice for one token: such a model cannot be recorded")
        layers[number] = layer_of(module, query, key, value, extras, number)
        return eager_attention(module)(module, query, key, value, mask, **extras)

    with attention_through(model, look), torch.no_grad():
        run(model, token_ids[:1])
    if not layers:
        raise RecordError(f"no layer of {type(model).__name__} came past the recorder: nothing can be recorded")
    return dict(sorted(layers.items()))


def layer_of(module, query, key, value, extras: dict, number: int) -> Layer:
    """What the arguments of one call of attention tell about its layer."""
    scale = extras.get("scaling")
    sinks = getattr(module, "sinks", None)
    return Layer(
        query_heads=query.shape[1],
        kv_heads=key.shape[1],
        key_width=key.shape[3],
        value_width=value.shape[3],
        scale=float(scale) if scale is not None else query.shape[3] ** -0.5,
        softcap=extras.get("softcap"),
        window=window_of(module, extras, number),
        sinks=sinks.detach().flatten() if isinstance(sinks, torch.Tensor) else None,
    )


def window_of(module, extras: dict, number: int) -> int | None:
    """The sliding window of a layer, in positions, the token itself included; None where it sees everything."""
    config = getattr(module, "config", None)
    kinds = getattr(config, "layer_types", None) or []
    sliding = number < len(kinds) and kinds[number] == "sliding_attention"
    window = extras.get("sliding_window") or (getattr(config, "sliding_window", None) if sliding else None)
    return window if isinstance(window, int) and window > 0 else None


def chosen_layers(found: dict[int, Layer], wanted: list[int] | None) -> dict[int, Layer]:
    """The layers to record, or an error that names those that have no attention."""
    missing = [layer for layer in wanted or [] if layer not in found]
    if missing:
        names = ", ".join(map(str, missing))
        raise RecordError(f"no attention in layer {names}: the layers with attention are {numbers_text(found)}")
    return found if wanted is None else {layer: found[layer] for layer in sorted(set(wanted))}


def chosen_heads(layers: dict[int, Layer], field: str, wanted: list[int] | None) -> None:
    """Refuse heads that a layer does not have; `field` says which kind of heads are counted."""
    for number, layer in layers.items():
        count = getattr(layer, field)
        missing = [head for head in wanted or [] if head >= count]
        if missing:
            kind = field.replace("_", " ").replace("kv", "KV")
            raise RecordError(f"no head {missing[0]} in layer {number}: it has {count} {kind}, 0..={count - 1}")


def numbers_text(numbers) -> str:
    """0..=29, or a list where some are left out."""
    listed = list(numbers)
    whole = listed == list(range(listed[0], listed[-1] + 1))
    return f"{listed[0]}..={listed[-1]}" if whole else ", ".join(map(str, listed))


def run(model, token_ids: list[int]):
    """One pass over all tokens, without a cache and without logits that nobody reads."""
    saves_logits = "logits_to_keep" in inspect.signature(model.forward).parameters
    keep = {"logits_to_keep": 1} if saves_logits else {}
    return model(input_ids=torch.tensor([token_ids], device=model.device), use_cache=False, **keep)


def check_all_passed(wanted: dict[int, Layer], passed: list[int]) -> None:
    """Refuse a pass in which a layer went another way."""
    if sorted(passed) != list(wanted):
        raise RecordError(f"asked for layers {list(wanted)} but {sorted(passed)} came past: nothing was written")


# ------------------------------------------------------------------------------------------ metadata


def describe(model, token_ids: list[int], layers: dict[int, Layer], prompt_len: int) -> dict[str, str]:
    """The metadata that follows from the model and the tokens, whatever is recorded of them."""
    facts = {
        "kvsim": "1",
        "self": "included",
        "seq_len": len(token_ids),
        "token_ids": json.dumps(token_ids, separators=(",", ":")),
        "prompt_len": prompt_len,
        "num_layers": model.config.get_text_config().num_hidden_layers,
        "arithmetic": str(model.dtype).removeprefix("torch."),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    for field in ("query_heads", "kv_heads"):
        facts |= by_layer(field, {number: getattr(layer, field) for number, layer in layers.items()})
    for number, layer in layers.items():
        if layer.window is not None:
            facts |= {f"sliding_window.{number}": layer.window}
    return {name: str(fact) for name, fact in facts.items()}


def by_layer(field: str, values: dict[int, object]) -> dict[str, object]:
    """One fact for all layers, or one each where they differ; None is left out."""
    if len(set(values.values())) == 1:
        values = {"": next(iter(values.values()))}
    return {f"{field}.{n}".rstrip("."): value for n, value in values.items() if value is not None}
