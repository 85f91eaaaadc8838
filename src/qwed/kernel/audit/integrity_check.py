"""Start-up check that every log still leads to its newest signed head.

Otherwise the node would sign a log that was manipulated while it was stopped.
"""

import msgspec

from qwed.ledger.keyring import Keyring
from qwed.ledger.merkle import fold_hashes, peaks
from qwed.ledger.sequencer import head_from
from qwed.ledger.verifier import InvalidEvidenceError, read_head
from qwed.store.protocol import Store

_MAX_ATTEMPTS = 50
_UNREADABLE = (InvalidEvidenceError, IndexError, ValueError, msgspec.DecodeError)


class LogDamagedError(RuntimeError):
    """A log is not what was signed; no decision is based on it."""


def require_intact_logs(store: Store, keyring: Keyring) -> None:
    """Raise LogDamagedError unless each log ends at its newest head, signed with one of our keys."""
    for organisation_id, signature in store.organisation_heads():
        defect = _persistent_defect(organisation_id, signature, store, keyring)
        if defect is not None:
            raise LogDamagedError(
                f"the log of {organisation_id} {defect}: run `qwed audit verify` to see what was changed, "
                "and restore the data directory from a backup"
            )


def _persistent_defect(organisation_id: str, signature: str | None, store: Store, keyring: Keyring) -> str | None:
    """Return the defect of a log, or None; checked again if another process extends the log meanwhile."""
    for _ in range(_MAX_ATTEMPTS):
        defect = _defect(organisation_id, signature, store, keyring)
        if defect is None or not (keyring.refresh() or store.latest_head(organisation_id) != signature):
            return defect
        signature = store.latest_head(organisation_id)
    return defect


def _defect(organisation_id: str, signature: str | None, store: Store, keyring: Keyring) -> str | None:
    leaves = store.leaves(organisation_id)
    if signature is None:
        return None if leaves == 0 else f"has {leaves} leaves and no signed head"
    try:
        head = read_head(msgspec.to_builtins(head_from(signature)), keyring.public_keys())
        nodes = store.nodes(organisation_id, peaks(head.size))
    except _UNREADABLE as error:
        return f"has an invalid newest head ({error})"
    if head.log_id != organisation_id:
        return "has the head of another log"
    if head.size != leaves:
        return f"has {leaves} leaves, but its newest head is signed for {head.size}"
    return None if fold_hashes(nodes) == head.root else "does not lead to the root that was signed"
