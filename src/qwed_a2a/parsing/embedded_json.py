"""JSON embedded in text: the whole text, or objects in its prose."""

import json
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from qwed.model.strict_json import unique_members
from qwed_a2a.parsing.parse_limits import MessageParseError, ParseBudget

_OBJECT = re.compile(r"[{]\s*[\"}]")
_QUOTE = r"(?:\\?[\"'\u201c\u201d]|&quot;|&#34;)"
_MARKED = re.compile(
    rf"{_QUOTE}(?P<quoted>claimed[_ -]?total|line[_ -]?items|assertions){_QUOTE}\s*:"
    r"|\b(?P<bare>claimed_?total)\b\s{0,8}[:=>]\s{0,8}[\"'$-]?[0-9]",
    re.IGNORECASE,
)
"""Also as YAML, TOML, XML and JavaScript write it: a known member name and a number."""
_MARKS = ("claimed", "items", "assertions")
MAX_FAILED_CHARACTERS = 1_048_576
"""Characters that may be read in vain, because an object that begins in prose does not end."""


class EmbeddedObject(NamedTuple):
    """Object in prose and its position."""

    value: Any
    start: int
    end: int


def parse_whole(text: str) -> tuple[Any] | None:
    """Return the JSON value of the text in a tuple, or None if it is not JSON; raise MessageParseError if it cannot be
    read safely."""
    if text[:1] not in '{["':
        return None
    try:
        return (_DECODER.decode(text),)
    except json.JSONDecodeError:
        return None
    except _DECODE_FAILURES as error:
        raise _limit_error(error) from None


_DECODE_FAILURES = (RecursionError, ValueError)


def _limit_error(error: Exception) -> MessageParseError:
    if isinstance(error, RecursionError):
        return MessageParseError("JSON is nested too deep, send it flat")
    return MessageParseError("a number has too many digits, send it as text")


def find_objects(text: str, budget: ParseBudget) -> Iterator[EmbeddedObject]:
    """Yield the outermost objects in prose."""
    position, failed_characters = 0, 0
    while (start := _OBJECT.search(text, position)) is not None:
        budget.take("objects")
        try:
            value, end = _DECODER.raw_decode(text, start.start())
        except json.JSONDecodeError as error:
            position = start.start() + 1
            # An unterminated string is read to the end of the text, whatever position the error reports.
            failed_characters += (len(text) if error.msg.startswith("Unterminated") else error.pos) - position
            if failed_characters > MAX_FAILED_CHARACTERS:
                raise MessageParseError("too many objects begin and do not end, send them as data") from None
        except _DECODE_FAILURES as error:
            raise _limit_error(error) from None
        else:
            yield EmbeddedObject(value, start.start(), end)
            position = end


def reject_unparsed_members(prose: str) -> None:
    """Raise MessageParseError if prose contains a member that guards check, in a form that is not JSON."""
    small = prose.lower()
    match = _MARKED.search(prose) if any(word in small for word in _MARKS) else None
    if match is not None:
        raise MessageParseError(
            f"`{match['quoted'] or match['bare']}` appears in text that is not JSON, send it as data"
        )


def _parse_float(text: str) -> float | str:
    """Return the number, or its digits as text if a double does not hold them."""
    value = float(text)
    try:
        return value if Decimal(repr(value)) == Decimal(text) else text
    except InvalidOperation:
        return text


_DECODER = json.JSONDecoder(
    object_pairs_hook=unique_members(
        lambda name: MessageParseError(
            f"`{name[:40]}` appears twice in one object, and readers differ in which one they use"
        )
    ),
    parse_float=_parse_float,
    parse_constant=str,
    strict=False,
)
