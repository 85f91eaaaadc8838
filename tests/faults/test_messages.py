"""P1-P4 for messages between agents: whatever fails, races or ends, nothing is forwarded that is not in the log."""

import itertools
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import qwed
from qwed.gate import Gate
from qwed.kernel.answer import Problem
from qwed.kernel.messages.carrying import STAGES
from qwed.kernel.messages.message import ERROR_HANDLER, Carried, Message, Ruled, Sender
from qwed.kernel.wiring import close_services, open_services
from qwed.settings import Settings
from qwed.store.protocol import StoreError
from tests.support.clock import HandClock
from tests.support.failing import Failing
from tests.support.figures import Figure, campaign
from tests.support.post import FINE, Post

FAILURES = [
    RuntimeError("surprise"),
    MemoryError(),
    KeyError("missing"),
    OSError(28, "no space"),
    AssertionError("never"),
]
WAYS = [pytest.param(failure, id=type(failure).__name__) for failure in FAILURES]
DOWN = "QWED-SYS-002"
PLACES = [*(stage.__name__ for stage in STAGES), "judge", "settle"]


@pytest.fixture(scope="module", params=["memory", "file"])
def post(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Post]:
    """One for all: whatever failed before, the next message finds nothing held."""
    settings = Settings(data_dir=tmp_path_factory.mktemp("post") / "data", a2a_messages_per_minute=0)
    opened = open_services(settings, in_memory=request.param == "memory", clock=HandClock().clock())
    yield Post(Gate(opened), opened.services)
    close_services(opened.services)


in_memory = pytest.mark.parametrize("post", ["memory"], indirect=True, scope="module")


@pytest.fixture
def ann(post: Post) -> str:
    return str(
        post.gate.register_agent(name="ann", principal_id="p", budget={"max_requests_per_hour": 100})["agent_id"]
    )


def _raises_at(place: str, failure: BaseException, *, always: bool = False) -> Callable[[str], None]:
    left = itertools.count()

    def hook(name: str) -> None:
        if name == place and (always or next(left) == 0):
            raise failure

    return hook


def _require_free(post: Post, ann: str, requests: int) -> None:
    """Nothing is held, and the very step that was refused is there to be used."""
    store: Any = post.services.store
    assert store._live._reservations == {}
    assert store.spent(ann, post.services.clock.now()).requests_hour <= requests
    assert post.send(ann, "bob", "once more", conversation_id="c", step_number=1, judge=FINE).ruled.forwarded


@in_memory
@pytest.mark.parametrize("failure", WAYS[:2])
@pytest.mark.parametrize("place", PLACES)
def test_a_surprise_on_the_way_is_a_refusal_that_is_kept(post: Post, ann: str, place: str, failure: Exception) -> None:
    broken = replace(post.services, at_stage=_raises_at(place, failure))
    refused = post.send(ann, "bob", conversation_id="c", step_number=1, judge=FINE, services=broken)
    assert (refused.ruled.forwarded, refused.ruled.failed, refused.ruled.engine) == (False, True, ERROR_HANDLER)
    assert refused.ruled.details["code"] == "QWED-AGENT-005"
    assert post.gate.get_agent_activity(ann, limit=1)[0].activity_id == refused.activity_id
    _require_free(post, ann, 1)


@in_memory
@pytest.mark.parametrize("failure", WAYS)
@pytest.mark.parametrize("registered", [True, False])
def test_a_judge_that_raises_forwards_nothing(post: Post, ann: str, failure: Exception, registered: bool) -> None:
    async def judge(_message: Message, _sender: Sender) -> Ruled:
        raise failure

    refused = post.send(ann if registered else "crm", "bob", conversation_id="c", step_number=1, judge=judge)
    assert (refused.ruled.forwarded, refused.ruled.engine) == (False, ERROR_HANDLER)
    _require_free(post, ann, 1)


