"""Tests of recording queries, keys and values: python -m unittest discover -s traces.

The file alone must tell what the model did: rows, outputs and updates are made anew here, by formulas
written out again in numpy, and compared with what the library's eager attention and its layers gave.
"""

import json
import sys
import unittest
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))
from recorder import interface, qkv  # noqa: E402
from recorder.errors import RecordError  # noqa: E402
from recorder.qkv import record_qkv  # noqa: E402
from recorder.qkv_format import Beside  # noqa: E402
from test_support import (  # noqa: E402
    TOKENS,
    WINDOW,
    RecorderTest,
    gemma2,
    gemma3,
    gpt_oss,
    granite,
    llama,
    mistral,
    olmo2,
    qwen3,
    tiny,
    tokens,
)

ALL = Beside(output_projections=True, residual_norms=True)


class QkvTest(RecorderTest):
    """Records in f32 and reads the file back."""

    def record(self, model, ids, **options) -> tuple[dict[str, np.ndarray], dict[str, str]]:
        """Record, and read the file back with the safetensors library."""
        self.result = record_qkv(model, ids, self.out, **{"dtype": "f32", **options})
        return self.read()

    def assert_close(self, recorded, expected, most: float = 2e-6):
        self.assertEqual(np.shape(recorded), np.shape(expected))
        self.assertLessEqual(float(np.abs(np.asarray(recorded) - np.asarray(expected)).max()), most)


def fact(metadata: dict[str, str], name: str, layer: int) -> float | None:
    """The layer's own number, or that of all layers."""
    text = metadata.get(f"{name}.{layer}", metadata.get(name))
    return None if text is None else float(text)


def rows(tensors, metadata, layer: int, head: int) -> np.ndarray:
    """The square of weights of one query head, in f64, as the format defines them."""
    group = int(metadata["query_heads"]) // int(metadata["kv_heads"])
    query = tensors[f"query.{layer}.{head}"].astype(float)
    key = tensors[f"key.{layer}.{head // group}"].astype(float)
    logits = fact(metadata, "scale", layer) * query @ key.T
    if cap := fact(metadata, "softcap", layer):
        logits = cap * np.tanh(logits / cap)
    back = np.arange(len(query))[:, None] - np.arange(len(key))
    window = fact(metadata, "sliding_window", layer) or len(key)
    powers = np.where((back >= 0) & (back < window), np.exp(logits), 0.0)
    sinks = tensors.get(f"sink.{layer}")
    return powers / (powers.sum(axis=1, keepdims=True) + (0.0 if sinks is None else np.exp(float(sinks[head]))))


def outputs(tensors, metadata, layer: int) -> np.ndarray:
    """The outputs of all heads of a layer, side by side: [rows, heads * width]."""
    heads = int(metadata["query_heads"])
    group = heads // int(metadata["kv_heads"])
    each = [rows(tensors, metadata, layer, h) @ tensors[f"value.{layer}.{h // group}"] for h in range(heads)]
    return np.concatenate(each, axis=1)


def update(tensors, metadata, layer: int) -> np.ndarray:
    """What the layer's attention adds to the stream."""
    made = outputs(tensors, metadata, layer) @ tensors[f"output.{layer}"].T.astype(float)
    gain = tensors.get(f"output_norm.{layer}")
    if gain is None:
        return made
    return gain * made / np.sqrt((made**2).mean(axis=1, keepdims=True) + fact(metadata, "output_norm_epsilon", layer))


@contextmanager
def inputs_of(modules):
    """The first argument of each module's last call."""
    seen: list = [None] * len(modules)

    def note(place):
        return lambda _, args, kwargs: seen.__setitem__(
            place, (args[0] if args else kwargs["hidden_states"])[0].numpy()
        )

    hooks = [module.register_forward_pre_hook(note(i), with_kwargs=True) for i, module in enumerate(modules)]
    yield seen
    for hook in hooks:
        hook.remove()


def run(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids]), output_attentions=True, output_hidden_states=True, use_cache=False)


