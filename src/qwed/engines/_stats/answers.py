"""The stats engine's answers: what was found beside what was claimed, and whether the two agree."""

from collections.abc import Mapping
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from typing import Any, NamedTuple

from qwed.engines._stats.claims import Best, Compared, Measure, Part, Value
from qwed.engines._stats.duck import Table
from qwed.engines._stats.filters import written
from qwed.engines._stats.measures import ROUNDED, Found, Query, as_found, found
from qwed.engines._stats.types import NUMBERS, Typed, require
from qwed.engines.uploads import Refused
from qwed.words import Status

NEAR, FAR = Fraction(1, 100), Fraction(1, 10)
"""`about 42` holds within a hundredth and fails beyond a tenth; between the two it is a matter of taste."""
_NOISE = Fraction(1, 10**9)
_SHOWN = 15


class Answer(NamedTuple):
    """The status of one part of a claim, the sentence that says why, and the evidence."""

    status: Status
    message: str
    result: Mapping[str, Any]


def answer(part: Part, table: Table, columns: Mapping[str, Typed]) -> Answer:
    """Compute both sides and compare them."""
    if isinstance(part, Best):
        return _best(part, table, columns)
    left = found(_known(part.left), table, columns)
    if part.left.kind == "repeated":
        left = _repeated(part.left, table, columns)
    if part.left.kind == "every":
        left = _exceptions(part.left, table, columns)
    if isinstance(part.right, Measure):
        right = found(part.right, table, columns)
        return _two(part, left, right)
    return _one(part, part.right, left)


def _known(measure: Measure) -> Measure:
    """Two sentences are counted in their own way; for them this is the number of rows looked at."""
    return Measure("rows") if measure.kind in ("repeated", "every") else measure


def _repeated(measure: Measure, table: Table, columns: Mapping[str, Typed]) -> Found:
    name = columns[measure.columns[0]].sql
    sql, rows = Query(table, columns, written(None, columns)).run(f"count({name}) - count(DISTINCT {name}), count(*)")
    return Found(Fraction(rows[0][0]) if rows[0][1] else None, sql)


def _exceptions(measure: Measure, table: Table, columns: Mapping[str, Typed]) -> Found:
    where = written(measure.where, columns)
    query = Query(table, columns, where._replace(sql="true"))
    sql, rows = query.run(f"count(*) FILTER (WHERE ({where.sql}) IS NOT TRUE), count(*)")
    return Found(Fraction(rows[0][0]) if rows[0][1] else None, sql, where.values)


def _best(part: Best, table: Table, columns: Mapping[str, Typed]) -> Answer:
    group = columns[part.group]
    where = written(part.measure.where, columns)
    query = Query(table, columns, where)
    tail = f" GROUP BY {group.sql} ORDER BY m {'DESC' if part.highest else 'ASC'} NULLS LAST LIMIT 2"
    sql, rows = query.run(f"{group.sql}, {_group_measure(part.measure, columns)} AS m", tail=tail)
    result = {"sql": sql, "parameters": _json(where.values), "claimed": _claimed(part.value)}
    if not rows or rows[0][0] is None or rows[0][1] is None:
        return Answer(Status.INCONCLUSIVE, _undecided(part), result)
    if len(rows) == 2 and _order(_number(rows[0][1]), "!=", _number(rows[1][1]), exact=False) is None:
        return Answer(Status.INCONCLUSIVE, f"more than one group of `{part.group[:60]}` is first", result)
    value = as_found(rows[0][0])
    claimed = part.value.text if part.value.number is None else Fraction(part.value.number)
    shown = _show(value) or ""
    holds = value == claimed if type(value) is type(claimed) else None
    return _told(holds, f"the `{part.group[:60]}` is `{shown[:60]}`", {**result, "value": shown})


def _undecided(part: Best) -> str:
    if part.measure.kind == "own":
        return f"a `{part.group[:60]}` has several rows or no value: say `total`, `average` or `max`"
    return f"no group of `{part.group[:60]}` stands out"


def _number(value: Any) -> Fraction:
    return Fraction(0) if value is None or value != value else Fraction(value)


_GROUPED = {
    "sum": "sum({0})",
    "mean": "avg({0})",
    "min": "min({0})",
    "max": "max({0})",
    "median": "median(CAST({0} AS DOUBLE))",
}
# The one value of a group, where every group has one.
_GROUPED |= {"own": "CASE WHEN max(count(*)) OVER () = 1 THEN max({0}) END"}
_GROUPED |= {"count": "count({0})", "distinct": "count(DISTINCT {0})"}


def _group_measure(measure: Measure, columns: Mapping[str, Typed]) -> str:
    if measure.kind == "rows":
        return "count(*)"
    if measure.kind not in _GROUPED:
        raise Refused(f"groups are not compared by {measure.kind.replace('_', ' ')}")
    column = columns[measure.columns[0]]
    if measure.kind not in ("count", "distinct"):
        require(column, NUMBERS, "order here" if measure.kind == "own" else measure.kind)
    return _GROUPED[measure.kind].format(column.sql)


def _two(part: Compared, left: Found, right: Found) -> Answer:
    one, other = left.value, right.value
    result = {
        "sql": left.sql,
        "parameters": _json(left.values),
        "value": _show(one),
        "claimed": _show(other),
        "claimed_sql": right.sql,
        "claimed_parameters": _json(right.values),
    }
    if one is None or other is None:
        return Answer(Status.INCONCLUSIVE, "no row has a value to compare", result)
    if isinstance(one, str) or isinstance(other, str):
        holds = _texts(str(one), part.operator, str(other)) if type(one) is type(other) else None
    else:
        holds = _order(one, part.operator, other, exact=left.exact and right.exact)
    return _told(holds, f"{_show(one)} against {_show(other)}", result)


