"""Gradients at the outputs of attention heads, for labels that the model itself would say.

Activations' gradients only: parameters are frozen, every layer is computed anew when its gradient is
due, and logits exist for a block of rows at a time. What is done with a gradient is the caller's business.
"""

import dataclasses
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import torch
from torch.utils.checkpoint import checkpoint

from .errors import RecordError
from .head import logits_of_states, states_of
from .interface import blocks
from .model_parts import layer_modules


@dataclasses.dataclass(frozen=True)
class Gradients:
    """How many samples of labels, from which seed; what stored gradients are multiplied by, and what is kept.

    `keep`: the gradients themselves; `fisher`: each head's Fisher matrix. The sensitivities come in any case.
    """

    samples: int
    seed: int = 1
    scale: float = 16.0
    keep: bool = True
    fisher: bool = False


@contextmanager
def differentiable(model) -> Iterator[list[torch.Tensor]]:
    """While this lasts, a pass keeps what a backward pass to the embeddings needs, and no more.

    The list holds the embeddings of the last pass: the leaf of the graph.
    """
    leaf: list[torch.Tensor] = []

    def mark(_module, _inputs, output):
        leaf[:] = [output.requires_grad_()]

    wanted = {parameter: parameter.requires_grad for parameter in model.parameters()}
    with ExitStack() as stack:
        model.requires_grad_(False)
        stack.callback(lambda: [parameter.requires_grad_(was) for parameter, was in wanted.items()])
        stack.callback(model.get_input_embeddings().register_forward_hook(mark).remove)
        for layer in set(layer_modules(model).values()):
            stack.enter_context(patch.object(layer, "forward", anew(layer.forward)))
        stack.enter_context(torch.enable_grad())
        yield leaf


def anew(function):
    """The function, keeping its arguments alone and running again when a backward pass comes to it."""

    def run(*args, **kwargs):
        return checkpoint(function, *args, use_reentrant=False, preserve_rng_state=False, **kwargs)

    return run


def backward_passes(model, kept: list, leaf: list[torch.Tensor], wanted: Gradients) -> Iterator[int]:
    """One backward pass for each sample of labels, from the last states to the embeddings.

    Gives the number of each sample before its pass, so that hooks in the graph can tell whose gradients come.
    """
    states = states_of(kept)
    if states is None or not leaf or not states.requires_grad:
        raise RecordError(
            f"the layers of {type(model).__name__} do not hand on states that lead back to its embeddings"
        )
    ends = gradients_at_the_end(model, kept, wanted)
    for sample in range(wanted.samples):
        yield sample
        torch.autograd.grad(states, leaf, ends[sample][None].to(states), retain_graph=sample + 1 < wanted.samples)


def gradients_at_the_end(model, kept: list, wanted: Gradients) -> torch.Tensor:
    """The gradient of each sample's summed log-likelihood at the last states: [samples, rows, width].

    At every position a label is drawn from the model's own distribution, by a generator of the CPU, so that
    a seed draws the same on every device.
    """
    states, generator = states_of(kept).detach(), torch.Generator().manual_seed(wanted.seed)
    ends = torch.empty((wanted.samples, *states.shape[1:]), dtype=states.dtype)
    for start, end in blocks(states.shape[1]):
        block = states[:, start:end].clone().requires_grad_()
        logits = logits_of_states(model, kept[0], block)
        if logits is None:
            raise RecordError(
                f"the head of {type(model).__name__} does not run by itself, so no gradient comes from it"
            )
        chances, likelihood = logits.detach().softmax(dim=-1).cpu(), logits.log_softmax(dim=-1)
        labels = torch.multinomial(chances, wanted.samples, replacement=True, generator=generator)
        for sample, label in enumerate(labels.T.to(likelihood.device)):
            total = likelihood.gather(1, label[:, None]).sum()
            (gradient,) = torch.autograd.grad(total, block, retain_graph=True)
            ends[sample, start:end] = gradient[0]
    return ends
