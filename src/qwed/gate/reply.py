"""What a Gate answers, and how it says no."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from qwed.kernel.answer import Problem
from qwed.words import record as words

T = TypeVar("T")


class GateError(Exception):
    """What was asked cannot be done; `code` is one of the protocol's."""

    def __init__(self, code: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.details = dict(details or {})


class Reply(words.Reply):
    """What the kernel answered, as JSON would have it."""

    def __init__(self, struct: msgspec.Struct) -> None:
        # Made when first read: most callers look at one field, and building them all costs as much as deciding.
        self.__dict__.update(_struct=struct, _members=None)

    def _plain(self) -> dict[str, Any]:
        if self._members is None:
            self.__dict__["_members"] = msgspec.json.decode(msgspec.json.encode(self._struct))
        return self._members or {}

    def _knows(self, name: str) -> bool:
        return name in self._struct.__struct_fields__

    @property
    def decided(self) -> str | None:
        """The decision alone, without building the rest."""
        return getattr(self._struct, "decision", None)


def told(outcome: T | Problem) -> T:
    """What came of it, or GateError."""
    if isinstance(outcome, Problem):
        raise GateError(outcome.code, outcome.message, outcome.details)
    return outcome


def given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}
