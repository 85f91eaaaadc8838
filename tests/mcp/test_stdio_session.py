"""MCP over stdio with a real client and a real server: every row of the tables (seed 004)."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from qwed_mcp.run_queue import RUN_SECONDS
from tests.seeds.blocks import block
from tests.support.mcp_sessions import TRUSTED, Session, stdio, text

BLOCKED = re.compile(r"(BLOCKED|BLOCKED_ADMIN_POLICY): (.*) \(verification_id=[0-9a-f]{64}\)", re.DOTALL)
JOB = "3f8a1b2c-4d5e-6f7a-8b9c-0d1e2f3a4b5c"
LONG = "import time\ntime.sleep(1000)\n"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mcp") / "stderr"


@pytest.fixture(scope="module")
def trusted(log: Path) -> Iterator[Session]:
    with stdio(log, **TRUSTED, QWED_MCP_BACKGROUND_TIMEOUT="1") as session:
        yield session


def test_two_tools_are_listed_and_one_runs_anything(trusted: Session) -> None:
    tools = trusted.tools()
    assert list(tools) == ["execute_python_code", "verification_status"]
    info = trusted.client.server_info
    assert info is not None
    assert info.name == "qwed-verification"


def test_the_parameters_are_those_of_the_tables(trusted: Session) -> None:
    run, ask = (tool.input_schema for tool in trusted.tools().values())
    assert (run["required"], ask["required"]) == (["code"], ["job_id"])
    assert {name: schema["type"] for name, schema in run["properties"].items()} == {
        "code": "string",
        "background": "boolean",
    }
    assert run["properties"]["background"]["default"] is False
    assert {name: schema["type"] for name, schema in ask["properties"].items()} == {"job_id": "string"}


def test_the_derivative_is_answered_as_printed(trusted: Session) -> None:
    answer = trusted.run(block("mcp_math"))
    assert text(answer) == ("STDOUT:\nderivative of x^3 = 3*x**2\nVERIFIED\n\nExecution completed successfully.")
    assert not answer.is_error


def test_the_compound_interest_fails_by_its_own_assertion(trusted: Session) -> None:
    """Ruling 4.15."""
    answer = trusted.run(block("mcp_finance"))
    assert answer.is_error
    assert text(answer).startswith("STDOUT:\nFuture value: $14499.48\n\nSTDERR:\nTraceback")
    assert "AssertionError: Expected 14490.97, got 14499.48" in text(answer)


def test_the_code_guard_is_answered_as_printed(trusted: Session) -> None:
    assert text(trusted.run(block("mcp_code_guard"))) == (
        "STDOUT:\nVerified: False\n  - Dangerous pattern: os.system\n\nExecution completed successfully."
    )


def test_the_sql_guard_runs_inside(trusted: Session) -> None:
    output = text(trusted.run(block("mcp_sql_guard")))
    assert output.startswith("STDOUT:\nVerified: False\nMessage: ")
    assert output.endswith("\n\nExecution completed successfully.")


IMPORTS = [
    "from qwed_new.engines.math_engine import verify_math_expression",
    "from qwed_new.engines.logic_engine import verify_logic_statement",
    "from qwed_new.guards.code_guard import CodeGuard",
    "from qwed_new.guards.sql_guard import SQLGuard",
    "from qwed_sdk.guards.system_guard import SystemGuard",
    "from qwed_sdk.guards.config_guard import ConfigGuard",
    "from qwed_finance import FinanceVerifier",
    "from qwed_finance import ISOGuard",
    "from qwed_ucp import UCPVerifier",
    "from qwed_legal import DeadlineGuard",
    "from qwed_legal import CitationGuard",
    "from qwed_legal import LiabilityGuard",
    "from qwed_legal import JurisdictionGuard",
    "from qwed_legal import StatuteOfLimitationsGuard",
]


def test_every_import_of_the_mapping_is_run(trusted: Session) -> None:
    output = text(trusted.run("\n".join([*IMPORTS, "print('all there')"])))
    assert output == "STDOUT:\nall there\n\nExecution completed successfully."


def test_a_package_that_is_not_installed_is_an_error_in_stderr(trusted: Session) -> None:
    answer = trusted.run("import rdkit\nprint(rdkit)")
    assert answer.is_error
    assert text(answer).startswith("STDERR:\nTraceback")
    assert "ModuleNotFoundError: No module named 'rdkit'" in text(answer)


REFUSALS = [
    ("verify_math", {"expression": "x^2"}, "001", "BLOCKED", "Unknown MCP tool 'verify_math' is blocked by default."),
    ("execute_python_code", {}, "003", "BLOCKED", "Missing required non-empty 'code' argument."),
    ("execute_python_code", {"code": ""}, "003", "BLOCKED", "Missing required non-empty 'code' argument."),
    ("execute_python_code", {"code": 5}, "003", "BLOCKED", "Missing required non-empty 'code' argument."),
    (
        "execute_python_code",
        {"code": "print(1)", "background": "yes"},
        "004",
        "BLOCKED",
        "'background' must be a boolean when provided.",
    ),
    (
        "execute_python_code",
        {"code": "import os as x; x.system('id')"},
        "005",
        "BLOCKED",
        "QWED blocked python execution: Dangerous pattern: os.system",
    ),
    ("verification_status", {}, "007", "BLOCKED", "Missing required non-empty 'job_id' argument."),
    ("verification_status", {"job_id": "42"}, "008", "BLOCKED", "Invalid job_id format. Expected a canonical UUID."),
]


@pytest.mark.parametrize(("tool", "arguments", "code", "status", "message"), REFUSALS)
def test_a_refusal_is_a_result_with_its_code(
    trusted: Session, tool: str, arguments: dict[str, object], code: str, status: str, message: str
) -> None:
    answer = trusted.call(tool, arguments)
    assert answer.is_error
    match = BLOCKED.fullmatch(text(answer))
    assert match is not None
    assert match.groups() == (status, message)
    fields = answer.structured_content
    assert (fields["status"], fields["error_code"], fields["verified"]) == (status, f"QWED-MCP-RISK-{code}", False)
    assert fields["verification_id"] in text(answer)


def test_without_the_administrators_word_nothing_is_run() -> None:
    with stdio(QWED_MCP_SANDBOX="none") as session:
        answer = session.run("print('hello world')")
        match = BLOCKED.fullmatch(text(answer))
        assert match is not None
        assert match[1] == "BLOCKED_ADMIN_POLICY"
        assert match[2] == (
            "Python execution was verified, but server policy keeps code execution disabled "
            "until QWED_MCP_TRUSTED_CODE_EXECUTION=true."
        )
        assert answer.structured_content["error_code"] == "QWED-MCP-RISK-006"
        # The code is checked first, so dangerous code does not learn about the setting.
        assert text(session.run("eval('1')")).startswith("BLOCKED: QWED blocked python execution: ")


def test_a_script_that_raises_has_its_traceback_and_its_return_code(trusted: Session) -> None:
    answer = trusted.run("print('before')\nraise ValueError('no')")
    assert answer.is_error
    assert text(answer).startswith("STDOUT:\nbefore\n\nSTDERR:\nTraceback (most recent call last):\n")
    assert text(answer).endswith("ValueError: no\n\nExecution failed with return code 1.")
    assert answer.meta is not None
    assert answer.meta["qwed/return_code"] == 1


def test_an_exit_code_is_told(trusted: Session) -> None:
    assert text(trusted.run("import sys\nsys.exit(3)")) == "Execution failed with return code 3."


def test_a_result_says_which_sandbox_ran(trusted: Session) -> None:
    meta = trusted.run("print(1)").meta
    assert meta is not None
    assert (meta["qwed/sandbox"], meta["qwed/return_code"], meta["qwed/ended"]) == ("none", 0, "exited")


def test_output_over_the_cap_is_cut_with_the_warning(trusted: Session) -> None:
    answer = trusted.run("while True:\n    print('x' * 1000)")
    assert answer.is_error
    output = text(answer)
    assert output.startswith("STDOUT:\nxxx")
    assert output.endswith("\n\n[WARNING: OUTPUT TRUNCATED DUE TO 1MB SIZE CAP. PROCESS TERMINATED.]")
    assert len(output) < (1 << 20) + 200


def test_every_run_is_a_process_of_its_own(trusted: Session) -> None:
    code = "import decimal\ncontext = decimal.getcontext()\ncontext.prec += 1\nprint(context.prec)"
    assert [text(trusted.run(code)).splitlines()[1] for _ in range(2)] == ["29", "29"]


def test_a_background_job_is_placed_and_asked_for(trusted: Session) -> None:
    answer = trusted.run("print('All checks passed')", background=True)
    match = re.fullmatch(
        r"Verification order is being placed for the request ([0-9a-f-]{36}) "
        r"Check back using the 'verification_status' tool\.",
        text(answer),
    )
    assert match is not None
    assert answer.structured_content == {"job_id": match[1]}
    ended = trusted.wait_ended(match[1])
    assert text(ended) == (
        "Status: success\n\nResult:\nSTDOUT:\nAll checks passed\n\nExecution completed successfully."
    )
    assert not ended.is_error
    # A final state does not change.
    assert text(trusted.status(match[1])) == text(ended)
    assert text(trusted.status(match[1].upper())) == text(ended)


def test_a_job_that_raises_has_failed(trusted: Session) -> None:
    ended = trusted.wait_ended(trusted.submit("raise ValueError('no')"))
    assert ended.is_error
    assert text(ended).startswith("Status: failed\n\nResult:\nSTDERR:\nTraceback")
    assert text(ended).endswith("ValueError: no\n\nExecution failed with return code 1.")


def test_five_run_the_sixth_waits_and_all_time_out(trusted: Session) -> None:
    job_ids = [trusted.submit(LONG) for _ in range(6)]
    assert [text(trusted.status(job_id)) for job_id in job_ids] == ["Status: running..."] * 5 + ["Status: queued..."]
    ended = trusted.wait_ended(job_ids[0])
    assert text(ended) == (
        "Status: timed_out\n\nResult:\nBackground verification timed out after 1 seconds. "
        "Process terminated to prevent resource exhaustion."
    )
    assert text(trusted.wait_ended(job_ids[5])).startswith("Status: timed_out")


def test_a_job_that_does_not_exist_is_not_found(trusted: Session) -> None:
    answer = trusted.status(JOB)
    assert answer.is_error
    assert text(answer) == f"Error: Job ID '{JOB}' not found or expired."


def test_another_connection_has_no_part_in_a_job_and_older_clients_are_answered_alike(trusted: Session) -> None:
    job_id = trusted.submit("print(1)")
    trusted.wait_ended(job_id)
    with stdio(mode="legacy", **TRUSTED) as other:
        assert text(other.status(job_id)) == f"Error: Job ID '{job_id}' not found or expired."
        assert text(other.run("print(1)")) == "STDOUT:\n1\n\nExecution completed successfully."
        assert text(other.call("verify_math", {})).startswith("BLOCKED: Unknown MCP tool 'verify_math'")


def test_a_synchronous_run_has_thirty_seconds() -> None:
    assert RUN_SECONDS == 30.0


def test_every_decision_is_one_line_without_the_code_or_its_output(trusted: Session, log: Path) -> None:
    trusted.run("print('a' + 'bcdefgh_printed')")
    trusted.call("\x1b[31mnothing\n", {})
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    run, unknown = lines[-2:]
    assert run["event"] == "decision"
    assert (run["tool"], run["status"]) == ("execute_python_code", "ALLOW_VERIFIED")
    assert {"time", "caller", "verification_id", "code_sha256"} <= set(run)
    assert (unknown["code"], unknown["tool"]) == ("QWED-MCP-RISK-001", "\\x1b[31mnothing\\n")
    assert "bcdefgh" not in log.read_text()
