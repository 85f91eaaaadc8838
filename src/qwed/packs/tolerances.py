"""Bounds on the parameters with which a request could loosen the judgement of its own claim."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from qwed.model.decimals import NumberFormatError, parse_number
from qwed.model.tolerances import LOOSENING


class BoundedParameters(NamedTuple):
    """Parameters that the judgement uses, and a note for each one that was asked for in a looser form."""

    values: dict[str, Any]
    notes: tuple[str, ...] = ()


def bound_parameters(parameters: Mapping[str, Any], limits: Mapping[str, Any]) -> BoundedParameters:
    """Return the parameters, each no looser than its limit, which is its default where `limits` has none.

    A value that is not a number is returned as it is, for the check to refuse.
    """
    values, notes = dict(parameters), list[str]()
    for name in sorted(LOOSENING.keys() & parameters.keys()):
        limit, requested = _limit(name, limits), _number(parameters[name])
        if requested is not None and LOOSENING[name].is_looser(requested, limit):
            values[name] = bool(limit) if isinstance(parameters[name], bool) else _plain(limit)
            notes.append(f"`{name}` is {_plain(limit)} at the loosest, and {_plain(requested)} was asked for")
    return BoundedParameters(values, tuple(notes))


def _limit(name: str, limits: Mapping[str, Any]) -> Decimal:
    stated = _number(limits.get(name))
    return LOOSENING[name].default if stated is None else stated


def _number(value: Any) -> Decimal | None:
    if isinstance(value, bool | Decimal):
        return Decimal(value)
    try:
        return parse_number(value)
    except NumberFormatError:
        return None


def _plain(value: Decimal) -> int | str:
    return int(value) if value == value.to_integral_value() else f"{value:f}"
