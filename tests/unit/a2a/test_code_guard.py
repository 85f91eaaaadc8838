"""Code guard: dangerous patterns first, then the code engine; code may only compute and read."""

import re
from typing import Any

import pytest

from qwed.engines.pool import PoolFullError
from qwed.engines.verdict_cache import VerdictCache, VerdictRequest
from qwed.futures import run_in_thread
from qwed.guards.python_code import findings
from qwed.kernel.a2a.message import EngineName, MessageVerdict
from qwed.model import EffectKind, Risk, risk_of
from qwed_a2a.guards import patterns
from qwed_a2a.guards.code import MAX_INLINE, MAX_SHOWN, check_code
from qwed_a2a.guards.patterns import PATTERNS, patterns_in
from tests.support.case_tables import each, rows
from tests.support.shared_engine_workers import shared_verdicts

PROGRAMS = [
    row["code"]
    for name in ("python_attacks", "python_effects", "python_honest", "python_fifty_lines")
    for row in rows(f"{name}.jsonl")
    if "code" in row
]

SHORT = [code for code in PROGRAMS if code.strip() and len(code) <= MAX_INLINE]


def check(payload: dict[str, Any]) -> MessageVerdict:
    return run_in_thread(check_code(payload, shared_verdicts()), 20)


def payload_of(row: dict[str, Any]) -> dict[str, Any]:
    return {member: row[member] for member in ("code", "language") if member in row}


def name(row: dict[str, Any]) -> str:
    return str(row["name"])


@each("row", rows("a2a_code_patterns.jsonl"), ids=name)
def test_every_pattern_is_caught_in_every_casing_and_spacing(row):
    result = check({"code": row["code"]})
    assert not result.forwarded
    assert row["pattern"] in result.details["patterns"]


@each("row", rows("a2a_code_attacks.jsonl"), ids=name)
def test_what_gets_past_the_patterns_is_refused_by_the_engine(row):
    result = check(payload_of(row))
    assert not result.forwarded
    assert result.violation == row["violation"], result
    assert row.get("says", "") in result.reason
    assert len(result.reason) <= MAX_SHOWN
    assert result.reason.isprintable()


@each("row", rows("a2a_code_honest.jsonl"), ids=name)
def test_honest_code_passes(row):
    result = check(payload_of(row))
    assert result.forwarded, result
    assert not result.violation


def test_each_pattern_catches_what_its_row_says():
    examples = {row.name: [each for each in row.catches.split(", ") if row.name in each.lower()] for row in PATTERNS}
    assert examples["eval"] == ["eval(", "EVAL (", r"eval\n("]
    for name, texts in examples.items():
        for text in texts:
            assert name in patterns_in(text.replace(r"\n", "\n")), text


@each("code", PROGRAMS)
def test_the_quick_search_for_patterns_finds_what_the_regexes_find(code):
    plain = tuple(row.name for row in PATTERNS if re.search(row.regex, code, re.IGNORECASE))
    assert patterns_in(code) == plain
    assert patterns_in(code.upper()) == tuple(
        row.name for row in PATTERNS if re.search(row.regex, code.upper(), re.IGNORECASE)
    )


def test_a_word_is_looked_for_before_each_regex_that_needs_it():
    assert len(patterns.WORDS) == len(PATTERNS)
    for row, word in zip(PATTERNS, patterns.WORDS, strict=True):
        assert all(word in part.replace("\\", "") for part in row.regex.split("|"))


def assert_judged_as_by_the_full_check(code: str) -> None:
    whole = findings(code)
    known = tuple(effect for effect in whole.effects if effect.kind is not EffectKind.UNRESOLVED)
    harmless = not (whole.violations or whole.syntax_error or whole.lookups) and risk_of(known) is Risk.LOW
    result = check({"code": code})
    assert result.forwarded == (harmless and not patterns_in(code))
    assert result.violation == bool(whole.violations)


@each("code", SHORT[::5])
def test_a_program_passes_exactly_where_no_pattern_and_no_full_check_speaks_against_it(code):
    assert_judged_as_by_the_full_check(code)


@pytest.mark.drill
@each("code", SHORT)
def test_every_program_passes_exactly_where_no_pattern_and_no_full_check_speaks_against_it(code):
    assert_judged_as_by_the_full_check(code)


@pytest.mark.parametrize("payload", [{}, {"code": None}, {"code": ""}, {"code": " \n"}, {"code": 3}, {"code": ["x"]}])
def test_a_payload_without_code_is_refused(payload):
    result = check(payload)
    assert result == MessageVerdict(
        False, EngineName.CODE_GUARD, "there is no code to check, send it as text in `code`"
    )


@pytest.mark.parametrize("language", ["ruby", "", 7, True, ["python"], {"a": 1}, "python\n; rm", "x" * 1000])
def test_an_unknown_language_is_refused_by_name_with_the_known_ones(language):
    result = check({"code": "x = 1", "language": language})
    assert not result.forwarded
    assert not result.violation
    assert "unknown language" in result.reason
    assert "python, javascript, typescript, bash, sql" in result.reason
    assert result.reason.isprintable()


def test_no_language_is_python():
    assert check({"code": "print(1)"}) == check({"code": "print(1)", "language": None})
    assert check({"code": "print(1)"}) == check({"code": "print(1)", "language": " Python "})


def test_a_pattern_that_is_meant_well_is_refused_and_costs_no_trust():
    result = check({"code": "import re\nprint(re.compile('a'))"})
    assert not result.forwarded
    assert not result.violation
    assert result.details["patterns"] == ["compile"]


def test_a_pattern_that_is_what_it_looks_like_costs_trust():
    assert check({"code": "import os\nos.system('id')"}).violation


class _FullPool(VerdictCache):
    def __init__(self) -> None:
        """Create a pool that refuses all work."""

    def ask(self, question: VerdictRequest) -> Any:
        raise PoolFullError(f"no worker is free for {question.engine}")


def test_only_what_takes_long_is_asked_of_a_worker():
    for line in ("print(1)\n", "x = open('a.csv')\n"):
        assert run_in_thread(check_code({"code": line * (MAX_INLINE // len(line))}, _FullPool()), 1).forwarded
        code = line * (MAX_INLINE // len(line) + 1)
        with pytest.raises(PoolFullError):
            run_in_thread(check_code({"code": code}, _FullPool()), 1)


def test_a_pattern_refuses_whether_or_not_a_worker_is_to_be_had():
    padding = "x = open('a.csv')\n" * 2000
    assert not run_in_thread(check_code({"code": f"{padding}eval('1')"}, _FullPool()), 1).forwarded
    assert not run_in_thread(check_code({"code": "eval('1')", "language": "javascript"}, _FullPool()), 1).forwarded


def test_nothing_of_the_code_that_could_be_a_secret_is_told():
    result = check({"code": "import requests\nrequests.get('https://example.com/?token=hunter2')"})
    assert not result.forwarded
    assert "hunter2" not in f"{result.reason}{result.details}"
    assert result.details["effects"] == ["NETWORK"]


def test_code_longer_than_a_worker_reads_is_refused_as_such():
    result = check({"code": "x = 1\n" * 100_000})
    assert not result.forwarded
    assert "split it" in result.reason
