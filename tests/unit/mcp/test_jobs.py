"""Seed 004, Job lifecycle: states, five at a time, an hour, each to its caller, and bounded on every side."""

import queue
import threading
import uuid
from collections.abc import Iterator

import pytest

from qwed_mcp.jobs import Bounds, Full, Jobs, JobState
from qwed_mcp.sandbox.outcome import Ended, Limits, Outcome, Unavailable
from tests.support.clock import HandClock

WELL = Outcome("All checks passed\n", "", 0, Ended.EXITED, "held")
BADLY = Outcome("", "Traceback\nValueError: no\n", 1, Ended.EXITED, "held")
LATE = Outcome("so far", "", None, Ended.TIMED_OUT, "held")
STOPPED = Outcome("so far", "", None, Ended.CANCELLED, "held")
ME, YOU = "me", "you"


class HeldJob:
    """Runs until somebody says how it ended."""

    def __init__(self, code: str, limits: Limits) -> None:
        self.code, self.limits = code, limits
        self._ended: queue.Queue[Outcome] = queue.Queue()

    def end(self, outcome: Outcome) -> None:
        self._ended.put(outcome)

    def wait(self) -> Outcome:
        return self._ended.get(timeout=30)

    def cancel(self) -> None:
        self.end(STOPPED)


class HeldSandbox:
    name = "held"

    def __init__(self) -> None:
        self.started: queue.Queue[HeldJob] = queue.Queue()

    def __call__(self) -> "HeldSandbox | Unavailable":
        return self

    def start(self, code: str, limits: Limits) -> HeldJob:
        job = HeldJob(code, limits)
        self.started.put(job)
        return job

    def next(self) -> HeldJob:
        return self.started.get(timeout=30)


@pytest.fixture
def sandbox() -> HeldSandbox:
    return HeldSandbox()


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def jobs(sandbox: HeldSandbox, clock: HandClock) -> Iterator[Jobs]:
    made = Jobs(sandbox, 120.0, monotonic=clock.clock().monotonic)
    yield made
    made.close()


def placed(jobs: Jobs, caller: str = ME, code: str = "print(1)") -> str:
    job_id = jobs.place(caller, code)
    assert isinstance(job_id, str)
    return job_id


def over(job_id: str) -> None:
    """Wait until nothing of the job is left running here."""
    for thread in threading.enumerate():
        if thread.name == f"job {job_id}":
            thread.join(30)


def text(jobs: Jobs, job_id: str, caller: str = ME) -> str:
    seen = jobs.look(caller, job_id)
    assert seen is not None
    return seen.text


ENDS = [
    (WELL, "success", "STDOUT:\nAll checks passed\n\nExecution completed successfully."),
    (BADLY, "failed", "STDERR:\nTraceback\nValueError: no\n\nExecution failed with return code 1."),
    (STOPPED, "cancelled", "Job was cancelled."),
    (
        LATE,
        "timed_out",
        "Background verification timed out after 120 seconds. Process terminated to prevent resource exhaustion.",
    ),
]


@pytest.mark.parametrize(("outcome", "state", "result"), ENDS)
def test_every_final_state_reads_as_printed(
    jobs: Jobs, sandbox: HeldSandbox, outcome: Outcome, state: str, result: str
) -> None:
    job_id = placed(jobs)
    running = sandbox.next()
    assert text(jobs, job_id) == "Status: running..."
    running.end(outcome)
    over(job_id)
    assert text(jobs, job_id) == f"Status: {state}\n\nResult:\n{result}"


def test_an_id_is_a_random_uuid(jobs: Jobs) -> None:
    assert uuid.UUID(placed(jobs)).version == 4


def test_a_job_has_the_time_that_was_set(jobs: Jobs, sandbox: HeldSandbox) -> None:
    placed(jobs)
    assert sandbox.next().limits == Limits(seconds=120.0)


