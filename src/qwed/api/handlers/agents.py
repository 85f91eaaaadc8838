"""Handlers of decisions, and of actions that wait for an approval."""

from datetime import datetime
from types import NoneType
from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from qwed.api.server.auth import require_agent
from qwed.api.server.body import too_large_error
from qwed.api.server.endpoint import RequestContext, Response, decision_response, error_response, json_response
from qwed.api.server.long_poll import wait_for
from qwed.api.server.offload import run_decision
from qwed.domain.agent import Agent
from qwed.futures import Future
from qwed.kernel.agents.actions import ActionView, action_view, is_pending
from qwed.kernel.answer import Answer, Problem, denied
from qwed.kernel.case import Case
from qwed.kernel.operations.operation import Access, E, operation
from qwed.kernel.pipeline import verify_action
from qwed.kernel.request import FILE, ActionRequest, Context, Effects, OptionsRequest, file_of
from qwed.kernel.request_schema import FieldRule, RequestStruct, parse_query, quoted
from qwed.kernel.tools import TOOL_CALL
from qwed.model import ErrorCode
from qwed.model.endpoints import Endpoint

MAX_WAIT_SECONDS = 60
_MARGIN = 0.05


class WaitRequest(RequestStruct):
    """How long to wait for an approval."""

    wait: Annotated[
        int,
        Meta(ge=0, le=MAX_WAIT_SECONDS, description="Seconds to wait for the approval of a PENDING action."),
        FieldRule(f"must be a whole number from 0 to {MAX_WAIT_SECONDS}", ErrorCode.BAD_OPTION),
    ] = 0


class VerifyRequest(RequestStruct):
    """Request to verify an action (spec 4.1)."""

    action: ActionRequest
    context: Context
    options: OptionsRequest | None = None
    agent_id: str | None = None
    agent_token: str | None = None


class ToolCallRequest(RequestStruct):
    """Tool call (spec 5.1)."""

    tool_name: Annotated[str, Meta(min_length=1)] | UnsetType = UNSET
    parameters: dict[str, Any] | None = None


class VerifyToolRequest(RequestStruct):
    """Request to verify a tool call (spec 5.1) with its context (spec 9.1)."""

    context: Context
    tool_call: ToolCallRequest | None = None
    parameters: dict[str, Any] | None = None
    effects: Effects | None = None
    justification: str | None = None
    options: OptionsRequest | None = None
    agent_id: str | None = None
    agent_token: str | None = None


_VERIFY_FIELDS = frozenset(VerifyRequest.__struct_fields__)
_TOOL_FIELDS = frozenset(VerifyToolRequest.__struct_fields__)
_TOOL_CALL_FIELDS = frozenset(ToolCallRequest.__struct_fields__)
_STRING_FIELDS = ("agent_id", "agent_token", "justification")
_OPTIONAL_TEXT = (str, NoneType)


@operation(
    Endpoint.GET_ACTION,
    "Get an action, or wait for its approval (spec 7.1)",
    access=Access.AGENT,
    request=WaitRequest,
    response=ActionView,
    errors=(E.NOT_FOUND, E.BAD_OPTION),
)
async def get_action(request: RequestContext) -> Response:
    """Return one action; with `wait`, when its approval is resolved or after so many seconds."""
    agent = require_agent(request)
    if isinstance(agent, Problem):
        return error_response(agent)
    query = parse_query(request.query, WaitRequest)
    if isinstance(query, Problem):
        return error_response(query)
    action_id = request.path["action_id"]
    # Registered before the read, so that a decision in between is not missed.
    waiters = request.services.waiters
    waiter = waiters.wait(action_id)
    try:
        action = await request.run_blocking(action_view, agent, action_id, request.services)
        if not isinstance(action, Problem) and is_pending(action) and query.wait:
            await _wait_for_approval(request, waiter, query.wait, agent, action)
            # Checked again: the token or key may have been revoked meanwhile, also by another process.
            await request.refresh_cache()
            again = require_agent(request)
            if isinstance(again, Problem):
                return error_response(again)
            action = await request.run_blocking(action_view, again, action_id, request.services)
    finally:
        waiters.leave(action_id, waiter)
    return error_response(action) if isinstance(action, Problem) else json_response(action)


async def _wait_for_approval(
    request: RequestContext, waiter: Future[None], seconds: float, agent: Agent, action: ActionView
) -> None:
    """Wait until the approval is resolved or expires, or the time is up."""
    left = seconds if action.approval is None else _seconds_until(action.approval.expires_at, request)

    def is_done() -> bool:
        now = action_view(agent, action.action_id, request.services)
        return isinstance(now, Problem) or not is_pending(now)

    await wait_for(request, waiter, min(seconds, max(left, 0.0)), is_done)


