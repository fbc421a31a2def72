"""Tests of the Python package, against the binary that is installed beside it."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import kvsim
import numpy

SWEEP = {"policy": ["h2o", "tova"], "budget": [3, 4], "recent_window": 1}


def attention(heads, positions):
    """Causal attention that sums to one, different in every head."""
    weights = numpy.random.default_rng(5).random((heads, positions, positions)) * numpy.tri(positions)
    return (weights / weights.sum(axis=-1, keepdims=True)).astype(numpy.float32)


class Package(unittest.TestCase):
    def test_an_array_in_memory_replays_as_the_file_does(self):
        array = attention(2, 9)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "a.npy")
            numpy.save(path, array)
            from_file = kvsim.replay(path, **SWEEP)
        in_memory = kvsim.replay(array, **SWEEP)
        self.assertEqual(len(in_memory), 4)
        for column in ["policy", "budget", "rows", "retained_mass", "peak_miss_rate", "retained_mass_sum"]:
            self.assertEqual(list(in_memory[column]), list(from_file[column]), column)

    def test_layers_are_a_dictionary_and_other_types_become_floats(self):
        array = attention(2, 9)
        layers = kvsim.replay({"layer_0": array, "layer_1": array.astype(numpy.float16)}, by="layer", **SWEEP)
        self.assertEqual(sorted(set(layers["layer"])), [0, 1])
        whole = kvsim.replay(numpy.eye(5, dtype=int)[None], policy="full", budget=5)
        self.assertEqual(list(whole["retained_mass"]), [1.0])

    def test_results_are_read_from_every_format(self):
        with tempfile.TemporaryDirectory() as folder:
            frames = []
            for ending in ["csv", "json", "jsonl"]:
                path = pathlib.Path(folder, "results." + ending)
                kvsim.run("replay", "--policy", "h2o,tova", "--budget", 64, "-o", path, "--quiet")
                frames.append(kvsim.read(path))
            with open(pathlib.Path(folder, "results.csv"), encoding="utf-8") as file:
                frames.append(kvsim.read(file))
        for frame in frames:
            self.assertEqual(list(frame["policy"]), ["h2o", "tova"])
            self.assertEqual(list(frame["retained_mass_sum"]), list(frames[0]["retained_mass_sum"]))

    def test_a_refusal_says_what_kvsim_said(self):
        with self.assertRaises(kvsim.Error) as refused:
            kvsim.replay("no such file")
        self.assertIn("no such file", str(refused.exception))
        self.assertIn(refused.exception.code, (1, 2))

    def test_the_module_is_the_command(self):
        done = subprocess.run([sys.executable, "-m", "kvsim", "--version"], capture_output=True, check=True)
        self.assertEqual(done.stdout, kvsim.run("--version"))
        done = subprocess.run([sys.executable, "-m", "kvsim", "nonsense"], capture_output=True, check=False)
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()
