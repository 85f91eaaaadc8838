"""The stats engine's filters: conditions on rows, read into a tree and written as SQL with its values apart."""

import datetime
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from qwed.engines._stats.types import NUMBERS, TIMES, Typed
from qwed.engines._stats.words import Cursor, phrases
from qwed.engines.uploads import Refused

Comparison = Callable[[Cursor], str | None]
MAX_DEPTH = 20
_MISSING = phrases({"null|missing|empty|blank|not available": True})
_MATCHES = phrases(
    {
        "like": "like",
        "contains|contain|containing|includes": "contains",
        "starts with|begins with|starting with": "starts_with",
        "ends with|ending with": "ends_with",
    }
)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2})?)?")


class Literal(NamedTuple):
    """A value of a filter; `bare` where it stands without quotes and so must occur in the file."""

    text: str
    kind: str
    bare: bool = False


class Atom(NamedTuple):
    """One test of one column."""

    column: str
    operator: str
    values: tuple[Literal, ...] = ()
    other: str = ""
    negative: bool = False


class Joined(NamedTuple):
    """Conditions under `AND`, `OR` or `NOT`."""

    operator: str
    parts: tuple[Any, ...]


Condition = Atom | Joined


def condition(cursor: Cursor, comparison: Comparison, depth: int = 0) -> Condition:
    """The condition that stands here: `or` binds less than `and`, `and` less than `not`."""
    if depth > MAX_DEPTH:
        raise cursor.fail(f"at most {MAX_DEPTH} brackets")
    parts = [_conjunction(cursor, comparison, depth)]
    while cursor.take("or"):
        parts.append(_conjunction(cursor, comparison, depth))
    return parts[0] if len(parts) == 1 else Joined("OR", tuple(parts))


def _conjunction(cursor: Cursor, comparison: Comparison, depth: int) -> Condition:
    parts = [_negation(cursor, comparison, depth)]
    while cursor.take("and"):
        parts.append(_negation(cursor, comparison, depth))
    return parts[0] if len(parts) == 1 else Joined("AND", tuple(parts))


def _negation(cursor: Cursor, comparison: Comparison, depth: int) -> Condition:
    if cursor.take("not"):
        return Joined("NOT", (_negation(cursor, comparison, depth + 1),)) if depth < MAX_DEPTH else _too_deep(cursor)
    if cursor.take("("):
        inner = condition(cursor, comparison, depth + 1)
        if not cursor.take(")"):
            raise cursor.fail("`)`")
        return inner
    return _atom(cursor, comparison)


def _too_deep(cursor: Cursor) -> Condition:
    raise cursor.fail(f"at most {MAX_DEPTH} brackets")


def _atom(cursor: Cursor, comparison: Comparison) -> Atom:
    cursor.skip("the")
    column = cursor.column()
    if column is None:
        raise cursor.fail("the name of a column")
    if cursor.here.kind == "string":
        return Atom(column.name, "=", (_literal(cursor),))
    missing = _missing(cursor)
    if missing is not None:
        return Atom(column.name, "null", negative=not missing)
    start = cursor.at
    being = cursor.take("is") or cursor.take("are") or cursor.take("does") or cursor.take("was")
    negative = cursor.take("not")
    if cursor.take("in") or (being and cursor.take("one", "of")):
        return Atom(column.name, "in", _list(cursor), negative=negative)
    matching = cursor.phrase(_MATCHES)
    if matching:
        return Atom(column.name, matching, (_literal(cursor),), negative=negative)
    if not being and negative and cursor.take("between"):
        return Atom(column.name, "between", _range(cursor), negative=True)
    cursor.at = start
    return _compared(cursor, column.name, comparison)


def _missing(cursor: Cursor) -> bool | None:
    """True for `is null`, false for `is not null`, None where neither stands here."""
    start = cursor.at
    if cursor.take("is") or cursor.take("are") or cursor.take("was"):
        negative = cursor.take("not")
        if cursor.phrase(_MISSING):
            return not negative
    cursor.at = start
    return None


def _compared(cursor: Cursor, name: str, comparison: Comparison) -> Atom:
    operator = comparison(cursor)
    if operator is None or operator == "about":
        raise cursor.fail("a comparison such as `=`, `>` or `is`")
    if operator in ("between", "outside"):
        return Atom(name, "between", _range(cursor), negative=operator == "outside")
    if cursor.here.kind == "word" and cursor.here.text.casefold() not in ("true", "false"):
        other = cursor.column()
        if other is not None:
            return Atom(name, operator, other=other.name)
    return Atom(name, operator, (_literal(cursor),))


def _range(cursor: Cursor) -> tuple[Literal, Literal]:
    low = _literal(cursor)
    if not cursor.take("and") and not cursor.take("to"):
        raise cursor.fail("`and`")
    return low, _literal(cursor)


def _list(cursor: Cursor) -> tuple[Literal, ...]:
    if not cursor.take("("):
        raise cursor.fail("a list such as `('EU', 'US')`")
    values = [_literal(cursor)]
    while cursor.take(","):
        values.append(_literal(cursor))
    if not cursor.take(")"):
        raise cursor.fail("`)`")
    return tuple(values)


