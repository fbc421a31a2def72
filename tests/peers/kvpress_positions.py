"""Compares the positions that kvsim keeps of a prompt with those that kvpress keeps, index for index.

Usage: kvpress_positions.py KVSIM [TRACE]

kvpress' own presses are given the recorded attention rows, in f64, and keys that carry their positions, so that
what they return is what they keep. Two sets may differ only where kvpress' scores tie: there its choice is
whatever torch.topk does. Prints a line for each press and budget; exits 1 when a set differs.
"""

import csv
import importlib
import importlib.util
import subprocess
import sys
import tempfile
import types
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from safetensors import safe_open

PROMPT = 256
HEADS, KV_HEADS = 9, 3
WINDOW = 64
# Scores that differ by less than this share of the larger are one: kvsim rounds combined rows to f32.
TIE = 1e-6


def load_presses():
    """The presses alone: importing the whole package would want more than they do."""
    folder = Path(importlib.util.find_spec("kvpress").submodule_search_locations[0])
    for name, path in [("kvpress", folder), ("kvpress.presses", folder / "presses")]:
        module = types.ModuleType(name)
        module.__path__ = [str(path)]
        sys.modules[name] = module
    found = {}
    for name in ["snapkv", "adakv", "tova", "streaming_llm", "observed_attention"]:
        found.update(vars(importlib.import_module(f"kvpress.presses.{name}_press")))
    return SimpleNamespace(**found)


def attention_of(path, layer):
    """The first rows of all heads of a layer, as one square [1, heads, row, column]."""
    square = np.zeros((HEADS, PROMPT, PROMPT))
    with safe_open(path, framework="np") as file:
        for head in range(HEADS):
            packed = file.get_tensor(f"attention.{layer}.{head}").astype(np.float64)
            start = 0
            for row in range(PROMPT):
                square[head, row, : row + 1] = packed[start : start + row + 1]
                start += row + 1
    return torch.from_numpy(square)[None]


def kept_by_press(press, attentions):
    """The positions that a press keeps for each KV head, and the scores it went by."""
    config = SimpleNamespace(
        num_attention_heads=HEADS, num_key_value_heads=KV_HEADS, _attn_implementation="given"
    )
    module = SimpleNamespace(config=config, head_dim=1, masked_key_indices=None)
    keys = torch.arange(PROMPT, dtype=torch.float64).expand(1, KV_HEADS, PROMPT)[..., None].contiguous()
    hidden = torch.zeros(1, PROMPT, 1, dtype=torch.float64)
    scorer = getattr(press, "press", press)
    scores = scorer.score(module, hidden, keys, keys, attentions, {})[0]
    kept, _ = press.compress(module, hidden, keys, keys, attentions, {})
    if module.masked_key_indices is None:
        return [set(kept[0, head, :, 0].int().tolist()) for head in range(KV_HEADS)], scores
    masked = [set() for _ in range(KV_HEADS)]
    for head, position in zip(*(indices.tolist() for indices in module.masked_key_indices[1:]), strict=True):
        masked[head].add(position)
    return [set(range(PROMPT)) - gone for gone in masked], scores


def kept_by_kvsim(kvsim, trace, policy, budget, flags):
    """The positions that kvsim keeps after the prompt's cut, by layer and KV head."""
    with tempfile.TemporaryDirectory() as folder:
        steps = Path(folder) / "steps.csv"
        command = [kvsim, "replay", trace, "--policy", policy, "--budget", str(budget), "--prompt-len", str(PROMPT)]
        command += ["--steps", str(PROMPT + 1), "--per-step", str(steps), "-q", "--format", "csv", *flags]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        kept = {}
        for row in csv.DictReader(steps.open(encoding="utf-8")):
            if int(row["step"]) != PROMPT - 1:
                continue
            positions = set(range(PROMPT)) - {int(position) for position in row["victims"].split()}
            heads = range(KV_HEADS) if row["head"] == "layer" else [int(row["head"].removeprefix("kv"))]
            kept.update({(int(row["layer"]), head): positions for head in heads})
        return kept


def layers_of(path):
    with safe_open(path, framework="np") as file:
        return sorted({int(name.split(".")[1]) for name in file.keys()})


def tie_only(ours, theirs, scores):
    """Whether all that differs has, by kvpress' own scores, the same score."""
    differ = torch.cat([scores[head][sorted(ours[head] ^ theirs[head])] for head in range(KV_HEADS)])
    return len(differ) == 0 or bool(differ.max() - differ.min() <= TIE * differ.abs().max())


def same(ours, theirs, scores, name):
    """None, or the way in which the sets are the same."""
    if ours == theirs:
        return "equal"
    if name == "TOVAPress":
        # kvpress never evicts the last token; the paper does not protect it. It takes the place of the lowest.
        last = PROMPT - 1
        patched = [
            kept if last in kept else kept - {min(kept, key=lambda position: (scores[head][position], position))} | {last}
            for head, kept in enumerate(ours)
        ]
        if patched == theirs:
            return "equal but for the last token, which kvpress protects"
    return "equal but for ties" if tie_only(ours, theirs, scores) else None


def cases(presses, budget):
    """Presses with kvsim's policy and flags for the same rule."""
    ratio = 1 - budget / PROMPT
    snapkv = lambda: presses.SnapKVPress(ratio, window_size=WINDOW, kernel_size=5)  # noqa: E731
    block = ["--prompt", "block"]
    yield presses.StreamingLLMPress(ratio), "streaming-llm", block
    yield presses.TOVAPress(ratio), "tova", [*block, "--scope", "layer"]
    yield presses.ObservedAttentionPress(ratio), "h2o:score=mean,recent-window=0", [*block, "--combine", "each"]
    yield snapkv(), f"snapkv-prompt:obs-window={WINDOW}", []
    for alpha in (0.0, 0.2, 0.8):
        # kvpress' safeguard covers window and prefix together, so that the window fills it first.
        safe = max(int(budget * alpha), 1 if alpha > 0 else 0)
        own = max(safe - WINDOW, 0) / (budget - WINDOW)
        yield presses.AdaKVPress(snapkv(), alpha), f"ada-kv:obs-window={WINDOW},alpha={own}", []


def main():
    kvsim = sys.argv[1]
    trace = sys.argv[2] if len(sys.argv) > 2 else "traces/smollm2-prose-384.safetensors"
    presses = load_presses()
    layers = layers_of(trace)
    failed = False
    for budget in (80, 96, 128, 192):
        for press, policy, flags in cases(presses, budget):
            name = type(press).__name__
            ours_of = kept_by_kvsim(kvsim, trace, policy, budget, flags)
            found = {}
            for layer in layers:
                theirs, scores = kept_by_press(press, attention_of(trace, layer))
                ours = [ours_of[layer, head] for head in range(KV_HEADS)]
                how = same(ours, theirs, scores, name)
                found[how or "DIFFERENT"] = found.get(how or "DIFFERENT", 0) + 1
                failed |= how is None
            said = ", ".join(f"{count} layers {how}" for how, count in found.items())
            print(f"{name:24} budget {budget:3}  {policy:36} {said}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
