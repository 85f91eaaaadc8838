"""Gateway decisions, error codes and tool policies, in the order they are checked (seed 004)."""

import re
from typing import Any

import pytest

from qwed.guards.code_guard import CodeSafety
from qwed_mcp.security import BlockedDecision, Decision, RiskBasedExecutionGateway
from qwed_mcp.security.gateway import POLICIES, ToolPolicy, block_by_policy
from qwed_mcp.settings import McpSettings
from tests.support.case_tables import rows

TRUSTED = McpSettings(trusted_code_execution=True)
GREETING = {"code": "print('hello world')", "background": False}
JOB = "3f8a1b2c-4d5e-6f7a-8b9c-0d1e2f3a4b5c"
RUN, ASK = "execute_python_code", "verification_status"
BLOCKS = [
    ("verify_math", {}, "001", "Unknown MCP tool 'verify_math' is blocked by default."),
    (RUN, {}, "003", "Missing required non-empty 'code' argument."),
    (RUN, {"code": ""}, "003", "Missing required non-empty 'code' argument."),
    (RUN, {"code": " \n\t"}, "003", "Missing required non-empty 'code' argument."),
    (RUN, {"code": 1}, "003", "Missing required non-empty 'code' argument."),
    (RUN, {"code": ["print(1)"]}, "003", "Missing required non-empty 'code' argument."),
    (RUN, {"code": None, "background": "yes"}, "003", "Missing required non-empty 'code' argument."),
    (RUN, {"code": "print(1)", "background": "true"}, "004", "'background' must be a boolean when provided."),
    (RUN, {"code": "print(1)", "background": 1}, "004", "'background' must be a boolean when provided."),
    (RUN, {"code": "print(1)", "background": None}, "004", "'background' must be a boolean when provided."),
    (RUN, {"code": "eval('1')", "background": []}, "004", "'background' must be a boolean when provided."),
    (RUN, {"code": "eval('1')"}, "005", "QWED blocked python execution: Dangerous pattern: eval"),
    (ASK, {}, "007", "Missing required non-empty 'job_id' argument."),
    (ASK, {"job_id": " "}, "007", "Missing required non-empty 'job_id' argument."),
    (ASK, {"job_id": 5}, "007", "Missing required non-empty 'job_id' argument."),
    (ASK, {"job_id": "42"}, "008", "Invalid job_id format. Expected a canonical UUID."),
    (ASK, {"job_id": JOB.replace("-", "")}, "008", "Invalid job_id format. Expected a canonical UUID."),
    (ASK, {"job_id": f"{{{JOB}}}"}, "008", "Invalid job_id format. Expected a canonical UUID."),
    (ASK, {"job_id": f"urn:uuid:{JOB}"}, "008", "Invalid job_id format. Expected a canonical UUID."),
    (ASK, {"job_id": f" {JOB}"}, "008", "Invalid job_id format. Expected a canonical UUID."),
    (ASK, {"job_id": JOB.replace("3", "\uff13")}, "008", "Invalid job_id format. Expected a canonical UUID."),
]


def gateway(**more: Any) -> RiskBasedExecutionGateway:
    return RiskBasedExecutionGateway(TRUSTED, **more)


@pytest.mark.parametrize(("tool", "arguments", "code", "message"), BLOCKS)
def test_every_code_has_its_message(tool: str, arguments: dict[str, Any], code: str, message: str) -> None:
    decision = gateway().evaluate_and_route(tool, arguments)
    assert isinstance(decision, BlockedDecision)
    assert (decision["verified"], decision.status) == (False, "BLOCKED")
    assert (decision["error_code"], decision.message) == (f"QWED-MCP-RISK-{code}", message)
    assert decision.text == f"BLOCKED: {message} (verification_id={decision.verification_id})"


