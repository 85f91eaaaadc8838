"""Route declaration, and the error codes that many routes share."""

from typing import Any, NamedTuple

from qwed.api.server.endpoint import Handler
from qwed.model import ErrorCode

E = ErrorCode
KEY = (E.NO_CREDENTIAL, E.UNKNOWN_CREDENTIAL, E.ROLE_NOT_SUFFICIENT)
AGENT = (*KEY, E.INVALID_AGENT_TOKEN, E.AGENT_NOT_REGISTERED)
BODY = (E.MALFORMED, E.MISSING_FIELD, E.TOO_LARGE)
ENGINE = (*KEY, *BODY, E.BAD_OPTION, E.ENGINE_UNAVAILABLE)
OWN_AGENT = (*KEY, E.AGENT_NOT_REGISTERED)
LOG = (*KEY, E.BAD_OPTION, E.TAMPERING_FOUND)
DECISION = (
    E.AGENT_NOT_REGISTERED,
    E.INVALID_AGENT_TOKEN,
    E.UNKNOWN_CREDENTIAL,
    E.ROLE_NOT_SUFFICIENT,
    E.AGENT_SUSPENDED,
    E.MISSING_CONTEXT,
    E.INVALID_STEP,
    E.STATE_INCOMPLETE,
    E.STATE_HASH_INVALID,
    E.STATE_SOURCE_UNKNOWN,
    E.NOT_DETERMINISTIC,
    E.BAD_OPTION,
    E.KEY_REUSED,
    E.COST_EXCEEDED,
    E.RATE_EXCEEDED,
    E.TOKENS_EXCEEDED,
    E.ENGINE_UNAVAILABLE,
    E.DEPENDENCY_DOWN,
)


class Route(NamedTuple):
    """One route: path, handler, and its OpenAPI description."""

    method: str
    path: str
    handler: Handler
    summary: str
    response: Any
    request: Any = None
    status: int = 200
    errors: tuple[ErrorCode, ...] = ()
    is_decision: bool = False
    open: bool = False
    query: tuple[str, ...] = ()
    media: str = "application/json"
    also: tuple[int, ...] = ()
    """Further statuses with the same response."""
    uploads: bool = False
    """True if it accepts a file, in a form or in base64."""
    large_message: bool = False
    """True if it accepts an A2A message, which has a size limit of its own."""
    files: tuple[str, ...] = ()
    """Media types it can return in place of JSON."""

    @property
    def takes_token(self) -> bool:
        """True if an agent may use it with its token; otherwise an organisation key is required."""
        return self.large_message or E.INVALID_AGENT_TOKEN in self.errors
