"""Engine pools of several servers on one machine under one global limit (DESIGN 8)."""

import dataclasses
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from qwed.engines._pool.concurrency_client import ConcurrencyClient
from qwed.engines._pool.queues import EngineJob
from qwed.engines.global_concurrency import GlobalLimiter
from qwed.engines.pool import EnginePool
from qwed.engines.protocol import EngineRequest
from qwed.engines.registry import EngineRow
from qwed.futures import Future
from qwed.model import Verdict

ROOT = Path(__file__).parents[3]
ROW = EngineRow(name="misbehaving", module="tests.unit.engines.misbehaving_engine")
TIMEOUT = 60.0


class FakeServer:
    """Server without a pool, connected to the limiter, which processes each message at once."""

    def __init__(self, bound: GlobalLimiter) -> None:
        self._bound = bound
        self._mine, self._theirs = bound.admit()
        self._permits = ConcurrencyClient(self._theirs)
        self._names: dict[int, str] = {}
        self.has: list[str] = []

    def claim(self, who: str, *, for_agent: bool = True) -> int:
        number = self._permits.claim(EngineJob(engine="x", deadline=0.0, for_agent=for_agent, who=who))
        self._names[number] = who
        self._bound.hear(self._mine)
        return number

    def drop(self, number: int) -> None:
        self._permits.drop(number)
        self._bound.hear(self._mine)

    def hears(self) -> list[str]:
        """Return the owners whose claims were granted since the last call."""
        return [self._names[number] for number in self._permits.granted() or ()]

    def dies(self) -> None:
        self._theirs.close()
        if self._mine.fileno() >= 0:
            assert not self._bound.hear(self._mine)


