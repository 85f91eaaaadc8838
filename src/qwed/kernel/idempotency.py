"""Idempotency: the same key with the same request gets the stored answer (ruling 4.7)."""

import msgspec

from qwed.domain.snapshot import StoredAnswer
from qwed.kernel.answer import Answer, denied
from qwed.kernel.audit.issue import attestation_of, extras_in, reissue_receipt
from qwed.kernel.case import Case
from qwed.kernel.privacy.subject_keys import ERASED, KEPT
from qwed.kernel.record import sealing_context
from qwed.kernel.services import Services
from qwed.ledger import leaf
from qwed.ledger.attest import Receipt
from qwed.model import ErrorCode
from qwed.store.protocol import ActivityRecord

_answer = msgspec.json.Decoder(Answer)


def stored_answer(case: Case, remembered: StoredAnswer, services: Services) -> Answer:
    """Return the stored answer with its attestation or receipt issued again from the log; without proof if that was
    revoked."""
    entry = services.store.find_activity(case.agent_id, remembered.activity_id)
    if entry is None:
        return denied(ErrorCode.TAMPERING_FOUND, "the activity of a stored answer is missing from the log")
    context = sealing_context(case.agent_id, case.idempotency_key or "")
    content = services.vault.opened(entry.subject_id, context, remembered.answer.decode())
    if content.state == ERASED:
        return denied(ErrorCode.KEY_REUSED, "the answer under this key was erased: use a new key for a new request")
    if content.state != KEPT:
        return denied(ErrorCode.TAMPERING_FOUND, f"the stored answer is {content.state}")
    answer = _answer.decode(content.text)
    if not answer.permits:
        return answer
    decision_leaf = leaf.decode(entry.leaf)
    if decision_leaf.attestation_id is not None and services.store.revoked(decision_leaf.attestation_id) is not None:
        return msgspec.structs.replace(answer, attestation=None, verified_query=None)
    return msgspec.structs.replace(answer, attestation=_reissue_proof(entry, decision_leaf, services))


def _reissue_proof(entry: ActivityRecord, decision_leaf: leaf.Leaf, services: Services) -> str | Receipt | None:
    organisation_id, index = entry.organisation_id, entry.log_index
    if decision_leaf.attestation_id is None:
        return None if services.store.in_memory else reissue_receipt(entry.leaf, organisation_id, index, services)
    content = msgspec.json.decode(services.vault.content(entry, decision_leaf.activity_id).text)
    return attestation_of(decision_leaf, extras_in(decision_leaf, content), organisation_id, index, services)
