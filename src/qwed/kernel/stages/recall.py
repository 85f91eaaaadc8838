"""Ruling 4.7: the same idempotency key with the same request gets the answer it got before."""

import hashlib

import msgspec

from qwed.kernel.answer import Answer, denied
from qwed.kernel.case import Case, replace
from qwed.kernel.keeping.vault import ERASED, KEPT
from qwed.kernel.proving.proof import attestation_of, receipt_again, stated_in
from qwed.kernel.services import Services
from qwed.ledger import leaf
from qwed.ledger.attest import Receipt
from qwed.store.protocol import Entry, Remembered
from qwed.words import ErrorCode, canonical

_LONGEST_KEY = 255
_answer = msgspec.json.Decoder(Answer)


def recall(case: Case, services: Services) -> Case | Answer:
    """The stored answer; or the case, its key claimed until it is settled or released."""
    key = case.idempotency_key
    if key is None:
        return case
    if not 0 < len(key) <= _LONGEST_KEY or not key.isascii() or not key.isprintable():
        return denied(ErrorCode.BAD_OPTION, "Idempotency-Key must be 1 to 255 printable ASCII characters")
    asked = hashlib.sha256(canonical([case.action_raw, case.context_raw, case.options_raw])).hexdigest()
    body_hash = services.vault.fingerprint(asked)
    claim = services.store.claim_key(case.agent_id, services.vault.fingerprint(key), body_hash, case.now)
    if claim.refusal is not None:
        return denied(ErrorCode.KEY_REUSED, claim.refusal)
    if claim.remembered is not None:
        return replace(case, remembered=claim.remembered)
    return replace(case, body_hash=body_hash)


def remembered_answer(case: Case, remembered: Remembered, services: Services) -> Answer:
    """The stored answer, its attestation or receipt issued again from the log; of a revoked one only that it was."""
    entry = services.store.find_activity(case.agent_id, remembered.activity_id)
    if entry is None:
        return denied(ErrorCode.TAMPERING_FOUND, "the activity of a stored answer is missing from the log")
    place = memory_place(case.agent_id, case.idempotency_key or "")
    stored = services.vault.opened(entry.subject_id, place, remembered.answer.decode())
    if stored.state == ERASED:
        return denied(ErrorCode.KEY_REUSED, "the answer under this key was erased: use a new key for a new request")
    if stored.state != KEPT:
        return denied(ErrorCode.TAMPERING_FOUND, f"the stored answer is {stored.state}")
    answer = _answer.decode(stored.text)
    if not answer.permits:
        return answer
    kept = leaf.decode(entry.leaf)
    if kept.attestation_id is not None and services.store.revoked(kept.attestation_id) is not None:
        return msgspec.structs.replace(answer, attestation=None, verified_query=None)
    return msgspec.structs.replace(answer, attestation=_proof_again(entry, kept, services))


def memory_place(agent_id: str, key: str) -> str:
    """Where the answer under an idempotency key is sealed."""
    return f"{agent_id}:{key}"


def _proof_again(entry: Entry, kept: leaf.Leaf, services: Services) -> str | Receipt | None:
    organisation_id, index = entry.organisation_id, entry.log_index
    if kept.attestation_id is None:
        return None if services.store.in_memory else receipt_again(entry.leaf, organisation_id, index, services)
    content = msgspec.json.decode(services.vault.content(entry, kept.activity_id).text)
    return attestation_of(kept, stated_in(kept, content), organisation_id, index, services)
