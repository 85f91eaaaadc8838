"""Lifecycle of background jobs: states, concurrency, retention, callers and quotas (seed 004)."""

import queue
import threading
import uuid
from collections.abc import Iterator

import pytest

from qwed_mcp.jobs import BackgroundJobs, JobQuotas, JobState, QueueFull
from qwed_mcp.sandbox.job import EndReason, JobLimits, JobOutcome, SandboxUnavailable
from tests.support.manual_clock import ManualClock

SUCCEEDED = JobOutcome("All checks passed\n", "", 0, EndReason.EXITED, "held")
FAILED = JobOutcome("", "Traceback\nValueError: no\n", 1, EndReason.EXITED, "held")
TIMED_OUT = JobOutcome("so far", "", None, EndReason.TIMED_OUT, "held")
CANCELLED = JobOutcome("so far", "", None, EndReason.CANCELLED, "held")
ME, YOU = "me", "you"


class ManualJob:
    """Job that runs until the test ends it."""

    def __init__(self, code: str, limits: JobLimits) -> None:
        self.code, self.limits = code, limits
        self._ended: queue.Queue[JobOutcome] = queue.Queue()

    def end(self, outcome: JobOutcome) -> None:
        self._ended.put(outcome)

    def wait(self) -> JobOutcome:
        return self._ended.get(timeout=30)

    def cancel(self) -> None:
        self.end(CANCELLED)


class ManualSandbox:
    name = "held"

    def __init__(self) -> None:
        self.started: queue.Queue[ManualJob] = queue.Queue()

    def __call__(self) -> "ManualSandbox | SandboxUnavailable":
        return self

    def start(self, code: str, limits: JobLimits) -> ManualJob:
        job = ManualJob(code, limits)
        self.started.put(job)
        return job

    def next(self) -> ManualJob:
        return self.started.get(timeout=30)


@pytest.fixture
def sandbox() -> ManualSandbox:
    return ManualSandbox()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def jobs(sandbox: ManualSandbox, clock: ManualClock) -> Iterator[BackgroundJobs]:
    registry = BackgroundJobs(sandbox, 120.0, monotonic=clock.clock().monotonic)
    yield registry
    registry.close()


def submit_job(jobs: BackgroundJobs, caller: str = ME, code: str = "print(1)") -> str:
    job_id = jobs.submit(caller, code)
    assert isinstance(job_id, str)
    return job_id


def wait_until_over(job_id: str) -> None:
    """Wait until the thread of the job has ended."""
    for thread in threading.enumerate():
        if thread.name == f"job {job_id}":
            thread.join(30)


def text(jobs: BackgroundJobs, job_id: str, caller: str = ME) -> str:
    seen = jobs.get(caller, job_id)
    assert seen is not None
    return seen.text


ENDS = [
    (SUCCEEDED, "success", "STDOUT:\nAll checks passed\n\nExecution completed successfully."),
    (FAILED, "failed", "STDERR:\nTraceback\nValueError: no\n\nExecution failed with return code 1."),
    (CANCELLED, "cancelled", "Job was cancelled."),
    (
        TIMED_OUT,
        "timed_out",
        "Background verification timed out after 120 seconds. Process terminated to prevent resource exhaustion.",
    ),
]


@pytest.mark.parametrize(("outcome", "state", "result"), ENDS)
def test_every_final_state_reads_as_printed(
    jobs: BackgroundJobs, sandbox: ManualSandbox, outcome: JobOutcome, state: str, result: str
) -> None:
    job_id = submit_job(jobs)
    running = sandbox.next()
    assert text(jobs, job_id) == "Status: running..."
    running.end(outcome)
    wait_until_over(job_id)
    assert text(jobs, job_id) == f"Status: {state}\n\nResult:\n{result}"


def test_an_id_is_a_random_uuid(jobs: BackgroundJobs) -> None:
    assert uuid.UUID(submit_job(jobs)).version == 4


def test_a_job_has_the_time_that_was_set(jobs: BackgroundJobs, sandbox: ManualSandbox) -> None:
    submit_job(jobs)
    assert sandbox.next().limits == JobLimits(seconds=120.0)


