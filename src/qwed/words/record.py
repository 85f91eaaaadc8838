"""`Record`: a result that reads both ways, `result["verified"]` and `result.verified`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
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
