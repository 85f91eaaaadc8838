"""The stats engine's measures: each one as SQL, and its answer exact where the file's numbers are."""

import datetime
import math
from collections.abc import Mapping
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, NamedTuple

from qwed.engines._stats.claims import Measure
from qwed.engines._stats.duck import Table
from qwed.engines._stats.filters import Filter, denies, written
from qwed.engines._stats.types import NUMBERS, TIMES, Typed, require
from qwed.engines.uploads import Refused

DIGITS = 60
_EXACT = frozenset({"integer", "decimal"})
_ORDERED = NUMBERS | TIMES

ROUNDED = frozenset(
    {"mean", "stddev", "stddev_pop", "variance", "variance_pop", "percentile", "correlation", "covariance", "share"}
)
"""Measures that are seldom written with all of their digits: equal means equal at the digits written."""


class Found(NamedTuple):
    """A measure's value and how it was found; `value` is None where no row has one."""

    value: Fraction | str | None
    sql: str
    values: tuple[Any, ...] = ()
    exact: bool = True
    """False where floating point took part, so that the last digits are not to be trusted."""
    note: str = ""


class Query(NamedTuple):
    """What a measure is computed from: a loaded file, the types of the columns used, and the rows that count."""

    table: Table
    columns: Mapping[str, Typed]
    where: Filter

    def run(self, select: str, *, extra: str = "", tail: str = "") -> tuple[str, list[tuple[Any, ...]]]:
        """The query as text, and its rows."""
        conditions = [part for part in (self.where.sql, extra) if part not in ("", "true")]
        filtered = f" WHERE {' AND '.join(f'({part})' for part in conditions)}" if conditions else ""
        sql = f"SELECT {select} FROM data{filtered}{tail}"  # noqa: S608 - names are quoted, values are parameters
        return sql, self.table.fetch(sql, self.where.values)


def found(measure: Measure, table: Table, columns: Mapping[str, Typed]) -> Found:
    """Compute one measure."""
    where = written(measure.where, columns)
    for column, text in where.bare:
        # A word without quotes is a value only where the file says so: it may be a column that was misspelt.
        sql = f"SELECT count(*) FROM data WHERE {column.sql} = ?"  # noqa: S608 - the name is quoted
        if column.kind == "text" and table.fetch(sql, [text])[0][0] == 0:
            raise Refused(f"`{text[:40]}` is no column and no value of `{column.name[:40]}`: put text in quotes")
    if denies(measure.where):
        # Whether a row without a value `is not` something is a matter of taste.
        sql = f"SELECT count(*) FROM data WHERE ({where.sql}) IS NULL"  # noqa: S608 - names are quoted
        if table.fetch(sql, where.values)[0][0]:
            raise Refused("rows without a value may or may not count: add `and ... is not null` to the filter")
    return _MEASURES[measure.kind](measure, Query(table, columns, where))


def _rows(_: Measure, query: Query) -> Found:
    sql, rows = query.run("count(*)")
    return Found(Fraction(rows[0][0]), sql, query.where.values)


def _columns(measure: Measure, query: Query) -> Found:
    return Found(Fraction(len(_whole(measure, query).columns)), "SELECT count(*) FROM (DESCRIBE data)")


def _whole(measure: Measure, query: Query) -> Table:
    if measure.where is not None:
        raise Refused(f"{measure.kind.replace('_', ' ')} are counted in the whole file only: leave the filter out")
    return query.table


_DISTINCT = "SELECT count(*) FROM (SELECT DISTINCT * FROM data)"
_SHAPES = {"distinct_rows": _DISTINCT, "duplicate_rows": f"SELECT count(*) - ({_DISTINCT}) FROM data"}  # noqa: S608


def _distinct_rows(measure: Measure, query: Query) -> Found:
    table = _whole(measure, query)
    count = f"FROM raw WHERE {table.rows}"
    distinct = table.fetch(f"SELECT count(*) FROM (SELECT DISTINCT * {count})")[0][0]  # noqa: S608 - our own names
    value = distinct if measure.kind == "distinct_rows" else table.fetch(f"SELECT count(*) {count}")[0][0] - distinct
    return Found(Fraction(value), _SHAPES[measure.kind])


