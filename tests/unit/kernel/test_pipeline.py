"""The pipeline as designed: stages, their order, which may wait, and one broad except (DESIGN 3)."""

import ast
import inspect
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

import qwed
from qwed.kernel import pipeline
from qwed.kernel.case import Case, Credentials
from qwed.kernel.pipeline import ADMISSION_STAGES, DECISION_STAGES
from qwed.kernel.stages import settle

SOURCE = Path(qwed.__file__).parent


def _names(stages: tuple[pipeline.Stage, ...]) -> list[str]:
    return [stage.__name__ for stage in stages]


def test_the_stages_stand_in_the_order_of_the_design() -> None:
    admission = ["authenticate", "require_active", "require_context", "check_idempotency", "reserve_step"]
    decision = ["detect_loops", "check_budget", "check_permissions", "run_engine", "assess_risk", "decide"]
    assert (_names(ADMISSION_STAGES), _names(DECISION_STAGES)) == (admission, decision)


def test_stages_are_plain_functions_one_in_each_file() -> None:
    for stage in (*ADMISSION_STAGES, *DECISION_STAGES):
        assert inspect.isfunction(stage)
        assert next(iter(inspect.signature(stage).parameters)) == "case"
        home = "authenticate" if stage.__name__ == "require_active" else stage.__name__
        assert stage.__module__ == f"qwed.kernel.stages.{home}"


def test_only_the_engine_and_the_settlement_may_wait() -> None:
    assert [
        stage.__name__ for stage in (*ADMISSION_STAGES, *DECISION_STAGES) if inspect.iscoroutinefunction(stage)
    ] == []
    assert inspect.iscoroutinefunction(settle.settle)
    waiting = {
        file.stem
        for file in (SOURCE / "kernel" / "stages").glob("*.py")
        if any(isinstance(node, ast.Await) for node in ast.walk(ast.parse(file.read_text())))
    }
    assert waiting == {"run_engine", "settle"}


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
