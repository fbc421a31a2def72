#!/usr/bin/env python3
"""Record the attention of a causal language model as a trace that kvsim replays.

    python traces/record.py MODEL (--text FILE | --chat FILE) -o OUT.safetensors

How it works: a function of this file takes the place of the model's attention. It calls the eager
attention that the model's own authors wrote (so scaling, soft caps and learned sinks are theirs),
a block of query rows at a time, and puts each block's weights where they belong in the output file.
Neither all layers nor one whole layer of weights is ever in memory.

Rows include the token itself: row t has t + 1 weights, one for each position 0..=t.
"""

import argparse
import dataclasses
import inspect
import json
import math
import os
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

try:
    import huggingface_hub
    import numpy as np
    import torch
    import transformers
    from tqdm import tqdm
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask
    from transformers.utils import ModelOutput
except ImportError as missing:
    sys.exit(f"error: {missing}: install what the recorder needs with `pip install -r traces/requirements.txt`")

IMPLEMENTATION = "kvsim_recorder"
ROWS_PER_BLOCK = 256
NUMPY_TYPES = {"f16": np.float16, "f32": np.float32}
GROUPS = ("none", "kv", "layer")


class RecordError(Exception):
    """Something about the data, the model or the files that a user can act on; told in one line."""


# ---------------------------------------------------------------------------------------- the file


class TraceFile:
    """A safetensors file of triangular streams, written in any order, that appears whole or not at all.

    All sizes are known before the first weight, so every row has its place. The bytes go to a file
    beside the output; it gets its header and the output's name when nothing has failed.
    """

    def __init__(self, path: Path, streams: list[str], rows: int, dtype: str, metadata: dict[str, str]):
        self.path = path
        self.part = path.with_name(f".{path.name}.{os.getpid()}.part")
        self.dtype = np.dtype(NUMPY_TYPES[dtype]).newbyteorder("<")
        weights = row_start(rows)
        self.stream_bytes = weights * self.dtype.itemsize
        self.header = header_bytes(streams, weights, dtype.upper(), self.stream_bytes, metadata)
        self.starts = {name: len(self.header) + i * self.stream_bytes for i, name in enumerate(streams)}

    def __enter__(self) -> "TraceFile":
        self.file = open(self.part, "wb")
        return self

    def write_rows(self, stream: str, first_row: int, weights: np.ndarray) -> None:
        """Put the weights of whole rows, back to back, where row `first_row` of the stream begins."""
        self.file.seek(self.starts[stream] + row_start(first_row) * self.dtype.itemsize)
        self.file.write(weights.astype(self.dtype).tobytes())

    def __exit__(self, kind, *_) -> None:
        try:
            if kind is None:
                self.file.seek(0)
                self.file.write(self.header)
            self.file.close()
            if kind is None:
                os.replace(self.part, self.path)
        finally:
            self.part.unlink(missing_ok=True)


def row_start(row: int) -> int:
    """How many weights the rows before this one hold."""
    return row * (row + 1) // 2


