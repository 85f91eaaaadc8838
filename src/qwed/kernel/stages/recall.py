"""Ruling 4.7: the same idempotency key with the same request gets the answer it got before."""

import hashlib

import msgspec

from qwed.kernel.answer import Answer, denied
from qwed.kernel.case import Case, replace
from qwed.kernel.services import Services
from qwed.ledger import leaf
from qwed.store.protocol import Remembered
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
    body_hash = hashlib.sha256(canonical([case.action_raw, case.context_raw, case.options_raw])).hexdigest()
    claim = services.store.claim_key(case.agent_id, key, body_hash, case.now)
    if claim.refusal is not None:
        return denied(ErrorCode.KEY_REUSED, claim.refusal)
    if claim.remembered is not None:
        return replace(case, remembered=claim.remembered)
    return replace(case, body_hash=body_hash)


def remembered_answer(case: Case, remembered: Remembered, services: Services) -> Answer:
    """The stored answer, its attestation issued again from the log."""
    answer = _answer.decode(remembered.answer)
    entry = services.store.find_activity(case.agent_id, remembered.activity_id)
    if entry is None:
        return denied(ErrorCode.TAMPERING_FOUND, "the activity of a stored answer is missing from the log")
    kept = leaf.decode(entry.leaf)
    if kept.attestation_id is None:
        return answer
    return msgspec.structs.replace(answer, attestation=services.signer.attest(kept, entry.log_index))