_COUNTED = {"count": "count({0})", "distinct": "count(DISTINCT {0})", "nulls": "count(*) FILTER (WHERE {0} IS NULL)"}


def _counted(measure: Measure, query: Query) -> Found:
    column = query.columns[measure.columns[0]]
    if column.kind == "nested" and measure.kind == "distinct":
        raise Refused(f"the column `{column.name[:60]}` holds nested values, which are not compared")
    sql, rows = query.run(_COUNTED[measure.kind].format(column.sql))
    note = f"{column.missing} cells that say so count as missing" if column.missing else ""
    return Found(Fraction(rows[0][0]), sql, query.where.values, note=note)


def _share(measure: Measure, query: Query) -> Found:
    everything = Query(query.table, query.columns, Filter("true", query.where.values))
    sql, rows = everything.run(f"count(*) FILTER (WHERE {query.where.sql}), count(*)")
    part, whole = rows[0]
    value = Fraction(part, whole) * measure.scale if whole else None
    return Found(value, sql, query.where.values)


def _number(measure: Measure, query: Query) -> Typed:
    return require(query.columns[measure.columns[0]], NUMBERS, f"{measure.kind.replace('_', ' ')} that is a number")


def _sum(measure: Measure, query: Query) -> Found:
    column = _number(measure, query)
    sql, rows = query.run(f"sum({column.sql})")
    return _plain(rows[0][0], sql, query, column)


def _mean(measure: Measure, query: Query) -> Found:
    column = _number(measure, query)
    sql, rows = query.run(f"sum({column.sql}), count({column.sql})")
    total, count = rows[0]
    if not count:
        return Found(None, sql, query.where.values)
    return _plain(total, sql, query, column, divide=count)


def _plain(value: Any, sql: str, query: Query, column: Typed, divide: int = 1) -> Found:
    if value is None:
        return Found(None, sql, query.where.values)
    exact = column.kind in _EXACT
    return Found(_fraction(value) / divide, sql, query.where.values, exact)


def _fraction(value: Any) -> Fraction:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise Refused("the numbers of the column are not all finite")
        # The shortest decimal that is this number is the one that was written.
        return Fraction(repr(value))
    return Fraction(value)


def _extreme(measure: Measure, query: Query) -> Found:
    column = require(query.columns[measure.columns[0]], _ORDERED, f"{measure.kind}imum")
    sql, rows = query.run(f"{measure.kind}({column.sql})")
    value = rows[0][0]
    if isinstance(value, datetime.date):
        return Found(value.isoformat(), sql, query.where.values)
    return _plain(value, sql, query, column)._replace(exact=True)


def _range(measure: Measure, query: Query) -> Found:
    column = _number(measure, query)
    sql, rows = query.run(f"min({column.sql}), max({column.sql})")
    low, high = rows[0]
    value = None if low is None else _fraction(high) - _fraction(low)
    return Found(value, sql, query.where.values, column.kind in _EXACT)


def _mode(measure: Measure, query: Query) -> Found:
    column = query.columns[measure.columns[0]]
    if column.kind == "nested":
        raise Refused(f"the column `{column.name[:60]}` holds nested values, which are not compared")
    tail = f" GROUP BY {column.sql} ORDER BY n DESC, {column.sql} LIMIT 2"
    sql, rows = query.run(f"{column.sql}, count(*) AS n", extra=f"{column.sql} IS NOT NULL", tail=tail)
    if len(rows) == 2 and rows[0][1] == rows[1][1]:
        raise Refused(f"more than one value of `{column.name[:60]}` is the most frequent")
    value = rows[0][0] if rows else None
    return Found(as_found(value), sql, query.where.values)


