"""Real parts that fail at one call: everything else they do is what they always do."""

from collections.abc import Callable
from typing import Any

from qwed.waiting import Ticket


class Failing:
    """Stands before a real object; its `method` raises at the n-th call and at every one after it."""

    def __init__(self, real: Any, method: str, failure: BaseException, nth: int = 1, *, once: bool = False) -> None:
        self._real = real
        self._method = method
        self._failure = failure
        self._nth = nth
        self._once = once
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        return self._wrapped(found) if name == self._method else found

    def _wrapped(self, found: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            self.calls += 1
            if self.calls == self._nth or (self.calls > self._nth and not self._once):
                raise self._failure
            return found(*args, **named)

        return call


class Instead:
    """A real object, one method of which gives something else: a value, or what a function makes."""

    def __init__(self, real: Any, **methods: Any) -> None:
        self._real = real
        self._methods = methods

    def __getattr__(self, name: str) -> Any:
        if name not in self._methods:
            return getattr(self._real, name)
        given = self._methods[name]
        return given if callable(given) and not isinstance(given, Ticket) else lambda *_args, **_named: given


class Listening:
    """Stands before a real object and writes down which of its methods are called."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.called: list[str] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if not callable(found):
            return found

        def call(*args: Any, **named: Any) -> Any:
            self.called.append(name)
            return found(*args, **named)

        return call
