"""Tests of recording gradients at the heads' outputs: python -m unittest discover -s traces.

Right is what moving a head's output does to the likelihood (finite differences in f64), and what one
plain backward pass over the whole model gives without blocks, checkpoints or hooks of ours.
"""

import json
import os
import sys
import unittest
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from safetensors import safe_open

sys.path.insert(0, str(Path(__file__).parent))
from recorder import interface  # noqa: E402
from recorder.attention import record_attention  # noqa: E402
from recorder.errors import RecordError  # noqa: E402
from recorder.gradients import Gradients  # noqa: E402
from recorder.layers import Layer  # noqa: E402
from recorder.qkv import record_qkv, sensitivities  # noqa: E402
from recorder.qkv_format import Beside  # noqa: E402
from recorder.sensitivity import FIRST_ROW, fisher, sensitivity  # noqa: E402
from test_support import (  # noqa: E402
    TOKENS,
    RecorderTest,
    gemma2,
    gemma3,
    gpt_oss,
    granite,
    llama,
    olmo2,
    tokens,
)

WIDTH, HEADS, SAMPLES = 8, 6, 3


def labels_of(model, ids: list[int], samples: int, seed: int) -> torch.Tensor:
    """The labels that a seed draws, in one draw over all rows: [rows, samples]."""
    with torch.no_grad():
        chances = model(torch.tensor([ids])).logits[0].softmax(dim=-1)
    return torch.multinomial(chances, samples, replacement=True, generator=torch.Generator().manual_seed(seed))


def likelihood(model, ids: list[int], labels: torch.Tensor) -> torch.Tensor:
    """The summed log-likelihood of one label at each position."""
    logits = model(torch.tensor([ids]), use_cache=False).logits[0].log_softmax(dim=-1)
    return logits.gather(1, labels[:, None]).sum()


def plain_gradients(model, ids: list[int], labels: torch.Tensor) -> list[np.ndarray]:
    """Per layer [rows, heads, width], of one sample, at what W_O is fed."""
    kept = []

    def keep(_module, args):
        args[0].retain_grad()
        kept.append(args[0])

    hooks = [layer.self_attn.o_proj.register_forward_pre_hook(keep) for layer in model.model.layers]
    likelihood(model, ids, labels).backward()
    for hook in hooks:
        hook.remove()
    return [tensor.grad[0].unflatten(1, (HEADS, WIDTH)).numpy() for tensor in kept]


class GradientTest(RecorderTest):
    def record(self, model, ids, **options) -> tuple[dict[str, np.ndarray], dict[str, str]]:
        """Record gradients in f32, and read the file back."""
        wanted = {
            "samples": SAMPLES,
            **{name: options.pop(name) for name in ("seed", "scale", "keep", "fisher", "samples") if name in options},
        }
        beside = Beside(gradients=Gradients(**wanted))
        record_qkv(model, ids, self.out, **{"dtype": "f32", "beside": beside, **options})
        return self.read()