def test_five_run_and_the_others_wait_for_a_place(jobs: Jobs, sandbox: HeldSandbox) -> None:
    made = [placed(jobs, code=str(number)) for number in range(7)]
    running = [sandbox.next() for _ in range(5)]
    assert [text(jobs, each) for each in made] == ["Status: running..."] * 5 + ["Status: queued..."] * 2
    running[2].end(WELL)
    assert sandbox.next().code == "5"
    assert text(jobs, made[5]) == "Status: running..."
    assert text(jobs, made[6]) == "Status: queued..."
    running[0].end(WELL)
    assert sandbox.next().code == "6"


def test_a_job_of_another_caller_does_not_exist(jobs: Jobs, sandbox: HeldSandbox) -> None:
    job_id = placed(jobs)
    running = sandbox.next()
    assert jobs.look(YOU, job_id) is None
    jobs.cancel(YOU, job_id)
    assert text(jobs, job_id) == "Status: running..."
    running.end(WELL)
    over(job_id)
    assert jobs.look(YOU, job_id) is None
    assert jobs.look(ME, str(uuid.uuid4())) is None


def test_a_result_stays_for_an_hour(jobs: Jobs, sandbox: HeldSandbox, clock: HandClock) -> None:
    job_id = placed(jobs)
    running = sandbox.next()
    clock.turn(3_600)
    assert text(jobs, job_id) == "Status: running..."
    running.end(WELL)
    over(job_id)
    clock.turn(3_599)
    assert text(jobs, job_id).startswith("Status: success")
    clock.turn(1)
    assert jobs.look(ME, job_id) is None


def test_what_is_forgotten_makes_room(sandbox: HeldSandbox, clock: HandClock) -> None:
    jobs = Jobs(sandbox, 120.0, bounds=Bounds(kept_of_caller=1), monotonic=clock.clock().monotonic)
    job_id = placed(jobs)
    sandbox.next().end(WELL)
    over(job_id)
    refused = jobs.place(ME, "2")
    assert isinstance(refused, Full)
    assert "an hour after" in refused.reason
    placed(jobs, YOU)
    clock.turn(3_600)
    placed(jobs)
    jobs.close()


BOUNDS = [
    Bounds(running=1, queued=1),
    Bounds(running=1, queued_of_caller=1),
    Bounds(kept=2),
    Bounds(kept_of_caller=2),
]


@pytest.mark.parametrize("bounds", BOUNDS)
def test_too_many_jobs_are_refused(sandbox: HeldSandbox, bounds: Bounds) -> None:
    jobs = Jobs(sandbox, 1.0, bounds=bounds)
    assert [isinstance(jobs.place(ME, "1"), str) for _ in range(3)] == [True, True, False]
    jobs.close()


@pytest.mark.parametrize("bounds", [Bounds(bytes_of_caller=10), Bounds(bytes_kept=10)])
def test_results_that_are_too_large_together_are_refused(sandbox: HeldSandbox, bounds: Bounds) -> None:
    jobs = Jobs(sandbox, 1.0, bounds=bounds)
    job_id = placed(jobs)
    sandbox.next().end(WELL)
    over(job_id)
    assert isinstance(jobs.place(ME, "2"), Full)
    assert text(jobs, job_id).startswith("Status: success")
    jobs.close()


def test_one_caller_cannot_take_the_place_of_another_in_the_queue(sandbox: HeldSandbox) -> None:
    jobs = Jobs(sandbox, 1.0, bounds=Bounds(running=1, queued_of_caller=2))
    assert [isinstance(jobs.place(ME, "1"), str) for _ in range(4)] == [True, True, True, False]
    placed(jobs, YOU)
    jobs.close()


