#!/usr/bin/env python3
"""The real loss of decisions: a model reads a text while its caches lose what a policy evicted.

    python traces/loss.py MODEL (--text FILE | --chat FILE | --trace FILE) --decisions FILE [-o TOKENS.csv]
    python traces/loss.py MODEL (--text FILE | --chat FILE | --trace FILE) --closed --policy P --budget B

The model reads the text twice, with the full cache and with evicted ones, teacher forced: the next token
is always the text's own. Printed are the negative log-likelihood of the next token, the KL divergence of
the next-token distribution from the full cache's, and how often both would say the same token next.
"""

import argparse
import csv
import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path

try:
    import numpy as np
    import torch
    from safetensors import SafetensorError, safe_open

    from decisions import DecisionsError, read_decisions, write_decisions
    from record import ARITHMETIC, Arguments, count_of
    from recorder import models
    from recorder.closed import Decider, closed_states
    from recorder.errors import RecordError, first_line, say
    from recorder.eviction import departures, states_with
    from recorder.head import logits_in_blocks
    from recorder.layers import attention_layers
except ImportError as missing:
    sys.exit(f"error: {missing}: install what this needs with `pip install -r traces/requirements.txt`")

BLOCK, RESAMPLES = 16, 4000
# Rows whose distributions are compared at once, in f64.
ROWS_AT_ONCE = 32


@dataclasses.dataclass(frozen=True)
class Loss:
    """One number a row; the last row has no next token, so no likelihood (NaN)."""

    nll_full: np.ndarray
    nll: np.ndarray
    kl: np.ndarray
    agrees: np.ndarray
    first_eviction: int | None

    def counted(self) -> np.ndarray:
        """The rows that follow the first eviction."""
        return np.arange(0 if self.first_eviction is None else self.first_eviction + 1, len(self.kl))


@torch.no_grad()
def measure(model, token_ids: list[int], header: dict, left: list[dict[int, int]]) -> Loss:
    """Read the tokens with the full cache and with what the decisions leave of it, and compare."""
    model.eval()
    layers = attention_layers(model, token_ids)
    table = departures(header, left, layers, len(token_ids))
    return loss_of(model, token_ids, full_states(model, token_ids), states_with(model, token_ids, layers, table), left)


@torch.no_grad()
def measure_closed(model, token_ids: list[int], decider: Decider, full: list | None = None):
    """The loss where the policy decides on what the evicted model attends to, and what it decided."""
    model.eval()
    states, left = closed_states(model, token_ids, attention_layers(model, token_ids), decider)
    return loss_of(model, token_ids, full or full_states(model, token_ids), states, left), left


@torch.no_grad()
def full_states(model, token_ids: list[int]) -> list:
    """What the layers leave at their end with the full cache."""
    return states_with(model, token_ids, attention_layers(model, token_ids), {})


def loss_of(model, token_ids: list[int], full: list, evicted: list, left: list[dict[int, int]]) -> Loss:
    """Compare what the layers left with the full cache and with the evicted one."""
    targets = torch.tensor([*token_ids[1:], 0], device=model.device)
    rows = [
        compare(one, other, targets[start:end]) for start, end, one, other in both(model, full, evicted, len(targets))
    ]
    nll_full, nll, kl, agrees = np.concatenate(rows, axis=1)
    nll_full[-1] = nll[-1] = np.nan
    steps = [step for positions in left for step in positions.values()]
    return Loss(nll_full, nll, kl, agrees, min(steps, default=None))


def both(model, full: list, evicted: list, tokens: int) -> Iterator[tuple[int, int, torch.Tensor, torch.Tensor]]:
    """First row, end and logits of a few rows, with the full cache and without what left."""
    pairs = zip(logits_in_blocks(model, full, tokens), logits_in_blocks(model, evicted, tokens), strict=True)
    for (start, end, one), (_, _, other) in pairs:
        for row in range(start, end, ROWS_AT_ONCE):
            some = slice(row - start, row - start + ROWS_AT_ONCE)
            yield row, min(row + ROWS_AT_ONCE, end), one[some], other[some]


def compare(full: torch.Tensor, evicted: torch.Tensor, targets: torch.Tensor) -> np.ndarray:
    """Of some rows: both negative log-likelihoods of the next token, the divergence, whether the likeliest agree."""
    one, other = full.double().log_softmax(dim=-1), evicted.double().log_softmax(dim=-1)
    likelihoods = [-each.gather(1, targets[:, None])[:, 0] for each in (one, other)]
    kl = (one.exp() * (one - other)).sum(dim=-1)
    agrees = (one.argmax(dim=-1) == other.argmax(dim=-1)).double()
    return torch.stack([*likelihoods, kl, agrees]).cpu().numpy()


