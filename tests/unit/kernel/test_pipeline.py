"""The pipeline as designed: stages, their order, which may wait, and one broad except (DESIGN 3)."""

import ast
import inspect
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import pytest

import qwed
from qwed.kernel.analysis.assess import ASSESSMENT_STAGES
from qwed.kernel.case import Case, Credentials
from tests.support.pipeline_stages import ADMISSION, ANSWER, DECISION

SOURCE = Path(qwed.__file__).parent
SUM, OTHER = {"type": "calculate", "query": "2+2"}, {"type": "calculate", "query": "3+3"}


def _step(conversation: str) -> dict[str, Any]:
    return {"conversation_id": conversation, "step_number": 1}


def _stages_of(call: Callable[[Any, str], Any]) -> list[str]:
    """Return the stages that a call of a gate reports, for an agent that has made one decision."""
    seen: list[str] = []
    with qwed.open() as gate:
        agent = gate.register_agent(name="a", principal_id="u").agent_id
        gate.verify_action(agent, SUM, _step("c"))
        gate.services = replace(gate.services, at_stage=seen.append)
        call(gate, agent)
    return seen


def test_the_stages_stand_in_the_order_of_the_design() -> None:
    action = {"type": "calculate", "query": "3+3"}
    stages = _stages_of(lambda gate, agent: gate.verify_action(agent, action, _step("d")))
    assert stages == [*DECISION, *ANSWER]


def test_an_action_that_was_assessed_before_is_not_assessed_again() -> None:
    stages = _stages_of(lambda gate, agent: gate.verify_action(agent, SUM, _step("d")))
    assert stages == [*ADMISSION, "reserve", "commit", "attest", "answer"]


def test_what_is_not_admitted_reserves_nothing_and_is_recorded() -> None:
    stages = _stages_of(lambda gate, agent: gate.verify_action(agent, SUM, _step("c")))
    assert stages == [*ADMISSION, "commit", "answer"]


def test_nothing_is_recorded_of_a_stranger() -> None:
    stages = _stages_of(lambda gate, _agent: gate.verify_action("agent_9", SUM, {}))
    assert stages == [*ADMISSION]


def test_a_change_is_committed_in_one_stage() -> None:
    assert _stages_of(lambda gate, agent: gate.rotate_token(agent)) == ["change", "changed"]


def test_the_stages_of_an_assessment_are_plain_functions_one_in_each_file() -> None:
    for stage in ASSESSMENT_STAGES:
        assert inspect.isfunction(stage)
        assert next(iter(inspect.signature(stage).parameters)) == "case"
        assert stage.__module__ == f"qwed.kernel.stages.{stage.__name__}"


def test_of_the_stages_only_the_engine_may_wait() -> None:
    assert [stage.__name__ for stage in ASSESSMENT_STAGES if inspect.iscoroutinefunction(stage)] == []
    waiting = {file.stem for file in (SOURCE / "kernel" / "stages").glob("*.py") if _waits(file)}
    assert waiting == {"run_engine"}


def _waits(file: Path) -> bool:
    return any(isinstance(node, ast.Await | ast.AsyncFunctionDef) for node in ast.walk(ast.parse(file.read_text())))


PURE = [
    *sorted((SOURCE / "domain").glob("*.py")),
    SOURCE / "kernel" / "admission.py",
    SOURCE / "kernel" / "decision.py",
]
IMPURE = {"asyncio", "datetime", "os", "random", "socket", "sqlite3", "threading", "time", "qwed.store", "qwed.futures"}


@pytest.mark.parametrize("file", PURE, ids=lambda file: file.stem)
def test_the_pure_core_waits_for_nothing_and_knows_neither_store_nor_clock(file: Path) -> None:
    assert not _waits(file)
    tree = ast.parse(file.read_text())
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    assert {name for name in imported if any(name == one or name.startswith(f"{one}.") for one in IMPURE)} == set()


def test_a_case_cannot_be_changed() -> None:
    case = Case(agent_id="agent_1", credentials=Credentials(), action_raw=None, now=0.0)
    with pytest.raises((FrozenInstanceError, AttributeError)):
        case.agent_id = "agent_2"  # type: ignore[misc]


def _broad(tree: ast.AST) -> int:
    handlers = [node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)]
    return sum(
        handler.type is None
        or any(
            isinstance(name, ast.Name) and name.id in ("Exception", "BaseException") for name in ast.walk(handler.type)
        )
        for handler in handlers
    )


def test_there_is_one_broad_except_in_the_kernel() -> None:
    kernel = SOURCE / "kernel"
    handlers = {str(file.relative_to(kernel)): _broad(ast.parse(file.read_text())) for file in kernel.rglob("*.py")}
    assert {name: count for name, count in handlers.items() if count} == {"pipeline.py": 1}
