"""Variables of a script: the values that are certain where they are read, and variables that only hold integers.

A value is certain if the variable is assigned at one place only, and on every way to where it is read. What a later
part assigns is not known while an earlier part is visited, so the script is visited again if that matters.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from qwed.guards._shell.command_model import Word

MAX_VALUE = 1_024
_INTEGER = re.compile(r"-?[0-9]{1,18}")


class VariableHistory(NamedTuple):
    """Facts about the whole script, as known from an earlier visit."""

    unstable: frozenset[str] = frozenset()
    """Variables assigned at several places, or after they are read; functions, with `()`, that are removed."""
    textual: frozenset[str] = frozenset()
    """Variables that may hold something else than an integer."""


class Variables:
    """State of the variables at one point of the script."""

    def __init__(self, history: VariableHistory) -> None:
        self._history = history
        self._values: dict[str, list[Word]] = {}
        self._integers: frozenset[str] = frozenset()
        self._assigned: set[str] = set()
        self._unstable: set[str] = set()
        self._textual: set[str] = set()
        self._values_read: set[str] = set()
        self._integers_read: set[str] = set()

    def assign(self, name: str, values: list[Word]) -> None:
        """Assign one of several values."""
        if name in self._assigned or name in self._values_read:
            self._unstable.add(name)
        self._assigned.add(name)
        short = bool(values) and sum(len(value.text) for value in values) <= MAX_VALUE
        self._values = {**self._values, name: values if short else []}
        if short and all(is_integer(value) for value in values):
            self._integers |= {name}
        else:
            self._textual.add(name)

    def forget(self, name: str) -> None:
        """Note that the variable gets a value that is not known."""
        self.assign(name, [])

    def lookup(self, name: str) -> list[Word] | None:
        """Return the possible values, or None if they are not known."""
        values = self._values.get(name)
        if not values or name in self._history.unstable:
            return None
        self._values_read.add(name)
        return values if all(value.is_resolved or value.origin for value in values) else None

    def is_integer(self, name: str) -> bool:
        """Return True if the variable certainly holds an integer."""
        if name not in self._integers or name in self._history.textual:
            return False
        self._integers_read.add(name)
        return True

    def is_inherited(self, name: str) -> bool:
        """Return True if the script does not assign the variable, or remove the function."""
        if name in self._assigned or name in self._history.unstable:
            return False
        self._values_read.add(name)
        return True

    def is_assigned(self, name: str) -> bool:
        """Return True if the script has assigned the variable."""
        return name in self._assigned

    def mark(self) -> tuple[dict[str, list[Word]], frozenset[str]]:
        """Return what is certain now, for `reset`."""
        return self._values, self._integers

    def reset(self, mark: tuple[dict[str, list[Word]], frozenset[str]]) -> None:
        """Keep only what was certain at a mark."""
        self._values, self._integers = mark

    def places(self) -> tuple[set[str], set[str]]:
        """Return the variables that have been assigned, and those that have been read, for `repetition`."""
        return set(self._assigned), set(self._values_read)

    @contextmanager
    def repetition(self, before: tuple[set[str], set[str]]) -> Iterator[None]:
        """Visit a part of the script again: it is the same place that assigns a variable."""
        assigned, read = self.places()
        self._assigned, self._values_read = set(before[0]), set(before[1])
        yield
        self._assigned |= assigned
        self._values_read |= read

    @contextmanager
    def branch(self) -> Iterator[None]:
        """Visit a part that may not run, or runs in a process of its own: what it assigns is not certain later."""
        before = self.mark()
        try:
            yield
        finally:
            self.reset(before)

    @contextmanager
    def new_process(self) -> Iterator[None]:
        """Visit a script that another shell runs, which does not know the variables of this one."""
        with self.branch():
            self._values, self._integers = {}, frozenset()
            yield

    def revised_history(self) -> VariableHistory | None:
        """Return what a second visit has to know, or None if the first one did not depend on it."""
        unstable, textual = self._unstable & self._values_read, self._textual & self._integers_read
        if unstable <= self._history.unstable and textual <= self._history.textual:
            return None
        return VariableHistory(self._history.unstable | unstable, self._history.textual | textual)


def is_integer(word: Word) -> bool:
    """Return True if the word can only be an integer."""
    return word.is_number or (word.is_exact and _INTEGER.fullmatch(word.text) is not None)


def join_values(values: list[Word]) -> Word:
    """Return the words of an assigned value as one word."""
    if not values:
        return Word("")
    return Word(" ".join(value.text for value in values), all(value.is_exact for value in values), is_computed=True)
