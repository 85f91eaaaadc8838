"""What a proxy was told: which server it stands before, as whom it asks, and what it lets through."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

TIMEOUT = 60.0
WAIT = 30.0
RELIST = 60.0


class Registered(NamedTuple):
    """What an agent is registered with; other words make another agent."""

    type: str
    principal_id: str
    allowed_paths: tuple[str, ...] = ()
    allowed_domains: tuple[str, ...] = ()
    allowed_tables: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Passes:
    """What passes beside tools; nothing where nothing is named."""

    resources: tuple[str, ...] = ()
    """Addresses; one that ends in `*` stands for all that begin so."""
    prompts: tuple[str, ...] = ()
    sampling: bool = False
    elicitation: bool = False
    roots: bool = False

    def resource(self, uri: str) -> bool:
        """Whether this resource may be read."""
        return any(_fits(pattern, uri) for pattern in self.resources)


def _fits(pattern: str, uri: str) -> bool:
    if not pattern.endswith("*"):
        return uri == pattern
    # What climbs out of the prefix is not below it, whoever resolves it later.
    return uri.startswith(pattern[:-1]) and not _CLIMBS & set(uri.lower().replace("\\", "/").split("/"))


_CLIMBS = {"..", "%2e%2e", ".%2e", "%2e."}


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """One proxy: a command or an address, and the limits it keeps."""

    name: str
    command: tuple[str, ...] = ()
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    registered: Registered
    passes: Passes = Passes()
    timeout: float = TIMEOUT
    wait: float = WAIT
    relist: float = RELIST
    max_calls: int | None = None
