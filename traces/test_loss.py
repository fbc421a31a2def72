"""Tests of loss.py and of the reader of decisions: python -m unittest discover -s traces.

Right is what decoding gives, token by token, with a cache whose entries are really deleted.
"""

import contextlib
import io
import json
import math
import os
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np
import torch
from transformers import DynamicCache

sys.path.insert(0, str(Path(__file__).parent))
import loss as command  # noqa: E402
from decisions import DecisionsError, read_decisions  # noqa: E402
from recorder.attention import record_attention  # noqa: E402
from recorder.closed import Decider  # noqa: E402
from recorder.errors import RecordError  # noqa: E402
from recorder.layers import attention_layers  # noqa: E402
from test_support import (  # noqa: E402
    TOKENS,
    WORDS,
    RecorderTest,
    gemma2,
    gemma3,
    gpt_oss,
    granite,
    llama,
    mistral,
    qwen3,
    save_tokenizer,
    tokens,
)

KV_HEADS, LAYERS = 2, 3


def random_decisions(budget: int, seed: int, until: int = TOKENS) -> tuple[dict, list[dict[int, int]]]:
    """Each KV head of each layer loses a position of its own at every step from `budget` on; the newest may go too."""
    draw, left = np.random.default_rng(seed), []
    caches = [{"layer": layer, "head": f"kv{head}"} for layer in range(LAYERS) for head in range(KV_HEADS)]
    for _ in caches:
        held, evicted = [], {}
        for t in range(until):
            held.append(t)
            if len(held) > budget:
                evicted[held.pop(draw.integers(len(held)))] = t
        left.append(evicted)
    header = {"kvsim_decisions": 1, "trace": "t", "policy": "random", "budget": budget, "self": "included"}
    return header | {"caches": caches}, left


class Decoding:
    """Decodes token by token with a cache from which evicted entries are cut out.

    A sliding layer keeps what its window has left behind until it is evicted, and does not look at it.
    """

    def __init__(self, model, left: list[dict[int, int]]):
        self.model, self.left, self.cache = model, left, DynamicCache()
        self.held = [[[] for _ in range(KV_HEADS)] for _ in range(LAYERS)]
        self.windows = [layer.window for layer in attention_layers(model, tokens(2)).values()]

    def logits(self, ids: list[int]) -> np.ndarray:
        """The logits of every row."""
        hooks = [
            layer.self_attn.register_forward_pre_hook(self.masked(number), with_kwargs=True)
            for number, layer in enumerate(self.model.model.layers)
        ]
        rows = np.stack([self.step(token, t) for t, token in enumerate(ids)])
        for hook in hooks:
            hook.remove()
        return rows

    def masked(self, number: int):
        """A hook that gives a layer's attention the mask over what its heads hold."""
        return lambda _, args, kwargs: (args, kwargs | {"attention_mask": self.mask(number)})

    def mask(self, number: int) -> torch.Tensor:
        """[1, query heads, 1, held]: nothing is hidden but what a sliding window has left behind."""
        held = torch.tensor(self.held[number])
        behind = held <= self.t - (self.windows[number] or self.t + 1)
        rows = torch.zeros(held.shape).masked_fill(behind, torch.finfo(torch.float32).min)
        return rows.repeat_interleave(3, dim=0)[None, :, None]

    def step(self, token: int, t: int) -> np.ndarray:
        """One token through the model, then evictions."""
        self.t = t
        for positions in (positions for layer in self.held for positions in layer):
            positions.append(t)
        with torch.no_grad():
            output = self.model_step(
                input_ids=torch.tensor([[token]]),
                position_ids=torch.tensor([[t]]),
                cache=self.cache,
                use_cache=True,
            )
        for layer in range(LAYERS):
            self.evict(layer)
        return output.logits[0, -1].double().log_softmax(dim=-1).numpy()

    def model_step(self, **inputs):
        """A step of the model."""
        return self.model(**inputs)

    def evict(self, layer: int) -> None:
        """Cut what leaves at this step out of the tensors of one layer."""
        stay = []
        for head, positions in enumerate(self.held[layer]):
            gone = self.left[layer * KV_HEADS + head]
            stay.append([i for i, position in enumerate(positions) if gone.get(position) != self.t])
            self.held[layer][head] = [positions[i] for i in stay[head]]
        index = torch.tensor(stay)[None, :, :, None].expand(-1, -1, -1, 8)
        entries = self.cache.layers[layer]
        entries.keys, entries.values = entries.keys.gather(2, index), entries.values.gather(2, index)