def _one(part: Compared, value: Value, left: Found) -> Answer:
    result = {"sql": left.sql, "parameters": _json(left.values), "value": _show(left.value), "claimed": _claimed(value)}
    if left.value is None:
        return Answer(Status.INCONCLUSIVE, "no row has a value to compute with", result)
    message = f"the value is {_show(left.value)}{', ' + left.note if left.note else ''}"
    if isinstance(left.value, str):
        return _told(_texts(left.value, part.operator, value.text), message, result)
    if value.number is None:
        return _told(None, f"{message}, which is not compared with a text", result)
    if value.percent and part.left.kind != "share":
        return _told(None, f"{message}, which is no share of anything: leave the `%` out", result)
    return _numbers(part, value, left.value, left, message, result)


def _numbers(
    part: Compared, value: Value, number: Fraction, left: Found, message: str, result: Mapping[str, Any]
) -> Answer:
    shift = -2 if value.percent and part.left.scale == 1 else 0
    low = (value.number or Decimal(0)).scaleb(shift)
    if value.high is not None:
        return _told(_within(number, low, value.high.scaleb(shift), part.operator, left.exact), message, result)
    if value.margin is not None:
        holds = _near(number, low, Fraction(value.margin.scaleb(shift)), left.exact)
        return _told(holds if part.operator in ("=", "about") else None, message, result)
    if part.operator == "about":
        return _told(_about(number, Fraction(low)), message, result)
    if part.operator in ("=", "!="):
        equal, message = _equal(part.left, number, low, left.exact, message)
        return _told(equal if part.operator == "=" or equal is None else not equal, message, result)
    return _told(_order(number, part.operator, Fraction(low), exact=left.exact), message, result)


def _within(number: Fraction, low: Decimal, high: Decimal, operator: str, exact: bool) -> bool | None:
    if low > high:
        return None
    above = _order(number, ">=", Fraction(low), exact=exact)
    below = _order(number, "<=", Fraction(high), exact=exact)
    if above is None or below is None:
        return None
    return (above and below) is (operator == "between")


def _near(number: Fraction, low: Decimal, margin: Fraction, exact: bool) -> bool | None:
    return _order(abs(number - Fraction(low)), "<=", abs(margin), exact=exact)


def _about(number: Fraction, claimed: Fraction) -> bool | None:
    away = abs(number - claimed)
    if away <= abs(claimed) * NEAR:
        return True
    return False if away > abs(claimed) * FAR else None


def _equal(measure: Measure, number: Fraction, claimed: Decimal, exact: bool, message: str) -> tuple[bool | None, str]:
    """Whether the two are the same, or the same at the digits written where a measure is seldom written whole."""
    away = abs(number - Fraction(claimed))
    if away == 0 or (not exact and away <= _NOISE * max(Fraction(1), abs(number))):
        return True, message
    places = -int(claimed.as_tuple().exponent)
    written = places - (2 if measure.kind == "share" and measure.scale == 1 else 0)
    if (measure.kind not in ROUNDED and exact) or not _rounds(number, claimed, places):
        return False, message
    if written >= 1:
        return True, f"{message}, which is {claimed} at the digits written"
    if measure.kind == "share":
        return None, f"{message}, which is {claimed} only when rounded: write `about` or more digits"
    return False, f"{message}: write `about {claimed}` if that is meant"


def _rounds(number: Fraction, claimed: Decimal, places: int) -> bool:
    with localcontext() as context:
        context.prec = 200
        value = Decimal(number.numerator) / Decimal(number.denominator)
        unit = Decimal(1).scaleb(-places)
        return claimed in {value.quantize(unit, rounding=rule) for rule in (ROUND_HALF_UP, ROUND_HALF_EVEN)}


_ORDERS = {
    "=": lambda one, other: one == other,
    "!=": lambda one, other: one != other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}


def _order(one: Fraction, operator: str, other: Fraction, *, exact: bool) -> bool | None:
    """Whether the order holds; None where floating point is too coarse to say."""
    test = _ORDERS.get(operator)
    if test is None or (not exact and abs(one - other) <= _NOISE * max(Fraction(1), abs(one), abs(other))):
        return None
    return bool(test(one, other))


def _texts(one: str, operator: str, other: str | None) -> bool | None:
    """Texts are equal or not; days have an order too, and are written so that the order of their texts is theirs."""
    if other is None or (operator not in ("=", "!=") and (operator not in _ORDERS or not _day(one) or not _day(other))):
        return None
    if _day(one) and len(one) != len(other):
        return None
    return bool(_ORDERS[operator](one, other))


def _day(text: str) -> bool:
    return len(text) >= 10 and text[:4].isdecimal() and text[4] == text[7] == "-"


def _told(holds: bool | None, message: str, result: Mapping[str, Any]) -> Answer:
    if holds is None:
        return Answer(Status.INCONCLUSIVE, f"{message}, which does not decide the claim", result)
    return Answer(Status.VERIFIED if holds else Status.FAILED, message, result)


def _show(value: Fraction | str | None) -> str | None:
    if value is None or isinstance(value, str):
        return value
    with localcontext() as context:
        context.prec = _SHOWN if value.denominator != 1 else 60
        return _plain(Decimal(value.numerator) / Decimal(value.denominator))


def _plain(number: Decimal | None) -> str:
    return "" if number is None else format(number.normalize() + 0, "f")


def _claimed(value: Value) -> str | None:
    if value.number is None:
        return value.text
    text = str(value.number) if value.high is None else f"{value.number} to {value.high}"
    text += f" ± {value.margin}" if value.margin is not None else ""
    return text + ("%" if value.percent else "")


def _json(values: tuple[Any, ...]) -> list[Any]:
    return [each if isinstance(each, str | bool) else str(each) for each in values]
