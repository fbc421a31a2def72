"""Tests of recording attention, and of record.py: python -m unittest discover -s traces.

What is right is what the library's eager attention returns for `output_attentions`.
"""

import contextlib
import io
import json
import math
import sys
import tempfile
import unittest
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
import transformers
from safetensors import safe_open
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers import models as tokenizer_models

sys.path.insert(0, str(Path(__file__).parent))
import record as command  # noqa: E402
from recorder import attention, interface, models  # noqa: E402
from recorder.attention import record_attention  # noqa: E402
from recorder.errors import RecordError  # noqa: E402
from recorder.trace_file import TraceFile  # noqa: E402
from test_support import (  # noqa: E402
    PROMPT,
    TOKENS,
    WINDOW,
    WORDS,
    RecorderTest,
    gemma2,
    gpt_oss,
    llama,
    mistral,
    save_tokenizer,
    tiny,
    tokens,
)


def eager_weights(model, ids: list[int]) -> list[np.ndarray]:
    """What the library says each layer's weights are: [heads, positions, positions]."""
    with torch.no_grad():
        output = model(torch.tensor([ids]), output_attentions=True, use_cache=False)
    return [layer[0].numpy() for layer in output.attentions]


def squares(streams: dict[str, np.ndarray], layer: int, labels) -> np.ndarray:
    """The streams of a layer as square arrays, zero above the diagonal."""
    size = math.isqrt(2 * len(streams[f"attention.{layer}.{labels[0]}"]))
    square = np.zeros((len(labels), size, size), dtype=np.float32)
    rows, columns = np.tril_indices(size)
    for i, label in enumerate(labels):
        square[i, rows, columns] = streams[f"attention.{layer}.{label}"]
    return square


class AttentionTest(RecorderTest):
    """Records attention in f32."""

    def record(self, model, ids, **options) -> tuple[dict[str, np.ndarray], dict[str, str]]:
        """Record, and read the file back with the safetensors library."""
        self.result = record_attention(model, ids, self.out, **{"dtype": "f32", **options})
        return self.read()


