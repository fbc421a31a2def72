"""Attention a block of rows at a time, over the keys that the block can see: no square of weights is held.

The model's own eager attention does the work. What its mask hides must be what a causal row, or its
sliding window, does not see; then queries, keys and a few facts of the layer tell every row.
"""

import torch

from .errors import RecordError
from .gradients import anew
from .interface import attend_rows, blocks, mask_rows
from .layers import Layer
from .rows import seen_by, weights_of

ATTENTION = "record its attention instead (--what attention)"


def attend_in_blocks(module, query, key, value, mask, extras: dict, number: int, layer: Layer, gone=None):
    """The output of one layer's attention [1, rows, heads, width].

    `gone(start, end, first)` may hide more: True [heads, rows, keys first..end] where a key has left the cache.
    """
    length = query.shape[2]
    if key.shape[2] != length:
        raise RecordError(
            f"layer {number} attends to {key.shape[2]} keys for {length} tokens: its keys are not positions"
        )
    refuse_bias(number, extras, length)
    attend = anew(attend_rows) if torch.is_grad_enabled() else attend_rows
    outputs = []
    for start, end in blocks(length):
        first = max(0, start - layer.window + 1) if layer.window else 0
        some = mask_of_block(number, layer, mask, start, end, first)
        if gone is not None:
            hidden = gone(start, end, first)[None]
            some = some.expand(hidden.shape).masked_fill(hidden, torch.finfo(some.dtype).min)
        seen = slice(first, end)
        out, _ = attend(module, query, key[:, :, seen], value[:, :, seen], some, extras, start, end)
        outputs.append(out)
    return torch.cat(outputs, dim=1)


def refuse_bias(number: int, extras: dict, length: int) -> None:
    """Refuse a layer that adds something of its own to the logits of each query row."""
    if any(
        isinstance(extra, torch.Tensor) and extra.dim() == 4 and extra.shape[2] == length for extra in extras.values()
    ):
        raise RecordError(f"layer {number} adds a bias to its logits, which queries and keys do not tell: {ATTENTION}")


def mask_of_block(number: int, layer: Layer, mask, start: int, end: int, first: int) -> torch.Tensor:
    """The block's part of the mask, [1, 1, rows, keys first..end], checked to hide what it has to and nothing else."""
    rows = mask_rows(mask, start, end)
    if rows is None:
        raise RecordError(f"layer {number} attends to later positions: it is not causal, or its mask went missing")
    seen = seen_by(layer.window, start, end - start, 0, rows.shape[3]).to(rows.device)
    differs = (rows[0, 0] == 0) != seen
    if differs.any():
        row, position = (int(i) for i in differs.nonzero()[0])
        sees = "does not see" if seen[row, position] else "sees"
        window = f"its sliding window of {layer.window} positions" if layer.window else "the causal rule"
        raise RecordError(
            f"layer {number}: row {start + row} {sees} position {position}, against {window}: {ATTENTION}"
        )
    return rows[..., first:end]


def check_output(number: int, layer: Layer, query, key, value, out: torch.Tensor) -> None:
    """Refuse a layer whose queries [heads, rows, width], keys and values do not give back what its heads gave.

    The last row of each block is made anew from what the trace will say of it.
    """
    if out.shape[1:] != (query.shape[1], layer.query_heads, layer.value_width):
        raise RecordError(f"layer {number} hands on {list(out.shape)}, not one output for each head: {ATTENTION}")
    with torch.no_grad():
        for _, end in blocks(query.shape[1]):
            row = query[:, end - 1 : end].float()
            keys, values = (heads[:, :end].float().repeat_interleave(layer.group, dim=0) for heads in (key, value))
            expected = (weights_of(layer, row, keys, end - 1, layer.sinks) @ values)[:, 0]
            check_row(number, end - 1, out[0, end - 1].float(), expected, torch.finfo(out.dtype).eps)


def check_row(number: int, row: int, out: torch.Tensor, expected: torch.Tensor, precision: float) -> None:
    """Compare one row's outputs [heads, width], by the largest of them."""
    difference = float((out - expected).abs().max())
    if not difference <= max(1e-3, 8 * precision) * float(expected.abs().max()):
        raise RecordError(
            f"layer {number}: queries, keys and values do not give what its heads gave in row {row} (off by "
            f"{difference:.3g}): its attention adds something that a trace of them has no place for: {ATTENTION}"
        )
