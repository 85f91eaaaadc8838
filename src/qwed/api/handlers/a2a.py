"""Handlers of `/a2a/intercept`, `/a2a/health` and `/a2a/metrics` (INTERFACES 6).

`qwed_a2a` is imported with the first message, so a server without A2A traffic does not load or need pydantic.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

import qwed
from qwed.api.server.auth import require_key
from qwed.api.server.body import parse_json
from qwed.api.server.endpoint import SENDER_HEADER, RequestContext, Response, error_response, json_response
from qwed.api.server.offload import run_decision
from qwed.kernel.a2a.access_lists import AgentName
from qwed.kernel.analysis.content_scan import LARGE
from qwed.kernel.answer import Problem, problem
from qwed.kernel.operations.operation import Access, E, operation
from qwed.kernel.request_schema import RequestStruct
from qwed.kernel.views.agent_views import View
from qwed.model import ErrorCode
from qwed.model.clock import rfc3339
from qwed.model.endpoints import Endpoint

if TYPE_CHECKING:
    from qwed_a2a.message import AgentMessage
    from qwed_a2a.service import InterceptorService, RecordedVerdict

PayloadType = Literal["financial_transaction", "logic_assertion", "code_execution", "data_query", "general"]
EngineName = Literal[
    "finance_guard", "logic_guard", "code_guard", "trust_boundary", "bypass", "passthrough", "error_handler"
]
_Guards = Literal["finance_guard", "logic_guard", "code_guard"]


class MetadataRequest(msgspec.Struct, kw_only=True):
    """Metadata of a message. Loops are detected within a conversation; absent step numbers are assigned."""

    conversation_id: Annotated[str, Meta(min_length=1, max_length=256)] | None = None
    step_number: Annotated[int, Meta(ge=1)] | None = None


class MessageRequest(RequestStruct):
    """One message."""

    sender_agent_id: AgentName
    receiver_agent_id: AgentName
    payload: Annotated[dict[str, Any], Meta(description="content of the message, in the format of its type")]
    payload_type: PayloadType = "general"
    timestamp: Annotated[str, Meta(extra_json_schema={"format": "date-time"})] | None = None
    metadata: MetadataRequest | None = None


class VerdictView(View, frozen=True, kw_only=True):
    """Verdict on a message: deliver it only if the status is `forwarded`."""

    status: Literal["forwarded", "blocked", "error"]
    reason: str
    audit_trace_id: str
    attestation_jwt: str | None
    engine_used: EngineName
    verified_at: str
    details: dict[str, Any]
    activity_id: str
    """Its leaf in the log."""


class MessageHealthView(View, frozen=True, kw_only=True):
    """Status of A2A verification and its guards."""

    status: Literal["ok", "unavailable"]
    version: str
    guards: list[_Guards]


class MessageMetricsView(View, frozen=True, kw_only=True):
    """Counters of the organisation's messages since the server started."""

    total_intercepts: int
    total_forwarded: int
    total_blocked: int
    total_errors: int
    average_latency_ms: float
    block_rate: float
    by_engine: dict[str, int]


_GUARDS = ("finance_guard", "logic_guard", "code_guard")
_REQUIRED_PACKAGE = "pydantic"


@operation(
    Endpoint.INTERCEPT,
    "Verify a message between agents",
    access=Access.MESSAGE,
    request=MessageRequest,
    response=VerdictView,
    errors=(
        E.MISSING_CONTEXT,
        E.INVALID_STEP,
        E.NOT_DETERMINISTIC,
        E.ENGINE_UNAVAILABLE,
    ),
    large_message=True,
)
async def intercept(request: RequestContext) -> Response:
    """`POST /a2a/intercept`: verify one message and return the verdict."""
    error = _require_credential(request)
    if error is not None:
        return error_response(error)
    interceptor = await interceptor_of(request)
    if isinstance(interceptor, Problem):
        return error_response(interceptor)
    message = await _parse_message(request)
    if isinstance(message, Problem):
        return error_response(message)
    # Counted here, because the body names the agent whose token it is.
    request.path = {**request.path, "agent_id": message.sender_agent_id}
    await request.refresh_cache()
    await request.count_token(request.agent_token)
    outcome = await run_decision(request, interceptor.intercept(message, request.credentials()))
    if isinstance(outcome, Problem):
        return error_response(outcome)
    request.app.metrics.count_message(outcome.verdict.status, outcome.verdict.engine_used)
    return json_response(_view(outcome))


