"""Reads files of log heads: one JSON object per line, or one object alone, as returned by `GET /audit/head`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

HEAD_FIELD = "qwed_head"
"""Field that contains the head in a line of mixed output."""
MAX_LINE_BYTES = 1 << 16


class HeadLine(NamedTuple):
    """Line that is not empty, and its head, if it has one."""

    number: int
    head: dict[str, Any] | None


def heads_in(file: Path) -> Iterator[HeadLine]:
    """Yield the lines of the file; raise OSError if it cannot be read."""
    with file.open("rb") as stream:
        beginning = stream.read(MAX_LINE_BYTES)
        # A single head may be formatted over several lines.
        single = _head(beginning) if len(beginning) < MAX_LINE_BYTES else None
        if single is not None:
            yield HeadLine(1, single)
            return
        stream.seek(0)
        yield from _lines(stream)


def _lines(stream: BinaryIO) -> Iterator[HeadLine]:
    number = 0
    while text := stream.readline(MAX_LINE_BYTES):
        number += 1
        complete = text.endswith(b"\n") or len(text) < MAX_LINE_BYTES
        if not complete:
            _skip_line(stream)
        if text.strip():
            yield HeadLine(number, _head(text) if complete else None)


def _skip_line(stream: BinaryIO) -> None:
    while (text := stream.readline(MAX_LINE_BYTES)) and not text.endswith(b"\n"):
        pass


def _head(text: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, dict) and isinstance(value.get(HEAD_FIELD), dict):
        value = value[HEAD_FIELD]
    return value if isinstance(value, dict) and "signature" in value else None
