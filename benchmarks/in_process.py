"""A decision without an engine, in process, beside a Cedar decision over five pre-parsed policies. CPU time."""

import time
from collections.abc import Callable
from typing import Any

import cedarpy

import qwed

DECISIONS = 2000

POLICIES = "\n".join(
    f'permit(principal == Agent::"a{n}", action == Action::"file_read", resource) when {{ context.risk <= {n} }};'
    for n in range(5)
)
ENTITIES: list[dict[str, Any]] = [
    {"uid": {"type": "Agent", "id": "a3"}, "attrs": {"trust": 2}, "parents": []},
    {"uid": {"type": "File", "id": "report"}, "attrs": {}, "parents": []},
]


def contenders() -> dict[str, Callable[[], float]]:
    """Microseconds of processor time per decision, for each."""
    gate = qwed.open()
    agent = gate.register_agent(
        name="bench", principal_id="bench", type="autonomous", budget={"max_daily_cost_usd": 1_000_000}
    )
    policies = cedarpy.PolicySet.from_str(POLICIES)
    request = {
        "principal": 'Agent::"a3"',
        "action": 'Action::"file_read"',
        "resource": 'File::"report"',
        "context": {"risk": 2},
    }
    turn = iter(range(1, 1_000_000))

    def decide(target: Callable[[int], str]) -> None:
        conversation = f"c{next(turn)}_"
        for n in range(DECISIONS):
            answer = gate.verify_action(
                agent.agent_id,
                {"type": "file_read", "target": target(n)},
                {"conversation_id": f"{conversation}{n // 50}", "step_number": n % 50 + 1},
                agent_token=agent.agent_token,
            )
            if answer.decided != "APPROVED":
                raise RuntimeError(f"not approved: {dict(answer)}")

    def cedar(entities: Any) -> None:
        for _ in range(DECISIONS):
            if not cedarpy.is_authorized(request, policies, entities).allowed:
                raise RuntimeError("not allowed")

    parsed = cedarpy.Entities.from_json_str("[]")
    return {
        "decision, action seen before": lambda: _cpu(lambda: decide(lambda n: f"reports/{n % 7}.csv")),
        "decision, new action each time": lambda: _cpu(lambda: decide(lambda _n: f"reports/{next(turn)}.csv")),
        "cedar, 5 pre-parsed policies, 2 entities": lambda: _cpu(lambda: cedar(ENTITIES)),
        "cedar, 5 pre-parsed policies, no entities": lambda: _cpu(lambda: cedar(parsed)),
    }


def _cpu(work: Callable[[], None]) -> float:
    begun = time.process_time()
    work()
    return (time.process_time() - begun) / DECISIONS * 1e6
