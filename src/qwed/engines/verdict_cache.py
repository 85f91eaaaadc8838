"""Verdicts from exact arithmetic, from the cache, or from an engine worker."""

from collections.abc import Callable
from threading import Lock
from typing import NamedTuple, Protocol

import msgspec

from qwed.engines.arithmetic import verify_quick
from qwed.engines.pool import EnginePool, PendingVerdict
from qwed.engines.protocol import DataPolicy, EngineRequest
from qwed.engines.registry import ENGINES
from qwed.futures import Future
from qwed.model import Status, Verdict
from qwed.model.lru_cache import LruCache

MAX_ENTRIES = 10_000
QUIET_SECONDS = 3.0
"""Idle seconds before engines are loaded in advance, so that the first requests get the CPU."""
_MAX_INPUT_LENGTH = 4096
_MAX_VERDICT_BYTES = 8192
"""Maximum size of a cached verdict, and of its facts; evidence may be as long as its context."""
_MAX_PENDING = 256
"""Pending verdicts tracked before resolved ones are dropped; longer than any queue."""
_encode = msgspec.json.Encoder().encode

CACHEABLE_STATUSES = frozenset({Status.VERIFIED, Status.FAILED, Status.BLOCKED, Status.SIMPLIFIED})
"""Statuses that depend only on the input; a timeout may succeed next time."""

Key = tuple[str, str, int, DataPolicy, bool, str]


class VerdictRequest(NamedTuple):
    """One input and the scope in which its verdict may be reused."""

    organisation_id: str
    engine: str
    action_hash: str
    request: EngineRequest
    agent_id: str = ""
    """Owner for fair scheduling. Not part of the cache key."""
    seconds: float | None = None
    """Time limit of a request without an agent."""


class VerdictSource(Protocol):
    """Provider of verdicts."""

    def ask(self, request: VerdictRequest) -> Verdict | Future[Verdict]:
        """Return the verdict or a future of it."""


class OwnedVerdictSource(NamedTuple):
    """Provider that submits every request under one owner."""

    verdicts: VerdictSource
    who: str

    def ask(self, request: VerdictRequest) -> Verdict | Future[Verdict]:
        """Return the verdict or a future of it."""
        return self.verdicts.ask(request._replace(agent_id=self.who))


class VerdictCache:
    """Verdict cache in front of the pool. Thread-safe."""

    def __init__(self, pool: EnginePool, seconds: float) -> None:
        self._pool = pool
        self._seconds = seconds
        self._known: LruCache[Key, Verdict] = LruCache(MAX_ENTRIES)
        self._waited_for: dict[tuple[Key, str], PendingVerdict] = {}
        self._lock = Lock()
        self.on_submit: Callable[[str, PendingVerdict], None] | None = None
        """Called in the submitting thread with the engine and the pending verdict of each request sent to a worker."""

    def __len__(self) -> int:
        return len(self._known)

    def start(self) -> None:
        """Start the workers; the first request does it otherwise."""
        self._pool.start()

    def warm(self) -> None:
        """Start the workers and load all engines when idle."""
        self._pool.start(warm_after=QUIET_SECONDS)

    @property
    def ready(self) -> bool:
        """True if the workers are up."""
        return self._pool.ready

    def known(self) -> frozenset[str]:
        """Return the names of all engines."""
        return _NAMES

    def ask(self, request: VerdictRequest) -> Verdict | Future[Verdict]:
        """Return the verdict or a future of it."""
        if request.engine == "math" and not request.request.parameters:
            quick = verify_quick(request.request.query)
            if quick is not None:
                return quick
        key = _key(request)
        with self._lock:
            verdict = self._known.use(key) or self._shared(key, request)
        return self._submit(key, request) if verdict is None else verdict

    def _shared(self, key: Key, request: VerdictRequest) -> Future[Verdict] | None:
        """Join a pending request of the same agent, so that one input sent on many connections takes one queue slot.

        A pending request of another agent is not joined: it has another place in the queue. Neither is one with its own
        time limit.
        """
        pending = self._waited_for.get((key, request.agent_id)) if request.seconds is None else None
        return None if pending is None else pending.add_waiter()

    def _submit(self, key: Key, request: VerdictRequest) -> Future[Verdict]:
        self.start()
        for_agent = request.seconds is None
        seconds = self._seconds if request.seconds is None else request.seconds
        pending = self._pool.submit(request.engine, request.request, seconds, for_agent=for_agent, who=request.agent_id)
        if isinstance(pending, PendingVerdict):
            if for_agent and ENGINES[request.engine].cacheable:
                self._wait_for((key, request.agent_id), pending)
            if self.on_submit is not None:
                self.on_submit(request.engine, pending)
        return pending

    def _wait_for(self, pending_key: tuple[Key, str], pending: PendingVerdict) -> None:
        with self._lock:
            self._waited_for[pending_key] = pending
            if len(self._waited_for) > _MAX_PENDING:
                self._waited_for = {
                    pending_key: pending for pending_key, pending in self._waited_for.items() if not pending.ended
                }

    def forget(self) -> None:
        """Clear the cache, because an input may concern an erased data subject."""
        with self._lock:
            self._known.clear()
            self._waited_for.clear()

    def learn(self, request: VerdictRequest, verdict: Verdict) -> None:
        """Store a verdict that depends only on its input."""
        if not ENGINES[request.engine].cacheable:
            return
        if (
            verdict.status not in CACHEABLE_STATUSES
            or len(request.request.query) + len(request.request.code) > _MAX_INPUT_LENGTH
        ):
            return
        facts_size = len(_encode(verdict.facts))
        if max(facts_size, len(_encode(verdict)) - facts_size) > _MAX_VERDICT_BYTES:
            return
        with self._lock:
            self._known[_key(request)] = verdict

    def close(self) -> None:
        """End the workers."""
        self._pool.close()


_NAMES = frozenset(ENGINES)


def _key(request: VerdictRequest) -> Key:
    version = ENGINES[request.engine].version
    engine_request = request.request
    return (
        request.organisation_id,
        request.engine,
        version,
        engine_request.policy,
        engine_request.strict,
        request.action_hash,
    )
