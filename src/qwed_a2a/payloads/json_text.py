"""JSON in text: the whole of it, or objects that stand in its prose."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from qwed_a2a.payloads.budget import Budget, Over

_OBJECT = re.compile(r"[{]\s*[\"}]")
_QUOTE = r"(?:\\?[\"'\u201c\u201d]|&quot;|&#34;)"
_MARKED = re.compile(
    rf"{_QUOTE}(?P<quoted>claimed[_ -]?total|line[_ -]?items|assertions){_QUOTE}\s*:"
    r"|\b(?P<bare>claimed_?total)\b\s{0,8}[:=>]\s{0,8}[\"'$-]?[0-9]",
    re.IGNORECASE,
)
"""Also as YAML, TOML, XML and JavaScript write it: a name of ours and a number."""
_MARKS = ("claimed", "items", "assertions")
MAX_WASTED = 1_048_576
"""Characters that may be read in vain, because an object that begins in prose has no end."""


class Found(NamedTuple):
    """An object in prose, and where it stands."""

    value: Any
    start: int
    end: int


def whole(text: str) -> tuple[Any] | None:
    """The JSON value that the text is, None where it is no JSON; Over where that cannot be read safely."""
    if text[:1] not in '{["':
        return None
    try:
        return (_DECODER.decode(text),)
    except json.JSONDecodeError:
        return None
    except _SURPRISES as surprise:
        raise _beyond(surprise) from None


_SURPRISES = (RecursionError, ValueError)


def _beyond(surprise: Exception) -> Over:
    if isinstance(surprise, RecursionError):
        return Over("JSON is nested too deep, send it flat")
    return Over("a number has too many digits, send it as text")


def inside(text: str, budget: Budget) -> Iterator[Found]:
    """The objects that stand in prose, the outermost ones."""
    at, wasted = 0, 0
    while (start := _OBJECT.search(text, at)) is not None:
        budget.take("objects")
        try:
            value, end = _DECODER.raw_decode(text, start.start())
        except json.JSONDecodeError as wrong:
            at = start.start() + 1
            # A text that does not end is read to the end of all, whatever the error says.
            wasted += (len(text) if wrong.msg.startswith("Unterminated") else wrong.pos) - at
            if wasted > MAX_WASTED:
                raise Over("too many objects begin and do not end, send them as data") from None
        except _SURPRISES as surprise:
            raise _beyond(surprise) from None
        else:
            yield Found(value, start.start(), end)
            at = end


def require_readable(prose: str) -> None:
    """Over where prose has a member that is verified, in a form that is no JSON."""
    small = prose.lower()
    marked = _MARKED.search(prose) if any(word in small for word in _MARKS) else None
    if marked is not None:
        raise Over(f"`{marked['quoted'] or marked['bare']}` stands in something that is no JSON, send it as data")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise Over(f"`{twice[:40]}` stands twice in one object, and readers differ in which they take")
    return members


def _number(text: str) -> float | str:
    """The number; its digits as text where a double does not hold them."""
    value = float(text)
    try:
        return value if Decimal(repr(value)) == Decimal(text) else text
    except InvalidOperation:
        return text


_DECODER = json.JSONDecoder(object_pairs_hook=_members, parse_float=_number, parse_constant=str, strict=False)
