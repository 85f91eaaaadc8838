"""Handlers of agents: register, read, verify actions, read activity."""

import re
from datetime import datetime
from typing import Any

from qwed.api.server.auth import actor_id_of, require_actor, require_agent, require_key
from qwed.api.server.body import too_large_error
from qwed.api.server.endpoint import RequestContext, Response, decision_response, error_response, json_response
from qwed.api.server.long_poll import wait_for
from qwed.api.server.offload import run_decision
from qwed.futures import Future
from qwed.kernel.agents.actions import ActionView, action_view, is_pending
from qwed.kernel.agents.activity import ActivityPageQuery, activity_page
from qwed.kernel.agents.budget import budget_of
from qwed.kernel.agents.execution import log_execution, read_report
from qwed.kernel.agents.pages import agents_page
from qwed.kernel.agents.registration import register
from qwed.kernel.answer import Answer, Problem, denied, problem
from qwed.kernel.case import Case, Credentials
from qwed.kernel.pipeline import verify_action
from qwed.kernel.request import FILE, file_of, quoted
from qwed.kernel.tools import TOOL_CALL
from qwed.kernel.views.agent_views import agent_view, did_document, registered_view
from qwed.model import ErrorCode
from qwed.store.agent import Agent

VERIFY_FIELDS = frozenset({"agent_id", "agent_token", "action", "context", "options"})
TOOL_FIELDS = frozenset(
    {"agent_id", "agent_token", "tool_call", "parameters", "effects", "justification", "context", "options"}
)
_STRING_FIELDS = ("agent_id", "agent_token", "justification")
TOOL_CALL_FIELDS = frozenset({"tool_name", "parameters"})
ACTIVITY_QUERY = {"from": "since", "to": "until", "limit": "limit", "cursor": "cursor"} | {
    name: name for name in ("decision", "kind")
}
MAX_WAIT_SECONDS = 60
_MARGIN = 0.05
_SECONDS = re.compile(r"[0-9]{1,3}")


async def register_agent(request: RequestContext) -> Response:
    """Register an agent (spec 3.1)."""
    actor = require_actor(request)
    if isinstance(actor, Problem):
        return error_response(actor)
    outcome = await request.driver.run(register(request.json(), actor, request.services))
    if isinstance(outcome, Problem):
        return error_response(outcome)
    return json_response(registered_view(outcome.agent, outcome.token), 201)


async def list_agents(request: RequestContext) -> Response:
    """Return a page of the organisation's agents by id."""
    key = require_key(request)
    if isinstance(key, Problem):
        return error_response(key)
    page = await request.run_blocking(
        agents_page, key.organisation_id, request.services, request.query.get("limit"), request.query.get("cursor")
    )
    return error_response(page) if isinstance(page, Problem) else json_response(page)


async def get_agent(request: RequestContext) -> Response:
    """Return one agent."""
    agent = require_agent(request)
    if isinstance(agent, Problem):
        return error_response(agent)
    return json_response(agent_view(agent, halted=request.services.store.halted(agent.organisation_id)))


async def get_did(request: RequestContext) -> Response:
    """Return the agent's DID document (spec 3.4)."""
    agent = require_agent(request)
    if isinstance(agent, Problem):
        return error_response(agent)
    keyring = request.services.signer.keyring
    return json_response(did_document(agent, keyring.issuer, keyring.public_jwks()))


async def get_budget(request: RequestContext) -> Response:
    """Return the agent's budget (spec 6.1)."""
    agent = require_agent(request)
    if isinstance(agent, Problem):
        return error_response(agent)
    return json_response(await request.driver.run(budget_of(agent, request.services)))


async def get_activity(request: RequestContext) -> Response:
    """Return a page of the agent's activity (spec 7.2)."""
    agent = require_agent(request)
    if isinstance(agent, Problem):
        return error_response(agent)
    query = ActivityPageQuery(**{ACTIVITY_QUERY[name]: value for name, value in request.query.items()})
    page = await request.run_blocking(activity_page, agent, query, request.services)
    return error_response(page) if isinstance(page, Problem) else json_response(page)


async def get_action(request: RequestContext) -> Response:
    """Return one action; with `wait`, when its approval is resolved or after so many seconds."""
    agent = require_agent(request)
    if isinstance(agent, Problem):
        return error_response(agent)
    seconds = request.query.get("wait", "0")
    if not _SECONDS.fullmatch(seconds) or int(seconds) > MAX_WAIT_SECONDS:
        return error_response(
            problem(ErrorCode.BAD_OPTION, f"`wait` must be a whole number from 0 to {MAX_WAIT_SECONDS}")
        )
    action_id = request.path["action_id"]
    # Registered before the read, so that a decision in between is not missed.
    waiters = request.services.waiters
    waiter = waiters.wait(action_id)
    try:
        action = await request.run_blocking(action_view, agent, action_id, request.services)
        if not isinstance(action, Problem) and is_pending(action) and int(seconds):
            await _wait_for_approval(request, waiter, int(seconds), agent, action)
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


async def report_execution(request: RequestContext) -> Response:
    """Log the execution of a permitted action (spec 7.1)."""
    agent = require_agent(request)
    if isinstance(agent, Problem):
        return error_response(agent)
    report = read_report(request.json())
    if isinstance(report, Problem):
        return error_response(report)
    by, action_id = actor_id_of(request, agent), request.path["action_id"]
    outcome = await request.driver.run(log_execution(agent, action_id, report, by, request.services))
    return error_response(outcome) if isinstance(outcome, Problem) else json_response(outcome)


async def verify(request: RequestContext) -> Response:
    """Verify an action (spec 4.1)."""
    max_bytes = request.services.settings.max_body_bytes
    if len(request.body) > max_bytes and FILE.encode() not in request.body:
        raise too_large_error(max_bytes)
    return await _decide(request, request.json(), VERIFY_FIELDS)


async def verify_tool(request: RequestContext) -> Response:
    """Verify a call of the tool in the path, by the same pipeline (spec 5.1)."""
    body = request.json()
    if not isinstance(body, dict) or "action" in body:
        return await _decide(request, body, TOOL_FIELDS)
    malformed, parameters = _tool_parameters(request.path["tool"], body)
    action = {"type": TOOL_CALL, "tool": request.path["tool"], "parameters": parameters}
    if body.get("effects") is not None:
        action["effects"] = body["effects"]
    required = request.services.settings.require_tool_context
    fields = TOOL_FIELDS | {"action"}
    return await _decide(request, {**body, "action": action}, fields, context_required=required, malformed=malformed)


def _tool_parameters(tool: str, body: dict[str, Any]) -> tuple[str | None, Any]:
    """Return the error, if any, and the parameters of the call."""
    tool_call = body.get("tool_call")
    if tool_call is None:
        return None, _without_none(body.get("parameters"))
    if not isinstance(tool_call, dict) or not TOOL_CALL_FIELDS.issuperset(tool_call):
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
        credentials=Credentials(
            api_key=request.api_key, agent_token=token, proven_key=request.caller.key, proven_agent=request.caller.agent
        ),
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
        if not isinstance(body.get(name), str | None):
            return f"`{name}` must be a string"
    return None