class Rows(QkvTest):
    def test_queries_and_keys_give_the_rows_of_eager_attention(self):
        for make in (llama, mistral, gemma2, gemma3, gpt_oss, qwen3, olmo2, granite):
            with self.subTest(make.__name__):
                model, ids = make(), tokens()
                tensors, metadata = self.record(model, ids)
                for layer, expected in enumerate(run(model, ids).attentions):
                    made = np.stack([rows(tensors, metadata, layer, head) for head in range(6)])
                    self.assert_close(made, expected[0])

    def test_values_give_what_the_heads_hand_to_w_o(self):
        for make in (llama, gemma2, gpt_oss):
            with self.subTest(make.__name__):
                model, ids = make(), tokens()
                tensors, metadata = self.record(model, ids)
                with inputs_of([layer.self_attn.o_proj for layer in model.model.layers]) as expected:
                    run(model, ids)
                for layer in range(3):
                    self.assert_close(outputs(tensors, metadata, layer), expected[layer], 1e-5)

    def test_a_sink_that_scales_the_output_is_a_sink_in_the_denominator(self):
        """This family's eager attention returns weights that do not know of the sink; its outputs do."""
        model, ids = tiny("granite_swa", sliding_window=WINDOW), tokens()
        tensors, metadata = self.record(model, ids)
        self.assertEqual(tensors["sink.1"].shape, (6,))
        with inputs_of([layer.self_attn.o_proj for layer in model.model.layers]) as expected:
            run(model, ids)
        for layer in range(3):
            self.assert_close(outputs(tensors, metadata, layer), expected[layer], 1e-5)

    def test_values_may_be_narrower_than_keys(self):
        latent = {
            "kv_lora_rank": 16,
            "q_lora_rank": None,
            "qk_rope_head_dim": 4,
            "qk_nope_head_dim": 8,
            "v_head_dim": 6,
        }
        experts = {"n_routed_experts": 4, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 3}
        model = tiny("deepseek_v3", num_key_value_heads=6, head_dim=4, **latent, **experts)
        tensors, metadata = self.record(model, tokens())
        self.assertEqual((tensors["key.0.5"].shape, tensors["value.0.5"].shape), ((TOKENS, 12), (TOKENS, 6)))
        for layer, expected in enumerate(run(model, tokens()).attentions):
            made = np.stack([rows(tensors, metadata, layer, head) for head in range(6)])
            self.assert_close(made, expected[0])

    def test_f16_and_bf16_are_the_rounded_f32(self):
        exact, _ = self.record(llama(), tokens())
        rounded, _ = self.record(llama(), tokens(), dtype="f16")
        for name, numbers in rounded.items():
            self.assertEqual(numbers.dtype, np.float16)
            np.testing.assert_array_equal(numbers, exact[name].astype(np.float16))
        record_qkv(llama(), tokens(), self.out, dtype="bf16")
        with qkv.safe_open(self.out, "pt") as file:
            for name in file.keys():
                self.assertEqual(file.get_tensor(name).dtype, torch.bfloat16)
                self.assertTrue(torch.equal(file.get_tensor(name), torch.from_numpy(exact[name]).bfloat16()))

    def test_a_model_that_computes_in_bf16_is_recorded_as_it_computes(self):
        model, ids = llama().bfloat16(), tokens()
        tensors, metadata = self.record(model, ids, beside=ALL)
        self.assertEqual(metadata["arithmetic"], "bfloat16")
        made = rows(tensors, metadata, 2, 5)
        self.assert_close(made, run(model, ids).attentions[2][0, 5].float(), 0.01)

    def test_a_single_token_is_a_recording(self):
        tensors, _ = self.record(llama(), tokens(1), beside=ALL)
        self.assertEqual(tensors["query.0.0"].shape, (1, 8))

    def test_no_more_than_a_block_of_rows_is_ever_held(self):
        most = []
        attend = interface.eager_attention(llama().model.layers[0].self_attn)

        def look(_module):
            def watched(*arguments, **extras):
                out, weights = attend(*arguments, **extras)
                most.append(weights.shape[2] * weights.shape[3])
                return out, weights

            return watched

        with patch.object(interface, "eager_attention", look):
            self.record(llama(), tokens(100))
        self.assertLessEqual(max(most), interface.ROWS_PER_BLOCK * 100)
        self.assertEqual(len(most), 3 * 15)


