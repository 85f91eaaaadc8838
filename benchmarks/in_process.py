"""Decision without an engine, in process, compared with Cedar (five pre-parsed policies) and Casbin, by CPU time.

The peers only answer yes or no. qwed also stores the step, the budget and the record of the decision.
"""

import itertools
import time
from collections.abc import Callable
from typing import Any

import casbin
import cedarpy

import qwed
from benchmarks.measure import interleaved, ratio
from benchmarks.report import Row, Say, absolute, at_most

DECISIONS = 2000
_numbers = itertools.count(1)

POLICIES = "\n".join(
    f'permit(principal == Agent::"a{n}", action == Action::"file_read", resource) when {{ context.risk <= {n} }};'
    for n in range(5)
)
ENTITIES: list[dict[str, Any]] = [
    {"uid": {"type": "Agent", "id": "a3"}, "attrs": {"trust": 2}, "parents": []},
    {"uid": {"type": "File", "id": "report"}, "attrs": {}, "parents": []},
]


SEEN, NEW = "decision in process, action seen before", "decision in process, new action each time"
CEDAR, BARE_CEDAR = "Cedar, 5 pre-parsed policies, 2 entities", "Cedar, 5 pre-parsed policies, no entities"
CASBIN = "Casbin, 5 policies"
CHART = "in process / Cedar and Casbin"
_CASBIN = """
[request_definition]
r = sub, obj, act
[policy_definition]
p = sub, obj, act
[policy_effect]
e = some(where (p.eft == allow))
[matchers]
m = r.sub == p.sub && keyMatch(r.obj, p.obj) && r.act == p.act
"""


def rows(rounds: int, _say: Say) -> list[Row]:
    """Compare each of our cases with each peer."""
    seen = interleaved(contenders(), rounds)
    shares = [
        Row(
            f"{ours} / {peer}",
            ratio(seen[ours], seen[peer]),
            at_most(0.25) if (ours, peer) == (SEEN, CEDAR) else None,
            chart=CHART,
        )
        for ours in (SEEN, NEW)
        for peer in (CEDAR, BARE_CEDAR, CASBIN)
    ]
    return [*shares, *(absolute(f"{name}, us of CPU", values) for name, values in seen.items())]


def contenders() -> dict[str, Callable[[], float]]:
    """Return functions that measure microseconds of CPU time per decision."""
    decide = _ours()
    parsed = cedarpy.Entities.from_json_str("[]")
    return {
        SEEN: lambda: _cpu(lambda: decide(lambda n: f"reports/{n % 7}.csv")),
        NEW: lambda: _cpu(lambda: decide(lambda _n: f"reports/{next(_numbers)}.csv")),
        CEDAR: lambda: _cpu(_cedar(ENTITIES)),
        BARE_CEDAR: lambda: _cpu(_cedar(parsed)),
        CASBIN: lambda: _cpu(_casbin()),
    }


def _ours() -> Callable[[Callable[[int], str]], None]:
    gate = qwed.open()
    agent = gate.register_agent(
        name="bench", principal_id="bench", type="autonomous", budget={"max_daily_cost_usd": 1_000_000}
    )

    def decide(target: Callable[[int], str]) -> None:
        conversation = f"c{next(_numbers)}_"
        for n in range(DECISIONS):
            answer = gate.verify_action(
                agent.agent_id,
                {"type": "file_read", "target": target(n)},
                {"conversation_id": f"{conversation}{n // 50}", "step_number": n % 50 + 1},
                agent_token=agent.agent_token,
            )
            if answer.decided != "APPROVED":
                raise RuntimeError(f"not approved: {dict(answer)}")

    return decide


def _cedar(entities: Any) -> Callable[[], None]:
    policies = cedarpy.PolicySet.from_str(POLICIES)
    request = {
        "principal": 'Agent::"a3"',
        "action": 'Action::"file_read"',
        "resource": 'File::"report"',
        "context": {"risk": 2},
    }

    def decide() -> None:
        for _ in range(DECISIONS):
            if not cedarpy.is_authorized(request, policies, entities).allowed:
                raise RuntimeError("not allowed")

    return decide


def _casbin() -> Callable[[], None]:
    model = casbin.Model()
    model.load_model_from_text(_CASBIN)
    enforcer = casbin.Enforcer(model)
    enforcer.add_policies([[f"a{n}", "reports/*", "file_read"] for n in range(5)])

    def decide() -> None:
        for n in range(DECISIONS):
            if not enforcer.enforce("a3", f"reports/{n % 7}.csv", "file_read"):
                raise RuntimeError("not allowed")

    return decide


def _cpu(work: Callable[[], None]) -> float:
    begun = time.process_time()
    work()
    return (time.process_time() - begun) / DECISIONS * 1e6
