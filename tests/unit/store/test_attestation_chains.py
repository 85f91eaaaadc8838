"""A chain has one next link: the second of two gets a conflict, and a failed write adds none."""

import threading
from dataclasses import replace
from typing import Any

import pytest

from qwed.domain.change_parts import Conflict
from qwed.domain.write_set import ChainLink, Committed, Reservation
from qwed.model import Decision
from qwed.store import memory_state
from qwed.store.protocol import StoreError
from tests.support.store_caches import cached_chains
from tests.support.stores import ORGANISATION, StoreFixture, agent_of, owner_key


def _agent(store_fixture: StoreFixture) -> Any:
    return store_fixture.store.find_agent("agent_1")


def _settlement(store_fixture: StoreFixture, link: ChainLink, conversation: str | None = None) -> Any:
    """Return a commit request for the next link."""
    reservation = store_fixture.reserve(_agent(store_fixture), 1, conversation or link.attestation_id)
    assert isinstance(reservation, Reservation)
    return store_fixture.write_set(_agent(store_fixture), reservation, link=link)


def _next(store_fixture: StoreFixture, name: str, chain_id: str = "ch") -> ChainLink:
    links, last = store_fixture.chain(chain_id)
    return ChainLink(chain_id, links, last, f"att_{name}")


def _put(store_fixture: StoreFixture, link: ChainLink) -> Any:
    return store_fixture.outcome(store_fixture.store.commit(_settlement(store_fixture, link)))


def test_a_chain_begins_empty_and_grows_link_by_link(store_fixture: StoreFixture) -> None:
    assert store_fixture.chain() == (0, None)
    for number in range(4):
        assert isinstance(_put(store_fixture, _next(store_fixture, str(number))), Committed)
        assert store_fixture.chain() == (number + 1, f"att_{number}")


def test_a_link_is_seen_from_the_moment_it_is_submitted(disk: StoreFixture) -> None:
    with disk.stopped():
        first = disk.store.commit(_settlement(disk, _next(disk, "a")))
        assert disk.chain() == (1, "att_a")
        second = disk.store.commit(_settlement(disk, _next(disk, "b")))
    assert [ticket.wait_result(30).log_index for ticket in (first, second)] == [0, 1]
    assert disk.reopened().chain() == (2, "att_b")


@pytest.mark.parametrize("on_its_way", [True, False], ids=["on its way", "kept"])
def test_of_two_who_want_to_be_the_next_link_the_second_is_told(disk: StoreFixture, on_its_way: bool) -> None:
    mine, theirs = _next(disk, "mine"), _next(disk, "theirs")
    request = _settlement(disk, mine)
    if on_its_way:
        with disk.stopped():
            ticket, second = disk.store.commit(_settlement(disk, theirs)), disk.store.commit(request)
        ticket.wait_result(30)
    else:
        _put(disk, theirs)
        second = disk.store.commit(request)
    assert disk.outcome(second) is Conflict.STALE
    # The step is still reserved, and the decision becomes a later link of the same chain.
    again = disk.write_set(_agent(disk), request.effects.reservation, link=_next(disk, "mine"))
    assert disk.store.commit(again).wait_result(30).log_index == 1
    assert disk.chain() == (2, "att_mine")


WRONG = {
    "too early": ChainLink("ch", 0, None, "att_x"),
    "too late": ChainLink("ch", 3, "att_b", "att_x"),
    "after another": ChainLink("ch", 2, "att_a", "att_x"),
    "after nobody": ChainLink("ch", 2, None, "att_x"),
    "of a chain that is not there": ChainLink("other", 1, "att_b", "att_x"),
}


@pytest.mark.parametrize("restart", [False, True], ids=["as it was left", "after a restart"])
@pytest.mark.parametrize("link", WRONG.values(), ids=WRONG)
def test_a_link_out_of_its_place_is_refused_and_nothing_is_charged(
    disk: StoreFixture, link: ChainLink, restart: bool
) -> None:
    for name in "ab":
        _put(disk, _next(disk, name))
    if restart:
        disk.reopened()
    before = disk.spent(_agent(disk))
    assert _put(disk, link) is Conflict.STALE
    assert disk.spent(_agent(disk)) == before
    assert disk.chain() == (2, "att_b")
    assert disk.store.log_size(ORGANISATION) == 2


