"""The stats engine's grammar: a claim about a file to what is to be computed and compared.

claim    = compared {"and" compared}
compared = measure comparison value [filter] | measure comparison measure | a sentence of `_stats_sentences`
measure  = ("average of" | "max" | ...) column [filter] | "rows" [filter] | "correlation of" column "and" column
filter   = ("where" | "for" | ...) condition
"""

from decimal import Decimal
from typing import NamedTuple

from qwed.engines._stats.filters import Condition, condition
from qwed.engines._stats.words import Cursor, phrases

_COLUMN_MEASURES = phrases(
    {
        "average|mean|avg|arithmetic mean|average value|mean value": "mean",
        "sum|total|sum total|grand total": "sum",
        "minimum|min|lowest|smallest|minimum value|lowest value|smallest value|earliest": "min",
        "maximum|max|highest|largest|greatest|biggest|maximum value|highest value|largest value|latest": "max",
        "median|median value": "median",
        "mode|most common|most frequent|most common value|most frequent value": "mode",
        "standard deviation|stddev|stdev|std|sd|std dev|stddev_samp|sample standard deviation": "stddev",
        "population standard deviation|stddev_pop|stdevp|pstdev|population stddev": "stddev_pop",
        "variance|var|var_samp|sample variance": "variance",
        "population variance|var_pop|pvariance": "variance_pop",
        "range": "range",
        "number of distinct|number of unique|number of different|distinct count|unique count": "distinct",
        "count of distinct|count of unique|distinct|unique|nunique|count distinct|cardinality": "distinct",
        "number of nulls|number of null|null count|nulls|null values|missing values|missing|count of nulls": "nulls",
        "number of missing|count of missing|missing count|number of blanks|number of empty": "nulls",
        "count|number of non-null|non null count|number of values|count of values": "count",
        "first quartile|lower quartile|q1": "p25",
        "third quartile|upper quartile|q3": "p75",
    }
)
_ROWS = phrases(
    {
        "rows|row count|number of rows|count of rows|total rows|total number of rows|rowcount|row_count": "rows",
        "records|number of records|count of records|record count|total records|entries|number of entries": "rows",
        "number of observations|observations|sample size": "rows",
        "columns|column count|number of columns|count of columns|number of fields": "columns",
        "distinct rows|number of distinct rows|unique rows|number of unique rows": "distinct_rows",
        "duplicate rows|number of duplicate rows|duplicated rows": "duplicate_rows",
    }
)
_SHARES = phrases(
    {
        "percentage of rows|percent of rows|percentage of records|percentage of the rows|percentage of all rows": 100,
        "proportion of rows|share of rows|fraction of rows|proportion of records|share of records": 1,
        "fraction of records|ratio of rows|share of all rows|proportion of all rows": 1,
    }
)
_PAIRS = phrases(
    {
        "correlation|pearson correlation|correlation coefficient|corr|pearson correlation coefficient": "correlation",
        "covariance|covar|covar_samp|sample covariance": "covariance",
    }
)
_QUANTILES = phrases({"percentile": 1, "percentile_cont": 100, "quantile": 100, "quantile_cont": 100})
_FILTERS = phrases(
    {
        "where|for which|in which|for rows where|among rows where|of rows where|for rows with|among rows with": True,
        "for|with|when|whose|having|among|if|for all rows where|only where|given": True,
    }
)
_NOISE = ("values", "value", "column", "field", "variable")

_COMPARISONS = phrases(
    {
        "=|==|equals|equal to|exactly|the same as|equal": "=",
        "!=|<>|does not equal|do not equal|unequal to|different from": "!=",
        ">|greater than|more than|above|over|exceeds|exceed|higher than|larger than|bigger than|exceeding": ">",
        "<|less than|lower than|below|under|smaller than|fewer than": "<",
        ">=|at least|no less than|greater than or equal to|no lower than|no fewer than|a minimum of": ">=",
        "more than or equal to|higher than or equal to": ">=",
        "<=|at most|no more than|less than or equal to|no higher than|no greater than|up to|a maximum of": "<=",
        "lower than or equal to|fewer than or equal to": "<=",
        "between|in the range|in the range of|within|in between": "between",
        "about|approximately|roughly|around|approx|~|≈|circa|close to": "about",
    }
)
NEGATED = {"=": "!=", "!=": "=", ">": "<=", "<": ">=", ">=": "<", "<=": ">", "between": "outside"}


class Measure(NamedTuple):
    """What is to be computed: of which columns, of which rows."""

    kind: str
    columns: tuple[str, ...] = ()
    where: Condition | None = None
    quantile: Decimal | None = None
    scale: int = 1


class Value(NamedTuple):
    """What a measure is compared with: a number with how it is meant, a text, or a range."""

    number: Decimal | None = None
    text: str | None = None
    high: Decimal | None = None
    margin: Decimal | None = None
    percent: bool = False


class Compared(NamedTuple):
    """A measure, a comparison, and a value or another measure."""

    left: Measure
    operator: str
    right: "Value | Measure"


class Best(NamedTuple):
    """The group whose measure is the highest or the lowest, and which it is said to be."""

    group: str
    measure: Measure
    highest: bool
    value: Value


Part = Compared | Best