def as_found(value: Any) -> Fraction | str | None:
    """A cell as a text or an exact number."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, datetime.date) else _fraction(value)


def _percentile(measure: Measure, query: Query) -> Found:
    """By linear interpolation between the two nearest values."""
    column = _number(measure, query)
    quantile = Fraction(measure.quantile if measure.quantile is not None else 50)
    if not 0 <= quantile <= 100:
        raise Refused("a percentile lies between 0 and 100")
    count = query.run(f"count({column.sql})")[1][0][0]
    place = quantile / 100 * max(count - 1, 0)
    tail = f" ORDER BY {column.sql} LIMIT 2 OFFSET {math.floor(place)}"
    sql, rows = query.run(column.sql, extra=f"{column.sql} IS NOT NULL", tail=tail)
    if not rows:
        return Found(None, sql, query.where.values)
    low, high = _fraction(rows[0][0]), _fraction(rows[-1][0])
    value = low + (high - low) * (place - math.floor(place))
    note = "" if measure.kind == "median" else "between two values by linear interpolation"
    return Found(value, sql, query.where.values, column.kind in _EXACT or low == high, note)


def _spread(measure: Measure, query: Query) -> Found:
    column = _number(measure, query)
    less = 0 if measure.kind.endswith("_pop") else 1
    exact = column.kind in _EXACT and column.narrow
    variance = _exact_variance(column, query, less) if exact else _near_variance(column, query, less)
    sql = query.run(f"{_SPREADS[measure.kind]}({column.sql})")[0]
    if variance is None:
        return Found(None, sql, query.where.values)
    value = _root(variance) if measure.kind.startswith("stddev") else variance
    return Found(value, sql, query.where.values, exact, "of a sample" if less else "of the population")


def _exact_variance(column: Typed, query: Query, less: int) -> Fraction | None:
    cell = f"CAST({column.sql} AS HUGEINT)" if column.kind == "integer" else column.sql
    total, squares, count = query.run(f"sum({cell}), sum({cell} * {cell}), count({cell})")[1][0]
    if count <= less:
        return None
    spread: Fraction = (_fraction(squares) - _fraction(total) ** 2 / count) / (count - less)
    return spread


def _near_variance(column: Typed, query: Query, less: int) -> Fraction | None:
    value = query.run(f"{'var_samp' if less else 'var_pop'}(CAST({column.sql} AS DOUBLE))")[1][0][0]
    return None if value is None else _fraction(value)


_SPREADS = {"stddev": "stddev_samp", "stddev_pop": "stddev_pop", "variance": "var_samp", "variance_pop": "var_pop"}


def _root(value: Fraction) -> Fraction:
    """The square root: exact where it is a fraction, else to more digits than a claim has."""
    top, bottom = math.isqrt(value.numerator), math.isqrt(value.denominator)
    if top * top == value.numerator and bottom * bottom == value.denominator:
        return Fraction(top, bottom)
    with localcontext() as context:
        context.prec = DIGITS
        return Fraction((Decimal(value.numerator) / Decimal(value.denominator)).sqrt())


def _pair(measure: Measure, query: Query) -> Found:
    one, other = (require(query.columns[name], NUMBERS, measure.kind) for name in measure.columns)
    function = "corr" if measure.kind == "correlation" else "covar_samp"
    sql, rows = query.run(f"{function}({one.sql}, {other.sql})")
    value = rows[0][0]
    if value is None or not math.isfinite(value):
        return Found(None, sql, query.where.values)
    return Found(_fraction(value), sql, query.where.values, exact=False)


_MEASURES = {
    "rows": _rows,
    "columns": _columns,
    "distinct_rows": _distinct_rows,
    "duplicate_rows": _distinct_rows,
    "count": _counted,
    "distinct": _counted,
    "nulls": _counted,
    "share": _share,
    "sum": _sum,
    "mean": _mean,
    "min": _extreme,
    "max": _extreme,
    "range": _range,
    "mode": _mode,
    "median": _percentile,
    "percentile": _percentile,
    "stddev": _spread,
    "stddev_pop": _spread,
    "variance": _spread,
    "variance_pop": _spread,
    "correlation": _pair,
    "covariance": _pair,
}
