"""Sentence grammar of the stats engine: claims that are not `measure comparison value`."""

from decimal import Decimal

from qwed.engines._stats.claims import (
    BestGroupClaim,
    ClaimedOperand,
    ClaimPart,
    ComparisonClaim,
    Measure,
    parse_comparison,
    parse_filter,
    parse_measure,
)
from qwed.engines._stats.filters import CompoundCondition, Condition, parse_condition
from qwed.engines._stats.tokenizer import ClaimCursor, phrase_table

_ROWS = phrase_table(
    {"rows|records|row|record|entries|of rows|of the rows|of all rows|of records|of the records|of all records": True}
)
_HAVE = phrase_table(
    {
        "where|have|has|with|having|whose|for which|in which|that have|which have|are|satisfy|in the file have": True,
    }
)
_THERE = phrase_table(
    {
        "there are|there is|the file has|the file contains|the dataset has|the dataset contains|the data has": True,
        "the table has|the table contains|the data contains|file has|dataset has|dataset contains|table has": True,
    }
)
_ALL = phrase_table(
    {"all rows|every row|each row|all records|every record|each record|all of the rows|all the rows": True}
)
_NONE = phrase_table({"no rows|no row|none of the rows|no records|no record|zero rows": True})
_NOUNS = phrase_table({"rows|row|records|record|entries": "rows", "columns|column|fields": "columns"})
_BEST = phrase_table(
    {
        "with the highest|with the largest|with the greatest|with the biggest|with the maximum|with highest": True,
        "with the lowest|with the smallest|with the minimum|with the least|with the fewest|with lowest": False,
        "that has the highest|having the highest|with the most": True,
    }
)
_TOTALS = phrase_table({"total|sum of|total of|sum": "sum", "average|mean|average of|mean of|avg": "mean"})
_COLUMN_PROPERTIES = phrase_table(
    {
        "has no nulls|has no null values|has no missing values|contains no nulls|contains no missing values": "nulls",
        "has no missing data|has no blanks|is never null|is complete|have no nulls|have no missing values": "nulls",
        "is unique|has no duplicates|contains no duplicates|has only unique values|values are unique": "repeated",
        "has no duplicate values|are unique": "repeated",
    }
)


def parse_claim(cursor: ClaimCursor) -> list[ClaimPart]:
    """Return the parts of the claim, all of which must hold."""
    parts = _parse_part(cursor)
    while cursor.take("and") or (cursor.take(",", "and")):
        parts += _parse_part(cursor)
    cursor.skip("?", ".")
    if not cursor.done:
        raise cursor.fail("the end of the claim")
    return parts


def _parse_part(cursor: ClaimCursor) -> list[ClaimPart]:
    for sentence in (
        _parse_all_rows,
        _parse_row_count,
        _parse_column_property,
        _parse_best_group,
        _parse_best_group_first,
    ):
        start, used = cursor.at, dict(cursor.used)
        part = sentence(cursor)
        if part is not None:
            return [part]
        cursor.at, cursor.used = start, used
    return [_parse_comparison_claim(cursor)]


def _parse_comparison_claim(cursor: ClaimCursor) -> ClaimPart:
    before = parse_filter(cursor)
    if before is not None and not cursor.take(","):
        raise cursor.fail("a comma after the filter")
    left = parse_measure(cursor)
    operator = parse_comparison(cursor)
    if operator is None:
        raise cursor.fail("a comparison such as `=`, `>` or `is at least`")
    if _starts_value(cursor):
        right: ClaimedOperand | Measure = parse_value(cursor, operator)
        after = parse_filter(cursor)
        if after is not None and left.where is not None:
            raise cursor.fail("one filter and not two")
        left = left._replace(where=_join_filters(before, left.where or after))
    else:
        right = parse_measure(cursor)
        left, right = (side._replace(where=_join_filters(before, side.where)) for side in (left, right))
    return ComparisonClaim(left, operator, right)


def _join_filters(one: Condition | None, other: Condition | None) -> Condition | None:
    if one is None or other is None:
        return one or other
    return CompoundCondition("AND", (one, other))


def _starts_value(cursor: ClaimCursor) -> bool:
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


def parse_value(cursor: ClaimCursor, operator: str) -> ClaimedOperand:
    """Parse the value that a measure is compared with."""
    here = cursor.here
    if here.kind in ("string", "date", "name") or here.text.casefold() in ("true", "false"):
        cursor.at += 1
        return ClaimedOperand(text=here.text)
    low = _parse_number(cursor)
    if operator in ("between", "outside"):
        if not cursor.take("and") and not cursor.take("to"):
            raise cursor.fail("`and` and the other end of the range")
        high = _parse_number(cursor)
        percent = cursor.take("%") or cursor.take("percent")
        return ClaimedOperand(low, high=high, percent=percent)
    percent = cursor.take("%") or cursor.take("percent")
    margin = (
        _parse_number(cursor) if cursor.take("±") or cursor.take("+/-") or cursor.take("plus", "or", "minus") else None
    )
    percent = cursor.take("%") or percent
    if not percent:
        cursor.phrase(_NOUNS)
    return ClaimedOperand(low, margin=margin, percent=percent)