def test_many_who_add_to_one_chain_make_one_chain(disk: StoreFixture) -> None:
    agents = [disk.register(agent_of(f"agent_of_{number}")) for number in range(4)]

    def add(agent: Any) -> None:
        for step in range(1, 11):
            reservation = disk.reserve(agent, step)
            assert isinstance(reservation, Reservation)
            outcome: Any = Conflict.STALE
            while outcome is Conflict.STALE:
                link = _next(disk, f"{agent.agent_id}_{step}")
                outcome = disk.outcome(disk.store.commit(disk.write_set(agent, reservation, link=link)))

    threads = [threading.Thread(target=add, args=(agent,)) for agent in agents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    [last] = disk.rows("SELECT attestation_id FROM activities ORDER BY log_index DESC LIMIT 1")
    assert disk.chain() == (40, last[0])
    assert disk.reopened().chain() == (40, last[0])


def test_chains_and_organisations_do_not_meet(store_fixture: StoreFixture) -> None:
    store_fixture.store.add_organisation(
        "org_2", "second", 1.0, owner_key("key_2", "org_2", "qwed_live_b")
    ).wait_result(30)
    store_fixture.register(replace(agent_of("agent_2"), organisation_id="org_2"))
    _put(store_fixture, _next(store_fixture, "a"))
    _put(store_fixture, _next(store_fixture, "b", "another"))
    assert [store_fixture.chain(name) for name in ("ch", "another")] == [(1, "att_a"), (1, "att_b")]
    assert store_fixture.chain(agent_id="agent_2") == (0, None)


@pytest.mark.parametrize("chain_id", ["a\0", "\0", "é", "x" * 256], ids=ascii)
def test_a_chain_may_be_called_anything(disk: StoreFixture, chain_id: str) -> None:
    if disk.kind == "postgres" and "\0" in chain_id:
        pytest.skip("no text of PostgreSQL holds it, and the kernel files chains under keyed names")
    _put(disk, _next(disk, "a", chain_id))
    assert disk.reopened().chain(chain_id) == (1, "att_a")
    assert disk.chain("a") == (0, None)


def test_a_link_that_could_not_be_written_is_none_and_the_next_one_takes_its_place(disk: StoreFixture) -> None:
    _put(disk, _next(disk, "a"))
    links = (_next(disk, "b"), ChainLink("ch", 2, "att_b", "att_c"))
    write_sets = [_settlement(disk, link) for link in links]
    with disk.broken():
        with disk.held():  # the failing write waits for this lock, so the second one builds on the first
            tickets = [disk.store.commit(write_set) for write_set in write_sets]
        for ticket in tickets:
            with pytest.raises(StoreError):
                ticket.wait_result(30)
    assert disk.chain() == (1, "att_a")
    assert isinstance(_put(disk, _next(disk, "d")), Committed)
    assert disk.reopened().chain() == (2, "att_d")


def test_what_is_refused_for_another_reason_is_no_link(disk: StoreFixture) -> None:
    reservation = disk.reserve(_agent(disk), 1)
    assert isinstance(reservation, Reservation)
    disk.manual_clock.advance(31)  # past its lease
    outcome = disk.store.commit(disk.write_set(_agent(disk), reservation, link=_next(disk, "a")))
    assert disk.outcome(outcome) is Conflict.LEASE_EXPIRED
    assert disk.chain() == (0, None)


def test_what_denies_is_not_asked_for_its_link(store_fixture: StoreFixture) -> None:
    assert isinstance(store_fixture.settle(_agent(store_fixture), None, Decision.DENIED), Committed)
    assert store_fixture.chain() == (0, None)


def test_no_more_chains_are_kept_in_mind_than_there_may_be(
    store_fixture: StoreFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client may name any number of chains."""
    monkeypatch.setattr(memory_state, "MAX_CACHED_CHAINS", 5)
    for number in range(20):
        _put(store_fixture, _next(store_fixture, str(number), f"ch{number}"))
        assert cached_chains(store_fixture.store) <= 6
    assert [store_fixture.chain(f"ch{number}") for number in (0, 19)] == [
        (1, "att_0"),
        (1, "att_19"),
    ]


def test_a_chain_on_its_way_is_kept_in_mind_however_many_there_are(
    disk: StoreFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_state, "MAX_CACHED_CHAINS", 2)
    with disk.stopped():
        tickets = [disk.store.commit(_settlement(disk, _next(disk, str(number), f"ch{number}"))) for number in range(9)]
        assert [disk.chain(f"ch{number}")[0] for number in range(9)] == [1] * 9
    for ticket in tickets:
        ticket.wait_result(30)
    _put(disk, _next(disk, "x", "chx"))
    assert cached_chains(disk.store) <= 3
    assert [disk.chain(f"ch{number}")[0] for number in range(9)] == [1] * 9
