"""What a judge says of a message, in the shapes in which decisions are kept."""

from typing import Any

from qwed.kernel.answer import Answer, Problem, Verification, denied
from qwed.kernel.case import Case
from qwed.kernel.judging.content import read_secrets
from qwed.kernel.judging.judgement import Judgement
from qwed.kernel.keeping.hiding import Hiding
from qwed.kernel.keeping.payload import Payload, encoded, shown_action
from qwed.kernel.messages.message import BYPASS, ERROR_HANDLER, PASSTHROUGH, TRUST_BOUNDARY, Message, Ruled
from qwed.kernel.request import Action
from qwed.kernel.tools import A2A_MESSAGE
from qwed.words import Decision, ErrorCode, Risk, Status, canonical

NOT_ASSESSED = "not assessed"
"""The verdict on a message stands in place of trust and risk."""
_UNSEEN = frozenset({BYPASS, PASSTHROUGH, ERROR_HANDLER})


def bare_action(message: Message) -> Action:
    """The message without what it says: all that is kept of one that nobody looked into."""
    told = {"payload_type": message.kind, "trace_id": message.trace_id}
    members = {"type": A2A_MESSAGE, "target": message.receiver, "parameters": told}
    return Action(**members, canonical=canonical(members))  # type: ignore[arg-type]  # members of an Action


def _sayings(message: Message, whole: bool) -> Action:
    """What may hold a secret: what the message says, and whom it names."""
    payload, text = (message.payload, canonical(message.payload)) if whole else (None, b"")
    return Action(type=A2A_MESSAGE, target=message.receiver, parameters=payload, canonical=text)


def whole_action(message: Message, payload: bytes) -> Action:
    """The message with what it says."""
    bare = bare_action(message)
    parameters: dict[str, Any] = {**(bare.parameters or {}), "payload": message.payload}
    # Put together by hand: a payload that is nested as deep as may be stays canonical.
    said = b'{"parameters":{"payload":%b,' % payload
    text = bare.canonical.replace(b'{"parameters":{', said, 1)
    return Action(type=A2A_MESSAGE, target=message.receiver, parameters=parameters, canonical=text, hash=message.digest)


def judged(message: Message, ruled: Ruled) -> Judgement:
    """What was found out about a message, ready to be kept."""
    looked_into = ruled.engine != TRUST_BOUNDARY
    said = _sayings(message, looked_into)
    content = read_secrets(said)
    # What nobody could look through for secrets is not kept at all.
    looked_into = looked_into and content.complete
    action = whole_action(message, said.canonical) if looked_into else bare_action(message)
    secret = bool(content.secrets)
    hiding = Hiding(said) if secret else None
    refusal = None if ruled.forwarded else _refusal_of(ruled)
    verification = _verification_of(ruled)
    if hiding is not None:
        verification = hiding.verification(verification)
        refusal = None if refusal is None else hiding.refusal(refusal)
    told = looked_into and not secret
    payload = Payload(
        action=shown_action(action, hiding),
        error=None if refusal is None else refusal.error,
        verification=verification,
        action_hash=message.digest if told else None,
        sub=f"sha256:{message.digest}" if told and ruled.forwarded else None,
    )
    return Judgement(
        decision=Decision.APPROVED if ruled.forwarded else Decision.DENIED,
        refusal=refusal,
        risk=Risk.LOW,
        verification=verification,
        verified_query=None,
        corrected=None,
        keeps_secret=secret,
        violation=ruled.violation,
        policy_hash=None,
        tool_name=None,
        risk_assessment=None,
        policy_checks=None,
        payload=payload,
        kept=encoded(payload),
    )


def _refusal_of(ruled: Ruled) -> Answer:
    return denied(_code_of(ruled), ruled.reason, check=ruled.engine, details=dict(ruled.details))


def _code_of(ruled: Ruled) -> ErrorCode:
    if ruled.failed:
        return ErrorCode.ENGINE_FAILED
    if ruled.engine != TRUST_BOUNDARY:
        return ErrorCode.VERIFICATION_FAILED
    return ErrorCode.RATE_LIMITED if ruled.wait > 0 else ErrorCode.MESSAGE_BLOCKED


def _verification_of(ruled: Ruled) -> Verification:
    return Verification(
        status=_status_of(ruled),
        engine=ruled.engine,
        risk_level=NOT_ASSESSED,
        checks_passed=(ruled.engine,) if ruled.forwarded else (),
        checks_failed=() if ruled.forwarded else (ruled.engine,),
        effects=(),
        message=ruled.reason,
    )


def _status_of(ruled: Ruled) -> Status:
    if ruled.failed:
        return Status.ERROR
    if ruled.forwarded:
        return Status.UNCERTAIN if ruled.engine in _UNSEEN else Status.VERIFIED
    return Status.BLOCKED if ruled.violation or ruled.engine == TRUST_BOUNDARY else Status.FAILED


def refused_by(error: Problem, case: Case) -> Ruled:
    """A refusal of the kernel's own, in the words of a judge."""
    failed = error.code == ErrorCode.INTERNAL.code and error.check == ErrorCode.INTERNAL.check
    more = {} if error.retry_after is None else {"retry_after": error.retry_after}
    details = {"code": error.code, **error.details, **more}
    if case.context is not None and case.message is not None and case.message.conversation_id is not None:
        details["step_number"] = case.context.step_number
    return Ruled(False, ERROR_HANDLER if failed else TRUST_BOUNDARY, error.message, details, failed=failed)
