"""What a Gate answers, and how it says no."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from qwed.kernel.answer import Problem

T = TypeVar("T")


class GateError(Exception):
    """What was asked cannot be done; `code` is one of the protocol's."""

    def __init__(self, code: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.details = dict(details or {})


class Reply(Mapping[str, Any]):
    """An answer that reads both ways, `reply["decision"]` and `reply.decision`; plain JSON values inside."""

    __slots__ = ("_members", "_struct")

    def __init__(self, struct: msgspec.Struct) -> None:
        self._struct = struct
        self._members: dict[str, Any] | None = None

    def _plain(self) -> dict[str, Any]:
        # Made when first read: most callers look at one field, and building them all costs as much as deciding.
        if self._members is None:
            self._members = msgspec.json.decode(msgspec.json.encode(self._struct))
        return self._members or {}

    @property
    def decided(self) -> str | None:
        """The decision alone, without building the rest."""
        return getattr(self._struct, "decision", None)

    def __getitem__(self, name: str) -> Any:
        return self._plain()[name]

    def __getattr__(self, name: str) -> Any:
        if name in self._struct.__struct_fields__:
            return self._plain().get(name)
        raise AttributeError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._plain())

    def __len__(self) -> int:
        return len(self._plain())

    def __repr__(self) -> str:
        return f"Reply({self._plain()!r})"


def told(outcome: T | Problem) -> T:
    """What came of it, or GateError."""
    if isinstance(outcome, Problem):
        raise GateError(outcome.code, outcome.message, outcome.details)
    return outcome


def given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}
