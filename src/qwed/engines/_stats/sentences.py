"""The stats engine's sentences: whole claims that are not a measure, a comparison and a value in this order."""

from decimal import Decimal

from qwed.engines._stats.claims import (
    Best,
    Compared,
    Measure,
    Part,
    Value,
    comparison,
    filter_here,
    measure,
)
from qwed.engines._stats.filters import Condition, Joined, condition
from qwed.engines._stats.words import Cursor, phrases

_ROWS = phrases(
    {"rows|records|row|record|entries|of rows|of the rows|of all rows|of records|of the records|of all records": True}
)
_HAVE = phrases(
    {
        "where|have|has|with|having|whose|for which|in which|that have|which have|are|satisfy|in the file have": True,
    }
)
_THERE = phrases(
    {
        "there are|there is|the file has|the file contains|the dataset has|the dataset contains|the data has": True,
        "the table has|the table contains|the data contains|file has|dataset has|dataset contains|table has": True,
    }
)
_ALL = phrases({"all rows|every row|each row|all records|every record|each record|all of the rows|all the rows": True})
_NONE = phrases({"no rows|no row|none of the rows|no records|no record|zero rows": True})
_NOUNS = phrases({"rows|row|records|record|entries": "rows", "columns|column|fields": "columns"})
_BEST = phrases(
    {
        "with the highest|with the largest|with the greatest|with the biggest|with the maximum|with highest": True,
        "with the lowest|with the smallest|with the minimum|with the least|with the fewest|with lowest": False,
        "that has the highest|having the highest|with the most": True,
    }
)
_TOTALS = phrases({"total|sum of|total of|sum": "sum", "average|mean|average of|mean of|avg": "mean"})
_TIDY = phrases(
    {
        "has no nulls|has no null values|has no missing values|contains no nulls|contains no missing values": "nulls",
        "has no missing data|has no blanks|is never null|is complete|have no nulls|have no missing values": "nulls",
        "is unique|has no duplicates|contains no duplicates|has only unique values|values are unique": "repeated",
        "has no duplicate values|are unique": "repeated",
    }
)


def parts_of(cursor: Cursor) -> list[Part]:
    """Every claim of the text, all of which have to hold."""
    parts = _part(cursor)
    while cursor.take("and") or (cursor.take(",", "and")):
        parts += _part(cursor)
    cursor.skip("?", ".")
    if not cursor.done:
        raise cursor.fail("the end of the claim")
    return parts


def _part(cursor: Cursor) -> list[Part]:
    for sentence in (_everyone, _counted, _tidy, _best, _named_best):
        start, used = cursor.at, dict(cursor.used)
        found = sentence(cursor)
        if found is not None:
            return [found]
        cursor.at, cursor.used = start, used
    return [_compared(cursor)]


def _compared(cursor: Cursor) -> Part:
    before = filter_here(cursor)
    if before is not None and not cursor.take(","):
        raise cursor.fail("a comma after the filter")
    left = measure(cursor)
    operator = comparison(cursor)
    if operator is None:
        raise cursor.fail("a comparison such as `=`, `>` or `is at least`")
    if _starts_value(cursor):
        right: Value | Measure = value(cursor, operator)
        after = filter_here(cursor)
        if after is not None and left.where is not None:
            raise cursor.fail("one filter and not two")
        left = left._replace(where=_both(before, left.where or after))
    else:
        right = measure(cursor)
        left, right = (side._replace(where=_both(before, side.where)) for side in (left, right))
    return Compared(left, operator, right)


def _both(one: Condition | None, other: Condition | None) -> Condition | None:
    if one is None or other is None:
        return one or other
    return Joined("AND", (one, other))


def _starts_value(cursor: Cursor) -> bool:
    here = cursor.here
    if here.kind in ("number", "string", "date", "name"):
        return True
    return here.kind == "word" and here.text.casefold() in (
        "true",
        "false",
        "zero",
        "about",
        "approximately",
        "roughly",
    )


