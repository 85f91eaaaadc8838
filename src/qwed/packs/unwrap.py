"""Conversion of subclasses of built-in types to the built-in value: an enum's text, a numpy float.

The subclass's own methods are not called: they may raise or misreport the value.
"""

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

_PLAIN = frozenset((type(None), bool, str, int, float, Decimal, datetime, date, list, tuple, dict))
_CONVERTERS: tuple[tuple[type, Callable[[Any], Any]], ...] = (
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
"""A datetime is also a date, so it comes first."""
_UNTRUSTED = object()
"""Replaces an object that overrides `__class__` and could raise when inspected."""


def unwrap(value: Any) -> Any:
    """Return the value as its built-in type; other values are returned unchanged."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    convert = next((make for base, make in _CONVERTERS if issubclass(kind, base)), None)
    if convert is not None:
        return convert(value)
    return _UNTRUSTED if any("__class__" in vars(base) for base in kind.__mro__[:-1]) else value