def test_what_is_kept_of_an_output_is_bounded(jobs: Jobs, sandbox: HeldSandbox) -> None:
    job_id = placed(jobs)
    # Bytes that are no text are three bytes each when they are written again.
    garbage = "\ufffd" * (1 << 20)
    sandbox.next().end(Outcome(garbage, garbage, None, Ended.OUTPUT_CAP, "held"))
    over(job_id)
    told = text(jobs, job_id)
    assert told.startswith("Status: failed\n\nResult:\nSTDOUT:\n")
    assert told.endswith("[WARNING: OUTPUT TRUNCATED DUE TO 1MB SIZE CAP. PROCESS TERMINATED.]")
    assert len(told.encode()) < (2 << 20) + 200


def test_a_job_that_runs_can_be_cancelled(jobs: Jobs, sandbox: HeldSandbox) -> None:
    job_id = placed(jobs)
    sandbox.next()
    jobs.cancel(ME, job_id)
    over(job_id)
    assert text(jobs, job_id) == "Status: cancelled\n\nResult:\nJob was cancelled."


def test_a_job_that_waits_can_be_cancelled_and_is_never_started(sandbox: HeldSandbox) -> None:
    jobs = Jobs(sandbox, 1.0, bounds=Bounds(running=1))
    first, second = placed(jobs, code="1"), placed(jobs, code="2")
    jobs.cancel(ME, second)
    assert text(jobs, second) == "Status: cancelled\n\nResult:\nJob was cancelled."
    sandbox.next().end(WELL)
    over(first)
    assert sandbox.started.empty()
    jobs.close()


def test_a_final_state_stays(jobs: Jobs, sandbox: HeldSandbox) -> None:
    job_id = placed(jobs)
    sandbox.next().end(WELL)
    over(job_id)
    jobs.cancel(ME, job_id)
    assert text(jobs, job_id).startswith("Status: success")


def test_closing_ends_every_job_and_takes_no_more(sandbox: HeldSandbox) -> None:
    jobs = Jobs(sandbox, 1.0)
    made = [placed(jobs) for _ in range(8)]
    jobs.close()
    assert {text(jobs, each) for each in made} == {"Status: cancelled\n\nResult:\nJob was cancelled."}
    assert isinstance(jobs.place(ME, "1"), Full)


def test_no_sandbox_fails_the_job_and_says_why() -> None:
    jobs = Jobs(lambda: Unavailable("install bubblewrap"), 1.0)
    job_id = placed(jobs)
    over(job_id)
    assert text(jobs, job_id) == "Status: failed\n\nResult:\nThe job could not be run: install bubblewrap"


def test_a_sandbox_that_breaks_fails_the_job_and_frees_its_place(sandbox: HeldSandbox) -> None:
    broken = [True]

    def chosen() -> HeldSandbox:
        if broken:
            broken.clear()
            raise OSError("no")
        return sandbox

    jobs = Jobs(chosen, 1.0, bounds=Bounds(running=1))
    first, second = placed(jobs), placed(jobs, code="2")
    assert sandbox.next().code == "2"
    seen = jobs.look(ME, first)
    assert seen is not None
    assert seen.state is JobState.FAILED
    jobs.close()
    assert second


def test_a_place_that_is_freed_by_closing_is_not_taken(sandbox: HeldSandbox) -> None:
    for _ in range(50):
        jobs = Jobs(sandbox, 1.0, bounds=Bounds(running=1))
        made = [placed(jobs) for _ in range(4)]
        first = sandbox.next()
        jobs.close()
        assert {text(jobs, each) for each in made} == {"Status: cancelled\n\nResult:\nJob was cancelled."}
        assert sandbox.started.empty(), first


def test_whoever_places_many_waits_behind_their_own(sandbox: HeldSandbox) -> None:
    jobs = Jobs(sandbox, 1.0, bounds=Bounds(running=2))
    for number in range(6):
        placed(jobs, "many", f"many {number}")
    placed(jobs, "one", "one")
    running = [sandbox.next(), sandbox.next()]
    assert {job.code for job in running} == {"many 0", "many 1"}
    running[0].end(WELL)
    assert sandbox.next().code == "one"
    running[1].end(WELL)
    assert sandbox.next().code == "many 2"
    jobs.close()