def comparison(cursor: Cursor) -> str | None:
    """The comparison that stands here, such as `is at least`; `=` for a bare `is`."""
    start = cursor.at
    if cursor.take("does", "not") or cursor.take("do", "not"):
        found = cursor.phrase(_COMPARISONS) or cursor.phrase(phrases({"exceed": ">"}))
        return NEGATED.get(found or "")
    being = any(cursor.take(word) for word in ("is", "are", "was", "were", "lies", "stands", "stands at"))
    negative = being and cursor.take("not")
    found = cursor.phrase(_COMPARISONS)
    if found is None and not being:
        cursor.at = start
        return None
    found = found or "="
    if negative:
        negated = NEGATED.get(found)
        if negated is None:
            _restart(cursor, start)
        return negated
    return found


def _restart(cursor: Cursor, start: int) -> None:
    cursor.at = start


def filter_here(cursor: Cursor) -> Condition | None:
    """The filter that stands here, if any."""
    if not cursor.phrase(_FILTERS):
        return None
    cursor.skip("the")
    return condition(cursor, comparison)


def measure(cursor: Cursor) -> Measure:
    """The measure that stands here, with its filter."""
    cursor.skip("the", "a", "an", "overall")
    found = _quantile(cursor) or _share(cursor) or _rows(cursor) or _pair(cursor) or _of_column(cursor)
    if found is None:
        raise cursor.fail("a measure such as `average of`, `max(...)` or `rows`")
    if found.where is None:
        found = found._replace(where=filter_here(cursor))
    return found


def _rows(cursor: Cursor) -> Measure | None:
    start = cursor.at
    if cursor.take("count", "(", "*", ")"):
        return Measure("rows")
    kind = cursor.phrase(_ROWS)
    if kind is None and cursor.take("count"):
        # A count of nothing in particular counts rows.
        if comparison_follows(cursor) or cursor.phrase(_FILTERS):
            cursor.at = start + 1
            return Measure("rows")
        cursor.at = start
    if kind is None or not _ends(cursor):
        cursor.at = start
        return None
    cursor.skip("in", "the", "file", "dataset", "data", "table")
    return Measure(kind)


def _ends(cursor: Cursor) -> bool:
    return cursor.here.kind != "sign" or cursor.here.text != "("


def comparison_follows(cursor: Cursor) -> bool:
    """Whether a comparison stands here; nothing is read."""
    start = cursor.at
    found = comparison(cursor)
    cursor.at = start
    return found is not None


def _share(cursor: Cursor) -> Measure | None:
    scale = cursor.phrase(_SHARES)
    if scale is None:
        return None
    cursor.phrase(phrases({"that have|which have|that are|having|with": True}))
    where = filter_here(cursor) or condition(cursor, comparison)
    return Measure("share", where=where, scale=scale)


def _pair(cursor: Cursor) -> Measure | None:
    kind = cursor.phrase(_PAIRS)
    if kind is None:
        return None
    bracket = cursor.take("(")
    cursor.skip("of", "between", "the")
    first = _column(cursor)
    if not any(cursor.take(word) for word in ("and", "with", ",")):
        raise cursor.fail("`and` and a second column")
    cursor.skip("the")
    second = _column(cursor)
    if bracket and not cursor.take(")"):
        raise cursor.fail("`)`")
    return Measure(kind, (first, second))


def _quantile(cursor: Cursor) -> Measure | None:
    start = cursor.at
    quantile = _ordinal(cursor)
    if quantile is not None:
        return Measure("percentile", (_argument(cursor),), quantile=quantile)
    scale = cursor.phrase(_QUANTILES)
    if scale is None:
        return None
    if cursor.take("("):
        column = _column(cursor)
        number = cursor.number() if cursor.take(",") else None
        closed = cursor.take(")")
    else:
        number, closed = cursor.number(), True
        column = _argument(cursor) if number is not None else ""
    if number is None or not closed:
        cursor.at = start
        return None
    return Measure("percentile", (column,), quantile=number * scale if scale == 1 or number <= 1 else number)


def _ordinal(cursor: Cursor) -> Decimal | None:
    """`95th percentile`, `p95`."""
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


def _of_column(cursor: Cursor) -> Measure | None:
    kind = "distinct" if cursor.take("count", "(", "distinct") else cursor.phrase(_COLUMN_MEASURES)
    if kind is None:
        return _trailing(cursor)
    if cursor.tokens[cursor.at - 1].text.casefold() == "distinct" and cursor.here.depth:
        column = _column(cursor)
        if not cursor.take(")"):
            raise cursor.fail("`)`")
    else:
        column = _argument(cursor)
    if kind.startswith("p") and kind[1:].isdigit():
        return Measure("percentile", (column,), quantile=Decimal(kind[1:]))
    return Measure(kind, (column,))


def _trailing(cursor: Cursor) -> Measure | None:
    """`sales average`, `price max`: the column first."""
    start = cursor.at
    column = cursor.column()
    kind = cursor.phrase(_COLUMN_MEASURES) if column is not None else None
    if column is None or kind is None or not comparison_follows(cursor):
        cursor.at = start
        return None
    return Measure(kind, (column.name,))


def _argument(cursor: Cursor) -> str:
    if cursor.take("("):
        name = _column(cursor)
        if not cursor.take(")"):
            raise cursor.fail("`)`")
        return name
    cursor.skip("of", "in", "for", "the")
    return _column(cursor)


def _column(cursor: Cursor) -> str:
    """The name of the column that stands here, past words that only say that it is one."""
    found = cursor.column()
    if found is None:
        cursor.skip(*_NOISE, "of", "in", "the")
        found = cursor.column()
    if found is None:
        raise cursor.fail("the name of a column")
    cursor.skip(*_NOISE)
    return found.name
