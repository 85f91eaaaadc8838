"""Before anything is decided: every log still leads to the newest head that was signed for it.

Somebody who changed the tables while nobody looked would otherwise have the node sign the changed log from then on.
"""

import msgspec

from qwed.ledger.keyring import Keyring
from qwed.ledger.merkle import joined, peaks
from qwed.ledger.sequencer import head_from
from qwed.ledger.verifier import Invalid, read_head
from qwed.store.protocol import Store

_LOOKS = 50
_UNREADABLE = (Invalid, IndexError, ValueError, msgspec.DecodeError)


class LogDamaged(RuntimeError):
    """A log is not what was signed; nothing is decided on it."""


def require_sound(store: Store, keyring: Keyring) -> None:
    """LogDamaged unless each log ends where its newest head says, which one of our keys has signed."""
    for organisation_id, signature in store.newest_heads():
        wrong = _still_wrong(organisation_id, signature, store, keyring)
        if wrong is not None:
            raise LogDamaged(
                f"the log of {organisation_id} {wrong}: run `qwed audit verify` to see what was changed, "
                "and restore the data directory from a backup"
            )


def _still_wrong(organisation_id: str, signature: str | None, store: Store, keyring: Keyring) -> str | None:
    """What is wrong with a log; where another process made it grow meanwhile, it is looked at once more."""
    for _ in range(_LOOKS):
        wrong = _wrong(organisation_id, signature, store, keyring)
        if wrong is None or not (keyring.refresh() or store.latest_head(organisation_id) != signature):
            return wrong
        signature = store.latest_head(organisation_id)
    return wrong


def _wrong(organisation_id: str, signature: str | None, store: Store, keyring: Keyring) -> str | None:
    leaves = store.leaves(organisation_id)
    if signature is None:
        return None if leaves == 0 else f"has {leaves} leaves and no signed head"
    try:
        head = read_head(msgspec.to_builtins(head_from(signature)), keyring.public_keys())
        nodes = store.nodes(organisation_id, peaks(head.size))
    except _UNREADABLE as error:
        return f"has a newest head that cannot be believed ({error})"
    if head.log_id != organisation_id:
        return "has the head of another log"
    if head.size != leaves:
        return f"has {leaves} leaves, and its newest head is signed for {head.size}"
    return None if joined(nodes) == head.root else "does not lead to the root that was signed"
