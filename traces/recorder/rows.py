"""The rows that queries and keys give: scale, soft cap, window and learned sinks, as kvsim rebuilds them."""

import torch

from .layers import Layer


def weights_of(layer: Layer, query: torch.Tensor, key: torch.Tensor, first_row: int, sinks=None) -> torch.Tensor:
    """Weights [heads, rows, keys] of consecutive rows: query [heads, rows, width], key [heads, keys, width].

    `sinks` are the learned sinks of these heads, one logit each.
    """
    logits = layer.scale * (query @ key.transpose(1, 2))
    if layer.softcap is not None:
        logits = layer.softcap * torch.tanh(logits / layer.softcap)
    seen = seen_by(layer.window, first_row, query.shape[1], 0, key.shape[1]).to(logits.device)
    logits = logits.masked_fill(~seen, -torch.inf)
    if sinks is None:
        return logits.softmax(dim=-1)
    column = sinks.to(logits.dtype).view(-1, 1, 1).expand(-1, logits.shape[1], 1)
    return torch.cat([logits, column], dim=-1).softmax(dim=-1)[..., :-1]


def seen_by(window: int | None, first_row: int, rows: int, first_key: int, keys: int) -> torch.Tensor:
    """Which keys [rows, keys] each row attends to: itself and what came before, or the last `window` of these."""
    row = torch.arange(first_row, first_row + rows, dtype=torch.int32)[:, None]
    back = row - torch.arange(first_key, first_key + keys, dtype=torch.int32)
    return (back >= 0) & (back < (window or first_row + rows))