# ------------------------------------------------------------------------------------------- results


@dataclasses.dataclass(frozen=True)
class Figure:
    """The mean of a number over rows, its sum, and a 95 % interval of the mean (None for a single block)."""

    mean: float
    total: float
    low: float | None
    high: float | None


def figure_of(numbers: np.ndarray, seed: int) -> Figure | None:
    """Mean, sum and a bootstrap over blocks of 16 tokens; rows without a number are left out."""
    numbers = numbers[~np.isnan(numbers)]
    if not len(numbers):
        return None
    edges = range(0, len(numbers), BLOCK)
    sums = np.array([[numbers[i : i + BLOCK].sum(), len(numbers[i : i + BLOCK])] for i in edges])
    if len(sums) < 2:
        return Figure(float(numbers.mean()), float(numbers.sum()), None, None)
    drawn = np.random.default_rng(seed).integers(0, len(sums), (RESAMPLES, len(sums)))
    totals = sums[drawn].sum(axis=1)
    low, high = np.quantile(totals[:, 0] / totals[:, 1], [0.025, 0.975])
    return Figure(float(numbers.mean()), float(numbers.sum()), float(low), float(high))


def figures(loss: Loss, seed: int) -> dict[str, Figure | None]:
    """What is printed, over the rows that follow the first eviction."""
    rows = loss.counted()
    numbers = {
        "nll_full": loss.nll_full[rows],
        "nll": loss.nll[rows],
        "nll_increase": (loss.nll - loss.nll_full)[rows],
        "kl": loss.kl[rows],
        "agreement": loss.agrees[rows],
    }
    return {name: figure_of(values, seed) for name, values in numbers.items()}


def table_text(loss: Loss, said: dict[str, Figure | None]) -> str:
    """The figures for a reader."""
    if loss.first_eviction is None:
        intro = f"nothing was evicted: all {len(loss.kl)} rows"
    else:
        intro = f"{len(loss.counted())} rows after the first eviction, which came after row {loss.first_eviction}"
    lines = [f"{intro}; nats; 95 % intervals by a bootstrap over blocks of {BLOCK} tokens"]
    lines.append(f"{'':14}{'mean':>12}{'from':>12}{'to':>12}{'sum':>14}")
    for name, figure in said.items():
        cells = [None] * 4 if figure is None else [figure.mean, figure.low, figure.high, figure.total]
        texts = ["" if cell is None else f"{cell:.6f}" for cell in cells]
        lines.append(f"{name:14}{texts[0]:>12}{texts[1]:>12}{texts[2]:>12}{texts[3]:>14}".rstrip())
    return "\n".join(lines)


def json_text(loss: Loss, said: dict[str, Figure | None], header: dict) -> str:
    """The figures for a program."""
    about = {name: header.get(name) for name in ("trace", "policy", "budget")}
    told = {name: figure and dataclasses.asdict(figure) for name, figure in said.items()}
    return json.dumps(about | {"rows": len(loss.counted()), "first_eviction": loss.first_eviction, "figures": told})


def write_tokens(path: Path, loss: Loss, texts: list[str]) -> None:
    """One line for each row: what the token was, and what its row lost."""
    part = path.with_name(f".{path.name}.part")
    try:
        with open(part, "w", encoding="utf-8", newline="") as file:
            lines = csv.writer(file, lineterminator="\n")
            lines.writerow(["row", "token", "nll_full", "nll", "kl", "agrees"])
            for row, numbers in enumerate(zip(loss.nll_full, loss.nll, loss.kl, loss.agrees, strict=True)):
                cells = ["" if np.isnan(number) else repr(float(number)) for number in numbers[:3]]
                lines.writerow([row, texts[row], *cells, int(numbers[3])])
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


