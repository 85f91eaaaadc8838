"""API key authentication of HTTP requests, against a qwed server or a local store.

Agent tokens are not accepted: an agent is verified step by step, and the result of a script is not such a step.
"""

import hashlib
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Protocol

from qwed.model.defaults import expand_home
from qwed.model.lru_cache import LruCache

CACHE_SECONDS = 30.0
MAX_CACHED = 1_024
_REQUEST_TIMEOUT = 5.0
_KEY = re.compile(r"qwed_live_[A-Za-z0-9_-]{16,200}")
_DEFAULT_DIRECTORY = "~/.qwed/mcp/server"


class KeyLookupFailure(NamedTuple):
    """Failed lookup of a key, with its cause."""

    reason: str


class ApiKeys(Protocol):
    """Source of API keys."""

    source: str
    """Origin of the keys, logged at the start."""

    async def caller(self, key: str) -> str | KeyLookupFailure | None:
        """Return the id of the key, or None if the key is not accepted."""


class LocalApiKeys:
    """Keys of a local store; a revoked key stops working immediately."""

    def __init__(self, store: Any, source: str) -> None:
        self._store, self.source = store, source

    async def caller(self, key: str) -> str | KeyLookupFailure | None:
        """Return the id of the key, or None if the key is not accepted."""
        from qwed.kernel.authentication import find_key
        from qwed.model.roles import CALLER_ROLES

        record = find_key(key, self._store)
        return None if record is None or record.role not in CALLER_ROLES else record.key_id


class _CachedCaller(NamedTuple):
    caller: str
    until: float


class RemoteApiKeys:
    """Keys of a qwed server; an accepted key is cached briefly, by its hash."""

    def __init__(self, client: Any, source: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._client, self.source, self._monotonic = client, source, monotonic
        self._cached: LruCache[str, _CachedCaller] = LruCache(MAX_CACHED)

    async def caller(self, key: str) -> str | KeyLookupFailure | None:
        """Return the id of the key, or None if the key is not accepted."""
        if _KEY.fullmatch(key) is None:
            return None
        digest = hashlib.sha256(key.encode()).hexdigest()
        cached = self._cached.get(digest)
        if cached is not None and self._monotonic() < cached.until:
            return cached.caller
        self._cached.pop(digest, None)
        caller = await self._look_up(key)
        if isinstance(caller, str):
            self._cached[digest] = _CachedCaller(caller, self._monotonic() + CACHE_SECONDS)
        return caller

    async def _look_up(self, key: str) -> str | KeyLookupFailure | None:
        import httpx

        try:
            response = await self._client.get("/keys/self", headers={"X-API-Key": key})
        except httpx.HTTPError:
            return KeyLookupFailure("the key server cannot be reached")
        if response.status_code in (401, 403):
            return None
        caller = _key_id_of(response)
        return KeyLookupFailure("the key server sent an unusable answer") if caller is None else caller


def _key_id_of(response: Any) -> str | None:
    try:
        answer = response.json() if response.status_code == 200 else None
    except ValueError:
        return None
    key_id = answer.get("id") if isinstance(answer, dict) else None
    return key_id if isinstance(key_id, str) and key_id else None


class KeySourceError(Exception):
    """No source of keys can be used; the message says what to change."""


@asynccontextmanager
async def open_api_keys(environment: Mapping[str, str] = os.environ) -> AsyncIterator[ApiKeys]:
    """Open the keys of the configured server, or of a local Gate; raise KeySourceError if that fails."""
    url = environment.get("QWED_BASE_URL", "").strip()
    if url:
        async with _open_client(url) as client:
            yield RemoteApiKeys(client, f"keys are those of {url}")
        return
    directory = environment.get("QWED_DATA_DIR", "").strip() or _DEFAULT_DIRECTORY
    with _open_gate(directory) as gate:
        yield LocalApiKeys(
            gate.services.store, f"the owner's key is in {gate.services.settings.directory / 'owner.key'}"
        )


def _open_client(url: str) -> Any:
    import httpx

    limits = httpx.Limits(max_connections=16)
    try:
        client = httpx.AsyncClient(base_url=url, timeout=_REQUEST_TIMEOUT, follow_redirects=False, limits=limits)
    except httpx.InvalidURL as error:
        raise KeySourceError(f"QWED_BASE_URL cannot be used: {error}") from None
    if client.base_url.scheme not in ("http", "https") or not client.base_url.host:
        raise KeySourceError("QWED_BASE_URL cannot be used: it must be the address of a server, http:// or https://")
    return client


def _open_gate(directory: str) -> Any:
    from qwed.gate import open_gate
    from qwed.kernel.audit.integrity_check import LogDamagedError
    from qwed.ledger.keyring import KeyringError
    from qwed.ledger.subject_encryption import VaultError
    from qwed.settings import SettingsError
    from qwed.store.data_directory import DataDirectoryInUseError
    from qwed.store.migrate import NewerDatabaseError
    from qwed.store.protocol import StoreError

    try:
        return open_gate(expand_home(directory))
    except DataDirectoryInUseError as error:
        raise KeySourceError(f"{error}; set QWED_BASE_URL to the server that runs there") from error
    except (LogDamagedError, KeyringError, VaultError, SettingsError, NewerDatabaseError, StoreError, OSError) as error:
        raise KeySourceError(f"the keys in {directory} cannot be opened: {error}") from error
