"""What a cached result is bound to: who answered, with what, under which rules, for whom and where."""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from qwed.words import NotCanonical, canonical, sha256_of

MAX_FIELD = 4096
"""Characters that one field of a context may have."""
_OPTIONAL = frozenset({"tenant_id", "env_fingerprint"})
_VERSION = "cache_v2"


@dataclass(frozen=True)
class CacheContext:
    """The trust-bound context of an entry; two contexts are one only where every field is the same."""

    provider: str
    model: str
    policy_version: str
    tenant_id: str | None = None
    env_fingerprint: str | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            _require(field.name, getattr(self, field.name))

    @cached_property
    def text(self) -> str:
        """The context as canonical JSON, in which nothing runs into its neighbour and None is no text."""
        return canonical([getattr(self, field.name) for field in fields(CacheContext)]).decode()

    @cached_property
    def fingerprint(self) -> str:
        """Lowercase hex SHA-256 of the context."""
        return sha256_of([_VERSION, self.text])


def _require(name: str, value: Any) -> None:
    if value is None and name in _OPTIONAL:
        return
    if not isinstance(value, str):
        raise TypeError(f"`{name}` is a {type(value).__name__}: give a string{_or_none(name)}")
    if not value.strip():
        raise ValueError(f"`{name}` is blank: give a name{_or_none(name)}")
    if len(value) > MAX_FIELD:
        raise ValueError(f"`{name}` has {len(value)} characters, at most {MAX_FIELD} are taken")
    try:
        canonical(value)
    except NotCanonical as error:
        raise ValueError(f"`{name}` is no Unicode text: {error}") from None


def _or_none(name: str) -> str:
    return " or None" if name in _OPTIONAL else ""
