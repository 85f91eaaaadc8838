"""Block and trust lists: each change is logged, and organisations do not see each other's lists (ruling 4.14)."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

import qwed
from qwed.domain import access_lists as access_lists_module
from qwed.domain.access_lists import ListEntry, ListName
from qwed.futures import run_in_thread
from qwed.gate import Gate, GateError
from qwed.kernel.a2a import access_lists
from qwed.kernel.a2a.access_lists import AgentRequest, PairRequest, lists_of, put_entry
from qwed.kernel.admin.organisations import NewOrganisation, add_organisation
from qwed.kernel.answer import Problem
from qwed.kernel.audit_change import Actor
from qwed.kernel.request_schema import parse

NOTHING: dict[str, list[Any]] = {"blocks": [], "pairs": [], "trusted": []}


@pytest.fixture
def gate() -> Iterator[Gate]:
    with qwed.open(":memory:") as opened:
        yield opened


def _events(gate: Gate) -> list[tuple[str, Any]]:
    return [(entry.event, entry.change) for entry in reversed(gate.list_changes())]


def test_each_change_of_a_list_is_logged_with_its_names_sealed(gate: Gate) -> None:
    gate.block_agent("eve")
    gate.block_pair("ann", "bob")
    gate.trust_agent("partner")
    assert gate.a2a_lists() == {
        "blocks": ["eve"],
        "pairs": [{"sender": "ann", "receiver": "bob"}],
        "trusted": ["partner"],
    }
    gate.unblock_agent("eve")
    gate.unblock_pair("ann", "bob")
    gate.revoke_agent("partner")
    assert gate.a2a_lists() == NOTHING
    assert _events(gate)[-6:] == [
        ("agent_blocked", {"agent_id": "eve"}),
        ("pair_blocked", {"sender": "ann", "receiver": "bob"}),
        ("sender_trusted", {"agent_id": "partner"}),
        ("agent_unblocked", {"agent_id": "eve"}),
        ("pair_unblocked", {"sender": "ann", "receiver": "bob"}),
        ("sender_revoked", {"agent_id": "partner"}),
    ]
    leaves = "".join(entry.leaf for entry in gate.services.store.entries(gate.organisation_id, 0, 100))
    assert "partner" not in leaves


def test_asking_twice_is_no_mistake_and_is_logged_once(gate: Gate) -> None:
    gate.block_agent("eve")
    before = len(_events(gate))
    gate.block_agent("eve")
    assert len(_events(gate)) == before


def test_what_is_not_there_is_not_found(gate: Gate) -> None:
    gate.block_agent("eve")
    for remove, name in ((gate.unblock_agent, "EVE"), (gate.revoke_agent, "eve")):
        with pytest.raises(GateError, match="is not on the list") as caught:
            remove(name)
        assert caught.value.code == "QWED-REQ-007"


def test_a_list_that_is_full_is_named(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_lists, "MAX_LIST_ENTRIES", 2)
    gate.trust_agent("a")
    gate.trust_agent("b")
    with pytest.raises(GateError, match="`trusted` has 2 entries, which is the maximum"):
        gate.trust_agent("c")
    gate.block_agent("c")
    assert access_lists_module.MAX_LIST_ENTRIES == 10_000


@pytest.mark.parametrize(
    ("name", "raw", "message"),
    [
        (ListName.BLOCKS, None, "must be an object"),
        (ListName.BLOCKS, {}, "`agent_id` is required"),
        (ListName.BLOCKS, {"agent_id": "a", "why": "b"}, "unknown field"),
        (ListName.BLOCKS, {"agent_id": ""}, "1 to 256"),
        (ListName.BLOCKS, {"agent_id": "a" * 257}, "1 to 256"),
        (ListName.BLOCKS, {"agent_id": 7}, "1 to 256"),
        (ListName.BLOCKS, {"agent_id": "a\nb"}, "readable"),
        (ListName.BLOCKS, {"agent_id": "a\x00"}, "readable"),
        (ListName.BLOCKS, {"agent_id": "\u200b"}, "readable"),
        (ListName.BLOCKS, {"agent_id": "   "}, "readable"),
        (ListName.BLOCKS, {"agent_id": "\ud800"}, "readable"),
        (ListName.TRUSTED, {"agent_id": "sk-proj-" + "a1B2" * 12}, "carries a secret"),
        (ListName.PAIRS, {"sender": "a"}, "`receiver` is required"),
        (ListName.PAIRS, {"agent_id": "a"}, "unknown field"),
    ],
)
def test_an_entry_that_is_none_is_refused_by_name(name: ListName, raw: Any, message: str) -> None:
    refused = parse(raw, PairRequest if name is ListName.PAIRS else AgentRequest)
    assert isinstance(refused, Problem)
    assert message in refused.message


def test_two_organisations_see_nothing_of_each_others_lists(gate: Gate) -> None:
    services = gate.services
    second = run_in_thread(add_organisation("second", Actor("gate", gate.organisation_id, "owner"), services), 30)
    assert isinstance(second, NewOrganisation)
    gate.block_agent("eve")
    theirs = Actor("key_2", second.organisation_id, "owner")
    assert run_in_thread(put_entry(ListEntry(ListName.TRUSTED, "eve"), theirs, services), 30) == ListEntry(
        ListName.TRUSTED, "eve"
    )
    assert msgspec.to_builtins(lists_of(second.organisation_id, services)) == {
        "blocks": (),
        "pairs": (),
        "trusted": ("eve",),
    }
    assert gate.a2a_lists() == {**NOTHING, "blocks": ["eve"]}
    assert services.store.access_lists(gate.organisation_id).blocks("eve")
    assert not services.store.access_lists(second.organisation_id).blocks("eve")
