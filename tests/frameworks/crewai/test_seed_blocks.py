"""The printed examples about CrewAI run as printed, and their agents work."""

from collections.abc import Callable
from typing import Any

import pytest
from crewai import Agent

from qwed_sdk import QWEDAgentClient
from tests.frameworks.crewai.script import DELETE, SEARCH, CallSpec, crew_of, decisions_of, scripted, toolbox
from tests.seeds.blocks import block
from tests.spec.sections import spec
from tests.support.server import Server

Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, server: Server, me: QWEDAgentClient) -> Run:
    monkeypatch.setenv("QWED_AGENT_ID", me.agent_id)
    monkeypatch.setenv("QWED_AGENT_TOKEN", str(me.agent_token))
    monkeypatch.setenv("QWED_BASE_URL", server.base_url)

    def call(name: str, **names: Any) -> dict[str, Any]:
        namespace = dict(names)
        exec(compile(block(name, agent_abc123=me.agent_id), name, "exec"), namespace)
        return namespace

    return call


@spec("guide/Framework integration")
def test_the_agent_of_the_guide_runs_what_is_permitted_and_nothing_else(
    run: Run, me: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    analyst = run("crewai_guide")["analyst"]
    # The example sets neither a model nor tools: CrewAI accepts them later.
    analyst.llm, analyst.tools = scripted([SEARCH], [DELETE]), toolbox(ran)
    crew_of(analyst).kickoff()
    assert ran == [SEARCH]
    assert decisions_of(me) == [("search_web", "APPROVED"), ("delete_database", "DENIED")]


@spec("10.3")
def test_the_wrapped_agent_of_the_specification_runs_what_is_permitted_and_nothing_else(
    run: Run, me: QWEDAgentClient, ran: list[CallSpec]
) -> None:
    researcher = Agent(role="Researcher", goal="g", backstory="b", llm=scripted([SEARCH], [DELETE]), tools=toolbox(ran))
    crew_of(run("crewai_integration", researcher=researcher)["verified_agent"]).kickoff()
    assert ran == [SEARCH]
    approved = next(entry for entry in me.get_activity() if entry.decision == "APPROVED")
    assert approved.attestation_id is not None
