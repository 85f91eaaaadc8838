"""Ruling 4.6: limits on conversation length, engine time and step lease, each a setting."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from qwed.engines.pool import EnginePool
from qwed.engines.registry import ENGINES
from qwed.engines.verdict_cache import VerdictCache
from qwed.futures import Future, completed
from qwed.gate import Gate
from qwed.kernel.bootstrap import close_services
from qwed.model import Status, Verdict
from qwed.settings import Settings
from tests.spec.requests import EMAIL, Json, another, said
from tests.spec.sections import spec
from tests.support.agent_names import unique_name
from tests.support.fault_injection import ReplacingProxy
from tests.support.gate_factory import open_gate, open_services


def _ask(gate: Gate, agent: str, action: Json, step: int, options: Json | None = None) -> Json:
    return dict(gate.verify_action(agent, action, {"conversation_id": "c", "step_number": step}, options))


@spec("9.1")
def test_the_length_of_a_conversation_is_a_setting() -> None:
    with open_gate(max_steps=3) as gate:
        agent = gate.register_agent(name=unique_name(), principal_id="u").agent_id
        assert [said(_ask(gate, agent, another(step), step)) for step in (1, 2, 3)] == [("APPROVED", None)] * 3
        over = _ask(gate, agent, another(4), 4)
        assert (said(over), over["error"]["details"]["limit"]) == (("DENIED", "QWED-AGENT-LOOP-001"), 3)
        # In a full conversation a used step is over the limit, not a replay.
        assert said(_ask(gate, agent, another(5), 3)) == ("DENIED", "QWED-AGENT-LOOP-001")


@spec("9.1", "9.4")
def test_the_usual_settings_are_fifty_steps_ten_seconds_and_a_lease_of_thirty() -> None:
    usual = Settings()
    assert (usual.max_steps, usual.engine_seconds, usual.step_lease_seconds) == (50, 10, 30)


class _Clocked:
    """Engine pool that records the time limit of each request."""

    def __init__(self, real: EnginePool) -> None:
        self._real = real
        self.given: list[tuple[float, bool]] = []

    def start(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        self._real.close()

    def submit(
        self,
        engine: str,
        _request: object,
        seconds: float,
        *,
        for_agent: bool,
        who: str,  # noqa: ARG002 - as the real one is called
    ) -> Future[Verdict]:
        self.given.append((seconds, for_agent))
        return completed(Verdict(status=Status.INCONCLUSIVE, engine=engine))


@pytest.fixture
def pool() -> _Clocked:
    return _Clocked(EnginePool(ENGINES.values(), size=2))


@pytest.fixture
def gate(pool: _Clocked) -> Iterator[Gate]:
    opened = open_services(Settings(), in_memory=True)
    real = opened.services.engines
    engines = VerdictCache(pool, opened.services.settings.engine_seconds)  # type: ignore[arg-type]  # a pool that counts
    yield Gate(opened._replace(services=replace(opened.services, engines=engines)))
    real.close()
    close_services(opened.services)


@spec("9.4", "2.1")
def test_on_the_agents_path_an_engine_has_ten_seconds_and_elsewhere_what_was_asked_for(
    gate: Gate, pool: _Clocked
) -> None:
    """Check the time limit of the request; it includes the wait for a worker (test_pool)."""
    agent = gate.register_agent(name=unique_name(), principal_id="u").agent_id
    _ask(gate, agent, {"type": "verify_logic", "query": "x > 1"}, 1)
    gate.verify_logic("x > 1", options={"timeout_ms": 25_000})
    assert pool.given == [(10, True), (25.0, False)]


@spec("4.1")
@pytest.mark.parametrize("milliseconds", [1_000, 60_000])
def test_an_agent_does_not_choose_how_long_an_engine_may_take(gate: Gate, milliseconds: int) -> None:
    agent = gate.register_agent(name=unique_name(), principal_id="u").agent_id
    refused = _ask(gate, agent, {"type": "verify_logic", "query": "x > 1"}, 1, options={"timeout_ms": milliseconds})
    assert said(refused) == ("DENIED", "QWED-REQ-005")
    assert "`timeout_ms`" in refused["error"]["message"]


@spec("2.3", "9.3")
@pytest.mark.parametrize("status", [Status.INCONCLUSIVE, Status.UNKNOWN])
def test_what_was_not_decided_in_time_waits_for_a_person_and_is_never_approved(gate: Gate, status: Status) -> None:
    verdict = Verdict(status=status, engine="logic", result={"error": "timeout"})
    gate.services = replace(gate.services, engines=ReplacingProxy(gate.services.engines, ask=verdict))  # type: ignore[arg-type]
    agent = gate.register_agent(name=unique_name(), principal_id="u", trust_level=3).agent_id
    answer = _ask(gate, agent, {"type": "verify_logic", "query": "x > 1"}, 1)
    assert (answer["decision"], answer["verification"]["status"]) == ("PENDING", "UNCERTAIN")


@spec("9.3")
def test_a_correction_is_no_state_of_progress_and_what_waits_is_none(gate: Gate) -> None:
    """Check that LOOP-004 fingerprints commit on APPROVED; test_guide_conversation_controls has PENDING and DENIED."""
    agent = gate.register_agent(name=unique_name(), principal_id="u").agent_id
    state = {"pre_action_state_hash": "0" * 64, "state_source": "custom"}
    codes = []
    for turn in range(4):
        place = {"conversation_id": "c", "step_number": 2 * turn + 1, **state}
        codes.append(said(dict(gate.verify_action(agent, {"type": "calculate", "query": "2+2 = 5"}, place))))
        place = {"conversation_id": "c", "step_number": 2 * turn + 2, **state}
        gate.verify_action(agent, EMAIL if turn % 2 else another(turn), place)
    assert codes == [("CORRECTED", None)] * 4