def test_five_run_and_the_others_wait_for_a_place(jobs: BackgroundJobs, sandbox: ManualSandbox) -> None:
    job_ids = [submit_job(jobs, code=str(number)) for number in range(7)]
    running = [sandbox.next() for _ in range(5)]
    assert [text(jobs, job_id) for job_id in job_ids] == ["Status: running..."] * 5 + ["Status: queued..."] * 2
    running[2].end(SUCCEEDED)
    assert sandbox.next().code == "5"
    assert text(jobs, job_ids[5]) == "Status: running..."
    assert text(jobs, job_ids[6]) == "Status: queued..."
    running[0].end(SUCCEEDED)
    assert sandbox.next().code == "6"


def test_a_job_of_another_caller_does_not_exist(jobs: BackgroundJobs, sandbox: ManualSandbox) -> None:
    job_id = submit_job(jobs)
    running = sandbox.next()
    assert jobs.get(YOU, job_id) is None
    jobs.cancel(YOU, job_id)
    assert text(jobs, job_id) == "Status: running..."
    running.end(SUCCEEDED)
    wait_until_over(job_id)
    assert jobs.get(YOU, job_id) is None
    assert jobs.get(ME, str(uuid.uuid4())) is None


def test_a_result_stays_for_an_hour(jobs: BackgroundJobs, sandbox: ManualSandbox, clock: ManualClock) -> None:
    job_id = submit_job(jobs)
    running = sandbox.next()
    clock.advance(3_600)
    assert text(jobs, job_id) == "Status: running..."
    running.end(SUCCEEDED)
    wait_until_over(job_id)
    clock.advance(3_599)
    assert text(jobs, job_id).startswith("Status: success")
    clock.advance(1)
    assert jobs.get(ME, job_id) is None


def test_what_is_forgotten_makes_room(sandbox: ManualSandbox, clock: ManualClock) -> None:
    jobs = BackgroundJobs(sandbox, 120.0, quotas=JobQuotas(stored_per_caller=1), monotonic=clock.clock().monotonic)
    job_id = submit_job(jobs)
    sandbox.next().end(SUCCEEDED)
    wait_until_over(job_id)
    refused = jobs.submit(ME, "2")
    assert isinstance(refused, QueueFull)
    assert "an hour after" in refused.reason
    submit_job(jobs, YOU)
    clock.advance(3_600)
    submit_job(jobs)
    jobs.close()


QUOTAS = [
    JobQuotas(running=1, queued=1),
    JobQuotas(running=1, queued_per_caller=1),
    JobQuotas(stored=2),
    JobQuotas(stored_per_caller=2),
]


@pytest.mark.parametrize("quotas", QUOTAS)
def test_too_many_jobs_are_refused(sandbox: ManualSandbox, quotas: JobQuotas) -> None:
    jobs = BackgroundJobs(sandbox, 1.0, quotas=quotas)
    assert [isinstance(jobs.submit(ME, "1"), str) for _ in range(3)] == [True, True, False]
    jobs.close()


@pytest.mark.parametrize("quotas", [JobQuotas(stored_bytes_per_caller=10), JobQuotas(stored_bytes=10)])
def test_results_that_are_too_large_together_are_refused(sandbox: ManualSandbox, quotas: JobQuotas) -> None:
    jobs = BackgroundJobs(sandbox, 1.0, quotas=quotas)
    job_id = submit_job(jobs)
    sandbox.next().end(SUCCEEDED)
    wait_until_over(job_id)
    assert isinstance(jobs.submit(ME, "2"), QueueFull)
    assert text(jobs, job_id).startswith("Status: success")
    jobs.close()


def test_one_caller_cannot_take_the_place_of_another_in_the_queue(sandbox: ManualSandbox) -> None:
    jobs = BackgroundJobs(sandbox, 1.0, quotas=JobQuotas(running=1, queued_per_caller=2))
    assert [isinstance(jobs.submit(ME, "1"), str) for _ in range(4)] == [True, True, True, False]
    submit_job(jobs, YOU)
    jobs.close()