# --------------------------------------------------------------------------------- the command line


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = Arguments(description="the real loss of a policy's decisions", allow_abbrev=False)
    parser.add_argument("model", metavar="MODEL", help="hub id, folder, or .gguf file")
    prompt = parser.add_mutually_exclusive_group(required=True)
    prompt.add_argument("--text", type=Path, metavar="FILE", help="UTF-8 text to read")
    prompt.add_argument("--chat", type=Path, metavar="FILE", help='JSON: [{"role": "user", "content": "..."}, ...]')
    prompt.add_argument("--trace", type=Path, metavar="FILE", help="a trace of record.py, whose tokens are read")
    decided = parser.add_mutually_exclusive_group(required=True)
    decided.add_argument("--decisions", type=Path, metavar="FILE", help="what left when (docs/decisions.md)")
    decided.add_argument("--closed", action="store_true", help="the policy decides on what the evicted model attends to")
    parser.add_argument("--policy", metavar="P", help="closed: a policy of kvsim, such as h2o:recent-window=16")
    parser.add_argument("--budget", metavar="B", help="closed: positions held, or a share such as 25%%")
    parser.add_argument("--kvsim", default="kvsim", metavar="PROGRAM", help="closed: the program (default: on the path)")
    parser.add_argument("--save", type=Path, metavar="FILE", help="closed: write down who left when")
    parser.add_argument("--lane", type=count_of(0), default=0, metavar="N", help="of a file of several lanes (default 0)")
    parser.add_argument("--max-length", type=count_of(2), metavar="N", help="read at most N tokens")
    parser.add_argument("-o", "--output", type=Path, metavar="CSV", help="write one line for each token")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="how the figures are printed")
    parser.add_argument("--seed", type=count_of(0), default=1, metavar="N", help="of the bootstrap (default 1)")
    parser.add_argument("--arithmetic", choices=tuple(ARITHMETIC), default="f32", help="what the model computes in")
    parser.add_argument("--device", default="cpu", metavar="D", help="where it computes: cpu, cuda, cuda:1, mps")
    parser.add_argument("--revision", metavar="R", help="branch, tag or commit of a hub model")
    args = parser.parse_args(argv)
    if args.closed and not (args.policy and args.budget):
        parser.error("--closed needs --policy and --budget")
    if not args.closed and (args.policy or args.budget or args.save):
        parser.error("--policy, --budget and --save belong to --closed")
    if args.output and not args.output.absolute().parent.is_dir():
        parser.exit(1, f"error: {args.output}: no such folder: make it first\n")
    return args


def tokens_to_read(args: argparse.Namespace, tokenizer, header: dict) -> list[int]:
    """The token ids, as many as the decisions are about."""
    if args.trace:
        ids = tokens_of_trace(args.trace)[: args.max_length]
    else:
        ids = models.prompt_ids(tokenizer, args.text or args.chat, bool(args.chat), False, args.max_length)
    wanted = header.get("seq_len")
    if isinstance(wanted, int) and args.max_length is None:
        if len(ids) < wanted:
            raise RecordError(f"{args.decisions}: about {wanted} tokens, but there are {len(ids)}: is it another text?")
        ids = ids[:wanted]
    if len(ids) < 2:
        raise RecordError("a single token has no next one: give a longer text")
    return ids


def tokens_of_trace(path: Path) -> list[int]:
    """The token ids that record.py wrote into a trace."""
    try:
        with safe_open(path, "np") as file:
            text = (file.metadata() or {}).get("token_ids")
    except (SafetensorError, OSError) as problem:
        raise RecordError(f"{path}: {first_line(problem)}") from problem
    if text is None:
        raise RecordError(f"{path}: no 'token_ids' in its metadata: give the text with --text")
    return json.loads(text)


def run(args: argparse.Namespace) -> None:
    """Read everything, measure, print."""
    header, left = ({}, []) if args.closed else read_decisions(args.decisions, args.lane)
    models.quiet_libraries()
    models.check_device(args.device)
    tokenizer = models.load_tokenizer(args.model, args.revision)
    token_ids = tokens_to_read(args, tokenizer, header)
    model, _ = models.load_model(args.model, args.revision, ARITHMETIC[args.arithmetic], args.device)
    models.check_vocabulary(model, token_ids)
    if args.closed:
        loss, header = run_closed(args, model, token_ids)
    else:
        loss = measure(model, token_ids, header, left)
    if args.output:
        write_tokens(args.output, loss, models.token_texts(tokenizer, token_ids))
    said = figures(loss, args.seed)
    print(table_text(loss, said) if args.format == "table" else json_text(loss, said, header))


def run_closed(args: argparse.Namespace, model, token_ids: list[int]) -> tuple[Loss, dict]:
    """The closed loop, and what decided."""
    policy = ["--policy", args.policy, "--budget", args.budget]
    decider = Decider.of(model, token_ids, args.kvsim, policy)
    try:
        loss, left = measure_closed(model, token_ids, decider)
    finally:
        decider.close()
    if args.save:
        write_decisions(args.save, decider.header, left)
    return loss, decider.header


def main(argv: list[str] | None = None) -> int:
    """Exit code: 0 done, 1 bad data or I/O, 2 usage."""
    args = arguments(argv)
    try:
        run(args)
    except (RecordError, DecisionsError) as problem:
        say(f"error: {problem}")
    except OSError as problem:
        say(f"error: {problem.filename or args.output}: {(problem.strerror or str(problem)).lower()}")
    except KeyboardInterrupt:
        say("error: interrupted: nothing was written")
    else:
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
