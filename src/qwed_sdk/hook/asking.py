"""One tool call, asked about: which step of which conversation it is, and what the answer means for the tool."""

import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from qwed.words import Decision, ErrorCode
from qwed.words.advice import spoken
from qwed.words.home import DEFAULT_URL
from qwed_sdk.calls.checks import Refusal, same
from qwed_sdk.errors import QWEDError, perhaps_decided
from qwed_sdk.hook.call import Call, Unusable
from qwed_sdk.hook.steps import Session, held, name_of

if TYPE_CHECKING:
    from qwed_sdk.client import QWEDClient
    from qwed_sdk.records import Action, Answer

_SKIPPED = 100
"""Steps that are tried one after the other where the count was lost."""
_PLAIN_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,119}")
_ANEW = {
    ErrorCode.STEP_LIMIT.code: "start a new session (in Claude Code: /clear), or raise QWED_MAX_STEPS on the server",
    ErrorCode.REPETITION.code: "do something else first, or start a new session",
}
"""What helps against a limit of one conversation, to whoever never heard of one."""
_NEXT_PROMPT = "wait for the person's next prompt, with which the count begins anew; or "


class Agent(NamedTuple):
    """Who asks, and whom."""

    agent_id: str
    agent_token: str
    base_url: str


class Patience(NamedTuple):
    """Seconds for the server, and for a person."""

    timeout: float
    wait: float = 0.0


class Verdict(NamedTuple):
    """What becomes of the tool: it runs where there is no refusal."""

    refusal: Refusal | None
    answer: "Answer | None" = None


def agent_from(environment: Mapping[str, str]) -> Agent:
    """The agent the environment names. An organisation's key is not taken in its place: it could approve as well."""
    for name in ("QWED_AGENT_ID", "QWED_AGENT_TOKEN"):
        if not environment.get(name, "").strip():
            raise Unusable(f"{name} is not set: the hook asks for one agent, with that agent's own token")
    return Agent(
        environment["QWED_AGENT_ID"].strip(),
        environment["QWED_AGENT_TOKEN"].strip(),
        environment.get("QWED_BASE_URL", "").strip() or DEFAULT_URL,
    )


def client_of(agent: Agent, timeout: float) -> "QWEDClient":
    """The client that asks for the agent."""
    from qwed_sdk.client import QWEDClient

    try:
        return QWEDClient(base_url=agent.base_url, timeout=timeout, agent_token=agent.agent_token, retries=1)
    except ValueError as error:
        raise Unusable(f"QWED_BASE_URL or QWED_AGENT_TOKEN cannot be used: {error}") from None


def decide(call: Call, action: Mapping[str, Any], agent: Agent, patience: Patience) -> Verdict:
    """May the tool run? Whatever keeps that from being answered is a refusal."""
    try:
        with client_of(agent, patience.timeout) as client:
            answer, approval = _asked(_Asking(client, agent, call, action), patience)
    except QWEDError as error:
        reason = f"it could not be verified: {error.message}"
        return Verdict(Refusal(call.tool, reason, error.code, error.suggestion))
    return _meaning(call, answer, approval)


def _meaning(call: Call, answer: "Answer", approval: str) -> Verdict:
    tool, error = call.tool, answer.error or {}
    reason = error.get("message") or f"the decision is {answer.decision}"
    suggestion = spoken(error.get("code"), error.get("suggestion"))
    refusal = Refusal(tool, reason, error.get("code"), suggestion, answer.decision, answer)
    if answer.decision == Decision.APPROVED and answer.action_id and answer.corrected is None:
        return Verdict(None, answer)
    if Decision(answer.decision).permits:
        # A hook says yes or no to what the agent is about to do, and that was not permitted.
        instead = json.dumps(answer.corrected, ensure_ascii=True)
        return Verdict(refusal._replace(reason=f"not as it is: it would be permitted as {instead}"), answer)
    if error.get("code") in _ANEW:
        refusal = refusal._replace(suggestion=(_NEXT_PROMPT if call.turn else "") + _ANEW[error["code"]])
    if answer.is_pending:
        refusal = refusal._replace(suggestion=f"once a person has approved {approval}, make the same call again")
    return Verdict(refusal, answer)


class _Asking(NamedTuple):
    client: "QWEDClient"
    agent: Agent
    call: Call
    action: Mapping[str, Any]

    @property
    def turn(self) -> str:
        """The name under which the steps of this turn are counted."""
        return name_of("turn", self.call.turn or "")

    def at(self, conversation: str, step: int) -> "Answer":
        context = {"conversation_id": conversation, "step_number": step}
        return self.client.verify_action(self.agent.agent_id, self.action, context)

    def later(self, action_id: str, wait: float) -> "Action":
        """The action once a person has decided, or as it stands then; what was taken back meanwhile is no yes."""
        action = self.client.wait_for_decision(self.agent.agent_id, action_id, wait)
        if action.decision == Decision.APPROVED:
            require_active(self.client, self.agent)
            if action.get("attestation_id") is not None and action.attestation is None:
                raise Unusable("the approval of this call was revoked")
        return action

    def is_of(self, action: "Action") -> bool:
        """Whether it is this call, and nothing came of it yet: one approval permits one call."""
        # No secret was hidden in what is kept: what has one in it is never left to a person.
        return action.execution is None and action.action is not None and same(self.action, action.action)


