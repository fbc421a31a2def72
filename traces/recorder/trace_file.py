"""The output: a safetensors file whose tensors are written in any order, a piece at a time.

Knows nothing of models or of what the tensors mean.
"""

import dataclasses
import json
import math
import os
import shutil
import struct
from pathlib import Path

import torch

from .errors import RecordError, say

TORCH_TYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
# Integers of the same width, whose bytes numpy can order.
INTEGERS = {2: (torch.int16, "<i2"), 4: (torch.int32, "<i4")}


@dataclasses.dataclass(frozen=True)
class Tensor:
    """The stored type (f16, bf16, f32) and the shape of one tensor."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def width(self) -> int:
        """Bytes of one number."""
        return TORCH_TYPES[self.dtype].itemsize

    @property
    def size(self) -> int:
        """Bytes of the tensor."""
        return math.prod(self.shape) * self.width


class TraceFile:
    """A safetensors file that appears whole or not at all.

    All sizes are known before the first number, so every tensor has its place. The bytes go to a file
    beside the output; it gets its header and the output's name when nothing has failed. Metadata that
    is known only on the way (`file.metadata[...] = ...`) must come as long as its place holder.
    """

    def __init__(self, path: Path, tensors: dict[str, Tensor], metadata: dict[str, str]):
        self.path = path
        self.part = path.with_name(f".{path.name}.{os.getpid()}.part")
        # The widest first, so that every number lies at a multiple of its width.
        self.tensors = dict(sorted(tensors.items(), key=lambda item: -item[1].width))
        self.metadata = metadata
        self.header_size = len(header_bytes(self.tensors, metadata))
        self.starts, self.size = {}, self.header_size
        for name, tensor in self.tensors.items():
            self.starts[name] = self.size
            self.size += tensor.size

    def __enter__(self) -> "TraceFile":
        free = shutil.disk_usage(self.path.absolute().parent).free
        say(f"the file will take {self.size / 1e6:.1f} MB: {len(self.tensors)} tensors")
        if self.size > free:
            raise RecordError(f"{self.path}: needs {self.size / 1e6:.1f} MB, but {free / 1e6:.1f} MB are free there")
        self.file = open(self.part, "w+b")
        return self

    def write(self, name: str, numbers: torch.Tensor, start: int = 0) -> None:
        """Put numbers, rounded to the stored type, into a tensor from its `start`-th number on."""
        tensor = self.tensors[name]
        stored = numbers.detach().to(TORCH_TYPES[tensor.dtype]).cpu().contiguous()
        self.check_finite(name, numbers, stored)
        kind, order = INTEGERS[tensor.width]
        self.file.seek(self.starts[name] + start * tensor.width)
        self.file.write(stored.view(kind).numpy().astype(order, copy=False).tobytes())

    def check_finite(self, name: str, numbers: torch.Tensor, stored: torch.Tensor) -> None:
        """Refuse what is no number, and what the stored type cannot hold."""
        if torch.isfinite(stored).all():
            return
        if not torch.isfinite(numbers).all():
            raise RecordError(f"{name}: not all of it is finite numbers")
        largest, dtype = numbers.abs().max().item(), self.tensors[name].dtype
        raise RecordError(f"{name}: {largest:g} is too large for {dtype}: {remedy(name)}")

    def read(self, name: str) -> torch.Tensor:
        """What was written into a tensor."""
        tensor = self.tensors[name]
        self.file.seek(self.starts[name])
        bytes_read = bytearray(self.file.read(tensor.size))
        return torch.frombuffer(bytes_read, dtype=TORCH_TYPES[tensor.dtype]).view(tensor.shape)

    def __exit__(self, kind, *_) -> None:
        try:
            if kind is None:
                self.write_header()
            self.file.close()
            if kind is None:
                os.replace(self.part, self.path)
        finally:
            self.part.unlink(missing_ok=True)

    def write_header(self) -> None:
        """The header, as long as it was said to be."""
        header = header_bytes(self.tensors, self.metadata)
        if len(header) != self.header_size:
            raise RecordError(f"the header became {len(header)} bytes long instead of {self.header_size}")
        self.file.seek(0)
        self.file.write(header)


def remedy(name: str) -> str:
    """What to do about a number that does not fit."""
    if name.startswith("gradient."):
        return "give a smaller --gradient-scale, or store f32 with --dtype f32"
    return "store it with --dtype bf16 or f32"


def header_bytes(tensors: dict[str, Tensor], metadata: dict[str, str]) -> bytes:
    """The length-prefixed JSON header of a safetensors file whose tensors lie back to back."""
    header: dict[str, object] = {"__metadata__": metadata}
    end = 0
    for name, tensor in tensors.items():
        start, end = end, end + tensor.size
        header[name] = {"dtype": tensor.dtype.upper(), "shape": list(tensor.shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text
