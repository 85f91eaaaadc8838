"""Wrappers of real objects that fail at, replace or record single calls; everything else is passed through."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from qwed.futures import Future
from tests.support.store_parts import StoreParts


class FailingProxy:
    """Proxy of an object whose `method` raises at its n-th call and every later one (only once with `once`)."""

    def __init__(self, real: Any, method: str, failure: BaseException, nth: int = 1, *, once: bool = False) -> None:
        _require_attribute(real, method)
        self._real = real
        self._method = method
        self.failure = failure
        self._nth = nth
        self._once = once
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._real, name)
        return self._wrapped(attribute) if name == self._method else attribute

    def _wrapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **keywords: Any) -> Any:
            self.calls += 1
            if self.calls == self._nth or (self.calls > self._nth and not self._once):
                raise self.failure
            return function(*args, **keywords)

        return call


class ReplacingProxy:
    """Proxy of an object some of whose methods return another value or call another function."""

    def __init__(self, real: Any, **methods: Any) -> None:
        for name in methods:
            _require_attribute(real, name)
        self._real = real
        self._methods = methods

    def __getattr__(self, name: str) -> Any:
        if name not in self._methods:
            return getattr(self._real, name)
        replacement = self._methods[name]
        if callable(replacement) and not isinstance(replacement, Future):
            return replacement
        return lambda *_args, **_keywords: replacement


class RecordingProxy:
    """Proxy of an object that records the names of the methods that are called."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.called: list[str] = []

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._real, name)
        if not callable(attribute):
            return attribute

        def call(*args: Any, **keywords: Any) -> Any:
            self.called.append(name)
            return attribute(*args, **keywords)

        return call


@contextmanager
def unwritable(store: Any) -> Iterator[None]:
    """Make the database of a SQLite store read-only inside the block."""
    connection = StoreParts(store).writer_connection
    connection.execute("PRAGMA query_only = ON")
    try:
        yield
    finally:
        connection.execute("PRAGMA query_only = OFF")


def _require_attribute(real: Any, name: str) -> None:
    """Raise for a name that the object does not have: a fault there would never be injected."""
    if not hasattr(real, name):
        raise AttributeError(f"{type(real).__name__} has no `{name}`, so no fault can be injected there")