class Weights(AttentionTest):
    def assert_close(self, recorded: np.ndarray, expected: np.ndarray):
        self.assertEqual(recorded.shape, expected.shape)
        self.assertLessEqual(float(np.abs(recorded - expected).max()), 1e-6)

    def test_single_query_heads_are_what_eager_attention_returns(self):
        for make in (llama, gemma2, mistral, gpt_oss):
            with self.subTest(make.__name__):
                model, ids = make(), tokens()
                streams, _ = self.record(model, ids)
                self.assertEqual(len(streams), 3 * 6)
                for layer, expected in enumerate(eager_weights(model, ids)):
                    self.assert_close(squares(streams, layer, range(6)), expected)

    def test_group_kv_is_the_mean_over_the_query_heads_of_each_kv_head(self):
        model, ids = llama(), tokens()
        streams, metadata = self.record(model, ids, group="kv")
        self.assertEqual(metadata["group"], "kv")
        self.assertEqual(len(streams), 3 * 2)
        for layer, expected in enumerate(eager_weights(model, ids)):
            means = np.stack([expected[:3].mean(axis=0), expected[3:].mean(axis=0)])
            self.assert_close(squares(streams, layer, range(2)), means)

    def test_group_layer_is_the_mean_over_all_heads(self):
        model, ids = gemma2(), tokens()
        streams, metadata = self.record(model, ids, group="layer")
        self.assertEqual(metadata["group"], "layer")
        self.assertEqual(sorted(streams), [f"attention.{layer}.mean" for layer in range(3)])
        for layer, expected in enumerate(eager_weights(model, ids)):
            self.assert_close(squares(streams, layer, ["mean"]), expected.mean(axis=0, keepdims=True))

    def test_the_models_tell_heads_and_layers_apart(self):
        """Otherwise the comparisons above would prove nothing."""
        first, second, *_ = eager_weights(llama(), tokens())
        self.assertGreater(float(np.abs(first[0] - first[1]).max()), 0.05)
        self.assertGreater(float(np.abs(first[0] - second[0]).max()), 0.05)

    def test_chosen_heads_keep_their_numbers(self):
        model, ids = llama(), tokens()
        streams, _ = self.record(model, ids, heads=[4, 1])
        self.assertEqual(list(streams), [f"attention.{layer}.{head}" for layer in range(3) for head in (1, 4)])
        self.assert_close(squares(streams, 2, [1, 4]), eager_weights(model, ids)[2][[1, 4]])
        streams, _ = self.record(model, ids, heads=[1], group="kv")
        self.assert_close(squares(streams, 2, [1]), eager_weights(model, ids)[2][3:].mean(axis=0, keepdims=True))
        with self.assertRaisesRegex(RecordError, r"no head 6 in layer 0: it has 6 query heads, 0\.\.=5"):
            self.record(model, ids, heads=[6])

    def test_f16_is_the_rounded_f32(self):
        model, ids = llama(), tokens()
        exact, _ = self.record(model, ids)
        rounded, _ = self.record(model, ids, dtype="f16")
        for name, weights in rounded.items():
            self.assertEqual(weights.dtype, np.float16)
            np.testing.assert_array_equal(weights, exact[name].astype(np.float16))

    def test_rows_with_learned_sinks_sum_to_less_than_one(self):
        streams, _ = self.record(gpt_oss(), tokens())
        self.assertLess(float(streams["attention.0.0"][-TOKENS:].sum()), 0.99)

    def test_positions_outside_of_a_sliding_window_have_weight_zero(self):
        streams, metadata = self.record(gemma2(), tokens())
        last_rows = {layer: streams[f"attention.{layer}.0"][-TOKENS:] for layer in range(3)}
        for layer in (0, 2):
            self.assertEqual(metadata[f"sliding_window.{layer}"], str(WINDOW))
            self.assertEqual(metadata[f"column_offset.{layer}"], "0")
            self.assertEqual(np.flatnonzero(last_rows[layer]).tolist(), list(range(TOKENS - WINDOW, TOKENS)))
        self.assertNotIn("sliding_window.1", metadata)
        self.assertEqual(np.count_nonzero(last_rows[1]), TOKENS)

    def test_a_single_token_is_a_recording(self):
        streams, _ = self.record(llama(), tokens(1))
        self.assertEqual(streams["attention.0.0"].tolist(), [1.0])
        self.assertIsNone(self.result.perplexity)

    def test_the_model_is_left_as_it_was(self):
        model, ids = llama(), tokens()
        before = eager_weights(model, ids)
        self.record(model, ids)
        self.assertEqual(model.config._attn_implementation, "eager")
        for old, new in zip(before, eager_weights(model, ids), strict=True):
            np.testing.assert_array_equal(old, new)


class Generation(AttentionTest):
    def cached_rows(self, model, prompt: list[int], count: int) -> tuple[list[int], list[list[np.ndarray]]]:
        """Tokens, and for each decode step the row [heads, width] of each layer, as a cache shows them."""
        output = model.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones((1, len(prompt)), dtype=torch.long),
            max_new_tokens=count,
            do_sample=False,
            output_attentions=True,
            return_dict_in_generate=True,
        )
        steps = [[layer[0, :, 0].numpy() for layer in step] for step in output.attentions[1:]]
        return output.sequences[0].tolist(), steps

    def test_one_pass_over_what_was_generated_gives_the_rows_of_decoding_with_a_cache(self):
        for make in (llama, gemma2, mistral):
            with self.subTest(make.__name__):
                model, prompt = make(), tokens(PROMPT)
                expected_ids, steps = self.cached_rows(model, prompt, 12)
                ids = models.generate(model, prompt, 12, None)
                self.assertEqual(ids, expected_ids)
                streams, metadata = self.record(model, ids, prompt_len=PROMPT)
                self.assertEqual((metadata["seq_len"], metadata["prompt_len"]), (str(PROMPT + 12), str(PROMPT)))
                self.assertEqual(len(steps), 11)  # the last token is said but never read
                for layer in range(3):
                    self.assert_rows(squares(streams, layer, range(6)), [step[layer] for step in steps])

    def assert_rows(self, recorded: np.ndarray, rows: list[np.ndarray]):
        """A cached row of width W stands for the last W positions: column c is position c + t - W + 1."""
        for t, row in enumerate(rows, start=PROMPT):
            absolute = np.zeros((len(row), t + 1), dtype=np.float32)
            absolute[:, t + 1 - row.shape[1] :] = row
            self.assertLessEqual(float(np.abs(recorded[:, t, : t + 1] - absolute).max()), 1e-6)

    def test_sliding_caches_do_give_narrow_rows(self):
        """Otherwise the test above would not show that positions are absolute."""
        _, steps = self.cached_rows(mistral(), tokens(PROMPT), 3)
        self.assertEqual(steps[0][0].shape, (6, WINDOW))

    def test_a_seed_samples_the_same_tokens_again(self):
        model, prompt = llama(), tokens(PROMPT)
        greedy, first, again, other = (models.generate(model, prompt, 10, seed) for seed in (None, 1, 1, 2))
        self.assertEqual(first, again)
        self.assertNotEqual(first, greedy)
        self.assertNotEqual(first, other)

    def test_generation_stops_where_the_model_does(self):
        model, prompt = llama(), tokens(PROMPT)
        model.generation_config.eos_token_id = models.generate(model, prompt, 5, None)[-1]
        said = models.generate(model, prompt, 50, None)
        self.assertLessEqual(len(said), PROMPT + 5)


