"""Claim grammar of the stats engine: parse a claim about a file into measures and comparisons.

claim    = compared {"and" compared}
compared = measure comparison value [filter] | measure comparison measure | a sentence of `claim_sentences`
measure  = ("average of" | "max" | ...) column [filter] | "rows" [filter] | "correlation of" column "and" column
filter   = ("where" | "for" | ...) condition
"""

from decimal import Decimal
from typing import NamedTuple

from qwed.engines._stats.filters import Condition, parse_condition
from qwed.engines._stats.tokenizer import ClaimCursor, phrase_table
from qwed.model.data_files import read_rows

_PHRASES = read_rows(__file__, "claim_phrases.txt", 3)


def _phrases(table: str) -> dict[tuple[str, ...], str]:
    return phrase_table({phrases: meaning for name, meaning, phrases in _PHRASES if name == table})


_COLUMN_MEASURES = _phrases("column")
_ROWS = _phrases("rows")
_SHARES = phrase_table(
    {
        "percentage of rows|percent of rows|percentage of records|percentage of the rows|percentage of all rows": 100,
        "proportion of rows|share of rows|fraction of rows|proportion of records|share of records": 1,
        "fraction of records|ratio of rows|share of all rows|proportion of all rows": 1,
    }
)
_PAIRS = _phrases("pair")
_QUANTILES = phrase_table({"percentile": 1, "percentile_cont": 100, "quantile": 100, "quantile_cont": 100})
_FILTERS = phrase_table(
    {
        "where|for which|in which|for rows where|among rows where|of rows where|for rows with|among rows with": True,
        "for|with|when|whose|having|among|if|for all rows where|only where|given": True,
    }
)
_FILLER_WORDS = ("values", "value", "column", "field", "variable")

_COMPARISONS = _phrases("comparison")
NEGATED = {"=": "!=", "!=": "=", ">": "<=", "<": ">=", ">=": "<", "<=": ">", "between": "outside"}


class Measure(NamedTuple):
    """Quantity to compute: its kind, the columns and the filter on rows."""

    kind: str
    columns: tuple[str, ...] = ()
    where: Condition | None = None
    quantile: Decimal | None = None
    scale: int = 1


class ClaimedOperand(NamedTuple):
    """Operand that a measure is compared with: a number with margin or percent sign, a text, or a range."""

    number: Decimal | None = None
    text: str | None = None
    high: Decimal | None = None
    margin: Decimal | None = None
    percent: bool = False


class ComparisonClaim(NamedTuple):
    """Comparison of a measure with a value or another measure."""

    left: Measure
    operator: str
    right: "ClaimedOperand | Measure"


class BestGroupClaim(NamedTuple):
    """Claim that `value` is the group whose measure is the highest or the lowest."""

    group: str
    measure: Measure
    highest: bool
    value: ClaimedOperand


ClaimPart = ComparisonClaim | BestGroupClaim


def parse_comparison(cursor: ClaimCursor) -> str | None:
    """Parse a comparison such as `is at least` and return its operator, `=` for a bare `is`, or None."""
    start = cursor.at
    if cursor.take("does", "not") or cursor.take("do", "not"):
        operator = cursor.phrase(_COMPARISONS) or cursor.phrase(phrase_table({"exceed": ">"}))
        return NEGATED.get(operator or "")
    being = any(cursor.take(word) for word in ("is", "are", "was", "were", "lies", "stands", "stands at"))
    negative = being and cursor.take("not")
    operator = cursor.phrase(_COMPARISONS)
    if operator is None and not being:
        cursor.at = start
        return None
    operator = operator or "="
    if negative:
        negated = NEGATED.get(operator)
        if negated is None:
            _restart(cursor, start)
        return negated
    return operator


def _restart(cursor: ClaimCursor, start: int) -> None:
    cursor.at = start


def parse_filter(cursor: ClaimCursor) -> Condition | None:
    """Parse a filter and return its condition, or None without a filter."""
    if not cursor.phrase(_FILTERS):
        return None
    cursor.skip("the")
    return parse_condition(cursor, parse_comparison)


def parse_measure(cursor: ClaimCursor) -> Measure:
    """Parse a measure with its filter."""
    cursor.skip("the", "a", "an", "overall")
    measure = (
        _parse_quantile(cursor)
        or _parse_share(cursor)
        or _parse_rows(cursor)
        or _parse_pair(cursor)
        or _parse_column_measure(cursor)
    )
    if measure is None:
        raise cursor.fail("a measure such as `average of`, `max(...)` or `rows`")
    if measure.where is None:
        measure = measure._replace(where=parse_filter(cursor))
    return measure


