"""Keys in a data directory: public keys for heads, and keys that decrypt content."""

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from qwed.ledger.keyring import JWKS_FILE
from qwed.ledger.subject_encryption import MASTER_FILE, MasterKey, SubjectKey, VaultError, existing_master
from qwed.store.snapshot_reader import DatabaseReadError, SnapshotReader

_CACHED_KEYS = 4_096

SubjectKeyLookup = Callable[[str | None], SubjectKey | None]
"""Function that returns a subject's key, or None once it was erased; raises VaultError if the key is missing or
changed."""


class PublishedKeys(NamedTuple):
    """Issuer and public keys of a node."""

    issuer: str
    jwks: Mapping[str, Any]


def read_published_keys(directory: Path) -> PublishedKeys:
    """Read the node's public keys; raise DatabaseReadError if they are missing."""
    file = directory / JWKS_FILE
    if not directory.is_dir():
        raise DatabaseReadError(
            f"there is no directory {directory}: give the data directory of a server with --data-dir"
        )
    try:
        document = json.loads(file.read_bytes())
    except FileNotFoundError:
        raise DatabaseReadError(f"{file} is missing: it holds the public keys that verify heads") from None
    except (OSError, ValueError, RecursionError) as error:
        raise DatabaseReadError(f"{file} cannot be read: {error}") from None
    if not isinstance(document, dict) or not isinstance(document.get("issuer"), str):
        raise DatabaseReadError(f"{file} is not the JWKS of a node: restore it from a backup")
    return PublishedKeys(document["issuer"], {"keys": document.get("keys")})


def read_master_key(directory: Path) -> MasterKey | None:
    """Return the key that encrypts the subject keys, or None if the file is missing."""
    try:
        return existing_master(directory / MASTER_FILE)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise DatabaseReadError(str(error)) from None


def subject_key_lookup(reader: SnapshotReader, master: MasterKey) -> SubjectKeyLookup:
    """Return a cached lookup of subject keys."""

    @lru_cache(_CACHED_KEYS)
    def find(subject_id: str | None) -> SubjectKey | None:
        row = reader.subject_key(subject_id)
        if row is None or subject_id is None:
            raise VaultError("the subject of its content is missing")
        if not isinstance(row[0], bytes | None):
            raise VaultError(f"the key of {subject_id} was changed")
        return None if row[0] is None else master.unwrap(subject_id, row[0])

    return find
