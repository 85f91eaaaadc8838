"""Consensus engine: independent methods, their agreement, and the verdict if they disagree."""

from typing import Any

import pytest

from qwed.engines import consensus
from qwed.engines._consensus_methods import CERTAIN, LOGIC, MATH, MAX_NAMES, SAMPLED, UNSURE, Method, Opinion
from qwed.engines.protocol import EngineRequest
from qwed.kernel.verification.request import CONSENSUS_MODES
from qwed.model import Status, Verdict
from tests.support.case_tables import each, rows


def ask(query: str, **parameters: Any) -> Verdict:
    return consensus.verify(EngineRequest(query=query, parameters=parameters))


def methods_with(*opinions: Opinion) -> tuple[Method, ...]:
    return tuple(Method(f"e{n}", f"m{n}", lambda _text, opinion=opinion: opinion) for n, opinion in enumerate(opinions))


INDEPENDENT = [method for method in MATH if method.name != "symbolic"]
YES, NO, LIKELY = Opinion(True, CERTAIN), Opinion(False, CERTAIN), Opinion(True, SAMPLED)

TRUE = [
    "2+2 = 4",
    "0.1 + 0.2 = 0.3",
    "sin(x)^2 + cos(x)^2 = 1",
    "(x+1)^2 = x^2 + 2*x + 1",
    "sqrt(2)*sqrt(3) = sqrt(6)",
    "pi > 3.14159",
    "x^2 >= 0",
    "p -> p",
    "(OR p (NOT p))",
    "p -> q, p |- q",
]
FALSE = ["2+2 = 5", "x^2 = x", "sqrt(x^2) = x", "pi > 3.1416", "(AND p (NOT p))", "p -> q, q |- p", "x^2 > 1"]


@pytest.mark.parametrize("mode", ["single", "high", "maximum"])
@pytest.mark.parametrize("query", TRUE)
def test_what_holds_is_verified_by_as_many_methods_as_were_asked_for(query: str, mode: str) -> None:
    verdict = ask(query, verification_mode=mode)
    assert verdict.status is Status.VERIFIED, verdict
    assert verdict.result["final_answer"] == "true"
    assert verdict.result["meets_requirement"] is True
    successful = [link for link in verdict.result["verification_chain"] if link["success"]]
    assert len(successful) >= consensus.MODES[mode]
    assert verdict.result["engines_used"] == [link["engine"] for link in verdict.result["verification_chain"]]


@pytest.mark.parametrize("mode", ["single", "high", "maximum"])
@pytest.mark.parametrize("query", FALSE)
def test_what_does_not_hold_fails(query: str, mode: str) -> None:
    verdict = ask(query, mode=mode)
    assert verdict.status is Status.FAILED, verdict
    assert verdict.result["final_answer"] == "false"


def test_a_bare_expression_is_computed() -> None:
    verdict = ask("2^10", verification_mode="high")
    assert (verdict.status, verdict.result["final_answer"]) == (Status.SIMPLIFIED, "1024")
    assert verdict.result["agreement_status"] == "unanimous"


@pytest.mark.parametrize("query", ["SELECT 1", "what a day", "", "print(1)", "All men are mortal"])
def test_what_has_no_independent_methods_is_left_open(query: str) -> None:
    assert ask(query).status is Status.INCONCLUSIVE


@pytest.mark.parametrize(
    "parameters",
    [
        {"verification_mode": "absolute"},
        {"mode": 3},
        {"min_confidence": 2},
        {"min_confidence": -0.1},
        {"min_confidence": True},
        {"min_confidence": "high"},
        {"min_confidence": float("nan")},
    ],
)
def test_what_cannot_be_asked_for_is_refused(parameters: dict[str, Any]) -> None:
    verdict = ask("2+2 = 4", **parameters)
    assert (verdict.status, verdict.checks_failed) == (Status.BLOCKED, ("parameters_valid",))


