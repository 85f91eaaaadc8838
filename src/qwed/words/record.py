"""`Record`: a result that reads both ways, `result["verified"]` and `result.verified`."""

from collections.abc import Iterator, Mapping
from dataclasses import FrozenInstanceError, dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Record(Mapping[str, Any]):
    """Base of every result object: a frozen dataclass that is also a read-only Mapping of its fields."""

    def __getitem__(self, key: str) -> Any:
        if key not in self.__dataclass_fields__:
            raise KeyError(key)
        return getattr(self, key)

    def __iter__(self) -> Iterator[str]:
        return (field.name for field in fields(self))

    def __len__(self) -> int:
        return len(fields(self))


SHOWN_ONCE = frozenset({"agent_token", "key", "owner_key", "secret"})
"""Members that open something: a Record in a log or a traceback does not show them."""


class Reply(Record):
    """A Record whose members came as JSON: plain values inside, and `to_dict()` to hand them on."""

    def __init__(self, members: dict[str, Any]) -> None:
        self.__dict__["_members"] = members

    def __setattr__(self, name: str, value: Any) -> None:
        # A frozen dataclass guards its own fields and no others.
        raise FrozenInstanceError(f"`{name}` is what was answered, and stays so")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"`{name}` is what was answered, and stays so")

    def _plain(self) -> dict[str, Any]:
        members: dict[str, Any] = self._members
        return members

    def _knows(self, _name: str) -> bool:
        """Whether the protocol has a member of this name, which may be absent here."""
        return False

    def to_dict(self) -> dict[str, Any]:
        """Its members, for `json.dumps` and the like."""
        return dict(self._plain())

    def __getitem__(self, key: str) -> Any:
        return self._plain()[key]

    def __getattr__(self, name: str) -> Any:
        # Called for what is no attribute. A name of our own is never a member: asking for one would ask again for ever.
        if name.startswith("_"):
            raise AttributeError(name)
        members = self._plain()
        if name in members:
            return members[name]
        if self._knows(name):
            return None
        raise AttributeError(f"`{name}`: this answer has {', '.join(members) or 'no members'}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._plain())

    def __len__(self) -> int:
        return len(self._plain())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and self._plain() == dict(other)

    __hash__ = None  # type: ignore[assignment] # JSON inside can hold lists: no Mapping of ours is a key

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_shown(self._plain())!r})"


def _shown(value: Any) -> Any:
    if isinstance(value, list):
        return [_shown(each) for each in value]
    if isinstance(value, dict):
        return {name: "..." if name in SHOWN_ONCE else _shown(each) for name, each in value.items()}
    return value
