"""Table file parser of the stats engine; the format is detected from the bytes, never from a file name."""

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from qwed.engines.uploads import UploadError, sniff
from qwed.model.strict_json import rejected, unique_members

FORMATS = ("csv", "tsv", "json", "parquet")
MAX_COLUMNS = 1_000
_TOO_WIDE = f"the file has more than {MAX_COLUMNS} columns"
_NOT_TEXT = "the file holds control characters and is not a text table"
_DELIMITERS = ",;\t|"
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_NUMBER = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*")


class Sheet(NamedTuple):
    """Parsed file: `names` is the header, `kinds` the column types declared by a JSON file."""

    format: str
    content: bytes
    names: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    delimiter: str = ","
    records: int | None = None
    """Record count by Python's csv reader, header included, if quotes make counting ambiguous."""


def open_sheet(content: bytes, declared: object) -> Sheet:
    """Parse the file into a sheet. Raise UploadError if it is not a table or not of the declared format."""
    if declared is not None and declared not in FORMATS:
        raise UploadError(f"unknown format `{str(declared)[:20]}`, known are {', '.join(FORMATS)}")
    kind = sniff(content)
    if kind == "parquet":
        return _parquet_sheet(content, declared)
    if declared == "parquet":
        raise UploadError("the file is not parquet")
    if kind not in ("unknown", "exe", "bmp"):
        raise UploadError(f"the file is {kind}: send {', '.join(FORMATS)} as it is, not packed")
    text = _decode_text(content)
    looks = "json" if text.lstrip()[:1] in ("[", "{") else "csv"
    if (declared or looks) == "json":
        return _json_sheet(text)
    return _csv_sheet(text, "\t" if declared == "tsv" else None)


def _parquet_sheet(content: bytes, declared: object) -> Sheet:
    if declared not in (None, "parquet"):
        raise UploadError(f"the file is parquet and not {declared}")
    if len(content) < 12 or not content.endswith(b"PAR1"):
        raise UploadError("the parquet file is cut short")
    return Sheet("parquet", content)


def _decode_text(content: bytes) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UploadError("the file is not UTF-8 text: save it as UTF-8") from None
    if _CONTROLS.search(text):
        raise UploadError(_NOT_TEXT)
    text = text.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    if not text.strip():
        raise UploadError("the file is empty")
    return text


def _csv_sheet(text: str, delimiter: str | None) -> Sheet:
    first = text.partition("\n")[0]
    delimiter = delimiter or max(_DELIMITERS, key=lambda sign: (first.count(sign), -_DELIMITERS.index(sign)))
    records = None
    try:
        header = next(_records(text, delimiter))
        if '"' in text:
            records = sum(1 for record in _records(text, delimiter) if record)
    except (csv.Error, StopIteration) as error:
        raise UploadError(f"the file cannot be read as separated values: {error}") from None
    names = _column_names(header)
    if all(_NUMBER.fullmatch(name) for name in names):
        raise UploadError("the first line must hold the names of the columns")
    if len(names) == 1 and "\n\n" in text:
        raise UploadError("blank lines in a file of one column may be missing values or nothing: remove them")
    kind = "tsv" if delimiter == "\t" else "csv"
    return Sheet(kind, text.encode(), names, ("",) * len(names), delimiter, records)


def _records(text: str, delimiter: str) -> Any:
    csv.field_size_limit(1 << 24)
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)


def _column_names(header: Iterable[str]) -> tuple[str, ...]:
    names = tuple(name.strip() for name in header)
    if len(names) > MAX_COLUMNS:
        raise UploadError(_TOO_WIDE)
    return names


class _JsonNumber(str):
    """Number of a JSON file as its original digits."""

    __slots__ = ()


def _json_sheet(text: str) -> Sheet:
    rows = _parse_json_rows(text)
    names = tuple(dict.fromkeys(name for row in rows for name in row))
    if len(names) > MAX_COLUMNS:
        raise UploadError(_TOO_WIDE)
    if not names:
        raise UploadError('the file holds no rows: send a list of flat objects such as `[{"sales": 42}]`')
    kinds = tuple(_column_kind(row.get(name) for row in rows) for name in names)
    lines = [",".join(map(_csv_cell, names))]
    lines.extend(",".join([_csv_cell(row.get(name)) for name in names]) for row in rows)
    text = "\n".join([*lines, ""])
    if _CONTROLS.search(text):
        raise UploadError(_NOT_TEXT)
    return Sheet("json", text.encode(), names, kinds, ",", len(lines))


def _parse_json_rows(text: str) -> list[Mapping[str, Any]]:
    try:
        value = _parse_json_lines(text) if text.startswith("{") else _load_json(text)
    except (ValueError, RecursionError) as error:
        raise UploadError(f"the file is not valid JSON: {str(error)[:80]}") from None
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise UploadError('a JSON file must be a list of flat objects such as `[{"sales": 42}]`')
    return value


def _parse_json_lines(text: str) -> Any:
    """Parse one object per line, or one object that contains the list."""
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) > 1 and all(line.lstrip().startswith("{") and line.rstrip().endswith("}") for line in lines):
        return [_load_json(line) for line in lines]
    value = _load_json(text)
    members = list(value.values())
    return members[0] if len(members) == 1 and isinstance(members[0], list) else [value]


_load_json = json.JSONDecoder(
    parse_float=_JsonNumber,
    parse_int=_JsonNumber,
    parse_constant=rejected(lambda text: ValueError(f"`{text}` is not a number")),
    object_pairs_hook=unique_members(lambda _: ValueError("duplicate name in an object")),
).decode


_KINDS = {_JsonNumber: "number", str: "text", bool: "boolean"}


def _column_kind(values: Iterable[Any]) -> str:
    kinds = {_KINDS.get(python_type, "nested") for python_type in set(map(type, values)) - {type(None)}}
    if "nested" in kinds:
        return "nested"
    return kinds.pop() if len(kinds) == 1 else "text"


def _csv_cell(value: Any) -> str:
    """Return the cell as quoted text; null is an empty cell, an empty text a pair of quotes."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = value if isinstance(value, str) else "nested"
    doubled = text.replace('"', '""').replace("\r", "\n")
    return f'"{doubled}"'
