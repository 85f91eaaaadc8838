"""Measures of the stats engine: the SQL of each measure, with exact results for exact columns."""

import datetime
import math
from collections.abc import Mapping
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, NamedTuple

from qwed.engines._stats.claims import Measure
from qwed.engines._stats.duckdb_session import LoadedTable
from qwed.engines._stats.filters import Filter, condition_to_sql, has_negation
from qwed.engines._stats.types import NUMBERS, TIMES, TypedColumn, require_kind
from qwed.engines.uploads import UploadError

SQUARE_ROOT_DIGITS = 60
_EXACT = frozenset({"integer", "decimal"})
_ORDERED = NUMBERS | TIMES

ROUNDED_MEASURES = frozenset(
    {"mean", "stddev", "stddev_pop", "variance", "variance_pop", "percentile", "correlation", "covariance", "share"}
)
"""Measures that are usually written rounded; equality is checked at the digits written."""


class MeasuredValue(NamedTuple):
    """Value of a measure with its query; `value` is None if no row has a value."""

    value: Fraction | str | None
    sql: str
    values: tuple[Any, ...] = ()
    exact: bool = True
    """False if floating point was involved and the last digits are unreliable."""
    note: str = ""


class MeasureQuery(NamedTuple):
    """Context of a measure: the loaded file, the types of the columns used, and the row filter."""

    table: LoadedTable
    columns: Mapping[str, TypedColumn]
    where: Filter

    def run(self, select: str, *, extra: str = "", tail: str = "") -> tuple[str, list[tuple[Any, ...]]]:
        """Run the query and return its SQL text and its rows."""
        conditions = [part for part in (self.where.sql, extra) if part not in ("", "true")]
        filtered = f" WHERE {' AND '.join(f'({part})' for part in conditions)}" if conditions else ""
        sql = f"SELECT {select} FROM data{filtered}{tail}"  # noqa: S608 - names are quoted, values are parameters
        return sql, self.table.fetch(sql, self.where.values)


def compute_measure(measure: Measure, table: LoadedTable, columns: Mapping[str, TypedColumn]) -> MeasuredValue:
    """Compute one measure."""
    where = condition_to_sql(measure.where, columns)
    for column, text in where.bare:
        # An unquoted word counts as a value only if it occurs in the column: it may be a misspelt column name.
        sql = f"SELECT count(*) FROM data WHERE {column.sql} = ?"  # noqa: S608 - the name is quoted
        if column.kind == "text" and table.fetch(sql, [text])[0][0] == 0:
            raise UploadError(
                f"`{text[:40]}` is neither a column nor a value of `{column.name[:40]}`: put text in quotes"
            )
    if has_negation(measure.where):
        # It is ambiguous whether a row without a value matches `is not ...`.
        sql = f"SELECT count(*) FROM data WHERE ({where.sql}) IS NULL"  # noqa: S608 - names are quoted
        if table.fetch(sql, where.values)[0][0]:
            raise UploadError("rows without a value may or may not count: add `and ... is not null` to the filter")
    return _MEASURES[measure.kind](measure, MeasureQuery(table, columns, where))


def _rows(_: Measure, query: MeasureQuery) -> MeasuredValue:
    sql, rows = query.run("count(*)")
    return MeasuredValue(Fraction(rows[0][0]), sql, query.where.values)


def _columns(measure: Measure, query: MeasureQuery) -> MeasuredValue:
    return MeasuredValue(
        Fraction(len(_require_unfiltered(measure, query).columns)), "SELECT count(*) FROM (DESCRIBE data)"
    )


def _require_unfiltered(measure: Measure, query: MeasureQuery) -> LoadedTable:
    if measure.where is not None:
        raise UploadError(f"{measure.kind.replace('_', ' ')} are counted in the whole file only: leave the filter out")
    return query.table


_DISTINCT = "SELECT count(*) FROM (SELECT DISTINCT * FROM data)"
_ROW_COUNT_SQL = {"distinct_rows": _DISTINCT, "duplicate_rows": f"SELECT count(*) - ({_DISTINCT}) FROM data"}  # noqa: S608


