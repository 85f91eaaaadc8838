"""Idempotency: the same key with the same request gets the stored answer (ruling 4.7)."""

import hashlib

import msgspec

from qwed.kernel.answer import Answer, denied
from qwed.kernel.audit.issue import attestation_of, extras_in, reissue_receipt
from qwed.kernel.case import Case, replace
from qwed.kernel.privacy.subject_keys import ERASED, KEPT
from qwed.kernel.services import Services
from qwed.ledger import leaf
from qwed.ledger.attest import Receipt
from qwed.model import ErrorCode, canonical
from qwed.store.protocol import ActivityRecord, StoredAnswer

_MAX_KEY_LENGTH = 255
_answer = msgspec.json.Decoder(Answer)


def check_idempotency(case: Case, services: Services) -> Case | Answer:
    """Return the case with the stored answer, or with its key claimed until it is committed or released."""
    key = case.idempotency_key
    if key is None:
        return case
    if not 0 < len(key) <= _MAX_KEY_LENGTH or not key.isascii() or not key.isprintable():
        return denied(ErrorCode.BAD_OPTION, "Idempotency-Key must be 1 to 255 printable ASCII characters")
    request_hash = hashlib.sha256(canonical([case.action_raw, case.context_raw, case.options_raw])).hexdigest()
    body_hash = services.vault.fingerprint(request_hash)
    claim = services.store.claim_key(case.agent_id, services.vault.fingerprint(key), body_hash, case.now)
    if claim.refusal is not None:
        return denied(ErrorCode.KEY_REUSED, claim.refusal)
    if claim.stored_answer is not None:
        return replace(case, remembered=claim.stored_answer)
    return replace(case, body_hash=body_hash)


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


def sealing_context(agent_id: str, key: str) -> str:
    """Return the context string under which the answer of an idempotency key is sealed."""
    return f"{agent_id}:{key}"


def _reissue_proof(entry: ActivityRecord, decision_leaf: leaf.Leaf, services: Services) -> str | Receipt | None:
    organisation_id, index = entry.organisation_id, entry.log_index
    if decision_leaf.attestation_id is None:
        return None if services.store.in_memory else reissue_receipt(entry.leaf, organisation_id, index, services)
    content = msgspec.json.decode(services.vault.content(entry, decision_leaf.activity_id).text)
    return attestation_of(decision_leaf, extras_in(decision_leaf, content), organisation_id, index, services)
