"""Every call that a verb makes, of every part that it needs, and the means to make any one of them fail.

The parts are real. What is put before each of their calls counts it, and raises where the test says so.
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
from qwed.engines.verdicts import Verdicts
from qwed.kernel.judging.judgement import Judgements
from qwed.kernel.keeping.vault import Vault
from qwed.kernel.people.doorbell import Doorbells
from qwed.ledger.attest import Signer
from qwed.ledger.keyring import Keyring, SigningKey
from qwed.ledger.sequencer import Sequencer
from qwed.ledger.vault import Master, SubjectKey
from qwed.limits.memory import MemoryLimiter
from qwed.store.protocol import Store
from qwed.store.sqlite import SqliteStore
from qwed.store.writer import GroupWriter
from qwed.words.clock import Clock

PARTS: dict[type, tuple[str, ...]] = {
    SqliteStore: tuple(name for name, member in vars(Store).items() if callable(member) and not name.startswith("_")),
    GroupWriter: ("submit",),
    Sequencer: ("integrate", "sign", "forget"),
    SigningKey: ("sign",),
    Signer: ("attest",),
    Keyring: ("rotate", "public_keys"),
    Verdicts: ("known", "ask", "learn", "forget"),
    EnginePool: ("start", "submit"),
    MemoryLimiter: ("hit",),
    Vault: ("key_for", "key_of", "key_about", "content", "opened"),
    Master: ("make", "unwrap", "name"),
    SubjectKey: ("seal", "open", "commitment"),
    Judgements: ("find", "keep"),
    Doorbells: ("ring",),
}
FILES = ("open", "stat", "fsync", "rename", "replace", "chmod", "unlink", "mkdir", "urandom", "fdopen")
"""What the server asks of the operating system itself; the rest goes through SQLite, and every statement counts."""
CONNECTIONS = ("_reader", "_browser")


class Point(NamedTuple):
    """The n-th call of one function."""

    name: str
    nth: int


class Hang(Exception):
    """In place of a failure: a call of the writer that does not come back before it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()


WRITER = "qwed-writer"
IN_WRITER = " (in the writer)"


class Wire:
    """Counts calls while it is live, in the thread of the caller and in the writer's; at its point it raises."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.point: Point | None = None
        self._failure: BaseException = RuntimeError("surprise")
        self.reached = False
        self._live = False
        self._caller = threading.get_ident()

    @contextmanager
    def live(self, point: Point | None = None, failure: BaseException | None = None) -> Iterator[Self]:
        """Count from here on; raise at the point, once."""
        self.calls.clear()
        self.point, self.reached = point, False
        self._failure = failure or self._failure
        self._live = True
        try:
            yield self
        finally:
            self._live = False

    def points(self) -> list[Point]:
        """Every call that was counted."""
        return [Point(name, nth + 1) for name, count in sorted(self.calls.items()) for nth in range(count)]

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
        if isinstance(self._failure, Hang):
            assert self._failure.go.wait(60)
            return
        # Without the way that the last one took.
        raise self._failure.with_traceback(None)

    def before(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with the wire before it."""

        def call(*args: Any, **named: Any) -> Any:
            self.reach(name)
            return function(*args, **named)

        return call

    def clock(self, real: Clock) -> Clock:
        """The clock, with the wire before both of its faces."""
        return Clock(now=self.before("Clock.now", real.now), monotonic=self.before("Clock.monotonic", real.monotonic))

    def around(self, store: SqliteStore) -> None:
        """Put the wire before every statement of a store, and before whoever is told of its commits."""
        parts: Any = store
        for name in CONNECTIONS:
            setattr(parts, name, _Watched(getattr(parts, name), f"connection {name}", self))
        parts._writer._connection = _Watched(parts._writer._connection, "connection of the writer", self)
        for name in ("on_commit", "on_notice", "on_distrust"):
            setattr(parts, name, self.before(f"store.{name}", getattr(parts, name)))


class _Watched:
    """A connection whose statements are counted."""

    def __init__(self, real: Any, name: str, wire: Wire) -> None:
        self._real = real
        self.execute = wire.before(name, real.execute)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


@contextmanager
def laid(patch: pytest.MonkeyPatch) -> Iterator[Wire]:
    """A wire before every call of every part, for as long as it is needed."""
    wire = Wire()
    with patch.context() as patched:
        for part, methods in PARTS.items():
            for name in methods:
                before = partial(wire.before, f"{part.__name__}.{name}")
                patched.setattr(part, name, before(getattr(part, name)))
        for name in FILES:
            patched.setattr(os, name, wire.before(f"os.{name}", getattr(os, name)))
        yield wire
