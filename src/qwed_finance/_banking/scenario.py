"""A scenario in plain English and a reasoning about it: what the one comes to, held against what the other claims."""

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from qwed.packs.claimed import Claimed, claimed_of
from qwed.packs.reading import text_of
from qwed.packs.result import Standing, Unreadable, standing
from qwed_finance._banking import accounts, figures, lending, limits, ratios
from qwed_finance._banking.decisions import decision_in
from qwed_finance._banking.posed import LABELS, OTHER, Posed
from qwed_finance._banking.words import NUMBER, normal, unparsed
from qwed_finance._exact import plain
from qwed_finance._finding import ANSWER, LONGEST, Found, numbers_in, the_one
from qwed_finance._judging import judge
from qwed_finance.result import FinanceResult

LONGEST_SCENARIO = 4_000
_KINDS: tuple[Callable[[str, int], Posed | None], ...] = (
    ratios.ratio,
    figures.change,
    figures.effective,
    lending.loan,
    lending.grown,
    lending.flows,
    figures.fee,
    figures.added,
    limits.limit,
    accounts.account,
)
_LEFT = re.compile(
    rf"(?P<leaving>\b(?:leaving|leaves)\s+(?:only\s+|a\s+|you\s+|them\s+|with\s+|balance\s+|of\s+){{0,4}})?"
    rf"(?<![\w.,$])(?P<number>(?:[-\u2212]\s?)?(?:(?:us\$|[$\u20ac\u00a3\u00a5\u20b9])\s?)?[-\u2212]?{NUMBER})"
    rf"(?P<left>\s+(?:(?:is|are|will be)\s+)?(?:remain(?:s|ing)?|left|available)\b)?",
    re.IGNORECASE,
)
_THEN = re.compile(r"\b(?P<said>balance\s+(?:is|will\s+be))\s+(?:then|now|thus|therefore)\b", re.IGNORECASE)


def verify_scenario(scenario: Any, llm_output: Any, precision: int) -> FinanceResult:
    """Whether every value that the reasoning calls by its name is right, and the one asked for among them."""
    posed = _posed(normal(text_of("scenario", scenario, LONGEST_SCENARIO)), precision)
    if not isinstance(llm_output, str):
        return _held(posed, {posed.asked[0]: claimed_of("llm_output", plain(llm_output))}, None, precision)
    text = text_of("llm_output", llm_output, LONGEST)
    decided = None if posed.holds is None else decision_in(text)
    text = (
        text if posed.holds is None or "ratio" in posed.quantities else _THEN.sub(r"\g<said>", _LEFT.sub(_left, text))
    )
    return _held(posed, _claims(posed, text, decided), decided, precision)


def _left(found: re.Match[str]) -> str:
    """`$400 remaining` and `leaving $400` call a number by its name, which elsewhere stands before it."""
    said = found["leaving"] or found["left"]
    return f"remaining balance is {found['number']}" if said else found[0]


def _posed(text: str, precision: int) -> Posed:
    for read in _KINDS:
        found = read(text, precision)
        if found is not None:
            return found
    raise unparsed("the scenario is about nothing that is known here")


def _claims(posed: Posed, text: str, decided: bool | None) -> dict[str, Claimed]:
    """What the reasoning says of each quantity: of those asked for, and of those that it calls by their name."""
    claims: dict[str, Claimed] = {}
    for key in posed.quantities:
        found = _claim(posed, key, text, needed=key in posed.asked and decided is None)
        if found is not None:
            claims[key] = found
    return claims


def _claim(posed: Posed, key: str, text: str, *, needed: bool) -> Claimed | None:
    named = {each: words for each, words in LABELS.items() if each in posed.quantities and each != key}
    alone = len(posed.asked) == 1 and key == posed.asked[0]
    labels = {"asked": (*LABELS[key], *(ANSWER if alone else ())), **named, "other": OTHER}
    rate = posed.quantities[key][0].rate
    found = _alone(text, key in posed.asked) or numbers_in(text, labels)
    labelled = [each for each in found if each.label == "asked"]
    if not needed and not (labelled if key not in posed.asked else _any(found, posed.inputs, rate=rate)):
        return None
    if not alone:
        found = labelled
    return the_one("llm_output", found, text, rate=rate, inputs=posed.inputs)


def _any(found: Sequence[Found], inputs: frozenset[Decimal], *, rate: bool) -> bool:
    return any(
        each.label == "asked" or (not each.label and each.claim.value not in inputs)
        for each in found
        if each.claim.percent is rate
    )


def _alone(text: str, asked: bool) -> list[Found]:
    """The text where it is a number and nothing else, which is the one that was asked for."""
    if not asked:
        return []
    try:
        return [Found(claimed_of("llm_output", text), 0, len(text), True, "asked")]
    except Unreadable:
        return []


def _held(posed: Posed, claims: dict[str, Claimed], decided: bool | None, precision: int) -> FinanceResult:
    _require_one_currency(posed, claims)
    results = [judge(claim, posed.quantities[key], precision, posed.hints) for key, claim in claims.items()]
    wrong = next((each for each in results if each.status is Standing.FAILED), None)
    asked = [judge(claims[key], posed.quantities[key], precision) for key in posed.asked if key in claims]
    if wrong is None and decided is not None and decided is not posed.holds:
        return _decision(posed, decided)
    return wrong or (asked[0] if asked else _decision(posed, decided))


def _decision(posed: Posed, decided: bool | None) -> FinanceResult:
    worked = posed.quantities[posed.asked[0]][0]
    said = "yes" if decided else "no"
    return FinanceResult(
        status=standing(decided is posed.holds),
        message=f"{posed.reason}, " + ("as claimed" if decided is posed.holds else f"but `llm_output` says {said}"),
        rule=worked.rule,
        by_hand=(*worked.steps, posed.reason),
        computed_value=worked.value if not worked.rate else None,
        formula_used=worked.formula,
    )


def _require_one_currency(posed: Posed, claims: dict[str, Claimed]) -> None:
    for claim in claims.values():
        if posed.currency and claim.currency and claim.currency != posed.currency:
            raise Unreadable(
                f"the scenario is in {posed.currency} and the claim in {claim.currency}, which is not exchanged here"
            )
