"""Seed 002, Code Guard."""

import pytest

from qwed_a2a import A2AVerificationInterceptor, TrustBoundary
from qwed_a2a.guards.patterns import PATTERNS
from tests.support.messages import ask, message, said
from tests.support.tables import each, rows
from tests.support.workers import shared_verdicts

PRINTED = """
eval | \\beval\\s*\\( | eval(, EVAL (, eval\\n(
exec | \\bexec\\s*\\( | exec(, Exec (
subprocess | subprocess\\.|import subprocess|from subprocess import | subprocess.run, import subprocess as sp, from subprocess import run
os.system | \\bos\\.system\\s*\\( | os.system(, OS.SYSTEM (
os.popen | \\bos\\.popen\\s*\\( | All casing/spacing variants
__import__ | __import__\\s*\\( | Dynamic imports
compile | \\bcompile\\s*\\( | Code compilation
importlib | \\bimportlib\\s*\\. | Runtime module loading
"""  # noqa: E501 - as it is printed
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
GUARD = A2AVerificationInterceptor(
    trust_boundary=TrustBoundary(max_requests_per_minute=100_000), engines=shared_verdicts()
)


def refused_for(code: str) -> list[str]:
    """The patterns that a message with this code is blocked for."""
    verdict = ask(GUARD, message({"code": code}, "code_execution"))
    assert said(verdict) == ("blocked", "code_guard")
    patterns: list[str] = verdict.details["patterns"]
    assert f"`{patterns[0]}`" in verdict.reason
    return patterns


def test_the_patterns_are_those_of_the_table() -> None:
    assert [" | ".join(row) for row in PATTERNS] == PRINTED.strip().splitlines()


@pytest.mark.parametrize("pattern", CAUGHT)
def test_what_the_table_says_is_caught(pattern: str) -> None:
    for text in CAUGHT[pattern]:
        assert pattern in refused_for(text), text
        assert pattern in refused_for(f"x = 1\n{text}"), text


@each("row", rows("a2a_code_patterns.jsonl")[::9], ids=lambda row: row["name"])
def test_a_message_is_blocked_for_a_pattern_whatever_its_capitals(row):
    assert row["pattern"] in refused_for(row["code"])
    assert row["pattern"] in refused_for(row["code"].upper())


def test_clean_code_is_forwarded_by_the_code_guard() -> None:
    for code in ("print(sum(range(10)))", "import csv\nprint(list(csv.reader(open('a.csv'))))"):
        assert said(ask(GUARD, message({"code": code}, "code_execution"))) == ("forwarded", "code_guard")


def test_code_that_gets_past_every_pattern_is_blocked_by_the_engine() -> None:
    for code in ('import os\ngetattr(os, "sys" + "tem")("id")', "from os import system\nsystem('id')"):
        verdict = ask(GUARD, message({"code": code}, "code_execution"))
        assert said(verdict) == ("blocked", "code_guard")
        assert "starts another process" in verdict.reason
