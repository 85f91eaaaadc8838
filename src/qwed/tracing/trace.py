"""Timing of one request: when its stages begin, and when engine workers are called."""

from collections.abc import Sequence
from contextvars import ContextVar
from time import monotonic_ns, time_ns
from typing import TYPE_CHECKING, NamedTuple

from qwed.engines.pool import PendingVerdict

if TYPE_CHECKING:
    from opentelemetry.context import Context

MAX_MARKS = 256
"""Stages and engine calls recorded per request."""
END_MARKERS = frozenset({"answer", "changed"})
"""Pipeline positions that end a stage without beginning one."""
ENGINE_WAIT, ENGINE_RUN = "engine wait", "engine run"
_SECOND = 1_000_000_000

Value = str | int


class SpanMark(NamedTuple):
    """Time span in wall-clock nanoseconds, and the index of the mark that contains it, if any."""

    name: str
    began: int
    ended: int
    parent_index: int | None = None
    engine: str = ""


class EngineCall(NamedTuple):
    """Call of an engine: when it was made, and after how many stages."""

    engine: str
    verdict: PendingVerdict
    at: int
    stages: int


class FinishedTrace(NamedTuple):
    """Begin and end of a request in wall-clock nanoseconds; its stages, followed by its engine calls."""

    began: int
    ended: int
    marks: Sequence[SpanMark]


class Trace:
    """Trace of a request in progress."""

    __slots__ = ("_began", "_engine_calls", "_finished", "_offset", "_stages", "caller", "name", "sampled")

    def __init__(self, name: str, caller: "Context | None", *, sampled: bool) -> None:
        self.name = name
        self.caller = caller
        """Context with the span of the caller, if it sent one."""
        self.sampled = sampled
        """True if it was sampled; otherwise it is kept only for an authenticated caller that requests it."""
        self._began = monotonic_ns()
        self._offset = time_ns() - self._began
        """Difference between the monotonic clock, used for stages, and the wall clock."""
        self._stages: list[tuple[str, int]] = []
        self._engine_calls: list[EngineCall] = []
        self._finished = False

    def enter_stage(self, stage: str) -> None:
        """Record the beginning of a stage."""
        # A task started by the request may outlive it.
        if not self._finished and len(self._stages) < MAX_MARKS:
            self._stages.append((stage, monotonic_ns()))

    def add_engine_call(self, engine: str, verdict: PendingVerdict) -> None:
        """Record a call of an engine worker."""
        if not self._finished and len(self._engine_calls) < MAX_MARKS:
            self._engine_calls.append(EngineCall(engine, verdict, monotonic_ns(), len(self._stages)))

    def finish(self) -> FinishedTrace:
        """Return the finished trace."""
        self._finished = True
        ended = monotonic_ns()
        ends = [at for _stage, at in self._stages[1:]] + [ended]
        indexes: dict[int, int] = {}
        marks: list[SpanMark] = []
        for number, ((stage, began), end) in enumerate(zip(self._stages, ends, strict=False), 1):
            if stage not in END_MARKERS:
                indexes[number] = len(marks)
                marks.append(self._mark(stage, began, end))
        for call in self._engine_calls:
            marks += self._engine_marks(call, indexes.get(call.stages), ended)
        return FinishedTrace(self._began + self._offset, ended + self._offset, marks)

    def _engine_marks(self, call: EngineCall, parent_index: int | None, ended: int) -> list[SpanMark]:
        """Return the marks of waiting for a worker and of its run, which is empty if none was free in time."""
        end = min(_to_nanoseconds(call.verdict.ended) or ended, ended)
        start = min(_to_nanoseconds(call.verdict.begun) or end, end)
        return [
            self._mark(ENGINE_WAIT, call.at, start, parent_index, call.engine),
            self._mark(ENGINE_RUN, start, end, parent_index, call.engine),
        ]

    def _mark(self, name: str, began: int, ended: int, parent_index: int | None = None, engine: str = "") -> SpanMark:
        return SpanMark(name, began + self._offset, max(began, ended) + self._offset, parent_index, engine)


def _to_nanoseconds(seconds: float) -> int:
    return int(seconds * _SECOND)


CURRENT: ContextVar[Trace | None] = ContextVar("qwed_trace", default=None)
"""Trace of the current request, also in threads that work for it; None if it is not traced."""


def at_stage(stage: str) -> None:
    """Record the beginning of a stage in the current trace."""
    trace = CURRENT.get()
    if trace is not None:
        trace.enter_stage(stage)


def on_engine_call(engine: str, verdict: PendingVerdict) -> None:
    """Record a call of an engine in the current trace."""
    trace = CURRENT.get()
    if trace is not None:
        trace.add_engine_call(engine, verdict)