class Right(GradientTest):
    def test_gradients_are_those_of_one_plain_backward_pass(self):
        for make in (llama, gemma2, gemma3, gpt_oss, olmo2, granite):
            with self.subTest(make.__name__):
                model, ids = make(), tokens()
                tensors, metadata = self.record(model, ids, seed=4)
                labels = labels_of(model, ids, SAMPLES, 4)
                for sample in range(SAMPLES):
                    for layer, expected in enumerate(plain_gradients(model, ids, labels[:, sample])):
                        for head in range(HEADS):
                            made = tensors[f"gradient.{layer}.{head}"][sample] / float(metadata["gradient_scale"])
                            worst = np.abs(made - expected[:, head]).max()
                            self.assertLessEqual(worst, 1e-5 * np.abs(expected).max())

    def test_gradients_are_what_moving_a_heads_output_does(self):
        model, ids = gemma2().double(), tokens()
        tensors, metadata = self.record(model, ids, seed=4)
        labels, step = labels_of(model, ids, SAMPLES, 4), 3e-3
        for layer, head, row, channel, sample in ((0, 0, 3, 2, 0), (1, 4, 39, 7, 1), (2, 5, 20, 0, 2), (0, 3, 0, 1, 1)):
            change = []
            for sign in (1, -1):
                with self.moved(model, layer, row, head * WIDTH + channel, sign * step), torch.no_grad():
                    change.append(likelihood(model, ids, labels[:, sample]).item())
            expected = (change[0] - change[1]) / (2 * step)
            made = tensors[f"gradient.{layer}.{head}"][sample, row, channel] / float(metadata["gradient_scale"])
            self.assertLess(abs(made - expected), 2e-3 * abs(expected))

    def moved(self, model, layer: int, row: int, channel: int, by: float):
        """While this lasts, one number of what a layer's W_O is fed is another."""

        def move(_module, args):
            given = args[0].clone()
            given[0, row, channel] += by
            return (given,)

        return model.model.layers[layer].self_attn.o_proj.register_forward_pre_hook(move)

    def test_the_heads_and_rows_differ_so_that_the_tests_above_can_fail(self):
        tensors, _ = self.record(llama(), tokens())
        one, other = tensors["gradient.1.0"], tensors["gradient.1.1"]
        self.assertGreater(np.abs(one - other).max(), 0.1)
        self.assertGreater(np.abs(one[0] - one[1]).max(), 0.1)
        self.assertGreater(np.abs(one[0, 5] - one[0, 6]).max(), 0.01)

    def test_a_seed_draws_the_same_again_whatever_the_block_size(self):
        first, _ = self.record(llama().double(), tokens())
        with patch.object(interface, "ROWS_PER_BLOCK", 1000):
            again, _ = self.record(llama().double(), tokens())
        other, _ = self.record(llama().double(), tokens(), seed=2)
        np.testing.assert_allclose(again["gradient.0.0"], first["gradient.0.0"], rtol=0, atol=1e-4)
        self.assertGreater(np.abs(other["gradient.0.0"] - first["gradient.0.0"]).max(), 0.1)

    def test_the_scale_is_in_the_numbers(self):
        once, metadata = self.record(llama(), tokens(), scale=1.0)
        self.assertEqual(metadata["gradient_scale"], "1")
        much, metadata = self.record(llama(), tokens(), scale=64.0)
        self.assertEqual(metadata["gradient_scale"], "64")
        np.testing.assert_array_equal(much["gradient.2.3"], 64 * once["gradient.2.3"])

    def test_parameters_get_no_gradients_and_the_model_is_left_as_it_was(self):
        model, ids = llama(), tokens()
        model.lm_head.weight.requires_grad_(False)
        before = model(torch.tensor([ids])).logits
        self.record(model, ids)
        self.assertTrue(all(parameter.grad is None for parameter in model.parameters()))
        self.assertEqual([name for name, p in model.named_parameters() if not p.requires_grad], ["lm_head.weight"])
        after = model(torch.tensor([ids])).logits
        self.assertTrue(torch.equal(before, after) and after.requires_grad)

    def test_queries_keys_and_values_are_the_same_with_gradients_and_without(self):
        plain = Beside(residual_norms=True)
        record_qkv(llama(), tokens(), self.out, dtype="f32", beside=plain)
        without, _ = self.read()
        beside = Beside(residual_norms=True, gradients=Gradients(2))
        tensors, metadata = self.record(llama(), tokens(), beside=beside)
        for name, numbers in without.items():
            np.testing.assert_array_equal(tensors[name], numbers)
        self.assertEqual(metadata["gradient_labels"], "sampled, torch.multinomial, seed 1")


class Memory(GradientTest):
    def test_no_square_of_weights_is_held_for_the_backward_pass(self):
        """All that autograd keeps at the end of the forward pass is as long as the text, not its square."""
        held = []

        def note(tensor):
            held.append(tensor.numel())
            return tensor

        with patch.object(interface, "ROWS_PER_BLOCK", 16), torch.autograd.graph.saved_tensors_hooks(note, lambda t: t):
            self.record(llama(), tokens(120), samples=1)
        self.assertLessEqual(max(held), max(120 * 64, HEADS * 16 * 120))