def test_a_call_that_is_good_has_every_field_and_no_error_code() -> None:
    decision = gateway().evaluate_and_route(RUN, GREETING)
    assert type(decision) is Decision
    assert set(decision) == {
        "verified", "status", "risk_level", "verification_id", "normalized_arguments", "message",
    }  # fmt: skip
    assert (decision["verified"], decision["status"], decision["risk_level"]) == (True, "ALLOW_VERIFIED", "high")
    assert decision["normalized_arguments"] == GREETING
    assert decision["message"]


def test_a_decision_that_blocks_has_an_error_code_too() -> None:
    assert "error_code" in gateway().evaluate_and_route("nothing", {})


def test_the_printed_use_needs_no_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QWED_MCP_TRUSTED_CODE_EXECUTION", raising=False)
    blocked = RiskBasedExecutionGateway().evaluate_and_route(RUN, GREETING)
    monkeypatch.setenv("QWED_MCP_TRUSTED_CODE_EXECUTION", "true")
    allowed = RiskBasedExecutionGateway().evaluate_and_route(RUN, GREETING)
    assert (blocked["status"], allowed["status"]) == ("BLOCKED_ADMIN_POLICY", "ALLOW_VERIFIED")


def test_safe_code_is_held_back_until_the_administrator_trusts_it() -> None:
    decision = RiskBasedExecutionGateway(McpSettings()).evaluate_and_route(RUN, GREETING)
    assert isinstance(decision, BlockedDecision)
    assert decision.text == (
        "BLOCKED_ADMIN_POLICY: Python execution was verified, but server policy keeps code execution disabled "
        f"until QWED_MCP_TRUSTED_CODE_EXECUTION=true. (verification_id={decision.verification_id})"
    )
    assert decision["error_code"] == "QWED-MCP-RISK-006"
    assert decision["normalized_arguments"] == GREETING


def test_code_is_judged_before_the_administrator_is_asked() -> None:
    decision = RiskBasedExecutionGateway(McpSettings()).evaluate_and_route(RUN, {"code": "exec('1')"})
    assert decision["error_code"] == "QWED-MCP-RISK-005"


def test_a_tool_with_a_policy_and_no_handler_is_blocked() -> None:
    policies = {**POLICIES, "verify_image": ToolPolicy("low", True)}
    decision = gateway(policies=policies).evaluate_and_route("verify_image", {})
    assert (decision["error_code"], decision["risk_level"]) == ("QWED-MCP-RISK-002", "low")


def test_a_guard_that_raises_is_a_no_and_says_nothing_of_why() -> None:
    def broken(_code: str) -> CodeSafety:
        raise RuntimeError("a secret of ours")

    decision = gateway(verify_code=broken).evaluate_and_route(RUN, GREETING)
    assert decision["error_code"] == "QWED-MCP-RISK-005"
    assert decision["message"] == "QWED blocked python execution: its verification raised an error"


def test_a_guard_that_is_not_sure_is_a_no() -> None:
    doubtful = CodeSafety(None, [], "", "low")  # type: ignore[arg-type]  # whatever is not true
    decision = gateway(verify_code=lambda _code: doubtful).evaluate_and_route(RUN, GREETING)
    assert decision["error_code"] == "QWED-MCP-RISK-005"


def test_these_are_the_policies() -> None:
    assert POLICIES == {RUN: ("high", True), ASK: ("low", True)}
    assert gateway().evaluate_and_route(ASK, {"job_id": JOB})["risk_level"] == "low"
    assert gateway().evaluate_and_route("anything", {})["risk_level"] == "high"


def test_arguments_are_normalized() -> None:
    assert gateway().evaluate_and_route(RUN, {"code": "print(1)", "more": 1})["normalized_arguments"] == {
        "code": "print(1)",
        "background": False,
    }
    upper = gateway().evaluate_and_route(ASK, {"job_id": JOB.upper()})
    assert upper["normalized_arguments"] == {"job_id": JOB}


def test_a_verification_id_is_a_sha256_and_never_the_same() -> None:
    one = gateway(clock=lambda: 1.0)
    ids = [one.evaluate_and_route(RUN, GREETING)["verification_id"] for _ in range(50)]
    ids += [gateway(clock=lambda: 1.0).evaluate_and_route(RUN, GREETING)["verification_id"]]
    assert all(re.fullmatch(r"[0-9a-f]{64}", verification_id) for verification_id in ids)
    assert len(set(ids)) == len(ids)
    assert one.server_instance_id != gateway().server_instance_id