def test_what_is_kept_of_an_output_is_bounded(jobs: BackgroundJobs, sandbox: ManualSandbox) -> None:
    job_id = submit_job(jobs)
    # An undecodable byte takes three bytes when it is encoded again.
    garbage = "\ufffd" * (1 << 20)
    sandbox.next().end(JobOutcome(garbage, garbage, None, EndReason.OUTPUT_CAP, "held"))
    wait_until_over(job_id)
    status = text(jobs, job_id)
    assert status.startswith("Status: failed\n\nResult:\nSTDOUT:\n")
    assert status.endswith("[WARNING: OUTPUT TRUNCATED DUE TO 1MB SIZE CAP. PROCESS TERMINATED.]")
    assert len(status.encode()) < (2 << 20) + 200


def test_a_job_that_runs_can_be_cancelled(jobs: BackgroundJobs, sandbox: ManualSandbox) -> None:
    job_id = submit_job(jobs)
    sandbox.next()
    jobs.cancel(ME, job_id)
    wait_until_over(job_id)
    assert text(jobs, job_id) == "Status: cancelled\n\nResult:\nJob was cancelled."


def test_a_job_that_waits_can_be_cancelled_and_is_never_started(sandbox: ManualSandbox) -> None:
    jobs = BackgroundJobs(sandbox, 1.0, quotas=JobQuotas(running=1))
    first, second = submit_job(jobs, code="1"), submit_job(jobs, code="2")
    jobs.cancel(ME, second)
    assert text(jobs, second) == "Status: cancelled\n\nResult:\nJob was cancelled."
    sandbox.next().end(SUCCEEDED)
    wait_until_over(first)
    assert sandbox.started.empty()
    jobs.close()


def test_a_final_state_stays(jobs: BackgroundJobs, sandbox: ManualSandbox) -> None:
    job_id = submit_job(jobs)
    sandbox.next().end(SUCCEEDED)
    wait_until_over(job_id)
    jobs.cancel(ME, job_id)
    assert text(jobs, job_id).startswith("Status: success")


def test_closing_ends_every_job_and_takes_no_more(sandbox: ManualSandbox) -> None:
    jobs = BackgroundJobs(sandbox, 1.0)
    job_ids = [submit_job(jobs) for _ in range(8)]
    jobs.close()
    assert {text(jobs, job_id) for job_id in job_ids} == {"Status: cancelled\n\nResult:\nJob was cancelled."}
    assert isinstance(jobs.submit(ME, "1"), QueueFull)


def test_no_sandbox_fails_the_job_and_says_why() -> None:
    jobs = BackgroundJobs(lambda: SandboxUnavailable("install bubblewrap"), 1.0)
    job_id = submit_job(jobs)
    wait_until_over(job_id)
    assert text(jobs, job_id) == "Status: failed\n\nResult:\nThe job could not be run: install bubblewrap"


def test_a_sandbox_that_breaks_fails_the_job_and_frees_its_place(sandbox: ManualSandbox) -> None:
    broken = [True]

    def chosen() -> ManualSandbox:
        if broken:
            broken.clear()
            raise OSError("no")
        return sandbox

    jobs = BackgroundJobs(chosen, 1.0, quotas=JobQuotas(running=1))
    first, second = submit_job(jobs), submit_job(jobs, code="2")
    assert sandbox.next().code == "2"
    seen = jobs.get(ME, first)
    assert seen is not None
    assert seen.state is JobState.FAILED
    jobs.close()
    assert second


def test_a_place_that_is_freed_by_closing_is_not_taken(sandbox: ManualSandbox) -> None:
    for _ in range(50):
        jobs = BackgroundJobs(sandbox, 1.0, quotas=JobQuotas(running=1))
        job_ids = [submit_job(jobs) for _ in range(4)]
        first = sandbox.next()
        jobs.close()
        assert {text(jobs, job_id) for job_id in job_ids} == {"Status: cancelled\n\nResult:\nJob was cancelled."}
        assert sandbox.started.empty(), first


def test_a_caller_with_many_jobs_waits_behind_its_own(sandbox: ManualSandbox) -> None:
    jobs = BackgroundJobs(sandbox, 1.0, quotas=JobQuotas(running=2))
    for number in range(6):
        submit_job(jobs, "many", f"many {number}")
    submit_job(jobs, "one", "one")
    running = [sandbox.next(), sandbox.next()]
    assert {job.code for job in running} == {"many 0", "many 1"}
    running[0].end(SUCCEEDED)
    assert sandbox.next().code == "one"
    running[1].end(SUCCEEDED)
    assert sandbox.next().code == "many 2"
    jobs.close()
