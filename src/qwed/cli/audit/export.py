"""A log as JSON lines: its name, each entry, each head after the entries it covers, and the keys at the end."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from qwed.cli.audit.keys import Published, SubjectKeys
from qwed.cli.audit.rows import leaf_in
from qwed.ledger.sequencer import head_from
from qwed.ledger.vault import VaultError
from qwed.store.reader import KeptActivity, Reader

VERSION = 1
_HASH = 64
_encode = msgspec.json.Encoder().encode

Contents = Callable[[KeptActivity], Mapping[str, Any]]
"""The members of an entry that its content has."""


def nothing(_row: KeptActivity) -> Mapping[str, Any]:
    """No content."""
    return {}


class Opened:
    """The content of entries in the clear, each with the salt that proves it."""

    def __init__(self, keys: SubjectKeys) -> None:
        self._keys = keys
        self.unreadable = 0
        """Contents that do not open with the keys of their subjects."""

    def __call__(self, row: KeptActivity) -> Mapping[str, Any]:
        """`payload` and `salt`, or `erased`; nothing where there is none, or none any more."""
        if not row.payload:
            return {}
        if row.subject_id is None:
            kept = leaf_in(row.leaf)
            return {"payload": row.payload} if kept is not None and kept.v == 1 else {}
        try:
            key = self._keys(row.subject_id)
            if key is None:
                return {"erased": True}
            return {"payload": key.open(row.activity_id, row.payload), "salt": key.salt(row.activity_id).hex()}
        except VaultError:
            self.unreadable += 1
            return {}


def export_lines(
    reader: Reader,
    log_id: str,
    published: Published,
    contents: Contents = nothing,
    each: Callable[..., None] | None = None,
) -> Iterator[bytes]:
    """The lines of one log, as it is read; `each` is called with every row."""
    yield _encode({"qwed_log": VERSION, "log_id": log_id, "issuer": published.issuer})
    heads = reader.heads(log_id)
    head = next(heads, None)
    for size, row in enumerate(reader.activities(log_id), 1):
        if each is not None:
            each(row)
        # The hash as it is kept: one that is not the leaf's own is told by whoever checks the export.
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
        # What is no head any more is told as such by whoever checks the export.
        head = {"size": size, "signature": signature}
    return _encode({"head": head})
