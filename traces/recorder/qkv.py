"""Recording queries, keys and values as they enter attention, with W_O, residual norms and gradients beside them."""

import dataclasses
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import torch
from safetensors import safe_open
from tqdm import tqdm

from .blockwise import attend_in_blocks, check_output
from .errors import RecordError
from .gradients import Gradients, backward_passes, differentiable
from .head import Recording, last_output, perplexity
from .interface import attention_through, layer_number
from .layers import Layer, attention_layers, check_all_passed, chosen_heads, chosen_layers, describe, run
from .model_parts import layer_modules, projections, residual_of
from .qkv_format import Beside, Plan, sensitivities_text
from .sensitivity import fisher, sensitivity
from .trace_file import TraceFile

NOTHING = Beside()


def record_qkv(
    model,
    token_ids: list[int],
    output: Path,
    *,
    layers: list[int] | None = None,
    heads: list[int] | None = None,
    dtype: str = "f16",
    beside: Beside = NOTHING,
    prompt_len: int = 0,
    details: dict[str, str] | None = None,
) -> Recording:
    """Record queries, keys and values of these tokens, in one pass, into the output file.

    `heads` chooses KV heads; their query heads come with them, and both are numbered anew. For the rest
    see `record_attention`.
    """
    model.eval()
    found = attention_layers(model, token_ids)
    chosen = chosen_layers(found, layers)
    chosen_heads(chosen, "kv_heads", heads)
    parts = projections(model, token_ids, chosen) if beside.output_projections else {}
    plan = Plan(len(token_ids), dtype, chosen, heads, parts, beside)
    plan.check()
    metadata = describe(model, token_ids, plan.layers_of_file(), prompt_len) | plan.metadata() | (details or {})

    with ExitStack() as stack:
        file = stack.enter_context(TraceFile(output, plan.tensors(), metadata))
        progress = stack.enter_context(tqdm(total=len(chosen), unit="layer", desc="recording", disable=None))
        write_what_is_known(file, plan)
        qkv = QkvPass(plan, found, file, progress)
        kept = qkv.run_with_gradients(model, token_ids) if beside.gradients else qkv.run(model, token_ids)
        check_all_passed(chosen, qkv.recorded)
    return Recording(len(file.tensors), len(token_ids), perplexity(model, kept, token_ids[: prompt_len or None]))


def write_what_is_known(file: TraceFile, plan: Plan) -> None:
    """What comes from the model alone: learned sinks, W_O, the norm behind it."""
    for n, layer in plan.layers.items():
        if layer.sinks is not None:
            file.write(f"sink.{n}", layer.sinks[plan.query_heads(layer)])
        if n in plan.parts:
            file.write(f"output.{n}", plan.parts[n].output())
            if plan.parts[n].norm_gain is not None:
                file.write(f"output_norm.{n}", plan.parts[n].gain())


