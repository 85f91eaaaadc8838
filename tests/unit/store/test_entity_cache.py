"""Entity cache: a value read before a change is never cached after it."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from qwed.domain.change_parts import (
    AgentChanged,
    ApprovalRequest,
    ChangePart,
    Conflict,
    ElevationRequested,
    KeyAdded,
    KeyRevoked,
    OrganisationHalted,
    PolicySetChanged,
    ToolChanged,
    Webhook,
    WebhookChanged,
)
from qwed.domain.policy_set import NO_POLICIES, PolicyDocument
from qwed.model import Trust
from tests.support.manual_clock import ManualClock
from tests.support.store_caches import cached_entities, forget_entities
from tests.support.store_parts import StoreParts
from tests.support.stores import ORGANISATION, StoreFixture, agent_of, owner_key

SECOND = owner_key("key_2", prefix="qwed_live_b")
POLICIES = NO_POLICIES.with_documents([PolicyDocument("refunds", "policy: refunds\n")])
HOOK = Webhook(ORGANISATION, "https://example.com/", ("pending",), "s", 1.0)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[StoreFixture]:
    opened = StoreFixture("file", tmp_path / "data", ManualClock())
    opened.register(agent_of())
    opened.change(KeyAdded(SECOND))
    opened.reopened()
    yield opened
    opened.store.close()


class Holding:
    """Connection on which the reads of one thread wait, with their result, until the test releases them."""

    def __init__(self, real: Any, read: threading.Event) -> None:
        self._real = real
        self.held: int | None = None
        self.read, self.go = read, threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def execute(self, statement: str, values: tuple[Any, ...]) -> Any:
        cursor = self._real.execute(statement, values)
        if threading.get_ident() != self.held:
            return cursor
        rows = cursor.fetchall()
        self.read.set()
        assert self.go.wait(30)
        return _Rows(rows)


class _Rows:
    def __init__(self, rows: list[Any]) -> None:
        self._rows = rows

    def fetchone(self) -> Any:
        return self._rows[0] if self._rows else None

    def fetchall(self) -> list[Any]:
        return self._rows


class Race(NamedTuple):
    """Cached value, and the change that overtakes its read."""

    look: Callable[[Any], Any]
    part: ChangePart
    old: Any
    new: Any


AGENT = agent_of()
LOWERED = replace(AGENT, trust=Trust.UNTRUSTED)
RACES = {
    "agent": Race(lambda store: store.find_agent("agent_1"), AgentChanged(AGENT, LOWERED), AGENT, LOWERED),
    "key": Race(lambda store: store.find_key("qwed_live_b"), KeyRevoked(SECOND, 5.0), SECOND, None),
    "keys": Race(
        lambda store: [key.revoked_at for key in store.list_keys(ORGANISATION)],
        KeyRevoked(SECOND, 5.0),
        [None, None],
        [None, 5.0],
    ),
    "halt": Race(lambda store: store.halted(ORGANISATION), OrganisationHalted(ORGANISATION, 5.0), False, True),
    "tools": Race(lambda s: s.tool_rows(ORGANISATION), ToolChanged(ORGANISATION, "t", b"1"), {}, {"t": b"1"}),
    "policies": Race(
        lambda store: store.policies(ORGANISATION),
        PolicySetChanged(ORGANISATION, NO_POLICIES, POLICIES, 5.0, "key_1"),
        NO_POLICIES,
        POLICIES,
    ),
    "webhook": Race(lambda store: store.webhook(ORGANISATION), WebhookChanged(ORGANISATION, HOOK), None, HOOK),
}


@pytest.mark.parametrize("race", RACES.values(), ids=RACES)
def test_a_miss_that_is_read_while_a_change_is_made_never_brings_the_old_value_back(
    disk: StoreFixture, race: Race
) -> None:
    store = disk.store
    read = threading.Event()
    parts = StoreParts(store)
    real = parts.reader, parts.report_reader
    parts.reader, parts.report_reader = reader, browser = Holding(real[0], read), Holding(real[1], read)

    def look() -> Any:
        reader.held = browser.held = threading.get_ident()
        return race.look(store)

    with ThreadPoolExecutor(2) as threads:
        looking = threads.submit(look)
        assert read.wait(30)
        changing = threads.submit(disk.change, race.part)
        # A change that does not wait for the read ends before it; one that waits ends after it.
        wait([changing], 0.05)
        reader.go.set()
        browser.go.set()
        seen, index = looking.result(30), changing.result(30)
    assert index == 1
    assert seen in (race.old, race.new)
    assert race.look(store) == race.new
    parts.reader, parts.report_reader = real
    disk.reopened()
    assert race.look(disk.store) == race.new


@pytest.mark.parametrize("race", RACES.values(), ids=RACES)
def test_whoever_looks_while_changes_are_made_sees_them_in_order(disk: StoreFixture, race: Race) -> None:
    """Many threads read and clear while one changes: once the new value was seen, the old one never is again."""
    changed = threading.Event()
    together = threading.Barrier(5)

    def look() -> list[Any]:
        together.wait()
        seen = []
        while not changed.is_set():
            seen.append(race.look(disk.store))
        return [*seen, race.look(disk.store)]

    def change() -> None:
        together.wait()
        disk.change(race.part)
        changed.set()

    with ThreadPoolExecutor(5) as threads:
        looking = [threads.submit(look) for _ in range(4)]
        threads.submit(change).result(30)
        for one in looking:
            seen = one.result(30)
            assert seen[-1] == race.new
            first = seen.index(race.new)
            assert seen[:first] == [race.old] * first
            assert seen[first:] == [race.new] * (len(seen) - first)


def test_a_request_for_trust_is_remembered_from_the_moment_it_is_submitted(disk: StoreFixture) -> None:
    request = ApprovalRequest("apr_up", 0, 0, 0, 1.0, 2.0, "key_1", "trust_elevation", "{}")
    part = ElevationRequested(ORGANISATION, "agent_1", "act_up", request)
    with disk.stopped():
        submitted = disk.submit(part, activity_id="act_up")
        assert disk.change(part, activity_id="act_again") is Conflict.REQUESTED
    submitted.wait_result(30)
    forget_entities(disk.store)
    assert disk.change(part, activity_id="act_again") is Conflict.REQUESTED


def test_an_organisation_nobody_knows_is_halted(disk: StoreFixture) -> None:
    assert disk.store.halted("org_9")


def test_strangers_are_not_remembered(disk: StoreFixture) -> None:
    for number in range(50):
        assert disk.store.find_agent(f"agent_{number + 100}") is None
        assert disk.store.find_key(f"qwed_live_{number}") is None
    assert cached_entities(disk.store) == (0, 0)


def test_what_is_forgotten_is_read_again(disk: StoreFixture) -> None:
    agent = disk.store.find_agent("agent_1")
    disk.change(AgentChanged(agent, LOWERED), ToolChanged(ORGANISATION, "t", b"1"), WebhookChanged(ORGANISATION, HOOK))
    disk.change(OrganisationHalted(ORGANISATION, 5.0), KeyRevoked(SECOND, 5.0))
    forget_entities(disk.store)
    assert disk.store.find_agent("agent_1") == LOWERED
    assert disk.store.tool_rows(ORGANISATION) == {"t": b"1"}
    assert disk.store.webhook(ORGANISATION) == HOOK
    assert disk.store.halted(ORGANISATION)
    assert disk.store.find_key("qwed_live_b") is None
