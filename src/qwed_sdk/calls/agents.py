"""Spec 3 to 8: agents, what they ask, how they stand."""

import math
import secrets
import time
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from qwed_sdk.calls.pages import listed
from qwed_sdk.errors import QWEDArgumentError, QWEDProtocolError
from qwed_sdk.records import Action, Agent, Answer, Known
from qwed_sdk.wire import Call, Pause, Request, ask, at, given, in_query, problem_of, seconds

LONGEST_POLL = 30
"""Seconds the server holds one question back."""
BETWEEN_LOOKS = 0.25
"""Seconds before it is asked again, where it does not hold it back."""
LARGEST_REPORT = 1 << 30
MEDIA = {"pdf": "application/pdf", "json": "application/json", "csv": "text/csv"}


def register_agent(
    name: str,
    type: str | None = None,  # noqa: A002 - the protocol calls it so
    principal_id: str | None = None,
    permissions: Mapping[str, Any] | None = None,
    budget: Mapping[str, Any] | None = None,
    trust_level: int | str | None = None,
    description: str | None = None,
    framework: str | None = None,
    model: str | None = None,
) -> Call[Agent]:
    """Spec 3: a new agent, and once its token."""
    body = given(
        name=name,
        type=type,
        principal_id=principal_id,
        permissions=permissions,
        budget=budget,
        trust_level=trust_level,
        description=description,
        framework=framework,
        model=model,
    )
    return Agent((yield from ask("POST", "/agents/register", body, must_have="agent_id")))


def get_agent(agent_id: str, agent_token: str | None = None) -> Call[Agent]:
    """An agent as it stands now."""
    return Agent((yield from ask("GET", at("agents", agent_id), agent_token=agent_token, must_have="agent_id")))


def list_agents(limit: int = 100) -> Call[list[Agent]]:
    """The organisation's agents."""
    return [Agent(found) for found in (yield from listed("/agents", "agents", limit))]


def verify_action(
    agent_id: str,
    action: Mapping[str, Any],
    context: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    agent_token: str | None = None,
    idempotency_key: str | None = None,
) -> Call[Answer]:
    """Spec 4: may this action happen? A refusal is an answer too."""
    body = given(action=action, context=context, options=options)
    return (yield from _decided(at("agents", agent_id, "verify"), body, agent_token, idempotency_key))


def verify_tool_call(
    agent_id: str,
    tool_name: str,
    parameters: Mapping[str, Any] | None = None,
    context: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    agent_token: str | None = None,
    idempotency_key: str | None = None,
    *,
    justification: str | None = None,
    effects: Sequence[str] | None = None,
) -> Call[Answer]:
    """Spec 5: may this tool be called? `effects` are what the asker says it does, beside what is found out."""
    stated = None if effects is None else list(effects)
    body = given(parameters=parameters, effects=stated, context=context, options=options, justification=justification)
    return (yield from _decided(at("agents", agent_id, "tools", tool_name), body, agent_token, idempotency_key))


def _decided(path: str, body: Mapping[str, Any], token: str | None, key: str | None) -> Call[Answer]:
    # With a key the same question is decided, charged and logged once, however often the connection breaks.
    key = secrets.token_hex(16) if key is None else key
    if not isinstance(key, str) or not key.isascii() or not key.isprintable() or not key.strip():
        raise QWEDArgumentError("`idempotency_key` is printable ASCII")
    return Answer(
        (
            yield from ask(
                "POST", path, body, repeatable=True, agent_token=token, idempotency_key=key, must_have="decision"
            )
        )
    )


def get_action(agent_id: str, action_id: str, agent_token: str | None = None) -> Call[Action]:
    """One action as it stands now."""
    return (yield from _action(agent_id, action_id, 0, agent_token))


def wait_for_decision(
    agent_id: str, action_id: str, timeout: float = 300.0, agent_token: str | None = None
) -> Call[Action]:
    """The action once a person has decided, or as it stands after `timeout` seconds (a day at most)."""
    ends = time.monotonic() + seconds(timeout, "timeout")
    while True:
        asked = time.monotonic()
        wait = max(0, min(LONGEST_POLL, math.ceil(ends - asked)))
        action = yield from _action(agent_id, action_id, wait, agent_token)
        left = ends - time.monotonic()
        if not action.is_pending or left <= 0:
            return action
        if time.monotonic() - asked < BETWEEN_LOOKS:
            yield Pause(min(BETWEEN_LOOKS, left))