class BesideThem(QkvTest):
    def test_w_o_and_its_norm_give_what_attention_adds_to_the_stream(self):
        """The sum of stream and update is what each family's next module is fed."""
        behind = {llama: "post_attention_layernorm", granite: "post_attention_layernorm", olmo2: "mlp"}
        behind |= {make: "pre_feedforward_layernorm" for make in (gemma2, gemma3)}
        for make, name in behind.items():
            with self.subTest(make.__name__):
                model, ids = make(), tokens()
                tensors, metadata = self.record(model, ids, beside=ALL)
                with inputs_of([getattr(layer, name) for layer in model.model.layers]) as sums:
                    stream = run(model, ids).hidden_states
                for layer in range(3):
                    before = stream[layer][0].numpy()
                    self.assert_close(before + update(tensors, metadata, layer), sums[layer], 2e-5)
                    self.assert_close(tensors[f"residual_norm.{layer}"], np.linalg.norm(before, axis=1), 1e-5)
                self.assertEqual("output_norm.1" in tensors, make in (gemma2, gemma3, olmo2))

    def test_parallel_blocks_have_their_w_o_too(self):
        for kind, o_proj in (("cohere", "o_proj"), ("gpt_neox", "dense")):
            with self.subTest(kind):
                model = tiny(kind, **({"num_key_value_heads": 6} if kind == "gpt_neox" else {}))
                tensors, _ = self.record(model, tokens(), beside=ALL)
                layer = model.get_decoder().layers[1]
                weight = getattr(getattr(layer, "self_attn", None) or layer.attention, o_proj).weight
                np.testing.assert_array_equal(tensors["output.1"], weight.detach().numpy())

    def test_a_matrix_that_is_stored_transposed_is_turned(self):
        model = tiny("gpt2", n_embd=48, n_head=6, n_layer=3, n_positions=128, num_key_value_heads=6)
        tensors, _ = self.record(model, tokens(), beside=ALL)
        np.testing.assert_array_equal(tensors["output.2"], model.transformer.h[2].attn.c_proj.weight.detach().numpy().T)

    def test_what_stands_between_heads_and_w_o_is_refused(self):
        model = llama()
        for layer in model.model.layers:
            layer.self_attn.o_proj.register_forward_pre_hook(lambda _, args: (0.5 * args[0],))
        self.refused(model, "changes what its heads give before W_O", beside=ALL)

    def test_a_norm_that_is_no_plain_one_is_refused(self):
        model = olmo2()
        model.model.layers[1].post_attention_layernorm = torch.nn.LayerNorm(48)
        self.refused(model, "layer 1 has LayerNorm behind W_O", beside=ALL)

    def test_an_update_that_is_not_added_as_it_is_is_refused(self):
        model = llama()
        model.model.layers[2].self_attn.register_forward_hook(lambda _m, _i, out: (out[0].tanh(), *out[1:]))
        self.refused(model, "layer 2 does not add what W_O gives", beside=ALL)

    def refused(self, model, what: str, **options):
        with self.assertRaisesRegex(RecordError, what):
            self.record(model, tokens(), **options)
        self.assertEqual(self.files(), [])


