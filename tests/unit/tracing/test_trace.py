"""One request as it is timed."""

from qwed.engines.pool import Turn
from qwed.tracing.trace import CURRENT, MOST, RUN, WAIT, Finished, Trace, at_stage, on_ask


def test_stages_follow_one_another_without_a_gap_and_lie_inside_the_request() -> None:
    trace = Trace("GET /", None, chosen=True)
    for stage in ("authenticate", "settle", "answer"):
        trace.reach(stage)
    done = trace.finish({}, failed=False)
    assert [mark.name for mark in done.marks] == ["authenticate", "settle"]
    first, second = done.marks
    assert done.began <= first.began <= first.ended == second.began <= second.ended <= done.ended


def ended(trace: Trace) -> Finished:
    """Three seconds after it began."""
    return trace.finish({}, failed=False)._replace(ended=trace._began + trace._offset + 3 * 10**9)


def test_an_engine_is_waited_for_and_then_runs_inside_the_stage_that_asked() -> None:
    trace, turn = Trace("GET /", None, chosen=True), Turn()
    trace.reach("authenticate")
    trace.reach("run_engine")
    trace.ask("sql", turn)
    now = trace._began / 1e9
    turn.begun, turn.ended = now + 1, now + 2
    marks = ended(trace).marks
    assert [(mark.name, mark.inside, mark.engine) for mark in marks[2:]] == [(WAIT, 1, "sql"), (RUN, 1, "sql")]
    assert marks[2].ended == marks[3].began
    assert [round((mark.ended - mark.began) / 1e9) for mark in marks[2:]] == [1, 1]


def test_a_worker_that_was_never_free_did_not_run() -> None:
    trace, turn = Trace("GET /", None, chosen=True), Turn()
    trace.ask("sql", turn)
    turn.ended = trace._began / 1e9 + 1
    wait, run = ended(trace).marks
    assert (wait.inside, round((wait.ended - wait.began) / 1e9)) == (None, 1)
    assert run.began == run.ended == wait.ended


def test_a_worker_that_goes_on_after_the_answer_is_not_waited_for() -> None:
    trace, turn = Trace("GET /", None, chosen=True), Turn()
    trace.ask("sql", turn)
    turn.begun, turn.ended = trace._began / 1e9 + 1, trace._began / 1e9 + 100
    done = ended(trace)
    assert done.marks[1].ended == done.ended
    assert done.size == 1 + len(done.marks)


def test_what_happens_after_the_answer_is_not_part_of_it() -> None:
    trace = Trace("GET /", None, chosen=True)
    done = trace.finish({}, failed=True)
    trace.reach("late")
    trace.ask("sql", Turn())
    assert trace._stages == []
    assert trace._asked == []
    assert (done.marks, done.failed) == ((), True)


def test_a_request_has_so_many_marks_and_no_more() -> None:
    trace = Trace("GET /", None, chosen=True)
    for _ in range(2 * MOST):
        trace.reach("authenticate")
        trace.ask("sql", Turn())
    assert len(trace.finish({}, failed=False).marks) == 3 * MOST


def test_outside_a_request_nobody_is_told() -> None:
    assert CURRENT.get() is None
    at_stage("authenticate")
    on_ask("sql", Turn())
