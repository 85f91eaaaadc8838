"""The two forms of the constructor, and their settings."""

from collections.abc import Callable
from typing import Any

import pytest
from crewai import Agent, Crew, Task
from crewai.lite_agent import LiteAgent

from qwed_sdk import QWEDAgentClient, QWEDClient
from qwed_sdk.crewai import QWEDVerifiedAgent
from tests.frameworks.crewai.script import DELETE, SEARCH, CallSpec, crew_of, scripted, toolbox
from tests.support.chat_completions_server import answer_bytes, chat_server
from tests.support.server import Server


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch, server: Server, me: QWEDAgentClient) -> None:
    """Set the agent and the server in the environment."""
    monkeypatch.setenv("QWED_AGENT_ID", me.agent_id)
    monkeypatch.setenv("QWED_AGENT_TOKEN", str(me.agent_token))
    monkeypatch.setenv("QWED_BASE_URL", server.base_url)


@pytest.mark.usefixtures("named")
def test_an_agent_is_wrapped_as_the_protocol_prints_it(me: QWEDAgentClient, ran: list[CallSpec]) -> None:
    researcher = Agent(role="Researcher", goal="g", backstory="b", llm=scripted([SEARCH], [DELETE]), tools=toolbox(ran))
    verified_agent = QWEDVerifiedAgent(
        agent=researcher, qwed_settings={"verify_all_tools": True, "require_attestation": True}
    )
    task = Task(description="d", expected_output="e", agent=verified_agent)
    Crew(agents=[verified_agent], tasks=[task]).kickoff()
    assert ran == [SEARCH]
    approved = next(entry for entry in me.get_activity() if entry.decision == "APPROVED")
    assert approved.attestation_id
    assert isinstance(verified_agent, Agent)


def test_an_agent_is_made_as_the_protocol_prints_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QWED_API_KEY", "qwed_live_x")
    analyst = QWEDVerifiedAgent(role="Analyst", goal="Analyze data", agent_id="agent_abc123")
    assert (analyst.role, analyst.goal) == ("Analyst", "Analyze data")
    assert "verified" in analyst.backstory
    assert analyst._qwed.checkpoint.agent.agent_id == "agent_abc123"


def test_what_the_agent_was_told_is_kept(me: QWEDAgentClient, ran: list[CallSpec]) -> None:
    model = scripted()
    plain = Agent(role="R", goal="G", backstory="B", llm=model, tools=toolbox(ran), max_iter=7, allow_delegation=True)
    agent = QWEDVerifiedAgent(agent=plain, client=me)
    assert (agent.role, agent.goal, agent.backstory, agent.max_iter) == ("R", "G", "B", 7)
    assert (agent.llm, agent.allow_delegation, agent.tools) == (model, True, plain.tools)
    assert agent.id != plain.id


def test_the_agent_that_was_wrapped_stays_as_it_was(me: QWEDAgentClient, ran: list[CallSpec]) -> None:
    plain = Agent(role="R", goal="G", backstory="B", llm=scripted([DELETE]), tools=toolbox(ran))
    QWEDVerifiedAgent(agent=plain, client=me)
    crew_of(plain).kickoff()
    assert (ran, me.get_activity()) == ([DELETE], [])


def test_an_agent_that_has_run_can_be_wrapped(me: QWEDAgentClient, ran: list[CallSpec]) -> None:
    plain = Agent(role="R", goal="G", backstory="B", llm=scripted([SEARCH]), tools=toolbox(ran))
    crew_of(plain).kickoff()
    plain.llm.plan([DELETE])
    crew_of(QWEDVerifiedAgent(agent=plain, client=me)).kickoff()
    assert ran == [SEARCH]


def test_a_description_may_come_from_a_file(me: QWEDAgentClient) -> None:
    described = {"role": "Analyst", "goal": "Analyze data", "backstory": "from a file"}
    assert QWEDVerifiedAgent(config=described, llm=scripted(), client=me).backstory == "from a file"


