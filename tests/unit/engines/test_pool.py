"""Worker pool with real processes that misbehave (DESIGN 8, P4, P6)."""

import asyncio
import dataclasses
import json
import math
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from qwed.engines._pool.messages import WorkerRequest, encode
from qwed.engines._pool.process_handles import Worker, WorkerLostError, Zygote
from qwed.engines._pool.queues import EngineJob, Queues
from qwed.engines.pool import EnginePool, PoolFullError
from qwed.engines.protocol import DataPolicy, EngineRequest
from qwed.engines.registry import EngineRow
from qwed.futures import Future, LoopRunner, run_in_thread
from qwed.model import Effect, EffectKind, Status, Verdict

ROOT = Path(__file__).parents[3]
ROW = EngineRow(name="misbehaving", module="tests.unit.engines.misbehaving_engine")
CASES = [json.loads(line) for line in (ROOT / "tests/data/engine_pool.jsonl").read_text().splitlines()]
TIMEOUT = 60.0
"""Upper bound on every wait; only a failing test reaches it."""


def ask(
    pool: EnginePool,
    behaviour: str,
    *,
    seconds: float = TIMEOUT,
    for_agent: bool = True,
    who: str = "",
    **parameters: Any,
) -> Future[Verdict]:
    request = EngineRequest(query=behaviour, parameters=parameters)
    return pool.submit(ROW.name, request, seconds, for_agent=for_agent, who=who)


def answer(pool: EnginePool, behaviour: str, **options: Any) -> Verdict:
    return ask(pool, behaviour, **options).wait_result(TIMEOUT)


def result(pool: EnginePool, behaviour: str, **options: Any) -> dict[str, Any]:
    verdict = answer(pool, behaviour, **options)
    assert verdict.status is Status.VERIFIED, verdict
    return dict(verdict.result)


OpenPool = Callable[..., EnginePool]


@pytest.fixture
def open_pool() -> Iterator[OpenPool]:
    opened: list[EnginePool] = []

    def start(*rows: EngineRow, **options: Any) -> EnginePool:
        pool = EnginePool(rows or (ROW,), **{"size": 2, "memory_mb": 128, **options})
        opened.append(pool)
        pool.start()
        return pool

    yield start
    for pool in opened:
        pool.close()


@pytest.fixture(scope="module")
def pool() -> Iterator[EnginePool]:
    shared = EnginePool([ROW], size=2, memory_mb=128)
    shared.start()
    yield shared
    shared.close()


class WatchedProcesses:
    """Processes watched by pidfd, so that a reused process id cannot mislead."""

    def __init__(self, pids: tuple[int, ...]) -> None:
        self._handles = [os.pidfd_open(pid) for pid in pids]

    def all_ended(self, seconds: float = TIMEOUT) -> bool:
        ended = [bool(select.select([handle], [], [], seconds)[0]) for handle in self._handles]
        for handle in self._handles:
            os.close(handle)
        return all(ended)


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


