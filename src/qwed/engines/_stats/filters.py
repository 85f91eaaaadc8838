"""Row filters of the stats engine: parse conditions and translate them to SQL with parameters."""

import datetime
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from qwed.engines._stats.tokenizer import ClaimCursor, phrase_table
from qwed.engines._stats.types import NUMBERS, TIMES, TypedColumn
from qwed.engines.uploads import UploadError

ComparisonParser = Callable[[ClaimCursor], str | None]
MAX_DEPTH = 20
_MISSING = phrase_table({"null|missing|empty|blank|not available": True})
_MATCHES = phrase_table(
    {
        "like": "like",
        "contains|contain|containing|includes": "contains",
        "starts with|begins with|starting with": "starts_with",
        "ends with|ending with": "ends_with",
    }
)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2})?)?")


class FilterValue(NamedTuple):
    """Value in a filter; a `bare` value has no quotes and must occur in the file."""

    text: str
    kind: str
    bare: bool = False


class ColumnTest(NamedTuple):
    """Test of one column."""

    column: str
    operator: str
    values: tuple[FilterValue, ...] = ()
    other: str = ""
    negative: bool = False


class CompoundCondition(NamedTuple):
    """Conditions joined by `AND`, `OR` or `NOT`."""

    operator: str
    parts: tuple[Any, ...]


Condition = ColumnTest | CompoundCondition


def parse_condition(cursor: ClaimCursor, comparison: ComparisonParser, depth: int = 0) -> Condition:
    """Parse a condition; `or` binds weaker than `and`, `and` weaker than `not`."""
    if depth > MAX_DEPTH:
        raise cursor.fail(f"at most {MAX_DEPTH} brackets")
    parts = [_parse_conjunction(cursor, comparison, depth)]
    while cursor.take("or"):
        parts.append(_parse_conjunction(cursor, comparison, depth))
    return parts[0] if len(parts) == 1 else CompoundCondition("OR", tuple(parts))


def _parse_conjunction(cursor: ClaimCursor, comparison: ComparisonParser, depth: int) -> Condition:
    parts = [_parse_negation(cursor, comparison, depth)]
    while cursor.take("and"):
        parts.append(_parse_negation(cursor, comparison, depth))
    return parts[0] if len(parts) == 1 else CompoundCondition("AND", tuple(parts))


def _parse_negation(cursor: ClaimCursor, comparison: ComparisonParser, depth: int) -> Condition:
    if cursor.take("not"):
        return (
            CompoundCondition("NOT", (_parse_negation(cursor, comparison, depth + 1),))
            if depth < MAX_DEPTH
            else _reject_depth(cursor)
        )
    if cursor.take("("):
        inner = parse_condition(cursor, comparison, depth + 1)
        if not cursor.take(")"):
            raise cursor.fail("`)`")
        return inner
    return _parse_test(cursor, comparison)


def _reject_depth(cursor: ClaimCursor) -> Condition:
    raise cursor.fail(f"at most {MAX_DEPTH} brackets")


def _parse_test(cursor: ClaimCursor, comparison: ComparisonParser) -> ColumnTest:
    cursor.skip("the")
    column = cursor.column()
    if column is None:
        raise cursor.fail("the name of a column")
    if cursor.here.kind == "string":
        return ColumnTest(column.name, "=", (_parse_value(cursor),))
    missing = _parse_null_test(cursor)
    if missing is not None:
        return ColumnTest(column.name, "null", negative=not missing)
    start = cursor.at
    being = cursor.take("is") or cursor.take("are") or cursor.take("does") or cursor.take("was")
    negative = cursor.take("not")
    if cursor.take("in") or (being and cursor.take("one", "of")):
        return ColumnTest(column.name, "in", _parse_list(cursor), negative=negative)
    matching = cursor.phrase(_MATCHES)
    if matching:
        return ColumnTest(column.name, matching, (_parse_value(cursor),), negative=negative)
    if not being and negative and cursor.take("between"):
        return ColumnTest(column.name, "between", _parse_range(cursor), negative=True)
    cursor.at = start
    return _parse_comparison_test(cursor, column.name, comparison)


def _parse_null_test(cursor: ClaimCursor) -> bool | None:
    """Return True for `is null`, False for `is not null`, None if neither follows."""
    start = cursor.at
    if cursor.take("is") or cursor.take("are") or cursor.take("was"):
        negative = cursor.take("not")
        if cursor.phrase(_MISSING):
            return not negative
    cursor.at = start
    return None


def _parse_comparison_test(cursor: ClaimCursor, name: str, comparison: ComparisonParser) -> ColumnTest:
    operator = comparison(cursor)
    if operator is None or operator == "about":
        raise cursor.fail("a comparison such as `=`, `>` or `is`")
    if operator in ("between", "outside"):
        return ColumnTest(name, "between", _parse_range(cursor), negative=operator == "outside")
    if cursor.here.kind == "word" and cursor.here.text.casefold() not in ("true", "false"):
        other = cursor.column()
        if other is not None:
            return ColumnTest(name, operator, other=other.name)
    return ColumnTest(name, operator, (_parse_value(cursor),))


def _parse_range(cursor: ClaimCursor) -> tuple[FilterValue, FilterValue]:
    low = _parse_value(cursor)
    if not cursor.take("and") and not cursor.take("to"):
        raise cursor.fail("`and`")
    return low, _parse_value(cursor)


def _parse_list(cursor: ClaimCursor) -> tuple[FilterValue, ...]:
    if not cursor.take("("):
        raise cursor.fail("a list such as `('EU', 'US')`")
    values = [_parse_value(cursor)]
    while cursor.take(","):
        values.append(_parse_value(cursor))
    if not cursor.take(")"):
        raise cursor.fail("`)`")
    return tuple(values)


