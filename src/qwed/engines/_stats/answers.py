"""Verdicts of the stats engine: compare the computed value with the claimed one."""

from collections.abc import Mapping
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from typing import Any, NamedTuple

from qwed.engines._stats.claims import BestGroupClaim, ClaimedOperand, ClaimPart, ComparisonClaim, Measure
from qwed.engines._stats.duckdb_session import LoadedTable
from qwed.engines._stats.filters import condition_to_sql
from qwed.engines._stats.measures import ROUNDED_MEASURES, MeasuredValue, MeasureQuery, compute_measure, to_exact_value
from qwed.engines._stats.types import NUMBERS, TypedColumn, require_kind
from qwed.engines.uploads import UploadError
from qwed.model import Status

ABOUT_TOLERANCE, ABOUT_LIMIT = Fraction(1, 100), Fraction(1, 10)
"""`about 42` holds within 1% and fails beyond 10%; between the two it is undecided."""
_FLOAT_TOLERANCE = Fraction(1, 10**9)
_DISPLAY_DIGITS = 15


class PartVerdict(NamedTuple):
    """Verdict on one part of a claim, with a message and the evidence."""

    status: Status
    message: str
    result: Mapping[str, Any]


def verify_part(part: ClaimPart, table: LoadedTable, columns: Mapping[str, TypedColumn]) -> PartVerdict:
    """Compute both sides of one part of a claim and compare them."""
    if isinstance(part, BestGroupClaim):
        return _verify_best_group(part, table, columns)
    left = compute_measure(_base_measure(part.left), table, columns)
    if part.left.kind == "repeated":
        left = _count_duplicates(part.left, table, columns)
    if part.left.kind == "every":
        left = _count_exceptions(part.left, table, columns)
    if isinstance(part.right, Measure):
        right = compute_measure(part.right, table, columns)
        return _compare_measures(part, left, right)
    return _compare_with_value(part, part.right, left)


def _base_measure(measure: Measure) -> Measure:
    """Return the measure to compute; `repeated` and `every` have their own query and start from the row count."""
    return Measure("rows") if measure.kind in ("repeated", "every") else measure


def _count_duplicates(measure: Measure, table: LoadedTable, columns: Mapping[str, TypedColumn]) -> MeasuredValue:
    name = columns[measure.columns[0]].sql
    sql, rows = MeasureQuery(table, columns, condition_to_sql(None, columns)).run(
        f"count({name}) - count(DISTINCT {name}), count(*)"
    )
    return MeasuredValue(Fraction(rows[0][0]) if rows[0][1] else None, sql)


def _count_exceptions(measure: Measure, table: LoadedTable, columns: Mapping[str, TypedColumn]) -> MeasuredValue:
    where = condition_to_sql(measure.where, columns)
    query = MeasureQuery(table, columns, where._replace(sql="true"))
    sql, rows = query.run(f"count(*) FILTER (WHERE ({where.sql}) IS NOT TRUE), count(*)")
    return MeasuredValue(Fraction(rows[0][0]) if rows[0][1] else None, sql, where.values)


def _verify_best_group(part: BestGroupClaim, table: LoadedTable, columns: Mapping[str, TypedColumn]) -> PartVerdict:
    group = columns[part.group]
    where = condition_to_sql(part.measure.where, columns)
    query = MeasureQuery(table, columns, where)
    tail = f" GROUP BY {group.sql} ORDER BY m {'DESC' if part.highest else 'ASC'} NULLS LAST LIMIT 2"
    sql, rows = query.run(f"{group.sql}, {_group_measure(part.measure, columns)} AS m", tail=tail)
    result = {"sql": sql, "parameters": _json_values(where.values), "claimed": _format_claimed(part.value)}
    if not rows or rows[0][0] is None or rows[0][1] is None:
        return PartVerdict(Status.INCONCLUSIVE, _undecided_message(part), result)
    if len(rows) == 2 and _compare(_to_fraction(rows[0][1]), "!=", _to_fraction(rows[1][1]), exact=False) is None:
        return PartVerdict(Status.INCONCLUSIVE, f"more than one group of `{part.group[:60]}` is first", result)
    value = to_exact_value(rows[0][0])
    claimed = part.value.text if part.value.number is None else Fraction(part.value.number)
    formatted = _format_value(value) or ""
    holds = value == claimed if type(value) is type(claimed) else None
    return _part_verdict(holds, f"the `{part.group[:60]}` is `{formatted[:60]}`", {**result, "value": formatted})


