"""Options of one proxy."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

TIMEOUT = 60.0
RECHECK = 300.0
CARD_PATH = "/.well-known/agent-card.json"
OLD_CARD_PATH = "/.well-known/agent.json"
"""Path of a card before 0.3."""
JWKS_PATH = "/.well-known/jwks.json"
RPC_PATH = "/"
"""Path of JSON-RPC below the public address; HTTP+JSON uses other paths."""


@dataclass(frozen=True, kw_only=True, slots=True)
class A2AProxyOptions:
    """Options of one proxy."""

    name: str
    upstream: str
    """Address of the agent: messages go only there, whatever its card says."""
    public_url: str
    """Address for clients, without a trailing slash."""
    type: str = "autonomous"
    principal_id: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers of every request to the agent; they are secret."""
    compat: bool = False
    """True to serve clients of 0.3 too."""
    timeout: float = TIMEOUT
    """Timeout of an answer of the agent in seconds."""
    recheck: float = RECHECK
    """Seconds between checks of the agent's card; 0 for never."""
    upstream_jwks: Path | None = None
    """File with the keys of which one must have signed the agent's card."""