def _distinct_rows(measure: Measure, query: MeasureQuery) -> MeasuredValue:
    table = _require_unfiltered(measure, query)
    count = f"FROM raw WHERE {table.rows}"
    distinct = table.fetch(f"SELECT count(*) FROM (SELECT DISTINCT * {count})")[0][0]  # noqa: S608 - our own names
    value = distinct if measure.kind == "distinct_rows" else table.fetch(f"SELECT count(*) {count}")[0][0] - distinct
    return MeasuredValue(Fraction(value), _ROW_COUNT_SQL[measure.kind])


_COUNT_SQL = {"count": "count({0})", "distinct": "count(DISTINCT {0})", "nulls": "count(*) FILTER (WHERE {0} IS NULL)"}


def _count_cells(measure: Measure, query: MeasureQuery) -> MeasuredValue:
    column = query.columns[measure.columns[0]]
    if column.kind == "nested" and measure.kind == "distinct":
        raise UploadError(f"the column `{column.name[:60]}` holds nested values, which are not compared")
    sql, rows = query.run(_COUNT_SQL[measure.kind].format(column.sql))
    note = f"{column.missing} cells that say so count as missing" if column.missing else ""
    return MeasuredValue(Fraction(rows[0][0]), sql, query.where.values, note=note)


def _share(measure: Measure, query: MeasureQuery) -> MeasuredValue:
    everything = MeasureQuery(query.table, query.columns, Filter("true", query.where.values))
    sql, rows = everything.run(f"count(*) FILTER (WHERE {query.where.sql}), count(*)")
    part, whole = rows[0]
    value = Fraction(part, whole) * measure.scale if whole else None
    return MeasuredValue(value, sql, query.where.values)


def _require_number(measure: Measure, query: MeasureQuery) -> TypedColumn:
    return require_kind(
        query.columns[measure.columns[0]], NUMBERS, f"{measure.kind.replace('_', ' ')} that is a number"
    )


def _sum(measure: Measure, query: MeasureQuery) -> MeasuredValue:
    column = _require_number(measure, query)
    sql, rows = query.run(f"sum({column.sql})")
    return _numeric_value(rows[0][0], sql, query, column)


def _mean(measure: Measure, query: MeasureQuery) -> MeasuredValue:
    column = _require_number(measure, query)
    sql, rows = query.run(f"sum({column.sql}), count({column.sql})")
    total, count = rows[0]
    if not count:
        return MeasuredValue(None, sql, query.where.values)
    return _numeric_value(total, sql, query, column, divide=count)


def _numeric_value(value: Any, sql: str, query: MeasureQuery, column: TypedColumn, divide: int = 1) -> MeasuredValue:
    if value is None:
        return MeasuredValue(None, sql, query.where.values)
    exact = column.kind in _EXACT
    return MeasuredValue(_to_fraction(value) / divide, sql, query.where.values, exact)


def _to_fraction(value: Any) -> Fraction:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise UploadError("the numbers of the column are not all finite")
        # The shortest decimal with this float value is the one that was written in the file.
        return Fraction(repr(value))
    return Fraction(value)


def _extreme(measure: Measure, query: MeasureQuery) -> MeasuredValue:
    column = require_kind(query.columns[measure.columns[0]], _ORDERED, f"{measure.kind}imum")
    sql, rows = query.run(f"{measure.kind}({column.sql})")
    value = rows[0][0]
    if isinstance(value, datetime.date):
        return MeasuredValue(value.isoformat(), sql, query.where.values)
    return _numeric_value(value, sql, query, column)._replace(exact=True)


def _range(measure: Measure, query: MeasureQuery) -> MeasuredValue:
    column = _require_number(measure, query)
    sql, rows = query.run(f"min({column.sql}), max({column.sql})")
    low, high = rows[0]
    value = None if low is None else _to_fraction(high) - _to_fraction(low)
    return MeasuredValue(value, sql, query.where.values, column.kind in _EXACT)


def _mode(measure: Measure, query: MeasureQuery) -> MeasuredValue:
    column = query.columns[measure.columns[0]]
    if column.kind == "nested":
        raise UploadError(f"the column `{column.name[:60]}` holds nested values, which are not compared")
    tail = f" GROUP BY {column.sql} ORDER BY n DESC, {column.sql} LIMIT 2"
    sql, rows = query.run(f"{column.sql}, count(*) AS n", extra=f"{column.sql} IS NOT NULL", tail=tail)
    if len(rows) == 2 and rows[0][1] == rows[1][1]:
        raise UploadError(f"more than one value of `{column.name[:60]}` is the most frequent")
    value = rows[0][0] if rows else None
    return MeasuredValue(to_exact_value(value), sql, query.where.values)