class QkvPass:
    """A pass of a model over the tokens, written as it comes."""

    def __init__(self, plan: Plan, found: dict[int, Layer], file: TraceFile, progress):
        self.plan, self.found, self.file, self.progress = plan, found, file, progress
        self.recorded: list[int] = []
        self.sample = 0
        self.gradient_file: TraceFile | None = None

    def run(self, model, token_ids: list[int]) -> list:
        """The pass itself; what the layers left at its end."""
        with attention_through(model, self.attend), last_output(model) as kept, torch.no_grad():
            with self.residual_norms(model):
                run(model, token_ids)
        return kept

    def run_with_gradients(self, model, token_ids: list[int]) -> list:
        """The pass, a backward pass for each sample of labels, and what they say about each head."""
        wanted = self.plan.beside.gradients
        with ExitStack() as stack:
            self.gradient_file = self.file if wanted.keep else stack.enter_context(self.scratch())
            leaf = stack.enter_context(differentiable(model))
            stack.enter_context(attention_through(model, self.attend))
            with last_output(model) as kept, self.residual_norms(model):
                run(model, token_ids)
            for self.sample in backward_passes(model, kept, leaf, wanted):
                pass
            self.write_head_figures(wanted)
        return kept

    def attend(self, module, query, key, value, mask, **extras):
        """Stands in for the model's attention."""
        number = layer_number(module)
        layer = self.found[number]
        out = attend_in_blocks(module, query, key, value, mask, extras, number, layer)
        # Where a backward pass computes a layer anew, it comes past again.
        if number in self.plan.layers and number not in self.recorded:
            self.recorded.append(number)
            check_output(number, layer, query[0], key[0], value[0], out)
            self.write_heads(number, layer, query[0], key[0], value[0])
            if self.gradient_file:
                out.register_hook(lambda gradient: self.write_gradient(number, gradient[0]))
            self.progress.update()
        return out, None

    def write_heads(self, number: int, layer: Layer, query, key, value) -> None:
        """Queries, keys and values [heads, rows, width] of a layer, a head at a time."""
        for i, head in enumerate(self.plan.query_heads(layer)):
            self.file.write(f"query.{number}.{i}", query[head])
        for i, head in enumerate(self.plan.kv_heads(layer)):
            self.file.write(f"key.{number}.{i}", key[head])
            self.file.write(f"value.{number}.{i}", value[head])

    def write_gradient(self, number: int, gradient: torch.Tensor) -> None:
        """The gradient [rows, heads, width] of the present sample at the outputs of a layer's heads."""
        for head in range(gradient.shape[1]):
            numbers = gradient[:, head].float() * self.plan.beside.gradients.scale
            self.gradient_file.write(f"gradient.{number}.{head}", numbers, self.sample * numbers.numel())

    def write_head_figures(self, wanted: Gradients) -> None:
        """The sensitivity of each head, and its Fisher matrix where asked for, from what was written."""
        for n, layer in self.plan.layers.items():
            values = []
            for head in range(layer.query_heads):
                gradient = self.gradient_file.read(f"gradient.{n}.{head}").double() / wanted.scale
                query = self.file.read(f"query.{n}.{head}")
                key, value = (self.file.read(f"{kind}.{n}.{head // layer.group}") for kind in ("key", "value"))
                sink = None if layer.sinks is None else layer.sinks[head].cpu()
                values.append(sensitivity(layer, query, key, value, gradient, sink))
                if wanted.fisher:
                    self.file.write(f"fisher.{n}.{head}", fisher(gradient))
            self.file.metadata[f"sensitivity.{n}"] = sensitivities_text(values)

    @contextmanager
    def scratch(self) -> Iterator[TraceFile]:
        """A file for gradients that are not kept, gone afterwards."""
        tensors = {}
        for n, layer in self.plan.layers.items():
            tensors |= self.plan.gradients(n, layer, "f32")
        with tempfile.TemporaryDirectory(dir=self.file.path.absolute().parent, prefix=".gradients.") as folder:
            with TraceFile(Path(folder) / "gradients", tensors, {}) as file:
                yield file

    @contextmanager
    def residual_norms(self, model) -> Iterator[None]:
        """While this lasts, the length of the residual stream is written as it enters each recorded layer."""
        around = layer_modules(model)
        with ExitStack() as stack:
            for n in self.plan.layers if self.plan.beside.residual_norms else ():
                if n not in around:
                    raise RecordError(f"layer {n}: its decoder layer cannot be told: leave --residual-norms out")
                hook = around[n].register_forward_pre_hook(self.norm_writer(n), with_kwargs=True)
                stack.callback(hook.remove)
            yield

    def norm_writer(self, number: int):
        """A hook that writes the norms of the stream that enters a layer."""

        def write(_module, args, kwargs):
            stream = residual_of(args, kwargs)
            if stream.dim() != 3 or stream.shape[1] != self.plan.tokens:
                raise RecordError(
                    f"layer {number}: its residual stream is {list(stream.shape)}: leave --residual-norms out"
                )
            self.file.write(f"residual_norm.{number}", stream[0].detach().float().norm(dim=-1))

        return write


def sensitivities(
    model, token_ids: list[int], layers: list[int] | None, wanted: Gradients, near: Path
) -> dict[str, str]:
    """The sensitivities of a model's heads as metadata, by way of a trace in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(dir=near.absolute().parent, prefix=".sensitivity.") as folder:
        path = Path(folder) / "qkv.safetensors"
        beside = Beside(gradients=dataclasses.replace(wanted, keep=False, fisher=False))
        record_qkv(model, token_ids, path, layers=layers, dtype="f32", beside=beside)
        with safe_open(path, "pt") as file:
            metadata = file.metadata()
    return {name: metadata[name] for name in metadata if name.startswith(("sensitivity", "gradient_labels"))}
