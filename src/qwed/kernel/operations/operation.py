"""Operation: one row of the API, from which the route, its parsing, the OpenAPI document and the Gate's method come."""

import inspect
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, NamedTuple, get_args, get_type_hints

from qwed.domain.agent import Agent
from qwed.kernel.answer import Problem, problem
from qwed.kernel.audit_change import Actor
from qwed.kernel.request_schema import RequestStruct, parse, parse_query
from qwed.kernel.services import Services
from qwed.model import ErrorCode
from qwed.model import roles as role
from qwed.model.endpoints import Endpoint

E = ErrorCode
OWNER = frozenset({role.OWNER})
APPROVERS = frozenset({role.OWNER, role.APPROVER})
BODY = (E.MALFORMED, E.MISSING_FIELD, E.TOO_LARGE)


class Access(Enum):
    """Who may call an operation; the value is the errors of other callers."""

    OPEN = ()
    KEY = (E.NO_CREDENTIAL, E.UNKNOWN_CREDENTIAL, E.ROLE_NOT_SUFFICIENT)
    """A key of the organisation."""
    OWN_AGENT = (*KEY, E.AGENT_NOT_REGISTERED, E.AMBIGUOUS_NAME)
    """A key of the organisation of the agent in the path."""
    AGENT = (*OWN_AGENT, E.INVALID_AGENT_TOKEN)
    """The token of the agent in the path, or a key of its organisation."""
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
        E.AMBIGUOUS_NAME,
        E.COST_EXCEEDED,
        E.RATE_EXCEEDED,
        E.TOKENS_EXCEEDED,
        E.ENGINE_UNAVAILABLE,
        E.DEPENDENCY_DOWN,
    )
    """A request for a decision, which authenticates its caller itself."""
    MESSAGE = (E.NO_CREDENTIAL, E.UNKNOWN_CREDENTIAL)
    """A message between agents, of which the body names the caller."""


HEADER_HINT = "send keys (`qwed_live_...`) in X-API-Key and agent tokens (`qwed_agent_...`) in Authorization: Bearer"
AGENT_ROLE = "agent"
"""Role of a caller that shows an agent token and no key."""


def refuse_role(caller_role: str, roles: frozenset[str]) -> Problem | None:
    """Return the problem if a caller with this role may not call the operation, or None."""
    if caller_role in roles:
        return None
    if caller_role == AGENT_ROLE:
        message = "this route requires an organisation key, not an agent token"
        return problem(E.ROLE_NOT_SUFFICIENT, message, suggestion=HEADER_HINT)
    return problem(E.ROLE_NOT_SUFFICIENT, f"this route requires a key with the role {' or '.join(sorted(roles))}")


class Call(NamedTuple):
    """Authenticated call of an operation: its caller, and the parameters of its path."""

    actor: Actor
    services: Services
    path: Mapping[str, str] = {}
    if_match: str | None = None
    """ETag of what the caller has read, from the header If-Match."""


class AgentCall(NamedTuple):
    """Authenticated call of an operation on one agent."""

    actor: Actor
    services: Services
    path: Mapping[str, str]
    agent: Agent
    if_match: str | None = None
    """ETag of the agent that the caller has read, from the header If-Match."""


class Operation(NamedTuple):
    """One operation of the API."""

    endpoint: Endpoint
    summary: str
    run: Callable[..., Any]
    """Takes a Call and, if there is one, the request; a coroutine if it writes."""
    request: type[RequestStruct] | None
    """Parameters of the query string for GET, of the body otherwise."""
    response: Any
    access: Access = Access.KEY
    roles: frozenset[str] = role.CALLER_ROLES
    status: int = 200
    own_errors: tuple[ErrorCode, ...] = ()
    media: str = "application/json"
    also: tuple[int, ...] = ()
    """Further statuses with the same response."""
    status_of: Callable[[Any], int] | None = None
    """Chooses among the statuses by the response."""
    conditional: bool = False
    """True if it takes the header If-Match."""
    etag_of: Callable[[Any], str] | None = None
    """Returns the ETag of the response."""
    uploads: bool = False
    """True if it accepts a file, in a form or in base64."""
    large_message: bool = False
    """True if it accepts an A2A message, which has a size limit of its own."""
    files: tuple[str, ...] = ()
    """Media types it can return in place of JSON."""
    reader: Callable[[Any], Any] | None = None
    """Parses the body where it has more than one form."""
    is_handler: bool = False
    """True if `run` is a handler of the HTTP server, which takes the HTTP request itself."""

    @property
    def name(self) -> str:
        """Id of the operation."""
        return self.endpoint.operation_id

    @property
    def method(self) -> str:
        """HTTP method."""
        return self.endpoint.method

    @property
    def path(self) -> str:
        """Path with its parameters in braces."""
        return self.endpoint.path

    @property
    def body(self) -> type[RequestStruct] | None:
        """Type of the body."""
        return None if self.method == "GET" else self.request

    @property
    def query(self) -> tuple[str, ...]:
        """Names of the parameters of the query string."""
        is_query = self.method == "GET" and self.request is not None
        return self.request.__struct_encode_fields__ if is_query and self.request is not None else ()

    @property
    def errors(self) -> tuple[ErrorCode, ...]:
        """Error codes of the operation, besides those that every operation has."""
        return (*self.access.value, *(BODY if self.body is not None else ()), *self.own_errors)

    @property
    def is_decision(self) -> bool:
        """True if it answers with a decision."""
        return self.access is Access.DECISION

    @property
    def open(self) -> bool:
        """True if it takes no credential."""
        return self.access is Access.OPEN

    @property
    def takes_token(self) -> bool:
        """True if an agent may use it with its token; otherwise an organisation key is required."""
        return self.large_message or E.INVALID_AGENT_TOKEN in self.errors

    def parse(self, raw: Any) -> RequestStruct | Problem | None:
        """Parse the request, or return the problem with it; None if the operation has no request."""
        if self.request is None:
            return None
        if self.reader is not None:
            return self.reader(raw)  # type: ignore[no-any-return]
        return parse_query(raw, self.request) if self.method == "GET" else parse(raw, self.request)


def operation(endpoint: Endpoint, summary: str, **columns: Any) -> Callable[[Callable[..., Any]], Operation]:
    """Make a row of the table of a function `(call, request) -> response | Problem`: its annotations are the types."""

    def row(run: Callable[..., Any]) -> Operation:
        types = get_type_hints(run)
        response = columns.pop("response", None) or _response_type(types["return"])
        is_handler = "call" not in types
        request = columns.pop("request", None if is_handler else types.get("request"))
        access = columns.pop("access", Access.OWN_AGENT if types.get("call") is AgentCall else Access.KEY)
        errors = columns.pop("errors", ())
        return Operation(
            endpoint, summary, run, request, response, access, own_errors=errors, is_handler=is_handler, **columns
        )

    return row


def _response_type(returned: Any) -> Any:
    """Return the type beside the Problem."""
    is_union = Problem in get_args(returned)
    return next(kind for kind in get_args(returned) if kind is not Problem) if is_union else returned


def is_coroutine(row: Operation) -> bool:
    """Return True if the operation must be driven; others only read, and may block."""
    return inspect.iscoroutinefunction(row.run)
