"""Tests of the statistics behind docs/validity.md, on numbers whose answers are known."""

import math
import sys
import unittest
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import validity  # noqa: E402
import validity_page as statistics  # noqa: E402


def cell(means: list[float], figures: list[float], rows: int = 160, noise: float = 0.01) -> dict:
    """A cell in which each policy's loss is its mean and a little noise, and one figure says what it says."""
    draw = np.random.default_rng(3)
    kl = [(mean + noise * draw.standard_normal(rows)).tolist() for mean in means]
    lines = [{"peak_miss_rate": repr(figure)} for figure in figures]
    names = tuple(f"p{i}" for i in range(len(means)))
    return {"text": "t", "budget": 8, "policies": names, "figures": lines, "kl": kl}


class Orders(unittest.TestCase):
    def test_only_pairs_that_truly_differ_count(self):
        found = statistics.pairs([cell([0.1, 0.1, 0.9], [0, 0, 0])])
        self.assertEqual([(i, j, worse) for _, i, j, worse in found], [(2, 0, True), (2, 1, True)])

    def test_a_figure_that_orders_all_and_one_that_orders_none(self):
        for figures, wanted in (([0.1, 0.2, 0.3], 1.0), ([0.3, 0.2, 0.1], 0.0), ([0.5, 0.5, 0.5], 0.5)):
            cells = [cell([0.1, 0.4, 0.9], figures)]
            value, low, high = statistics.share(cells, statistics.pairs(cells), "peak_miss_rate")
            self.assertEqual((value, low, high), (wanted,) * 3)

    def test_more_of_a_good_figure_means_less_loss(self):
        self.assertEqual(statistics.number({"retained_mass": "0.75"}, "retained_mass"), -0.75)
        self.assertTrue(math.isnan(statistics.number({"retained_mass": ""}, "retained_mass")))

    def test_rank_correlation(self):
        self.assertAlmostEqual(statistics.rank_correlation([cell([0.1, 0.4, 0.9], [1, 2, 3])], "peak_miss_rate"), 1.0)
        self.assertAlmostEqual(statistics.rank_correlation([cell([0.1, 0.4, 0.9], [3, 2, 1])], "peak_miss_rate"), -1.0)
        self.assertEqual(statistics.ranks([5.0, 1.0, 5.0]).tolist(), [1.5, 0.0, 1.5])

    def test_an_interval_holds_its_value_and_narrows_with_agreement(self):
        mixed = [cell([0.1, 0.3, 0.5, 0.7, 0.9], [1, 3, 2, 4, 5])]
        value, low, high = statistics.share(mixed, statistics.pairs(mixed), "peak_miss_rate")
        self.assertEqual(value, 0.9)
        self.assertTrue(low < value <= high)


class Breaks(unittest.TestCase):
    def needles(self, values: list[float], broke: list[bool], **more) -> list[dict]:
        about = {"policy": "h2o", "share": 0.5, "knew": True} | more
        return [about | {"figures": {"peak_miss_rate": repr(v)}, "broke": b} for v, b in zip(values, broke, strict=True)]

    def test_auc(self):
        auc = statistics.auc(self.needles([1, 2, 3, 4], [False, False, True, True]), "peak_miss_rate")
        self.assertEqual(auc, (1.0, 1.0, 1.0))
        value, _, _ = statistics.auc(self.needles([1, 2, 3, 4], [False, True, False, True]), "peak_miss_rate")
        self.assertEqual(value, 0.75)

    def test_budgets_are_not_mixed_and_what_was_not_known_does_not_count(self):
        one = self.needles([1, 2], [False, False])
        other = self.needles([3, 4], [True, True], share=0.1)
        self.assertTrue(math.isnan(statistics.auc(one + other, "peak_miss_rate")[0]))
        unknown = self.needles([9, 9], [True, True], knew=False)
        self.assertTrue(math.isnan(statistics.auc(one + unknown, "peak_miss_rate")[0]))


class Needles(unittest.TestCase):
    def test_they_are_the_same_in_every_run_and_each_hides_its_answer_once(self):
        made = validity.needles(200)
        self.assertEqual(made, validity.needles(200))
        self.assertEqual(len({needle.prompt for needle in made}), 200)
        for needle in made:
            asked = needle.prompt.rsplit(". ", 1)[1]
            self.assertEqual(needle.prompt.count(asked + needle.answer + " in the cellar."), 1)

    def test_windows_leave_most_of_a_budget_to_choose(self):
        self.assertEqual(validity.spec("h2o", 96), "h2o:recent-window=16")
        self.assertEqual(validity.spec("h2o", 6), "h2o:recent-window=2")
        self.assertEqual(validity.spec("streaming-llm", 4), "streaming-llm:sinks=1")


class Page(unittest.TestCase):
    def test_it_is_written_from_what_there_is(self):
        cells = [cell([0.1, 0.4, 0.9], [0.1, 0.2, 0.3])]
        text = statistics.page({"tiny": {"cells": cells, "needles": []}}, validity.SMALL)
        self.assertIn("- tiny: 1 of 4 cells", text)
        self.assertIn("3 of 3 pairs of policies truly differ", text)
        self.assertIn("| `peak_miss_rate` | 1.000 | 1.00 to 1.00 | 1.00 |", text)
        self.assertNotIn("which prompts break", text)


if __name__ == "__main__":
    unittest.main()
