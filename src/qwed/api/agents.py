"""Agents: register, look, verify, look back."""

import asyncio
import re
from typing import Any

from qwed.api.access import require_agent, require_key
from qwed.api.http import Call, Response, decided, ok, refused
from qwed.kernel.activity import Asked, activity_page
from qwed.kernel.answer import Answer, Problem, denied, problem
from qwed.kernel.case import Case, Credentials
from qwed.kernel.pipeline import verify_action
from qwed.kernel.registration import register
from qwed.kernel.request import quoted
from qwed.kernel.tools import TOOL_CALL
from qwed.kernel.views import activity_view, agent_view, budget_view, did_document, registered_view
from qwed.words import ErrorCode

VERIFY_FIELDS = frozenset({"agent_id", "agent_token", "action", "context", "options"})
TOOL_FIELDS = frozenset({"agent_id", "agent_token", "tool_call", "parameters", "justification", "context", "options"})
TOOL_CALL_FIELDS = frozenset({"tool_name", "parameters"})
_MOST_AGENTS = 1000
_LIMIT = re.compile(r"[0-9]{1,6}")


async def register_agent(call: Call) -> Response:
    """Spec 3.1."""
    key = require_key(call)
    if isinstance(key, Problem):
        return refused(key)
    outcome = await call.driver.drive(register(call.json(), key.organisation_id, key.role, call.services))
    if isinstance(outcome, Problem):
        return refused(outcome)
    return ok(registered_view(outcome.agent, outcome.token), 201)


async def list_agents(call: Call) -> Response:
    """The organisation's agents by id."""
    key = require_key(call)
    if isinstance(key, Problem):
        return refused(key)
    limit = call.query.get("limit", "100")
    if not _LIMIT.fullmatch(limit) or not 1 <= int(limit) <= _MOST_AGENTS:
        return refused(problem(ErrorCode.BAD_OPTION, f"`limit` must be a whole number from 1 to {_MOST_AGENTS}"))
    cursor = call.query.get("cursor", "")
    found = await asyncio.to_thread(call.services.store.list_agents, key.organisation_id, int(limit) + 1, cursor)
    page = found[: int(limit)]
    more = len(found) > len(page)
    return ok({"agents": [agent_view(a) for a in page], "next_cursor": page[-1].agent_id if more else None})


async def get_agent(call: Call) -> Response:
    """One agent."""
    agent = require_agent(call)
    return refused(agent) if isinstance(agent, Problem) else ok(agent_view(agent))


async def get_did(call: Call) -> Response:
    """Spec 3.4: the DID document."""
    agent = require_agent(call)
    if isinstance(agent, Problem):
        return refused(agent)
    signer = call.services.signer
    return ok(did_document(agent, signer.issuer, signer.jwk))


async def get_budget(call: Call) -> Response:
    """Spec 6.1."""
    agent = require_agent(call)
    if isinstance(agent, Problem):
        return refused(agent)
    services = call.services
    return ok(budget_view(agent, services.store.spent(agent.agent_id, services.clock.now())))


async def get_activity(call: Call) -> Response:
    """Spec 7.2."""
    agent = require_agent(call)
    if isinstance(agent, Problem):
        return refused(agent)
    names = {"limit": "limit", "cursor": "cursor", "decision": "decision", "from": "since", "to": "until"}
    for name in call.query:
        if name not in names:
            known = ", ".join(names)
            return refused(problem(ErrorCode.BAD_OPTION, f"unknown parameter {quoted(name)}: known are {known}"))
    asked = Asked(**{names[name]: value for name, value in call.query.items()})
    page = await asyncio.to_thread(activity_page, agent, asked, call.services)
    return refused(page) if isinstance(page, Problem) else ok(page)


async def get_action(call: Call) -> Response:
    """One activity of an agent."""
    agent = require_agent(call)
    if isinstance(agent, Problem):
        return refused(agent)
    entry = call.services.store.find_activity(agent.agent_id, call.path["action_id"])
    if entry is None:
        return refused(problem(ErrorCode.NOT_FOUND, "no such action of this agent"))
    return ok(activity_view(entry))


async def verify(call: Call) -> Response:
    """Spec 4.1."""
    return await _decide(call, call.json(), VERIFY_FIELDS)


async def verify_tool(call: Call) -> Response:
    """Spec 5.1: the same walk, the tool in the path."""
    body = call.json()
    if not isinstance(body, dict) or "action" in body:
        return await _decide(call, body, TOOL_FIELDS)
    parameters = _tool_parameters(call.path["tool"], body)
    if isinstance(parameters, Answer):
        return decided(parameters)
    action = {"type": TOOL_CALL, "tool": call.path["tool"], "parameters": parameters}
    required = call.services.settings.require_tool_context
    return await _decide(call, {**body, "action": action}, TOOL_FIELDS | {"action"}, context_required=required)


def _tool_parameters(tool: str, body: dict[str, Any]) -> Any:
    named = body.get("tool_call")
    if named is None:
        return _given(body.get("parameters"))
    if not isinstance(named, dict) or not TOOL_CALL_FIELDS.issuperset(named):
        return denied(ErrorCode.MALFORMED, "`tool_call` must be an object with `tool_name` and `parameters`")
    if named.get("tool_name", tool) != tool:
        return denied(ErrorCode.MALFORMED, "`tool_call.tool_name` is not the tool in the path")
    if "parameters" in named and "parameters" in body:
        return denied(ErrorCode.MALFORMED, "`parameters` stand twice: give them in `tool_call` or beside it")
    return _given(named.get("parameters", body.get("parameters")))


def _given(parameters: Any) -> Any:
    return {} if parameters is None else parameters


async def _decide(call: Call, body: Any, fields: frozenset[str], *, context_required: bool = True) -> Response:
    if not isinstance(body, dict):
        return decided(denied(ErrorCode.MALFORMED, "the body must be an object"))
    for name in ("agent_id", "agent_token", "justification"):
        if not isinstance(body.get(name), str | None):
            return decided(denied(ErrorCode.MALFORMED, f"`{name}` must be a string"))
    header_token, body_token = call.agent_token, body.get("agent_token")
    if None not in (header_token, body_token) and header_token != body_token:
        return decided(denied(ErrorCode.INVALID_AGENT_TOKEN, "the tokens in header and body differ"))
    case = Case(
        agent_id=call.path["agent_id"],
        credentials=Credentials(api_key=call.api_key, agent_token=header_token or body_token),
        action_raw=body.get("action"),
        context_raw=body.get("context"),
        options_raw=body.get("options"),
        stated_agent_id=body.get("agent_id"),
        justification=body.get("justification"),
        idempotency_key=call.header(b"idempotency-key"),
        context_required=context_required,
        unknown_fields=() if fields.issuperset(body) else tuple(name for name in body if name not in fields),
        now=call.services.clock.now(),
    )
    return decided(await call.driver.drive(verify_action(case, call.services)))
