"""One request as it is timed: a mark where a stage begins, a turn where an engine worker is asked."""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from time import monotonic_ns, time_ns
from typing import NamedTuple

from qwed.engines.pool import Turn
from qwed.tracing.parent import Parent

MOST = 256
"""Marks of one request; what comes after them is not timed."""
AFTER = frozenset({"answer", "changed"})
"""Places in a walk that end a stage and begin none."""
WAIT, RUN = "engine wait", "engine run"
_SECOND = 1_000_000_000

Value = str | int


class Mark(NamedTuple):
    """A stretch of time: nanoseconds of the clock on the wall, and the mark it lies in, if it is not the request."""

    name: str
    began: int
    ended: int
    inside: int | None = None
    engine: str = ""


class Asked(NamedTuple):
    """A question to an engine: when it was put, and after how many stages."""

    engine: str
    turn: Turn
    at: int
    stages: int


class Finished(NamedTuple):
    """A request that is over. Whoever makes spans of it puts it together, and not who decides."""

    name: str
    parent: Parent | None
    began: int
    ended: int
    failed: bool
    attributes: Mapping[str, Value]
    stages: Sequence[tuple[str, int]] = ()
    asked: Sequence[Asked] = ()
    offset: int = 0
    """From the monotonic clock, which stages are timed by, to the one on the wall."""

    @property
    def size(self) -> int:
        """How many spans it makes."""
        return 1 + sum(stage not in AFTER for stage, _at in self.stages) + 2 * len(self.asked)

    @property
    def marks(self) -> tuple[Mark, ...]:
        """Its stages, and then the turns of engines."""
        ends = [at for _stage, at in self.stages[1:]] + [self.ended - self.offset]
        places: dict[int, int] = {}
        marks: list[Mark] = []
        for number, ((stage, began), end) in enumerate(zip(self.stages, ends, strict=False), 1):
            if stage not in AFTER:
                places[number] = len(marks)
                marks.append(self._mark(stage, began, end))
        for asked in self.asked:
            marks += self._turns(asked, places.get(asked.stages))
        return tuple(marks)

    def _turns(self, asked: Asked, inside: int | None) -> list[Mark]:
        """How long a worker was waited for, and how long it worked: not at all, where none was free in time."""
        ended = self.ended - self.offset
        over = min(_at(asked.turn.ended) or ended, ended)
        begun = min(_at(asked.turn.begun) or over, over)
        return [
            self._mark(WAIT, asked.at, begun, inside, asked.engine),
            self._mark(RUN, begun, over, inside, asked.engine),
        ]

    def _mark(self, name: str, began: int, ended: int, inside: int | None = None, engine: str = "") -> Mark:
        return Mark(name, began + self.offset, max(began, ended) + self.offset, inside, engine)


class Trace:
    """A request that is under way. Told of its stages by the walk, which is in one place at a time."""

    __slots__ = ("_asked", "_began", "_offset", "_over", "_stages", "chosen", "name", "parent")

    def __init__(self, name: str, parent: Parent | None, *, chosen: bool) -> None:
        self.name = name
        self.parent = parent
        self.chosen = chosen
        """Whether the share took it; else it is kept for a caller who asks for it and is known."""
        self._began = monotonic_ns()
        self._offset = time_ns() - self._began
        self._stages: list[tuple[str, int]] = []
        self._asked: list[Asked] = []
        self._over = False

    def reach(self, stage: str) -> None:
        """The walk has come to this stage."""
        # A task that a request has started may outlive it.
        if not self._over and len(self._stages) < MOST:
            self._stages.append((stage, monotonic_ns()))

    def ask(self, engine: str, turn: Turn) -> None:
        """A worker is asked."""
        if not self._over and len(self._asked) < MOST:
            self._asked.append(Asked(engine, turn, monotonic_ns(), len(self._stages)))

    def finish(self, attributes: Mapping[str, Value], *, failed: bool) -> Finished:
        """All of it, now that it is answered."""
        self._over = True
        began, ended = self._began + self._offset, monotonic_ns() + self._offset
        return Finished(
            self.name, self.parent, began, ended, failed, attributes, self._stages, self._asked, self._offset
        )


def _at(seconds: float) -> int:
    return int(seconds * _SECOND)


CURRENT: ContextVar[Trace | None] = ContextVar("qwed_trace", default=None)
"""The request that this task, or this stretch of it in a thread, belongs to; none where it is not traced."""


def at_stage(stage: str) -> None:
    """Tell the request of whoever walks here."""
    trace = CURRENT.get()
    if trace is not None:
        trace.reach(stage)


def on_ask(engine: str, turn: Turn) -> None:
    """Tell the request of whoever asks an engine here."""
    trace = CURRENT.get()
    if trace is not None:
        trace.ask(engine, turn)
