"""Erasing from the command line: through the running server, or where none runs in the data directory itself."""

import os
from pathlib import Path
from typing import Any

from qwed.store.place import FILE_NAME
from qwed.store.reader import Unreadable

_SECONDS = 60.0
_OWNER_KEY = "owner.key"


def erase_there(subject: str, url: str, directory: Path) -> bool:
    """Ask the server; whether there was anything to erase."""
    import httpx

    headers = {"X-API-Key": _api_key(directory)}
    try:
        answer = httpx.post(
            f"{url.rstrip('/')}/audit/erase", json={"subject": subject}, headers=headers, timeout=_SECONDS
        )
        said = answer.json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise Unreadable(f"{url} did not answer as a server of ours: {error}") from None
    if answer.status_code != 200 or not isinstance(said, dict) or not isinstance(said.get("erased"), bool):
        raise Unreadable(f"the server refused: {_message_in(said) or answer.status_code}")
    return bool(said["erased"])


def _api_key(directory: Path) -> str:
    given = os.environ.get("QWED_API_KEY")
    file = directory / _OWNER_KEY
    try:
        key = given or file.read_text().strip()
    except (OSError, UnicodeDecodeError):
        raise Unreadable(f"an owner's key is needed: set QWED_API_KEY, there is none in {file}") from None
    if not key.isascii() or not key.isprintable():
        raise Unreadable("the owner's key is no key: set QWED_API_KEY to the one you were given")
    return key


def _message_in(said: Any) -> str | None:
    error = said.get("error") if isinstance(said, dict) else None
    message = error.get("message") if isinstance(error, dict) else None
    return message if isinstance(message, str) else None


def erase_here(subject: str, directory: Path) -> bool:
    """Open the directory, which no server may have open; whether there was anything to erase."""
    from qwed.gate import GateError, open_gate
    from qwed.kernel.proving.soundness import LogDamaged
    from qwed.ledger.vault import VaultError
    from qwed.store.migrate import NewerDatabase
    from qwed.store.place import DataDirectoryInUse

    if not (directory / FILE_NAME).is_file():
        raise Unreadable(f"there is no database in {directory}: --data-dir names the directory of a server")
    try:
        with open_gate(directory) as gate:
            return bool(gate.erase(subject).erased)
    except DataDirectoryInUse:
        raise Unreadable(f"a server runs on {directory}: name it with --url, such as http://127.0.0.1:8000") from None
    except (GateError, LogDamaged, NewerDatabase, VaultError, OSError, ValueError) as error:
        raise Unreadable(str(error)) from None