class File(QkvTest):
    def test_names_shapes_and_metadata(self):
        tensors, metadata = self.record(llama(), tokens(), details={"model": "tiny"}, beside=ALL)
        names = {f"query.{layer}.{head}" for layer in range(3) for head in range(6)}
        names |= {f"{kind}.{layer}.{head}" for kind in ("key", "value") for layer in range(3) for head in range(2)}
        names |= {f"{kind}.{layer}" for kind in ("output", "residual_norm") for layer in range(3)}
        self.assertEqual(set(tensors), names)
        self.assertEqual({tensors[name].shape for name in names if name[0] in "qkv"}, {(TOKENS, 8)})
        self.assertEqual((tensors["output.0"].shape, tensors["residual_norm.0"].shape), ((48, 48), (TOKENS,)))
        told = {"kvsim": "1", "kind": "qkv", "self": "included", "seq_len": str(TOKENS), "num_layers": "3"}
        told |= {"query_heads": "6", "kv_heads": "2", "scale": str(8**-0.5), "prompt_len": "0", "model": "tiny"}
        told |= {"arithmetic": "float32", "token_ids": json.dumps(tokens(), separators=(",", ":"))}
        self.assertEqual({name: metadata.get(name) for name in told}, told)
        self.assertFalse(any("softcap" in name or "window" in name or "norm" in name for name in metadata))

    def test_what_layers_have_of_their_own_is_said_by_layer(self):
        tensors, metadata = self.record(gemma2(), tokens(), beside=ALL)
        self.assertEqual(metadata["softcap"], "2.0")
        self.assertEqual(metadata["output_norm_epsilon"], "1e-06")
        self.assertEqual(
            [metadata.get(f"sliding_window.{layer}") for layer in range(3)], [str(WINDOW), None, str(WINDOW)]
        )
        self.assertEqual(tensors["output_norm.1"].dtype, np.float32)
        model = llama()
        model.model.layers[1].self_attn.scaling = 0.5
        _, metadata = self.record(model, tokens())
        self.assertEqual([metadata.get(f"scale.{layer}") for layer in range(3)], [str(8**-0.5), "0.5", str(8**-0.5)])
        self.assertNotIn("scale", metadata)

    def test_chosen_layers_keep_their_numbers_and_chosen_heads_are_numbered_anew(self):
        whole, _ = self.record(llama(), tokens())
        tensors, metadata = self.record(llama(), tokens(), layers=[2], heads=[1])
        self.assertEqual(set(tensors), {"query.2.0", "query.2.1", "query.2.2", "key.2.0", "value.2.0"})
        self.assertEqual((metadata["query_heads"], metadata["kv_heads"], metadata["num_layers"]), ("3", "1", "3"))
        self.assertEqual(metadata["kv_heads_of_model"], "[1]")
        np.testing.assert_array_equal(tensors["query.2.1"], whole["query.2.4"])
        np.testing.assert_array_equal(tensors["value.2.0"], whole["value.2.1"])

    def test_sinks_follow_the_chosen_heads(self):
        whole, _ = self.record(gpt_oss(), tokens())
        tensors, _ = self.record(gpt_oss(), tokens(), heads=[1])
        np.testing.assert_array_equal(tensors["sink.0"], whole["sink.0"][3:])

    def test_the_size_is_said_before_the_pass(self):
        self.record(llama(), tokens())
        size = self.out.stat().st_size
        self.assertEqual(self.said, [f"the file will take {size / 1e6:.1f} MB: 30 tensors"])

    def test_a_disk_that_is_too_small_is_told_first(self):
        with patch("shutil.disk_usage", return_value=type("Usage", (), {"free": 1000})):
            with self.assertRaisesRegex(RecordError, "needs 0.0 MB, but 0.0 MB are free"):
                self.record(llama(), tokens())
        self.assertEqual(self.files(), [])


class Refusals(QkvTest):
    def refused(self, model, what: str, **options):
        with self.assertRaisesRegex(RecordError, what):
            self.record(model, tokens(), **options)
        self.assertEqual(self.files(), [])

    def test_a_bias_on_the_logits(self):
        eager = interface.eager_attention(llama().model.layers[0].self_attn)

        def biased(_module):
            def attend(module, query, key, value, mask, **extras):
                far = -0.1 * torch.arange(key.shape[2]).flip(0)
                return eager(module, query, key, value, mask + far, **extras)

            return attend

        with patch.object(interface, "eager_attention", biased):
            self.refused(llama(), r"layer 0: queries, keys and values do not give what its heads gave in row \d+ ")

    def test_a_mask_that_is_neither_causal_nor_a_window(self):
        model = tiny("llama4_text", num_local_experts=2, attention_chunk_size=16, intermediate_size_mlp=64)
        self.refused(model, r"layer 0: row 16 does not see position 0, against the causal rule: record its attention")

    def test_a_mask_that_went_missing(self):
        with patch.object(interface, "eager_mask", lambda *_, **__: None):
            self.refused(llama(), "layer 0 attends to later positions")

    def test_a_mask_that_the_model_changed(self):
        model = llama()
        forward = model.model.layers[1].self_attn.forward

        def sliced(*arguments, attention_mask, **extras):
            return forward(*arguments, attention_mask=attention_mask[:, :, :, :], **extras)

        model.model.layers[1].self_attn.forward = sliced
        self.refused(model, "layer 1: row 0 sees position 1, against the causal rule")

    def test_numbers_that_f16_cannot_hold(self):
        model = llama()
        model.model.layers[1].self_attn.v_proj.weight.data *= 1e6
        self.refused(
            model, r"value\.1\.0: [\d.e+]+ is too large for f16: store it with --dtype bf16 or f32", dtype="f16"
        )

    def test_numbers_that_are_not_finite(self):
        model = llama()
        model.model.layers[1].self_attn.q_proj.weight.data[:] = torch.nan
        self.refused(model, "layer 1: queries, keys and values do not give")

    def test_heads_and_layers_that_are_not_there(self):
        self.refused(llama(), r"no head 2 in layer 0: it has 2 KV heads, 0\.\.=1", heads=[0, 2])
        self.refused(llama(), r"no attention in layer 3", layers=[3])
        self.refused(llama(), "W_O and gradients concern all heads", heads=[0], beside=ALL)


if __name__ == "__main__":
    unittest.main()
