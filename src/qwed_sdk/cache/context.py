"""Context that a cached result is bound to."""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from qwed.model import CanonicalJsonError, canonical, sha256_of

MAX_FIELD_CHARS = 4096
"""Largest number of characters in a field."""
_OPTIONAL_FIELDS = frozenset({"tenant_id", "env_fingerprint"})
_VERSION = "cache_v2"


@dataclass(frozen=True)
class CacheContext:
    """Context that a cached result depends on; two contexts are equal if every field is."""

    provider: str
    """Service that answered, such as `openai`."""
    model: str
    """Model or deployment."""
    policy_version: str
    """Version of your rules; another one misses every older entry."""
    tenant_id: str | None = None
    """Customer or team that asked."""
    env_fingerprint: str | None = None
    """Hash of anything else that the result depends on."""

    def __post_init__(self) -> None:
        for field in fields(self):
            _require_text(field.name, getattr(self, field.name))

    @cached_property
    def text(self) -> str:
        """Canonical JSON of the fields."""
        return canonical([getattr(self, field.name) for field in fields(CacheContext)]).decode()

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the context, in lower-case hex."""
        return sha256_of([_VERSION, self.text])


def _require_text(name: str, value: Any) -> None:
    if value is None and name in _OPTIONAL_FIELDS:
        return
    if not isinstance(value, str):
        raise TypeError(f"`{name}` is a {type(value).__name__}: give a string{_or_none(name)}")
    if not value.strip():
        raise ValueError(f"`{name}` is blank: give a name{_or_none(name)}")
    if len(value) > MAX_FIELD_CHARS:
        raise ValueError(f"`{name}` has {len(value)} characters; at most {MAX_FIELD_CHARS} are allowed")
    try:
        canonical(value)
    except CanonicalJsonError as error:
        raise ValueError(f"`{name}` is not valid Unicode: {error}") from None


def _or_none(name: str) -> str:
    return " or None" if name in _OPTIONAL_FIELDS else ""
