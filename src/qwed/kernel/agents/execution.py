"""Spec 7.1, `execution`: what became of a permitted action, told once by whoever carried it out."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from qwed.guards.text import strings_in
from qwed.kernel.agents.actions import ActionView, action_view, permitted_view
from qwed.kernel.answer import Problem, problem
from qwed.kernel.bodies import refuse_body
from qwed.kernel.change import change_of, keep
from qwed.kernel.judging.content import holds_secret
from qwed.kernel.services import Services
from qwed.kernel.views.record import result_place
from qwed.ledger.tokens import check_attestation, check_receipt
from qwed.ledger.vault import SubjectKey
from qwed.store.agent import Agent
from qwed.store.parts import Executed
from qwed.words import Decision, ErrorCode, Event, NotCanonical, sha256_of

_FIELDS = ("success", "result", "result_hash", "attestation")
_HASH = re.compile(r"sha256:[0-9a-f]{64}")


class Report(NamedTuple):
    """What is said about an execution. Of the result only its hash is kept, and of one with a secret not even that."""

    success: bool
    result_hash: str | None
    attestation: str | Mapping[str, Any] | None


def read_report(raw: Any) -> Report | Problem:
    """The report, or what is wrong with it."""
    wrong = refuse_body(raw, _FIELDS)
    if wrong is not None:
        return wrong
    if "success" not in raw:
        return problem(ErrorCode.MISSING_FIELD, "`success` is required")
    if type(raw["success"]) is not bool:
        return problem(ErrorCode.MALFORMED, "`success` must be true or false")
    if not isinstance(raw.get("attestation"), str | Mapping | None):
        return problem(ErrorCode.MALFORMED, "`attestation` must be what came with the decision: a token or a receipt")
    result_hash = _hash_of(raw)
    if isinstance(result_hash, Problem):
        return result_hash
    return Report(raw["success"], result_hash, raw.get("attestation"))


def _hash_of(raw: Mapping[str, Any]) -> str | Problem | None:
    stated = raw.get("result_hash")
    if stated is not None and (not isinstance(stated, str) or not _HASH.fullmatch(stated)):
        return problem(ErrorCode.MALFORMED, "`result_hash` must be `sha256:` and 64 lowercase hex characters")
    if raw.get("result") is None:
        return stated
    try:
        computed = f"sha256:{sha256_of(raw['result'])}"
    except NotCanonical as error:
        return problem(ErrorCode.NOT_DETERMINISTIC, f"`result`: {error}")
    if stated not in (None, computed):
        return problem(ErrorCode.MALFORMED, "`result_hash` is not the hash of `result`")
    # A hash lets whoever reads it guess; of what holds a secret, none is kept.
    return None if _unhashable(raw["result"]) else computed


def _unhashable(result: Any) -> bool:
    strings = strings_in(result)
    return not strings.complete or holds_secret(strings)


async def log_execution(
    agent: Agent, action_id: str, report: Report, by: str, services: Services
) -> ActionView | Problem:
    """The action with its execution. Doing what was not permitted is refused, and logged all the same."""
    action = permitted_view(agent, action_id, services)
    if isinstance(action, Problem):
        return action
    permitted = Decision(action.decision or Decision.DENIED).permits
    if permitted and report.attestation is not None and not _attests(report.attestation, action, services):
        return problem(ErrorCode.MALFORMED, "`attestation` is not the attestation of this action")
    now, entry = services.clock.now(), services.store.find_activity(agent.agent_id, action_id)
    key = services.vault.key_about(None if entry is None else entry.subject_id, agent.organisation_id)
    change = change_of(
        Event.EXECUTED if permitted else Event.EXECUTED_UNPERMITTED,
        by,
        agent.organisation_id,
        now,
        services,
        key=key,
        agent_id=agent.agent_id,
        about=action_id,
        success=report.success,
        said={"result_hash": report.result_hash},
        parts=(Executed(action_id, report.success, _sealed(report, action_id, key), now),) if permitted else (),
    )
    kept = await keep(change, services)
    if isinstance(kept, Problem):
        return kept
    if not permitted:
        return problem(ErrorCode.CONFLICT, f"this action was not permitted: its decision is {action.decision}")
    return action_view(agent, action_id, services)


def _sealed(report: Report, action_id: str, key: SubjectKey) -> str | None:
    """The hash of the result, after the name of the key that opens it: of an erased subject that is another one."""
    if report.result_hash is None:
        return None
    return f"{key.subject_id}:{key.seal(result_place(action_id), report.result_hash)}"


def _attests(shown: str | Mapping[str, Any], action: ActionView, services: Services) -> bool:
    """Whether it was signed by this node, with whichever of its keys, about this action.

    An execution is told when it is over: what has run out or was revoked meanwhile was there to act on before.
    """
    keyring = services.signer.keyring
    if not isinstance(shown, str):
        receipt = check_receipt(shown, keyring.public_keys())
        return receipt.claims is not None and receipt.claims["activity_id"] == action.activity_id
    checked = check_attestation(
        shown, keyring.public_keys(), now=services.clock.now(), trusted_issuers=(keyring.issuer,)
    )
    stands = checked.valid or checked.code == ErrorCode.ATTESTATION_EXPIRED.code
    return stands and checked.claims is not None and checked.claims["jti"] == action.attestation_id
