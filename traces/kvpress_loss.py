#!/usr/bin/env python3
"""The loss of a prompt that is cut once: kvpress' own run of a model beside kvsim's decisions on the same.

    python traces/kvpress_loss.py MODEL --text FILE --kvsim PROGRAM [--prompt-len P] [--keep K] [--max-length N]

kvpress cuts a cache at the end of the prompt and decodes on with what is left, token by token, from its own
cache. kvsim's policy for the same rule decides over a pipe (`kvsim decide --prompt once`), and loss.py's pass
hides what it evicts. Printed are both means of the negative log-likelihood of the tokens after the prompt, and the
largest difference of any token. Needs kvpress beside requirements.txt (pip install --no-deps kvpress==0.5.5).
"""

import argparse
import importlib
import importlib.util
import sys
import types
from pathlib import Path
from types import SimpleNamespace

try:
    import numpy as np
    import torch
    from transformers import DynamicCache

    import loss
    from record import count_of
    from recorder import models
    from recorder.closed import Decider
    from recorder.errors import RecordError, say
except ImportError as missing:
    sys.exit(f"error: {missing}: install what this needs with `pip install -r traces/requirements.txt`")


def presses() -> SimpleNamespace:
    """The presses alone: importing the whole package would want more than they need."""
    package = importlib.util.find_spec("kvpress")
    if package is None:
        raise RecordError("kvpress is not installed: pip install --no-deps kvpress==0.5.5")
    folder = Path(package.submodule_search_locations[0])
    for name, path in (("kvpress", folder), ("kvpress.presses", folder / "presses")):
        module = types.ModuleType(name)
        module.__path__ = [str(path)]
        sys.modules[name] = module
    found: dict = {}
    for name in ("streaming_llm", "observed_attention"):
        found.update(vars(importlib.import_module(f"kvpress.presses.{name}_press")))
    return SimpleNamespace(**found)


def cases(found: SimpleNamespace, ratio: float) -> list[tuple[object, list[str]]]:
    """Presses, and what kvsim is told for the same rule."""
    once = ["--prompt", "once"]
    return [
        (found.StreamingLLMPress(ratio, n_sink=4), ["--policy", "streaming-llm:sinks=4", *once]),
        (
            found.ObservedAttentionPress(ratio),
            ["--policy", "h2o:score=mean,recent-window=0", "--combine", "each", *once],
        ),
    ]


@torch.no_grad()
def kvpress_nll(model, press, ids: list[int], prompt: int) -> np.ndarray:
    """The negative log-likelihood of each token after the prompt's next, decoded from kvpress' cache."""
    cache = DynamicCache()

    def compress(module, _inputs, kwargs, output):
        layer = cache.layers[module.layer_idx]
        hidden = kwargs["hidden_states"]
        layer.keys, layer.values = press.compress(module, hidden, layer.keys, layer.values, output[1], kwargs)

    decoder = model.get_decoder()
    hooks = [layer.self_attn.register_forward_hook(compress, with_kwargs=True) for layer in decoder.layers]
    model(torch.tensor([ids[:prompt]]), past_key_values=cache, use_cache=True, output_attentions=True)
    for hook in hooks:
        hook.remove()
    found = []
    for step in range(prompt, len(ids) - 1):
        row = {"past_key_values": cache, "position_ids": torch.tensor([[step]]), "use_cache": True}
        logits = model(torch.tensor([[ids[step]]]), **row).logits[0, -1].double()
        found.append(-logits.log_softmax(dim=-1)[ids[step + 1]].item())
    return np.array(found)


def kvsim_nll(model, ids: list[int], told: list[str], args: argparse.Namespace) -> np.ndarray:
    """The same, where kvsim decides."""
    policy = [*told, "--budget", str(args.keep), "--prompt-len", str(args.prompt_len)]
    decider = Decider.of(model, ids, args.kvsim, policy)
    try:
        found, _ = loss.measure_closed(model, ids, decider)
    finally:
        decider.close()
    return found.nll[args.prompt_len : -1]


def main(argv: list[str] | None = None) -> int:
    """Exit code: 0 done, 1 where something failed."""
    parser = argparse.ArgumentParser(description="a prompt cut once: kvpress' own run beside kvsim's decisions")
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--text", type=Path, required=True, metavar="FILE")
    parser.add_argument("--kvsim", default="kvsim", metavar="PROGRAM")
    parser.add_argument("--prompt-len", type=count_of(2), default=96, metavar="P")
    parser.add_argument("--keep", type=count_of(2), default=48, metavar="K")
    parser.add_argument("--max-length", type=count_of(3), default=128, metavar="N")
    args = parser.parse_args(argv)
    models.quiet_libraries()
    try:
        tokenizer = models.load_tokenizer(args.model, None)
        ids = models.prompt_ids(tokenizer, args.text, False, False, args.max_length)
        model, _ = models.load_model(args.model, None, torch.float32, "cpu")
        model.eval().set_attn_implementation("eager")
        print(f"{'':24}{'kvpress':>12}{'kvsim':>12}{'most':>12}")
        for press, told in cases(presses(), 1 - args.keep / args.prompt_len):
            theirs = kvpress_nll(model, press, ids, args.prompt_len)
            ours = kvsim_nll(model, ids, told, args)
            most = float(np.abs(theirs - ours).max())
            print(f"{type(press).__name__:24}{theirs.mean():12.6f}{ours.mean():12.6f}{most:12.2g}", flush=True)
    except (RecordError, OSError) as problem:
        say(f"error: {problem}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