def _literal(cursor: Cursor) -> Literal:
    token = cursor.here
    if token.kind in ("string", "name", "date"):
        cursor.at += 1
        return Literal(token.text, "text")
    if token.kind == "number":
        number = cursor.number()
        return Literal(token.text if number is None or number == Decimal(token.text) else str(number), "number")
    if token.kind == "word" and token.text.casefold() in ("true", "false"):
        cursor.at += 1
        return Literal(token.text.casefold(), "boolean")
    if token.kind == "word":
        cursor.at += 1
        return Literal(token.text, "text", bare=True)
    raise cursor.fail("a value: numbers as they are, text in quotes")


def denies(found: Condition | None) -> bool:
    """Whether a condition holds of rows because something does not."""
    if isinstance(found, Joined):
        return found.operator == "NOT" or any(denies(part) for part in found.parts)
    return found is not None and found.operator != "null" and (found.negative or found.operator == "!=")


class Filter(NamedTuple):
    """SQL with `?` for its values."""

    sql: str
    values: tuple[Any, ...] = ()
    bare: tuple[tuple[Typed, str], ...] = ()
    """Texts written without quotes, each with the column they must occur in."""


def written(found: Condition | None, columns: Mapping[str, Typed]) -> Filter:
    """The condition as SQL; raises Refused where a value cannot be compared with its column."""
    if found is None:
        return Filter("true")
    if isinstance(found, Atom):
        return _written_atom(found, columns)
    parts = [written(part, columns) for part in found.parts]
    values = tuple(value for part in parts for value in part.values)
    bare = tuple(each for part in parts for each in part.bare)
    if found.operator == "NOT":
        return Filter(f"NOT ({parts[0].sql})", values, bare)
    return Filter(f" {found.operator} ".join(f"({part.sql})" for part in parts), values, bare)


_TEXT_TESTS = {"like": "{0} LIKE ?", "contains": "contains({0}, ?)", "starts_with": "starts_with({0}, ?)"}
_TEXT_TESTS["ends_with"] = "suffix({0}, ?)"


def _written_atom(atom: Atom, columns: Mapping[str, Typed]) -> Filter:
    column = columns[atom.column]
    name = column.sql
    if atom.operator == "null":
        return Filter(f"{name} IS {'NOT ' if atom.negative else ''}NULL")
    if atom.other:
        return Filter(f"{name} {atom.operator} {_comparable(column, columns[atom.other]).sql}")
    values = tuple(_bound(column, literal, atom.operator) for literal in atom.values)
    bare = tuple((column, literal.text) for literal in atom.values if literal.bare)
    no = "NOT " if atom.negative else ""
    if atom.operator in _TEXT_TESTS:
        test = _TEXT_TESTS[atom.operator].format(name)
        return Filter(f"{no}{test}" if not no else f"NOT ({test})", values, bare)
    if atom.operator == "in":
        return Filter(f"{name} {no}IN ({', '.join('?' * len(values))})", values, bare)
    if atom.operator == "between":
        return Filter(f"{name} {no}BETWEEN ? AND ?", values, bare)
    return Filter(f"{name} {atom.operator} ?", values, bare)


def _comparable(one: Typed, other: Typed) -> Typed:
    for kinds in (NUMBERS, TIMES, frozenset({"text"}), frozenset({"boolean"})):
        if one.kind in kinds and other.kind in kinds:
            return other
    raise Refused(f"`{one.name[:60]}` holds {one.kind} and `{other.name[:60]}` holds {other.kind}")


_TRUTHS = {"true": True, "false": False}


def _bound(column: Typed, literal: Literal, operator: str) -> Any:
    """The value as the column's own type, so that nothing is compared as something else."""
    text = literal.text
    if operator in _TEXT_TESTS and column.kind != "text":
        raise Refused(f"the column `{column.name[:60]}` holds {column.kind} and is not searched as text")
    if column.kind in NUMBERS and literal.kind == "number":
        return float(text) if column.kind == "double" else Decimal(text)
    if column.kind == "boolean" and text.casefold() in _TRUTHS:
        return _TRUTHS[text.casefold()]
    if column.kind in TIMES and _DATE.fullmatch(text):
        return _moment(column, text, operator)
    # The order of texts is a matter of taste, and dates and amounts that were not understood are texts too.
    if column.kind == "text" and operator in ("=", "!=", "in", *_TEXT_TESTS):
        return text
    raise Refused(f"the column `{column.name[:60]}` holds {column.kind}, which is not compared with `{text[:40]}`")


def _moment(column: Typed, text: str, operator: str) -> datetime.date:
    """A day or a moment; of a column of moments a whole day is neither before nor after what lies within it."""
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise Refused(f"there is no day `{text}`") from None
    if column.kind == "timestamp" and len(text) == len("2024-01-31") and operator not in ("<", ">="):
        hint = "compare with `<` or `>=`, or write the time too"
        raise Refused(f"the column `{column.name[:60]}` holds times, and `{text}` is a whole day: {hint}")
    return moment if column.kind == "timestamp" else moment.date()
