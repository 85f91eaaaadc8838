"""Options of the MCP proxy: the server, the agent to register and the passthrough policy."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import unquote

from qwed.model.unicode_normal import normalize

TIMEOUT = 60.0
WAIT = 30.0
RELIST = 60.0


class RegistrationFields(NamedTuple):
    """Registration fields of the agent; a changed value registers a different agent."""

    type: str
    principal_id: str
    allowed_paths: tuple[str, ...] = ()
    allowed_domains: tuple[str, ...] = ()
    allowed_tables: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class PassthroughPolicy:
    """Requests other than tool calls that may pass; nothing by default."""

    resources: tuple[str, ...] = ()
    """Allowed URIs; one that ends in `*` is a prefix."""
    prompts: tuple[str, ...] = ()
    sampling: bool = False
    elicitation: bool = False
    roots: bool = False

    def allows_resource(self, uri: str) -> bool:
        """Return True if this resource may be read."""
        return any(_matches(pattern, uri) for pattern in self.resources)


def _matches(pattern: str, uri: str) -> bool:
    if not pattern.endswith("*"):
        return uri == pattern
    # A path with `..` leaves the prefix, however often a later parser decodes it.
    return uri.startswith(pattern[:-1]) and not any(
        _is_parent_segment(step) for step in _SEGMENT_SEPARATORS.split(_fully_decode(uri))
    )


_SEGMENT_SEPARATORS = re.compile(r"[/\\?#&=:]")
_MAX_DECODINGS = 5
"""Rounds of percent-decoding; a URI that still changes afterwards is refused."""


def _fully_decode(uri: str) -> str:
    for _ in range(_MAX_DECODINGS):
        before, uri = uri, normalize("NFKC", unquote(uri))
        if uri == before:
            return uri
    return ".."


def _is_parent_segment(step: str) -> bool:
    """Return True for `..`, also with parameters or with characters that some parsers ignore."""
    return _IGNORED_CHARACTERS.sub("", step.partition(";")[0]) == ".."


_IGNORED_CHARACTERS = re.compile(r"[\x00-\x20\x7f-\xa0\u200b-\u200f\u2060\ufeff\ufffd]")


@dataclass(frozen=True, kw_only=True, slots=True)
class McpProxyOptions:
    """Options of one proxy: a command or a URL, and its limits."""

    name: str
    command: tuple[str, ...] = ()
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    registration: RegistrationFields
    passthrough: PassthroughPolicy = PassthroughPolicy()
    timeout: float = TIMEOUT
    wait: float = WAIT
    relist: float = RELIST
    max_calls: int | None = None