def to_exact_value(value: Any) -> Fraction | str | None:
    """Convert a cell to a text or an exact number."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, datetime.date) else _to_fraction(value)


def _percentile(measure: Measure, query: MeasureQuery) -> MeasuredValue:
    """Compute a percentile by linear interpolation between the two nearest values."""
    column = _require_number(measure, query)
    quantile = Fraction(measure.quantile if measure.quantile is not None else 50)
    if not 0 <= quantile <= 100:
        raise UploadError("a percentile lies between 0 and 100")
    count = query.run(f"count({column.sql})")[1][0][0]
    position = quantile / 100 * max(count - 1, 0)
    tail = f" ORDER BY {column.sql} LIMIT 2 OFFSET {math.floor(position)}"
    sql, rows = query.run(column.sql, extra=f"{column.sql} IS NOT NULL", tail=tail)
    if not rows:
        return MeasuredValue(None, sql, query.where.values)
    low, high = _to_fraction(rows[0][0]), _to_fraction(rows[-1][0])
    value = low + (high - low) * (position - math.floor(position))
    note = "" if measure.kind == "median" else "between two values by linear interpolation"
    return MeasuredValue(value, sql, query.where.values, column.kind in _EXACT or low == high, note)


def _spread(measure: Measure, query: MeasureQuery) -> MeasuredValue:
    column = _require_number(measure, query)
    less = 0 if measure.kind.endswith("_pop") else 1
    exact = column.kind in _EXACT and column.narrow
    variance = _exact_variance(column, query, less) if exact else _float_variance(column, query, less)
    sql = query.run(f"{_SPREAD_FUNCTIONS[measure.kind]}({column.sql})")[0]
    if variance is None:
        return MeasuredValue(None, sql, query.where.values)
    value = _square_root(variance) if measure.kind.startswith("stddev") else variance
    return MeasuredValue(value, sql, query.where.values, exact, "of a sample" if less else "of the population")


def _exact_variance(column: TypedColumn, query: MeasureQuery, less: int) -> Fraction | None:
    cell = f"CAST({column.sql} AS HUGEINT)" if column.kind == "integer" else column.sql
    total, squares, count = query.run(f"sum({cell}), sum({cell} * {cell}), count({cell})")[1][0]
    if count <= less:
        return None
    spread: Fraction = (_to_fraction(squares) - _to_fraction(total) ** 2 / count) / (count - less)
    return spread


def _float_variance(column: TypedColumn, query: MeasureQuery, less: int) -> Fraction | None:
    value = query.run(f"{'var_samp' if less else 'var_pop'}(CAST({column.sql} AS DOUBLE))")[1][0][0]
    return None if value is None else _to_fraction(value)


_SPREAD_FUNCTIONS = {
    "stddev": "stddev_samp",
    "stddev_pop": "stddev_pop",
    "variance": "var_samp",
    "variance_pop": "var_pop",
}


def _square_root(value: Fraction) -> Fraction:
    """Return the square root: exact if it is rational, otherwise with more digits than a claim has."""
    top, bottom = math.isqrt(value.numerator), math.isqrt(value.denominator)
    if top * top == value.numerator and bottom * bottom == value.denominator:
        return Fraction(top, bottom)
    with localcontext() as context:
        context.prec = SQUARE_ROOT_DIGITS
        return Fraction((Decimal(value.numerator) / Decimal(value.denominator)).sqrt())


def _pair(measure: Measure, query: MeasureQuery) -> MeasuredValue:
    one, other = (require_kind(query.columns[name], NUMBERS, measure.kind) for name in measure.columns)
    function = "corr" if measure.kind == "correlation" else "covar_samp"
    sql, rows = query.run(f"{function}({one.sql}, {other.sql})")
    value = rows[0][0]
    if value is None or not math.isfinite(value):
        return MeasuredValue(None, sql, query.where.values)
    return MeasuredValue(_to_fraction(value), sql, query.where.values, exact=False)


_MEASURES = {
    "rows": _rows,
    "columns": _columns,
    "distinct_rows": _distinct_rows,
    "duplicate_rows": _distinct_rows,
    "count": _count_cells,
    "distinct": _count_cells,
    "nulls": _count_cells,
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
