"""One request as it is timed."""

import time

import pytest

from qwed.engines.pool import PendingVerdict
from qwed.tracing.trace import (
    CURRENT,
    ENGINE_RUN,
    ENGINE_WAIT,
    MAX_MARKS,
    FinishedTrace,
    Trace,
    at_stage,
    on_engine_call,
)


def test_stages_follow_one_another_without_a_gap_and_lie_inside_the_request() -> None:
    trace = Trace("GET /", None, sampled=True)
    for stage in ("authenticate", "settle", "answer"):
        trace.enter_stage(stage)
    done = trace.finish()
    assert [mark.name for mark in done.marks] == ["authenticate", "settle"]
    first, second = done.marks
    assert done.began <= first.began <= first.ended == second.began <= second.ended <= done.ended


def ended(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> FinishedTrace:
    """Three seconds after it began."""
    now = time.monotonic_ns() + 3 * 10**9
    monkeypatch.setattr("qwed.tracing.trace.monotonic_ns", lambda: now)
    return trace.finish()


def test_an_engine_is_waited_for_and_then_runs_inside_the_stage_that_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    trace, turn = Trace("GET /", None, sampled=True), PendingVerdict()
    trace.enter_stage("authenticate")
    trace.enter_stage("run_engine")
    trace.add_engine_call("sql", turn)
    now = time.monotonic()
    turn.begun, turn.ended = now + 1, now + 2
    marks = ended(trace, monkeypatch).marks
    assert [(mark.name, mark.parent_index, mark.engine) for mark in marks[2:]] == [
        (ENGINE_WAIT, 1, "sql"),
        (ENGINE_RUN, 1, "sql"),
    ]
    assert marks[2].ended == marks[3].began
    assert [round((mark.ended - mark.began) / 1e9) for mark in marks[2:]] == [1, 1]


def test_a_worker_that_was_never_free_did_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    trace, turn = Trace("GET /", None, sampled=True), PendingVerdict()
    trace.add_engine_call("sql", turn)
    turn.ended = time.monotonic() + 1
    wait, run = ended(trace, monkeypatch).marks
    assert (wait.parent_index, round((wait.ended - wait.began) / 1e9)) == (None, 1)
    assert run.began == run.ended == wait.ended


def test_a_worker_that_goes_on_after_the_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    trace, turn = Trace("GET /", None, sampled=True), PendingVerdict()
    trace.add_engine_call("sql", turn)
    turn.begun, turn.ended = time.monotonic() + 1, time.monotonic() + 100
    done = ended(trace, monkeypatch)
    assert done.marks[1].ended == done.ended


def test_what_happens_after_the_answer_is_not_part_of_it() -> None:
    trace = Trace("GET /", None, sampled=True)
    done = trace.finish()
    trace.enter_stage("late")
    trace.add_engine_call("sql", PendingVerdict())
    assert [*done.marks, *trace.finish().marks] == []


def test_a_request_has_so_many_marks_and_no_more() -> None:
    trace = Trace("GET /", None, sampled=True)
    for _ in range(2 * MAX_MARKS):
        trace.enter_stage("authenticate")
        trace.add_engine_call("sql", PendingVerdict())
    assert len(trace.finish().marks) == 3 * MAX_MARKS


def test_outside_a_request_nothing_is_recorded() -> None:
    assert CURRENT.get() is None
    at_stage("authenticate")
    on_engine_call("sql", PendingVerdict())
