#!/usr/bin/env python3
"""Record a causal language model as a trace that kvsim replays.

    python traces/record.py MODEL (--text FILE | --chat FILE) -o OUT.safetensors [--what attention|qkv]

How it works: a function of ours takes the place of the model's attention. It calls the eager attention
that the model's own authors wrote (so scaling, soft caps and learned sinks are theirs), a block of query
rows at a time, and writes what goes in (queries, keys and values) or what comes out (weights) where it
belongs in the output file. Neither all layers nor one whole layer of weights is ever in memory.

Rows include the token itself: row t has t + 1 weights, one for each position 0..=t.

This file is the command line; the rest is in recorder/.
"""

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

try:
    import torch

    from recorder import models
    from recorder.attention import GROUPS, record_attention
    from recorder.errors import RecordError, first_line, say
    from recorder.gradients import Gradients
    from recorder.head import Recording
    from recorder.qkv import record_qkv, sensitivities
    from recorder.qkv_format import Beside
    from recorder.trace_file import TORCH_TYPES
except ImportError as missing:
    sys.exit(f"error: {missing}: install what the recorder needs with `pip install -r traces/requirements.txt`")

ARITHMETIC = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
OF_QKV = ("output_projections", "residual_norms", "gradients", "gradient_scale", "fisher")


class Arguments(argparse.ArgumentParser):
    """Says in one line what is wrong with an argument."""

    def error(self, message: str):
        self.exit(2, f"error: {message}\n")


def count_of(least: int) -> Callable[[str], int]:
    """A parser of whole numbers that are not too small."""

    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from {least} on")
        return int(text)

    return parse


def numbers(text: str) -> list[int]:
    """Parses 0,9,21."""
    return [count_of(0)(part.strip()) for part in text.split(",")]


