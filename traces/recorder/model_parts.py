"""The modules around a model's attention: the layer it stands in, W_O behind it, the norm behind that.

They are found by what passes through them, not by their names: a few tokens run through the model, and
W_O is the module that is fed exactly what the heads gave.
"""

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook

from .errors import RecordError
from .interface import attend_rows, attention_through, layer_number, mask_rows
from .layers import run

# The first token of a text often carries a state so large that what is added to it drowns.
PROBE_TOKENS = 16


@dataclasses.dataclass(frozen=True)
class Projection:
    """What lies between the heads of a layer and the residual stream.

    W_O, the norm behind it if there is one, and what the update is multiplied by before it is added.
    """

    weight: torch.Tensor
    times: float
    norm_gain: torch.Tensor | None
    norm_epsilon: float | None

    def output(self) -> torch.Tensor:
        """W_O; the multiplier is in the norm's gain where there is a norm, else in here."""
        return self.weight if self.norm_gain is not None or self.times == 1.0 else self.weight * self.times

    def gain(self) -> torch.Tensor:
        """The whole gain of the norm."""
        return self.norm_gain * self.times


@dataclasses.dataclass(frozen=True)
class Call:
    """One run of a module: what went in and came out for the last token of the probe."""

    module: nn.Module
    given: torch.Tensor
    result: torch.Tensor


def layer_modules(model) -> dict[int, nn.Module]:
    """The decoder layer around each attention module: the member of a list of modules that it belongs to."""
    lists = {name for name, module in model.named_modules() if isinstance(module, nn.ModuleList)}
    found = {}
    for name, module in model.named_modules():
        number = getattr(module, "layer_idx", None)
        parts = name.split(".")
        ends = [i for i in range(2, len(parts) + 1) if ".".join(parts[: i - 1]) in lists]
        if isinstance(number, int) and ends:
            found.setdefault(number, model.get_submodule(".".join(parts[: ends[-1]])))
    return found


def residual_of(args: tuple, kwargs: dict) -> torch.Tensor:
    """The residual stream among the arguments of a decoder layer."""
    return args[0] if args else kwargs["hidden_states"]


def projections(model, token_ids: list[int], layers) -> dict[int, Projection]:
    """W_O and its norm for each of these layers."""
    outputs, calls = watched_pass(model, token_ids[:PROBE_TOKENS])
    around = layer_modules(model)
    found = {}
    for number in layers:
        if number not in around or around[number] not in calls:
            raise RecordError(
                f"layer {number}: its decoder layer cannot be told, so W_O cannot: leave --output-projections out"
            )
        found[number] = projection_of(number, around[number], outputs[number], calls)
    return found


def watched_pass(model, token_ids: list[int]) -> tuple[dict[int, torch.Tensor], dict[nn.Module, list[Call]]]:
    """What each layer's heads gave for the last token, and the calls of each module with their order kept."""
    outputs: dict[int, torch.Tensor] = {}
    calls: dict[nn.Module, list[Call]] = {}

    def look(module, query, key, value, mask, **extras):
        length = query.shape[2]
        out, _ = attend_rows(module, query, key, value, mask_rows(mask, 0, length), extras, 0, length)
        outputs[layer_number(module)] = out[0, -1].flatten()
        return out, None

    def note(module, args, kwargs, result):
        given = args[0] if args else kwargs.get("hidden_states")
        result = result[0] if isinstance(result, tuple) and result else result
        if all(isinstance(tensor, torch.Tensor) and tensor.is_floating_point() for tensor in (given, result)):
            last = [tensor.reshape(-1, tensor.shape[-1])[-1] for tensor in (given, result)]
            calls.setdefault(module, []).append(Call(module, *last))

    with attention_through(model, look), every_call(note), torch.no_grad():
        run(model, token_ids)
    return outputs, calls


@contextmanager
def every_call(note) -> Iterator[None]:
    """Let a function see each call of any module."""
    hook = register_module_forward_hook(note, with_kwargs=True)
    try:
        yield
    finally:
        hook.remove()