def occupy(pool: EnginePool, fifo: Path, **options: Any) -> tuple[Future[Verdict], int]:
    """Keep a worker busy for good; return its future and its process id."""
    ticket = ask(pool, "tell and hang", fifo=str(fifo), **options)
    return ticket, int(fifo.read_text())


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until the condition holds."""
    ends, tick = time.monotonic() + TIMEOUT, threading.Event()
    while not condition():
        assert time.monotonic() < ends
        tick.wait(0.01)


def wait_all_loaded(pool: EnginePool) -> None:
    """Wait until the engine is loaded and both workers have it."""
    assert result(pool, "echo") == {"echo": {}, "code": ""}
    wait_until(lambda: len(pool.processes) == 3)


def run_script(body: str) -> "subprocess.CompletedProcess[str]":
    """Run a script that uses the pool without a `__main__` guard, and return its output."""
    return subprocess.run(
        [sys.executable, "-c", script(body)], capture_output=True, text=True, timeout=TIMEOUT, check=True
    )


def script(body: str) -> str:
    opening = f"""
        import os, sys
        sys.path.insert(0, {str(ROOT)!r})
        from qwed.engines.pool import EnginePool, PoolFullError
        from qwed.engines.protocol import EngineRequest
        from qwed.engines.registry import ENGINES, EngineRow
        pool = EnginePool([EngineRow(name="misbehaving", module="tests.unit.engines.misbehaving_engine")], size=2)
        pool.start()
        def say(behaviour):
            return pool.submit("misbehaving", EngineRequest(query=behaviour), 50, for_agent=True).wait_result(50)
        """
    return textwrap.dedent(opening) + textwrap.dedent(body)


# Misbehaving engines


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["behaviour"])
def test_whatever_an_engine_does_there_is_one_answer_and_the_next_request_is_unaffected(
    pool: EnginePool, case: dict[str, str]
) -> None:
    # Endless behaviours get a short timeout; the duration of the others depends on the machine.
    seconds = 0.5 if case.get("error") == "timeout" else TIMEOUT
    verdict = answer(pool, case["behaviour"], seconds=seconds)
    assert (verdict.status, verdict.engine) == (case["status"], ROW.name)
    assert verdict.result.get("error") == case.get("error")
    assert verdict.checks_failed == ((case["check"],) if "check" in case else ())
    assert result(pool, "echo", a=1) == {"echo": {"a": 1}, "code": ""}


def test_every_failure_is_far_from_an_approval(pool: EnginePool) -> None:
    failures = [case for case in CASES if "error" in case]
    assert {case["status"] for case in failures} == {"INCONCLUSIVE", "ERROR"}
    assert len(failures) >= 20


def test_a_timeout_says_so_in_words(pool: EnginePool) -> None:
    assert answer(pool, "hang", seconds=0.2).message == "the engine did not answer in time"


def test_the_text_of_an_exception_stays_in_the_worker(pool: EnginePool) -> None:
    verdict = answer(pool, "raise")
    assert verdict.message == "the engine `misbehaving` failed"
    assert "secret" not in repr(verdict)


def test_a_verdict_arrives_as_it_was_given(pool: EnginePool) -> None:
    parameters = {"n": 10**60, "x": 0.1, "text": 'snow ☃ and \x00 "quotes"', "deep": [{"a": [None, True, -1]}]}
    verdict = answer(pool, "echo", **parameters)
    assert verdict == Verdict(
        status=Status.VERIFIED,
        engine=ROW.name,
        message="done",
        effects=(Effect(EffectKind.READ, "x"),),
        result={"echo": parameters, "code": ""},
    )


def test_the_policy_reaches_the_engine(pool: EnginePool) -> None:
    request = EngineRequest(query="policy", policy=DataPolicy(allowed_tables=("a", "b"), max_rows=7))
    verdict = pool.submit(ROW.name, request, TIMEOUT, for_agent=True).wait_result(TIMEOUT)
    assert verdict.result == {"tables": ["a", "b"], "rows": 7}


def test_a_large_request_and_a_large_answer_pass(pool: EnginePool) -> None:
    text = "x" * (3 << 20)
    assert result(pool, "echo", text=text)["echo"] == {"text": text}
    assert result(pool, "answer with much", upload="x" * (14 << 20))["text"] == text


def test_parameters_may_be_any_mapping(pool: EnginePool) -> None:
    request = EngineRequest(query="echo", parameters=MappingProxyType({"a": MappingProxyType({"b": 1})}))
    assert pool.submit(ROW.name, request, TIMEOUT, for_agent=True).wait_result(TIMEOUT).result["echo"] == {
        "a": {"b": 1}
    }


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    ["\ud800", object(), {1, object()}, {(1, 2): 3}, 10**5000, _nested(5000), "x" * (25 << 20)],
    ids=["half a pair", "object", "set", "tuple key", "5000 digits", "nested", "25 MiB"],
)
def test_a_request_that_cannot_be_sent_is_an_error_at_once(pool: EnginePool, value: Any) -> None:
    ticket = ask(pool, "echo", value=value)
    assert ticket.done
    assert (ticket.result().status, ticket.result().result) == (Status.ERROR, {"error": "unsendable"})


def test_an_unknown_engine_is_an_error_that_lists_the_known_ones(pool: EnginePool) -> None:
    verdict = pool.submit("math", EngineRequest(), 1, for_agent=True).wait_result(TIMEOUT)
    assert (verdict.status, verdict.verified) == (Status.ERROR, False)
    assert verdict.message == "unknown engine `math`, use one of misbehaving"


@pytest.mark.parametrize("seconds", [0, -1, math.nan, -math.inf])
def test_no_time_at_all_is_a_timeout_at_once(pool: EnginePool, seconds: float) -> None:
    ticket = ask(pool, "echo", seconds=seconds)
    assert ticket.done
    assert ticket.result().result == {"error": "timeout"}


def test_endless_time_is_cut_to_the_longest_there_is(pool: EnginePool) -> None:
    limits = result(pool, "limits", seconds=math.inf)["limits"]
    cpu = next(line for line in limits.splitlines() if line.startswith("Max cpu time"))
    assert int(cpu.split()[3]) < 1000


# Environment and limits of a worker


def test_a_worker_has_no_secret_in_its_environment(open_pool: OpenPool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("QWED_SIGNING_KEY_FILE", "QWED_LLM_API_KEY", "AWS_SECRET_ACCESS_KEY", "PYTHONPATH", "LD_LIBRARY_PATH"):
        monkeypatch.setenv(name, "secret")
    environment = result(open_pool(), "environment")
    assert set(environment) <= {"PATH", "LANG", "LC_ALL", "LC_CTYPE", "PYTHONHASHSEED"}
    assert environment["PATH"] == os.environ["PATH"]


def test_a_worker_has_no_descriptor_but_its_own_socket(open_pool: OpenPool, tmp_path: Path) -> None:
    with open(tmp_path / "database", "w") as database, socket.socket() as connection:
        for descriptor in (database.fileno(), connection.fileno()):
            os.set_inheritable(descriptor, True)
        descriptors = result(open_pool(size=4), "descriptors")
    standard = [descriptors.pop(number) for number in ("0", "1", "2")]
    assert standard == ["/dev/null"] * 3
    assert [target.partition(":")[0] for target in descriptors.values()] == ["socket"]


def test_a_worker_writes_no_file(pool: EnginePool, tmp_path: Path) -> None:
    assert result(pool, "write a file", path=str(tmp_path / "new")) == {"refused": "File too large"}
    assert (tmp_path / "new").read_text() == ""


def test_a_worker_opens_few_files(pool: EnginePool) -> None:
    assert result(pool, "open many") == {"refused": "Too many open files"}


def test_a_worker_is_limited_and_dies_before_anything_else_when_memory_is_short(pool: EnginePool) -> None:
    report = result(pool, "limits")
    limits = {line[:25].strip(): line[25:].split()[:2] for line in report["limits"].splitlines()[1:]}
    assert limits["Max core file size"] == limits["Max file size"] == ["0", "0"]
    soft, hard = limits["Max address space"]
    assert soft == hard
    assert 128 << 20 < int(soft) < 1 << 30
    assert limits["Max cpu time"][0] != "unlimited"
    assert report["oom"] == "1000"


def test_every_run_orders_its_sets_alike(open_pool: OpenPool) -> None:
    one, other = open_pool(), open_pool()
    assert result(one, "hash")["hash"] == result(other, "hash")["hash"]


def test_engines_print_into_nothing() -> None:
    done = run_script("print(say('print').status); pool.close()")
    assert (done.stdout, done.stderr) == ("VERIFIED\n", "")


# The processes


def test_a_worker_that_has_served_long_enough_is_replaced_between_requests(pool: EnginePool) -> None:
    served = [result(pool, "pid")["pid"] for _ in range(2_100)]
    runs = {pid: served.count(pid) for pid in served}
    assert len(runs) >= 2
    assert max(runs.values()) <= 1_000


def test_a_worker_that_has_grown_far_is_replaced(open_pool: OpenPool) -> None:
    pool = open_pool()
    grown = result(pool, "grow", bytes=100 << 20)["pid"]
    assert result(pool, "pid")["pid"] != grown
    assert result(pool, "grow", bytes=1)["pid"] != grown


def test_a_worker_killed_from_outside_while_it_works_is_replaced(pool: EnginePool, fifo: Path) -> None:
    ticket, pid = occupy(pool, fifo)
    os.kill(pid, signal.SIGKILL)
    assert ticket.wait_result(TIMEOUT).result == {"error": "died"}
    assert result(pool, "pid")["pid"] != pid


def test_idle_workers_killed_from_outside_are_replaced(open_pool: OpenPool) -> None:
    pool = open_pool()
    assert pool.wait_ready(TIMEOUT)
    zygote, *workers = pool.processes
    watched = WatchedProcesses(tuple(workers))
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    assert watched.all_ended()
    assert result(pool, "pid")["pid"] not in workers
    assert pool.processes[0] == zygote


def test_a_job_handed_to_a_worker_that_had_already_ended_is_another_workers(open_pool: OpenPool) -> None:
    pool = open_pool()
    assert pool.wait_ready(TIMEOUT)
    for _ in range(20):
        workers = pool.processes[1:]
        watched = WatchedProcesses(workers)
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
        assert watched.all_ended()
        assert result(pool, "pid")["pid"] not in workers


def test_a_killed_zygote_is_replaced_and_its_workers_end_with_it(open_pool: OpenPool, fifo: Path) -> None:
    pool = open_pool()
    assert pool.wait_ready(TIMEOUT)
    ticket, _ = occupy(pool, fifo)
    before = pool.processes
    watched = WatchedProcesses(before)
    os.kill(before[0], signal.SIGKILL)
    assert ticket.wait_result(TIMEOUT).result == {"error": "died"}
    assert watched.all_ended()
    assert result(pool, "pid")["pid"] not in before
    assert not set(pool.processes) & set(before)


def test_a_stopped_worker_is_late_like_any_other(open_pool: OpenPool) -> None:
    pool = open_pool()
    wait_all_loaded(pool)
    stopped = pool.processes[1:]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    assert answer(pool, "echo", seconds=0.2).result == {"error": "timeout"}
    assert answer(pool, "echo", seconds=0.2).result == {"error": "timeout"}
    assert result(pool, "pid")["pid"] not in stopped


def test_what_an_engine_left_running_ends_with_the_pool(open_pool: OpenPool) -> None:
    pool = open_pool()
    left = result(pool, "daemonise")
    watched = WatchedProcesses((left["pid"],))
    pool.close()
    assert watched.all_ended()


def test_what_an_engine_left_running_ends_when_a_worker_does(open_pool: OpenPool) -> None:
    pool = open_pool()
    watched = WatchedProcesses((result(pool, "daemonise")["pid"],))
    assert answer(pool, "abort").result == {"error": "died"}
    assert watched.all_ended()


def test_closing_leaves_no_process_and_may_be_done_twice(open_pool: OpenPool) -> None:
    pool = open_pool(size=4)
    assert pool.wait_ready(TIMEOUT)
    pids = pool.processes
    assert len(pids) == 5
    pool.close()
    pool.close()
    assert pool.processes == ()
    assert not [pid for pid in pids if os.path.exists(f"/proc/{pid}")]
    assert not pool.ready


def test_closing_answers_everyone_who_waits(open_pool: OpenPool, fifo: Path) -> None:
    pool = open_pool()
    running, _ = occupy(pool, fifo)
    waiting = [ask(pool, "hang", for_agent=False) for _ in range(3)]
    pool.close()
    assert [ticket.wait_result(0).result for ticket in (running, *waiting)] == [{"error": "died"}] * 4


def test_closing_while_the_engines_still_load_leaves_nothing() -> None:
    pool = EnginePool([ROW], size=2)
    pool.start()
    ticket = ask(pool, "echo")
    pool.close()
    assert ticket.done
    assert pool.processes == ()


def test_a_pool_that_is_not_running_takes_no_work() -> None:
    pool = EnginePool([ROW], size=2)
    pool.close()
    with pytest.raises(PoolFullError, match="was not started"):
        ask(pool, "echo")
    pool.start()
    pool.start()
    pool.close()
    with pytest.raises(PoolFullError, match="is not running"):
        ask(pool, "echo")


def test_a_pool_of_one_worker_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 2 workers"):
        EnginePool([ROW], size=1)


# Queues


def test_two_hundred_submits_from_many_threads_all_get_their_own_answer(open_pool: OpenPool) -> None:
    pool = open_pool(queue_limit=200)
    with ThreadPoolExecutor(50) as threads:
        answers = list(threads.map(lambda n: result(pool, "echo", n=n, for_agent=n % 2 == 0)["echo"]["n"], range(200)))
    assert answers == list(range(200))


def test_answers_stay_with_their_requests_while_workers_die_around_them(open_pool: OpenPool) -> None:
    pool = open_pool(size=3, queue_limit=200)
    behaviours = ["echo", "abort", "echo", "raise", "echo", "write everywhere"] * 15
    tickets = [ask(pool, behaviour, n=n, for_agent=n % 2 == 0) for n, behaviour in enumerate(behaviours)]
    for n, (behaviour, ticket) in enumerate(zip(behaviours, tickets, strict=True)):
        verdict = ticket.wait_result(TIMEOUT)
        assert verdict.verified == (behaviour == "echo"), (behaviour, verdict)
        assert not verdict.verified or verdict.result["echo"] == {"n": n}


def test_a_full_queue_is_refused_and_the_agent_path_has_its_own(open_pool: OpenPool, fifo: Path) -> None:
    pool = open_pool(queue_limit=3)
    occupy(pool, fifo, for_agent=False)
    waiting = [ask(pool, "hang", for_agent=False, who=who) for who in "abc"]
    with pytest.raises(PoolFullError, match="every engine worker is busy"):
        ask(pool, "hang", for_agent=False, who="d")
    assert not [ticket for ticket in waiting if ticket.done]
    assert result(pool, "echo", for_agent=True) == {"echo": {}, "code": ""}


def test_one_worker_is_always_free_for_the_agent_path(open_pool: OpenPool, fifo: Path) -> None:
    pool = open_pool()
    occupy(pool, fifo, for_agent=False)
    assert answer(pool, "echo", for_agent=False, seconds=0.3).result == {"error": "timeout"}
    waiting = ask(pool, "hang", for_agent=False)
    assert [result(pool, "echo", for_agent=True, n=n)["echo"] for n in range(20)] == [{"n": n} for n in range(20)]
    assert not waiting.done


def test_the_agent_path_is_served_first(open_pool: OpenPool, fifo: Path) -> None:
    pool = open_pool()
    busy = [occupy(pool, fifo, for_agent=True, who=who)[1] for who in "ab"]
    others = [ask(pool, "hang", for_agent=False, seconds=1) for _ in range(5)]
    agents = [ask(pool, "pid", for_agent=True) for _ in range(5)]
    for pid in busy:
        os.kill(pid, signal.SIGKILL)
    assert [ticket.wait_result(TIMEOUT).status for ticket in agents] == [Status.VERIFIED] * 5
    assert [ticket.wait_result(TIMEOUT).result for ticket in others] == [{"error": "timeout"}] * 5


def test_an_agent_with_hard_questions_leaves_a_worker_to_another(open_pool: OpenPool, fifo: Path) -> None:
    pool = open_pool()
    occupy(pool, fifo, who="hostile")
    waiting = [ask(pool, "hang", who="hostile") for _ in range(6)]
    assert [result(pool, "echo", who="honest", n=n)["echo"] for n in range(20)] == [{"n": n} for n in range(20)]
    assert not [ticket for ticket in waiting if ticket.done]


def test_an_agent_alone_has_all_workers_but_one(open_pool: OpenPool, fifo: Path) -> None:
    pool = open_pool(size=3)
    assert len({occupy(pool, fifo, who="a")[1] for _ in range(2)}) == 2
    assert answer(pool, "echo", who="a", seconds=0.3).result == {"error": "timeout"}
    assert result(pool, "echo", who="b") == {"echo": {}, "code": ""}


def test_an_agent_that_fills_its_share_of_the_queue_leaves_room_for_another(open_pool: OpenPool, fifo: Path) -> None:
    pool = open_pool(queue_limit=4)
    occupy(pool, fifo, who="hostile")
    waiting = [ask(pool, "hang", who="hostile") for _ in range(2)]
    with pytest.raises(PoolFullError, match="every engine worker is busy"):
        ask(pool, "hang", who="hostile")
    assert result(pool, "echo", who="honest") == {"echo": {}, "code": ""}
    assert not [ticket for ticket in waiting if ticket.done]


def queue_jobs(*whose: str, limit: int = 64, for_agent: bool = True) -> Queues:
    queues = Queues(limit)
    queues.open()
    for deadline, who in enumerate(whose):
        queues.put(EngineJob(engine="x", deadline=float(deadline), for_agent=for_agent, who=who))
    return queues


def test_without_an_agent_every_organisation_has_its_turn() -> None:
    queues = queue_jobs(*"aaaaab", for_agent=False)
    jobs = [queues.take(2, (), {"x"}) for _ in range(6)]
    assert [job.who for job in jobs if job is not None] == list("abaaaa")
    assert queues.take(2, (), {"x"}) is None
    queues.close()


def test_no_organisation_fills_the_line_alone() -> None:
    queues = queue_jobs("a", "a", limit=4, for_agent=False)
    with pytest.raises(PoolFullError):
        queues.put(EngineJob(engine="x", deadline=1.0, for_agent=False, who="a"))
    queues.put(EngineJob(engine="x", deadline=1.0, for_agent=False, who="b"))
    assert len(queues.close()) == 3


def take_order(queues: Queues, idle: int, served: Collection[str] = ()) -> str:
    return "".join(job.who for job in iter(lambda: queues.take(idle, served, {"x"}), None))


@pytest.mark.parametrize(
    ("arrived", "idle", "served", "order"),
    [
        ("aaaabbc", 2, "", "abcabaa"),
        ("aaaab", 1, "", "abaaa"),
        ("aaaab", 1, "a", "b"),
        ("aaaab", 2, "a", "abaaa"),
        ("ab", 1, "ab", ""),
        ("ab", 0, "", ""),
        ("aaa", 1, "b", "aaa"),
    ],
)
def test_each_agent_has_its_turn(arrived: str, idle: int, served: str, order: str) -> None:
    queues = queue_jobs(*arrived)
    assert take_order(queues, idle, served) == order
    assert len(queues.close()) == len(arrived) - len(order)


def test_what_is_late_leaves_its_queue_and_the_rest_keep_their_turns() -> None:
    queues = queue_jobs(*"aabab")
    assert [job.who for job in queues.late(2.0)] == ["a", "a", "b"]
    assert queues.next_deadline() == 3.0
    assert take_order(queues, 2) == "ab"
    assert queues.next_deadline() == math.inf
    assert queues.close() == []


def test_many_agents_together_fill_the_queue() -> None:
    queues = queue_jobs(*"abcd", limit=4)
    with pytest.raises(PoolFullError, match="every engine worker is busy"):
        queues.put(EngineJob(engine="x", deadline=0.0, for_agent=True, who="e"))
    assert len(queues.close()) == 4


# Batches of one owner

BATCHED_ROW = dataclasses.replace(ROW, batch_size=4)


@pytest.fixture
def blocked_pool(open_pool: OpenPool, fifo: Path) -> Iterator[tuple[EnginePool, Callable[[], object]]]:
    """Pool whose requests of owner `a` are blocked until released, and then sent as one batch."""
    pool = open_pool(BATCHED_ROW)
    wait_all_loaded(pool)
    blocking = ask(pool, "tell", fifo=str(fifo), who="a")
    yield pool, fifo.read_text
    assert blocking.wait_result(TIMEOUT).verified


BlockedPool = tuple[EnginePool, Callable[[], object]]


def test_questions_handed_over_together_are_each_answered(blocked_pool: BlockedPool) -> None:
    pool, release = blocked_pool
    tickets = [ask(pool, "echo", who="a", n=n) for n in range(11)]
    release()
    assert [ticket.wait_result(TIMEOUT).result["echo"] for ticket in tickets] == [{"n": n} for n in range(11)]


@pytest.mark.parametrize("case", [case for case in CASES if "error" in case], ids=lambda case: case["behaviour"])
def test_of_questions_handed_over_together_only_the_one_that_went_wrong_has_to_do_with_it(
    blocked_pool: BlockedPool, case: dict[str, str]
) -> None:
    pool, release = blocked_pool
    seconds = 0.5 if case["error"] == "timeout" else TIMEOUT
    before = [ask(pool, "echo", who="a", n=n) for n in range(2)]
    wrong = ask(pool, case["behaviour"], who="a", seconds=seconds)
    behind = [ask(pool, "echo", who="a", n=n) for n in range(2, 6)]
    release()
    assert wrong.wait_result(TIMEOUT).result["error"] == case["error"]
    assert [ticket.wait_result(TIMEOUT).result["echo"] for ticket in (*before, *behind)] == [{"n": n} for n in range(6)]


def test_a_worker_begins_nothing_more_of_what_it_was_handed_when_that_takes_long() -> None:
    zygote = Zygote((ROW,), 128, 0.0, [ROW.name])
    with closing(Worker(zygote.fork(), 0.0)) as worker:
        while not worker.pid:
            select.select([worker.channel], [], [], TIMEOUT)
            worker.receive_hello()
        for behaviour, parameters in (("echo", {}), ("nap", {"seconds": 0.05}), ("echo", {}), ("hang", {})):
            job = EngineJob(engine=ROW.name, deadline=math.inf, for_agent=True)
            request = EngineRequest(query=behaviour, parameters=parameters)
            job.payload = encode(WorkerRequest(number=job.number, engine=ROW.name, seconds=TIMEOUT, request=request))
            worker.give(job)
        worker.begin(0.0)
        worker.send()
        declined = []
        while worker.jobs:
            select.select([worker.channel], [], [], TIMEOUT)
            for reply in worker.hear():
                worker.done()
                declined.append(reply.declined)
        assert declined == [False, False, True, True]
        assert worker.idle
    zygote.ready = True
    zygote.end(TIMEOUT)


def test_what_waits_behind_a_question_that_takes_long_is_another_workers(
    open_pool: OpenPool, fifo: Path, tmp_path: Path
) -> None:
    pool = open_pool(BATCHED_ROW, size=3)
    assert result(pool, "echo", who="a") == {"echo": {}, "code": ""}
    wait_until(lambda: len(pool.processes) == 4)
    _, hanging = occupy(pool, fifo, who="a")
    second = tmp_path / "second"
    os.mkfifo(second)
    ask(pool, "tell", fifo=str(second), who="a")
    slow = ask(pool, "tell and hang", fifo=str(fifo), who="a")
    behind = [ask(pool, "pid", who="a") for _ in range(3)]
    second.read_text()
    slow_pid = int(fifo.read_text())
    os.kill(hanging, signal.SIGKILL)
    pids = {ticket.wait_result(TIMEOUT).result["pid"] for ticket in behind}
    assert slow_pid not in pids
    assert not slow.done


def test_a_turn_is_the_shorter_the_more_wait_for_one() -> None:
    for whose, most in (("aaaa", 4), ("aaab", 3), ("aaabc", 2), ("aaabcde", 1)):
        queues = queue_jobs(*whose)
        first = queues.take(2, (), {"x"})
        assert first is not None
        batch_length = 1
        while queues.take_for_batch(first, 6 // (batch_length + 1), -1.0) is not None:
            batch_length += 1
        assert batch_length == most, whose
        queues.close()


@pytest.mark.parametrize(
    ("change", "goes"),
    [
        ({}, True),
        ({"who": "b"}, False),
        ({"engine": "y"}, False),
        ({"deadline": 5.0}, False),
        ({"payload": b"x" * 5000}, False),
        ({"for_agent": False}, False),
    ],
)
def test_only_small_questions_of_one_agent_and_engine_with_time_left_are_handed_over_together(
    change: dict[str, Any], goes: bool
) -> None:
    queues = queue_jobs("a")
    following = EngineJob(
        **{"engine": "x", "deadline": 9.0, "for_agent": True, "who": "a", "payload": b"small", **change}
    )
    queues.put(following)
    first = queues.take(2, (), {"x"})
    assert first is not None
    assert (queues.take_for_batch(first, 4, 5.0) is following) is goes
    queues.close()


def is_woken(queues: Queues) -> bool:
    woken = bool(select.select([queues.wakeup], [], [], 0)[0])
    queues.drain_wakeup()
    return woken


def test_the_pools_thread_is_woken_only_where_there_is_something_to_do() -> None:
    queues = queue_jobs("a")
    assert is_woken(queues)
    assert take_order(queues, 1) == "a"
    queues.next_deadline(50.0)
    for idle, served, job, woken in (
        (0, "", EngineJob(engine="x", deadline=60.0, for_agent=True, who="b"), False),
        (0, "", EngineJob(engine="x", deadline=40.0, for_agent=True, who="b"), True),
        (0, "", EngineJob(engine="new", deadline=60.0, for_agent=True, who="b"), True),
        (1, "", EngineJob(engine="x", deadline=60.0, for_agent=True, who="b"), True),
        (1, "b", EngineJob(engine="x", deadline=60.0, for_agent=True, who="b"), False),
        (1, "", EngineJob(engine="x", deadline=60.0, for_agent=False, who="b"), False),
        (2, "b", EngineJob(engine="x", deadline=60.0, for_agent=True, who="b"), True),
        (2, "", EngineJob(engine="x", deadline=60.0, for_agent=False, who="b"), True),
    ):
        assert queues.take(idle, served, {"x"}) is None
        queues.put(job)
        assert is_woken(queues) is woken, (idle, served, job)
        queues.late(math.inf)
    queues.shut()
    assert is_woken(queues)
    queues.close()


def test_work_submitted_before_the_engines_are_loaded_is_done_when_they_are(open_pool: OpenPool) -> None:
    pool = open_pool()
    assert result(pool, "echo") == {"echo": {}, "code": ""}
    assert pool.wait_ready(TIMEOUT)
    assert pool.ready


# Engines that fail to load, processes that crash


def write_engine_module(
    directory: Path, monkeypatch: pytest.MonkeyPatch, text: str, name: str = "fragile"
) -> EngineRow:
    monkeypatch.syspath_prepend(str(directory))
    (directory / f"{name}.py").write_text(textwrap.dedent(text))
    return EngineRow(name=name, module=name)


def ask_fragile(pool: EnginePool, seconds: float = TIMEOUT) -> Verdict:
    return pool.submit("fragile", EngineRequest(), seconds, for_agent=True).wait_result(TIMEOUT)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("import nothing_of_this_name", "ModuleNotFoundError"),
        ("def verify(:", "SyntaxError"),
        ("x = 1", "AttributeError"),
        ("raise OSError", "OSError"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_an_engine_that_cannot_be_loaded_says_so_and_the_others_serve(
    open_pool: OpenPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, error: str
) -> None:
    pool = open_pool(write_engine_module(tmp_path, monkeypatch, text), ROW)
    verdict = ask_fragile(pool)
    assert (verdict.status, verdict.result) == (Status.ERROR, {"error": error})
    assert verdict.message == "the engine `fragile` could not be loaded, install `qwed[engines]`"
    assert result(pool, "echo") == {"echo": {}, "code": ""}


def test_an_engine_is_warmed_before_its_workers_are_forked(
    open_pool: OpenPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = write_engine_module(
        tmp_path,
        monkeypatch,
        """
        from qwed.model import Status, Verdict
        seen = []
        def verify(request):
            seen.append(request.query)
            return Verdict(status=Status.VERIFIED, engine="fragile", result={"seen": seen})
        """,
    )
    row = dataclasses.replace(row, warm=(EngineRequest(query="first"), EngineRequest(query="second")))
    with closing(EnginePool([row], size=2)) as pool:
        pool.start(warm_after=TIMEOUT)
        assert ask_fragile(pool).result == {"seen": ["first", "second", ""]}
    # A pool that is started for one request makes nobody wait for others.
    assert ask_fragile(open_pool(row)).result == {"seen": [""]}


def test_an_engine_that_cannot_be_warmed_is_not_used() -> None:
    with closing(EnginePool([dataclasses.replace(ROW, warm=(EngineRequest(query="recurse"),))], size=2)) as pool:
        pool.start(warm_after=TIMEOUT)
        assert answer(pool, "echo").result == {"error": "RecursionError"}


CRASHES = {
    "the zygote ends while it loads": "os._exit(1)",
    "every worker ends as it is forked": "os.register_at_fork(after_in_child=lambda: os._exit(1))",
    "every worker ends soon after it is forked": """
        import signal
        os.register_at_fork(after_in_child=lambda: signal.setitimer(signal.ITIMER_REAL, 0.005))
    """,
}


def make_crashing_engine(directory: Path, monkeypatch: pytest.MonkeyPatch, crash: str) -> tuple[EngineRow, Path]:
    """Write an engine whose processes crash; return it and the file in which each leaves a mark."""
    marks = directory / "marks"
    text = f"""
        import os
        def mark():
            with open({str(marks)!r}, "a") as marks:
                marks.write("x")
        mark()
        os.register_at_fork(before=mark)
    """
    return write_engine_module(directory, monkeypatch, textwrap.dedent(text) + textwrap.dedent(CRASHES[crash])), marks


def wait_first_mark(marks: Path) -> None:
    """Wait until the first mark exists."""
    wait_until(marks.exists)


@pytest.mark.parametrize("crash", CRASHES)
def test_a_crash_loop_slows_down(
    open_pool: OpenPool, pool: EnginePool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crash: str
) -> None:
    row, marks = make_crashing_engine(tmp_path, monkeypatch, crash)
    crashing = open_pool(row)
    crashing.submit("fragile", EngineRequest(), TIMEOUT, for_agent=True)
    wait_first_mark(marks)
    assert answer(pool, "hang", seconds=1).result == {"error": "timeout"}
    crashing.close()
    assert 1 <= len(marks.read_text()) <= 30


@pytest.mark.parametrize("crash", CRASHES)
def test_submit_answers_in_the_middle_of_a_crash_loop(
    open_pool: OpenPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crash: str
) -> None:
    crashing = open_pool(make_crashing_engine(tmp_path, monkeypatch, crash)[0])
    verdicts = [ask_fragile(crashing, 0.3) for _ in range(3)]
    assert {verdict.status for verdict in verdicts} <= {Status.INCONCLUSIVE, Status.ERROR}


def test_a_stopped_zygote_does_not_stop_those_who_wait(open_pool: OpenPool) -> None:
    pool = open_pool()
    wait_all_loaded(pool)
    os.kill(pool.processes[0], signal.SIGSTOP)
    assert answer(pool, "abort").result == {"error": "died"}
    assert answer(pool, "abort").result == {"error": "died"}
    assert answer(pool, "echo", seconds=0.3).result == {"error": "timeout"}
    pids = pool.processes
    os.kill(pids[0], signal.SIGCONT)
    assert result(pool, "echo") == {"echo": {}, "code": ""}


def test_a_zygote_that_is_stuck_is_replaced(open_pool: OpenPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qwed.engines._pool.process_handles.FORK_SECONDS", 0.3)
    pool = open_pool()
    wait_all_loaded(pool)
    stuck = pool.processes[0]
    os.kill(stuck, signal.SIGSTOP)
    assert [answer(pool, "abort").result for _ in range(2)] == [{"error": "died"}] * 2
    monkeypatch.undo()
    assert result(pool, "echo") == {"echo": {}, "code": ""}
    assert stuck not in pool.processes


def test_a_pool_that_closes_while_its_zygote_is_stuck_still_leaves_nothing(
    open_pool: OpenPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Zygote.end, "__defaults__", (0.2,))
    pool = open_pool()
    assert pool.wait_ready(TIMEOUT)
    watched = WatchedProcesses(pool.processes)
    os.kill(pool.processes[0], signal.SIGSTOP)
    pool.close()
    assert watched.all_ended()


# Lazy loading of engines


def make_marking_engine(
    directory: Path, monkeypatch: pytest.MonkeyPatch, name: str, then: str = ""
) -> tuple[EngineRow, Path]:
    """Write an engine that reports which engines are loaded, with a file that gets a mark for each load."""
    marks = directory / f"{name}.marks"
    text = f"""
        import os, sys
        from qwed.model import Status, Verdict
        with open({str(marks)!r}, "a") as marks:
            marks.write("x")
        {then}
        def verify(request):
            loaded = sorted({{"early", "later"}} & set(sys.modules))
            return Verdict(status=Status.VERIFIED, engine={name!r}, result={{"loaded": loaded, "pid": os.getpid()}})
    """
    return write_engine_module(directory, monkeypatch, text, name), marks


def ask_engine(pool: EnginePool, row: EngineRow) -> Verdict:
    return pool.submit(row.name, EngineRequest(), TIMEOUT, for_agent=True).wait_result(TIMEOUT)


def test_an_engine_is_loaded_when_it_is_asked_for_and_once(
    open_pool: OpenPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    early, marks = make_marking_engine(tmp_path, monkeypatch, "early")
    later, more_marks = make_marking_engine(tmp_path, monkeypatch, "later")
    pool = open_pool(early, later)
    assert pool.wait_ready(TIMEOUT)
    assert not marks.exists()
    assert [ask_engine(pool, early).result["loaded"] for _ in range(2)] == [["early"]] * 2
    assert not more_marks.exists()
    assert [ask_engine(pool, row).result["loaded"] for row in (later, early)] == [["early", "later"]] * 2
    assert (marks.read_text(), more_marks.read_text()) == ("x", "x")


def test_a_worker_that_is_busy_while_an_engine_is_loaded_is_replaced_when_it_is_done(
    open_pool: OpenPool, tmp_path: Path, fifo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    early, _ = make_marking_engine(tmp_path, monkeypatch, "early")
    pool = open_pool(early, ROW)
    ticket = ask(pool, "tell", fifo=str(fifo), who="busy")
    descriptor = os.open(fifo, os.O_RDONLY)
    assert ask_engine(pool, early).result["loaded"] == ["early"]
    worker_pid = int(os.read(descriptor, 20))
    os.close(descriptor)
    assert ticket.wait_result(TIMEOUT).result == {"pid": worker_pid}
    assert {ask_engine(pool, early).result["loaded"][0] for _ in range(20)} == {"early"}
    assert worker_pid not in pool.processes


def test_an_engine_without_requests_is_loaded_while_the_pool_is_idle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [make_marking_engine(tmp_path, monkeypatch, name) for name in ("early", "later")]
    with closing(EnginePool([row for row, _ in rows], size=2)) as pool:
        pool.start(warm_after=0.0)
        for _, marks in rows:
            wait_until(marks.exists)
        assert [ask_engine(pool, row).result["loaded"] for row, _ in rows] == [["early", "later"]] * 2
        assert [marks.read_text() for _, marks in rows] == ["x", "x"]
        assert pool.wait_ready(TIMEOUT)


def test_an_engine_whose_loading_ends_the_zygote_is_not_loaded_again_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    early, _ = make_marking_engine(tmp_path, monkeypatch, "early")
    fatal, marks = make_marking_engine(tmp_path, monkeypatch, "fatal", "os._exit(1)")
    later, loaded = make_marking_engine(tmp_path, monkeypatch, "later")
    with closing(EnginePool([early, fatal, later], size=2)) as pool:
        pool.start(warm_after=0.0)
        wait_until(loaded.exists)
        assert [ask_engine(pool, row).result["loaded"] for row in (early, later)] == [["early", "later"]] * 2
        assert marks.read_text() == "x"
        assert pool.submit("fatal", EngineRequest(), 0.3, for_agent=True).wait_result(TIMEOUT).result == {
            "error": "timeout"
        }
        assert ask_engine(pool, early).verified


def test_while_an_engine_is_loaded_the_others_answer_and_the_pool_can_end(
    open_pool: OpenPool, tmp_path: Path, fifo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, marks = make_marking_engine(tmp_path, monkeypatch, "later", f"open({str(fifo)!r}).read()")
    pool = open_pool(ROW, slow)
    wait_all_loaded(pool)
    left = WatchedProcesses((result(pool, "daemonise")["pid"],))
    waiting = pool.submit(slow.name, EngineRequest(), TIMEOUT, for_agent=True)
    wait_until(marks.exists)
    assert [result(pool, "echo", n=n)["echo"] for n in range(5)] == [{"n": n} for n in range(5)]
    processes = WatchedProcesses(pool.processes)
    assert not waiting.done
    pool.close()
    assert waiting.wait_result(0).result == {"error": "died"}
    assert processes.all_ended()
    assert left.all_ended()


# Callers


def test_a_coroutine_awaits_the_same_tickets(pool: EnginePool) -> None:
    async def submit(n: int) -> Verdict:
        return await ask(pool, "echo", n=n)

    async def many() -> list[Verdict]:
        driver = LoopRunner(asyncio.get_running_loop(), TIMEOUT)
        return await asyncio.gather(*(driver.run(submit(n)) for n in range(30)))

    assert [verdict.result["echo"] for verdict in asyncio.run(many())] == [{"n": n} for n in range(30)]
    assert run_in_thread(submit(7), TIMEOUT).result["echo"] == {"n": 7}


def test_a_loop_that_closed_while_it_waited_harms_nobody_else(pool: EnginePool, fifo: Path) -> None:
    async def give_up() -> tuple[Future[Verdict], int]:
        ticket, pid = occupy(pool, fifo)

        async def submit() -> Verdict:
            return await ticket

        driver = LoopRunner(asyncio.get_running_loop(), TIMEOUT)
        task = asyncio.create_task(driver.run(submit()))
        await asyncio.sleep(0)
        task.cancel()
        return ticket, pid

    ticket, pid = asyncio.run(give_up())
    os.kill(pid, signal.SIGKILL)
    assert ticket.wait_result(TIMEOUT).result == {"error": "died"}
    assert result(pool, "echo") == {"echo": {}, "code": ""}


class FailingRunner(LoopRunner):
    """Runner that fails on the pool's own thread."""

    def _wake(self, tickets: list[Future[Any]]) -> None:
        raise ZeroDivisionError(tickets)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_after_a_failure_of_the_pool_thread_every_future_ends_and_no_job_is_taken(
    open_pool: OpenPool, fifo: Path
) -> None:
    pool = open_pool()
    assert pool.wait_ready(TIMEOUT)
    watched = WatchedProcesses(pool.processes)
    waiting, _ = occupy(pool, fifo)

    async def submit() -> Verdict:
        return await ask(pool, "echo", who="another")

    async def fail_pool_thread() -> None:
        task = asyncio.create_task(FailingRunner(asyncio.get_running_loop(), TIMEOUT).run(submit()))
        await asyncio.to_thread(waiting.wait_result, TIMEOUT)
        task.cancel()

    asyncio.run(fail_pool_thread())
    assert waiting.result().result == {"error": "died"}
    assert watched.all_ended()
    with pytest.raises(PoolFullError, match="is not running"):
        ask(pool, "echo")


