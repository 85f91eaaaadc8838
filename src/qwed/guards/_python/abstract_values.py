"""Sets of possible values of an expression, including the unknown value."""

import ast
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from qwed.guards._python import pure_functions

MAX_ITEMS = 2_000


class Unknown:
    """Type of the unknown value."""


UNKNOWN = Unknown()
Possible = tuple[Any, ...]
"""All possible values of an expression, with UNKNOWN if there may be others."""
ANYTHING: Possible = (UNKNOWN,)


def has_unknown(value: Any) -> bool:
    """Return True if the value, or an item of it, is unknown."""
    return value is UNKNOWN or (isinstance(value, tuple) and any(item is UNKNOWN for item in value))


def compute(combine: Callable[..., Any], parts: Iterable[Any]) -> Any:
    """Return the combined value, or UNKNOWN if the computation fails or the result is too large."""
    try:
        result = combine(*parts)
    except pure_functions.FAILURES:
        return UNKNOWN
    return result if pure_functions.is_small(result) else UNKNOWN


def items_of(value: Any) -> tuple[Any, ...]:
    """Return the items that a loop over `value` visits."""
    if isinstance(value, str | bytes | tuple | list | range):
        return tuple(value[:MAX_ITEMS])
    return tuple(value) if isinstance(value, dict) else ANYTHING


def unpack_arguments(arguments: Sequence[ast.expr]) -> list[ast.expr]:
    """Return the arguments with `*(a, b)` replaced by its items; empty if the items are not visible."""
    plain: list[ast.expr] = []
    for argument in arguments:
        inner = argument.value if isinstance(argument, ast.Starred) else argument
        spread = argument is not inner and isinstance(inner, ast.Tuple | ast.List)
        plain += inner.elts if spread else [inner]  # type: ignore[attr-defined]  # a tuple or a list
    hidden = len(plain) == len(arguments) or any(isinstance(argument, ast.Starred) for argument in plain)
    return [] if hidden else plain


def bind_targets(target: ast.Tuple, item: Sequence[Any]) -> dict[str, Any]:
    """Return the names that `for a, b in ...` binds in one iteration."""
    names = [element.id for element in target.elts if isinstance(element, ast.Name)]
    return dict(zip(names, item, strict=False))


class Choices:
    """Ordered set of values."""

    def __init__(self, *values: Any) -> None:
        self._seen: dict[Any, Any] = {}
        self.add(values)

    def add(self, values: Iterable[Any]) -> None:
        """Add the values that are new."""
        for value in values:
            self._seen.setdefault(_key(value), value)

    def all(self) -> Possible:
        """Return all values."""
        return tuple(self._seen.values())


def _key(value: Any) -> Any:
    # A mapping has no hash, and 1 equals True, so the type is part of the key.
    return (type(value), repr(value)) if isinstance(value, dict | tuple | list) else (type(value), value)
