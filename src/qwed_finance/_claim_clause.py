"""Clause that states a claim: every word of it must be understood, or it may be about another value."""

import re

from qwed.packs.result import UnreadableInputError

_TABLE = """
a about above account accrued accrues accumulate accumulates add added adding after all alone amortised amortization
amortized amortizing amount amounts an and annual annually answer approx approximately apr apy are around as at auto
available back balance bank be become becomes below bond borrowed borrower borrowers business by calculate calculated
calculates came can car cash change charged circa clean client closing combined come comes compound compounded
compounding compute computed computes constant correct cost costs coupon customer daily date day days debt decline
declined decrease decreased deposit dirty discount discounted discounting down drop dropped dti due during each ear
earn earned earns effective emi end ending entire equal equaling equalling equals every exactly face fallen fee fees
fell final find finds fixed flow flows following for formula found from full future fv gain gained generated get gets
give given gives giving got grew grow grown grows growth has have having he hence her here his home house i i.e. ie if
in included including inclusive income increase increased initial installment installments instalment instalments
interest internal into invested investment investor irr is it its just know leads left lender lent less level life
loan loss lower ltv make makes maturity minus month monthly months mortgage must my need needs negative net new
nominal note now npv obtain obtained of on one only ordinary original our out outstanding over overall owe owes p&i
p.a paid pay payable paying payment payments pays per percent percentage period personal plus pmt precisely present
price principal produces profit project pv quarter quarterly quarters rate rates ratio reach reaches regular remain
remaining remains repaid repayment require required requires result resulting results return returns right risen rose
roughly round rounded rounding rounds same schedule semiannual semiannually she short should simple simply so standard
step steps student sum sums term that that's the their them then there therefore these they this those through thus to
today total totaling totals under up us using value was we week weekly weeks were when where which whole will with
work works worth would year yearly years yield yielding yields you your ytm
"""
_KNOWN = frozenset(_TABLE.split())
"""Words that leave the value what it is; periods and terms are judged apart."""
_WORD = re.compile(r"[A-Za-z][A-Za-z'\u2019&.-]*[A-Za-z]|[A-Za-z]")
_BOUNDARY = re.compile(r"[.;!?\n](?=\s|\Z)|[,:=(){}\u2192\u2248]|=>|->")
_MAX_CLAUSE = 160


def require_known_clause(name: str, text: str, start: int, end: int) -> None:
    """Raise UnreadableInputError if the clause around the number has a word that could make it another value."""
    for word in _words(text, start, end):
        # A single letter is a variable of a formula.
        if len(word) > 1 and not {*word.split("-")} <= _KNOWN:
            advice = "end it with `the answer is $1,264.14`"
            raise UnreadableInputError(f"`{name}` says `{word[:30]}` of the value, which is not understood: {advice}")


def last_clause(before: str, boundary: re.Pattern[str]) -> str:
    """Return the text after the last boundary that has words after it: of `annual payment: ` all."""
    starts = [0, *(match.end() for match in boundary.finditer(before))]
    return next((before[start:] for start in reversed(starts) if _WORD.search(before, start)), before)


def _words(text: str, start: int, end: int) -> list[str]:
    before, after = text[max(0, start - _MAX_CLAUSE) : start], text[end : end + _MAX_CLAUSE]
    closing = _BOUNDARY.search(after)
    clause = f"{last_clause(before, _BOUNDARY)} {after[: closing.start()] if closing else after}"
    return [word.lower().replace("\u2019", "'").rstrip(".") for word in _WORD.findall(clause)]