def _undecided_message(part: BestGroupClaim) -> str:
    if part.measure.kind == "own":
        return f"a `{part.group[:60]}` has several rows or no value: say `total`, `average` or `max`"
    return f"no group of `{part.group[:60]}` stands out"


def _to_fraction(value: Any) -> Fraction:
    return Fraction(0) if value is None or value != value else Fraction(value)


_GROUP_AGGREGATES = {
    "sum": "sum({0})",
    "mean": "avg({0})",
    "min": "min({0})",
    "max": "max({0})",
    "median": "median(CAST({0} AS DOUBLE))",
}
# The value of the only row of a group; NULL unless every group has exactly one row.
_GROUP_AGGREGATES |= {"own": "CASE WHEN max(count(*)) OVER () = 1 THEN max({0}) END"}
_GROUP_AGGREGATES |= {"count": "count({0})", "distinct": "count(DISTINCT {0})"}


def _group_measure(measure: Measure, columns: Mapping[str, TypedColumn]) -> str:
    if measure.kind == "rows":
        return "count(*)"
    if measure.kind not in _GROUP_AGGREGATES:
        raise UploadError(f"groups are not compared by {measure.kind.replace('_', ' ')}")
    column = columns[measure.columns[0]]
    if measure.kind not in ("count", "distinct"):
        require_kind(column, NUMBERS, "order here" if measure.kind == "own" else measure.kind)
    return _GROUP_AGGREGATES[measure.kind].format(column.sql)


def _compare_measures(part: ComparisonClaim, left: MeasuredValue, right: MeasuredValue) -> PartVerdict:
    one, other = left.value, right.value
    result = {
        "sql": left.sql,
        "parameters": _json_values(left.values),
        "value": _format_value(one),
        "claimed": _format_value(other),
        "claimed_sql": right.sql,
        "claimed_parameters": _json_values(right.values),
    }
    if one is None or other is None:
        return PartVerdict(Status.INCONCLUSIVE, "no row has a value to compare", result)
    if isinstance(one, str) or isinstance(other, str):
        holds = _compare_texts(str(one), part.operator, str(other)) if type(one) is type(other) else None
    else:
        holds = _compare(one, part.operator, other, exact=left.exact and right.exact)
    return _part_verdict(holds, f"{_format_value(one)} against {_format_value(other)}", result)


def _compare_with_value(part: ComparisonClaim, value: ClaimedOperand, left: MeasuredValue) -> PartVerdict:
    result = {
        "sql": left.sql,
        "parameters": _json_values(left.values),
        "value": _format_value(left.value),
        "claimed": _format_claimed(value),
    }
    if left.value is None:
        return PartVerdict(Status.INCONCLUSIVE, "no row has a value to compute with", result)
    message = f"the value is {_format_value(left.value)}{', ' + left.note if left.note else ''}"
    if isinstance(left.value, str):
        return _part_verdict(_compare_texts(left.value, part.operator, value.text), message, result)
    if value.number is None:
        return _part_verdict(None, f"{message}, which is not compared with a text", result)
    if value.percent and part.left.kind != "share":
        return _part_verdict(None, f"{message}, which is not a share: leave the `%` out", result)
    return _compare_numbers(part, value, left.value, left, message, result)


def _compare_numbers(
    part: ComparisonClaim,
    value: ClaimedOperand,
    number: Fraction,
    left: MeasuredValue,
    message: str,
    result: Mapping[str, Any],
) -> PartVerdict:
    shift = -2 if value.percent and part.left.scale == 1 else 0
    low = (value.number or Decimal(0)).scaleb(shift)
    if value.high is not None:
        return _part_verdict(
            _is_within_range(number, low, value.high.scaleb(shift), part.operator, left.exact), message, result
        )
    if value.margin is not None:
        holds = _is_within_margin(number, low, Fraction(value.margin.scaleb(shift)), left.exact)
        return _part_verdict(holds if part.operator in ("=", "about") else None, message, result)
    if part.operator == "about":
        return _part_verdict(_is_about(number, Fraction(low)), message, result)
    if part.operator in ("=", "!="):
        equal, message = _is_equal(part.left, number, low, left.exact, message)
        return _part_verdict(equal if part.operator == "=" or equal is None else not equal, message, result)
    return _part_verdict(_compare(number, part.operator, Fraction(low), exact=left.exact), message, result)


