"""From the states that the layers leave to logits, a block of rows at a time.

The logits of all tokens would take more memory than all the rest of a pass.
"""

import dataclasses
import math
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import torch
from transformers.utils import ModelOutput

from .errors import RecordError
from .interface import blocks


@dataclasses.dataclass(frozen=True)
class Recording:
    """What a recording has to tell beside the file."""

    tensors: int
    rows: int
    perplexity: float | None


@contextmanager
def last_output(model) -> Iterator[list]:
    """A list that holds what the model's layers last left, once they have run."""
    kept: list = []
    module = model.get_decoder()
    hook = module.register_forward_hook(lambda _module, _inputs, output: kept.__setitem__(slice(None), [output]))
    try:
        yield kept
    finally:
        hook.remove()


def states_of(kept: list) -> torch.Tensor | None:
    """The last hidden states [1, rows, width] of a pass; None where the model does not show them."""
    return getattr(kept[0], "last_hidden_state", None) if kept else None


def logits_of_states(model, output: ModelOutput, states: torch.Tensor) -> torch.Tensor | None:
    """What the model's head makes of states [1, rows, width]: logits [rows, vocabulary], f32 or finer.

    Its own code runs, for scaling and soft caps, with layers that hand on these states. None where the
    model's head does not run by itself.
    """
    part = dataclasses.replace(output, last_hidden_state=states)
    unread = torch.zeros((1, states.shape[1]), dtype=torch.long, device=model.device)
    with patch.object(model.get_decoder(), "forward", return_value=part) as layers:
        logits = model(input_ids=unread, use_cache=False).logits[0]
    return logits.to(torch.promote_types(logits.dtype, torch.float32)) if layers.called else None


def logits_in_blocks(model, kept: list, end: int) -> Iterator[tuple[int, int, torch.Tensor]]:
    """First row, end and logits of each block of the first `end` rows of a pass."""
    states = states_of(kept)
    for start, stop in blocks(end):
        logits = None if states is None else logits_of_states(model, kept[0], states[:, start:stop])
        if logits is None:
            raise RecordError(f"the head of {type(model).__name__} does not run by itself, so its logits are not known")
        yield start, stop, logits


def perplexity(model, kept: list, token_ids: list[int]) -> float | None:
    """The perplexity of each token after the first; None where the model's parts do not allow it."""
    if len(token_ids) < 2:
        return None
    targets, total = torch.tensor(token_ids, device=model.device), 0.0
    try:
        with torch.no_grad():
            for start, end, logits in logits_in_blocks(model, kept, len(token_ids) - 1):
                total += torch.nn.functional.cross_entropy(logits, targets[start + 1 : end + 1], reduction="sum").item()
    except RecordError:
        return None
    return math.exp(total / (len(token_ids) - 1))