def header_bytes(streams: list[str], weights: int, dtype: str, stream_bytes: int, metadata: dict[str, str]) -> bytes:
    """The length-prefixed JSON header of a safetensors file with one 1-D tensor for each stream."""
    header: dict[str, object] = {"__metadata__": metadata}
    for i, name in enumerate(streams):
        header[name] = {"dtype": dtype, "shape": [weights], "data_offsets": [i * stream_bytes, (i + 1) * stream_bytes]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


# ----------------------------------------------------------------------- standing in for attention


@contextmanager
def attention_through(model, attention: Callable) -> Iterator[None]:
    """Every attention layer of the model calls `attention` while this lasts.

    The masks must be registered under the same name: a model gives no mask at all to an
    implementation that it does not know, and every row would see the future.
    """
    AttentionInterface.register(IMPLEMENTATION, attention)
    AttentionMaskInterface.register(IMPLEMENTATION, eager_mask)
    before = model.config._attn_implementation
    model.set_attn_implementation(IMPLEMENTATION)
    try:
        if model.config._attn_implementation != IMPLEMENTATION:
            raise RecordError(
                f"{type(model).__name__} does not take its attention from the attention interface of transformers, "
                "so its weights never pass the recorder: a newer transformers may help"
            )
        yield
    finally:
        model.set_attn_implementation(before)


def eager_attention(module) -> Callable:
    """The eager attention that belongs to a layer: the function of that name beside its class."""
    for kind in type(module).__mro__:
        function = getattr(sys.modules.get(kind.__module__), "eager_attention_forward", None)
        if function is not None:
            return function
    raise RecordError(f"{type(module).__name__} has no eager attention beside it, so there are no weights to record")


def layer_number(module) -> int:
    """Which layer an attention module belongs to."""
    layer = getattr(module, "layer_idx", None)
    if not isinstance(layer, int):
        raise RecordError(f"{type(module).__name__} does not say which layer it is: this model cannot be recorded")
    return layer


def in_blocks(module, query, key, value, mask, extras: dict) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
    """Eager attention, a block of query rows at a time: (first row, output, weights [batch, heads, rows, keys])."""
    length = query.shape[2]

    def rows(tensor, start: int):
        """These rows of a mask or bias; anything without one row for each query passes as it is."""
        per_query = isinstance(tensor, torch.Tensor) and tensor.dim() == 4 and tensor.shape[2] == length
        return tensor[:, :, start : start + ROWS_PER_BLOCK] if per_query else tensor

    attend = eager_attention(module)
    for start in range(0, length, ROWS_PER_BLOCK):
        some = {name: rows(extra, start) for name, extra in extras.items()}
        yield start, *attend(module, rows(query, start), key, value, rows(mask, start), **some)


# ------------------------------------------------------------------------------- what a model holds


@dataclasses.dataclass(frozen=True)
class Layer:
    """What the first look at a model tells about one attention layer."""

    query_heads: int
    kv_heads: int
    window: int | None

    def labels(self, group: str) -> list[str]:
        """The names of the streams that this layer gives."""
        if group == "layer":
            return ["mean"]
        return [str(head) for head in range(self.kv_heads if group == "kv" else self.query_heads)]


def attention_layers(model, token_ids: list[int]) -> dict[int, Layer]:
    """Run a single token through the model and note every attention layer that it passes."""
    layers: dict[int, Layer] = {}

    def look(module, query, key, value, mask, **extras):
        number = layer_number(module)
        if number in layers:
            raise RecordError(f"layer {number} attends twice for one token: such a model cannot be recorded")
        layers[number] = Layer(query.shape[1], key.shape[1], window_of(module, extras, number))
        return eager_attention(module)(module, query, key, value, mask, **extras)

    with attention_through(model, look):
        run(model, token_ids[:1])
    if not layers:
        raise RecordError(f"no layer of {type(model).__name__} came past the recorder: nothing can be recorded")
    return dict(sorted(layers.items()))


def window_of(module, extras: dict, number: int) -> int | None:
    """The sliding window of a layer, in positions, the token itself included; None where it sees everything."""
    config = getattr(module, "config", None)
    kinds = getattr(config, "layer_types", None) or []
    sliding = number < len(kinds) and kinds[number] == "sliding_attention"
    window = extras.get("sliding_window") or (getattr(config, "sliding_window", None) if sliding else None)
    return window if isinstance(window, int) and window > 0 else None


def chosen_layers(found: dict[int, Layer], wanted: list[int] | None) -> dict[int, Layer]:
    """The layers to record, or an error that names those that have no attention."""
    missing = [layer for layer in wanted or [] if layer not in found]
    if missing:
        names = ", ".join(map(str, missing))
        raise RecordError(f"no attention in layer {names}: the layers with attention are {numbers_text(found)}")
    return found if wanted is None else {layer: found[layer] for layer in sorted(set(wanted))}


def numbers_text(numbers) -> str:
    """0..=29, or a list where some are left out."""
    listed = list(numbers)
    whole = listed == list(range(listed[0], listed[-1] + 1))
    return f"{listed[0]}..={listed[-1]}" if whole else ", ".join(map(str, listed))


def run(model, token_ids: list[int]):
    """One pass over all tokens, without a cache and without logits that nobody reads."""
    saves_logits = "logits_to_keep" in inspect.signature(model.forward).parameters
    keep = {"logits_to_keep": 1} if saves_logits else {}
    with torch.no_grad():
        return model(input_ids=torch.tensor([token_ids], device=model.device), use_cache=False, **keep)


# ----------------------------------------------------------------------------------------- recording


@dataclasses.dataclass(frozen=True)
class Recording:
    """What a recording has to tell beside the file."""

    streams: int
    rows: int
    perplexity: float | None


def record(
    model,
    token_ids: list[int],
    output: Path,
    *,
    layers: list[int] | None = None,
    group: str = "none",
    dtype: str = "f16",
    prompt_len: int = 0,
    details: dict[str, str] | None = None,
) -> Recording:
    """Record the attention that the model pays over these tokens, in one pass, into the output file.

    `prompt_len` counts the tokens that a prompt took where the rest was generated (0: no such split);
    `details` is more metadata. The perplexity is that of the prompt, or of all tokens without a split.
    """
    model.eval()
    chosen = chosen_layers(attention_layers(model, token_ids), layers)
    names = {layer: [f"attention.{layer}.{label}" for label in chosen[layer].labels(group)] for layer in chosen}
    streams = [name for layer in chosen for name in names[layer]]
    metadata = describe(model, token_ids, chosen, group, prompt_len) | (details or {})
    done: list[int] = []

    with (
        TraceFile(output, streams, len(token_ids), dtype, metadata) as file,
        tqdm(total=len(chosen), unit="layer", desc="recording", disable=None) as progress,
    ):

        def attend(module, query, key, value, mask, **extras):
            layer, outputs = layer_number(module), []
            for first_row, out, weights in in_blocks(module, query, key, value, mask, extras):
                outputs.append(out)
                if layer in chosen:
                    check_block(layer, chosen[layer].window, len(token_ids), first_row, weights[0])
                    for name, stream in zip(names[layer], grouped(weights[0], group, chosen[layer]), strict=True):
                        file.write_rows(name, first_row, triangular(stream, first_row))
            if layer in chosen:
                done.append(layer)
                progress.update()
            return torch.cat(outputs, dim=1), None

        with attention_through(model, attend), last_output(model.get_decoder()) as kept:
            run(model, token_ids)
        if sorted(done) != list(chosen):
            raise RecordError(f"asked for layers {list(chosen)} but {sorted(done)} came past: nothing was written")

    return Recording(len(streams), len(token_ids), perplexity(model, kept, token_ids[: prompt_len or None]))


def describe(model, token_ids: list[int], layers: dict[int, Layer], group: str, prompt_len: int) -> dict[str, str]:
    """The metadata that follows from the model and the tokens."""
    facts = {
        "kvsim": "1",
        "self": "included",
        "seq_len": len(token_ids),
        "tokens": len(token_ids),
        "prompt_len": prompt_len,
        "group": group,
        "num_layers": model.config.get_text_config().num_hidden_layers,
        "arithmetic": str(model.dtype).removeprefix("torch."),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    for field in ("query_heads", "kv_heads"):
        counts = {layer: getattr(layers[layer], field) for layer in layers}
        same = len(set(counts.values())) == 1
        facts |= {field: next(iter(counts.values()))} if same else {f"{field}.{n}": c for n, c in counts.items()}
    for number, layer in layers.items():
        if layer.window is not None:
            facts |= {f"sliding_window.{number}": layer.window, f"column_offset.{number}": 0}
    return {name: str(fact) for name, fact in facts.items()}


def check_block(layer: int, window: int | None, tokens: int, first_row: int, weights: torch.Tensor) -> None:
    """Refuse weights [heads, rows, keys] that cannot be what this recorder says they are."""
    rows, keys = weights.shape[1:]
    if keys != tokens:
        raise RecordError(f"layer {layer} attends to {keys} keys for {tokens} tokens: its columns are not positions")
    if not torch.isfinite(weights).all():
        raise RecordError(f"layer {layer}: weights that are no numbers in rows {first_row}..={first_row + rows - 1}")
    if weights.triu(first_row + 1).any():
        raise RecordError(f"layer {layer} attends to later positions: it is not causal, or its mask went missing")
    if window is not None and weights.tril(first_row - window).any():
        raise RecordError(f"layer {layer} attends farther back than its sliding window of {window} positions")


def grouped(weights: torch.Tensor, group: str, layer: Layer) -> torch.Tensor:
    """Query heads as they are, or averaged over those that share a KV head, or over all."""
    if group == "kv":
        return weights.unflatten(0, (layer.kv_heads, -1)).mean(dim=1)
    return weights.mean(dim=0, keepdim=True) if group == "layer" else weights


def triangular(rows: torch.Tensor, first_row: int) -> np.ndarray:
    """The weights on and below the diagonal of consecutive rows, back to back."""
    seen = torch.ones(rows.shape, dtype=torch.bool, device=rows.device).tril(first_row)
    return rows[seen].float().cpu().numpy()


# ---------------------------------------------------------------------------------------- perplexity


@contextmanager
def last_output(module) -> Iterator[list]:
    """A list that holds the module's last output once it has run."""
    kept: list = []
    hook = module.register_forward_hook(lambda _module, _inputs, output: kept.__setitem__(slice(None), [output]))
    try:
        yield kept
    finally:
        hook.remove()


def perplexity(model, kept: list, token_ids: list[int]) -> float | None:
    """The perplexity of each token after the first; None where the model's parts do not allow it.

    The head runs over blocks of the states that the layers left, since the logits of all tokens would
    take more memory than all the rest.
    """
    if len(token_ids) < 2 or not kept or getattr(kept[0], "last_hidden_state", None) is None:
        return None
    total, targets = 0.0, torch.tensor(token_ids, device=model.device)
    for start in range(0, len(token_ids) - 1, ROWS_PER_BLOCK):
        end = min(start + ROWS_PER_BLOCK, len(token_ids) - 1)
        logits = logits_of_rows(model, kept[0], start, end)
        if logits is None:
            return None
        total += torch.nn.functional.cross_entropy(logits, targets[start + 1 : end + 1], reduction="sum").item()
    return math.exp(total / (len(token_ids) - 1))


def logits_of_rows(model, output: ModelOutput, start: int, end: int) -> torch.Tensor | None:
    """What the model makes of some rows of its layers' output; its own head code adds scaling and soft caps."""
    part = dataclasses.replace(output, last_hidden_state=output.last_hidden_state[:, start:end])
    unread = torch.zeros((1, end - start), dtype=torch.long, device=model.device)
    with patch.object(model.get_decoder(), "forward", return_value=part) as layers, torch.no_grad():
        logits = model(input_ids=unread, use_cache=False).logits[0].float()
    return logits if layers.called else None


# ---------------------------------------------------------------------------- models, texts, tokens


def load(name: str, revision: str | None):
    """Model and tokenizer, by hub id, folder or GGUF file, and the metadata that names them."""
    path = Path(name)
    if path.suffix == ".gguf":
        place, options = str(path.parent), {"gguf_file": path.name}
    else:
        place, options = name, {"revision": revision} if revision else {}
    if path.suffix == ".gguf" and not path.is_file():
        raise RecordError(f"{name}: no such file")
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    huggingface_hub.utils.logging.set_verbosity_error()
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(place, **options)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            place, dtype=torch.float32, attn_implementation="eager", **options
        )
    except Exception as problem:  # the library and the files it reads may raise anything
        raise RecordError(f"model {name!r} cannot be loaded: {first_line(problem)}") from problem
    named = {"model": path.name if path.exists() else name}
    commit = getattr(model.config, "_commit_hash", None)
    return model, tokenizer, named | ({"revision": commit} if commit else {})


def first_line(problem: Exception) -> str:
    """The first line of an error's text, without a stop at its end."""
    lines = str(problem).strip().splitlines() or [type(problem).__name__]
    return lines[0].rstrip(" .")


def read_prompt(args: argparse.Namespace, tokenizer) -> list[int]:
    """The token ids of the text or chat file, cut to `--max-length`."""
    path = args.text or args.chat
    try:
        content = path.read_text(encoding="utf-8")
    except OSError as problem:
        raise RecordError(f"{path}: {(problem.strerror or str(problem)).lower()}") from problem
    except UnicodeDecodeError as problem:
        raise RecordError(f"{path}: not UTF-8 at byte {problem.start}: save the file as UTF-8") from problem
    ids = chat_ids(path, content, tokenizer, args.generate > 0) if args.chat else tokenizer(content)["input_ids"]
    if not ids:
        raise RecordError(f"{path}: no tokens to read")
    return ids[: args.max_length]


def chat_ids(path: Path, content: str, tokenizer, answer: bool) -> list[int]:
    """The tokens of a chat in the model's own template, ready for an answer where one will be generated."""
    try:
        chat = json.loads(content)
    except json.JSONDecodeError as problem:
        raise RecordError(f"{path}:{problem.lineno}: not JSON: {problem.msg.lower()}") from problem
    messages = chat.get("messages") if isinstance(chat, dict) else chat
    fine = isinstance(messages, list) and all(
        isinstance(m, dict) and {"role", "content"} <= m.keys() for m in messages
    )
    if not fine or not messages:
        raise RecordError(f'{path}: not a chat: needs a list such as [{{"role": "user", "content": "..."}}]')
    if not tokenizer.chat_template:
        raise RecordError("the model has no chat template: write the prompt out and give it with --text")
    try:
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=answer)
    except Exception as problem:  # a template is a program of the model's authors and may raise anything
        raise RecordError(f"{path}: the model's chat template refuses it: {first_line(problem)}") from problem
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def generate(model, token_ids: list[int], count: int, seed: int | None) -> list[int]:
    """The prompt and what the model says next: the likeliest tokens, or a sample where there is a seed."""
    if seed is not None:
        torch.manual_seed(seed)
    prompt = torch.tensor([token_ids], device=model.device)
    with torch.no_grad():
        said = model.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=count, do_sample=seed is not None
        )
    return said[0].tolist()


