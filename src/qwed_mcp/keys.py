"""Whose a request over HTTP is: the organisation's API key it shows, asked of the server that made it or of our own.

Agents' tokens open nothing here: an agent is verified step by step, and what a script computes is no step of it.
"""

import hashlib
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Protocol

from qwed.words.home import from_home

REMEMBERED_SECONDS = 30.0
MAX_REMEMBERED = 1_024
_PATIENCE = 5.0
_KEY = re.compile(r"qwed_live_[A-Za-z0-9_-]{16,200}")
_OWN_DIRECTORY = "~/.qwed/mcp/server"


class Unreachable(NamedTuple):
    """Nobody could say whose the key is; the sentence says who was asked."""

    reason: str


class Keys(Protocol):
    """Who knows the keys."""

    where: str
    """Said at the start: where the keys come from."""

    async def caller(self, key: str) -> str | Unreachable | None:
        """The id of the key, None for one that opens nothing."""


class OwnKeys:
    """The keys of a store of our own; a revoked one opens nothing from that moment on."""

    def __init__(self, store: Any, where: str) -> None:
        self._store, self.where = store, where

    async def caller(self, key: str) -> str | Unreachable | None:
        """As the protocol says."""
        from qwed.kernel.stages.authenticate import find_key
        from qwed.words.roles import ASKING

        found = find_key(key, self._store)
        return None if found is None or found.role not in ASKING else found.key_id


class _Remembered(NamedTuple):
    caller: str
    until: float


class ServersKeys:
    """The keys of a qwed server, which is asked; a yes is remembered for a moment, by the hash of the key."""

    def __init__(self, client: Any, where: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._client, self.where, self._monotonic = client, where, monotonic
        self._remembered: dict[str, _Remembered] = {}

    async def caller(self, key: str) -> str | Unreachable | None:
        """As the protocol says."""
        if _KEY.fullmatch(key) is None:
            return None
        digest = hashlib.sha256(key.encode()).hexdigest()
        known = self._remembered.get(digest)
        if known is not None and self._monotonic() < known.until:
            return known.caller
        self._remembered.pop(digest, None)
        found = await self._asked(key)
        if isinstance(found, str):
            self._remember(digest, found)
        return found

    def _remember(self, digest: str, caller: str) -> None:
        while len(self._remembered) >= MAX_REMEMBERED:
            self._remembered.pop(next(iter(self._remembered)))
        self._remembered[digest] = _Remembered(caller, self._monotonic() + REMEMBERED_SECONDS)

    async def _asked(self, key: str) -> str | Unreachable | None:
        import httpx

        try:
            response = await self._client.get("/keys/self", headers={"X-API-Key": key})
        except httpx.HTTPError:
            return Unreachable("the server that knows the keys cannot be reached")
        if response.status_code in (401, 403):
            return None
        caller = _id_of(response)
        return (
            Unreachable("the server that knows the keys gave no answer that can be used") if caller is None else caller
        )


def _id_of(response: Any) -> str | None:
    try:
        answer = response.json() if response.status_code == 200 else None
    except ValueError:
        return None
    found = answer.get("id") if isinstance(answer, dict) else None
    return found if isinstance(found, str) and found else None


class NoKeys(Exception):
    """Nobody can be asked about keys; the message says what to change."""


@asynccontextmanager
async def keys_from(environment: Mapping[str, str] = os.environ) -> AsyncIterator[Keys]:
    """The keys of the server that is configured, else of a Gate of our own; NoKeys where neither can be used."""
    url = environment.get("QWED_BASE_URL", "").strip()
    if url:
        async with _client(url) as client:
            yield ServersKeys(client, f"keys are those of {url}")
        return
    directory = environment.get("QWED_DATA_DIR", "").strip() or _OWN_DIRECTORY
    with _gate(directory) as gate:
        yield OwnKeys(gate.services.store, f"the owner's key is in {gate.services.settings.directory / 'owner.key'}")


def _client(url: str) -> Any:
    import httpx

    limits = httpx.Limits(max_connections=16)
    try:
        client = httpx.AsyncClient(base_url=url, timeout=_PATIENCE, follow_redirects=False, limits=limits)
    except httpx.InvalidURL as error:
        raise NoKeys(f"QWED_BASE_URL cannot be used: {error}") from None
    if client.base_url.scheme not in ("http", "https") or not client.base_url.host:
        raise NoKeys("QWED_BASE_URL cannot be used: it must be the address of a server, http:// or https://")
    return client


def _gate(directory: str) -> Any:
    from qwed.gate import open_gate
    from qwed.kernel.proving.soundness import LogDamaged
    from qwed.ledger.keyring import KeyringError
    from qwed.ledger.vault import VaultError
    from qwed.settings import SettingsError
    from qwed.store.migrate import NewerDatabase
    from qwed.store.place import DataDirectoryInUse
    from qwed.store.protocol import StoreError

    try:
        return open_gate(from_home(directory))
    except DataDirectoryInUse as error:
        raise NoKeys(f"{error}; set QWED_BASE_URL to the server that runs there") from error
    except (LogDamaged, KeyringError, VaultError, SettingsError, NewerDatabase, StoreError, OSError) as error:
        raise NoKeys(f"the keys in {directory} cannot be opened: {error}") from error
