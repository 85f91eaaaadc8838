"""Execution reports of permitted actions, one per action (spec 7.1, `execution`)."""

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

from msgspec import Meta

from qwed.domain.agent import Agent
from qwed.domain.change_parts import ExecutionLogged
from qwed.guards.text_scan import strings_in
from qwed.kernel.agents.actions import ActionView, action_view, permitted_view
from qwed.kernel.analysis.content_scan import has_secret
from qwed.kernel.answer import Problem, problem
from qwed.kernel.audit_change import build_change, commit_change
from qwed.kernel.request_schema import FieldRule, RequestStruct
from qwed.kernel.services import Services
from qwed.kernel.views.activity_views import result_context
from qwed.ledger.attestation_verifier import check_attestation, check_receipt
from qwed.ledger.subject_encryption import SubjectKey
from qwed.model import CanonicalJsonError, Decision, ErrorCode, Event, sha256_of


class ExecutionRequest(RequestStruct):
    """Outcome of an action (spec 7.1). Only the hash of `result` is stored."""

    success: Annotated[bool, FieldRule("must be true or false", null_is_absent=False)]
    result: Any = None
    result_hash: (
        Annotated[
            str,
            Meta(pattern="^sha256:[0-9a-f]{64}$", max_length=71),
            FieldRule("must be `sha256:` and 64 lowercase hex characters"),
        ]
        | None
    ) = None
    attestation: (
        Annotated[str | dict[str, Any], FieldRule("must be what came with the decision: a token or a receipt")] | None
    ) = None


class ExecutionReport(NamedTuple):
    """Report of an execution. Only the hash of the result is stored, and not even that if it contains a secret."""

    success: bool
    result_hash: str | None
    attestation: str | Mapping[str, Any] | None


def report_of(request: ExecutionRequest) -> ExecutionReport | Problem:
    """Return the report with the hash of its result, or the problem with that."""
    if request.result is None:
        return ExecutionReport(request.success, request.result_hash, request.attestation)
    try:
        computed = f"sha256:{sha256_of(request.result)}"
    except CanonicalJsonError as error:
        return problem(ErrorCode.NOT_DETERMINISTIC, f"`result`: {error}")
    if request.result_hash not in (None, computed):
        return problem(ErrorCode.MALFORMED, "`result_hash` is not the hash of `result`")
    # A hash allows guessing; none is stored for a result with a secret.
    stored = None if _has_secret(request.result) else computed
    return ExecutionReport(request.success, stored, request.attestation)


def _has_secret(result: Any) -> bool:
    strings = strings_in(result)
    return not strings.complete or has_secret(strings)


async def log_execution(
    agent: Agent, action_id: str, report: ExecutionReport, actor_id: str, services: Services
) -> ActionView | Problem:
    """Record an execution and return the action. Executing an unpermitted action is refused, but logged."""
    action = permitted_view(agent, action_id, services)
    if isinstance(action, Problem):
        return action
    permitted = Decision(action.decision or Decision.DENIED).permits
    if permitted and report.attestation is not None and not _attests(report.attestation, action, services):
        return problem(ErrorCode.MALFORMED, "`attestation` is not the attestation of this action")
    now, entry = services.clock.now(), services.store.find_activity(agent.agent_id, action_id)
    key = services.vault.key_about(None if entry is None else entry.subject_id, agent.organisation_id)
    change = build_change(
        Event.EXECUTED if permitted else Event.EXECUTED_UNPERMITTED,
        actor_id,
        agent.organisation_id,
        now,
        services,
        key=key,
        agent_id=agent.agent_id,
        about=action_id,
        success=report.success,
        content={"result_hash": report.result_hash},
        parts=(ExecutionLogged(action_id, report.success, _seal_result_hash(report, action_id, key), now),)
        if permitted
        else (),
    )
    receipt = await commit_change(change, services)
    if isinstance(receipt, Problem):
        return receipt
    if not permitted:
        return problem(ErrorCode.CONFLICT, f"this action was not permitted: its decision is {action.decision}")
    return action_view(agent, action_id, services)


def _seal_result_hash(report: ExecutionReport, action_id: str, key: SubjectKey) -> str | None:
    """Return the sealed hash of the result, prefixed with the id of the key that opens it."""
    if report.result_hash is None:
        return None
    return f"{key.subject_id}:{key.seal(result_context(action_id), report.result_hash)}"


def _attests(proof: str | Mapping[str, Any], action: ActionView, services: Services) -> bool:
    """Return True if the proof was signed by any key of this node for this action.

    An execution is reported after it ended: a proof that expired or was revoked meanwhile was valid before.
    """
    keyring = services.signer.keyring
    if not isinstance(proof, str):
        receipt = check_receipt(proof, keyring.public_keys())
        return receipt.claims is not None and receipt.claims["activity_id"] == action.activity_id
    checked = check_attestation(
        proof, keyring.public_keys(), now=services.clock.now(), trusted_issuers=(keyring.issuer,)
    )
    is_signed = checked.valid or checked.code == ErrorCode.ATTESTATION_EXPIRED.code
    return is_signed and checked.claims is not None and checked.claims["jti"] == action.attestation_id