def _action(agent_id: str, action_id: str, wait: int, token: str | None) -> Call[Action]:
    path = at("agents", agent_id, "actions", action_id)
    query = {"wait": wait} if wait else None
    action = Action(
        (yield from ask("GET", path, query=query, patience=float(wait), agent_token=token, must_have="decision"))
    )
    if action.action_id != action_id:
        raise QWEDProtocolError(f"the server answered for another action than `{action_id}`")
    return action


def log_execution(
    agent_id: str,
    action_id: str,
    success: bool,
    result: Any = None,
    attestation: str | Mapping[str, Any] | None = None,
    agent_token: str | None = None,
    *,
    result_hash: str | None = None,
) -> Call[Action]:
    """Spec 7.1: what became of a permitted action, once; of the result only its hash is kept."""
    body = given(success=success, result=result, result_hash=result_hash, attestation=attestation)
    path = at("agents", agent_id, "actions", action_id, "execution")
    return Action((yield from ask("POST", path, body, agent_token=agent_token)))


def get_agent_budget(agent_id: str, agent_token: str | None = None) -> Call[Known]:
    """Spec 6.1: what the agent may spend and has spent."""
    return Known((yield from ask("GET", at("agents", agent_id, "budget"), agent_token=agent_token)))


def get_agent_activity(
    agent_id: str,
    limit: int = 100,
    *,
    since: date | str | None = None,
    until: date | str | None = None,
    decision: str | None = None,
    kind: str | None = None,
    agent_token: str | None = None,
) -> Call[list[Action]]:
    """Spec 7.2: what the agent asked, newest first; `since` inclusive, `until` exclusive."""
    narrowed = {"from": since, "to": until, "decision": decision, "kind": kind}
    path = at("agents", agent_id, "activity")
    return [Action(found) for found in (yield from listed(path, "activities", limit, narrowed, agent_token))]


def request_trust_change(
    agent_id: str, to_level: int, justification: str | None = None, agent_token: str | None = None
) -> Call[Known]:
    """Spec 8.2: ask a person for one level more; QWEDConflictError with the evidence where that is not enough."""
    body = given(to_level=to_level, justification=justification)
    return Known((yield from ask("POST", at("agents", agent_id, "trust"), body, agent_token=agent_token)))


def reduce_trust(agent_id: str, to_level: int, justification: str | None = None) -> Call[Known]:
    """Lower an agent's trust at once."""
    body = given(request="trust_reduction", to_level=to_level, justification=justification)
    return Known((yield from ask("POST", at("agents", agent_id, "trust"), body)))


def suspend_agent(agent_id: str, reason: str) -> Call[Agent]:
    """Stop an agent."""
    return (yield from _standing(agent_id, "suspend", reason))


def reactivate_agent(agent_id: str, reason: str) -> Call[Agent]:
    """Let a stopped agent go on."""
    return (yield from _standing(agent_id, "reactivate", reason))


def file_complaint(agent_id: str, reason: str) -> Call[Agent]:
    """Spec 8.3: a complaint stops the agent."""
    return (yield from _standing(agent_id, "complaint", reason))


def _standing(agent_id: str, verb: str, reason: str) -> Call[Agent]:
    return Agent((yield from ask("POST", at("agents", agent_id, verb), {"reason": reason}, must_have="agent_id")))


def rotate_token(agent_id: str) -> Call[Agent]:
    """A new token for the agent; the old one opens nothing any more."""
    return Agent((yield from ask("POST", at("agents", agent_id, "rotate-token"), must_have="agent_token")))


def suspend_all(reason: str) -> Call[Known]:
    """The kill switch: stop every agent of the organisation at once."""
    return Known((yield from ask("POST", "/suspend-all", {"reason": reason})))


def reactivate_all(reason: str) -> Call[Known]:
    """Put the kill switch back."""
    return Known((yield from ask("POST", "/reactivate-all", {"reason": reason})))


def compliance_report(
    agent_id: str,
    format: str = "pdf",  # noqa: A002 - the protocol calls it so
    since: date | str | None = None,
    until: date | str | None = None,
) -> Call[bytes]:
    """Spec 7.3: what an auditor is handed about an agent, as `pdf`, `json` or `csv`; the last thirty days."""
    period = {"format": format, "from": since, "to": until}
    path = at("agents", agent_id, "compliance-report")
    response = yield Request(method="GET", path=path, query=in_query(period), repeatable=True, largest=LARGEST_REPORT)
    if response.status != 200:
        raise problem_of(response)
    if response.media != MEDIA.get(format):
        raise QWEDProtocolError(f"a report as `{response.media}`: is this a qwed server?", status=200)
    content: bytes = response.content
    return content
