"""P2 and P3 in process: two gates on one PostgreSQL decide as one."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from qwed.gate import open_gate

SUM = {"type": "calculate", "query": "2+2"}
REPLAY = "QWED-AGENT-LOOP-002"


def test_two_gates_on_one_database_are_as_one(tmp_path: Path, database: str) -> None:
    """Steps, a budget and a key that both gates get at the same time."""
    with ExitStack() as opened, ThreadPoolExecutor(8) as threads:
        gates = [opened.enter_context(open_gate(tmp_path / "data", database_url=database)) for _ in range(2)]
        said = {"name": "a", "principal_id": "p", "trust_level": 3, "budget": {"max_daily_cost_usd": 0.1}}
        agent_id = str(gates[0].register_agent(**said)["agent_id"])

        def ask(number: int, step: int, key: str | None = None, action: Any = SUM) -> Any:
            place = {"conversation_id": "c", "step_number": step}
            return gates[number % 2].verify_action(agent_id, action, place, idempotency_key=key)

        for step in (1, 2):
            heard = list(threads.map(lambda number, step=step: ask(number, step), range(16)))
            assert Counter(answer["decision"] for answer in heard) == {"APPROVED": 1, "DENIED": 15}
            assert {answer["error"]["code"] for answer in heard if "error" in answer} == {REPLAY}
        another = {"type": "calculate", "query": "3+3"}
        heard = list(threads.map(lambda number: ask(number, 3, "key", another), range(16)))
        assert len({answer["action_id"] for answer in heard if answer["decision"] == "APPROVED"}) == 1
        heard = list(
            threads.map(lambda number: ask(number, 4 + number, None, SUM | {"query": f"{number}+1"}), range(20))
        )
        assert Counter(answer["decision"] for answer in heard)["APPROVED"] <= 7
        assert gates[1].get_agent_budget(agent_id)["cost"]["current_daily_usd"] <= 0.1
