"""Errors that a user can act on, and lines on standard error."""

import sys


class RecordError(Exception):
    """Something about the data, the model or the files that a user can act on; told in one line."""


def first_line(problem: BaseException) -> str:
    """The first line of an error's text, without a stop at its end."""
    lines = str(problem).strip().splitlines() or [type(problem).__name__]
    return lines[0].rstrip(" .")


def say(line: str) -> None:
    """A line on standard error, where everything but results goes."""
    print(line, file=sys.stderr, flush=True)