def _parse_value(cursor: ClaimCursor) -> FilterValue:
    token = cursor.here
    if token.kind in ("string", "name", "date"):
        cursor.at += 1
        return FilterValue(token.text, "text")
    if token.kind == "number":
        number = cursor.number()
        return FilterValue(token.text if number is None or number == Decimal(token.text) else str(number), "number")
    if token.kind == "word" and token.text.casefold() in ("true", "false"):
        cursor.at += 1
        return FilterValue(token.text.casefold(), "boolean")
    if token.kind == "word":
        cursor.at += 1
        return FilterValue(token.text, "text", bare=True)
    raise cursor.fail("a value: numbers as they are, text in quotes")


def has_negation(condition: Condition | None) -> bool:
    """Return True if the condition contains a negation other than a null test."""
    if isinstance(condition, CompoundCondition):
        return condition.operator == "NOT" or any(has_negation(part) for part in condition.parts)
    return condition is not None and condition.operator != "null" and (condition.negative or condition.operator == "!=")


class Filter(NamedTuple):
    """SQL condition with `?` for its values."""

    sql: str
    values: tuple[Any, ...] = ()
    bare: tuple[tuple[TypedColumn, str], ...] = ()
    """Unquoted texts, each with the column in which it must occur."""


def condition_to_sql(condition: Condition | None, columns: Mapping[str, TypedColumn]) -> Filter:
    """Translate the condition to SQL. Raise UploadError if a value cannot be compared with its column."""
    if condition is None:
        return Filter("true")
    if isinstance(condition, ColumnTest):
        return _test_to_sql(condition, columns)
    parts = [condition_to_sql(part, columns) for part in condition.parts]
    values = tuple(value for part in parts for value in part.values)
    bare = tuple(bare_value for part in parts for bare_value in part.bare)
    if condition.operator == "NOT":
        return Filter(f"NOT ({parts[0].sql})", values, bare)
    return Filter(f" {condition.operator} ".join(f"({part.sql})" for part in parts), values, bare)


_TEXT_OPERATORS = {"like": "{0} LIKE ?", "contains": "contains({0}, ?)", "starts_with": "starts_with({0}, ?)"}
_TEXT_OPERATORS["ends_with"] = "suffix({0}, ?)"


def _test_to_sql(atom: ColumnTest, columns: Mapping[str, TypedColumn]) -> Filter:
    column = columns[atom.column]
    name = column.sql
    if atom.operator == "null":
        return Filter(f"{name} IS {'NOT ' if atom.negative else ''}NULL")
    if atom.other:
        return Filter(f"{name} {atom.operator} {_require_comparable(column, columns[atom.other]).sql}")
    values = tuple(_bind_value(column, literal, atom.operator) for literal in atom.values)
    bare = tuple((column, literal.text) for literal in atom.values if literal.bare)
    no = "NOT " if atom.negative else ""
    if atom.operator in _TEXT_OPERATORS:
        test = _TEXT_OPERATORS[atom.operator].format(name)
        return Filter(f"{no}{test}" if not no else f"NOT ({test})", values, bare)
    if atom.operator == "in":
        return Filter(f"{name} {no}IN ({', '.join('?' * len(values))})", values, bare)
    if atom.operator == "between":
        return Filter(f"{name} {no}BETWEEN ? AND ?", values, bare)
    return Filter(f"{name} {atom.operator} ?", values, bare)


def _require_comparable(one: TypedColumn, other: TypedColumn) -> TypedColumn:
    for kinds in (NUMBERS, TIMES, frozenset({"text"}), frozenset({"boolean"})):
        if one.kind in kinds and other.kind in kinds:
            return other
    raise UploadError(f"`{one.name[:60]}` holds {one.kind} and `{other.name[:60]}` holds {other.kind}")


_BOOLEANS = {"true": True, "false": False}


def _bind_value(column: TypedColumn, literal: FilterValue, operator: str) -> Any:
    """Convert the value to the column's type, so that the database does not cast it."""
    text = literal.text
    if operator in _TEXT_OPERATORS and column.kind != "text":
        raise UploadError(f"the column `{column.name[:60]}` holds {column.kind} and is not searched as text")
    if column.kind in NUMBERS and literal.kind == "number":
        return float(text) if column.kind == "double" else Decimal(text)
    if column.kind == "boolean" and text.casefold() in _BOOLEANS:
        return _BOOLEANS[text.casefold()]
    if column.kind in TIMES and _DATE.fullmatch(text):
        return _parse_moment(column, text, operator)
    # The order of texts depends on the collation, and unparsable dates and amounts are texts too.
    if column.kind == "text" and operator in ("=", "!=", "in", *_TEXT_OPERATORS):
        return text
    raise UploadError(f"the column `{column.name[:60]}` holds {column.kind}, which is not compared with `{text[:40]}`")


def _parse_moment(column: TypedColumn, text: str, operator: str) -> datetime.date:
    """Parse a date or a timestamp. In a timestamp column, a date is only comparable with `<` and `>=`."""
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise UploadError(f"there is no day `{text}`") from None
    if column.kind == "timestamp" and len(text) == len("2024-01-31") and operator not in ("<", ">="):
        hint = "compare with `<` or `>=`, or write the time too"
        raise UploadError(f"the column `{column.name[:60]}` holds times, and `{text}` is a whole day: {hint}")
    return moment if column.kind == "timestamp" else moment.date()
