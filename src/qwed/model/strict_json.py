"""Strict JSON parser: no duplicate keys, no NaN or Infinity."""

import json
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from qwed.model.json_value import depth_of

MAX_DEPTH = 100
"""Levels of a document; a request has at most 64, and an answer contains it."""
_LONGEST_NAME = 60


class StrictJsonError(ValueError):
    """The text is not valid JSON or is ambiguous; the message says why."""


def parse_strict_json(data: bytes, what: str, *, exact: bool = False) -> Any:
    """Parse `data`, which errors call `what`; with `exact`, fractions become Decimal."""
    value = _parse(data, what, Decimal if exact else float)
    # The parser's own limit depends on the interpreter.
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH and depth_of(value) > MAX_DEPTH:
        raise StrictJsonError(f"{what} is nested too deeply")
    return value


def _parse(data: bytes, what: str, number: Callable[[str], Any]) -> Any:
    try:
        return json.loads(
            data.decode(), object_pairs_hook=_reject_duplicates, parse_constant=_reject_constant, parse_float=number
        )
    except StrictJsonError:
        raise
    except UnicodeDecodeError:
        raise StrictJsonError(f"{what} is not valid UTF-8") from None
    except RecursionError:
        raise StrictJsonError(f"{what} is nested too deeply") from None
    except (ValueError, ArithmeticError) as error:
        raise StrictJsonError(f"{what} is not valid JSON: {error}") from None


def unique_members(error: Callable[[str], Exception]) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    """Return an `object_pairs_hook` that raises `error(name)` for the name of a member that occurs twice."""

    def parse(members: list[tuple[str, Any]]) -> dict[str, Any]:
        parsed = dict(members)
        if len(parsed) < len(members):
            raise error(Counter(name for name, _ in members).most_common(1)[0][0])
        return parsed

    return parse


def rejected(error: Callable[[str], Exception]) -> Callable[[str], Any]:
    """Return a `parse_constant` that raises `error(text)` for NaN and Infinity."""

    def parse(text: str) -> Any:
        raise error(text)

    return parse


_reject_duplicates = unique_members(
    lambda name: StrictJsonError(f"the member `{ascii(name[:_LONGEST_NAME])[1:-1]}` occurs twice")
)
_reject_constant = rejected(lambda text: StrictJsonError(f"{text} is not a JSON number"))
