"""A pass of a model in which caches have lost positions: what an engine would compute that evicted them.

The model reads the whole text at once, and each head's rows do not see the keys that its cache has lost
by then. That is the same as decoding token by token with entries that are really gone.
"""

import torch

from .blockwise import attend_in_blocks
from .errors import RecordError
from .head import last_output
from .interface import attention_through, layer_number
from .layers import Layer, check_all_passed, numbers_text, run


def departures(
    header: dict, left: list[dict[int, int]], layers: dict[int, Layer], tokens: int
) -> dict[int, torch.Tensor]:
    """Per layer [query heads, tokens]: the step at which each position leaves; `tokens` where it never does."""
    table: dict[int, torch.Tensor] = {}
    taken: dict[tuple[int, int], dict] = {}
    for cache, evicted in zip(header["caches"], left, strict=True):
        number = cache.get("layer")
        if number not in layers:
            raise RecordError(f"decisions for layer {number}, but the layers with attention are {numbers_text(layers)}")
        if evicted and max(evicted.values()) >= tokens:
            raise RecordError(f"decisions up to step {max(evicted.values())}, but the text has {tokens} tokens")
        steps = table.setdefault(number, torch.full((layers[number].query_heads, tokens), tokens))
        for head in heads_of(cache, layers[number]):
            if (number, head) in taken:
                raise RecordError(f"head {head} of layer {number} reads two caches: {taken[number, head]} and {cache}")
            taken[number, head] = cache
            steps[head, list(evicted)] = torch.tensor(list(evicted.values()), dtype=torch.long)
    return table


def heads_of(cache: dict, layer: Layer) -> range:
    """The query heads that read a cache: those of a KV head (kv0), one of them (4), or all of the layer (mean, all, layer)."""
    head = str(cache.get("head"))
    if head in ("mean", "all", "layer"):
        return range(layer.query_heads)
    number = head.removeprefix("kv")
    heads = range(layer.kv_heads if head.startswith("kv") else layer.query_heads)
    if not number.isdecimal() or int(number) not in heads:
        raise RecordError(f"decisions for head {head!r} of layer {cache['layer']}, which the model does not have")
    first = int(number) * layer.group if head.startswith("kv") else int(number)
    return range(first, first + (layer.group if head.startswith("kv") else 1))


def states_with(model, token_ids: list[int], layers: dict[int, Layer], left: dict[int, torch.Tensor]) -> list:
    """What the layers leave at their end (see `last_output`) when these positions leave at these steps."""
    passed: list[int] = []

    def attend(module, query, key, value, mask, **extras):
        number = layer_number(module)
        passed.append(number)

        def gone(start: int, end: int, first: int) -> torch.Tensor:
            rows = torch.arange(start, end)[:, None]
            return (left[number][:, None, first:end] < rows).to(query.device)

        hide = gone if number in left else None
        return attend_in_blocks(module, query, key, value, mask, extras, number, layers[number], hide), None

    with attention_through(model, attend), last_output(model) as kept, torch.no_grad():
        run(model, token_ids)
    check_all_passed(layers, passed)
    return kept