def _nested() -> Any:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    return deep


HOSTILE = [
    ("\ud800", {}),
    ("x" * 1_000_000, {}),
    (RUN.upper(), {}),
    (f" {RUN}", {}),
    (RUN, None),
    (RUN, {"code": "x = '\ud800'"}),
    (RUN, {"code": "x = 1\n" * 200_000}),
    (RUN, {"code": "(" * 100_000}),
    (RUN, {"code": "print(1)\0"}),
    (RUN, {"code": "print(1)", "background": float("nan")}),
    (RUN, {"code": "import os; os.system('\x1b[31m')"}),
    (RUN, {"code": _nested()}),
    (RUN, {"code": {}, 1: 2, None: 3}),
    (ASK, {"job_id": "\ud800"}),
    (ASK, {"job_id": float("inf")}),
    (ASK, {"job_id": "a" * 1_000_000}),
    (ASK, [JOB]),
    (None, {}),
    ([], {}),
]


@pytest.mark.parametrize(("tool", "arguments"), HOSTILE, ids=range(len(HOSTILE)))
def test_nothing_that_is_given_makes_it_raise_or_pass(tool: Any, arguments: Any) -> None:
    decision = gateway().evaluate_and_route(tool, arguments)
    assert isinstance(decision, BlockedDecision)
    assert decision.text.isprintable()
    assert len(decision.text) < 6_000


def test_a_tool_of_the_older_version_is_unknown() -> None:
    for tool in ("verify_math", "verify_logic", "verify_code", "verify_sql", "verify_legal_deadline"):
        assert gateway().evaluate_and_route(tool, {})["error_code"] == "QWED-MCP-RISK-001"


def test_what_only_computes_passes_and_no_attack_does() -> None:
    ours = gateway()
    honest = [row["code"] for row in rows("python_honest.jsonl") if not row["effects"] and "qwed_" in row["code"]]
    assert len(honest) > 20
    for code in honest:
        assert ours.evaluate_and_route(RUN, {"code": code}).verified, code
    attacks = [row["code"] for row in rows("python_attacks.jsonl")[-60:]]
    deeds = [row["code"] for row in rows("python_effects.jsonl")[-30:] if row["effect"] != "UNRESOLVED"]
    for code in (*attacks, *deeds):
        assert ours.evaluate_and_route(RUN, {"code": code})["error_code"] == "QWED-MCP-RISK-005", code


def test_what_has_nowhere_to_run_is_held_back_under_the_same_id() -> None:
    decision = gateway().evaluate_and_route(RUN, GREETING)
    blocked = block_by_policy(decision, "install bubblewrap")
    assert (blocked.status, blocked.error_code) == ("BLOCKED_ADMIN_POLICY", "QWED-MCP-RISK-006")
    assert blocked.text == f"BLOCKED_ADMIN_POLICY: install bubblewrap (verification_id={decision.verification_id})"


@pytest.mark.parametrize(
    ("code", "unresolved"),
    [
        ("import rdkit\nprint(rdkit.__version__)", "rdkit"),
        ("print(evaluate(1))", "evaluate"),
        ("model.fit(1)", "model"),
    ],
)
def test_a_name_that_cannot_be_resolved_is_a_finding_and_is_run(code, unresolved):
    decision = gateway().evaluate_and_route(RUN, {"code": code})
    assert decision.verified
    assert f"cannot be resolved: {unresolved}" in decision.message


@pytest.mark.parametrize("code", ["import logging\nx = [logging]", "import rdkit\nopen('a', 'w')", "x = ("])
def test_a_module_as_a_value_and_what_is_known_to_act_are_blocked_beside_it(code):
    assert gateway().evaluate_and_route(RUN, {"code": code})["error_code"] == "QWED-MCP-RISK-005"
