"""The keys in a data directory: the public ones that heads are checked with, and those that open what is sealed."""

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from qwed.ledger.keyring import JWKS_FILE
from qwed.ledger.vault import MASTER_FILE, Master, SubjectKey, VaultError, existing_master
from qwed.store.reader import Reader, Unreadable

_REMEMBERED = 4_096

SubjectKeys = Callable[[str | None], SubjectKey | None]
"""The key of a subject, None once it was erased; VaultError where it is gone or was changed."""


class Published(NamedTuple):
    """The keys of a node, as they stand in its directory."""

    issuer: str
    jwks: Mapping[str, Any]


def published_in(directory: Path) -> Published:
    """The public keys of the node; Unreadable where they are gone."""
    file = directory / JWKS_FILE
    if not directory.is_dir():
        raise Unreadable(f"there is no directory {directory}: --data-dir names the directory of a server")
    try:
        found = json.loads(file.read_bytes())
    except FileNotFoundError:
        raise Unreadable(f"{file} is missing: it has the public keys that heads are checked with") from None
    except (OSError, ValueError, RecursionError) as error:
        raise Unreadable(f"{file} cannot be read: {error}") from None
    if not isinstance(found, dict) or not isinstance(found.get("issuer"), str):
        raise Unreadable(f"{file} is no JWKS of a node: restore it from a backup")
    return Published(found["issuer"], {"keys": found.get("keys")})


def master_in(directory: Path) -> Master | None:
    """The key under which the keys of the subjects are kept, where it is there."""
    try:
        return existing_master(directory / MASTER_FILE)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise Unreadable(str(error)) from None


def subject_keys(reader: Reader, master: Master) -> SubjectKeys:
    """The keys of the subjects, as they are kept."""

    @lru_cache(_REMEMBERED)
    def find(subject_id: str | None) -> SubjectKey | None:
        found = reader.subject_key(subject_id)
        if found is None or subject_id is None:
            raise VaultError("the subject of its content is gone")
        if not isinstance(found[0], bytes | None):
            raise VaultError(f"the key of {subject_id} was changed")
        return None if found[0] is None else master.unwrap(subject_id, found[0])

    return find
