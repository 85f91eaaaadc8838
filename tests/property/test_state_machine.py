"""Register, verify, deny, retry, loop, spend, restart: the Gate against a model written from the seeds alone."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import qwed
from qwed.gate import Gate
from qwed.words.clock import Clock
from tests.property.model import Deed, ModelAgent

# Every action here is decided without an engine worker, so that a step takes microseconds.
ACTIONS: dict[str, tuple[Deed, dict[str, Any]]] = {
    "sum": (Deed("sum", "low"), {"type": "calculate", "query": "2+2"}),
    "claim": (Deed("claim", "low"), {"type": "verify_math", "query": "0.1+0.2 = 0.3"}),
    "wrong": (Deed("wrong", "low", "CORRECTED"), {"type": "calculate", "query": "2+2 = 5"}),
    "broken": (Deed("broken", "low", "FAILED"), {"type": "calculate", "query": "1/0"}),
    "read": (Deed("read", "low", is_tool=True), {"type": "file_read", "target": "reports/q3.csv"}),
    "mail": (Deed("mail", "medium", is_tool=True), {"type": "send_email", "parameters": {"subject": "hello"}}),
    "write": (Deed("write", "high", is_tool=True), {"type": "file_write", "target": "reports/q3.csv"}),
    "delete": (Deed("delete", "critical", is_tool=True), {"type": "file_delete", "target": "reports/q3.csv"}),
    "blocked": (Deed("blocked", "critical", "NOT_ALLOWED"), {"type": "shell_command", "query": "ls"}),
    "unknown_tool": (Deed("unknown_tool", "low", "NOT_ALLOWED"), {"type": "tool_call", "tool": "brew_tea"}),
    "unknown_type": (Deed("unknown_type", "low", "UNKNOWN_TYPE"), {"type": "dance"}),
}
STATES = ["a" * 64, "b" * 64]
START = 1_800_000_000.0


class Protocol(RuleBasedStateMachine):
    """Every rule asks the Gate and the model; the invariant compares what they counted."""

    agents = Bundle("agents")
    steps_played = 0

    @initialize()
    def open_the_gate(self) -> None:
        self.now = START
        self.folder = tempfile.TemporaryDirectory()
        self.models: dict[str, ModelAgent] = {}
        self.tokens: dict[str, str] = {}
        self.stored: dict[tuple[str, str], tuple[Any, dict[str, Any], float]] = {}
        self.gate = self._open()

    def _open(self) -> Gate:
        clock = Clock(now=lambda: self.now, monotonic=lambda: self.now)
        return qwed.open(Path(self.folder.name) / "data", clock=clock)

    @rule(
        target=agents,
        trust=st.integers(0, 3),
        cents=st.none() | st.integers(0, 12),
        requests=st.none() | st.integers(0, 15),
        tokens=st.none() | st.integers(0, 40),
    )
    def register(self, trust: int, cents: int | None, requests: int | None, tokens: int | None) -> str:
        agent = self.gate.register_agent(
            name="played",
            principal_id="user_123",
            trust_level=trust,
            permissions={"blocked_tools": ["shell_command"]},
            budget={
                "max_daily_cost_usd": None if cents is None else cents / 100,
                "max_requests_per_hour": requests,
                "max_tokens_per_day": tokens,
            },
        )
        model = ModelAgent(trust, cents, requests, tokens, hour=int(self.now // 3600))
        self.models[agent.agent_id] = model
        self.tokens[agent.agent_id] = agent.agent_token
        name: str = agent.agent_id
        return name

    @rule(
        agent_id=agents,
        name=st.sampled_from(sorted(ACTIONS)),
        talk=st.sampled_from(["one", "two"]),
        ahead=st.sampled_from([-1, 0, 1, 1, 1, 1, 2, 49]),
        state=st.none() | st.sampled_from(STATES),
        cents=st.sampled_from([0, 0, 1, 3]),
        tokens=st.sampled_from([0, 0, 7]),
        as_agent=st.booleans(),
    )
    def verify(
        self,
        agent_id: str,
        name: str,
        talk: str,
        ahead: int,
        state: str | None,
        cents: int,
        tokens: int,
        as_agent: bool,
    ) -> None:
        model = self.models[agent_id]
        last = model.talks[talk].last if talk in model.talks else 0
        step = max(1, last + ahead)
        deed, action = ACTIONS[name]
        answer = self._ask(agent_id, action, talk, step, state, cents, tokens, as_agent)
        expected = model.ask(deed, talk, step, self.now, state, cents, tokens)
        assert (answer["decision"], (answer.get("error") or {}).get("code")) == expected

    def _ask(
        self,
        agent_id: str,
        action: dict[str, Any],
        talk: str,
        step: int,
        state: str | None,
        cents: int,
        tokens: int,
        as_agent: bool,
        key: str | None = None,
    ) -> dict[str, Any]:
        context: dict[str, Any] = {"conversation_id": talk, "step_number": step}
        if state is not None:
            context |= {"pre_action_state_hash": state, "state_source": "custom"}
        cost = {"usd": cents / 100, "tokens": tokens}
        answer = self.gate.verify_action(
            agent_id,
            {**action, "cost": cost},
            context,
            agent_token=self.tokens[agent_id] if as_agent else None,
            idempotency_key=key,
        )
        return dict(answer)

    @rule(agent_id=agents, name=st.sampled_from(["sum", "read", "mail", "broken"]), key=st.sampled_from(["k1", "k2"]))
    def retry_with_a_key(self, agent_id: str, name: str, key: str) -> None:
        """Ruling 4.7: the first time it is judged, from then on it is remembered and costs nothing."""
        model, place = self.models[agent_id], (agent_id, key)
        if self._remembers(place):
            arguments, before, _ = self.stored[place]
            assert self._ask(agent_id, *arguments, key=key) == before
            return
        deed, action = ACTIONS[name]
        step = model.talks["keyed"].last + 1 if "keyed" in model.talks else 1
        arguments = (action, "keyed", step, None, 0, 0, True)
        answer = self._ask(agent_id, *arguments, key=key)
        expected = model.ask(deed, "keyed", step, self.now, None, 0, 0)
        assert (answer["decision"], (answer.get("error") or {}).get("code")) == expected
        if "verification" in answer:
            self.stored[place] = (arguments, answer, self.now)

    def _remembers(self, place: tuple[str, str]) -> bool:
        return place in self.stored and self.now < self.stored[place][2] + 86_400

    @rule(agent_id=agents, key=st.sampled_from(["k1", "k2"]))
    def a_key_with_another_body_is_refused(self, agent_id: str, key: str) -> None:
        if self._remembers((agent_id, key)):
            answer = self._ask(agent_id, {"type": "calculate", "query": "7"}, "keyed", 50, None, 0, 0, True, key=key)
            assert (answer["decision"], answer["error"]["code"]) == ("DENIED", "QWED-REQ-006")
            self.models[agent_id].answers.append(("DENIED", "QWED-REQ-006"))

    @rule(agent_id=agents)
    def a_stranger_changes_nothing(self, agent_id: str) -> None:
        answer = self.gate.verify_action(
            agent_id,
            {"type": "calculate", "query": "1"},
            {"conversation_id": "one", "step_number": 50},
            agent_token="qwed_agent_" + "0" * 52,
        )
        assert (answer["decision"], answer["error"]["code"]) == ("DENIED", "QWED-AGENT-002")

    @rule(agent_id=agents)
    def a_request_without_context_is_recorded_and_costs_nothing(self, agent_id: str) -> None:
        answer = self.gate.verify_action(agent_id, {"type": "calculate", "query": "1"})
        assert (answer["decision"], answer["error"]["code"]) == ("DENIED", "QWED-AGENT-CTX-001")
        self.models[agent_id].answers.append(("DENIED", "QWED-AGENT-CTX-001"))

    @rule(hours=st.sampled_from([1, 23]))
    def time_passes(self, hours: int) -> None:
        self.now += hours * 3600

    @rule()
    def restart(self) -> None:
        self.gate.close()
        self.gate = self._open()

    @invariant()
    def the_counters_agree(self) -> None:
        Protocol.steps_played += 1
        for agent_id, model in getattr(self, "models", {}).items():
            model._turn(self.now)
            budget = self.gate.get_agent_budget(agent_id)
            assert budget["cost"]["current_daily_usd"] == model.cents / 100
            assert budget["cost"]["held_usd"] == model.held_cents / 100
            assert budget["requests"]["current_hour"] == model.requests
            assert budget["tokens"]["current_daily"] == model.tokens

    def teardown(self) -> None:
        if not hasattr(self, "gate"):
            return
        for agent_id, model in self.models.items():
            kept = self.gate.get_agent_activity(agent_id, limit=1000)
            assert [
                (entry["decision"], (entry["error"] or {}).get("code")) for entry in reversed(kept)
            ] == model.answers
        self.gate.close()
        self.folder.cleanup()


def _play(examples: int, steps: int, seed: bool) -> int:
    Protocol.steps_played = 0
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Protocol,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            derandomize=seed,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],  # a failure prints its steps; shrinking them takes longer than reading them
        ),
    )
    return Protocol.steps_played


def test_5000_steps_show_no_difference_to_the_model() -> None:
    assert _play(110, 50, seed=True) >= 5_000


@pytest.mark.drill
def test_100000_steps_show_no_difference_to_the_model() -> None:
    assert _play(1_250, 100, seed=False) >= 100_000
