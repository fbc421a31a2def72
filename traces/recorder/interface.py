"""Standing in for a model's attention.

A function of ours takes the place of the model's attention for a while. It calls the eager attention
that the model's own authors wrote, so scaling, soft caps and learned sinks are theirs, a block of
query rows at a time, and looks at what goes in and comes out.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

from .errors import RecordError

IMPLEMENTATION = "kvsim_recorder"
ROWS_PER_BLOCK = 256


@contextmanager
def attention_through(model, attention: Callable) -> Iterator[None]:
    """Every attention layer of the model calls `attention` while this lasts.

    The masks must be registered under the same name: a model gives no mask at all to an
    implementation that it does not know, and every row would see the future.
    """
    AttentionInterface.register(IMPLEMENTATION, attention)
    AttentionMaskInterface.register(IMPLEMENTATION, mask_by_rows)
    before = model.config._attn_implementation
    model.set_attn_implementation(IMPLEMENTATION)
    try:
        if model.config._attn_implementation != IMPLEMENTATION:
            raise RecordError(
                f"{type(model).__name__} does not take its attention from the attention interface of transformers, "
                "so nothing of it passes the recorder: a newer transformers may help"
            )
        yield
    finally:
        model.set_attn_implementation(before)


def mask_by_rows(batch_size: int, q_length: int, kv_length: int, q_offset: int = 0, **options) -> torch.Tensor:
    """A mask of the shape that the model expects, without its numbers, which are made when rows are asked for.

    The stand-in is a single zero, seen everywhere. It knows how to make its rows.
    """

    def rows(start: int, end: int) -> torch.Tensor | None:
        return eager_mask(batch_size, end - start, kv_length, q_offset=q_offset + start, **options)

    device, dtype = options.get("device", "cpu"), options.get("dtype", torch.float32)
    stand_in = torch.zeros((), device=device, dtype=dtype).expand(batch_size, 1, q_length, kv_length)
    stand_in.rows = rows
    return stand_in


def mask_rows(mask: torch.Tensor | None, start: int, end: int) -> torch.Tensor | None:
    """These rows of a mask, be it a stand-in or one that the model made itself."""
    if hasattr(mask, "rows"):
        return mask.rows(start, end)
    return mask if mask is None or mask.shape[2] == 1 else mask[:, :, start:end]


def eager_attention(module) -> Callable:
    """The eager attention that belongs to a layer: the function of that name beside its class."""
    for kind in type(module).__mro__:
        function = getattr(sys.modules.get(kind.__module__), "eager_attention_forward", None)
        if function is not None:
            return function
    raise RecordError(f"{type(module).__name__} has no eager attention beside it, so there is nothing to record")


def layer_number(module) -> int:
    """Which layer an attention module belongs to."""
    layer = getattr(module, "layer_idx", None)
    if not isinstance(layer, int):
        raise RecordError(f"{type(module).__name__} does not say which layer it is: this model cannot be recorded")
    return layer


def blocks(length: int) -> Iterator[tuple[int, int]]:
    """First row and end of each block of rows."""
    for start in range(0, length, ROWS_PER_BLOCK):
        yield start, min(start + ROWS_PER_BLOCK, length)


def attend_rows(module, query, key, value, mask, extras: dict, start: int, end: int):
    """Eager attention of some query rows: output [batch, rows, heads, width], weights [batch, heads, rows, keys].

    `mask` is that of these rows.
    """
    length = query.shape[2]

    def rows(extra):
        """These rows of a bias; anything without one row for each query passes as it is."""
        per_query = isinstance(extra, torch.Tensor) and extra.dim() == 4 and extra.shape[2] == length
        return extra[:, :, start:end] if per_query else extra

    some = {name: rows(extra) for name, extra in extras.items()}
    return eager_attention(module)(module, query[:, :, start:end], key, value, mask, **some)
