"""The kvsim binary from Python: run it, read its results, replay attention that is held in memory.

Everything goes through the command line: an array is handed over on standard input, and what comes back is a report.
There is no second way to compute a figure, so that the numbers are those of the command, to the bit.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sysconfig
import warnings

__all__ = ["Error", "binary", "read", "replay", "run"]

# What the file format calls the types of numpy that hold weights.
_DTYPES = {"float16": "F16", "float32": "F32", "float64": "F64"}


class Error(RuntimeError):
    """kvsim refused: the message is what it said, ``code`` its exit status (1 bad data, 2 a request without sense)."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def binary() -> str:
    """The binary of this installation, else the one on the path."""
    folders = [sysconfig.get_path("scripts"), sysconfig.get_path("scripts", os.name + "_user"), None]
    found = next(filter(None, (shutil.which("kvsim", path=folder) for folder in folders)), None)
    if found is None:
        raise FileNotFoundError("the kvsim binary is neither beside this Python nor on the path")
    return found


def run(*arguments: object, input: bytes | None = None) -> bytes:
    """Runs a command and returns its report: ``run("policies")``."""
    command = [binary(), *map(str, arguments)]
    done = subprocess.run(command, input=input, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise Error(done.stderr.decode(errors="replace").strip(), done.returncode)
    return done.stdout


def read(source):
    """Results of ``kvsim replay`` (csv, json or jsonl: a path, or an open file) as a data frame of pandas."""
    import pandas

    if hasattr(source, "read"):
        text = source.read()
    else:
        with open(source, "rb") as file:
            text = file.read()
    text = text.decode() if isinstance(text, bytes) else text
    if text.lstrip()[:1] in ("{", "["):
        lines = text.lstrip()
        rows = json.loads(lines) if lines[0] == "[" else [json.loads(line) for line in lines.splitlines() if line]
        return pandas.DataFrame(rows)
    return _csv(pandas, text)


def _csv(pandas, text: str):
    # Only this way do older versions read the figures to the last bit; version 4 knows no other.
    exact = {"float_precision": "round_trip"} if int(pandas.__version__.split(".")[0]) < 4 else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pandas.read_csv(io.StringIO(text), **exact)


def replay(trace=None, *arguments: object, **flags: object):
    """Replays a trace and returns the results as a data frame of pandas.

    ``trace`` is a path or the name of a built-in trace, an array of attention (``[query, key]``, ``[head, query, key]``
    or more: what ``kvsim inspect`` reads in a .npy file), or a dictionary of arrays by name, such as
    ``{"layer_0": ..., "layer_1": ...}``. Flags are those of ``kvsim replay``, lists are joined::

        kvsim.replay(attention, policy=["h2o", "tova"], budget="25%", recent_window=[8, 16], skip_invalid=True)
    """
    is_named = trace is None or isinstance(trace, (str, os.PathLike))
    stdin = None if is_named else _safetensors(trace if isinstance(trace, dict) else {"attention": trace})
    named = [] if trace is None else [os.fspath(trace) if is_named else "-"]
    words = [word for name, value in flags.items() for word in _flag(name, value)]
    return read(io.BytesIO(run("replay", *named, *words, *arguments, "--format", "csv", "--quiet", input=stdin)))


def _flag(name: str, value: object) -> list[str]:
    flag = "--" + name.replace("_", "-")
    if value is None or value is False:
        return []
    if value is True:
        return [flag]
    values = value if isinstance(value, (list, tuple, range)) else [value]
    return [flag, ",".join(map(str, values))]


def _safetensors(arrays: dict) -> bytes:
    """Arrays in the format that kvsim reads from a pipe."""
    import numpy

    header, parts, start = {}, [], 0
    for name, array in arrays.items():
        array = numpy.asarray(array)
        if array.dtype.name not in _DTYPES:
            array = array.astype(numpy.float32)
        data = array.astype(array.dtype.newbyteorder("<")).tobytes()
        place = [start, start + len(data)]
        header[name] = {"dtype": _DTYPES[array.dtype.name], "shape": list(array.shape), "data_offsets": place}
        parts.append(data)
        start += len(data)
    text = json.dumps(header).encode()
    return b"".join([len(text).to_bytes(8, "little"), text, *parts])
