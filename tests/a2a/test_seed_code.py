"""Code guard (seed 002)."""

import pytest

from qwed_a2a import A2AVerificationInterceptor, TrustBoundary
from qwed_a2a.guards.patterns import PATTERNS
from tests.support.a2a_messages import message, outcome_of, verdict_on
from tests.support.case_tables import each, rows
from tests.support.shared_engine_workers import shared_verdicts

PRINTED = """
eval | \\beval\\s*\\( | eval(, EVAL (, eval\\n(
exec | \\bexec\\s*\\( | exec(, Exec (
subprocess | subprocess\\.|import subprocess|from subprocess import | subprocess.run, import subprocess as sp, from subprocess import run
os.system | \\bos\\.system\\s*\\( | os.system(, OS.SYSTEM (
os.popen | \\bos\\.popen\\s*\\( | All casing/spacing variants
__import__ | __import__\\s*\\( | Dynamic imports
compile | \\bcompile\\s*\\( | Code compilation
importlib | \\bimportlib\\s*\\. | Runtime module loading
"""  # noqa: E501 - the table of the specification
CAUGHT = {
    "eval": ["eval(", "EVAL (", "eval\n("],
    "exec": ["exec(", "Exec ("],
    "subprocess": ["subprocess.run", "import subprocess as sp", "from subprocess import run"],
    "os.system": ["os.system(", "OS.SYSTEM ("],
    "os.popen": ["os.popen(", "OS.POPEN (", "Os.Popen\t(", "os.popen\n("],
    "__import__": ["__import__('os')", "__import__ ('os')"],
    "compile": ["compile('1', 'a', 'single')", "Compile ("],
    "importlib": ["importlib.import_module('os')", "importlib .reload"],
}
INTERCEPTOR = A2AVerificationInterceptor(
    trust_boundary=TrustBoundary(max_requests_per_minute=100_000), engines=shared_verdicts()
)


def blocked_patterns(code: str) -> list[str]:
    """Return the patterns for which a message with this code is blocked."""
    verdict = verdict_on(INTERCEPTOR, message({"code": code}, "code_execution"))
    assert outcome_of(verdict) == ("blocked", "code_guard")
    patterns: list[str] = verdict.details["patterns"]
    assert f"`{patterns[0]}`" in verdict.reason
    return patterns


def test_the_patterns_are_those_of_the_table() -> None:
    assert [" | ".join(row) for row in PATTERNS] == PRINTED.strip().splitlines()


@pytest.mark.parametrize("pattern", CAUGHT)
def test_what_the_table_says_is_caught(pattern: str) -> None:
    for text in CAUGHT[pattern]:
        assert pattern in blocked_patterns(text), text
        assert pattern in blocked_patterns(f"x = 1\n{text}"), text


@each("row", rows("a2a_code_patterns.jsonl")[::9], ids=lambda row: row["name"])
def test_a_message_is_blocked_for_a_pattern_whatever_its_capitals(row):
    assert row["pattern"] in blocked_patterns(row["code"])
    assert row["pattern"] in blocked_patterns(row["code"].upper())


def test_clean_code_is_forwarded_by_the_code_guard() -> None:
    for code in ("print(sum(range(10)))", "import csv\nprint(list(csv.reader(open('a.csv'))))"):
        assert outcome_of(verdict_on(INTERCEPTOR, message({"code": code}, "code_execution"))) == (
            "forwarded",
            "code_guard",
        )


def test_code_that_gets_past_every_pattern_is_blocked_by_the_engine() -> None:
    for code in ('import os\ngetattr(os, "sys" + "tem")("id")', "from os import system\nsystem('id')"):
        verdict = verdict_on(INTERCEPTOR, message({"code": code}, "code_execution"))
        assert outcome_of(verdict) == ("blocked", "code_guard")
        assert "starts another process" in verdict.reason
