"""Issues attestations and receipts, also again from the log."""

from typing import Any

import msgspec

from qwed.domain.write_set import LogPosition
from qwed.kernel.services import Services
from qwed.ledger.attest import AttestationExtras, Chain, Receipt
from qwed.ledger.leaf import Leaf, encode
from qwed.ledger.merkle import fold_hashes, inclusion_path
from qwed.ledger.sequencer import Head, head_from
from qwed.ledger.verifier import leaf_hash, read_head, verify_inclusion
from qwed.store.protocol import StoreError


def attestation_of(
    entry: Leaf,
    extras: AttestationExtras,
    organisation_id: str,
    index: int,
    services: Services,
    position: LogPosition | None = None,
) -> str:
    """Issue the attestation of an activity under the first head that contains it.

    A leaf from the store must be proven first: our key must not sign anything that was inserted into the tables.
    """
    if position is not None:
        return services.signer.attest(entry, extras, index, position.head)
    if services.store.in_memory:
        return services.signer.attest(entry, extras, index, first_head(organisation_id, index, services))
    head = proven_head(encode(entry).decode(), organisation_id, index, services)
    if head is None:
        raise StoreError(f"leaf {index} or its signed head was changed in the store")
    return services.signer.attest(entry, extras, index, head)


def proven_head(leaf: str, organisation_id: str, index: int, services: Services) -> Head | None:
    """Return the first head that contains a leaf, if it is signed with our key over exactly this leaf, else None."""
    signature = services.store.first_head(organisation_id, index)
    if signature is None:
        return None
    try:
        head = head_from(signature)
        signed = read_head(msgspec.structs.asdict(head), services.signer.keyring.public_keys())
        if signed.log_id != organisation_id or signed.size <= index:
            return None
        path = [bytes.fromhex(node) for node in audit_path(organisation_id, index, signed.size, services)]
    except (msgspec.DecodeError, ValueError, IndexError):
        return None
    proven = verify_inclusion(leaf_hash(leaf.encode()), index, signed.size, path, signed.root)
    return head if proven else None


def reissue_receipt(leaf: str, organisation_id: str, index: int, services: Services) -> Receipt:
    """Return the receipt for an earlier leaf, as it was issued at the time."""
    head = first_head(organisation_id, index, services)
    return Receipt(index=index, leaf=leaf, path=audit_path(organisation_id, index, head.size, services), head=head)


def audit_path(organisation_id: str, index: int, size: int, services: Services) -> list[str]:
    """Return the audit path of a leaf in the log of this size, in hex."""
    return hashes_of(inclusion_path(index, size), organisation_id, services)


def hashes_of(path: list[list[tuple[int, int]]], organisation_id: str, services: Services) -> list[str]:
    """Return the hashes of a path in hex, each folded from its subtrees."""
    nodes = iter(services.store.nodes(organisation_id, [subtree for subtrees in path for subtree in subtrees]))
    return [fold_hashes([next(nodes) for _ in subtrees]).hex() for subtrees in path]


def first_head(organisation_id: str, index: int, services: Services) -> Head:
    """Return the first head that contains a leaf."""
    signature = services.store.first_head(organisation_id, index)
    if signature is None:
        raise StoreError(f"leaf {index} is under no head")
    return head_from(signature)


def extras_in(decoded: Leaf, content: dict[str, Any]) -> AttestationExtras:
    """Return the claims of an attestation that are stored in the content and not in the leaf."""
    chain = content.get("chain")
    return AttestationExtras(content.get("sub", decoded.sub), None if chain is None else msgspec.convert(chain, Chain))