class ManualTime:
    """Clock that is set by the test."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


OpenServers = Callable[..., tuple[FakeServer, FakeServer]]


@pytest.fixture
def two() -> Iterator[OpenServers]:
    """Two servers under one limiter."""
    with ExitStack() as stack:

        def opened(size: int, clock: ManualTime | None = None) -> tuple[FakeServer, FakeServer]:
            bound = GlobalLimiter(size, clock or ManualTime())
            servers = FakeServer(bound), FakeServer(bound)
            for server in servers:
                stack.callback(server.dies)
            return servers

        yield opened


def test_no_more_than_the_bound_work_at_once_and_what_is_given_back_goes_to_whoever_waits(two: OpenServers) -> None:
    one, other = two(2)
    numbers = [one.claim(who) for who in "ab"]
    assert (one.hears(), other.hears()) == (["a", "b"], [])
    other.claim("c")
    assert other.hears() == []
    one.drop(numbers[0])
    assert (one.hears(), other.hears()) == ([], ["c"])


def test_an_agent_that_works_leaves_the_last_place_to_another_on_whichever_server(two: OpenServers) -> None:
    one, other = two(3)
    for server in (one, other, one, other):
        server.claim("hostile")
    assert (one.hears(), other.hears()) == (["hostile"], ["hostile"])
    other.claim("honest")
    assert (one.hears(), other.hears()) == ([], ["honest"])


def test_without_an_agent_nobody_takes_the_last_place(two: OpenServers) -> None:
    one, other = two(2)
    one.claim("organisation", for_agent=False)
    other.claim("organisation", for_agent=False)
    other.claim("another", for_agent=False)
    assert (one.hears(), other.hears()) == (["organisation"], [])
    other.claim("agent")
    assert other.hears() == ["agent"]


def test_each_has_its_turn_however_much_one_server_asks(two: OpenServers) -> None:
    one, other = two(2)
    numbers = [one.claim(who) for who in "abaabb"]
    other.claim("c")
    for number in numbers[:3]:
        one.drop(number)
    assert (one.hears(), other.hears()) == (["a", "b", "a", "b"], ["c"])


def test_the_places_of_a_server_that_ended_are_free_and_its_claims_forgotten(two: OpenServers) -> None:
    one, other = two(2)
    for who in "abcd":
        one.claim(who)
    other.claim("e")
    other.claim("f")
    one.dies()
    assert other.hears() == ["e", "f"]


def test_what_is_given_up_before_it_was_granted_is_never_granted(two: OpenServers) -> None:
    one, other = two(2)
    one.claim("a")
    number = one.claim("b")
    other.drop(other.claim("c"))
    other.claim("d")
    one.drop(number)
    one.drop(number)
    assert other.hears() == ["d"]


def test_a_server_that_was_stopped_in_the_middle_keeps_its_places_no_longer_than_a_job_may_take(
    two: OpenServers,
) -> None:
    clock = ManualTime()
    one, other = two(2, clock)
    stopped = [one.claim(who) for who in "ab"]
    clock.now = 60.0
    other.claim("c")
    assert other.hears() == []
    clock.now = 71.0
    other.claim("d")
    assert other.hears() == ["c", "d"]
    for number in stopped:
        one.drop(number)
    other.claim("e")
    assert other.hears() == []


def test_words_arrive_in_whatever_pieces(two: OpenServers) -> None:
    bound = GlobalLimiter(2)
    mine, theirs = bound.admit()
    listening, client_end = socket.socketpair()
    permits = ConcurrencyClient(client_end)
    permits.claim(EngineJob(engine="x", deadline=0.0, for_agent=True, who="a"))
    for byte in listening.recv(100):
        theirs.send(bytes([byte]))
        assert bound.hear(mine)
    assert len(theirs.recv(100)) == 8
    for end in (theirs, client_end, listening):
        end.close()
    assert not bound.hear(mine)


def test_who_keeps_the_bound_may_be_stopped_for_a_while_and_hears_everything_later() -> None:
    bound = GlobalLimiter(2)
    mine, theirs = bound.admit()
    permits = ConcurrencyClient(theirs)
    for _ in range(5_000):
        permits.drop(permits.claim(EngineJob(engine="x", deadline=0.0, for_agent=True, who="a")))
    last = permits.claim(EngineJob(engine="x", deadline=0.0, for_agent=True, who="a"))
    while select.select([mine], [], [], 0)[0]:
        assert bound.hear(mine)
        permits.flush()
    granted = []
    while (more := permits.granted()) != []:
        granted += more or []
    assert last in granted
    theirs.close()
    assert not bound.hear(mine)


@contextmanager
def run_limiter(bound: GlobalLimiter) -> Iterator[Callable[[], socket.socket]]:
    """Run the limiter on a thread for every admitted server."""
    ends: list[socket.socket] = []
    wakeup, wakeup_sender = socket.socketpair()

    def serve() -> None:
        running = True
        while running:
            ready = select.select([wakeup, *ends], [], [])[0]
            closed = [end for end in ready if end is not wakeup and not bound.hear(end)]
            ends[:] = [end for end in ends if end not in closed]
            running = wakeup not in ready or wakeup.recv(1) != b""

    def admit() -> socket.socket:
        mine, theirs = bound.admit()
        ends.append(mine)
        wakeup_sender.send(b"!")
        return theirs

    thread = threading.Thread(target=serve)
    thread.start()
    yield admit
    wakeup_sender.close()
    thread.join()
    wakeup.close()
    for end in ends:
        end.close()


@pytest.fixture
def admit() -> Iterator[Callable[[], socket.socket]]:
    with run_limiter(GlobalLimiter(2)) as admit_server:
        yield admit_server


@pytest.fixture
def pools(admit: Callable[[], socket.socket]) -> Iterator[tuple[EnginePool, EnginePool]]:
    """Two pools of two workers each under a limit of two."""
    opened = tuple(EnginePool([ROW], size=2, memory_mb=128, bound=admit()) for _ in range(2))
    for pool in opened:
        pool.start()
    yield opened[0], opened[1]
    for pool in opened:
        pool.close()


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "fifo")
    return tmp_path / "fifo"


def ask(pool: EnginePool, behaviour: str, who: str, seconds: float = TIMEOUT, **parameters: str) -> Future[Verdict]:
    return pool.submit(
        ROW.name, EngineRequest(query=behaviour, parameters=parameters), seconds, for_agent=True, who=who
    )


def occupy(pool: EnginePool, who: str, fifo: Path) -> Future[Verdict]:
    ticket = ask(pool, "tell and hang", who, fifo=str(fifo))
    assert fifo.read_text()
    return ticket


def test_two_pools_have_no_more_at_work_than_the_bound(pools: tuple[EnginePool, EnginePool], fifo: Path) -> None:
    one, other = pools
    occupy(one, "a", fifo)
    hanging = occupy(other, "b", fifo)
    assert ask(one, "echo", "c", 0.3).wait_result(TIMEOUT).result == {"error": "timeout"}
    assert ask(other, "echo", "d", 0.3).wait_result(TIMEOUT).result == {"error": "timeout"}
    waiting = ask(one, "echo", "e")
    other.close()
    assert hanging.done
    assert waiting.wait_result(TIMEOUT).verified


def test_an_agent_with_hard_questions_leaves_a_worker_to_another_on_the_other_server(
    pools: tuple[EnginePool, EnginePool], fifo: Path
) -> None:
    one, other = pools
    occupy(one, "hostile", fifo)
    hanging = [ask(pool, "hang", "hostile") for pool in (one, other)]
    answers = [ask(pool, "echo", "honest").wait_result(TIMEOUT) for pool in (one, other) for _ in range(10)]
    assert all(answer.verified for answer in answers)
    assert not [ticket for ticket in hanging if ticket.done]


def test_every_end_of_a_job_gives_its_place_back(pools: tuple[EnginePool, EnginePool]) -> None:
    for behaviour in ("abort", "raise", "hang", "leave at once", "eat", "claim a huge frame", "echo"):
        for pool in pools:
            seconds = 0.3 if behaviour in ("hang", "claim a huge frame") else TIMEOUT
            assert ask(pool, behaviour, "a", seconds).wait_result(TIMEOUT).verified == (behaviour == "echo")
    tickets = [ask(pool, "echo", who) for pool in pools for who in "abcdef"]
    assert all(ticket.wait_result(TIMEOUT).verified for ticket in tickets)


def test_questions_handed_over_together_take_one_place_and_give_it_back(admit: Callable[[], socket.socket]) -> None:
    rows = [dataclasses.replace(ROW, batch_size=4)]
    pools = [EnginePool(rows, size=2, memory_mb=128, bound=admit()) for _ in range(2)]
    for pool in pools:
        pool.start()
    behaviours = ["echo", "echo", "abort", "echo", "raise", "echo"] * 3
    tickets = [(behaviour, ask(pool, behaviour, who)) for behaviour in behaviours for pool in pools for who in "ab"]
    assert [ticket.wait_result(TIMEOUT).verified for _, ticket in tickets] == [
        behaviour == "echo" for behaviour, _ in tickets
    ]
    assert all(ask(pool, "echo", who).wait_result(TIMEOUT).verified for pool in pools for who in "cd")
    for pool in pools:
        pool.close()


def test_a_server_that_is_killed_gives_its_places_back(admit: Callable[[], socket.socket], tmp_path: Path) -> None:
    fifos = [tmp_path / who for who in "ab"]
    for fifo in fifos:
        os.mkfifo(fifo)
    end = admit()
    program = f"""
import socket, sys
sys.path.insert(0, {str(ROOT)!r})
from qwed.engines.pool import EnginePool
from tests.unit.engines.test_global_concurrency import ROW, ask
pool = EnginePool([ROW], size=3, bound=socket.socket(fileno={end.fileno()}))
pool.start()
tickets = [ask(pool, "tell and hang", fifo, fifo=fifo) for fifo in {[str(fifo) for fifo in fifos]!r}]
sys.stdin.read()
"""
    with (
        subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, pass_fds=[end.fileno()]) as killed,
        end,
    ):
        pids = [fifo.read_text() for fifo in fifos]
        end.close()
        pool = EnginePool([ROW], size=2, bound=admit())
        pool.start()
        assert ask(pool, "echo", "c", 0.5).wait_result(TIMEOUT).result == {"error": "timeout"}
        waiting = ask(pool, "echo", "c")
        killed.kill()
        assert waiting.wait_result(TIMEOUT).verified
        pool.close()
    assert len(set(pids)) == 2