def _parse_number(cursor: ClaimCursor) -> Decimal:
    if cursor.take("zero"):
        return Decimal(0)
    number = cursor.number()
    if number is None:
        raise cursor.fail("a number")
    return number


def _parse_all_rows(cursor: ClaimCursor) -> ClaimPart | None:
    every = cursor.phrase(_ALL)
    if not every and not cursor.phrase(_NONE):
        return None
    if not cursor.phrase(_HAVE):
        raise cursor.fail("`have` and a condition")
    where = parse_condition(cursor, parse_comparison)
    return ComparisonClaim(Measure("every" if every else "rows", where=where), "=", ClaimedOperand(Decimal(0)))


def _parse_row_count(cursor: ClaimCursor) -> ClaimPart | None:
    """Parse `there are 12 rows where ...` or `at least 12% of rows have ...`."""
    cursor.phrase(_THERE)
    operator = parse_comparison(cursor) or "="
    if cursor.here.kind != "number" or operator in ("between", "outside"):
        return None
    number = _parse_number(cursor)
    if cursor.take("%") or cursor.take("percent"):
        return _parse_row_percentage(cursor, operator, number)
    noun = cursor.phrase(_NOUNS)
    if noun is None:
        return None
    where = parse_condition(cursor, parse_comparison) if cursor.phrase(_HAVE) else None
    if noun == "columns" and where is not None:
        return None
    return ComparisonClaim(Measure(noun, where=where), operator, ClaimedOperand(number))


def _parse_row_percentage(cursor: ClaimCursor, operator: str, number: Decimal) -> ClaimPart | None:
    cursor.skip("the")
    if not cursor.phrase(_ROWS) or not cursor.phrase(_HAVE):
        raise cursor.fail("`of rows where` and a condition")
    where = parse_condition(cursor, parse_comparison)
    return ComparisonClaim(Measure("share", where=where, scale=100), operator, ClaimedOperand(number, percent=True))


def _parse_column_property(cursor: ClaimCursor) -> ClaimPart | None:
    cursor.skip("the", "column")
    column = cursor.column()
    cursor.skip("column", "values")
    kind = cursor.phrase(_COLUMN_PROPERTIES) if column is not None else None
    if column is None or kind is None:
        return None
    return ComparisonClaim(Measure(kind, (column.name,)), "=", ClaimedOperand(Decimal(0)))


def _parse_best_group(cursor: ClaimCursor) -> ClaimPart | None:
    """Parse `region with the highest total sales is 'EU'`."""
    cursor.skip("the")
    column = cursor.column()
    highest = cursor.phrase(_BEST) if column is not None else None
    if column is None or highest is None:
        return None
    measure = _parse_best_measure(cursor)
    if not (cursor.take("is") or cursor.take("=") or cursor.take("was")):
        raise cursor.fail("`is` and the name of the group")
    return BestGroupClaim(column.name, measure, highest, parse_value(cursor, "="))


def _parse_best_group_first(cursor: ClaimCursor) -> ClaimPart | None:
    """Parse `'EU' is the region with the highest total sales`."""
    if cursor.here.kind != "string":
        return None
    group = parse_value(cursor, "=")
    if not cursor.take("is", "the"):
        return None
    column = cursor.column()
    highest = cursor.phrase(_BEST) if column is not None else None
    if column is None or highest is None:
        return None
    return BestGroupClaim(column.name, _parse_best_measure(cursor), highest, group)


def _parse_best_measure(cursor: ClaimCursor) -> Measure:
    if cursor.phrase(_NOUNS) or cursor.take("number", "of", "rows") or cursor.take("count", "of", "rows"):
        return Measure("rows", where=parse_filter(cursor))
    kind = cursor.phrase(_TOTALS)
    if kind is None:
        return _parse_single_value(cursor) or parse_measure(cursor)
    cursor.skip("the")
    column = cursor.column()
    if column is None:
        raise cursor.fail("the name of a column")
    return Measure(kind, (column.name,), parse_filter(cursor))


def _parse_single_value(cursor: ClaimCursor) -> Measure | None:
    """Parse `city with the highest population`, where each city has one row."""
    start = cursor.at
    column = cursor.column()
    if column is not None and cursor.here.text in _AFTER_COLUMN:
        return Measure("own", (column.name,), parse_filter(cursor))
    cursor.at = start
    return None


_AFTER_COLUMN = frozenset({"is", "was", "=", "where", "for", "with", "and", ""})
