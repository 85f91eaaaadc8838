"""Results and errors of the Gate."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from qwed.kernel.answer import Problem
from qwed.model import record as words

T = TypeVar("T")


class GateError(Exception):
    """The request cannot be fulfilled; `code` is an error code of the protocol."""

    def __init__(self, code: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.details = dict(details or {})


class Reply(words.ResponseRecord):
    """Answer of the kernel with the fields of its JSON."""

    def __init__(self, struct: msgspec.Struct) -> None:
        # Decoded on first access: most callers read one field, and decoding all costs as much as the decision.
        self.__dict__.update(_struct=struct, _members=None)

    def _plain(self) -> dict[str, Any]:
        if self._members is None:
            self.__dict__["_members"] = msgspec.json.decode(msgspec.json.encode(self._struct))
        return self._members or {}

    def _knows(self, name: str) -> bool:
        return name in self._struct.__struct_fields__

    @property
    def struct(self) -> Any:
        """Answer of the kernel."""
        return self._struct

    @property
    def decided(self) -> str | None:
        """Decision, without decoding the other fields."""
        return getattr(self._struct, "decision", None)


def unwrap(outcome: T | Problem) -> T:
    """Return the outcome, or raise GateError if it is a Problem."""
    if isinstance(outcome, Problem):
        raise GateError(outcome.code, outcome.message, outcome.details)
    return outcome


def without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}
