"""Decision about one tool call of a coding agent: its step number, the request and the outcome."""

import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from qwed.model import Decision, ErrorCode
from qwed.model.defaults import DEFAULT_URL
from qwed.model.error_advice import client_advice
from qwed_sdk.errors import QWEDError, UsageError, may_have_decided
from qwed_sdk.hook.client import HookClient
from qwed_sdk.hook.tool_call import ToolCall
from qwed_sdk.operations import agents
from qwed_sdk.permits import Refusal, is_same_json
from qwed_sdk.session_store import HookSession, hashed_name, locked_session

if TYPE_CHECKING:
    from qwed_sdk.models import Action, Answer

_MAX_SKIPPED_STEPS = 100
"""Step numbers that are tried in a row if the counter was lost."""
_PLAIN_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,119}")
_LIMIT_ADVICE = {
    ErrorCode.STEP_LIMIT.code: "start a new session (in Claude Code: /clear), or raise QWED_MAX_STEPS on the server",
    ErrorCode.REPETITION.code: "do something else first, or start a new session",
}
"""Advice about a limit of a conversation, for users who do not know conversations."""
_NEXT_PROMPT_ADVICE = "wait for the person's next prompt, with which the count begins anew; or "


class HookAgent(NamedTuple):
    """Agent that the hook decides for, and its server."""

    agent_id: str
    agent_token: str
    base_url: str


class HookTimeouts(NamedTuple):
    """Seconds to wait for the server, and for a person."""

    timeout: float
    wait: float = 0.0


class HookDecision(NamedTuple):
    """Decision about a tool call; the tool may run if there is no refusal."""

    refusal: Refusal | None
    answer: "Answer | None" = None


def agent_from(environment: Mapping[str, str]) -> HookAgent:
    """Return the agent that the environment names. An organisation's key is not accepted, because it could also
    approve."""
    for name in ("QWED_AGENT_ID", "QWED_AGENT_TOKEN"):
        if not environment.get(name, "").strip():
            raise UsageError(f"{name} is not set: the hook needs the id and the token of one agent")
    return HookAgent(
        environment["QWED_AGENT_ID"].strip(),
        environment["QWED_AGENT_TOKEN"].strip(),
        environment.get("QWED_BASE_URL", "").strip() or DEFAULT_URL,
    )


def client_of(agent: HookAgent, timeout: float) -> HookClient:
    """Return a client with the agent's token."""
    try:
        return HookClient(base_url=agent.base_url, timeout=timeout, agent_token=agent.agent_token, retries=1)
    except ValueError as error:
        raise UsageError(f"QWED_BASE_URL or QWED_AGENT_TOKEN cannot be used: {error}") from None


def decide(call: ToolCall, action: Mapping[str, Any], agent: HookAgent, timeouts: HookTimeouts) -> HookDecision:
    """Request a decision about a tool call; any error is a refusal."""
    try:
        client = client_of(agent, timeouts.timeout)
        answer, approval = _request_decision(_DecisionRequest(client, agent, call, action), timeouts)
    except QWEDError as error:
        reason = f"it could not be verified: {error.message}"
        return HookDecision(Refusal(call.tool, reason, error.code, error.suggestion))
    return _decision_of(call, answer, approval)


def _decision_of(call: ToolCall, answer: "Answer", approval: str) -> HookDecision:
    tool, error = call.tool, answer.error or {}
    reason = error.get("message") or f"the decision is {answer.decision}"
    suggestion = client_advice(error.get("code"), error.get("suggestion"))
    refusal = Refusal(tool, reason, error.get("code"), suggestion, answer.decision, answer)
    if answer.decision == Decision.APPROVED and answer.action_id and answer.corrected is None:
        return HookDecision(None, answer)
    if Decision(answer.decision).permits:
        # A hook can only allow or deny the call as it is, and that was not permitted.
        instead = json.dumps(answer.corrected, ensure_ascii=True)
        return HookDecision(refusal._replace(reason=f"not in this form: it would be permitted as {instead}"), answer)
    if error.get("code") in _LIMIT_ADVICE:
        refusal = refusal._replace(suggestion=(_NEXT_PROMPT_ADVICE if call.turn else "") + _LIMIT_ADVICE[error["code"]])
    if answer.is_pending:
        refusal = refusal._replace(suggestion=f"once a person has approved {approval}, make the same call again")
    return HookDecision(refusal, answer)


class _DecisionRequest(NamedTuple):
    client: HookClient
    agent: HookAgent
    call: ToolCall
    action: Mapping[str, Any]

    @property
    def turn(self) -> str:
        """Hashed name of the turn whose steps are counted."""
        return hashed_name("turn", self.call.turn or "")

    def send(self, conversation: str, step: int) -> "Answer":
        context = {"conversation_id": conversation, "step_number": step}
        return self.client.run(agents.verify_action(self.agent.agent_id, self.action, context))

    def wait_for(self, action_id: str, wait: float) -> "Action":
        """Return the action after at most `wait` seconds; raise UsageError if its approval was revoked."""
        action = self.client.run(agents.wait_for_decision(self.agent.agent_id, action_id, wait))
        if action.decision == Decision.APPROVED:
            require_active(self.client, self.agent)
            if action.get("attestation_id") is not None and action.attestation is None:
                raise UsageError("the approval of this call was revoked")
        return action

    def is_unused_approval(self, action: "Action") -> bool:
        """Return True if the stored action is this call and was not executed: an approval is valid for one call."""
        # The stored action has no masked secret: a call with a secret never waits for a person.
        return action.execution is None and action.action is not None and is_same_json(self.action, action.action)


