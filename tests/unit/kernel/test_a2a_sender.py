"""Authentication of a message's sender, and who may send at all (ruling 4.14)."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from qwed.futures import run_in_thread
from qwed.gate import Gate
from qwed.kernel.a2a.admission import verdict_without_content
from qwed.kernel.a2a.message import InterceptedMessage, Sender
from qwed.kernel.a2a.sender import prove_sender
from qwed.kernel.admin.organisations import NewKey, NewOrganisation, add_key, add_organisation
from qwed.kernel.answer import Problem
from qwed.kernel.audit_change import Actor
from qwed.kernel.bootstrap import close_services, open_services
from qwed.kernel.case import Credentials
from qwed.kernel.services import Services
from qwed.settings import Settings

NO_CREDENTIAL, UNKNOWN = "QWED-AUTH-001", "QWED-AUTH-002"


class Organisation(NamedTuple):
    """An organisation with a key of each role, two agents and a trusted name, and the key of another organisation."""

    gate: Gate
    keys: dict[str, str]
    agents: dict[str, str]
    tokens: dict[str, str]

    def prove(self, name: str, **credentials: Any) -> Sender | Problem:
        return prove_sender(self.agents.get(name, name), Credentials(**credentials), self.gate.services)

    def sender(self, name: str, **credentials: Any) -> Sender:
        sender = self.prove(name, **credentials)
        assert isinstance(sender, Sender), sender
        return sender

    def refusal(self, name: str, **credentials: Any) -> str:
        problem = self.prove(name, **credentials)
        assert isinstance(problem, Problem), problem
        return problem.code


def _in_cyrillic(name: str) -> str:
    return name.translate(str.maketrans("ae", "\u0430\u0435"))


@pytest.fixture(scope="module")
def organisation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    opened = open_services(Settings(data_dir=tmp_path_factory.mktemp("data")), in_memory=True)
    gate, services = Gate(opened), opened.services
    owner = Actor("key_test", opened.organisation_id, "owner")
    keys = {}
    for role in ("owner", "member", "approver"):
        new_key = run_in_thread(add_key(role, role, owner, services), 30)
        assert isinstance(new_key, NewKey)
        keys[role] = new_key.text
    second = run_in_thread(add_organisation("second", owner, services), 30)
    assert isinstance(second, NewOrganisation)
    keys["of another organisation"] = second.owner_key
    registered = {name: gate.register_agent(name=name, principal_id="p") for name in ("ann", "bob")}
    gate.trust_agent("partner")
    agents = {name: agent["agent_id"] for name, agent in registered.items()}
    yield Organisation(gate, keys, agents, {name: agent["agent_token"] for name, agent in registered.items()})
    close_services(services)


def test_the_token_of_an_agent_proves_that_agent(organisation: Organisation) -> None:
    sender = organisation.sender("ann", agent_token=organisation.tokens["ann"])
    assert sender.agent is not None
    assert (sender.actor_id, sender.agent.agent_id, sender.proven) == (
        organisation.agents["ann"],
        organisation.agents["ann"],
        True,
    )
    agent = organisation.gate.services.store.find_agent(organisation.agents["ann"])
    assert organisation.sender("ann", agent_token="proven before", proven_agent=agent) == sender


@pytest.mark.parametrize("name", ["bob", "partner", "somebody else", "agent_000000000000000000000000"])
def test_the_token_of_an_agent_proves_no_other_name(organisation: Organisation, name: str) -> None:
    assert organisation.refusal(name, agent_token=organisation.tokens["ann"]) == UNKNOWN
    agent = organisation.gate.services.store.find_agent(organisation.agents["ann"])
    assert organisation.refusal(name, agent_token=organisation.tokens["ann"], proven_agent=agent) == UNKNOWN


@pytest.mark.parametrize("name", ["ann", "partner", "somebody else"])
def test_the_key_of_an_owner_proves_any_name(organisation: Organisation, name: str) -> None:
    sender = organisation.sender(name, api_key=organisation.keys["owner"])
    assert sender.proven
    assert (sender.agent is not None) is (name == "ann")
    assert sender.key is not None
    assert sender.actor_id == sender.key.key_id


@pytest.mark.parametrize("role", ["member", "approver"])
def test_any_other_key_may_use_unregistered_names_only(organisation: Organisation, role: str) -> None:
    assert organisation.refusal("ann", api_key=organisation.keys[role]) == UNKNOWN
    assert organisation.refusal("partner", api_key=organisation.keys[role]) == UNKNOWN
    sender = organisation.sender("somebody else", api_key=organisation.keys[role])
    assert (sender.proven, sender.agent) == (False, None)


@pytest.mark.parametrize("spelt", [str.upper, "{} ".format, "{}\u200b".format, "{}\ufe0f".format, _in_cyrillic])
@pytest.mark.parametrize("name", ["ann", "partner"])
def test_a_name_that_would_be_taken_for_one_that_has_to_be_proven_has_to_be_too(
    organisation: Organisation, name: str, spelt: Callable[[str], str]
) -> None:
    disguised = spelt(organisation.agents.get(name, name))
    assert organisation.refusal(disguised, api_key=organisation.keys["member"]) == UNKNOWN
    assert organisation.sender(disguised, api_key=organisation.keys["of another organisation"]).agent is None
    # Trust applies to the exact name: under another spelling an owner's message is inspected.
    assert not organisation.gate.services.store.access_lists(organisation.gate.organisation_id).trusts(disguised)


def test_an_agent_of_another_organisation_counts_as_unregistered(organisation: Organisation) -> None:
    key = organisation.keys["of another organisation"]
    for name in ("ann", "partner"):
        sender = organisation.sender(name, api_key=key)
        assert sender.agent is None
        assert sender.organisation_id != organisation.gate.organisation_id
    assert organisation.refusal("ann", api_key=key, agent_token=organisation.tokens["ann"]) == UNKNOWN


def test_a_key_and_a_token_must_both_be_valid(organisation: Organisation) -> None:
    sender = organisation.sender("ann", api_key=organisation.keys["member"], agent_token=organisation.tokens["ann"])
    assert sender.proven
    assert sender.key is not None
    assert sender.actor_id == sender.key.key_id
    assert (
        organisation.refusal("ann", api_key=organisation.keys["owner"], agent_token=organisation.tokens["bob"])
        == UNKNOWN
    )
    assert organisation.refusal("ann", api_key="qwed_live_unknown", agent_token=organisation.tokens["ann"]) == UNKNOWN


def test_a_sender_without_a_credential_is_refused(organisation: Organisation) -> None:
    assert {organisation.refusal(name) for name in ("ann", "partner", "somebody else")} == {NO_CREDENTIAL}
    assert organisation.refusal("somebody else", api_key="qwed_live_unknown") == UNKNOWN


def test_the_process_itself_proves_any_name(organisation: Organisation) -> None:
    sender = organisation.sender("ann", organisation_id=organisation.gate.organisation_id)
    assert (sender.actor_id, sender.proven) == ("gate", True)


def _may_send(sender: Sender, name: str, receiver: str, services: Services) -> bool:
    message = InterceptedMessage(
        trace_id="a2a_0123456789ab",
        sender=name,
        receiver=receiver,
        kind="general",
        payload={},
        text=b"{}",
        digest="",
        now=0.0,
    )
    verdict = verdict_without_content(message, sender, (), services)
    return verdict is None or verdict.forwarded


@pytest.mark.parametrize(("name", "allowed"), [("ann", True), ("partner", True), ("Partner", False), ("else", False)])
def test_in_strict_mode_only_registered_and_trusted_agents_send(
    organisation: Organisation, name: str, allowed: bool
) -> None:
    services = replace(
        organisation.gate.services, settings=replace(organisation.gate.services.settings, a2a_strict=True)
    )
    sender = organisation.sender(name, organisation_id=organisation.gate.organisation_id)
    name = organisation.agents.get(name, name)
    assert _may_send(sender, name, "bob", services) is allowed
    assert _may_send(sender, name, "bob", organisation.gate.services)


def test_all_spellings_of_two_names_have_one_rate(organisation: Organisation) -> None:
    services = replace(
        organisation.gate.services, settings=replace(organisation.gate.services.settings, a2a_messages_per_minute=2)
    )
    sender = organisation.sender("else", organisation_id=organisation.gate.organisation_id)
    pairs = [("shop", "till"), ("Shop", "TILL"), ("shop\u200b", "till"), ("\uff53hop", "ti\ufe0fll")]
    allowed = [_may_send(sender, *pair, services) for pair in pairs]
    assert allowed == [True, True, False, False]


def test_without_a_rate_nothing_is_counted(organisation: Organisation) -> None:
    services = replace(
        organisation.gate.services, settings=replace(organisation.gate.services.settings, a2a_messages_per_minute=0)
    )
    sender = organisation.sender("else", organisation_id=organisation.gate.organisation_id)
    assert all(_may_send(sender, "else", "x", services) for _ in range(200))
