"""The closed loop: a pass of a model in which a policy decides on what the evicted model really attends to.

A layer's rows depend on the layers below and on what its own caches have lost, not on the layers above. So
the model still reads the whole text layer by layer; within a layer rows are attended to one after another, each
over what its cache holds, and `kvsim decide` is told of each at once and says who leaves.
"""

import contextlib
import json
import subprocess

import numpy as np
import torch

from .blockwise import mask_of_block, refuse_bias
from .errors import RecordError
from .head import last_output
from .interface import attention_through, blocks, eager_attention, layer_number
from .layers import Layer, attention_layers, check_all_passed, run


class Decider:
    """`kvsim decide` at the other end of a pipe."""

    def __init__(self, kvsim: str, policy: list[str], layers: dict[int, Layer], positions: int, num_layers: int):
        """`policy` is what the command is told: --policy, --budget and what else it takes."""
        self.index: dict[tuple[int, int], int] = {}
        caches = []
        for number, layer in layers.items():
            for head in range(layer.kv_heads):
                self.index[number, head] = len(caches)
                window = {} if layer.window is None else {"window": layer.window}
                caches.append({"layer": number, "head": f"kv{head}", "query_heads": layer.group} | window)
        try:
            self.process = subprocess.Popen([kvsim, "decide", *policy], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except OSError as problem:
            raise RecordError(f"{kvsim}: {problem.strerror}: name the program with --kvsim") from problem
        hello = {"kvsim_decide": 1, "self": "included", "positions": positions, "num_layers": num_layers}
        self.send(json.dumps(hello | {"caches": caches}).encode() + b"\n")
        answer = self.process.stdout.readline()
        if not answer.endswith(b"\n"):
            raise self.failed()
        self.settings = json.loads(answer)
        named = [{"layer": cache["layer"], "head": cache["head"]} for cache in caches]
        self.header = {"kvsim_decisions": 1, "trace": "closed loop"} | self.settings
        self.header |= {"self": "included", "seq_len": positions, "caches": named}
        self.header.pop("kvsim_decide")

    @classmethod
    def of(cls, model, token_ids: list[int], kvsim: str, policy: list[str]) -> "Decider":
        """One for every layer of a model that reads these tokens."""
        layers = attention_layers(model, token_ids)
        return cls(kvsim, policy, layers, len(token_ids), model.config.get_text_config().num_hidden_layers)

    def send(self, data: bytes) -> None:
        """To the program, at once."""
        try:
            self.process.stdin.write(data)
            self.process.stdin.flush()
        except OSError as problem:
            raise self.failed() from problem

    def rows(self, told: dict[int, np.ndarray]) -> list[np.ndarray]:
        """Who leaves each of some caches after a row of its query heads, [heads, positions held]."""
        frames = [
            part
            for cache, weights in told.items()
            for part in (np.array([cache, weights.size], "<u4").tobytes(), weights.astype("<f4").tobytes())
        ]
        self.send(b"".join(frames))
        return [np.frombuffer(self.hear(4 * self.number()), "<u4") for _ in told]

    def number(self) -> int:
        """One number from the program."""
        return int.from_bytes(self.hear(4), "little")

    def hear(self, size: int) -> bytes:
        """So many bytes from the program."""
        data = self.process.stdout.read(size)
        if len(data) < size:
            raise self.failed()
        return data

    def failed(self) -> RecordError:
        """The program has said why."""
        return RecordError(f"kvsim decide ended with exit code {self.close()}: what it says stands above")

    def close(self) -> int:
        """End the program, which is none the worse for what did not reach it."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait()


def closed_states(model, token_ids: list[int], layers: dict[int, Layer], decider: Decider) -> tuple[list, list[dict]]:
    """What the layers leave at their end, and for each cache who left when: {position: step}."""
    left: list[dict[int, int]] = [{} for _ in decider.index]
    passed: list[int] = []

    def attend(module, query, key, value, mask, **extras):
        number = layer_number(module)
        passed.append(number)
        refuse_bias(number, extras, query.shape[2])
        for start, end in blocks(query.shape[2]):
            mask_of_block(number, layers[number], mask, start, end, 0)
        caches = [decider.index[number, head] for head in range(layers[number].kv_heads)]
        return attend_row_by_row(module, query, key, value, extras, layers[number], decider, caches, left), None

    with attention_through(model, attend), last_output(model) as kept, torch.no_grad(), one_thread():
        run(model, token_ids)
    check_all_passed(layers, passed)
    return kept, left


@contextlib.contextmanager
def one_thread():
    """A row of attention is less work than sharing it out."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def attend_row_by_row(module, query, key, value, extras, layer: Layer, decider: Decider, caches, left) -> torch.Tensor:
    """One layer's attention [1, rows, heads, width], each row over what its cache still holds."""
    eager, lowest = eager_attention(module), torch.finfo(query.dtype).min
    held = [np.empty(0, dtype=np.int64) for _ in caches]
    outputs = []
    for row in range(query.shape[2]):
        held = [np.append(positions, row) for positions in held]
        counts = np.array([len(positions) for positions in held])
        beyond = np.arange(counts.max()) >= counts[:, None]
        places = np.zeros(beyond.shape, dtype=np.int64)
        places[~beyond] = np.concatenate(held)
        hidden = torch.zeros(beyond.shape, dtype=query.dtype).masked_fill(torch.from_numpy(beyond), lowest)
        hidden, some = hidden.to(query.device), torch.from_numpy(places)[None, :, :, None].to(query.device)
        keys, values = (all_.gather(2, some.expand(1, -1, -1, all_.shape[3])) for all_ in (key, value))
        mask = hidden.repeat_interleave(layer.group, dim=0)[None, :, None]
        out, weights = eager(module, query[:, :, row : row + 1], keys, values, mask, **extras)
        outputs.append(out)
        grouped = weights[0, :, 0].float().cpu().numpy().reshape(len(caches), layer.group, -1)
        told = {cache: grouped[head, :, : counts[head]] for head, cache in enumerate(caches)}
        for head, (cache, gone) in enumerate(zip(caches, decider.rows(told), strict=True)):
            if not len(gone) and layer.window is None:
                continue
            left[cache] |= dict.fromkeys(gone.tolist(), row)
            held[head] = np.setdiff1d(held[head], gone, assume_unique=True)
            if layer.window is not None:
                held[head] = held[head][held[head] >= row + 2 - layer.window]
    return torch.cat(outputs, dim=1)