def require_active(client: HookClient, agent: HookAgent) -> Any:
    """Return the agent; raise UsageError if it is suspended."""
    current = client.run(agents.get_agent(agent.agent_id))
    if current.status != "active":
        raise UsageError(f"the agent {agent.agent_id} is {current.status}")
    return current


def _request_decision(request: _DecisionRequest, timeouts: HookTimeouts) -> "tuple[Answer, str]":
    """Return the answer, and the id of the approval if a person has to decide."""
    answer: Answer
    session = request.call.session
    if session is None:
        answer = request.send(f"hook_{secrets.token_hex(12)}", 1)
        return _wait_if_pending(request, answer, timeouts.wait), answer.approval_id or ""
    name, fingerprint = (
        hashed_name(request.agent.base_url, request.agent.agent_id, session),
        _fingerprint(request.action),
    )
    with locked_session(name) as stored:
        action_id, _, approval = stored.waiting.get(fingerprint, "").partition(" ")
        waiting = request.wait_for(action_id, 0) if action_id else None
        if waiting is not None and request.is_unused_approval(waiting):
            answer = waiting
        else:
            answer, approval = _request_next_step(request, stored, _conversation_id(request.call)), ""
        approval = answer.approval_id or approval
        _store_answer(request, stored, answer, approval)
    if answer.is_pending and timeouts.wait > 0:
        # Without the lock: a person may take long, and other calls of the session go on.
        answer = _wait_if_pending(request, answer, timeouts.wait)
        with locked_session(name) as stored:
            _require_approval_unused(request, stored, answer)
            _store_answer(request, stored, answer, approval)
    return answer, approval


def _require_approval_unused(request: _DecisionRequest, stored: HookSession, answer: "Answer") -> None:
    """Raise UsageError if another call used the approval: one approval permits one call."""
    if stored.waiting.get(_fingerprint(request.action), "").partition(" ")[0] != answer.action_id:
        raise UsageError(
            "the same call was made twice at once, and the approval permits only one of them: repeat the call"
        )


def _wait_if_pending(request: _DecisionRequest, answer: "Answer", wait: float) -> "Answer":
    if not answer.is_pending or wait <= 0 or not answer.action_id:
        return answer
    return request.wait_for(answer.action_id, wait)


def _conversation_id(call: ToolCall) -> str:
    """Return the id of the conversation: the agent's own session id if the server accepts it, so that logs can be
    compared.

    Each turn is a conversation of its own, because the limits apply to what an agent does without a person.
    """
    parts = [part for part in (call.session, call.turn) if part is not None]
    name = ":".join(parts)
    return name if _PLAIN_SESSION.fullmatch(name) else f"hook_{hashed_name(*parts)}"


def _request_next_step(request: _DecisionRequest, stored: HookSession, conversation: str) -> "Answer":
    answer: Answer | None = None
    for _ in range(_MAX_SKIPPED_STEPS):
        answer = _request_step(request, stored, conversation)
        if answer.error is None or answer.error.get("code") != ErrorCode.REPLAY.code:
            break
        # The server has seen this number: the counter was lost, or another process counts in the session.
        stored.steps[request.turn] = stored.steps.get(request.turn, 0) + 1
    assert answer is not None  # noqa: S101 - the loop runs at least once
    return answer


def _request_step(request: _DecisionRequest, stored: HookSession, conversation: str) -> "Answer":
    """Request a decision for the next step; its number stays used unless the server certainly did not count it."""
    # Removed and inserted again at the end: only the newest entries are stored.
    before = stored.steps.pop(request.turn, 0)
    stored.steps[request.turn] = before + 1
    stored.save()
    try:
        answer = request.send(conversation, before + 1)
    except QWEDError as error:
        if not may_have_decided(error):
            stored.steps[request.turn] = before
            stored.save()
        raise
    if not Decision(answer.decision).commits:
        stored.steps[request.turn] = before
    return answer


def _store_answer(request: _DecisionRequest, stored: HookSession, answer: "Answer", approval: str) -> None:
    """Store the action of a call, to report its outcome or to look up its approval later."""
    fingerprint = _fingerprint(request.action)
    stored.waiting.pop(fingerprint, None)
    if answer.is_pending and answer.action_id:
        stored.waiting[fingerprint] = f"{answer.action_id} {approval}"
    if answer.decision == Decision.APPROVED and answer.action_id:
        stored.calls[call_key(request.call)] = answer.action_id
    stored.save()


def _fingerprint(action: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(action, sort_keys=True).encode()).hexdigest()


def call_key(call: ToolCall) -> str:
    """Return the key under which a call is found again after it ran."""
    if call.use_id is not None:
        return hashed_name("id", call.use_id)
    return hashed_name("call", call.tool, json.dumps(call.arguments, sort_keys=True))


def report_outcome(call: ToolCall, agent: HookAgent, timeout: float) -> None:
    """Record the outcome of a permitted call. Its result is not sent."""
    if call.session is None or call.success is None:
        return
    with locked_session(hashed_name(agent.base_url, agent.agent_id, call.session)) as stored:
        action_id = stored.calls.pop(call_key(call), None)
        stored.save()
    if action_id is None:
        return
    client_of(agent, timeout).run(agents.log_execution(agent.agent_id, action_id, call.success))


def check_setup(agent: HookAgent, timeout: float) -> str:
    """Return a sentence that describes the working setup; raise UsageError or QWEDError if something is missing."""
    with locked_session(hashed_name("check")) as stored:
        stored.save()
        stored.file.unlink()
    current = require_active(client_of(agent, timeout), agent)
    return f"the hook uses {agent.base_url} for `{current.name}` ({agent.agent_id}), trust level {current.trust_level}"