# --------------------------------------------------------------------------------- the command line


class Arguments(argparse.ArgumentParser):
    """Says in one line what is wrong with an argument."""

    def error(self, message: str):
        self.exit(2, f"error: {message}\n")


def count_of(least: int) -> Callable[[str], int]:
    """A parser of whole numbers that are not too small."""

    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"'{text}' is no whole number from {least} on")
        return int(text)

    return parse


def layer_list(text: str) -> list[int]:
    """Parses 0,9,21."""
    return [count_of(0)(part.strip()) for part in text.split(",")]


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """The command line, checked as far as it can be before the model is loaded."""
    parser = Arguments(
        description="record the attention of a causal language model as a trace for kvsim", allow_abbrev=False
    )
    parser.add_argument("model", metavar="MODEL", help="hub id, folder, or .gguf file")
    prompt = parser.add_mutually_exclusive_group(required=True)
    prompt.add_argument("--text", type=Path, metavar="FILE", help="UTF-8 text to read")
    prompt.add_argument("--chat", type=Path, metavar="FILE", help='JSON: [{"role": "user", "content": "..."}, ...]')
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="OUT", help="the .safetensors file")
    parser.add_argument("--max-length", type=count_of(1), metavar="N", help="read at most N tokens of the prompt")
    parser.add_argument("--generate", type=count_of(1), default=0, metavar="N", help="let the model add up to N tokens")
    parser.add_argument("--layers", type=layer_list, metavar="0,9,..", help="record only these layers")
    parser.add_argument("--group", choices=GROUPS, default="none", help="query heads, a mean for each KV head, or one")
    parser.add_argument("--dtype", choices=tuple(NUMPY_TYPES), default="f16", help="how weights are stored")
    parser.add_argument("--seed", type=count_of(0), metavar="N", help="sample what --generate adds, from this seed")
    parser.add_argument("--revision", metavar="R", help="branch, tag or commit of a hub model")
    args = parser.parse_args(argv)
    if args.seed is not None and not args.generate:
        parser.error("--seed samples what --generate adds: give --generate N too")
    if args.revision and Path(args.model).exists():
        parser.error(f"--revision picks a version of a hub model, but '{args.model}' is on this machine")
    if args.output.suffix != ".safetensors":
        parser.error(f"-o {args.output}: a trace is a safetensors file: let its name end in .safetensors")
    if not args.output.absolute().parent.is_dir():
        parser.exit(1, f"error: {args.output}: no such folder: make it first\n")
    if args.output.is_dir() or not os.access(args.output.absolute().parent, os.W_OK):
        parser.exit(1, f"error: {args.output}: no file can be written there\n")
    return args


