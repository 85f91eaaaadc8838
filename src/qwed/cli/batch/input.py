"""Input parser of a batch: items are read one by one, so that the size of the file does not matter.

A line that cannot be read becomes an item with an error; input that cannot be read any further raises BatchInputError.
"""

import codecs
import csv
import json
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any, BinaryIO, NamedTuple

from qwed.cli.backend import MAX_TEXT
from qwed.model.strict_json import rejected, unique_members

_CHUNK = 1 << 16
_BLANK = " \t\r\n"
_BOM = codecs.BOM_UTF8
_FIELDS = ("query", "type", "operation", "params")
_TOO_LONG = f"it is longer than {MAX_TEXT >> 20} MiB"


class InputFormat(StrEnum):
    """Input formats of a batch."""

    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    TEXT = "text"


class BatchItem(NamedTuple):
    """Item to verify, or the reason why it cannot be sent."""

    number: int
    """Line of the item; in a JSON array its position, counted from 1."""
    body: dict[str, Any]
    error: str | None = None


class BatchInputError(Exception):
    """The rest of the input cannot be read; the message says why and where."""


def format_of(name: str, head: bytes) -> InputFormat:
    """Return the format by the extension of the file, or else by its first byte."""
    named = _FORMAT_BY_EXTENSION.get(name.rpartition(".")[2].lower())
    if named is not None:
        return named
    return _FORMAT_BY_FIRST_BYTE.get(head.removeprefix(_BOM).lstrip()[:1], InputFormat.TEXT)


def read_items(stream: BinaryIO, input_format: InputFormat, kind: str | None) -> Iterator[BatchItem]:
    """Yield the items; `kind` is the type of those without one."""
    for item in _READERS[input_format](stream):
        if item.error is None and kind is not None and item.body.get("type") is None:
            yield item._replace(body=item.body | {"type": kind})
        else:
            yield item


def _read_text(stream: BinaryIO) -> Iterator[BatchItem]:
    for number, line in _lines(stream):
        if isinstance(line, BatchItem):
            yield line
        elif line.strip():
            yield BatchItem(number, {"query": line.strip()})


def _read_json_lines(stream: BinaryIO) -> Iterator[BatchItem]:
    for number, line in _lines(stream):
        if isinstance(line, BatchItem):
            yield line
        elif line.strip():
            yield _parse_line(number, line)


def _parse_line(number: int, line: str) -> BatchItem:
    try:
        return _to_item(number, _DECODER.decode(line.strip()))
    except (ValueError, RecursionError) as error:
        return BatchItem(number, {"query": line.strip()}, f"it is not valid JSON: {_reason(error)}")


def _to_item(number: int, value: Any) -> BatchItem:
    """Return the item for a JSON value: an object with a query, or the query alone."""
    if isinstance(value, str):
        return BatchItem(number, {"query": value})
    if not isinstance(value, dict):
        return BatchItem(
            number, {}, "an item must be an object with `query`, `type`, `operation` and `params`, or a string"
        )
    unknown = next((name for name in value if name not in _FIELDS), None)
    if unknown is not None:
        return BatchItem(number, value, f"unknown field `{unknown[:60]}`: the fields are {', '.join(_FIELDS)}")
    return BatchItem(number, value)


def _read_json_array(stream: BinaryIO) -> Iterator[BatchItem]:
    window = _JsonArrayReader(stream)
    if window.next_character() != "[":
        raise BatchInputError("it is not a JSON array: begin it with `[`, or use --format jsonl")
    window.skip()
    number = 0
    while window.next_character() != "]":
        number += 1
        yield _to_item(number, window.value(number))
        if window.next_character() == ",":
            window.skip()
            if window.next_character() == "]":
                raise BatchInputError(f"unexpected comma after item {number}")
        elif window.next_character() != "]":
            raise BatchInputError(f"expected `,` or `]` after item {number}")
    window.skip()
    if window.next_character():
        raise BatchInputError("unexpected text after the end of the array")


