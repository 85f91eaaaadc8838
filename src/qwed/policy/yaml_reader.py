"""Strict reader of YAML and JSON documents: values with positions, bounded size and depth, no aliases, no tags."""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from qwed.policy.problem import PolicyProblem, Position, SourceText, shown

MAX_BYTES = 256 * 1024
"""Size of a policy document."""
MAX_DEPTH = 16
"""Levels of mappings and lists."""
MAX_VALUES = 50_000
"""Values of a document, keys included."""
_INTEGER = re.compile(r"[-+]?[0-9]{1,40}\Z")
_FRACTION = re.compile(r"[-+]?[0-9]{1,40}\.[0-9]{0,40}(?:[eE][-+]?[0-9]{1,3})?\Z|[-+]?[0-9]{1,40}[eE][-+]?[0-9]{1,3}\Z")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}


@dataclass(frozen=True, slots=True)
class Value:
    """A value of a document with its position."""

    at: Position
    content: Any
    """A scalar, a list of Values, or a dict of Entry by key."""
    raw_start: int = 0
    raw_end: int = 0
    style: str = ""
    """How a scalar is written: plain, `'`, `"`, `|` or `>`; flow or block of a list or mapping."""

    @property
    def kind(self) -> str:
        """The type as a person reads it."""
        return next((text for kind, text in _KINDS if isinstance(self.content, kind)), "nothing")

    def plain(self) -> Any:
        """Return the value without positions."""
        if isinstance(self.content, list):
            return [item.plain() for item in self.content]
        if isinstance(self.content, dict):
            return {key: entry.value.plain() for key, entry in self.content.items()}
        return self.content


@dataclass(frozen=True, slots=True)
class Entry:
    """A key of a mapping with its value."""

    at: Position
    value: Value


_KINDS: tuple[tuple[Any, str], ...] = (
    (bool, "a boolean"),
    (str, "text"),
    ((int, float), "a number"),
    (list, "a list"),
    (dict, "a mapping"),
)


class _RefusedError(Exception):
    """The document is refused; carries position and message."""

    def __init__(self, at: Position, message: str) -> None:
        super().__init__(message)
        self.at = at
        self.message = message


def read_yaml(source: SourceText) -> Value | PolicyProblem:
    """Return the one value of a document, or why it is refused."""
    try:
        _check_size(source.text)
        return _Builder(source.text).build(_events(source.text))
    except _RefusedError as refused:
        return source.problem(refused.at, refused.message)


def _check_size(text: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        at = _position_of(text, error.start)
        raise _RefusedError(at, "a policy must be valid UTF-8: this character is half of a surrogate pair") from None
    if size > MAX_BYTES:
        raise _RefusedError(Position(), f"a policy may have at most {MAX_BYTES} bytes, not {size}: split it")


def _position_of(text: str, index: int) -> Position:
    before = text[:index]
    return Position(before.count("\n") + 1, index - before.rfind("\n"))


@functools.cache
def _loader() -> Any:
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _events(text: str) -> Iterator[Any]:
    import yaml

    try:
        yield from yaml.parse(text, Loader=_loader())
    except yaml.reader.ReaderError as error:
        at = _position_of(text, _character_index(text, error.position))
        raise _RefusedError(at, "a policy must have no control characters") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = Position(mark.line + 1, mark.column + 1) if mark else Position()
        raise _RefusedError(at, f"not valid YAML: {error.problem or error.context}") from None


def _character_index(text: str, offset: int) -> int:
    """Return the index of the first control character: the C parser counts bytes, the other one characters."""
    bad = re.search(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", text)
    return bad.start() if bad else min(offset, len(text))


class _Builder:
    """Builds values from parser events without recursion."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._open: list[tuple[Value, list[Value]]] = []
        self._count = 0
        self._root: Value | None = None

    def build(self, events: Iterator[Any]) -> Value:
        documents = 0
        for event in events:
            name = type(event).__name__
            at = Position(event.start_mark.line + 1, event.start_mark.column + 1)
            if name == "DocumentStartEvent":
                documents += 1
                if documents > 1:
                    raise _RefusedError(at, "a file holds one policy: put the next one into a file of its own")
            self._take(name, event, at)
        if self._root is None:
            raise _RefusedError(Position(), "the document is empty: write `policy: NAME` first")
        return self._root

    def _take(self, name: str, event: Any, at: Position) -> None:
        if name == "AliasEvent":
            raise _RefusedError(at, f"an alias is not allowed: write the value of {shown('*' + event.anchor)} out")
        if getattr(event, "anchor", None):
            raise _RefusedError(at, f"an anchor is not allowed: remove {shown('&' + event.anchor)}")
        if getattr(event, "tag", None):
            raise _RefusedError(at, f"a tag is not allowed: remove {shown(event.tag)}")
        if name == "ScalarEvent":
            self._add(self._scalar(event, at))
        elif name in ("MappingStartEvent", "SequenceStartEvent"):
            self._start(Value(at, {} if name.startswith("M") else [], style="flow" if event.flow_style else "block"))
        elif name in ("MappingEndEvent", "SequenceEndEvent"):
            self._end()

    def _scalar(self, event: Any, at: Position) -> Value:
        content: Any = event.value
        if event.implicit[0] and not event.style:
            content = _resolve(event.value, at)
        style = event.style or "plain"
        return Value(at, content, event.start_mark.index, event.end_mark.index, style)

    def _start(self, value: Value) -> None:
        if len(self._open) >= MAX_DEPTH:
            raise _RefusedError(value.at, f"a policy may be nested at most {MAX_DEPTH} levels deep")
        self._open.append((value, []))

    def _end(self) -> None:
        value, parts = self._open.pop()
        if isinstance(value.content, list):
            value.content.extend(parts)
        else:
            _fill_mapping(value.content, parts)
        self._add(value)

    def _add(self, value: Value) -> None:
        self._count += 1
        if self._count > MAX_VALUES:
            raise _RefusedError(value.at, f"a policy may have at most {MAX_VALUES} values")
        if self._open:
            self._open[-1][1].append(value)
        else:
            self._root = value


def _fill_mapping(mapping: dict[str, Entry], parts: list[Value]) -> None:
    for key, value in zip(parts[::2], parts[1::2], strict=True):
        name = key.content
        if not isinstance(name, str):
            raise _RefusedError(key.at, f"a key must be text, not {key.kind}: put it in quotes")
        if name in mapping:
            raise _RefusedError(key.at, f"the key {shown(name)} occurs twice")
        mapping[name] = Entry(key.at, value)


def _resolve(text: str, at: Position) -> Any:
    """Return the value of a scalar without quotes: the words and numbers of JSON, otherwise text."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.match(text):
        return int(text)
    if _FRACTION.match(text):
        number = float(text)
        if number in (float("inf"), float("-inf")):
            raise _RefusedError(at, f"the number {shown(text)} is too large")
        return number
    return text
