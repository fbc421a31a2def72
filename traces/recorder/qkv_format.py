"""What a trace of queries, keys and values holds: names, shapes, metadata. Knows nothing of running a model."""

import dataclasses
import json

from .errors import RecordError
from .gradients import Gradients
from .layers import Layer, by_layer
from .model_parts import Projection
from .sensitivity import FIRST_ROW
from .trace_file import Tensor


@dataclasses.dataclass(frozen=True)
class Beside:
    """What is recorded beside queries, keys and values."""

    output_projections: bool = False
    residual_norms: bool = False
    gradients: Gradients | None = None


@dataclasses.dataclass(frozen=True)
class Plan:
    """All that is known before the pass. `layers` are the recorded ones, `heads` the chosen KV heads (None: all)."""

    tokens: int
    dtype: str
    layers: dict[int, Layer]
    heads: list[int] | None
    parts: dict[int, Projection]
    beside: Beside

    def kv_heads(self, layer: Layer) -> list[int]:
        """The recorded KV heads of a layer, by the model's numbers."""
        return list(range(layer.kv_heads)) if self.heads is None else sorted(set(self.heads))

    def query_heads(self, layer: Layer) -> list[int]:
        """The query heads that read them, by the model's numbers."""
        return [head * layer.group + i for head in self.kv_heads(layer) for i in range(layer.group)]

    def layers_of_file(self) -> dict[int, Layer]:
        """The layers with as many heads as the file has."""
        counts = {n: (len(self.query_heads(layer)), len(self.kv_heads(layer))) for n, layer in self.layers.items()}
        return {
            n: dataclasses.replace(layer, query_heads=counts[n][0], kv_heads=counts[n][1])
            for n, layer in self.layers.items()
        }

    def check(self) -> None:
        """Refuse what cannot be recorded together."""
        beside = self.beside
        if self.heads is not None and (beside.output_projections or beside.gradients):
            raise RecordError("W_O and gradients concern all heads of a layer: leave --heads out")
        if beside.gradients and self.tokens <= FIRST_ROW:
            raise RecordError(f"{self.tokens} tokens: sensitivities leave the first {FIRST_ROW} out, so read more")

    def tensors(self) -> dict[str, Tensor]:
        """Every tensor of the file, but the gradients where these are not kept."""
        tensors = {}
        for n, layer in self.layers_of_file().items():
            key, value = Tensor(self.dtype, (self.tokens, layer.key_width)), self.value(layer)
            tensors |= {f"query.{n}.{head}": key for head in range(layer.query_heads)}
            tensors |= {f"key.{n}.{head}": key for head in range(layer.kv_heads)}
            tensors |= {f"value.{n}.{head}": value for head in range(layer.kv_heads)}
            tensors |= self.tensors_beside(n, layer)
        return tensors

    def value(self, layer: Layer) -> Tensor:
        """The values of one head."""
        return Tensor(self.dtype, (self.tokens, layer.value_width))

    def tensors_beside(self, n: int, layer: Layer) -> dict[str, Tensor]:
        """What one layer has beside its queries, keys and values."""
        tensors, beside = {}, self.beside
        if layer.sinks is not None:
            tensors[f"sink.{n}"] = Tensor("f32", (layer.query_heads,))
        if beside.residual_norms:
            tensors[f"residual_norm.{n}"] = Tensor("f32", (self.tokens,))
        if n in self.parts:
            tensors[f"output.{n}"] = Tensor(self.dtype, tuple(self.parts[n].weight.shape))
            if self.parts[n].norm_gain is not None:
                tensors[f"output_norm.{n}"] = Tensor("f32", tuple(self.parts[n].norm_gain.shape))
        if beside.gradients and beside.gradients.keep:
            tensors |= self.gradients(n, layer, self.dtype)
        if beside.gradients and beside.gradients.fisher:
            square = Tensor("f32", (layer.value_width, layer.value_width))
            tensors |= {f"fisher.{n}.{head}": square for head in range(layer.query_heads)}
        return tensors

    def gradients(self, n: int, layer: Layer, dtype: str) -> dict[str, Tensor]:
        """The gradients of one layer."""
        samples = Tensor(dtype, (self.beside.gradients.samples, self.tokens, layer.value_width))
        return {f"gradient.{n}.{head}": samples for head in range(layer.query_heads)}

    def metadata(self) -> dict[str, str]:
        """What a trace of queries, keys and values says beside what every trace says."""
        facts: dict[str, object] = {"kind": "qkv"}
        facts |= by_layer("scale", {n: layer.scale for n, layer in self.layers.items()})
        facts |= by_layer("softcap", {n: layer.softcap for n, layer in self.layers.items()})
        facts |= by_layer("output_norm_epsilon", {n: part.norm_epsilon for n, part in self.parts.items()})
        if self.heads is not None:
            facts["kv_heads_of_model"] = json.dumps(sorted(set(self.heads)), separators=(",", ":"))
        if self.beside.gradients:
            facts |= self.metadata_of_gradients(self.beside.gradients)
        return {name: str(fact) for name, fact in facts.items()}

    def metadata_of_gradients(self, wanted: Gradients) -> dict[str, object]:
        """How gradients were made, and place holders for the sensitivities."""
        facts: dict[str, object] = {"gradient_labels": f"sampled, torch.multinomial, seed {wanted.seed}"}
        facts |= {"gradient_samples": wanted.samples, "gradient_scale": f"{wanted.scale:g}"} if wanted.keep else {}
        facts |= {f"sensitivity.{n}": sensitivities_text([0.0] * layer.query_heads) for n, layer in self.layers.items()}
        return facts | {"sensitivity_samples": wanted.samples}


def sensitivities_text(values: list[float]) -> str:
    """One number for each query head of a layer, as JSON of a length that does not depend on them."""
    return "[" + ",".join(f"{value:.8e}" for value in values) + "]"