def test_a_class_of_ones_own_inherits(me: QWEDAgentClient, ran: list[CallSpec]) -> None:
    class Careful(QWEDVerifiedAgent):
        limit: int = 3

    agent = Careful(role="r", goal="g", llm=scripted([DELETE]), tools=toolbox(ran), client=me, limit=5)
    crew_of(agent).kickoff()
    assert (agent.limit, agent.copy().limit, ran) == (5, 5, [])


class Own(Agent):  # type: ignore[misc]
    """Class that does not inherit from ours."""


def own() -> Agent:
    return Own(role="r", goal="g", backstory="b", llm=scripted())


REFUSED: dict[str, tuple[Callable[[], dict[str, Any]], type[Exception], str]] = {
    "an unknown setting": (lambda: {"qwed_settings": {"verify": True}}, ValueError, "unknown setting `verify`"),
    "no verification": (lambda: {"qwed_settings": {"verify_all_tools": False}}, ValueError, "cannot be false"),
    "no switch": (lambda: {"qwed_settings": {"require_attestation": "yes"}}, ValueError, "must be True or False"),
    "the same twice": (lambda: {"qwed_settings": {"wait": 3}, "wait": 3.0}, ValueError, "`wait` is given twice"),
    "no settings": (lambda: {"qwed_settings": ["verify_all_tools"]}, TypeError, "must be a mapping"),
    "no agent": (lambda: {"role": "r", "goal": "g"}, ValueError, "no agent is named"),
    "an agent and a field": (
        lambda: {"agent": own(), "role": "r", "agent_id": "agent_x"},
        TypeError,
        "`role` is given",
    ),
    "another class": (lambda: {"agent": own(), "agent_id": "agent_x"}, TypeError, "not `Own`"),
    "no agent at all": (lambda: {"agent": "researcher", "agent_id": "agent_x"}, TypeError, "not `str`"),
    "a light agent": (
        lambda: {"agent": LiteAgent(role="r", goal="g", backstory="b", llm=scripted()), "agent_id": "agent_x"},
        TypeError,
        "not `LiteAgent`",
    ),
    "no role": (lambda: {"agent_id": "agent_x"}, ValueError, "role"),
}


@pytest.mark.parametrize(("fields", "kind", "message"), REFUSED.values(), ids=REFUSED)
@pytest.mark.filterwarnings("ignore:LiteAgent is deprecated")
def test_what_cannot_be_meant_is_refused(
    fields: Callable[[], dict[str, Any]], kind: type[Exception], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("QWED_AGENT_ID", raising=False)
    monkeypatch.setenv("QWED_API_KEY", "qwed_live_x")
    with pytest.raises(kind, match=message):
        QWEDVerifiedAgent(**fields())


def test_settings_say_who_asks(owner: QWEDClient, me: QWEDAgentClient, ran: list[CallSpec]) -> None:
    settings = {"agent_id": me.agent_id, "agent_token": me.agent_token, "client": owner, "wait": 0}
    crew_of(
        QWEDVerifiedAgent(role="r", goal="g", llm=scripted([SEARCH]), tools=toolbox(ran), qwed_settings=settings)
    ).kickoff()
    assert ran == [SEARCH]


@pytest.mark.parametrize("required", [True, False])
def test_a_permit_without_an_attestation_is_none_where_one_is_required(required: bool, ran: list[CallSpec]) -> None:
    with chat_server(answer_bytes(b'{"decision": "APPROVED", "action_id": "act_1"}')) as verifier:
        client = QWEDClient("qwed_live_x", verifier.base_url, retries=0)
        settings = {"require_attestation": required, "agent_id": "agent_x", "client": client}
        model = scripted([SEARCH])
        crew_of(QWEDVerifiedAgent(role="r", goal="g", llm=model, tools=toolbox(ran), qwed_settings=settings)).kickoff()
        assert verifier.heard[0]["options"] == {"require_attestation": required}
    assert ran == ([] if required else [SEARCH])
    assert ("its permit has no attestation" in model.heard) is required