class Figures(GradientTest):
    def brute_force(self, tensors, metadata, layer: int, head: int, weights: np.ndarray) -> float:
        """q by its definition, row by row."""
        value = tensors[f"value.{layer}.{head // 3}"].astype(float)
        gradient = tensors[f"gradient.{layer}.{head}"].astype(float) / float(metadata["gradient_scale"])
        terms = []
        for sample in gradient:
            for t in range(FIRST_ROW, TOKENS):
                output = weights[t] @ value
                terms.append(sum(weights[t, j] * (sample[t] @ (value[j] - output)) ** 2 for j in range(t + 1)))
        return float(np.mean(terms))

    def test_sensitivities_are_what_their_definition_says(self):
        from test_qkv import rows

        for make in (llama, gemma2, gpt_oss):
            with self.subTest(make.__name__):
                tensors, metadata = self.record(make(), tokens())
                for layer, head in ((0, 1), (1, 5), (2, 2)):
                    made = json.loads(metadata[f"sensitivity.{layer}"])[head]
                    expected = self.brute_force(tensors, metadata, layer, head, rows(tensors, metadata, layer, head))
                    self.assertAlmostEqual(made / expected, 1.0, places=5)

    def test_fisher_matrices_are_mean_outer_products(self):
        tensors, metadata = self.record(llama(), tokens(), fisher=True)
        late = tensors["gradient.1.4"][:, FIRST_ROW:].astype(float) / float(metadata["gradient_scale"])
        expected = np.mean([np.outer(g, g) for sample in late for g in sample], axis=0)
        np.testing.assert_allclose(tensors["fisher.1.4"], expected, rtol=1e-5, atol=1e-9)

    def test_figures_come_without_the_gradients_too(self):
        kept, told = self.record(llama(), tokens(), fisher=True)
        tensors, metadata = self.record(llama(), tokens(), fisher=True, keep=False)
        self.assertFalse(any(name.startswith("gradient") for name in tensors))
        self.assertNotIn("gradient_samples", metadata)
        self.assertEqual(metadata["sensitivity.2"], told["sensitivity.2"])
        np.testing.assert_array_equal(tensors["fisher.2.2"], kept["fisher.2.2"])
        self.assertEqual(self.files(), ["out.safetensors"])

    def test_attention_can_carry_sensitivities(self):
        _, told = self.record(llama(), tokens(), layers=[1])
        figures = sensitivities(llama(), tokens(), [1], Gradients(SAMPLES), self.out)
        record_attention(llama(), tokens(), self.out, layers=[1], details=figures)
        _, metadata = self.read()
        self.assertEqual(metadata["sensitivity.1"], told["sensitivity.1"])
        self.assertEqual(metadata["sensitivity_samples"], str(SAMPLES))
        self.assertEqual(self.files(), ["out.safetensors"])

    @unittest.skipUnless(os.environ.get("KVSIM_SHARED"), "KVSIM_SHARED does not name larger recordings")
    def test_the_figures_of_a_real_model_are_the_known_ones(self):
        known = {(3, 2): (0.0198286, 0.269398), (15, 4): (0.0260268, 0.105467), (24, 7): (0.0173179, 0.0136754)}
        path = Path(os.environ["KVSIM_SHARED"], "traces", "smollm2-fisher-160.safetensors")
        with safe_open(path, "pt") as file:
            facts = Layer(9, 3, 64, 64, 0.125, None, None, None)
            for (layer, head), (q, trace) in known.items():
                read = [f"query.{layer}.{head}", f"key.{layer}.{head // 3}", f"value.{layer}.{head // 3}"]
                gradient = file.get_tensor(f"gradient.{layer}.{head}").double() / 16
                made = sensitivity(facts, *map(file.get_tensor, read), gradient)
                self.assertAlmostEqual(made / q, 1.0, places=5)
                self.assertAlmostEqual(fisher(gradient).trace().item() / trace, 1.0, places=5)


class Refusals(GradientTest):
    def refused(self, model, what: str, ids=None, **options):
        with self.assertRaisesRegex(RecordError, what):
            self.record(model, ids or tokens(), **options)
        self.assertEqual(self.files(), [])

    def test_a_gradient_that_does_not_fit_is_an_error_and_not_clipped(self):
        what = r"gradient\.2\.\d: [\d.e+]+ is too large for f16: give a smaller --gradient-scale"
        self.refused(llama(), what, scale=2.0**20, dtype="f16")

    def test_too_few_tokens_for_sensitivities(self):
        self.refused(llama(), "32 tokens: sensitivities leave the first 32 out", ids=tokens(32))

    def test_some_heads_alone(self):
        self.refused(llama(), "W_O and gradients concern all heads", heads=[1])


if __name__ == "__main__":
    unittest.main()