@pytest.mark.parametrize("closed", ["0", "1", "2", "0, 1, 2"])
def test_an_owner_without_standard_descriptors_and_with_blocked_signals_is_served_too(
    tmp_path: Path, closed: str
) -> None:
    output = tmp_path / "told"
    opening = f"""
        import os, signal
        for descriptor in ({closed},):
            os.close(descriptor)
        signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
    """
    body = f"""
        verdicts = [say(behaviour) for behaviour in ("echo", "abort", "abort", "abort", "echo")]
        pool.close()
        with open({str(output)!r}, "w") as file:
            print(*(verdict.status for verdict in verdicts), file=file)
    """
    program = textwrap.dedent(opening) + script(body)
    subprocess.run([sys.executable, "-c", program], timeout=TIMEOUT, check=True)
    assert output.read_text() == "VERIFIED INCONCLUSIVE INCONCLUSIVE INCONCLUSIVE VERIFIED\n"


def test_an_owner_with_more_files_open_than_select_can_name_is_served_too() -> None:
    opening = """
        import os, resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (2048, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        many = [os.open(os.devnull, os.O_RDONLY) for _ in range(1024)]
    """
    program = textwrap.dedent(opening) + script("print(say('echo').status); pool.close()")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=TIMEOUT)
    assert (done.stdout, done.stderr) == ("VERIFIED\n", "")


