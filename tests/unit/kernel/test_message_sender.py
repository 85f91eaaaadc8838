"""Ruling 4.14: who sends a message, and what proves it; who may send at all."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from qwed.gate import Gate
from qwed.kernel.answer import Problem
from qwed.kernel.case import Credentials
from qwed.kernel.change import Actor
from qwed.kernel.messages.boundary import StoreBoundary
from qwed.kernel.messages.message import Sender
from qwed.kernel.messages.sender import prove_sender
from qwed.kernel.people.organisations import NewKey, NewOrganisation, add_key, add_organisation
from qwed.kernel.wiring import close_services, open_services
from qwed.settings import Settings
from qwed.waiting import in_thread

NO_CREDENTIAL, UNKNOWN = "QWED-AUTH-001", "QWED-AUTH-002"


class House(NamedTuple):
    """An organisation with a key of each role, two agents and a trusted name; and the key of another organisation."""

    gate: Gate
    keys: dict[str, str]
    agents: dict[str, str]
    tokens: dict[str, str]

    def who(self, name: str, **shown: Any) -> Sender | Problem:
        return prove_sender(self.agents.get(name, name), Credentials(**shown), self.gate.services)

    def sender(self, name: str, **shown: Any) -> Sender:
        found = self.who(name, **shown)
        assert isinstance(found, Sender), found
        return found

    def refusal(self, name: str, **shown: Any) -> str:
        found = self.who(name, **shown)
        assert isinstance(found, Problem), found
        return found.code


def _in_cyrillic(name: str) -> str:
    return name.translate(str.maketrans("ae", "\u0430\u0435"))


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    opened = open_services(Settings(data_dir=tmp_path_factory.mktemp("data")), in_memory=True)
    gate, services = Gate(opened), opened.services
    owner = Actor("key_test", opened.organisation_id, "owner")
    keys = {}
    for role in ("owner", "member", "approver"):
        made = in_thread(add_key(role, role, owner, services), 30)
        assert isinstance(made, NewKey)
        keys[role] = made.text
    second = in_thread(add_organisation("second", owner, services), 30)
    assert isinstance(second, NewOrganisation)
    keys["of another organisation"] = second.owner_key
    registered = {name: gate.register_agent(name=name, principal_id="p") for name in ("ann", "bob")}
    gate.trust_agent("partner")
    agents = {name: each["agent_id"] for name, each in registered.items()}
    yield House(gate, keys, agents, {name: each["agent_token"] for name, each in registered.items()})
    close_services(services)


def test_the_token_of_an_agent_proves_that_agent(house: House) -> None:
    found = house.sender("ann", agent_token=house.tokens["ann"])
    assert found.agent is not None
    assert (found.by, found.agent.agent_id, found.proven) == (house.agents["ann"], house.agents["ann"], True)
    known = house.gate.services.store.find_agent(house.agents["ann"])
    assert house.sender("ann", agent_token="proven before", proven_agent=known) == found


@pytest.mark.parametrize("name", ["bob", "partner", "somebody else", "agent_000000000000000000000000"])
def test_the_token_of_an_agent_proves_no_other_name(house: House, name: str) -> None:
    assert house.refusal(name, agent_token=house.tokens["ann"]) == UNKNOWN
    known = house.gate.services.store.find_agent(house.agents["ann"])
    assert house.refusal(name, agent_token=house.tokens["ann"], proven_agent=known) == UNKNOWN


@pytest.mark.parametrize("name", ["ann", "partner", "somebody else"])
def test_the_key_of_an_owner_proves_any_name(house: House, name: str) -> None:
    found = house.sender(name, api_key=house.keys["owner"])
    assert found.proven
    assert (found.agent is not None) is (name == "ann")
    assert found.key is not None
    assert found.by == found.key.key_id


@pytest.mark.parametrize("role", ["member", "approver"])
def test_any_other_key_speaks_for_names_that_are_nobodys(house: House, role: str) -> None:
    assert house.refusal("ann", api_key=house.keys[role]) == UNKNOWN
    assert house.refusal("partner", api_key=house.keys[role]) == UNKNOWN
    found = house.sender("somebody else", api_key=house.keys[role])
    assert (found.proven, found.agent) == (False, None)


@pytest.mark.parametrize("spelt", [str.upper, "{} ".format, "{}\u200b".format, "{}\ufe0f".format, _in_cyrillic])
@pytest.mark.parametrize("name", ["ann", "partner"])
def test_a_name_that_would_be_taken_for_one_that_has_to_be_proven_has_to_be_too(
    house: House, name: str, spelt: Callable[[str], str]
) -> None:
    disguised = spelt(house.agents.get(name, name))
    assert house.refusal(disguised, api_key=house.keys["member"]) == UNKNOWN
    assert house.sender(disguised, api_key=house.keys["of another organisation"]).agent is None
    # Trust is in the very name: an owner who spells it otherwise has the message looked into.
    assert not house.gate.services.store.boundary(house.gate.organisation_id).trusts(disguised)


def test_an_agent_of_another_organisation_is_nobody_here(house: House) -> None:
    key = house.keys["of another organisation"]
    for name in ("ann", "partner"):
        found = house.sender(name, api_key=key)
        assert found.agent is None
        assert found.organisation_id != house.gate.organisation_id
    assert house.refusal("ann", api_key=key, agent_token=house.tokens["ann"]) == UNKNOWN


def test_where_both_are_shown_both_must_hold(house: House) -> None:
    found = house.sender("ann", api_key=house.keys["member"], agent_token=house.tokens["ann"])
    assert found.proven
    assert found.key is not None
    assert found.by == found.key.key_id
    assert house.refusal("ann", api_key=house.keys["owner"], agent_token=house.tokens["bob"]) == UNKNOWN
    assert house.refusal("ann", api_key="qwed_live_unknown", agent_token=house.tokens["ann"]) == UNKNOWN


def test_whoever_shows_nothing_is_a_stranger(house: House) -> None:
    assert {house.refusal(name) for name in ("ann", "partner", "somebody else")} == {NO_CREDENTIAL}
    assert house.refusal("somebody else", api_key="qwed_live_unknown") == UNKNOWN


def test_the_process_itself_proves_any_name(house: House) -> None:
    found = house.sender("ann", organisation_id=house.gate.organisation_id)
    assert (found.by, found.proven) == ("gate", True)


@pytest.mark.parametrize(("name", "allowed"), [("ann", True), ("partner", True), ("Partner", False), ("else", False)])
def test_in_strict_mode_only_registered_and_trusted_agents_send(house: House, name: str, allowed: bool) -> None:
    services = replace(house.gate.services, settings=replace(house.gate.services.settings, a2a_strict=True))
    sender = house.sender(name, organisation_id=house.gate.organisation_id)
    name = house.agents.get(name, name)
    assert StoreBoundary(sender, services).evaluate(name, "bob", "general")[0] is allowed
    assert StoreBoundary(sender, house.gate.services).evaluate(name, "bob", "general")[0]


def test_all_spellings_of_two_names_have_one_rate(house: House) -> None:
    services = replace(house.gate.services, settings=replace(house.gate.services.settings, a2a_messages_per_minute=2))
    sender = house.sender("else", organisation_id=house.gate.organisation_id)
    pairs = [("shop", "till"), ("Shop", "TILL"), ("shop\u200b", "till"), ("\uff53hop", "ti\ufe0fll")]
    asked = [StoreBoundary(sender, services).evaluate(*pair, "general")[0] for pair in pairs]
    assert asked == [True, True, False, False]


def test_without_a_rate_nothing_is_counted(house: House) -> None:
    services = replace(house.gate.services, settings=replace(house.gate.services.settings, a2a_messages_per_minute=0))
    sender = house.sender("else", organisation_id=house.gate.organisation_id)
    assert all(StoreBoundary(sender, services).evaluate("else", "x", "general")[0] for _ in range(200))
