"""Agents: register, look, verify, look back."""

import re
from datetime import datetime
from typing import Any

from qwed.api.access import asked_by, require_actor, require_agent, require_key
from qwed.api.bells import wait_for
from qwed.api.body import too_large
from qwed.api.http import Call, Response, decided, ok, refused
from qwed.api.stretches import drive
from qwed.kernel.agents.actions import ActionView, action_view, waits
from qwed.kernel.agents.activity import Asked, activity_page
from qwed.kernel.agents.budget import budget_of
from qwed.kernel.agents.execution import log_execution, read_report
from qwed.kernel.agents.listing import agents_page
from qwed.kernel.agents.registration import register
from qwed.kernel.answer import Answer, Problem, denied, problem
from qwed.kernel.case import Case, Credentials
from qwed.kernel.pipeline import verify_action
from qwed.kernel.request import FILE, file_of, quoted
from qwed.kernel.tools import TOOL_CALL
from qwed.kernel.views.agents import agent_view, did_document, registered_view
from qwed.store.agent import Agent
from qwed.waiting import Ticket
from qwed.words import ErrorCode

VERIFY_FIELDS = frozenset({"agent_id", "agent_token", "action", "context", "options"})
TOOL_FIELDS = frozenset(
    {"agent_id", "agent_token", "tool_call", "parameters", "effects", "justification", "context", "options"}
)
_TEXTS = ("agent_id", "agent_token", "justification")
TOOL_CALL_FIELDS = frozenset({"tool_name", "parameters"})
ACTIVITY_QUERY = {"from": "since", "to": "until", "limit": "limit", "cursor": "cursor"} | {
    name: name for name in ("decision", "kind")
}
LONGEST_WAIT = 60
_MARGIN = 0.05
_SECONDS = re.compile(r"[0-9]{1,3}")


async def register_agent(call: Call) -> Response:
    """Spec 3.1."""
    actor = require_actor(call)
    if isinstance(actor, Problem):
        return refused(actor)
    outcome = await call.driver.drive(register(call.json(), actor, call.services))
    if isinstance(outcome, Problem):
        return refused(outcome)
    return ok(registered_view(outcome.agent, outcome.token), 201)


async def list_agents(call: Call) -> Response:
    """The organisation's agents by id."""
    key = require_key(call)
    if isinstance(key, Problem):
        return refused(key)
    page = await call.look(
        agents_page, key.organisation_id, call.services, call.query.get("limit"), call.query.get("cursor")
    )
    return refused(page) if isinstance(page, Problem) else ok(page)


async def get_agent(call: Call) -> Response:
    """One agent."""
    agent = require_agent(call)
    if isinstance(agent, Problem):
        return refused(agent)
    return ok(agent_view(agent, halted=call.services.store.halted(agent.organisation_id)))


async def get_did(call: Call) -> Response:
    """Spec 3.4: the DID document."""
    agent = require_agent(call)
    if isinstance(agent, Problem):
        return refused(agent)
    keyring = call.services.signer.keyring
    return ok(did_document(agent, keyring.issuer, keyring.public_jwks()))


async def get_budget(call: Call) -> Response:
    """Spec 6.1."""
    agent = require_agent(call)
    if isinstance(agent, Problem):
        return refused(agent)
    return ok(await call.driver.drive(budget_of(agent, call.services)))


async def get_activity(call: Call) -> Response:
    """Spec 7.2."""
    agent = require_agent(call)
    if isinstance(agent, Problem):
        return refused(agent)
    asked = Asked(**{ACTIVITY_QUERY[name]: value for name, value in call.query.items()})
    page = await call.look(activity_page, agent, asked, call.services)
    return refused(page) if isinstance(page, Problem) else ok(page)


async def get_action(call: Call) -> Response:
    """One action as it stands now; with `wait` the answer comes when a person has decided, or after so many seconds."""
    agent = require_agent(call)
    if isinstance(agent, Problem):
        return refused(agent)
    seconds = call.query.get("wait", "0")
    if not _SECONDS.fullmatch(seconds) or int(seconds) > LONGEST_WAIT:
        return refused(problem(ErrorCode.BAD_OPTION, f"`wait` must be a whole number from 0 to {LONGEST_WAIT}"))
    action_id = call.path["action_id"]
    # The bell is hung up before looking: what is decided in between rings it.
    bells = call.services.doorbells
    bell = bells.wait(action_id)
    try:
        action = await call.look(action_view, agent, action_id, call.services)
        if not isinstance(action, Problem) and waits(action) and int(seconds):
            await _wait_for(call, bell, int(seconds), agent, action)
            # Asked again: the token or key may have been taken away meanwhile, by another process too.
            await call.freshen()
            again = require_agent(call)
            if isinstance(again, Problem):
                return refused(again)
            action = await call.look(action_view, again, action_id, call.services)
    finally:
        bells.leave(action_id, bell)
    return refused(action) if isinstance(action, Problem) else ok(action)


