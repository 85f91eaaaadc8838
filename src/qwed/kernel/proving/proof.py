"""What proves an answer: the signed attestation, or the receipt that costs less. Both can be issued again."""

from typing import Any

import msgspec

from qwed.kernel.services import Services
from qwed.ledger.attest import Chain, Receipt, Stated
from qwed.ledger.leaf import Leaf, encode
from qwed.ledger.merkle import inclusion, joined
from qwed.ledger.sequencer import Head, head_from
from qwed.ledger.verifier import leaf_hash, read_head, verify_inclusion
from qwed.store.protocol import Placed, StoreError


def attestation_of(
    entry: Leaf, stated: Stated, organisation_id: str, index: int, services: Services, placed: Placed | None = None
) -> str:
    """The attestation of an activity under the first head that contains it.

    What is issued again must still be in the log as it was: our key signs nothing that somebody wrote into the tables.
    """
    if placed is not None:
        return services.signer.attest(entry, stated, index, placed.head)
    if services.store.in_memory:
        return services.signer.attest(entry, stated, index, first_head(organisation_id, index, services))
    head = proven_head(encode(entry).decode(), organisation_id, index, services)
    if head is None:
        raise StoreError(f"leaf {index}, or the head over it, is not what was written")
    return services.signer.attest(entry, stated, index, head)


def proven_head(leaf: str, organisation_id: str, index: int, services: Services) -> Head | None:
    """The first head that contains a leaf, if our key has signed it and it was signed over this very leaf."""
    signature = services.store.first_head(organisation_id, index)
    if signature is None:
        return None
    try:
        head = head_from(signature)
        signed = read_head(msgspec.structs.asdict(head), services.signer.keyring.public_keys())
        if signed.log_id != organisation_id or signed.size <= index:
            return None
        path = [bytes.fromhex(each) for each in audit_path(organisation_id, index, signed.size, services)]
    except (msgspec.DecodeError, ValueError, IndexError):
        return None
    proven = verify_inclusion(leaf_hash(leaf.encode()), index, signed.size, path, signed.root)
    return head if proven else None


def receipt_of(leaf: str, placed: Placed) -> Receipt:
    """The receipt for a leaf that was just kept."""
    return Receipt(index=placed.index, leaf=leaf, path=placed.path(), head=placed.head)


def receipt_again(leaf: str, organisation_id: str, index: int, services: Services) -> Receipt:
    """The receipt for a leaf of old, as it was given when it was kept."""
    head = first_head(organisation_id, index, services)
    return Receipt(index=index, leaf=leaf, path=audit_path(organisation_id, index, head.size, services), head=head)


def audit_path(organisation_id: str, index: int, size: int, services: Services) -> list[str]:
    """The audit path of a leaf in the log of this size, in hex."""
    return hashes_of(inclusion(index, size), organisation_id, services)


def hashes_of(path: list[list[tuple[int, int]]], organisation_id: str, services: Services) -> list[str]:
    """The hashes of a path, in hex, each joined from the subtrees it names."""
    found = iter(services.store.nodes(organisation_id, [place for places in path for place in places]))
    return [joined([next(found) for _ in places]).hex() for places in path]


def first_head(organisation_id: str, index: int, services: Services) -> Head:
    """The first head that contains a leaf."""
    signature = services.store.first_head(organisation_id, index)
    if signature is None:
        raise StoreError(f"leaf {index} is under no head")
    return head_from(signature)


def stated_in(kept: Leaf, content: dict[str, Any]) -> Stated:
    """What an attestation says beside the leaf, from the content that was kept with it."""
    chain = content.get("chain")
    return Stated(content.get("sub", kept.sub), None if chain is None else msgspec.convert(chain, Chain))
