"""A value of a class that was derived from one of Python's, as the value that it is: an enum's text, a numpy float.

What such a class says of itself is not asked: its methods may raise, or answer something else than they hold.
"""

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

_PLAIN = frozenset((type(None), bool, str, int, float, Decimal, datetime, date, list, tuple, dict))
_MADE: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (str, str.__str__),
    (int, lambda value: int.__add__(value, 0)),
    (float, float.__float__),
    (Decimal, Decimal),
    (datetime, lambda value: datetime.combine(datetime.date(value), datetime.timetz(value))),
    (date, lambda value: date.fromordinal(date.toordinal(value))),
    (list, lambda value: list.__getitem__(value, slice(None))),
    (tuple, lambda value: tuple.__getitem__(value, slice(None))),
    (dict, lambda value: dict(dict.items(value))),
)
"""A datetime is a date too, so it stands first."""
_STRANGE = object()
"""In place of what says of itself that it is something else, and could raise where it is asked."""


def own(value: Any) -> Any:
    """The value in Python's own class; what is of no such kind stays as it is."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    made = next((make for base, make in _MADE if issubclass(kind, base)), None)
    if made is not None:
        return made(value)
    return _STRANGE if any("__class__" in vars(base) for base in kind.__mro__[:-1]) else value
