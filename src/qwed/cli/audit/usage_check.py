"""Check of rolling usage: series agree with their uses, and what is held with the open approvals.

A leaf does not name the tool, so the tables are checked against each other.
"""

from collections.abc import Iterator
from decimal import Decimal, InvalidOperation, localcontext
from itertools import chain, pairwise

from qwed.domain.usage_window import SeriesKey
from qwed.store.snapshot_reader import SeriesRow, SnapshotReader

_DIGITS = 200
_LARGEST = Decimal(10) ** 60
"""More than any sum; the digits of a larger number would not end."""
_NO_APPROVAL = "no open approval of an action holds it"


def usage_mismatches(reader: SnapshotReader, organisation_id: str) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with the rolling usage of an organisation and its agents."""
    held: dict[SeriesKey, Decimal] = {}
    for hold in reader.usage_holds(organisation_id):
        key, amount = SeriesKey(hold.owner_id, hold.tool, hold.argument), _number(hold.amount)
        if (hold.state, hold.kind) != ("pending", "action"):
            yield f"use held by `{hold.approval_id}`", _NO_APPROVAL
        if amount is None:
            yield f"use held by `{hold.approval_id}`", f"`{hold.amount}` is not an amount"
        else:
            held[key] = _plus(held.get(key, Decimal(0)), amount)
    for row in reader.usage_series(organisation_id):
        key = SeriesKey(row.owner_id, row.tool, row.argument)
        problem = _series_problem(row, held.pop(key, Decimal(0))) or _uses_problem(row, reader.usage_totals(*key))
        if problem is not None:
            yield _name(key), problem
    for key in held:
        yield _name(key), "approvals hold uses of it, but it is missing"


def _series_problem(row: SeriesRow, held: Decimal) -> str | None:
    total, stored = _number(row.total), _number(row.held)
    if total is None or stored is None:
        return f"`{row.total}` or `{row.held}` is not an amount"
    return None if stored == held else f"it says that `{stored}` is held, but open approvals hold `{held}`"


def _uses_problem(row: SeriesRow, totals_before: Iterator[str]) -> str | None:
    """Return what is wrong with the uses of a series: each adds something, and the total comes after the last."""
    for before, after in pairwise(map(_number, chain(totals_before, [row.total]))):
        if before is None or after is None or before >= after:
            return f"its uses do not add up to its total `{row.total}`"
    return None


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() and 0 <= number < _LARGEST else None


def _plus(one: Decimal, other: Decimal) -> Decimal:
    with localcontext(prec=_DIGITS):
        return one + other


def _name(key: SeriesKey) -> str:
    argument = f" of `{key.argument}`" if key.argument else ""
    return f"usage of `{key.tool}`{argument} by `{key.owner_id}`"