def record_from(args: argparse.Namespace) -> None:
    """Load, read, generate, record, and say what was done."""
    started = time.monotonic()
    model, tokenizer, details = load(args.model, args.revision)
    prompt = read_prompt(args, tokenizer)
    token_ids = prompt
    if args.generate:
        token_ids = generate(model, prompt, args.generate, args.seed)
        say(f"generated {len(token_ids) - len(prompt)} tokens after the prompt of {len(prompt)}")
    warn_of_length(model, len(token_ids))
    details |= {"source": (args.text or args.chat).name, "bos": bos_of(tokenizer, prompt)}
    details |= {"seed": str(args.seed)} if args.seed is not None else {}
    result = record(
        model,
        token_ids,
        args.output,
        layers=args.layers,
        group=args.group,
        dtype=args.dtype,
        prompt_len=len(prompt) if args.generate else 0,
        details=details,
    )
    say_result(args.output, result, len(prompt), time.monotonic() - started)


def bos_of(tokenizer, token_ids: list[int]) -> str:
    """Whether the sequence begins with the model's begin-of-sequence token."""
    return "added" if tokenizer.bos_token_id is not None and token_ids[0] == tokenizer.bos_token_id else "none"


def warn_of_length(model, tokens: int) -> None:
    """A model that reads past its last trained position attends at random."""
    most = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if isinstance(most, int) and tokens > most:
        say(f"warning: {tokens} tokens, but the model was made for {most}: cut with --max-length {most}")


def say_result(output: Path, result: Recording, prompt: int, seconds: float) -> None:
    """What is worth knowing at the end."""
    if result.perplexity is None:
        say("perplexity: not known (one token, or a model whose head does not run by itself)")
    else:
        say(f"perplexity: {result.perplexity:.3f} over {prompt - 1} next tokens of the prompt")
    megabytes = output.stat().st_size / 1e6
    say(f"wrote {output}: {result.streams} streams of {result.rows} rows, {megabytes:.1f} MB, {seconds:.0f} s")


def say(line: str) -> None:
    """A line on standard error, where everything but the trace goes."""
    print(line, file=sys.stderr)


def main(argv: list[str] | None = None) -> int:
    """Exit code: 0 done, 1 bad data or I/O, 2 usage."""
    args = arguments(argv)
    try:
        record_from(args)
    except RecordError as problem:
        say(f"error: {problem}")
        return 1
    except OSError as problem:
        say(f"error: {problem.filename or args.output}: {(problem.strerror or str(problem)).lower()}")
        return 1
    except KeyboardInterrupt:
        say("error: interrupted: nothing was written")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