def test_a_script_without_a_main_guard_runs_once_and_leaves_nothing() -> None:
    done = run_script("print('once', say('echo').status); print(*pool.processes); pool.close()")
    first, pids = done.stdout.splitlines()
    assert (first, done.stderr) == ("once VERIFIED", "")
    assert not [pid for pid in pids.split() if os.path.exists(f"/proc/{pid}")]


def test_a_script_that_never_closes_its_pool_leaves_nothing_either() -> None:
    # The zygote keeps stderr open, so this returns only once it has ended.
    done = run_script("say('echo'); print(len(pool.processes) > 1)")
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_everything_ends_when_the_owner_is_killed_even_if_a_fork_of_it_lives() -> None:
    body = """
        assert pool.wait_ready(50)
        if os.fork() == 0:
            sys.stdin.read()
            os._exit(0)
        print(*pool.processes, flush=True)
        sys.stdin.read()
    """
    with subprocess.Popen(
        [sys.executable, "-c", script(body)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        pids = tuple(int(pid) for pid in owner.stdout.readline().split())
        assert len(pids) == 3
        watched = WatchedProcesses(pids)
        owner.kill()
        assert watched.all_ended()


def test_a_fork_of_the_owner_is_told_to_start_its_own_pool() -> None:
    body = """
        say('echo')
        child = os.fork()
        if child == 0:
            try:
                say('echo')
            except PoolFullError as refused:
                print(refused, flush=True)
            pool.close()
            os._exit(0)
        os.waitpid(child, 0)
        print(say('echo').status)
        pool.close()
    """
    lines = run_script(body).stdout.splitlines()
    assert lines == ["the engine pool was not started in this process, start one in each process", "VERIFIED"]


def test_the_process_that_asks_imports_no_engine() -> None:
    body = """
        heavy = {"sympy", "z3", "sqlglot", "lark", "mpmath", "multiprocessing", "pickle"}
        real = EnginePool(ENGINES.values(), size=2)
        real.start()
        verdict = real.submit("math", EngineRequest(query="2 + 2 = 4"), 50, for_agent=True).wait_result(50)
        print(verdict.engine, sorted(heavy & set(sys.modules)), "tests.unit.engines.misbehaving_engine" in sys.modules)
        real.close(); pool.close()
    """
    assert run_script(body).stdout == "math [] False\n"


STOP_AT_LINE = """
    import os, signal, sys
    me, left, seen = os.getpid(), {nth}, set()
    def trace(frame, event, _argument):
        global left
        if frame.f_code.co_name not in {names} or os.getpid() != me:
            return None
        if event == "line" and frame.f_lineno not in seen:
            seen.add(frame.f_lineno)
            left -= 1
            if left == 0:
                open({mark!r}, "w").close()
                os.kill(me, signal.SIGTERM)
        return trace
    sys.settrace(trace)
    def verify(request):
        return None
"""
COUNTING_FUNCTIONS = ("_serve_pool", "fork", "reap", "_next_dead", "end")
"""Functions of the zygote that count its workers."""


def test_a_zygote_that_is_told_to_end_in_the_middle_of_anything_ends_without_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    mark, line_number = tmp_path / "mark", 0
    while line_number == 0 or mark.exists():
        line_number += 1
        mark.unlink(missing_ok=True)
        text = textwrap.dedent(STOP_AT_LINE).format(nth=line_number, names=COUNTING_FUNCTIONS, mark=str(mark))
        row = write_engine_module(Path(tempfile.mkdtemp(dir=tmp_path)), monkeypatch, text)
        zygote = Zygote((row,), 128, 0.0, [row.name])
        with suppress(OSError, WorkerLostError), closing(Worker(zygote.fork(), 0.0)) as worker:
            assert select.select([worker.channel], [], [], TIMEOUT)[0]
            worker.receive_hello()
            worker.kill()
            worker.wait_gone(TIMEOUT)
        zygote.ready = True
        zygote.end(TIMEOUT)
        assert (zygote._process.returncode, capfd.readouterr().err) == (0, ""), line_number
    assert line_number > 15