def value(cursor: Cursor, operator: str) -> Value:
    """The value a measure is compared with."""
    here = cursor.here
    if here.kind in ("string", "date", "name") or here.text.casefold() in ("true", "false"):
        cursor.at += 1
        return Value(text=here.text)
    low = _number(cursor)
    if operator in ("between", "outside"):
        if not cursor.take("and") and not cursor.take("to"):
            raise cursor.fail("`and` and the other end of the range")
        high = _number(cursor)
        percent = cursor.take("%") or cursor.take("percent")
        return Value(low, high=high, percent=percent)
    percent = cursor.take("%") or cursor.take("percent")
    margin = _number(cursor) if cursor.take("±") or cursor.take("+/-") or cursor.take("plus", "or", "minus") else None
    percent = cursor.take("%") or percent
    if not percent:
        cursor.phrase(_NOUNS)
    return Value(low, margin=margin, percent=percent)


def _number(cursor: Cursor) -> Decimal:
    if cursor.take("zero"):
        return Decimal(0)
    number = cursor.number()
    if number is None:
        raise cursor.fail("a number")
    return number


def _everyone(cursor: Cursor) -> Part | None:
    every = cursor.phrase(_ALL)
    if not every and not cursor.phrase(_NONE):
        return None
    if not cursor.phrase(_HAVE):
        raise cursor.fail("`have` and a condition")
    where = condition(cursor, comparison)
    return Compared(Measure("every" if every else "rows", where=where), "=", Value(Decimal(0)))


def _counted(cursor: Cursor) -> Part | None:
    """`there are 12 rows where ...`, `at least 12% of rows have ...`."""
    cursor.phrase(_THERE)
    operator = comparison(cursor) or "="
    if cursor.here.kind != "number" or operator in ("between", "outside"):
        return None
    number = _number(cursor)
    if cursor.take("%") or cursor.take("percent"):
        return _percentage(cursor, operator, number)
    noun = cursor.phrase(_NOUNS)
    if noun is None:
        return None
    where = condition(cursor, comparison) if cursor.phrase(_HAVE) else None
    if noun == "columns" and where is not None:
        return None
    return Compared(Measure(noun, where=where), operator, Value(number))


def _percentage(cursor: Cursor, operator: str, number: Decimal) -> Part | None:
    cursor.skip("the")
    if not cursor.phrase(_ROWS) or not cursor.phrase(_HAVE):
        raise cursor.fail("`of rows where` and a condition")
    where = condition(cursor, comparison)
    return Compared(Measure("share", where=where, scale=100), operator, Value(number, percent=True))


def _tidy(cursor: Cursor) -> Part | None:
    cursor.skip("the", "column")
    column = cursor.column()
    cursor.skip("column", "values")
    kind = cursor.phrase(_TIDY) if column is not None else None
    if column is None or kind is None:
        return None
    return Compared(Measure(kind, (column.name,)), "=", Value(Decimal(0)))


def _best(cursor: Cursor) -> Part | None:
    """`region with the highest total sales is 'EU'`."""
    cursor.skip("the")
    column = cursor.column()
    highest = cursor.phrase(_BEST) if column is not None else None
    if column is None or highest is None:
        return None
    measured = _best_measure(cursor)
    if not (cursor.take("is") or cursor.take("=") or cursor.take("was")):
        raise cursor.fail("`is` and the name of the group")
    return Best(column.name, measured, highest, value(cursor, "="))


def _named_best(cursor: Cursor) -> Part | None:
    """`'EU' is the region with the highest total sales`."""
    if cursor.here.kind != "string":
        return None
    named = value(cursor, "=")
    if not cursor.take("is", "the"):
        return None
    column = cursor.column()
    highest = cursor.phrase(_BEST) if column is not None else None
    if column is None or highest is None:
        return None
    return Best(column.name, _best_measure(cursor), highest, named)


def _best_measure(cursor: Cursor) -> Measure:
    if cursor.phrase(_NOUNS) or cursor.take("number", "of", "rows") or cursor.take("count", "of", "rows"):
        return Measure("rows", where=filter_here(cursor))
    kind = cursor.phrase(_TOTALS)
    if kind is None:
        return _own_value(cursor) or measure(cursor)
    cursor.skip("the")
    column = cursor.column()
    if column is None:
        raise cursor.fail("the name of a column")
    return Measure(kind, (column.name,), filter_here(cursor))


def _own_value(cursor: Cursor) -> Measure | None:
    """`city with the highest population`, where each city has one row."""
    start = cursor.at
    column = cursor.column()
    if column is not None and cursor.here.text in _BEHIND_OWN:
        return Measure("own", (column.name,), filter_here(cursor))
    cursor.at = start
    return None


_BEHIND_OWN = frozenset({"is", "was", "=", "where", "for", "with", "and", ""})
