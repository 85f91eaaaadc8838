"""The stats engine's files: bytes to a sheet of text cells, by what the bytes are and never by what they are called."""

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from qwed.engines.uploads import Refused, sniff

FORMATS = ("csv", "tsv", "json", "parquet")
MAX_COLUMNS = 1_000
_TOO_WIDE = f"the file has more than {MAX_COLUMNS} columns"
_NO_TEXT = "the file holds control characters, it is no table of text"
_DELIMITERS = ",;\t|"
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_NUMBER = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*")


class Sheet(NamedTuple):
    """A file ready to be loaded: `names` are its header, `kinds` what a JSON file says of its columns."""

    format: str
    content: bytes
    names: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    delimiter: str = ","
    records: int | None = None
    """How many records a second reader counts, the header included, where quotes make counting hard."""


def open_sheet(content: bytes, declared: object) -> Sheet:
    """The sheet in a file; raises Refused where it is none, or not of the declared format."""
    if declared is not None and declared not in FORMATS:
        raise Refused(f"unknown format `{str(declared)[:20]}`, known are {', '.join(FORMATS)}")
    kind = sniff(content)
    if kind == "parquet":
        return _parquet(content, declared)
    if declared == "parquet":
        raise Refused("the file is no parquet")
    if kind not in ("unknown", "exe", "bmp"):
        raise Refused(f"the file is {kind}: send {', '.join(FORMATS)} as it is, not packed")
    text = _text(content)
    looks = "json" if text.lstrip()[:1] in ("[", "{") else "csv"
    if (declared or looks) == "json":
        return _json(text)
    return _separated(text, "\t" if declared == "tsv" else None)


def _parquet(content: bytes, declared: object) -> Sheet:
    if declared not in (None, "parquet"):
        raise Refused(f"the file is parquet and not {declared}")
    if len(content) < 12 or not content.endswith(b"PAR1"):
        raise Refused("the parquet file is cut short")
    return Sheet("parquet", content)


def _text(content: bytes) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Refused("the file is not UTF-8 text: save it as UTF-8") from None
    if _CONTROLS.search(text):
        raise Refused(_NO_TEXT)
    text = text.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    if not text.strip():
        raise Refused("the file is empty")
    return text


def _separated(text: str, delimiter: str | None) -> Sheet:
    first = text.partition("\n")[0]
    delimiter = delimiter or max(_DELIMITERS, key=lambda each: (first.count(each), -_DELIMITERS.index(each)))
    records = None
    try:
        header = next(_records(text, delimiter))
        if '"' in text:
            records = sum(1 for record in _records(text, delimiter) if record)
    except (csv.Error, StopIteration) as error:
        raise Refused(f"the file cannot be read as separated values: {error}") from None
    names = _names(header)
    if all(_NUMBER.fullmatch(name) for name in names):
        raise Refused("the first line must hold the names of the columns")
    if len(names) == 1 and "\n\n" in text:
        raise Refused("blank lines in a file of one column may be missing values or nothing: remove them")
    kind = "tsv" if delimiter == "\t" else "csv"
    return Sheet(kind, text.encode(), names, ("",) * len(names), delimiter, records)


def _records(text: str, delimiter: str) -> Any:
    csv.field_size_limit(1 << 24)
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)


def _names(header: Iterable[str]) -> tuple[str, ...]:
    names = tuple(name.strip() for name in header)
    if len(names) > MAX_COLUMNS:
        raise Refused(_TOO_WIDE)
    return names


class _Number(str):
    """A number of a JSON file in its own digits."""

    __slots__ = ()


def _json(text: str) -> Sheet:
    rows = _objects(text)
    names = tuple(dict.fromkeys(name for row in rows for name in row))
    if len(names) > MAX_COLUMNS:
        raise Refused(_TOO_WIDE)
    if not names:
        raise Refused('the file holds no rows: send a list of flat objects such as `[{"sales": 42}]`')
    kinds = tuple(_kind(row.get(name) for row in rows) for name in names)
    lines = [",".join(map(_cell, names))]
    lines.extend(",".join([_cell(row.get(name)) for name in names]) for row in rows)
    text = "\n".join([*lines, ""])
    if _CONTROLS.search(text):
        raise Refused(_NO_TEXT)
    return Sheet("json", text.encode(), names, kinds, ",", len(lines))


def _objects(text: str) -> list[Mapping[str, Any]]:
    try:
        value = _lines(text) if text.startswith("{") else _load(text)
    except (ValueError, RecursionError) as error:
        raise Refused(f"the file is no JSON: {str(error)[:80]}") from None
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise Refused('a JSON file must be a list of flat objects such as `[{"sales": 42}]`')
    return value


def _lines(text: str) -> Any:
    """One object on each line, or one object that holds the list."""
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) > 1 and all(line.lstrip().startswith("{") and line.rstrip().endswith("}") for line in lines):
        return [_load(line) for line in lines]
    value = _load(text)
    members = list(value.values())
    return members[0] if len(members) == 1 and isinstance(members[0], list) else [value]


def _load(text: str) -> Any:
    return json.loads(text, parse_float=_Number, parse_int=_Number, parse_constant=_constant, object_pairs_hook=_object)


def _constant(name: str) -> Any:
    raise ValueError(f"`{name}` is no number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return found


_KINDS = {_Number: "number", str: "text", bool: "boolean"}


def _kind(values: Iterable[Any]) -> str:
    kinds = {_KINDS.get(each, "nested") for each in set(map(type, values)) - {type(None)}}
    if "nested" in kinds:
        return "nested"
    return kinds.pop() if len(kinds) == 1 else "text"


def _cell(value: Any) -> str:
    """The cell as quoted text; nothing at all for a null, which an empty text is not."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = value if isinstance(value, str) else "nested"
    doubled = text.replace('"', '""').replace("\r", "\n")
    return f'"{doubled}"'
