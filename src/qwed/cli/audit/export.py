"""Export format of a log: JSON lines with the log id, the entries, the heads and the public keys."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from qwed.cli.audit.keys import PublishedKeys, SubjectKeyLookup
from qwed.cli.audit.row_check import parse_leaf
from qwed.ledger.sequencer import head_from
from qwed.ledger.subject_encryption import VaultError
from qwed.store.snapshot_reader import ActivityRow, SnapshotReader

EXPORT_VERSION = 1
_HASH = 64
_encode = msgspec.json.Encoder().encode

ContentReader = Callable[[ActivityRow], Mapping[str, Any]]
"""Function that returns the content members of an exported entry."""


def no_content(_row: ActivityRow) -> Mapping[str, Any]:
    """Return no members: an export without content."""
    return {}


class DecryptedContent:
    """Decrypts the content of entries and adds the salt that proves it."""

    def __init__(self, keys: SubjectKeyLookup) -> None:
        self._keys = keys
        self.unreadable = 0
        """Number of contents that their subject's key did not decrypt."""

    def __call__(self, row: ActivityRow) -> Mapping[str, Any]:
        """Return `payload` and `salt`, or `erased`; an empty mapping if the entry has no content."""
        if not row.payload:
            return {}
        if row.subject_id is None:
            leaf = parse_leaf(row.leaf)
            return {"payload": row.payload} if leaf is not None and leaf.v == 1 else {}
        try:
            key = self._keys(row.subject_id)
            if key is None:
                return {"erased": True}
            return {"payload": key.open(row.activity_id, row.payload), "salt": key.salt(row.activity_id).hex()}
        except VaultError:
            self.unreadable += 1
            return {}


def export_lines(
    reader: SnapshotReader,
    log_id: str,
    published: PublishedKeys,
    contents: ContentReader = no_content,
    on_row: Callable[..., None] | None = None,
) -> Iterator[bytes]:
    """Yield the lines of one log; `on_row` is called with every row."""
    yield _encode({"qwed_log": EXPORT_VERSION, "log_id": log_id, "issuer": published.issuer})
    heads = reader.heads(log_id)
    head = next(heads, None)
    for size, row in enumerate(reader.activities(log_id), 1):
        if on_row is not None:
            on_row(row)
        # The stored hash, even if it is wrong: the verifier of the export reports the difference.
        hashed = row.nodes[:_HASH] if isinstance(row.nodes, str) else ""
        yield _encode({"entry": {"index": row.log_index, "leaf": row.leaf, "leaf_hash": hashed, **contents(row)}})
        while head is not None and head[0] <= size:
            yield _head_line(*head)
            head = next(heads, None)
    while head is not None:
        yield _head_line(*head)
        head = next(heads, None)
    yield _encode(published.jwks)


def _head_line(size: int, signature: str) -> bytes:
    try:
        head = msgspec.to_builtins(head_from(signature))
    except (msgspec.DecodeError, ValueError, IndexError):
        # A damaged head is exported as it is: the verifier of the export reports it.
        head = {"size": size, "signature": signature}
    return _encode({"head": head})