def projection_of(number: int, around: nn.Module, heads: torch.Tensor, calls: dict) -> Projection:
    """W_O and what comes behind it in one decoder layer."""
    inside = [call for module in around.modules() for call in calls.get(module, [])]
    behind = [call for call in inside if same(call.given, heads) and weight_of(call.module) is not None]
    if not behind or not is_linear(behind[0]):
        raise RecordError(
            f"layer {number} changes what its heads give before W_O, or has none: leave --output-projections out"
        )
    out, update = behind[0], behind[0].result
    norms = [call for call in inside if same(call.given, update) and not same(call.result, update)]
    gain = epsilon = None
    if norms:
        gain, epsilon = norm_of(number, norms[0])
        update = norms[0].result
    times = multiplier(number, calls[around][0], inside, update)
    return Projection(weight_of(out.module), times, gain, epsilon)


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two states are one and the same."""
    return one.shape == other.shape and torch.equal(one, other)


def weight_of(module: nn.Module) -> torch.Tensor | None:
    """The matrix [out, in] of a linear layer; None for other modules."""
    weight = getattr(module, "weight", None)
    if not isinstance(weight, torch.Tensor) or weight.dim() != 2 or not weight.is_floating_point():
        return None
    return weight.detach().T if type(module).__name__ == "Conv1D" else weight.detach()


def is_linear(call: Call) -> bool:
    """Whether the module did with its input what its matrix and its bias say."""
    weight, bias = weight_of(call.module), getattr(call.module, "bias", None)
    if weight.shape != (call.result.numel(), call.given.numel()):
        return False
    expected = weight.float() @ call.given.float() + (0.0 if bias is None else bias.float())
    return close(call.result, expected)


def close(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two states agree as far as the arithmetic of the first allows."""
    return bool((one.float() - other.float()).norm() <= 32 * torch.finfo(one.dtype).eps * other.float().norm())


def norm_of(number: int, call: Call) -> tuple[torch.Tensor, float]:
    """Gain and epsilon of a root mean square norm; some models store the gain less 1."""
    module, given = call.module, call.given.float()
    names = ("eps", "variance_epsilon", "epsilon")
    epsilon = next((getattr(module, name) for name in names if hasattr(module, name)), None)
    weight = getattr(module, "weight", None)
    if isinstance(epsilon, float) and isinstance(weight, torch.Tensor) and weight.shape == given.shape:
        scaled = given / (given.square().mean() + epsilon).sqrt()
        for gain in (weight.detach().float(), weight.detach().float() + 1.0):
            if close(call.result, gain * scaled):
                return gain, epsilon
    raise RecordError(
        f"layer {number} has {type(module).__name__} behind W_O, and it is not a plain root mean square norm: "
        "leave --output-projections out"
    )


def multiplier(number: int, layer: Call, inside: list[Call], update: torch.Tensor) -> float:
    """What the update is multiplied by before it is added to the stream, seen where the sum goes in or comes out.

    Coarse arithmetic can tell a multiplier of 1 from another, but not what the other one is.
    """
    before, after, step = layer.given.float(), layer.result.float(), update.float()
    sums = [call.given.float() for call in inside if call.given.shape == before.shape]
    sums += [after - call.result.float() for call in inside if call.result.shape == before.shape]
    precision = torch.finfo(layer.given.dtype).eps
    noise = precision * (before.norm() + after.norm())
    for change in (total - before for total in sums):
        times = float(change @ step / (step @ step))
        if (change - times * step).norm() <= noise < abs(times) * step.norm():
            if abs(times - 1.0) * step.norm() <= noise:
                return 1.0
            if precision < 1e-6:
                return times
    coarse = ", as far as this arithmetic tells: give --arithmetic f32, or" if precision >= 1e-6 else ":"
    raise RecordError(
        f"layer {number} does not add what W_O gives to its stream as it is{coarse} leave --output-projections out"
    )
