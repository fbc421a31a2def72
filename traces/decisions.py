"""Reads and writes the decisions of a policy: which position left which cache, and when. The form is in docs/decisions.md."""

import json
from collections.abc import Iterator
from pathlib import Path


class DecisionsError(Exception):
    """What is wrong with a file of decisions, and in which line."""


def read_decisions(path: Path, lane: int = 0) -> tuple[dict, list[dict[int, int]]]:
    """The header of a lane, and for each of its caches the step at which each evicted position left: {position: step}."""
    lines = json_lines(path)
    header = next(lines, (1, {}))[1]
    if header.get("kvsim_decisions") != 1 or not isinstance(header.get("caches"), list):
        raise DecisionsError(f"{path}:1: not decisions: the first line has no 'kvsim_decisions': 1 and no 'caches'")
    lanes = header.get("lanes", [{}])
    if not 0 <= lane < len(lanes):
        raise DecisionsError(f"{path}: no lane {lane}: there are 0..={len(lanes) - 1}")
    left: list[dict[int, int] | None] = [None] * len(header["caches"])
    for number, line in lines:
        if line.get("lane", 0) != lane:
            continue
        cache, positions, steps = (line.get(name) for name in ("cache", "position", "step"))
        if not isinstance(cache, int) or not 0 <= cache < len(left) or left[cache] is not None:
            raise DecisionsError(f"{path}:{number}: 'cache' is {cache!r}: each of 0..={len(left) - 1} comes once")
        check(f"{path}:{number}", positions, steps, header.get("seq_len"))
        left[cache] = dict(zip(positions, steps, strict=True))
    if missing := [cache for cache, evicted in enumerate(left) if evicted is None]:
        raise DecisionsError(f"{path}: no line for cache {missing[0]}: the file was cut short, so write it again")
    return header | lanes[lane], left


def write_decisions(path: Path, header: dict, left: list[dict[int, int]]) -> None:
    """Write a file of decisions, whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    try:
        with open(part, "w", encoding="utf-8") as file:
            print(json.dumps(header, separators=(",", ":")), file=file)
            for cache, evicted in enumerate(left):
                order = sorted(evicted, key=lambda position: (evicted[position], position))
                line = {"cache": cache, "position": order, "step": [evicted[position] for position in order]}
                print(json.dumps(line, separators=(",", ":")), file=file)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def json_lines(path: Path) -> Iterator[tuple[int, dict]]:
    """Line number and object of each line."""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            try:
                value = json.loads(line)
            except ValueError as problem:
                raise DecisionsError(f"{path}:{number}: not JSON: {problem}") from problem
            if not isinstance(value, dict):
                raise DecisionsError(f"{path}:{number}: not a JSON object")
            yield number, value


def check(place: str, positions, steps, seq_len: int | None) -> None:
    """Refuse positions and steps that cannot be: a position leaves once, not before it has come."""
    lists = all(isinstance(many, list) and all(type(i) is int and i >= 0 for i in many) for many in (positions, steps))
    if not lists or len(positions) != len(steps):
        raise DecisionsError(f"{place}: 'position' and 'step' are not two lists of whole numbers, equally long")
    if len(set(positions)) != len(positions):
        raise DecisionsError(f"{place}: a position leaves twice")
    for position, step in zip(positions, steps, strict=True):
        if position > step or (seq_len is not None and step >= seq_len):
            raise DecisionsError(f"{place}: position {position} leaves at step {step}, which cannot be")