class Perplexity(AttentionTest):
    def expected(self, model, ids: list[int]) -> float:
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0, :-1]
        return math.exp(torch.nn.functional.cross_entropy(logits, torch.tensor(ids[1:])).item())

    def test_it_is_that_of_the_full_logits(self):
        for make in (llama, gemma2, gpt_oss):
            with self.subTest(make.__name__):
                model, ids = make(), tokens()
                self.record(model, ids)
                self.assertAlmostEqual(self.result.perplexity / self.expected(model, ids), 1.0, places=5)

    def test_generated_tokens_do_not_count(self):
        model, ids = llama(), tokens()
        self.record(model, ids, prompt_len=PROMPT)
        self.assertAlmostEqual(self.result.perplexity / self.expected(model, ids[:PROMPT]), 1.0, places=5)


class File(AttentionTest):
    def test_metadata_says_what_the_rows_are(self):
        _, metadata = self.record(llama(), tokens(), details={"model": "tiny", "bos": "none"})
        expected = {
            "kvsim": "1",
            "self": "included",
            "seq_len": str(TOKENS),
            "token_ids": json.dumps(tokens(), separators=(",", ":")),
            "prompt_len": "0",
            "group": "none",
            "num_layers": "3",
            "query_heads": "6",
            "kv_heads": "2",
            "arithmetic": "float32",
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "model": "tiny",
            "bos": "none",
        }
        self.assertEqual(metadata, expected)

    def test_chosen_layers_alone_are_recorded_under_their_own_numbers(self):
        model, ids = llama(), tokens()
        streams, metadata = self.record(model, ids, layers=[2, 0, 2])
        self.assertEqual({name.split(".")[1] for name in streams}, {"0", "2"})
        self.assertEqual(metadata["num_layers"], "3")
        np.testing.assert_allclose(squares(streams, 2, range(6)), eager_weights(model, ids)[2], atol=1e-6)

    def test_an_unknown_layer_is_refused_before_anything_is_written(self):
        with self.assertRaisesRegex(RecordError, r"no attention in layer 3, 7: .* 0\.\.=2"):
            self.record(llama(), tokens(), layers=[0, 3, 7])
        self.assertEqual(self.files(), [])

    def test_a_failure_on_the_way_leaves_the_old_file_and_nothing_else(self):
        self.out.write_bytes(b"old")
        write = TraceFile.write

        def fail_in_the_last_layer(file, stream, *rest):
            if stream == "attention.2.5":
                raise KeyboardInterrupt
            write(file, stream, *rest)

        with patch.object(TraceFile, "write", fail_in_the_last_layer):
            with self.assertRaises(KeyboardInterrupt):
                self.record(llama(), tokens())
        self.assertEqual(self.files(), ["out.safetensors"])
        self.assertEqual(self.out.read_bytes(), b"old")

    def test_the_name_is_taken_only_when_all_is_written(self):
        seen = []
        write = TraceFile.write

        def look(file, *rest):
            seen.append(self.out.exists())
            write(file, *rest)

        with patch.object(TraceFile, "write", look):
            self.record(llama(), tokens())
        self.assertEqual(set(seen), {False})
        self.assertEqual(self.files(), ["out.safetensors"])