def _parse_rows(cursor: ClaimCursor) -> Measure | None:
    start = cursor.at
    if cursor.take("count", "(", "*", ")"):
        return Measure("rows")
    kind = cursor.phrase(_ROWS)
    if kind is None and cursor.take("count"):
        # `count` without a column counts rows.
        if is_at_comparison(cursor) or cursor.phrase(_FILTERS):
            cursor.at = start + 1
            return Measure("rows")
        cursor.at = start
    if kind is None or not _is_not_call(cursor):
        cursor.at = start
        return None
    cursor.skip("in", "the", "file", "dataset", "data", "table")
    return Measure(kind)


def _is_not_call(cursor: ClaimCursor) -> bool:
    return cursor.here.kind != "sign" or cursor.here.text != "("


def is_at_comparison(cursor: ClaimCursor) -> bool:
    """Return True if a comparison follows; the cursor does not move."""
    start = cursor.at
    operator = parse_comparison(cursor)
    cursor.at = start
    return operator is not None


def _parse_share(cursor: ClaimCursor) -> Measure | None:
    scale = cursor.phrase(_SHARES)
    if scale is None:
        return None
    cursor.phrase(phrase_table({"that have|which have|that are|having|with": True}))
    where = parse_filter(cursor) or parse_condition(cursor, parse_comparison)
    return Measure("share", where=where, scale=scale)


def _parse_pair(cursor: ClaimCursor) -> Measure | None:
    kind = cursor.phrase(_PAIRS)
    if kind is None:
        return None
    bracket = cursor.take("(")
    cursor.skip("of", "between", "the")
    first = _parse_column(cursor)
    if not any(cursor.take(word) for word in ("and", "with", ",")):
        raise cursor.fail("`and` and a second column")
    cursor.skip("the")
    second = _parse_column(cursor)
    if bracket and not cursor.take(")"):
        raise cursor.fail("`)`")
    return Measure(kind, (first, second))


def _parse_quantile(cursor: ClaimCursor) -> Measure | None:
    start = cursor.at
    quantile = _parse_ordinal(cursor)
    if quantile is not None:
        return Measure("percentile", (_parse_argument(cursor),), quantile=quantile)
    scale = cursor.phrase(_QUANTILES)
    if scale is None:
        return None
    if cursor.take("("):
        column = _parse_column(cursor)
        number = cursor.number() if cursor.take(",") else None
        closed = cursor.take(")")
    else:
        number, closed = cursor.number(), True
        column = _parse_argument(cursor) if number is not None else ""
    if number is None or not closed:
        cursor.at = start
        return None
    return Measure("percentile", (column,), quantile=number * scale if scale == 1 or number <= 1 else number)


def _parse_ordinal(cursor: ClaimCursor) -> Decimal | None:
    """Parse `95th percentile` or `p95`."""
    word, start = cursor.here, cursor.at
    if word.kind == "ordinal":
        cursor.at += 1
        if cursor.take("percentile") or cursor.take("quantile"):
            return Decimal(word.text[:-2])
    elif word.kind == "word" and word.text[:1] in "pP" and word.text[1:].isascii() and word.text[1:].isdigit():
        cursor.at += 1
        return Decimal(word.text[1:])
    cursor.at = start
    return None


def _parse_column_measure(cursor: ClaimCursor) -> Measure | None:
    kind = "distinct" if cursor.take("count", "(", "distinct") else cursor.phrase(_COLUMN_MEASURES)
    if kind is None:
        return _parse_trailing_measure(cursor)
    if cursor.tokens[cursor.at - 1].text.casefold() == "distinct" and cursor.here.depth:
        column = _parse_column(cursor)
        if not cursor.take(")"):
            raise cursor.fail("`)`")
    else:
        column = _parse_argument(cursor)
    if kind.startswith("p") and kind[1:].isdigit():
        return Measure("percentile", (column,), quantile=Decimal(kind[1:]))
    return Measure(kind, (column,))


def _parse_trailing_measure(cursor: ClaimCursor) -> Measure | None:
    """Parse a measure behind its column: `sales average`, `price max`."""
    start = cursor.at
    column = cursor.column()
    kind = cursor.phrase(_COLUMN_MEASURES) if column is not None else None
    if column is None or kind is None or not is_at_comparison(cursor):
        cursor.at = start
        return None
    return Measure(kind, (column.name,))


def _parse_argument(cursor: ClaimCursor) -> str:
    if cursor.take("("):
        name = _parse_column(cursor)
        if not cursor.take(")"):
            raise cursor.fail("`)`")
        return name
    cursor.skip("of", "in", "for", "the")
    return _parse_column(cursor)


def _parse_column(cursor: ClaimCursor) -> str:
    """Parse a column name, skipping filler words such as `value` and `column`."""
    column = cursor.column()
    if column is None:
        cursor.skip(*_FILLER_WORDS, "of", "in", "the")
        column = cursor.column()
    if column is None:
        raise cursor.fail("the name of a column")
    cursor.skip(*_FILLER_WORDS)
    return column.name