def power_of_two(text: str) -> float:
    """Parses 16, 1 or 0.25."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (0 < value < math.inf) or math.frexp(value)[0] != 0.5:
        raise argparse.ArgumentTypeError(f"'{text}' is not a power of two such as 16, 1 or 0.25")
    return value


def parser() -> Arguments:
    """Every flag."""
    parser = Arguments(description="record a causal language model as a trace for kvsim", allow_abbrev=False)
    parser.add_argument("model", metavar="MODEL", help="hub id, folder, or .gguf file")
    prompt = parser.add_mutually_exclusive_group(required=True)
    prompt.add_argument("--text", type=Path, metavar="FILE", help="UTF-8 text to read")
    prompt.add_argument("--chat", type=Path, metavar="FILE", help='JSON: [{"role": "user", "content": "..."}, ...]')
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="OUT", help="the .safetensors file")
    parser.add_argument("--what", choices=("attention", "qkv"), default="attention", help="weights, or what makes them")
    parser.add_argument("--max-length", type=count_of(1), metavar="N", help="read at most N tokens of the prompt")
    parser.add_argument("--generate", type=count_of(1), default=0, metavar="N", help="let the model add up to N tokens")
    parser.add_argument("--layers", type=numbers, metavar="0,9,..", help="record only these layers")
    parser.add_argument("--heads", type=numbers, metavar="0,2,..", help="only these heads (KV heads for qkv)")
    parser.add_argument("--group", choices=GROUPS, help="query heads, a mean for each KV head, or one (attention)")
    parser.add_argument("--dtype", choices=tuple(TORCH_TYPES), default="f16", help="how numbers are stored")
    parser.add_argument("--arithmetic", choices=tuple(ARITHMETIC), default="f32", help="what the model computes in")
    parser.add_argument("--device", default="cpu", metavar="D", help="where it computes: cpu, cuda, cuda:1, mps")
    parser.add_argument("--seed", type=count_of(0), metavar="N", help="what is drawn: generated tokens, labels")
    parser.add_argument("--revision", metavar="R", help="branch, tag or commit of a hub model")
    qkv = parser.add_argument_group("beside queries, keys and values (--what qkv)")
    qkv.add_argument("--output-projections", action="store_true", help="W_O of each layer, and the norm behind it")
    qkv.add_argument("--residual-norms", action="store_true", help="length of the stream that enters each layer")
    qkv.add_argument("--gradients", type=count_of(1), metavar="S", help="gradients at the heads, S samples of labels")
    qkv.add_argument("--gradient-scale", type=power_of_two, metavar="F", help="they are stored times F (default 16)")
    qkv.add_argument("--fisher", action="store_true", help="the Fisher matrix of each head's output")
    parser.add_argument("--sensitivity", type=count_of(1), metavar="S", help="one number a head, from S samples")
    return parser


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """The command line, checked as far as it can be before anything is loaded."""
    flags = parser()
    args = flags.parse_args(argv)
    if problem := contradiction(args):
        flags.error(problem)
    if not args.output.absolute().parent.is_dir():
        flags.exit(1, f"error: {args.output}: no such folder: make it first\n")
    if args.output.is_dir() or not os.access(args.output.absolute().parent, os.W_OK):
        flags.exit(1, f"error: {args.output}: no file can be written there\n")
    return args


def contradiction(args: argparse.Namespace) -> str | None:
    """What is wrong with flags that are each right."""
    samples = args.gradients or args.sensitivity
    if args.seed is not None and not args.generate and not samples:
        return "--seed is for what is drawn: give --generate, --gradients or --sensitivity too"
    if args.revision and Path(args.model).exists():
        return f"--revision picks a version of a hub model, but '{args.model}' is on this machine"
    if args.output.suffix != ".safetensors":
        return f"-o {args.output}: a trace is a safetensors file: let its name end in .safetensors"
    if args.heads and args.group == "layer":
        return "--heads chooses heads, but --group layer is their mean: leave one of them out"
    return contradiction_of_kind(args, samples)


def contradiction_of_kind(args: argparse.Namespace, samples: int | None) -> str | None:
    """What does not go with attention, or with queries, keys and values."""
    wrong = [name for name in OF_QKV if args.what == "attention" and getattr(args, name)]
    if wrong:
        return f"--{wrong[0].replace('_', '-')} goes with queries, keys and values: give --what qkv"
    if args.what == "qkv" and args.group:
        return "--group is for attention: queries, keys and values are stored head by head"
    if args.gradients and args.sensitivity:
        return "--gradients brings the sensitivities: leave --sensitivity out"
    if args.fisher and not samples:
        return "--fisher needs samples: give --gradients S or --sensitivity S"
    if args.gradient_scale and not args.gradients:
        return "--gradient-scale is for gradients that are stored: give --gradients S"
    if args.what == "qkv" and args.heads and (args.output_projections or samples):
        return "W_O and gradients concern all heads of a layer: leave --heads out"
    return None


def record_from(args: argparse.Namespace) -> None:
    """Read, load, generate, record, and say what was done."""
    started = time.monotonic()
    models.quiet_libraries()
    models.check_device(args.device)
    tokenizer = models.load_tokenizer(args.model, args.revision)
    prompt = models.prompt_ids(tokenizer, args.text or args.chat, bool(args.chat), args.generate > 0, args.max_length)
    model, details = models.load_model(args.model, args.revision, ARITHMETIC[args.arithmetic], args.device)
    models.check_vocabulary(model, prompt)
    token_ids = prompt
    if args.generate:
        token_ids = models.generate(model, prompt, args.generate, args.seed)
        say(f"generated {len(token_ids) - len(prompt)} tokens after the prompt of {len(prompt)}")
    warn_of_length(model, len(token_ids))
    details |= {"source": (args.text or args.chat).name, "bos": models.bos_of(tokenizer, prompt)}
    details |= {"tokens": json.dumps(models.token_texts(tokenizer, token_ids), ensure_ascii=False)}
    details |= {"seed": str(args.seed)} if args.seed is not None and args.generate else {}
    result = record(model, token_ids, args, len(prompt) if args.generate else 0, details)
    say_result(args.output, result, len(prompt), time.monotonic() - started)


def record(model, token_ids: list[int], args: argparse.Namespace, prompt_len: int, details: dict) -> Recording:
    """The recording that was asked for."""
    common = {"layers": args.layers, "heads": args.heads, "dtype": args.dtype, "prompt_len": prompt_len}
    samples = args.gradients or args.sensitivity
    seed = 1 if args.seed is None else args.seed
    gradients = None
    if samples:
        gradients = Gradients(samples, seed, args.gradient_scale or 16.0, args.gradients is not None, args.fisher)
    if args.what == "qkv":
        beside = Beside(args.output_projections, args.residual_norms, gradients)
        return record_qkv(model, token_ids, args.output, beside=beside, details=details, **common)
    if gradients:
        details |= sensitivities(model, token_ids, args.layers, gradients, args.output)
    return record_attention(model, token_ids, args.output, group=args.group or "none", details=details, **common)


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
    say(f"wrote {output}: {result.tensors} tensors, {result.rows} tokens, {megabytes:.1f} MB, {seconds:.0f} s")


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
    except torch.OutOfMemoryError as problem:
        say(f"error: {args.device} has too little memory: {first_line(problem)}: cut with --max-length")
        return 1
    except KeyboardInterrupt:
        say("error: interrupted: nothing was written")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