@in_memory
@pytest.mark.parametrize("registered", [True, False])
@pytest.mark.parametrize("place", ["judge", "settle"])
def test_what_goes_on_failing_is_no_verdict_at_all(post: Post, ann: str, place: str, registered: bool) -> None:
    store = Failing(post.services.store, "settle" if registered else "change", RuntimeError("surprise"))
    broken = replace(post.services, store=store, at_stage=_raises_at(place, RuntimeError("surprise"), always=True))
    refused = post.tried(ann if registered else "crm", "bob", conversation_id="c", step_number=1, services=broken)
    assert isinstance(refused, Problem)
    assert (refused.code, refused.retry_after) == (DOWN, 1)
    _require_free(post, ann, 0)


@in_memory
@pytest.mark.parametrize("registered", [True, False])
@pytest.mark.parametrize(
    "method",
    ["settle", "change", "reserve_step", "hold", "boundary", "take_token", "last_said", "find_agent", "halted"],
)
def test_a_store_that_fails_forwards_nothing(post: Post, ann: str, method: str, registered: bool) -> None:
    limited = replace(post.services.settings, a2a_messages_per_minute=60)
    store = Failing(post.services.store, method, StoreError("could not write"))
    sender = ann if registered else "crm"
    broken = replace(post.services, store=store, settings=limited)
    outcome = post.tried(sender, ann, conversation_id="c", step_number=1, services=broken)
    if store.calls:
        assert isinstance(outcome, Problem)
        assert outcome.code == DOWN
        _require_free(post, ann, 0)
    else:
        assert isinstance(outcome, Carried)
        assert post.services.store.log_size(post.gate.organisation_id) == outcome.log_index + 1


@pytest.mark.parametrize("post", ["file"], indirect=True, scope="module")
@pytest.mark.parametrize("registered", [True, False])
def test_a_disk_that_cannot_be_written_forwards_nothing(post: Post, ann: str, registered: bool) -> None:
    store: Any = post.services.store
    sender = ann if registered else "crm"
    post.send(sender, "bob", "so that its key is there")
    connection = store._writer._connection
    connection.execute("PRAGMA query_only = ON")
    refused = post.tried(sender, "bob", conversation_id="c", step_number=1)
    connection.execute("PRAGMA query_only = OFF")
    assert isinstance(refused, Problem)
    assert refused.code == DOWN
    _require_free(post, ann, 2)


# Races


def _at_once(send: Callable[[int], Carried], times: int = 32) -> list[Carried]:
    together = threading.Barrier(times)

    def call(caller: int) -> Carried:
        together.wait()
        return send(caller)

    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(call, range(times)))


def _kept(post: Post, ann: str) -> list[Any]:
    return [each for each in post.gate.get_agent_activity(ann, limit=1000) if each.decision == "APPROVED"]


FEW, MANY = 16, 32
"""Fewer than conduct is judged by; of so many the denials cost the agent trust, and what is judged then is refused."""


@pytest.mark.parametrize("callers", [FEW, MANY])
def test_of_many_on_one_step_one_is_forwarded(post: Post, ann: str, callers: int) -> None:
    sent = _at_once(lambda n: post.send(ann, "bob", f"{n}", conversation_id="c", step_number=1, judge=FINE), callers)
    forwarded = [each.activity_id for each in sent if each.ruled.forwarded]
    assert len(forwarded) == 1 or (callers == MANY and not forwarded)
    assert [each.activity_id for each in _kept(post, ann)] == forwarded


def test_of_thirty_two_that_name_no_step_each_gets_its_own(post: Post, ann: str) -> None:
    sent = _at_once(lambda n: post.send(ann, "bob", f"{n}", conversation_id="c", judge=FINE))
    assert all(each.ruled.forwarded for each in sent)
    assert sorted(each.step_number for each in _kept(post, ann)) == list(range(1, 33))


@pytest.mark.parametrize("callers", [FEW, MANY])
def test_of_many_that_say_the_same_two_are_forwarded(post: Post, ann: str, callers: int) -> None:
    sent = _at_once(lambda n: post.send(ann, "bob", "again" + " " * n, conversation_id="c", judge=FINE), callers)
    forwarded = sum(each.ruled.forwarded for each in sent)
    assert forwarded == 2 or (callers == MANY and forwarded < 2)


