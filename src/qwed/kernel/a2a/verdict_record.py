"""Converts the verdict on a message into the kernel's records of a decision."""

from typing import Any

from qwed.kernel.a2a.message import EngineName, InterceptedMessage, MessageVerdict
from qwed.kernel.analysis.assessment import Assessment
from qwed.kernel.analysis.content_scan import scan_secrets
from qwed.kernel.answer import Answer, Problem, Verification, denied
from qwed.kernel.privacy.payload import Payload, encode_payload, redacted_action
from qwed.kernel.privacy.redaction import Redactor
from qwed.kernel.request import Action, Context
from qwed.kernel.tools import A2A_MESSAGE
from qwed.model import Decision, ErrorCode, Risk, Status, canonical

NOT_ASSESSED = "not assessed"
"""Risk level of a message: the verdict takes the place of trust and risk."""
_NOT_INSPECTED = frozenset({EngineName.BYPASS, EngineName.PASSTHROUGH, EngineName.ERROR_HANDLER})


def bare_action(message: InterceptedMessage) -> Action:
    """Return the action for a message without its payload, which is all that is stored of an uninspected message."""
    parameters = {"payload_type": message.kind, "trace_id": message.trace_id}
    members = {"type": A2A_MESSAGE, "target": message.receiver, "parameters": parameters}
    return Action(**members, canonical=canonical(members))  # type: ignore[arg-type]  # members of an Action


def _secret_sources(message: InterceptedMessage, whole: bool) -> Action:
    """Return the parts of a message that may hold a secret: its payload and its receiver."""
    payload, text = (message.payload, message.text) if whole else (None, b"")
    return Action(type=A2A_MESSAGE, target=message.receiver, parameters=payload, canonical=text)


def _whole_action(message: InterceptedMessage, bare: Action) -> Action:
    """Return the action for a message with its payload."""
    parameters: dict[str, Any] = {**(bare.parameters or {}), "payload": message.payload}
    # Concatenated by hand, so that a payload of the maximum depth stays canonical.
    prefix = b'{"parameters":{"payload":%b,' % message.text
    text = bare.canonical.replace(b'{"parameters":{', prefix, 1)
    return Action(type=A2A_MESSAGE, target=message.receiver, parameters=parameters, canonical=text, hash=message.digest)


def assessment_of(message: InterceptedMessage, bare: Action, verdict: MessageVerdict) -> Assessment:
    """Return the assessment of a message, ready to be stored; `bare` is its action without the payload."""
    inspected = verdict.engine != EngineName.TRUST_BOUNDARY
    sources = _secret_sources(message, inspected)
    content = scan_secrets(sources)
    # A payload that could not be scanned completely for secrets is not stored.
    inspected = inspected and content.complete
    action = _whole_action(message, bare) if inspected else bare
    secret = bool(content.secrets)
    redactor = Redactor(sources) if secret else None
    refusal = None if verdict.forwarded else _refusal_of(verdict)
    verification = _verification_of(verdict)
    if redactor is not None:
        verification = redactor.verification(verification)
        refusal = None if refusal is None else redactor.refusal(refusal)
    hashed = inspected and not secret
    payload = Payload(
        action=redacted_action(action, redactor),
        error=None if refusal is None else refusal.error,
        verification=verification,
        action_hash=message.digest if hashed else None,
        sub=f"sha256:{message.digest}" if hashed and verdict.forwarded else None,
    )
    return Assessment(
        decision=Decision.APPROVED if verdict.forwarded else Decision.DENIED,
        refusal=refusal,
        risk=Risk.LOW,
        verification=verification,
        verified_query=None,
        corrected=None,
        has_secret=secret,
        violation=verdict.violation,
        misconduct=_is_misconduct(verdict),
        policy_hash=None,
        tool_name=None,
        risk_assessment=None,
        policy_checks=None,
        payload=payload,
        encoded_payload=encode_payload(payload),
    )


def _is_misconduct(verdict: MessageVerdict) -> bool:
    """Return True if the content was refused, and not its sender, its rate or for a failure of ours."""
    is_content = verdict.problem is None and verdict.engine != EngineName.TRUST_BOUNDARY
    return is_content and not verdict.forwarded and not verdict.failed


def _refusal_of(verdict: MessageVerdict) -> Answer:
    if verdict.problem is not None:
        return Answer(decision=Decision.DENIED, error=verdict.problem)
    code = ErrorCode.MESSAGE_BLOCKED if verdict.engine == EngineName.TRUST_BOUNDARY else ErrorCode.VERIFICATION_FAILED
    if verdict.failed:
        code = ErrorCode.ENGINE_FAILED
    return denied(code, verdict.reason, check=verdict.engine, details=dict(verdict.details))


def _verification_of(verdict: MessageVerdict) -> Verification:
    return Verification(
        status=_status_of(verdict),
        engine=verdict.engine,
        risk_level=NOT_ASSESSED,
        checks_passed=(verdict.engine,) if verdict.forwarded else (),
        checks_failed=() if verdict.forwarded else (verdict.engine,),
        effects=(),
        message=verdict.reason,
    )


def _status_of(verdict: MessageVerdict) -> Status:
    if verdict.failed:
        return Status.ERROR
    if verdict.forwarded:
        return Status.UNCERTAIN if verdict.engine in _NOT_INSPECTED else Status.VERIFIED
    return Status.BLOCKED if verdict.violation or verdict.engine == EngineName.TRUST_BOUNDARY else Status.FAILED


def verdict_of_problem(error: Problem, context: Context | None = None) -> MessageVerdict:
    """Convert a refusal of the kernel itself into a verdict; `context` is the step of a message in a conversation."""
    failed = error.code == ErrorCode.INTERNAL.code and error.check == ErrorCode.INTERNAL.check
    details = {"code": error.code, **error.details}
    if error.retry_after is not None:
        details["retry_after"] = error.retry_after
    if context is not None:
        details["step_number"] = context.step_number
    engine = EngineName.ERROR_HANDLER if failed else EngineName.TRUST_BOUNDARY
    return MessageVerdict(False, engine, error.message, details, problem=error)
