"""DESIGN 3 and 4.3: what the code engine answers for a program."""

import json
from pathlib import Path
from typing import Any

import pytest

from qwed.engines.code import verify
from qwed.engines.protocol import EngineRequest
from qwed.words import EffectKind, Risk, Status, Verdict, canonical, risk_of

DATA = Path(__file__).parents[2] / "data"


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text().splitlines()]


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


@pytest.mark.parametrize("language", ["javascript", "typescript", "bash", "sql", "JS", " Bash "])
def test_a_language_to_come_is_inconclusive_and_unresolved(language):
    verdict = judge("1", language=language)
    assert verdict.status is Status.INCONCLUSIVE
    assert [effect.kind for effect in verdict.effects] == [EffectKind.UNRESOLVED]


@pytest.mark.parametrize("language", ["cobol", "", None, 3, ["python"], "pythonn"])
def test_an_unknown_language_is_blocked_and_the_known_ones_are_listed(language):
    verdict = judge("print(1)", language=language)
    assert verdict.status is Status.BLOCKED
    assert "python, javascript, typescript, bash, sql" in verdict.message


@pytest.mark.parametrize("language", ["python", "Python", "py", "python3"])
def test_python_goes_by_several_names(language):
    assert judge("print(1)", language=language).verified