def test_of_thirty_two_as_many_are_forwarded_as_the_budget_has(post: Post) -> None:
    limits = {"max_requests_per_hour": 28}
    ann = str(post.gate.register_agent(name="ann", principal_id="p", budget=limits)["agent_id"])
    sent = _at_once(lambda n: post.send(ann, "bob", f"{n}", judge=FINE))
    codes = Counter(each.ruled.details.get("code") for each in sent)
    assert codes == {None: 28, "QWED-AGENT-BUDGET-002": 4}
    assert post.services.store.spent(ann, post.services.clock.now()).requests_hour == 28


@pytest.mark.parametrize("registered", [True, False])
def test_of_thirty_two_as_many_are_forwarded_as_the_pair_may_send(post: Post, ann: str, registered: bool) -> None:
    settings = replace(post.services.settings, a2a_messages_per_minute=20)
    services = replace(post.services, settings=settings)
    sender = ann if registered else "crm"
    sent = _at_once(lambda n: post.send(sender, "bob", f"{n}", services=services))
    assert sum(each.ruled.forwarded for each in sent) == 20
    assert sum(each.ruled.flood for each in sent) == 12


# Ends

_SENDING = """
import os, signal, sys
from dataclasses import replace
import qwed
from tests.support.post import FINE, Post

place, times, directory, sender, first = sys.argv[1], int(sys.argv[2]), *sys.argv[3:5], int(sys.argv[5])
left = times

def hook(name):
    global left
    if name == place:
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

gate = qwed.open(directory)
services = replace(gate.services, at_stage=hook)
for number in range(first, first + 30):
    carried = Post(gate, services).send(sender, "bob", f"number {number}", conversation_id=f"c{first}", judge=FINE)
    print(carried.activity_id, flush=True)
"""


def _end(directory: Path, place: str, times: int, sender: str, first: int) -> list[str]:
    """What was forwarded before the process was ended at its n-th message."""
    command = [sys.executable, "-c", _SENDING, place, str(times), str(directory), sender, str(first)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, env={**os.environ})
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    return ended.stdout.split()


def _require_kept(directory: Path, ann: str, told: list[str]) -> None:
    """Whatever was forwarded is in the log; the log holds together; one request was charged for each."""
    with qwed.open(directory) as gate:
        kept = [each.activity_id for each in gate.get_agent_activity(ann, limit=1000)]
        house = gate.list_changes(limit=1000)
        found = {*kept, *(each.activity_id for each in house)}
        assert set(told) <= found
        assert gate.get_agent_budget(ann)["requests"]["current_day"] == len(kept)
        assert gate.services.store.log_size(gate.organisation_id) == len(kept) + len(house)
        assert Post(gate, gate.services).send(ann, "bob", "and on", judge=FINE).ruled.forwarded


def _live_through(directory: Path, place: str, registered: bool, rounds: int) -> int:
    with qwed.open(directory) as gate:
        ann = str(gate.register_agent(name="ann", principal_id="p")["agent_id"])
    told: list[str] = []
    for number in range(rounds):
        told += _end(directory, place, 2 + number % 5, ann if registered else "crm", first=number * 100)
        _require_kept(directory, ann, told)
    return len(told)


ENDS = [("judge", True), ("settle", True), ("answer", True), ("judge", False), ("change", False), ("changed", False)]


def test_nothing_is_forwarded_that_is_not_in_the_log_when_the_process_ends(tmp_path: Path) -> None:
    assert _live_through(tmp_path / "data", "answer", registered=True, rounds=1) == 1


@pytest.mark.drill
@campaign("P1 P2 P3", "kills while messages are carried")
@pytest.mark.parametrize(("place", "registered"), ENDS)
def test_many_ends_in_a_row_lose_no_message_that_was_forwarded(
    tmp_path: Path, figure: Figure, place: str, registered: bool
) -> None:
    told = _live_through(tmp_path / "data", place, registered, rounds=20)
    figure("kills", 20)
    figure("messages forwarded before a kill", told)
