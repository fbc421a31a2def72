"""What a trace with gradients says about a single head: one number, and one matrix.

    q = mean over samples and rows t >= 32 of the sum over j of a_tj (G_t . (v_j - o_t))^2
    F = mean over samples and rows t >= 32 of the outer product of G_t with itself

They share out budgets among heads; they do not rank policies.
"""

import torch

from .interface import blocks
from .layers import Layer
from .rows import weights_of

# The rows before see few positions, and their gradients are large.
FIRST_ROW = 32


def sensitivity(layer: Layer, query, key, value, gradient, sink=None) -> float:
    """q of one query head: query, key [T, width], value [T, width], gradient [samples, T, width], in f64."""
    query, key, value, gradient = (tensor.double() for tensor in (query, key, value, gradient))
    rows, total = len(query), 0.0
    for start, end in blocks(rows):
        weights = weights_of(layer, query[None, start:end], key[None, :end], start, sink)[0]
        # What each position's value does to the likelihood, and what the row's output does.
        effects = gradient[:, start:end] @ value[:end].T
        output = (weights * effects).sum(dim=-1, keepdim=True)
        spread = (weights * (effects - output).square()).sum(dim=-1)
        total += spread[:, max(FIRST_ROW - start, 0) :].sum().item()
    return total / (len(gradient) * (rows - FIRST_ROW))


def fisher(gradient: torch.Tensor) -> torch.Tensor:
    """F of one query head [width, width] from its gradients [samples, T, width]."""
    late = gradient[:, FIRST_ROW:].double().flatten(0, 1)
    return late.T @ late / len(late)