class Refusals(AttentionTest):
    def refused(self, model, what: str):
        with self.assertRaisesRegex(RecordError, what):
            self.record(model, tokens())
        self.assertEqual(self.files(), [])

    def test_a_model_that_does_not_use_the_attention_interface(self):
        self.refused(tiny("bloom", n_head=6, n_layer=3), "does not take its attention from the attention interface")

    def test_a_model_whose_attention_never_comes_past(self):
        model = llama()
        with patch.object(type(model), "set_attn_implementation"):
            self.refused(model, "does not take its attention")

    def test_a_layer_that_falls_back_to_another_attention(self):
        model, looked = llama(), attention.attention_layers

        def look_then_fall_back(*arguments):
            layers = looked(*arguments)
            model.model.layers[1].self_attn.forward = lambda hidden_states, **_: (hidden_states, None)
            return layers

        with patch.object(attention, "attention_layers", look_then_fall_back):
            self.refused(model, r"asked for layers \[0, 1, 2\] but \[0, 2\] came past")

    def test_a_mask_that_went_missing(self):
        with patch.object(interface, "eager_mask", lambda *_, **__: None):
            self.refused(llama(), "layer 0 attends to later positions")

    def test_a_window_that_is_not_kept(self):
        model = llama()
        model.config.layer_types, model.config.sliding_window = ["sliding_attention"] * 3, WINDOW
        self.refused(model, "layer 0 attends farther back than its sliding window of 9")

    def test_weights_that_are_no_numbers(self):
        model = llama()
        model.model.layers[1].self_attn.q_proj.weight.data[:] = math.nan
        self.refused(model, r"layer 1: weights that are not finite in rows 0\.\.=6")


class TokenTexts(unittest.TestCase):
    def test_a_character_of_several_tokens_comes_with_its_last(self):
        """One token for each byte."""
        alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
        words = Tokenizer(tokenizer_models.BPE({byte: i for i, byte in enumerate(alphabet)}, []))
        words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        words.decoder = decoders.ByteLevel()
        tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words)
        ids = tokenizer("n\u00e9 \u20ac!")["input_ids"]
        texts = models.token_texts(tokenizer, ids)
        self.assertEqual(texts, ["n", "", "\u00e9", " ", "", "", "\u20ac", "!"])
        self.assertEqual(models.token_texts(tokenizer, ids[:2]), ["n", "\ufffd"])