def _is_within_range(number: Fraction, low: Decimal, high: Decimal, operator: str, exact: bool) -> bool | None:
    if low > high:
        return None
    above = _compare(number, ">=", Fraction(low), exact=exact)
    below = _compare(number, "<=", Fraction(high), exact=exact)
    if above is None or below is None:
        return None
    return (above and below) is (operator == "between")


def _is_within_margin(number: Fraction, low: Decimal, margin: Fraction, exact: bool) -> bool | None:
    return _compare(abs(number - Fraction(low)), "<=", abs(margin), exact=exact)


def _is_about(number: Fraction, claimed: Fraction) -> bool | None:
    away = abs(number - claimed)
    if away <= abs(claimed) * ABOUT_TOLERANCE:
        return True
    return False if away > abs(claimed) * ABOUT_LIMIT else None


def _is_equal(
    measure: Measure, number: Fraction, claimed: Decimal, exact: bool, message: str
) -> tuple[bool | None, str]:
    """Return whether the values are equal; rounded measures are compared at the digits written."""
    away = abs(number - Fraction(claimed))
    if away == 0 or (not exact and away <= _FLOAT_TOLERANCE * max(Fraction(1), abs(number))):
        return True, message
    places = -int(claimed.as_tuple().exponent)
    decimals = places - (2 if measure.kind == "share" and measure.scale == 1 else 0)
    if (measure.kind not in ROUNDED_MEASURES and exact) or not _rounds_to(number, claimed, places):
        return False, message
    if decimals >= 1:
        return True, f"{message}, which is {claimed} at the digits written"
    if measure.kind == "share":
        return None, f"{message}, which is {claimed} only when rounded: write `about` or more digits"
    return False, f"{message}: write `about {claimed}` if that is meant"


def _rounds_to(number: Fraction, claimed: Decimal, places: int) -> bool:
    with localcontext() as context:
        context.prec = 200
        value = Decimal(number.numerator) / Decimal(number.denominator)
        unit = Decimal(1).scaleb(-places)
        return claimed in {value.quantize(unit, rounding=rule) for rule in (ROUND_HALF_UP, ROUND_HALF_EVEN)}


_OPERATORS = {
    "=": lambda one, other: one == other,
    "!=": lambda one, other: one != other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}


def _compare(one: Fraction, operator: str, other: Fraction, *, exact: bool) -> bool | None:
    """Return whether the comparison holds, or None if floating point is too coarse to decide."""
    test = _OPERATORS.get(operator)
    if test is None or (not exact and abs(one - other) <= _FLOAT_TOLERANCE * max(Fraction(1), abs(one), abs(other))):
        return None
    return bool(test(one, other))


def _compare_texts(one: str, operator: str, other: str | None) -> bool | None:
    """Return whether the comparison of two texts holds. Only ISO dates have an order; their text order is the date
    order."""
    if other is None or (
        operator not in ("=", "!=") and (operator not in _OPERATORS or not _is_date(one) or not _is_date(other))
    ):
        return None
    if _is_date(one) and len(one) != len(other):
        return None
    return bool(_OPERATORS[operator](one, other))


def _is_date(text: str) -> bool:
    return len(text) >= 10 and text[:4].isdecimal() and text[4] == text[7] == "-"


def _part_verdict(holds: bool | None, message: str, result: Mapping[str, Any]) -> PartVerdict:
    if holds is None:
        return PartVerdict(Status.INCONCLUSIVE, f"{message}, which does not decide the claim", result)
    return PartVerdict(Status.VERIFIED if holds else Status.FAILED, message, result)


def _format_value(value: Fraction | str | None) -> str | None:
    if value is None or isinstance(value, str):
        return value
    with localcontext() as context:
        context.prec = _DISPLAY_DIGITS if value.denominator != 1 else 60
        return _format_decimal(Decimal(value.numerator) / Decimal(value.denominator))


def _format_decimal(number: Decimal | None) -> str:
    return "" if number is None else format(number.normalize() + 0, "f")


def _format_claimed(value: ClaimedOperand) -> str | None:
    if value.number is None:
        return value.text
    text = str(value.number) if value.high is None else f"{value.number} to {value.high}"
    text += f" ± {value.margin}" if value.margin is not None else ""
    return text + ("%" if value.percent else "")


def _json_values(values: tuple[Any, ...]) -> list[Any]:
    return [value if isinstance(value, str | bool) else str(value) for value in values]