def expected_loss(model, ids: list[int], left: list[dict[int, int]]) -> dict[str, np.ndarray]:
    """The figures of each row, from decoding."""
    with torch.no_grad():
        full = model(torch.tensor([ids])).logits[0].double().log_softmax(dim=-1).numpy()
    evicted, next_ones = Decoding(model, left).logits(ids), np.array(ids[1:])
    return {
        "nll_full": -full[np.arange(len(ids) - 1), next_ones],
        "nll": -evicted[np.arange(len(ids) - 1), next_ones],
        "kl": (np.exp(full) * (full - evicted)).sum(axis=1),
        "agrees": (full.argmax(axis=1) == evicted.argmax(axis=1)).astype(float),
    }


class Playback(RecorderTest):
    def test_it_is_decoding_with_entries_that_are_really_deleted(self):
        for make in (llama, mistral, gemma2, gemma3, gpt_oss, qwen3, granite):
            with self.subTest(make.__name__):
                model, ids = make(), tokens()
                header, left = random_decisions(5, seed=3)
                made, expected = command.measure(model, ids, header, left), expected_loss(model, ids, left)
                for name in ("kl", "agrees"):
                    np.testing.assert_allclose(getattr(made, name), expected[name], rtol=0, atol=1e-5)
                for name in ("nll_full", "nll"):
                    np.testing.assert_allclose(getattr(made, name)[:-1], expected[name], rtol=0, atol=1e-5)
                self.assertGreater(made.kl[6:].mean(), 0.01)

    def test_heads_that_lose_other_positions_lose_something_else(self):
        """Otherwise the test above would not show that each head has its own cache."""
        header, left = random_decisions(5, seed=3)
        one = command.measure(llama(), tokens(), header, left)
        other = command.measure(llama(), tokens(), header, [left[1], left[0], *left[2:]])
        self.assertGreater(np.abs(one.kl - other.kl).max(), 1e-3)

    def test_rows_up_to_the_first_eviction_lose_exactly_nothing(self):
        header, left = random_decisions(12, seed=1)
        loss = command.measure(gemma2(), tokens(), header, left)
        self.assertEqual(loss.first_eviction, 12)
        self.assertEqual(np.abs(loss.kl[:13]).max(), 0.0)
        np.testing.assert_array_equal(loss.nll[:13], loss.nll_full[:13])
        self.assertEqual(loss.counted().tolist(), list(range(13, TOKENS)))
        self.assertGreater(loss.kl[13:].min(), 0.0)

    def test_a_position_is_seen_in_the_row_of_the_step_it_leaves_at_and_in_no_later_one(self):
        header, nothing = random_decisions(TOKENS, seed=1)
        left = [{4: 20}, *nothing[1:]]
        loss = command.measure(llama(), tokens(), header, left)
        self.assertEqual(np.flatnonzero(loss.kl).min(), 21)

    def test_without_evictions_there_is_no_loss_and_every_row_counts(self):
        header, left = random_decisions(TOKENS, seed=1)
        loss = command.measure(llama(), tokens(), header, left)
        self.assertIsNone(loss.first_eviction)
        self.assertEqual((np.abs(loss.kl).max(), loss.agrees.min(), len(loss.counted())), (0.0, 1.0, TOKENS))

    def test_caches_of_query_heads_and_of_whole_layers(self):
        header, left = random_decisions(5, seed=3)
        of_layer = header | {"caches": [{"layer": layer, "head": "mean"} for layer in range(LAYERS)]}
        of_heads = header | {"caches": [{"layer": i // 6, "head": str(i % 6)} for i in range(18)]}
        of_kv = [left[layer] for layer in range(LAYERS) for _ in range(KV_HEADS)]
        expected = command.measure(llama(), tokens(), header, of_kv).kl
        np.testing.assert_array_equal(command.measure(llama(), tokens(), of_layer, left[:LAYERS]).kl, expected)
        of_query = [left[layer] for layer in range(LAYERS) for _ in range(6)]
        np.testing.assert_array_equal(command.measure(llama(), tokens(), of_heads, of_query).kl, expected)

    def test_layers_that_are_not_named_keep_everything(self):
        header, left = random_decisions(5, seed=3)
        some = header | {"caches": header["caches"][2:4]}
        loss, all_of_it = (command.measure(llama(), tokens(), *what) for what in ((some, left[2:4]), (header, left)))
        self.assertTrue(0.0 < loss.kl.mean() < all_of_it.kl.mean())

    def test_decisions_about_another_model_are_refused(self):
        header, left = random_decisions(5, seed=3)
        for caches, what in (
            ([{"layer": 3, "head": "kv0"}], r"layer 3, but the layers with attention are 0\.\.=2"),
            ([{"layer": 0, "head": "kv2"}], "head 'kv2' of layer 0, which the model does not have"),
            ([{"layer": 0, "head": "6"}], "head '6' of layer 0"),
            ([{"layer": 0, "head": "kv0"}, {"layer": 0, "head": 2}], "head 2 of layer 0 reads two caches"),
        ):
            with self.assertRaisesRegex(RecordError, what):
                command.measure(llama(), tokens(), header | {"caches": caches}, left[: len(caches)])
        with self.assertRaisesRegex(RecordError, "up to step 39, but the text has 30 tokens"):
            command.measure(llama(), tokens(30), header, left)


BUILT = Path(__file__).parent.parent / "target" / "release" / "kvsim"
KVSIM = os.environ.get("KVSIM") or shutil.which("kvsim") or (str(BUILT) if BUILT.exists() else None)


class H2oDecoding(Decoding):
    """Decodes with entries that are really deleted, chosen by h2o from the weights of this very run.

    The tensors of a layer need one length: where one head evicts, another whose window has left positions behind
    drops the oldest of those, which nothing sees.
    """

    def __init__(self, model, budget: int, window: int):
        super().__init__(model, [{} for _ in range(LAYERS * KV_HEADS)])
        self.budget, self.window = budget, window
        self.sums, self.decided = [{} for _ in self.left], [{} for _ in self.left]

    def model_step(self, **inputs):
        """A step, and what h2o makes of its attention."""
        output = self.model(**inputs, output_attentions=True)
        for cache in range(LAYERS * KV_HEADS):
            layer, head = divmod(cache, KV_HEADS)
            rows = output.attentions[layer][0, 3 * head : 3 * head + 3, 0].double().mean(dim=0)
            for position, weight in zip(self.held[layer][head], rows.tolist(), strict=True):
                self.sums[cache][position] = self.sums[cache].get(position, 0.0) + weight
            behind = self.t + 2 - (self.windows[layer] or self.t + 2)
            live = [position for position in self.held[layer][head] if position >= behind]
            if len(live) > self.budget:
                victim = min(live[: -self.window], key=self.sums[cache].get)
                self.left[cache][victim] = self.decided[cache][victim] = self.t
        for layer in range(LAYERS):
            self.drop_unseen(layer)
        return output

    def drop_unseen(self, layer: int) -> None:
        """Keep the heads of a layer equally long."""
        heads = range(layer * KV_HEADS, (layer + 1) * KV_HEADS)
        evicts = [self.t in self.left[cache].values() for cache in heads]
        for head, (cache, does) in enumerate(zip(heads, evicts, strict=True)):
            if any(evicts) and not does:
                self.left[cache][self.held[layer][head][0]] = self.t


@unittest.skipUnless(KVSIM, "no kvsim on the path, in KVSIM or in target/release")
class ClosedLoop(RecorderTest):
    def decider(self, model, *policy: str) -> Decider:
        decider = Decider.of(model, tokens(), KVSIM, list(policy))
        self.addCleanup(decider.close)
        return decider

    def test_it_is_decoding_in_which_the_policy_sees_the_run_itself(self):
        for make in (llama, mistral, gemma2, gemma3, gpt_oss, qwen3, granite):
            with self.subTest(make.__name__):
                model, ids = make(), tokens()
                decoding = H2oDecoding(model, budget=5, window=2)
                evicted = decoding.logits(ids)
                with torch.no_grad():
                    full = model(torch.tensor([ids])).logits[0].double().log_softmax(dim=-1).numpy()
                decider = self.decider(model, "--policy", "h2o:recent-window=2", "--budget", "5")
                loss, left = command.measure_closed(model, ids, decider)
                self.assertEqual(left, decoding.decided)
                kl = (np.exp(full) * (full - evicted)).sum(axis=1)
                np.testing.assert_allclose(loss.kl, kl, rtol=0, atol=1e-5)

    def test_its_decisions_played_back_give_its_loss(self):
        for policy in ("tova", "snapkv:recent-window=2", "streaming-llm:sinks=1", "random:recent-window=1"):
            with self.subTest(policy):
                decider = self.decider(gemma3(), "--policy", policy, "--budget", "6")
                loss, left = command.measure_closed(gemma3(), tokens(), decider)
                again = command.measure(gemma3(), tokens(), decider.header, left)
                np.testing.assert_allclose(loss.kl, again.kl, rtol=0, atol=1e-6)
                self.assertGreater(loss.kl[10:].mean(), 0.0)

    def test_a_policy_that_does_not_look_decides_as_in_a_replay(self):
        decider = self.decider(llama(), "--policy", "sliding-window", "--budget", "6")
        _, left = command.measure_closed(llama(), tokens(), decider)
        self.assertEqual(left, [{position: position + 6 for position in range(TOKENS - 6)}] * 6)

    def test_what_the_program_refuses_stops_the_run(self):
        with self.assertRaisesRegex(RecordError, "kvsim decide ended with exit code 2"):
            Decider.of(llama(), tokens(), KVSIM, ["--policy", "h2o", "--budget", "5"])
        with self.assertRaisesRegex(RecordError, "name the program with --kvsim"):
            Decider.of(llama(), tokens(), "/nowhere/kvsim", ["--policy", "tova", "--budget", "5"])


class Statistics(unittest.TestCase):
    def test_mean_sum_and_interval(self):
        numbers = np.concatenate([np.zeros(160), np.ones(160)])
        figure = command.figure_of(numbers, seed=1)
        self.assertEqual((figure.mean, figure.total), (0.5, 160.0))
        # Twenty blocks of 0 or 1: a deviation of sqrt(1/4 / 20) = 0.112, so 0.28 to 0.72.
        self.assertAlmostEqual(figure.low, 0.28, delta=0.03)
        self.assertAlmostEqual(figure.high, 0.72, delta=0.03)

    def test_blocks_count_and_not_rows(self):
        """Rows of one text depend on their neighbours; taken singly the interval would be four times as narrow."""
        once = command.figure_of(np.arange(16.0).repeat(16), seed=1)
        mixed = command.figure_of(np.tile(np.arange(16.0), 16), seed=1)
        self.assertGreater(once.high - once.low, 3.0)
        self.assertEqual(mixed.high - mixed.low, 0.0)

    def test_one_block_has_no_interval_and_nothing_no_figure(self):
        figure = command.figure_of(np.array([1.0, math.nan, 3.0]), seed=1)
        self.assertEqual((figure.mean, figure.total, figure.low, figure.high), (2.0, 4.0, None, None))
        self.assertIsNone(command.figure_of(np.array([math.nan]), seed=1))


def written(path: Path, header: dict, left: list[dict[int, int]]) -> Path:
    """A file of decisions."""
    lines = [header] + [{"cache": i} | listed(evicted) for i, evicted in enumerate(left)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def listed(evicted: dict[int, int]) -> dict[str, list[int]]:
    """What one cache lost, as a line has it."""
    return {"position": [*evicted], "step": [*evicted.values()]}


class Reader(RecorderTest):
    def test_what_was_written_is_read(self):
        header, left = random_decisions(5, seed=3)
        self.assertEqual(read_decisions(written(self.folder / "d.jsonl", header, left)), (header, left))

    def test_one_lane_of_several(self):
        header, left = random_decisions(5, seed=3)
        lanes = [{"policy": "one"}, {"policy": "other", "budget": 7}]
        path = written(self.folder / "d.jsonl", header | {"lanes": lanes}, [])
        lines = [{"cache": i, "lane": lane} | listed(left[i - lane]) for i in range(len(left)) for lane in (0, 1)]
        path.write_text(path.read_text() + "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        for lane, found in enumerate((read_decisions(path), read_decisions(path, 1))):
            self.assertEqual(found[1], [left[i - lane] for i in range(len(left))])
            self.assertEqual(found[0]["policy"], lanes[lane]["policy"])
        with self.assertRaisesRegex(DecisionsError, r"no lane 2: there are 0\.\.=1"):
            read_decisions(path, 2)

    def test_what_is_wrong_is_named_with_its_line(self):
        header, _ = random_decisions(5, seed=3)
        header |= {"caches": header["caches"][:1], "seq_len": 40}

        def line(**changes):
            return json.dumps({"cache": 0, "position": [1], "step": [5]} | changes)

        for lines, what in (
            (["{}"], "1: not decisions"),
            ([""], "1: not JSON"),
            ([json.dumps(header), "[1]"], "2: not a JSON object"),
            ([json.dumps(header)], "no line for cache 0: the file was cut short"),
            ([json.dumps(header), line(cache=1)], r"2: 'cache' is 1: each of 0\.\.=0 comes once"),
            ([json.dumps(header), line(), line()], "3: 'cache' is 0"),
            ([json.dumps(header), line(step=[5, 6])], "2: 'position' and 'step' are not two lists"),
            ([json.dumps(header), line(position=[True])], "2: 'position' and 'step' are not two lists"),
            ([json.dumps(header), line(position=[6])], "2: position 6 leaves at step 5, which cannot be"),
            ([json.dumps(header), line(step=[40])], "2: position 1 leaves at step 40, which cannot be"),
            ([json.dumps(header), line(position=[1, 1], step=[5, 6])], "2: a position leaves twice"),
        ):
            path = self.folder / "d.jsonl"
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
            with self.assertRaisesRegex(DecisionsError, what):
                read_decisions(path)


class CommandLine(RecorderTest):
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
        self.text = self.folder / "text.txt"
        self.text.write_text(" ".join(WORDS[4:54]), encoding="utf-8")
        header, self.left = random_decisions(5, seed=3)
        self.header = header | {"seq_len": TOKENS}
        self.decisions = written(self.folder / "d.jsonl", self.header, self.left)

    def run_main(self, *arguments) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = command.main([str(argument) for argument in arguments])
            except SystemExit as stop:
                code = stop.code
        return code, out.getvalue(), err.getvalue()

    def test_figures_and_tokens_are_written(self):
        csv = self.folder / "tokens.csv"
        told = (self.model, "--text", self.text, "--decisions", self.decisions)
        code, out, err = self.run_main(*told, "-o", csv, "--format", "json")
        self.assertEqual((code, err), (0, ""))
        told = json.loads(out)
        self.assertEqual((told["rows"], told["first_eviction"], told["policy"]), (TOKENS - 6, 5, "random"))
        ids = [1, *range(4, 54)][:TOKENS]
        expected = command.measure(llama(), ids, self.header, self.left)
        self.assertAlmostEqual(told["figures"]["kl"]["mean"], expected.kl[6:].mean(), places=6)
        lines = csv.read_text(encoding="utf-8").splitlines()
        self.assertEqual(lines[0], "row,token,nll_full,nll,kl,agrees")
        self.assertEqual((len(lines), lines[2].split(",")[:2]), (TOKENS + 1, ["1", " w0"]))
        self.assertAlmostEqual(float(lines[21].split(",")[4]), expected.kl[20], places=6)
        self.assertEqual(lines[-1].split(",")[2:4], ["", ""])

    def test_the_table_has_a_line_for_each_figure(self):
        code, out, _ = self.run_main(self.model, "--text", self.text, "--decisions", self.decisions)
        self.assertEqual(code, 0)
        self.assertRegex(out, r"\A34 rows after the first eviction, which came after row 5; nats;")
        self.assertRegex(out, r"\nkl +0\.\d{6} +0\.\d{6} +0\.\d{6} +\d+\.\d{6}\n")

    @unittest.skipUnless(KVSIM, "no kvsim on the path, in KVSIM or in target/release")
    def test_the_closed_loop_and_its_decisions(self):
        saved = self.folder / "closed.jsonl"
        told = (self.model, "--text", self.text, "--closed", "--policy", "tova", "--budget", "6", "--kvsim", KVSIM)
        code, out, err = self.run_main(*told, "--save", saved, "--format", "json")
        self.assertEqual((code, err), (0, ""))
        closed = json.loads(out)
        self.assertEqual((closed["policy"], closed["budget"], closed["first_eviction"]), ("tova", 6, 6))
        code, out, _ = self.run_main(self.model, "--text", self.text, "--decisions", saved, "--format", "json")
        self.assertEqual(code, 0)
        again = json.loads(out)
        self.assertAlmostEqual(closed["figures"]["kl"]["mean"], again["figures"]["kl"]["mean"], places=6)

    def test_tokens_of_a_trace(self):
        record_attention(llama(), tokens(), self.out)
        told = (self.model, "--trace", self.out, "--decisions", self.decisions, "--format", "json")
        code, out, err = self.run_main(*told)
        self.assertEqual((code, err), (0, ""))
        expected = command.measure(llama(), tokens(), self.header, self.left).kl[6:].mean()
        self.assertAlmostEqual(json.loads(out)["figures"]["kl"]["mean"], expected, places=6)

    def test_bad_files_exit_with_1_and_one_line(self):
        short = self.folder / "short.txt"
        short.write_text("w1 w2", encoding="utf-8")
        broken = self.folder / "broken.jsonl"
        broken.write_text("{}\n", encoding="utf-8")
        for arguments, what in (
            (("--text", short, "--decisions", self.decisions), "about 40 tokens, but there are 3: is it another text"),
            (("--text", self.text, "--decisions", broken), "not decisions"),
            (("--text", self.text, "--decisions", self.folder / "none.jsonl"), "no such file"),
            (("--trace", broken, "--decisions", self.decisions), "broken.jsonl"),
        ):
            code, out, err = self.run_main(self.model, *arguments)
            self.assertEqual((code, out), (1, ""))
            self.assertRegex(err, rf"\Aerror: [^\n]*{what}[^\n]*\n\Z")


if __name__ == "__main__":
    unittest.main()
