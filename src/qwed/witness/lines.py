"""Heads in a file: one JSON object a line, as a witness keeps them, or one alone, as `GET /audit/head` answers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

NAMED = "qwed_head"
"""What a head is called where it stands between other lines."""
LONGEST = 1 << 16


class Line(NamedTuple):
    """One line that is not empty, and the head in it, if there is one."""

    number: int
    head: dict[str, Any] | None


def heads_in(file: Path) -> Iterator[Line]:
    """What the file holds, line by line; OSError where it is not there or cannot be read."""
    with file.open("rb") as stream:
        beginning = stream.read(LONGEST)
        # Somebody may have had the one answer printed over several lines.
        alone = _head(beginning) if len(beginning) < LONGEST else None
        if alone is not None:
            yield Line(1, alone)
            return
        stream.seek(0)
        yield from _lines(stream)


def _lines(stream: BinaryIO) -> Iterator[Line]:
    number = 0
    while text := stream.readline(LONGEST):
        number += 1
        whole = text.endswith(b"\n") or len(text) < LONGEST
        if not whole:
            _skip_line(stream)
        if text.strip():
            yield Line(number, _head(text) if whole else None)


def _skip_line(stream: BinaryIO) -> None:
    while (text := stream.readline(LONGEST)) and not text.endswith(b"\n"):
        pass


def _head(text: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(found, dict) and isinstance(found.get(NAMED), dict):
        found = found[NAMED]
    return found if isinstance(found, dict) and "signature" in found else None
