"""What a proxy was told: which agent it stands before, where it is found, as whom it asks, and what it waits for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

TIMEOUT = 60.0
RECHECK = 300.0
CARD_PATH = "/.well-known/agent-card.json"
OLD_CARD_PATH = "/.well-known/agent.json"
"""Where a card was before 0.3."""
JWKS_PATH = "/.well-known/jwks.json"
RPC_PATH = "/"
"""Where JSON-RPC is served, below the public address; HTTP+JSON has its paths beside it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """One proxy."""

    name: str
    upstream: str
    """The address of the agent: whatever its card says, messages go there and nowhere else."""
    public_url: str
    """The address that clients are told, without a slash at its end."""
    type: str = "autonomous"
    principal_id: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What the agent is sent with every request; secrets."""
    compat: bool = False
    """Whether clients of 0.3 are served too."""
    timeout: float = TIMEOUT
    """Seconds for an answer of the agent."""
    recheck: float = RECHECK
    """Seconds after which the agent's card is looked at again; 0 for never."""
    upstream_jwks: Path | None = None
    """The keys of which one must have signed the agent's card."""
