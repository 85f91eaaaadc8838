"""Logic guard: contradictions are refused, and only decided claims are called consistent."""

from collections.abc import Sequence
from typing import Any

import pytest

from qwed.engines.pool import EnginePool, PoolFullError
from qwed.engines.registry import ENGINES
from qwed.engines.verdict_cache import VerdictCache
from qwed.futures import run_in_thread
from qwed.kernel.a2a.message import MessageVerdict
from qwed_a2a.guards._logic.assertions import MAX_ASSERTIONS, MAX_CHARACTERS
from qwed_a2a.guards.logic import check_logic
from tests.support.case_tables import each, rows
from tests.support.shared_engine_workers import shared_verdicts

Claim = str | Sequence[Any]
ALL_TRUE = "the assertions can all be true"


def payload_of(*claims: Claim) -> dict[str, Any]:
    pairs = [(claim, False) if isinstance(claim, str) else claim for claim in claims]
    return {"assertions": [{"claim": claim, "negated": negated} for claim, negated in pairs]}


def check(payload: dict[str, Any], engines: VerdictCache | None = None) -> MessageVerdict:
    return run_in_thread(check_logic(payload, shared_verdicts() if engines is None else engines), 30)


def check_row(row: dict[str, Any]) -> MessageVerdict:
    return check(payload_of(*row["claims"]))


def name(row: dict[str, Any]) -> str:
    return ascii(row.get("claims") or row["payload"])[:60]


@each("row", rows("a2a_logic_contradictions.jsonl"), ids=name)
def test_claims_that_contradict_each_other_are_refused_and_named(row):
    result = check_row(row)
    assert not result.forwarded, result
    assert (result.details["contradicting"], result.details["found_by"]) == (row["contradicting"], row["by"])
    assert all(f"`assertions[{number}]`" in result.reason for number in row["contradicting"])
    assert not result.violation


@each("row", rows("a2a_logic_honest.jsonl"), ids=name)
def test_honest_claims_pass_and_only_decided_ones_are_called_consistent(row):
    result = check_row(row)
    assert result.forwarded, result
    counted = result.details
    assert counted["formulas"] + counted["sentences"] + counted["text_only"] == counted["assertions"]
    assert (counted["assertions"] == counted["formulas"]) is (result.reason == ALL_TRUE) is row["decided"]


@each("row", rows("a2a_logic_undecided.jsonl"), ids=name)
def test_a_formula_that_cannot_be_decided_does_not_pass(row):
    result = check_row(row)
    assert not result.forwarded
    assert row["says"] in result.reason


@each("row", rows("a2a_logic_refused.jsonl"), ids=name)
def test_a_payload_of_another_shape_is_refused_with_what_to_change(row):
    result = check(row["payload"])
    assert not result.forwarded
    assert row["says"] in result.reason
    assert not result.reason.endswith(".")


def test_members_beside_a_claim_are_left_alone():
    payload = {"assertions": [{"claim": "x > 5", "source": "sensor", "confidence": 0.9}], "topic": "weather"}
    assert check(payload).forwarded


def test_the_details_say_how_many_claims_were_compared_as_text_only():
    result = check(payload_of("x > 5", "y -> z", "The door is open", "Revenue grew in most regions"))
    assert result.forwarded
    assert result.details == {"assertions": 4, "formulas": 2, "sentences": 1, "text_only": 1}
    assert result.reason == "no contradiction was found; 2 of 4 assertions are not decidable formulas"


def test_a_claim_is_never_repeated_in_the_finding():
    secret = "sk-live-0123456789"
    for claims in ((secret, (secret, True)), (f"key = {secret}", f"not key = {secret}"), (f"{secret} > 5", "x")):
        result = check(payload_of(*claims))
        assert secret not in result.reason
        assert secret not in str(result.details)


def test_a_long_list_of_contradicting_claims_is_cut_in_the_reason_and_whole_in_the_details():
    chain = [f"a{number} -> a{number + 1}" for number in range(18)]
    result = check(payload_of(*chain, "a0", "not a18"))
    assert result.reason.endswith("`assertions[4]` and 15 more contradict each other")
    assert result.details["contradicting"] == list(range(20))


def test_the_most_claims_are_looked_at_and_one_more_is_refused():
    many = [f"x{number} > {number}" for number in range(MAX_ASSERTIONS)]
    assert check(payload_of(*many)).reason == ALL_TRUE
    assert "more than 100 claims" in check(payload_of(*many, "y > 5")).reason
    assert "more than 100 claims" in check({"assertions": [{"claim": "p"}] * 100_000}).reason


def test_long_claims_are_refused_one_by_one_and_together():
    longest = "a" * MAX_CHARACTERS
    assert check(payload_of(longest)).forwarded
    assert "more than 2000 characters" in check(payload_of(longest + "a")).reason
    assert check(payload_of(*[longest] * 10)).forwarded
    assert "more than 20000 characters in all" in check(payload_of(*[longest] * 11)).reason


@pytest.mark.parametrize(
    "claim",
    [
        "(" * 1000 + ")" * 1000,
        "\u00ac(" * 990,
        "not " * 15 + "(" * 1900,
        '"' * 2000,
        ". " * 1000,
        "\u202e" * 2000,
        "!" * 2000,
    ],
    ids=lambda claim: ascii(claim)[:8],
)
def test_nothing_but_signs_is_text_or_refused(claim):
    result = check(payload_of(claim, "p -> q"))
    assert result.reason != ALL_TRUE


def test_where_no_worker_takes_the_question_nothing_is_passed():
    closed = VerdictCache(EnginePool(ENGINES.values(), size=2), 1.0)
    closed.start()
    closed.close()
    with pytest.raises(PoolFullError):
        check(payload_of("a -> b", "a"), closed)


def test_where_there_is_no_time_for_the_question_nothing_is_passed():
    result = check(payload_of("a -> b", "a"), shared_verdicts(seconds=0))
    assert not result.forwarded
    assert result.reason.startswith("the assertions could not be decided")


def test_the_same_claims_have_the_same_finding_every_time():
    table = [payload_of(*row["claims"]) for row in rows("a2a_logic_contradictions.jsonl")[::9]]
    first = [check(payload) for payload in table]
    assert [check(payload) for payload in reversed(table)] == first[::-1]
