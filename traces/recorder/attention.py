"""Recording attention: the weights of every row, packed triangles, a block of rows of one layer at a time."""

from pathlib import Path

import torch
from tqdm import tqdm

from .errors import RecordError
from .head import Recording, last_output, perplexity
from .interface import attend_rows, attention_through, blocks, layer_number, mask_rows
from .layers import Layer, attention_layers, check_all_passed, chosen_heads, chosen_layers, describe, run
from .trace_file import Tensor, TraceFile

GROUPS = ("none", "kv", "layer")


def record_attention(
    model,
    token_ids: list[int],
    output: Path,
    *,
    layers: list[int] | None = None,
    heads: list[int] | None = None,
    group: str = "none",
    dtype: str = "f16",
    prompt_len: int = 0,
    details: dict[str, str] | None = None,
) -> Recording:
    """Record the attention that the model pays over these tokens, in one pass, into the output file.

    `heads` chooses query heads, or KV heads where they are grouped. `prompt_len` counts the tokens that a
    prompt took where the rest was generated (0: no such split); `details` is more metadata. The perplexity
    is that of the prompt, or of all tokens without a split.
    """
    model.eval()
    chosen = chosen_layers(attention_layers(model, token_ids), layers)
    chosen_heads(chosen, "kv_heads" if group == "kv" else "query_heads", heads)
    streams = {number: labels(layer, group, heads) for number, layer in chosen.items()}
    triangle = Tensor(dtype, (row_start(len(token_ids)),))
    tensors = {f"attention.{number}.{label}": triangle for number in chosen for label in streams[number]}
    metadata = describe(model, token_ids, chosen, prompt_len) | {"group": group} | column_offsets(chosen)
    done: list[int] = []

    with (
        TraceFile(output, tensors, metadata | (details or {})) as file,
        tqdm(total=len(chosen), unit="layer", desc="recording", disable=None) as progress,
    ):

        def attend(module, query, key, value, mask, **extras):
            number, outputs = layer_number(module), []
            for start, end in blocks(query.shape[2]):
                out, weights = attend_rows(module, query, key, value, mask_rows(mask, start, end), extras, start, end)
                outputs.append(out)
                if number in chosen:
                    layer = chosen[number]
                    check_block(number, layer.window, len(token_ids), start, weights[0])
                    for label, rows in zip(streams[number], grouped(weights[0], group, layer, heads), strict=True):
                        file.write(f"attention.{number}.{label}", triangular(rows, start), row_start(start))
            if number in chosen:
                done.append(number)
                progress.update()
            return torch.cat(outputs, dim=1), None

        with attention_through(model, attend), last_output(model) as kept, torch.no_grad():
            run(model, token_ids)
        check_all_passed(chosen, done)

    return Recording(len(tensors), len(token_ids), perplexity(model, kept, token_ids[: prompt_len or None]))


def row_start(row: int) -> int:
    """How many weights the rows before this one hold."""
    return row * (row + 1) // 2


def labels(layer: Layer, group: str, heads: list[int] | None) -> list[str]:
    """The names of the streams that a layer gives."""
    if group == "layer":
        return ["mean"]
    count = layer.kv_heads if group == "kv" else layer.query_heads
    return [str(head) for head in (range(count) if heads is None else sorted(set(heads)))]


def column_offsets(layers: dict[int, Layer]) -> dict[str, str]:
    """Columns are positions, also where a layer slides, and say so."""
    return {f"column_offset.{number}": "0" for number, layer in layers.items() if layer.window is not None}


def check_block(layer: int, window: int | None, tokens: int, first_row: int, weights: torch.Tensor) -> None:
    """Refuse weights [heads, rows, keys] that cannot be what this recorder says they are."""
    rows, keys = weights.shape[1:]
    if keys != tokens:
        raise RecordError(f"layer {layer} attends to {keys} keys for {tokens} tokens: its columns are not positions")
    if not torch.isfinite(weights).all():
        raise RecordError(f"layer {layer}: weights that are not finite in rows {first_row}..={first_row + rows - 1}")
    if weights.triu(first_row + 1).any():
        raise RecordError(f"layer {layer} attends to later positions: it is not causal, or its mask went missing")
    if window is not None and weights.tril(first_row - window).any():
        raise RecordError(f"layer {layer} attends farther back than its sliding window of {window} positions")


def grouped(weights: torch.Tensor, group: str, layer: Layer, heads: list[int] | None) -> torch.Tensor:
    """Query heads as they are, or averaged over those that share a KV head, or over all."""
    if group == "layer":
        return weights.mean(dim=0, keepdim=True)
    if group == "kv":
        weights = weights.unflatten(0, (layer.kv_heads, -1)).mean(dim=1)
    return weights if heads is None else weights[sorted(set(heads))]


def triangular(rows: torch.Tensor, first_row: int) -> torch.Tensor:
    """The weights on and below the diagonal of consecutive rows, back to back."""
    return rows[torch.ones(rows.shape, dtype=torch.bool, device=rows.device).tril(first_row)]