@pytest.mark.parametrize("opinions", [(YES, NO), (NO, YES), (YES, LIKELY, NO), (LIKELY, NO), (UNSURE, YES, NO)])
@pytest.mark.parametrize("mode", ["high", "maximum"])
def test_a_disagreement_is_never_a_verdict(
    opinions: tuple[Opinion, ...], mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(consensus.METHODS, "math", methods_with(*opinions))
    verdict = ask("2+2 = 4", mode=mode, min_confidence=0)
    if mode == "high" and opinions == (YES, LIKELY, NO):
        return  # two agreeing methods are enough for this mode
    assert verdict.status is Status.INCONCLUSIVE
    assert (verdict.result["agreement_status"], verdict.result["meets_requirement"]) == ("disagreement", False)
    assert (verdict.result["confidence"], verdict.result["final_answer"]) == (0, None)


@pytest.mark.parametrize("opinions", [(LIKELY,), (LIKELY, LIKELY), (UNSURE, LIKELY, LIKELY, LIKELY)])
def test_what_only_held_where_it_was_tried_is_not_verified(
    opinions: tuple[Opinion, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(consensus.METHODS, "math", methods_with(*opinions))
    for mode in consensus.MODES:
        assert ask("2+2 = 4", mode=mode, min_confidence=0).status is Status.INCONCLUSIVE


def test_fewer_methods_than_were_asked_for_decide_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(consensus.METHODS, "math", methods_with(YES, UNSURE))
    assert ask("2+2 = 4", mode="single").status is Status.VERIFIED
    verdict = ask("2+2 = 4", mode="high")
    assert (verdict.status, verdict.result["agreement_status"]) == (Status.INCONCLUSIVE, "insufficient")


def test_confidence_grows_with_every_method_that_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(consensus.METHODS, "math", methods_with(LIKELY, LIKELY))
    assert ask("2+2 = 4", mode="high").result["confidence"] == 0.99
    assert ask("2+2 = 4", mode="high", min_confidence=0.999).result["meets_requirement"] is False


def plain_rows(name: str) -> list[dict[str, Any]]:
    """Return every fourth row that has only a query; the engines' own tests cover all rows."""
    return [row for row in rows(name) if set(row) == {"query"}][::4]


@each("row", plain_rows("math_false.jsonl"), ids=lambda row: ascii(row["query"])[:50])
def test_no_method_of_its_own_calls_a_false_claim_true(row: dict[str, Any]) -> None:
    """Each method is tested alone, so that its error cannot hide behind the others; the engine has its own tables."""
    for method in INDEPENDENT:
        opinion = method.ask(row["query"])
        assert opinion.holds is not True or opinion.confidence < CERTAIN, method.name


@each("row", plain_rows("math_true.jsonl"), ids=lambda row: ascii(row["query"])[:50])
def test_no_method_of_its_own_calls_a_true_claim_false(row: dict[str, Any]) -> None:
    for method in INDEPENDENT:
        assert method.ask(row["query"]).holds is not False, method.name


@pytest.mark.parametrize("name", ["logic_true.jsonl", "logic_false.jsonl"])
def test_enumeration_and_the_solver_never_disagree(name: str) -> None:
    solver, table = LOGIC
    compared = 0
    for row in rows(name):
        if not isinstance(row.get("query"), str):
            continue
        opinions = {opinion.holds for opinion in (solver.ask(row["query"]), table.ask(row["query"]))} - {None}
        assert len(opinions) < 2, row
        compared += table.ask(row["query"]).holds is not None
    assert compared > 5


@pytest.mark.parametrize("method", [*MATH, *LOGIC], ids=lambda method: method.name)
def test_no_text_upsets_a_method(method: Method) -> None:
    for text in (
        "",
        "(",
        ")",
        "=",
        "1/0 = 1",
        "9^9^9^9 = 1",
        "x" * 5000,
        "(" * 3000,
        "p -> ",
        "\x00",
        "∀",
        "1 < 2 < 3",
    ):
        assert isinstance(method.ask(text), Opinion)


def test_many_names_are_left_to_the_solver() -> None:
    text = f"(AND {' '.join(f'p{n}' for n in range(MAX_NAMES + 1))})"
    assert LOGIC[1].ask(text) == UNSURE
    assert ask(text).status is Status.VERIFIED


@pytest.mark.parametrize("mode", [[], {}, 2, None, "most", True])
def test_a_mode_that_is_none_is_refused(mode: Any) -> None:
    assert ask("2+2 = 4", mode=mode).status is Status.BLOCKED


def test_two_modes_that_differ_are_refused() -> None:
    assert ask("2+2 = 4", mode="single", verification_mode="maximum").status is Status.BLOCKED
    assert ask("2+2 = 4", mode="high", verification_mode="high").status is Status.VERIFIED


def test_the_modes_that_a_request_may_name_are_those_of_the_engine() -> None:
    assert set(CONSENSUS_MODES) == set(consensus.MODES)
