"""Verification of a reasoning about a banking scenario in plain English."""

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from qwed.packs.amount_parsing import ClaimedAmount, parse_claimed_amount
from qwed.packs.result import CheckStatus, UnreadableInputError, status_of
from qwed.packs.value_parsing import text_of
from qwed_finance._banking import accounts, lending, limits, percentages, ratios
from qwed_finance._banking.decisions import find_decision
from qwed_finance._banking.grammar import NUMBER, normalise, unparsed_error
from qwed_finance._banking.solution import LABELS, OTHER_LABELS, Solution
from qwed_finance._compare import judge_claim
from qwed_finance._decimal import to_builtin_number
from qwed_finance._number_extraction import ANSWER_LABELS, MAX_TEXT, NumberMatch, find_numbers, select_claim
from qwed_finance._stated_period import ClaimScope
from qwed_finance.result import FinanceResult

MAX_SCENARIO = 4_000
_SOLVERS: tuple[Callable[[str, int], Solution | None], ...] = (
    ratios.solve_ratio,
    percentages.solve_change,
    percentages.solve_effective_rate,
    lending.solve_loan,
    lending.solve_interest,
    lending.solve_cash_flows,
    percentages.solve_fee,
    percentages.solve_sum,
    limits.solve_limit,
    accounts.solve_account,
)
_REMAINING = re.compile(
    rf"(?P<leaving>\b(?:leaving|leaves)\s+(?:only\s+|a\s+|you\s+|them\s+|with\s+|balance\s+|of\s+){{0,4}})?"
    rf"(?<![\w.,$])(?P<number>(?:[-\u2212]\s?)?(?:(?:us\$|[$\u20ac\u00a3\u00a5\u20b9])\s?)?[-\u2212]?{NUMBER})"
    rf"(?P<left>\s+(?:(?:is|are|will be)\s+)?(?:remain(?:s|ing)?|left|available)\b)?",
    re.IGNORECASE,
)
_BALANCE_ADVERB = re.compile(r"\b(?P<said>balance\s+(?:is|will\s+be))\s+(?:then|now|thus|therefore)\b", re.IGNORECASE)


def verify_scenario(scenario: Any, llm_output: Any, precision: int) -> FinanceResult:
    """Verify every value that the reasoning names, including the one asked for."""
    solution = _solve(normalise(text_of("scenario", scenario, MAX_SCENARIO)), precision)
    if not isinstance(llm_output, str):
        return _compare_claims(
            solution,
            {solution.asked[0]: parse_claimed_amount("llm_output", to_builtin_number(llm_output))},
            None,
            precision,
        )
    text = text_of("llm_output", llm_output, MAX_TEXT)
    decided = None if solution.holds is None else find_decision(text)
    text = (
        text
        if solution.holds is None or "ratio" in solution.quantities
        else _BALANCE_ADVERB.sub(r"\g<said>", _REMAINING.sub(_name_remaining, text))
    )
    return _compare_claims(solution, _find_claims(solution, text, decided), decided, precision)


def _name_remaining(match: re.Match[str]) -> str:
    """Put the label before the number in `$400 remaining` and `leaving $400`, where labels are expected."""
    phrase = match["leaving"] or match["left"]
    return f"remaining balance is {match['number']}" if phrase else match[0]


def _solve(text: str, precision: int) -> Solution:
    for solver in _SOLVERS:
        solution = solver(text, precision)
        if solution is not None:
            return solution
    raise unparsed_error("the scenario is not of a known kind")


def _find_claims(solution: Solution, text: str, decided: bool | None) -> dict[str, ClaimedAmount]:
    """Return the claims of the reasoning: for the quantities asked for, and for those that it names."""
    claims: dict[str, ClaimedAmount] = {}
    for key in solution.quantities:
        claim = _find_claim(solution, key, text, needed=key in solution.asked and decided is None)
        if claim is not None:
            claims[key] = claim
    return claims


def _find_claim(solution: Solution, key: str, text: str, *, needed: bool) -> ClaimedAmount | None:
    other_labels = {label: words for label, words in LABELS.items() if label in solution.quantities and label != key}
    is_only = len(solution.asked) == 1 and key == solution.asked[0]
    labels = {"asked": (*LABELS[key], *(ANSWER_LABELS if is_only else ())), **other_labels, "other": OTHER_LABELS}
    rate = solution.quantities[key][0].rate
    numbers = _bare_number(text, key in solution.asked) or find_numbers(text, labels)
    labelled = [label for label in numbers if label.label == "asked"]
    if not needed and not (
        labelled if key not in solution.asked else _has_candidate(numbers, solution.inputs, rate=rate)
    ):
        return None
    if not is_only:
        numbers = labelled
    scope = ClaimScope(solution.quantities[key][0].stated_period, labels=LABELS[key])
    return select_claim("llm_output", numbers, text, rate=rate, inputs=solution.inputs, scope=scope)


def _has_candidate(numbers: Sequence[NumberMatch], inputs: frozenset[Decimal], *, rate: bool) -> bool:
    return any(
        number.label == "asked" or (not number.label and number.claim.value not in inputs)
        for number in numbers
        if number.claim.percent is rate
    )


def _bare_number(text: str, asked: bool) -> list[NumberMatch]:
    """Return the text as one number if it contains nothing else; it is the quantity asked for."""
    if not asked:
        return []
    try:
        return [NumberMatch(parse_claimed_amount("llm_output", text), 0, len(text), True, "asked")]
    except UnreadableInputError:
        return []


def _compare_claims(
    solution: Solution, claims: dict[str, ClaimedAmount], decided: bool | None, precision: int
) -> FinanceResult:
    _require_one_currency(solution, claims)
    results = [judge_claim(claim, solution.quantities[key], precision, solution.hints) for key, claim in claims.items()]
    failed = next((result for result in results if result.status is CheckStatus.FAILED), None)
    requested = [
        judge_claim(claims[key], solution.quantities[key], precision) for key in solution.asked if key in claims
    ]
    if failed is None and decided is not None and decided is not solution.holds:
        return _decision_result(solution, decided)
    return failed or (requested[0] if requested else _decision_result(solution, decided))


def _decision_result(solution: Solution, decided: bool | None) -> FinanceResult:
    computation = solution.quantities[solution.asked[0]][0]
    claimed = "yes" if decided else "no"
    return FinanceResult(
        status=status_of(decided is solution.holds),
        message=f"{solution.reason}, "
        + ("as claimed" if decided is solution.holds else f"but `llm_output` says {claimed}"),
        rule=computation.rule,
        by_hand=(*computation.steps, solution.reason),
        computed_value=computation.value if not computation.rate else None,
        formula_used=computation.formula,
    )


def _require_one_currency(solution: Solution, claims: dict[str, ClaimedAmount]) -> None:
    for claim in claims.values():
        if solution.currency and claim.currency and claim.currency != solution.currency:
            raise UnreadableInputError(
                f"the scenario is in {solution.currency} and the claim in {claim.currency}, "
                "which is not converted: use one currency"
            )