def _require_credential(request: RequestContext) -> Problem | None:
    """Return the problem if the caller has no valid credential, before the body is parsed."""
    if request.api_key is None:
        return problem(ErrorCode.NO_CREDENTIAL) if request.agent_token is None else None
    key = require_key(request)
    return key if isinstance(key, Problem) else None


async def _parse_message(request: RequestContext) -> "AgentMessage | Problem":
    if len(request.body) > LARGE:
        return await request.app.large_body_pool.run(request.caller.organisation_id, _parse_body, request)
    return _parse_body(request)


def _parse_body(request: RequestContext) -> "AgentMessage | Problem":
    from qwed_a2a.intercept_request import parse_message

    message = parse_message(parse_json(request.body))
    stated = request.header(SENDER_HEADER)
    if isinstance(message, Problem) or stated in (None, message.sender_agent_id):
        return message
    return problem(ErrorCode.MALFORMED, "`sender_agent_id` in the body is not the agent in QWED-Agent-Id")


def _view(outcome: "RecordedVerdict") -> VerdictView:
    verdict = outcome.verdict
    return VerdictView(
        status=str(verdict.status),  # type: ignore[arg-type]  # one of the listed literals
        reason=verdict.reason,
        audit_trace_id=verdict.audit_trace_id,
        attestation_jwt=verdict.attestation_jwt,
        engine_used=str(verdict.engine_used),  # type: ignore[arg-type]  # as above
        verified_at=rfc3339(verdict.verified_at.timestamp()),
        details=dict(verdict.details),
        activity_id=outcome.activity_id,
    )


async def interceptor_of(request: RequestContext) -> "InterceptorService | Problem":
    """Return the interceptor, created in a thread by the first request."""
    if request.app.interceptor is None:
        if not is_installed():
            return problem(
                ErrorCode.DEPENDENCY_DOWN,
                f"this server is installed without `{_REQUIRED_PACKAGE}`, which messages between agents need",
                suggestion="install it with: pip install 'qwed[server]'",
            )
        interceptor = await request.run_blocking(_create_interceptor, request)
        # Two requests may create one at the same time; the counters must be those of a single one.
        request.app.interceptor = request.app.interceptor or interceptor
    return request.app.interceptor


def is_installed() -> bool:
    """Return True if the package that parses messages is installed."""
    return find_spec(_REQUIRED_PACKAGE) is not None


def _create_interceptor(request: RequestContext) -> "InterceptorService":
    from qwed_a2a.service import InterceptorService

    return InterceptorService(request.services)


@operation(
    Endpoint.A2A_HEALTH,
    "Check whether messages are verified, and by which guards",
    access=Access.OPEN,
    response=MessageHealthView,
)
async def a2a_health(_request: RequestContext) -> Response:
    """Return whether messages are verified here, and by which guards."""
    status = "ok" if is_installed() else "unavailable"
    return json_response(MessageHealthView(status=status, version=qwed.__version__, guards=list(_GUARDS)))  # type: ignore[arg-type]  # as above


@operation(Endpoint.A2A_METRICS, "Get message counters since the server started", response=MessageMetricsView)
async def a2a_metrics(request: RequestContext) -> Response:
    """Return the organisation's message counters since the server started."""
    key = require_key(request)
    if isinstance(key, Problem):
        return error_response(key)
    interceptor = await interceptor_of(request)
    if isinstance(interceptor, Problem):
        return error_response(interceptor)
    return json_response(MessageMetricsView(**interceptor.metrics_of(key.organisation_id).snapshot()))
