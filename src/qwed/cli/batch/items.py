"""What a batch is asked: the items of a file, read one by one, so that its size does not matter.

A line that cannot be read is an item with a reason; what cannot be read on after is Unreadable.
"""

import codecs
import csv
import json
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any, BinaryIO, NamedTuple

from qwed.cli.asking import MOST_TEXT

_PIECE = 1 << 16
_BLANK = " \t\r\n"
_BOM = codecs.BOM_UTF8
_FIELDS = ("query", "type", "operation", "params")
_LONG = f"it is longer than {MOST_TEXT >> 20} MiB"


class Format(StrEnum):
    """How the items are written down."""

    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    TEXT = "text"


class Item(NamedTuple):
    """One item: what is sent, or why it cannot be."""

    number: int
    """The line it stands on; in a JSON array its place, counted from 1."""
    body: dict[str, Any]
    wrong: str | None = None


class Unreadable(Exception):
    """The rest of the input cannot be read; the message says why and where."""


def format_of(name: str, head: bytes) -> Format:
    """By the name of the file, else by how it begins."""
    named = _ENDINGS.get(name.rpartition(".")[2].lower())
    if named is not None:
        return named
    return _BEGINNINGS.get(head.removeprefix(_BOM).lstrip()[:1], Format.TEXT)


def read_items(stream: BinaryIO, written: Format, kind: str | None) -> Iterator[Item]:
    """The items one after the other; `kind` is the type of those that name none."""
    for item in _READERS[written](stream):
        if item.wrong is None and kind is not None and item.body.get("type") is None:
            yield item._replace(body=item.body | {"type": kind})
        else:
            yield item


def _text(stream: BinaryIO) -> Iterator[Item]:
    for number, line in _lines(stream):
        if isinstance(line, Item):
            yield line
        elif line.strip():
            yield Item(number, {"query": line.strip()})


def _json_lines(stream: BinaryIO) -> Iterator[Item]:
    for number, line in _lines(stream):
        if isinstance(line, Item):
            yield line
        elif line.strip():
            yield _parsed(number, line)


def _parsed(number: int, line: str) -> Item:
    try:
        return _item(number, _DECODER.decode(line.strip()))
    except (ValueError, RecursionError) as error:
        return Item(number, {"query": line.strip()}, f"it is no JSON: {_reason(error)}")


def _item(number: int, value: Any) -> Item:
    """The item that a JSON value stands for: an object with a query, or the query alone."""
    if isinstance(value, str):
        return Item(number, {"query": value})
    if not isinstance(value, dict):
        return Item(number, {}, "an item is an object with `query`, `type`, `operation` and `params`, or a text")
    unknown = next((name for name in value if name not in _FIELDS), None)
    if unknown is not None:
        return Item(number, value, f"unknown field `{unknown[:60]}`: known are {', '.join(_FIELDS)}")
    return Item(number, value)


def _json_array(stream: BinaryIO) -> Iterator[Item]:
    window = _Window(stream)
    if window.next_character() != "[":
        raise Unreadable("it is no JSON array: begin it with `[`, or say --format jsonl")
    window.skip()
    number = 0
    while window.next_character() != "]":
        number += 1
        yield _item(number, window.value(number))
        if window.next_character() == ",":
            window.skip()
            if window.next_character() == "]":
                raise Unreadable(f"after item {number} there is a comma too many")
        elif window.next_character() != "]":
            raise Unreadable(f"after item {number} there must be `,` or `]`")
    window.skip()
    if window.next_character():
        raise Unreadable("there is more after the end of the array")


class _Window:
    """The part of a JSON text that is being read."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decode = codecs.getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._at = 0
        self._ended = False

    def next_character(self) -> str:
        """The next that is no blank; empty at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in _BLANK:
                self._at += 1
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._read_on()

    def skip(self) -> None:
        """Go past the next character."""
        self._at += 1

    def value(self, number: int) -> Any:
        """The next value, as soon as all of it is there."""
        while True:
            try:
                value, self._at = _DECODER.raw_decode(self._text, self._at)
            except (ValueError, RecursionError) as error:
                if self._ended or isinstance(error, RecursionError):
                    raise Unreadable(f"item {number} is no JSON: {_reason(error)}") from None
                if len(self._text) - self._at > MOST_TEXT:
                    raise Unreadable(f"item {number} is no JSON, or {_LONG}") from None
                self._read_on()
            else:
                return value

    def _read_on(self) -> None:
        piece = self._stream.read(_PIECE)
        self._ended = not piece
        try:
            self._text = self._text[self._at :] + self._decode.decode(piece, final=self._ended)
        except UnicodeDecodeError:
            raise Unreadable("it is no UTF-8 text") from None
        self._at = 0


def _csv(stream: BinaryIO) -> Iterator[Item]:
    csv.field_size_limit(MOST_TEXT)
    rows = csv.reader(_csv_lines(stream), strict=True)
    try:
        heads = [head.strip() for head in next(rows, [])]
        if not {"query", "operation"} & {*heads} or len(set(heads)) < len(heads):
            raise Unreadable("its first line must name the columns, `query` or `operation` among them and none twice")
        for row in rows:
            if row:
                yield _row(rows.line_num, heads, row)
    except csv.Error as error:
        raise Unreadable(f"line {rows.line_num} is no CSV: {error}") from None


def _row(number: int, heads: list[str], row: list[str]) -> Item:
    """`query` and `type` are what they are, every other column is a parameter; an empty cell says nothing."""
    given = {head: cell for head, cell in zip(heads, row, strict=False) if cell}
    body: dict[str, Any] = {name: given.pop(name) for name in ("query", "type") if name in given}
    if given:
        body["params"] = given
    if len(row) != len(heads):
        return Item(number, body, f"it has {len(row)} columns, the first line names {len(heads)}")
    return Item(number, body)


def _csv_lines(stream: BinaryIO) -> Iterator[str]:
    for number, line in _lines(stream):
        if isinstance(line, Item):
            raise Unreadable(f"line {number} cannot be read: {line.wrong}")
        yield line


def _lines(stream: BinaryIO) -> Iterator[tuple[int, "str | Item"]]:
    """Each line with its number; one that is too long or no text is an Item that says so."""
    number = 0
    while line := stream.readline(MOST_TEXT + 2):
        number += 1
        if number == 1:
            line = line.removeprefix(_BOM)
        if len(line) > MOST_TEXT and not line.endswith(b"\n"):
            _skip_line(stream)
            yield number, Item(number, {}, _LONG)
            continue
        try:
            yield number, line.decode()
        except UnicodeDecodeError:
            yield number, Item(number, {}, "it is no UTF-8 text")


def _skip_line(stream: BinaryIO) -> None:
    while (piece := stream.readline(_PIECE)) and not piece.endswith(b"\n"):
        pass


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a member stands there twice")
    return members


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return error.msg[:1].lower() + error.msg[1:]
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)[:100]


_DECODER = json.JSONDecoder(object_pairs_hook=_members, parse_constant=_no_constant)
_READERS: dict[Format, Callable[[BinaryIO], Iterator[Item]]] = {
    Format.JSON: _json_array,
    Format.JSONL: _json_lines,
    Format.CSV: _csv,
    Format.TEXT: _text,
}
_ENDINGS = {
    "json": Format.JSON,
    "jsonl": Format.JSONL,
    "ndjson": Format.JSONL,
    "csv": Format.CSV,
    "txt": Format.TEXT,
}
_BEGINNINGS = {b"[": Format.JSON, b"{": Format.JSONL}
