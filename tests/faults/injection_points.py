"""Fault injection into any call that an operation makes to any part.

The parts are real. A wrapper counts each of their calls, and raises at the call that the test selects.
"""

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, Self

import pytest

from qwed.engines.pool import EnginePool
from qwed.engines.verdict_cache import VerdictCache
from qwed.kernel.admin.approval_waiters import Waiters
from qwed.kernel.analysis.assessment import AssessmentCache
from qwed.kernel.privacy.subject_keys import Vault
from qwed.ledger.attest import Signer
from qwed.ledger.keyring import Keyring, SigningKey
from qwed.ledger.sequencer import Sequencer
from qwed.ledger.subject_encryption import MasterKey, SubjectKey
from qwed.model.clock import Clock
from qwed.ratelimit.memory_limiter import MemorySlidingWindow
from qwed.store.group_commit import SqliteGroupWriter
from qwed.store.protocol import Store
from qwed.store.sqlite import SqliteStore
from tests.support.store_parts import StoreParts

PARTS: dict[type, tuple[str, ...]] = {
    SqliteStore: tuple(name for name, member in vars(Store).items() if callable(member) and not name.startswith("_")),
    SqliteGroupWriter: ("submit",),
    Sequencer: ("integrate", "sign", "reset"),
    SigningKey: ("sign",),
    Signer: ("attest",),
    Keyring: ("rotate", "public_keys"),
    VerdictCache: ("known", "ask", "learn", "forget"),
    EnginePool: ("start", "submit"),
    MemorySlidingWindow: ("hit",),
    Vault: ("key_for", "key_of", "key_about", "content", "opened"),
    MasterKey: ("make", "unwrap", "name"),
    SubjectKey: ("seal", "open", "commitment"),
    AssessmentCache: ("find", "keep"),
    Waiters: ("notify",),
}
FILES = ("open", "stat", "fsync", "rename", "replace", "chmod", "unlink", "mkdir", "urandom", "fdopen")
"""Operating system calls of the server; the rest goes through SQLite, where every statement counts."""
CONNECTIONS = ("reader", "report_reader", "writer_connection")


class CallPoint(NamedTuple):
    """The n-th call of one function."""

    name: str
    nth: int


class HangError(Exception):
    """Marker instead of a failure: the call in the writer blocks until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()


WRITER = "qwed-writer"
IN_WRITER = " (in the writer)"


class CallInjector:
    """Counts calls while active, in the caller's thread and in the writer's; raises at its point."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.point: CallPoint | None = None
        self._failure: BaseException = RuntimeError("surprise")
        self.reached = False
        self._live = False
        self._caller = threading.get_ident()

    @contextmanager
    def live(self, point: CallPoint | None = None, failure: BaseException | None = None) -> Iterator[Self]:
        """Count from here on; raise once at the point."""
        self.calls.clear()
        self.point, self.reached = point, False
        self._failure = failure or self._failure
        self._live = True
        try:
            yield self
        finally:
            self._live = False

    def points(self) -> list[CallPoint]:
        """Return every counted call."""
        return [CallPoint(name, nth + 1) for name, count in sorted(self.calls.items()) for nth in range(count)]

    def reach(self, name: str) -> None:
        writes = threading.current_thread().name == WRITER
        if not self._live or not (writes or threading.get_ident() == self._caller):
            return
        name = name + IN_WRITER if writes else name
        self.calls[name] += 1
        if self.point == (name, self.calls[name]):
            self.reached = True
            self._fail()

    def _fail(self) -> None:
        if isinstance(self._failure, HangError):
            assert self._failure.go.wait(60)
            return
        # Without the traceback of an earlier raise.
        raise self._failure.with_traceback(None)

    def before(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with the injector in front of it."""

        def call(*args: Any, **named: Any) -> Any:
            self.reach(name)
            return function(*args, **named)

        return call

    def clock(self, real: Clock) -> Clock:
        """Return the clock with the injector in front of both of its methods."""
        return Clock(now=self.before("Clock.now", real.now), monotonic=self.before("Clock.monotonic", real.monotonic))

    def around(self, store: SqliteStore) -> None:
        """Put the injector in front of every statement of a store, and of its commit callbacks."""
        parts = StoreParts(store)
        for name in CONNECTIONS:
            setattr(parts, name, _CountingConnection(getattr(parts, name), f"connection {name}", self))
        for name in ("on_commit", "on_notice", "on_write_failure"):
            setattr(store, name, self.before(f"store.{name}", getattr(store, name)))


class _CountingConnection:
    """Connection whose statements are counted."""

    def __init__(self, real: Any, name: str, injector: CallInjector) -> None:
        self._real = real
        self.execute = injector.before(name, real.execute)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


@contextmanager
def inject_calls(patch: pytest.MonkeyPatch) -> Iterator[CallInjector]:
    """Put an injector in front of every call of every part, inside the block."""
    injector = CallInjector()
    with patch.context() as patched:
        for part, methods in PARTS.items():
            for name in methods:
                before = partial(injector.before, f"{part.__name__}.{name}")
                patched.setattr(part, name, before(getattr(part, name)))
        for name in FILES:
            patched.setattr(os, name, injector.before(f"os.{name}", getattr(os, name)))
        yield injector