async def _wait_for(call: Call, bell: Ticket[None], seconds: float, agent: Agent, action: ActionView) -> None:
    """Until it rings, or the time is up, or the approval runs out."""
    left = seconds if action.approval is None else _seconds_until(action.approval.expires_at, call)

    def settled() -> bool:
        now = action_view(agent, action.action_id, call.services)
        return isinstance(now, Problem) or not waits(now)

    await wait_for(call, bell, min(seconds, max(left, 0.0)), settled)


def _seconds_until(moment: str, call: Call) -> float:
    # Shown to the millisecond, and timers are about as exact: waking too early would show it as it was before.
    return datetime.fromisoformat(moment).timestamp() + _MARGIN - call.services.clock.now()


async def report_execution(call: Call) -> Response:
    """Spec 7.1: what became of a permitted action."""
    agent = require_agent(call)
    if isinstance(agent, Problem):
        return refused(agent)
    report = read_report(call.json())
    if isinstance(report, Problem):
        return refused(report)
    by, action_id = asked_by(call, agent), call.path["action_id"]
    outcome = await call.driver.drive(log_execution(agent, action_id, report, by, call.services))
    return refused(outcome) if isinstance(outcome, Problem) else ok(outcome)


async def verify(call: Call) -> Response:
    """Spec 4.1."""
    most = call.services.settings.max_body_bytes
    if len(call.body) > most and FILE.encode() not in call.body:
        raise too_large(most)
    return await _decide(call, call.json(), VERIFY_FIELDS)


async def verify_tool(call: Call) -> Response:
    """Spec 5.1: the same walk, the tool in the path."""
    body = call.json()
    if not isinstance(body, dict) or "action" in body:
        return await _decide(call, body, TOOL_FIELDS)
    malformed, parameters = _tool_parameters(call.path["tool"], body)
    action = {"type": TOOL_CALL, "tool": call.path["tool"], "parameters": parameters}
    if body.get("effects") is not None:
        action["effects"] = body["effects"]
    required = call.services.settings.require_tool_context
    fields = TOOL_FIELDS | {"action"}
    return await _decide(call, {**body, "action": action}, fields, context_required=required, malformed=malformed)


def _tool_parameters(tool: str, body: dict[str, Any]) -> tuple[str | None, Any]:
    """What is wrong, if anything is, and the parameters of the call."""
    named = body.get("tool_call")
    if named is None:
        return None, _given(body.get("parameters"))
    if not isinstance(named, dict) or not TOOL_CALL_FIELDS.issuperset(named):
        return "`tool_call` must be an object with `tool_name` and `parameters`", {}
    if named.get("tool_name", tool) != tool:
        return "`tool_call.tool_name` is not the tool in the path", {}
    if "parameters" in named and "parameters" in body:
        return "`parameters` stand twice: give them in `tool_call` or beside it", {}
    return None, _given(named.get("parameters", body.get("parameters")))


def _given(parameters: Any) -> Any:
    return {} if parameters is None else parameters


async def _decide(
    call: Call, body: Any, fields: frozenset[str], *, context_required: bool = True, malformed: str | None = None
) -> Response:
    if not isinstance(body, dict):
        body, malformed = {}, "the body must be an object"
    _refuse_bulk(call, body)
    token, malformed = _token_of(call, body), malformed or _refuse_body(body, fields)
    if isinstance(token, Answer):
        return decided(token)
    if token is not None and token is not call.agent_token:
        await call.count_token(token)
    case = Case(
        agent_id=call.path["agent_id"],
        credentials=Credentials(
            api_key=call.api_key, agent_token=token, proven_key=call.caller.key, proven_agent=call.caller.agent
        ),
        action_raw=body.get("action"),
        context_raw=body.get("context"),
        options_raw=body.get("options"),
        stated_agent_id=None if malformed is not None else body.get("agent_id"),
        justification=None if malformed is not None else body.get("justification"),
        idempotency_key=call.header(b"idempotency-key"),
        context_required=context_required,
        malformed=malformed,
        now=call.services.clock.now(),
    )
    return decided(await drive(call, verify_action(case, call.services)))


def _refuse_bulk(call: Call, body: dict[str, Any]) -> None:
    """Ruling 4.22: a file may be large, and nothing else."""
    action, most = body.get("action"), call.services.settings.max_body_bytes
    if len(call.body) <= most:
        return
    file = file_of(action) if isinstance(action, dict) else None
    if len(call.body) - len(file or "") > most:
        raise too_large(most)


def _token_of(call: Call, body: dict[str, Any]) -> str | Answer | None:
    """The agent's token from the header or the body; where it stands in both, they must agree."""
    shown, stated = call.agent_token, body.get("agent_token")
    if not isinstance(stated, str):
        return shown
    if shown not in (None, stated):
        return denied(ErrorCode.INVALID_AGENT_TOKEN, "the tokens in header and body differ")
    return stated


def _refuse_body(body: dict[str, Any], fields: frozenset[str]) -> str | None:
    if not fields.issuperset(body):
        unknown = next(name for name in body if name not in fields)
        return f"unknown field {quoted(unknown)} in the body: known are {', '.join(sorted(fields))}"
    for name in _TEXTS:
        if not isinstance(body.get(name), str | None):
            return f"`{name}` must be a string"
    return None