class _JsonArrayReader:
    """Incremental reader of a JSON array."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decode = codecs.getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._at = 0
        self._ended = False

    def next_character(self) -> str:
        """Return the next character that is not a blank; empty at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in _BLANK:
                self._at += 1
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._read_on()

    def skip(self) -> None:
        """Skip the next character."""
        self._at += 1

    def value(self, number: int) -> Any:
        """Return the next value, reading on until it is complete."""
        while True:
            try:
                value, self._at = _DECODER.raw_decode(self._text, self._at)
            except (ValueError, RecursionError) as error:
                if self._ended or isinstance(error, RecursionError):
                    raise BatchInputError(f"item {number} is not valid JSON: {_reason(error)}") from None
                if len(self._text) - self._at > MAX_TEXT:
                    raise BatchInputError(f"item {number} is not valid JSON, or {_TOO_LONG}") from None
                self._read_on()
            else:
                return value

    def _read_on(self) -> None:
        piece = self._stream.read(_CHUNK)
        self._ended = not piece
        try:
            self._text = self._text[self._at :] + self._decode.decode(piece, final=self._ended)
        except UnicodeDecodeError:
            raise BatchInputError("it is not valid UTF-8") from None
        self._at = 0


def _read_csv(stream: BinaryIO) -> Iterator[BatchItem]:
    csv.field_size_limit(MAX_TEXT)
    rows = csv.reader(_csv_lines(stream), strict=True)
    try:
        heads = [head.strip() for head in next(rows, [])]
        if not {"query", "operation"} & {*heads} or len(set(heads)) < len(heads):
            raise BatchInputError(
                "its first line must name the columns, with `query` or `operation` and without duplicates"
            )
        for row in rows:
            if row:
                yield _csv_item(rows.line_num, heads, row)
    except csv.Error as error:
        raise BatchInputError(f"line {rows.line_num} is not valid CSV: {error}") from None


def _csv_item(number: int, heads: list[str], row: list[str]) -> BatchItem:
    """Return the item for a row: columns other than `query` and `type` are parameters; an empty cell is left out."""
    cells = {head: cell for head, cell in zip(heads, row, strict=False) if cell}
    body: dict[str, Any] = {name: cells.pop(name) for name in ("query", "type") if name in cells}
    if cells:
        body["params"] = cells
    if len(row) != len(heads):
        return BatchItem(number, body, f"it has {len(row)} columns, but the first line names {len(heads)}")
    return BatchItem(number, body)


def _csv_lines(stream: BinaryIO) -> Iterator[str]:
    for number, line in _lines(stream):
        if isinstance(line, BatchItem):
            raise BatchInputError(f"line {number} cannot be read: {line.error}")
        yield line


def _lines(stream: BinaryIO) -> Iterator[tuple[int, "str | BatchItem"]]:
    """Yield each line with its number; a line that is too long or not UTF-8 is yielded as an item with an error."""
    number = 0
    while line := stream.readline(MAX_TEXT + 2):
        number += 1
        if number == 1:
            line = line.removeprefix(_BOM)
        if len(line) > MAX_TEXT and not line.endswith(b"\n"):
            _skip_line(stream)
            yield number, BatchItem(number, {}, _TOO_LONG)
            continue
        try:
            yield number, line.decode()
        except UnicodeDecodeError:
            yield number, BatchItem(number, {}, "it is not valid UTF-8")


def _skip_line(stream: BinaryIO) -> None:
    while (piece := stream.readline(_CHUNK)) and not piece.endswith(b"\n"):
        pass


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return error.msg[:1].lower() + error.msg[1:]
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)[:100]


_DECODER = json.JSONDecoder(
    object_pairs_hook=unique_members(lambda _: ValueError("a member occurs twice")),
    parse_constant=rejected(lambda text: ValueError(f"{text} is not valid JSON")),
)
_READERS: dict[InputFormat, Callable[[BinaryIO], Iterator[BatchItem]]] = {
    InputFormat.JSON: _read_json_array,
    InputFormat.JSONL: _read_json_lines,
    InputFormat.CSV: _read_csv,
    InputFormat.TEXT: _read_text,
}
_FORMAT_BY_EXTENSION = {
    "json": InputFormat.JSON,
    "jsonl": InputFormat.JSONL,
    "ndjson": InputFormat.JSONL,
    "csv": InputFormat.CSV,
    "txt": InputFormat.TEXT,
}
_FORMAT_BY_FIRST_BYTE = {b"[": InputFormat.JSON, b"{": InputFormat.JSONL}