class CommandLine(AttentionTest):
    """The whole way, with a model and a tokenizer that were saved to a folder."""

    @classmethod
    def setUpClass(cls):
        saved = tempfile.TemporaryDirectory()
        cls.addClassCleanup(saved.cleanup)
        cls.model = Path(saved.name) / "tiny-llama"
        llama().save_pretrained(cls.model)
        save_tokenizer(cls.model)

    def setUp(self):
        super().setUp()
        self.text = self.file("text.txt", " ".join(WORDS[4:34]))
        self.chat = self.file("chat.json", json.dumps([{"role": "user", "content": "w3 w4 w5"}]))

    def file(self, name: str, content: str) -> Path:
        path = self.folder / name
        path.write_text(content, encoding="utf-8")
        return path

    def run_main(self, *arguments) -> tuple[int, str]:
        """Exit code and standard error; standard output must stay empty."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = command.main([str(argument) for argument in arguments])
            except SystemExit as stop:
                code = stop.code
        self.assertEqual(out.getvalue(), "")
        return code, err.getvalue()

    def fails(self, code: int, what: str, *arguments):
        """One line on standard error, and nothing written."""
        got, said = self.run_main(*arguments)
        self.assertEqual(got, code, said)
        self.assertRegex(said, rf"\Aerror: [^\n]*{what}[^\n]*\n\Z")
        self.assertFalse(self.out.exists())

    def test_a_text_is_recorded(self):
        code, said = self.run_main(self.model, "--text", self.text, "-o", self.out, "--max-length", 20)
        self.assertEqual(code, 0, said)
        self.assertRegex(said, r"perplexity: \d+\.\d{3} over 19 next tokens")
        streams, metadata = self.read()
        self.assertEqual(len(streams), 18)
        told = {key: metadata[key] for key in ("model", "source", "bos", "seq_len", "prompt_len")}
        self.assertEqual(
            told, {"model": "tiny-llama", "source": "text.txt", "bos": "added", "seq_len": "20", "prompt_len": "0"}
        )
        self.assertFalse(any(str(self.folder) in value for value in metadata.values()))

    def test_queries_keys_values_and_gradients_are_recorded(self):
        beside = ("--output-projections", "--residual-norms", "--gradients", 2, "--seed", 7, "--gradient-scale", 2)
        told = (self.model, "--text", self.file("long.txt", " ".join(WORDS[4:44])), "-o", self.out, "--what", "qkv")
        code, said = self.run_main(*told, *beside, "--dtype", "bf16", "--layers", "1")
        self.assertEqual(code, 0, said)
        with safe_open(self.out, "pt") as file:
            metadata, gradient = file.metadata(), file.get_tensor("gradient.1.5")
            self.assertEqual(file.get_tensor("output.1").shape, (48, 48))
        self.assertEqual((gradient.shape, gradient.dtype), ((2, 41, 8), torch.bfloat16))
        told = {key: metadata[key] for key in ("kind", "gradient_samples", "gradient_scale", "gradient_labels")}
        expected = {"kind": "qkv", "gradient_samples": "2", "gradient_scale": "2"}
        self.assertEqual(told, expected | {"gradient_labels": "sampled, torch.multinomial, seed 7"})
        self.assertEqual(len(json.loads(metadata["sensitivity.1"])), 6)

    def test_attention_carries_sensitivities_when_asked(self):
        long = self.file("long.txt", " ".join(WORDS[4:44]))
        code, said = self.run_main(self.model, "--text", long, "-o", self.out, "--sensitivity", 2)
        self.assertEqual(code, 0, said)
        streams, metadata = self.read()
        self.assertEqual(len(streams), 18)
        self.assertEqual([len(json.loads(metadata[f"sensitivity.{layer}"])) for layer in range(3)], [6, 6, 6])

    def test_a_model_may_compute_in_bf16(self):
        told = (self.model, "--text", self.text, "-o", self.out, "--arithmetic", "bf16", "--what", "qkv")
        code, said = self.run_main(*told)
        self.assertEqual(code, 0, said)
        self.assertEqual(self.read()[1]["arithmetic"], "bfloat16")

    def test_the_tokens_are_in_the_file(self):
        for what in ("attention", "qkv"):
            code, said = self.run_main(self.model, "--text", self.text, "-o", self.out, "--what", what)
            self.assertEqual(code, 0, said)
            _, metadata = self.read()
            self.assertEqual(json.loads(metadata["token_ids"]), [1, *range(4, 34)])
            self.assertEqual(json.loads(metadata["tokens"]), ["<bos>", *(f" {word}" for word in WORDS[4:34])])

    def test_a_chat_is_recorded_with_its_answer(self):
        code, said = self.run_main(self.model, "--chat", self.chat, "-o", self.out, "--generate", 6, "--seed", 3)
        self.assertEqual(code, 0, said)
        _, metadata = self.read()
        told = {key: metadata[key] for key in ("source", "bos", "seq_len", "prompt_len", "seed")}
        self.assertEqual(told, {"source": "chat.json", "bos": "added", "seq_len": "11", "prompt_len": "5", "seed": "3"})

    def test_more_tokens_than_the_model_was_made_for_give_a_warning(self):
        long = self.file("long.txt", "w1 " * 200)
        code, said = self.run_main(self.model, "--text", long, "-o", self.out, "--group", "layer")
        self.assertEqual(code, 0, said)
        self.assertIn("warning: 201 tokens, but the model was made for 128", said)

    def test_usage_errors_exit_with_2(self):
        text = (self.model, "--text", self.text, "-o", self.out)
        self.fails(2, "one of the arguments --text --chat is required", self.model, "-o", self.out)
        self.fails(2, "not allowed with argument", *text, "--chat", self.chat)
        self.fails(2, "'0\\.\\.2' is not a whole number", *text, "--layers", "0..2")
        self.fails(2, "'0' is not a whole number from 1 on", *text, "--max-length", "0")
        self.fails(2, "--seed is for what is drawn", *text, "--seed", "1")
        self.fails(2, "--revision picks a version of a hub model", *text, "--revision", "main")
        self.fails(2, "--residual-norms goes with queries, keys and values: give --what qkv", *text, "--residual-norms")
        self.fails(2, "--gradients goes with queries, keys and values", *text, "--gradients", "2")
        self.fails(2, "--heads chooses heads, but --group layer", *text, "--heads", "1", "--group", "layer")
        qkv = (*text, "--what", "qkv")
        self.fails(2, "--group is for attention", *qkv, "--group", "kv")
        self.fails(2, "leave --sensitivity out", *qkv, "--gradients", "2", "--sensitivity", "2")
        self.fails(2, "--fisher needs samples", *qkv, "--fisher")
        self.fails(2, "'12' is not a power of two", *qkv, "--gradients", "2", "--gradient-scale", "12")
        self.fails(2, "give --gradients S", *qkv, "--gradient-scale", "8")
        self.fails(2, "concern all heads of a layer", *qkv, "--heads", "1", "--output-projections")
        self.fails(2, "let its name end in .safetensors", self.model, "--text", self.text, "-o", "out.bin")

    def test_bad_files_exit_with_1(self):
        def read(kind, path):
            return (self.model, kind, path, "-o", self.out)

        self.fails(1, "none.txt: no such file", *read("--text", self.folder / "none.txt"))
        self.fails(1, "chat.json:1: not JSON", *read("--chat", self.file("chat.json", "hello")))
        self.fails(1, "not a chat", *read("--chat", self.file("chat.json", '["hello"]')))
        self.fails(1, "not a chat", *read("--chat", self.file("chat.json", "[]")))
        (self.folder / "latin.txt").write_bytes(b"caf\xe9 ")
        self.fails(1, "latin.txt: not UTF-8 at byte 3", *read("--text", self.folder / "latin.txt"))
        self.fails(1, "no attention in layer 9", *read("--text", self.text), "--layers", "1,9")
        self.fails(1, "none.gguf: no such file", "none.gguf", "--text", self.text, "-o", self.out)
        self.fails(1, "cannot be loaded", self.folder, "--text", self.text, "-o", self.out)

    def test_a_tokenizer_of_another_model_is_told(self):
        text = self.file("french.txt", "le chat est sur la table w1")
        with patch.object(models, "load_model", side_effect=AssertionError("too late")):
            self.fails(1, "6 of 8 tokens are unknown to the tokenizer", self.model, "--text", text, "-o", self.out)
        model = tiny("llama", vocab_size=20)
        with patch.object(models, "load_model", return_value=(model, {})):
            self.fails(1, "token id 33, but the model knows 20 tokens", self.model, "--text", self.text, "-o", self.out)

    def test_a_device_that_is_not_there_is_told_before_anything_is_loaded(self):
        with patch.object(models, "load_tokenizer", side_effect=AssertionError("too late")):
            self.fails(1, "--device abacus: ", self.model, "--text", self.text, "-o", self.out, "--device", "abacus")

    def test_a_bad_output_path_fails_before_the_model_is_loaded(self):
        with patch.object(models, "load_tokenizer", side_effect=AssertionError("too late")):
            self.fails(1, "no such folder", self.model, "--text", self.text, "-o", self.folder / "no" / "o.safetensors")
            folder = self.folder / "folder.safetensors"
            folder.mkdir()
            self.fails(1, "no file can be written there", self.model, "--text", self.text, "-o", folder)


if __name__ == "__main__":
    unittest.main()
