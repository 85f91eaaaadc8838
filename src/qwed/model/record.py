"""`Record`: a result readable as `result["verified"]` and as `result.verified`."""

from collections.abc import Iterator, Mapping
from dataclasses import FrozenInstanceError, dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Record(Mapping[str, Any]):
    """Base of result objects: a frozen dataclass that is also a read-only Mapping of its fields."""

    def __getitem__(self, key: str) -> Any:
        if key not in self.__dataclass_fields__:
            raise KeyError(key)
        return getattr(self, key)

    def __iter__(self) -> Iterator[str]:
        return (field.name for field in fields(self))

    def __len__(self) -> int:
        return len(fields(self))


SECRET_MEMBERS = frozenset({"agent_token", "key", "owner_key", "secret"})
"""Members that are credentials; `repr` of a Record hides them."""


class ResponseRecord(Record):
    """A Record built from decoded JSON; `to_dict()` returns its members."""

    def __init__(self, members: dict[str, Any]) -> None:
        self.__dict__["_members"] = members

    def __setattr__(self, name: str, value: Any) -> None:
        # A frozen dataclass guards its own fields and no others.
        raise FrozenInstanceError(f"`{name}` cannot be changed: a response is read-only")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"`{name}` cannot be changed: a response is read-only")

    def _plain(self) -> dict[str, Any]:
        members: dict[str, Any] = self._members
        return members

    def _knows(self, _name: str) -> bool:
        """Return True if the protocol has an optional member of this name."""
        return False

    def to_dict(self) -> dict[str, Any]:
        """Return its members as a dict."""
        return dict(self._plain())

    def __getitem__(self, key: str) -> Any:
        return self._plain()[key]

    def __getattr__(self, name: str) -> Any:
        # Called only for missing attributes. A private name is never a member; looking one up would recurse for ever.
        if name.startswith("_"):
            raise AttributeError(name)
        members = self._plain()
        if name in members:
            return members[name]
        if self._knows(name):
            return None
        raise AttributeError(f"`{name}` is not a member: this response has {', '.join(members) or 'no members'}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._plain())

    def __len__(self) -> int:
        return len(self._plain())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and self._plain() == dict(other)

    __hash__ = None  # type: ignore[assignment] # members can be lists, so a record cannot be hashed

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_redacted(self._plain())!r})"


def _redacted(value: Any) -> Any:
    if isinstance(value, list):
        return [_redacted(item) for item in value]
    if isinstance(value, dict):
        return {name: "..." if name in SECRET_MEMBERS else _redacted(item) for name, item in value.items()}
    return value
