"""What a proxy was told: which server it stands before, as whom it asks, and what it lets through."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import unquote

from qwed.words.normal import normalize

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

    @property
    def questions(self) -> bool:
        """Whether the server may ask anything back."""
        return self.sampling or self.elicitation or self.roots

    def resource(self, uri: str) -> bool:
        """Whether this resource may be read."""
        return any(_fits(pattern, uri) for pattern in self.resources)


def _fits(pattern: str, uri: str) -> bool:
    if not pattern.endswith("*"):
        return uri == pattern
    # What climbs out of the prefix is not below it, whoever resolves it later and however often.
    return uri.startswith(pattern[:-1]) and not any(_climbs(step) for step in _STEPS.split(_spelt_out(uri)))


_STEPS = re.compile(r"[/\\?#&=:]")
_DECODED = 5
"""Times that an address is read as one in which signs stand for others; what still changes then means no good."""


def _spelt_out(uri: str) -> str:
    for _ in range(_DECODED):
        before, uri = uri, normalize("NFKC", unquote(uri))
        if uri == before:
            return uri
    return ".."


def _climbs(step: str) -> bool:
    """Whether it is `..`, also where parameters or signs that some readers skip stand in it."""
    return _SKIPPED.sub("", step.partition(";")[0]) == ".."


_SKIPPED = re.compile(r"[\x00-\x20\x7f-\xa0\u200b-\u200f\u2060\ufeff\ufffd]")


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