def _seconds_until(moment: str, request: RequestContext) -> float:
    # The time has milliseconds, and timers are about as exact: waking too early would return the old state.
    return datetime.fromisoformat(moment).timestamp() + _MARGIN - request.services.clock.now()


@operation(
    Endpoint.VERIFY,
    "Verify an action (spec 4)",
    access=Access.DECISION,
    request=VerifyRequest,
    response=Answer,
    uploads=True,
)
async def verify(request: RequestContext) -> Response:
    """Verify an action (spec 4.1)."""
    max_bytes = request.services.settings.max_body_bytes
    if len(request.body) > max_bytes and FILE.encode() not in request.body:
        raise too_large_error(max_bytes)
    return await _decide(request, request.json(), _VERIFY_FIELDS)


@operation(
    Endpoint.VERIFY_TOOL,
    "Verify a tool call (spec 5)",
    access=Access.DECISION,
    request=VerifyToolRequest,
    response=Answer,
)
async def verify_tool(request: RequestContext) -> Response:
    """Verify a call of the tool in the path, by the same pipeline (spec 5.1)."""
    body = request.json()
    if not isinstance(body, dict) or "action" in body:
        return await _decide(request, body, _TOOL_FIELDS)
    malformed, parameters = _tool_parameters(request.path["tool"], body)
    action = {"type": TOOL_CALL, "tool": request.path["tool"], "parameters": parameters}
    if body.get("effects") is not None:
        action["effects"] = body["effects"]
    required = request.services.settings.require_tool_context
    fields = _TOOL_FIELDS | {"action"}
    return await _decide(request, {**body, "action": action}, fields, context_required=required, malformed=malformed)


def _tool_parameters(tool: str, body: dict[str, Any]) -> tuple[str | None, Any]:
    """Return the error, if any, and the parameters of the call."""
    tool_call = body.get("tool_call")
    if tool_call is None:
        return None, _without_none(body.get("parameters"))
    if not isinstance(tool_call, dict) or not _TOOL_CALL_FIELDS.issuperset(tool_call):
        return "`tool_call` must be an object with `tool_name` and `parameters`", {}
    if tool_call.get("tool_name", tool) != tool:
        return "`tool_call.tool_name` is not the tool in the path", {}
    if "parameters" in tool_call and "parameters" in body:
        return "`parameters` is given twice: send it in `tool_call` or at the top level", {}
    return None, _without_none(tool_call.get("parameters", body.get("parameters")))


def _without_none(parameters: Any) -> Any:
    return {} if parameters is None else parameters


async def _decide(
    request: RequestContext,
    body: Any,
    fields: frozenset[str],
    *,
    context_required: bool = True,
    malformed: str | None = None,
) -> Response:
    if not isinstance(body, dict):
        body, malformed = {}, "the body must be an object"
    _reject_oversized(request, body)
    token, malformed = _token_of(request, body), malformed or _body_error(body, fields)
    if isinstance(token, Answer):
        return decision_response(token)
    if token is not None and token is not request.agent_token:
        await request.count_token(token)
    case = Case(
        agent_id=request.path["agent_id"],
        credentials=request.credentials(token),
        action_raw=body.get("action"),
        context_raw=body.get("context"),
        options_raw=body.get("options"),
        stated_agent_id=None if malformed is not None else body.get("agent_id"),
        justification=None if malformed is not None else body.get("justification"),
        idempotency_key=request.header(b"idempotency-key"),
        context_required=context_required,
        malformed=malformed,
        now=request.services.clock.now(),
    )
    return decision_response(await run_decision(request, verify_action(case, request.services)))


def _reject_oversized(request: RequestContext, body: dict[str, Any]) -> None:
    """Raise RequestRejectedError if the body is too large without its file (ruling 4.22)."""
    action, max_bytes = body.get("action"), request.services.settings.max_body_bytes
    if len(request.body) <= max_bytes:
        return
    file = file_of(action) if isinstance(action, dict) else None
    if len(request.body) - len(file or "") > max_bytes:
        raise too_large_error(max_bytes)


def _token_of(request: RequestContext, body: dict[str, Any]) -> str | Answer | None:
    """Return the agent's token from the header or the body; deny if they differ."""
    sent, stated = request.agent_token, body.get("agent_token")
    if not isinstance(stated, str):
        return sent
    if sent not in (None, stated):
        return denied(ErrorCode.INVALID_AGENT_TOKEN, "the tokens in header and body differ")
    return stated


def _body_error(body: dict[str, Any], fields: frozenset[str]) -> str | None:
    if not fields.issuperset(body):
        unknown = next(name for name in body if name not in fields)
        return f"unknown field {quoted(unknown)} in the body: use {', '.join(sorted(fields))}"
    for name in _STRING_FIELDS:
        if not isinstance(body.get(name), _OPTIONAL_TEXT):
            return f"`{name}` must be a string"
    return None