def require_active(client: "QWEDClient", agent: Agent) -> Any:
    """The agent as it stands; Unusable where it is stopped."""
    found = client.get_agent(agent.agent_id)
    if found.status != "active":
        raise Unusable(f"the agent {agent.agent_id} is {found.status}")
    return found


def _asked(asking: _Asking, patience: Patience) -> "tuple[Answer, str]":
    """The answer, and the name of the approval where a person has to decide."""
    answer: Answer
    session = asking.call.session
    if session is None:
        answer = asking.at(f"hook_{secrets.token_hex(12)}", 1)
        return _awaited(asking, answer, patience.wait), answer.approval_id or ""
    name, fingerprint = name_of(asking.agent.base_url, asking.agent.agent_id, session), _fingerprint(asking.action)
    with held(name) as kept:
        action_id, _, approval = kept.waiting.get(fingerprint, "").partition(" ")
        noted = asking.later(action_id, 0) if action_id else None
        if noted is not None and asking.is_of(noted):
            answer = noted
        else:
            answer, approval = _at_next_step(asking, kept, _conversation(asking.call)), ""
        approval = answer.approval_id or approval
        _note(asking, kept, answer, approval)
    if answer.is_pending and patience.wait > 0:
        # A person may take long: other calls of the session go on meanwhile.
        answer = _awaited(asking, answer, patience.wait)
        with held(name) as kept:
            _claim(asking, kept, answer)
            _note(asking, kept, answer, approval)
    return answer, approval


def _claim(asking: _Asking, kept: Session, answer: "Answer") -> None:
    """One approval is for one call: of two that waited for it together, the second must ask again."""
    if kept.waiting.get(_fingerprint(asking.action), "").partition(" ")[0] != answer.action_id:
        raise Unusable("the same call was made twice at once, and the approval was for one of them: ask again")


def _awaited(asking: _Asking, answer: "Answer", wait: float) -> "Answer":
    if not answer.is_pending or wait <= 0 or not answer.action_id:
        return answer
    return asking.later(answer.action_id, wait)


def _conversation(call: Call) -> str:
    """The session's own name where the server takes it, so that the log can be read beside the transcript.

    Each turn of it is a conversation: the limits are on what an agent does by itself, and a prompt is somebody else.
    """
    parts = [part for part in (call.session, call.turn) if part is not None]
    name = ":".join(parts)
    return name if _PLAIN_SESSION.fullmatch(name) else f"hook_{name_of(*parts)}"


def _at_next_step(asking: _Asking, kept: Session, conversation: str) -> "Answer":
    answer: Answer | None = None
    for _ in range(_SKIPPED):
        answer = _at_step(asking, kept, conversation)
        if answer.error is None or answer.error.get("code") != ErrorCode.REPLAY.code:
            break
        # The server knows this number: the count was lost, or somebody else counts in the session.
        kept.steps[asking.turn] = kept.steps.get(asking.turn, 0) + 1
    assert answer is not None  # noqa: S101 - the loop has turned at least once
    return answer


def _at_step(asking: _Asking, kept: Session, conversation: str) -> "Answer":
    """The answer; its number is used up unless the server certainly did not use it."""
    # Taken out and put in at the end: what is kept is the newest.
    before = kept.steps.pop(asking.turn, 0)
    kept.steps[asking.turn] = before + 1
    kept.save()
    try:
        answer = asking.at(conversation, before + 1)
    except QWEDError as error:
        if not perhaps_decided(error):
            kept.steps[asking.turn] = before
            kept.save()
        raise
    if not Decision(answer.decision).commits:
        kept.steps[asking.turn] = before
    return answer


def _note(asking: _Asking, kept: Session, answer: "Answer", approval: str) -> None:
    """Write down what the answer leaves to be done: tell the outcome, or look again."""
    fingerprint = _fingerprint(asking.action)
    kept.waiting.pop(fingerprint, None)
    if answer.is_pending and answer.action_id:
        kept.waiting[fingerprint] = f"{answer.action_id} {approval}"
    if answer.decision == Decision.APPROVED and answer.action_id:
        kept.calls[key_of(asking.call)] = answer.action_id
    kept.save()


def _fingerprint(action: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(action, sort_keys=True).encode()).hexdigest()


def key_of(call: Call) -> str:
    """The name under which a call is found again after it ran."""
    if call.use_id is not None:
        return name_of("id", call.use_id)
    return name_of("call", call.tool, json.dumps(call.arguments, sort_keys=True))


def report(call: Call, agent: Agent, timeout: float) -> None:
    """Log how a permitted call went. Of its result nothing is sent."""
    if call.session is None or call.success is None:
        return
    with held(name_of(agent.base_url, agent.agent_id, call.session)) as kept:
        action_id = kept.calls.pop(key_of(call), None)
        kept.save()
    if action_id is None:
        return
    with client_of(agent, timeout) as client:
        client.log_execution(agent.agent_id, action_id, call.success)


def working(agent: Agent, timeout: float) -> str:
    """One sentence that everything is in place; Unusable or QWEDError where it is not."""
    with held(name_of("check")) as kept:
        kept.save()
        kept.file.unlink()
    with client_of(agent, timeout) as client:
        found = require_active(client, agent)
    return f"the hook asks {agent.base_url} for `{found.name}` ({agent.agent_id}), trust level {found.trust_level}"
