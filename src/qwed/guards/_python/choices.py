"""The values an expression can have, one of which may be that nobody knows."""

import ast
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from qwed.guards._python import pure

MAX_ITEMS = 2_000


class Unknown:
    """The one value that is not known."""


UNKNOWN = Unknown()
Possible = tuple[Any, ...]
"""Every value an expression can have, UNKNOWN among them where it can have others."""
ANYTHING: Possible = (UNKNOWN,)


def is_open(value: Any) -> bool:
    """Whether a value, or an item of it, is not known."""
    return value is UNKNOWN or (isinstance(value, tuple) and any(item is UNKNOWN for item in value))


def computed(combine: Callable[..., Any], parts: Iterable[Any]) -> Any:
    """The result, or UNKNOWN where it fails or grows too large."""
    try:
        result = combine(*parts)
    except pure.FAILURES:
        return UNKNOWN
    return result if pure.small(result) else UNKNOWN


def items_of(value: Any) -> tuple[Any, ...]:
    """What a loop over `value` runs through."""
    if isinstance(value, str | bytes | tuple | list | range):
        return tuple(value[:MAX_ITEMS])
    return tuple(value) if isinstance(value, dict) else ANYTHING


def unpacked(arguments: Sequence[ast.expr]) -> list[ast.expr]:
    """The arguments with the items of `*(a, b)` in its place; none where an item cannot be seen."""
    plain: list[ast.expr] = []
    for each in arguments:
        inner = each.value if isinstance(each, ast.Starred) else each
        spread = each is not inner and isinstance(inner, ast.Tuple | ast.List)
        plain += inner.elts if spread else [inner]  # type: ignore[attr-defined]  # a tuple or a list
    hidden = len(plain) == len(arguments) or any(isinstance(each, ast.Starred) for each in plain)
    return [] if hidden else plain


def named(target: ast.Tuple, item: Sequence[Any]) -> dict[str, Any]:
    """What `for a, b in ...` binds in one turn."""
    names = [each.id for each in target.elts if isinstance(each, ast.Name)]
    return dict(zip(names, item, strict=False))


class Choices:
    """Values, each once, in the order they were found."""

    def __init__(self, *values: Any) -> None:
        self._seen: dict[Any, Any] = {}
        self.add(values)

    def add(self, values: Iterable[Any]) -> None:
        """Those that are new."""
        for value in values:
            self._seen.setdefault(_key(value), value)

    def all(self) -> Possible:
        """Every one."""
        return tuple(self._seen.values())


def _key(value: Any) -> Any:
    # A mapping has no hash, and 1 equals True.
    return (type(value), repr(value)) if isinstance(value, dict | tuple | list) else (type(value), value)
