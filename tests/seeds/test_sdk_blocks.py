"""Code blocks of the two documents about the client, run as printed against a live server.

Keys, agents and tokens that are examples are replaced by real ones; functions that a block leaves to the reader are
provided.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from qwed_sdk import QWEDClient
from tests.seeds.blocks import PRINTED, block
from tests.spec.sections import spec
from tests.support.agent_names import release_name, unique_name
from tests.support.server import Server

Run = Callable[..., dict[str, Any]]
Json = dict[str, Any]


class Watched(QWEDClient):
    """Client that also records its answers: the blocks state the expected ones in comments."""

    def verify_action(self, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        answer = super().verify_action(*args, **kwargs)
        self.answers.append(answer)
        return answer

    answers: list[Any]


@pytest.fixture
def client(server: Server, monkeypatch: pytest.MonkeyPatch) -> Watched:
    monkeypatch.setenv("QWED_BASE_URL", server.base_url)
    monkeypatch.setenv("QWED_API_KEY", server.owner_key)
    watched = Watched()
    watched.answers = []
    return watched


@pytest.fixture
def run(server: Server, client: Watched, api: httpx.Client) -> Run:
    """Run a block with these names; return the names it defines."""

    def call(name: str, *, agent_id: str = "", **names: Any) -> Json:
        # A block that registers an agent is run as it is printed, also where an earlier test has run it.
        for printed in ("DataAnalyst", "MyAgent"):
            release_name(api, printed)
        text = block(name, **{"qwed_...": server.owner_key, "agent_abc123": agent_id})
        made: Json = {"client": client, "agent_id": agent_id, **names}
        exec(compile(text, name, "exec"), made)
        return made

    return call


@pytest.fixture
def agent_id(client: Watched) -> str:
    budget = {"max_daily_cost_usd": 100, "max_requests_per_hour": 500}
    agent = client.register_agent(unique_name("DataAnalyst"), "supervised", "user_123", budget=budget)
    return str(agent.agent_id)


@spec("10.1")
def test_every_block_is_run() -> None:
    text = "".join(file.read_text() for file in Path(__file__).parents[1].glob("**/test_*_blocks.py"))
    assert [file.stem for file in PRINTED.glob("*.txt") if f'run("{file.stem}"' not in text] == []


@spec("guide/Registering an Agent")
def test_registering_an_agent(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    agent = run("registering_an_agent")["agent"]
    assert capsys.readouterr().out.split() == [agent.agent_id, agent.agent_token]
    assert agent.agent_id.startswith("agent_")
    assert agent.agent_token.startswith("qwed_agent_")


@spec("guide/Registering an Agent")
def test_the_registered_agent_is_held_to_what_the_block_says(run: Run, client: Watched) -> None:
    agent = run("registering_an_agent")["agent"]
    assert (agent.type, agent.principal_id, agent.trust_level) == ("supervised", "user_123", 1)
    actions: list[Json] = [
        {"type": "calculate", "query": "2+2"},
        {"type": "verify_logic", "query": "x > 1"},
        {"type": "execute_sql", "query": "SELECT id FROM users"},
        {"type": "execute_code", "code": "print(1)"},
        {"type": "verify_fact", "query": "it is so", "parameters": {"context": "It is so."}},
    ]
    for step, action in enumerate(actions, start=1):
        client.verify_action(agent.agent_id, action, {"conversation_id": "conv_1", "step_number": step})
    assert [answer.decision for answer in client.answers] == ["APPROVED"] * 3 + ["DENIED"] * 2
    assert {answer.error["code"] for answer in client.answers[3:]} == {"QWED-AGENT-004"}
    budget = client.get_agent_budget(agent.agent_id)
    assert (budget["cost"]["max_daily_usd"], budget["requests"]["max_per_hour"]) == (100, 500)


@spec("guide/Verifying actions")
def test_verifying_actions(run: Run, agent_id: str) -> None:
    executed: list[str] = []
    run("verifying_actions", agent_id=agent_id, execute_query=executed.append, query="SELECT * FROM users")
    assert executed == ["SELECT * FROM users"]


@spec("guide/Verifying actions")
@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"permissions": {"allowed_engines": ["math"]}}, "Action blocked:"),
        ({"trust_level": 0}, "a person was asked"),
        ({"budget": {"max_requests_per_hour": 0}}, "Budget limit reached:"),
    ],
)
def test_each_decision_takes_its_branch(
    run: Run, client: Watched, capsys: pytest.CaptureFixture[str], fields: Json, told: str
) -> None:
    agent = client.register_agent(unique_name("DataAnalyst"), principal_id="user_123", **fields).agent_id
    run("verifying_actions", agent_id=agent, request_human_approval=lambda: print("a person was asked"))
    assert capsys.readouterr().out.startswith(told)


@spec("guide/Incrementing steps correctly")
def test_incrementing_steps(run: Run, client: Watched, agent_id: str) -> None:
    result = run("incrementing_steps", agent_id=agent_id)["result"]
    assert [answer.decision for answer in client.answers] == ["APPROVED", "APPROVED", "DENIED", "APPROVED"]
    assert result["decision"] == "DENIED"
    assert result["error"]["code"] == "QWED-AGENT-LOOP-003"


@spec("guide/Progress-aware doom loop detection (LOOP-004)")
def test_doom_loop_detection(run: Run, agent_id: str) -> None:
    made = run("doom_loop_detection", agent_id=agent_id, get_database_checksum=lambda: "checksum")
    # A write without WHERE is as critical as a deletion (ruling 4.3): trust decides, whatever the state.
    assert made["decision"]["error"]["code"] == "QWED-AGENT-TRUST-001"


@spec("guide/Tool approval")
def test_registering_custom_tools(run: Run) -> None:
    agent = run("registering_custom_tools")["agent"]
    assert agent.permissions["allowed_tools"] == ["my_custom_tool", "fetch_report"]


@spec("guide/Budget Enforcement")
def test_budget_enforcement(run: Run, client: Watched, agent_id: str) -> None:
    for step in range(1, 124):
        action = {"type": "calculate", "query": f"{step} + 1", "cost": {"usd": 44.28} if step == 1 else None}
        client.verify_action(agent_id, action, {"conversation_id": f"conv_{step}", "step_number": 1})
    budget = run("budget_enforcement", agent_id=agent_id)["budget"]
    assert {"max_daily_usd": 100, "current_daily_usd": 45.50}.items() <= budget["cost"].items()
    assert {"max_per_hour": 500, "current_hour": 123}.items() <= budget["requests"].items()


@spec("guide/Activity logging")
def test_activity_logging(run: Run, client: Watched, agent_id: str, capsys: pytest.CaptureFixture[str]) -> None:
    for step in range(1, 13):
        action = {"type": "calculate", "query": f"{step} + 1"}
        client.verify_action(agent_id, action, {"conversation_id": "conv_1", "step_number": step})
    run("activity_logging", agent_id=agent_id)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 10
    assert all(line.endswith("Z: calculate -> APPROVED") for line in lines)


@spec("guide/Replay and loop detection")
def test_replay_and_loop_detection(run: Run, client: Watched, agent_id: str) -> None:
    run("replay_and_loop_detection", agent_id=agent_id)
    first, again = client.answers
    assert first["decision"] == "APPROVED"
    assert (again["decision"], again["error"]["code"]) == ("DENIED", "QWED-AGENT-LOOP-002")


@spec("10.1")
def test_sdk_integration(run: Run, client: Watched) -> None:
    executed: list[str] = []
    made = run("sdk_integration", execute_query=executed.append)
    assert executed == ["SELECT * FROM users"]
    (entry,) = made["agent"].get_activity()
    assert (entry.decision, entry.step_number, entry.execution["success"]) == ("APPROVED", 1, True)
