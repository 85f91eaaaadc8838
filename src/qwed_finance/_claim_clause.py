"""Clause that states a claim: every word of it must be understood, or it may be about another value."""

import re
from collections.abc import Collection
from decimal import Decimal
from itertools import pairwise

from qwed.packs.result import UnreadableInputError

_TABLE = """
a about above above-mentioned accept accepted according accordingly account account-holder accrued accrues accumulate
accumulated accumulates accumulating accurate actual actually add added adding adds advance advertised after aggregate
agreed agreement all allocate allocates alone also altogether amortise amortised amortization amortize amortized
amortizes amortizing amount amounts an and annual annualised annualized annually annum answer any applied apply
applying approve approved approx approximate approximately apr apy are around arrive arrived arrives arriving as asks
asset assets assuming assumptions at auto available back balance bank bank's based basis be because become becomes
been beginning begins being below bond bonds borrowed borrower borrowers both bring brings brought budget budgets
business buyer by calculate calculated calculates calculation calculations calls came can capital car case cash cent
change charge charged charges check checked circa clean clear clears client climbed closing collect collects combined
come comes coming commitment company compare compared compound compounded compounded-quarterly compounding compute
computed computes conditions confirm confirmed confirms consequently constant contract correct correctly correspond
corresponds cost costs could couple coupon course cover covering covers credit cumulative customer daily data date day
days debt decline declined decrease decreased deducting demand denied deposit deposited derive derived details
determine determined determines did diem dirty discount discounted discounting divided dividing do does don't down
drop dropped dti due duration during each each-month ear earn earned earnings earns effective eight eleven emi end
ended ending ends entire equal equaling equalling equals equation estimate estimated estimates evaluate evaluated
evaluates evaluating even eventually every exact exactly excel expect expected expects expense expenses expression
face facility fair fallen family fee fees fell fifteen figure figures final finally find finds firm five fixed
fixed-rate flow flows following for formula formulas fortnight forty found four from full function fund funds future
fv gain gained gains generated get gets give given given-terms givens gives giving go goes going got grand grew grow
grown grows growth has have having he held hence her here his hold holds home homeowner horizon house household how hr
hundredth i i.e. ie if implies imply in included including inclusive income increase increased increases index
indicate indicates individual information initial inputs installment installments instalment instalments instrument
interest internal into invest invested investment investor investor's invests irr is it its jump jumped just keep know
leads lease leave leaves leaving left lender length lent less let let's level life lifetime line loan lose loses loss
lost lower ltv made make makes making many maturity may meaning means meant might minus mo money month month-end
monthly monthly-equivalent monthly-payment months mortgage mortgage-payment mth much multiplied multiply multiplying
must my nearest necessary need needed needs negative net new next nine nominal note notes now npv number numbers
obligation obligations obtain obtained of on one only opening ordinary original our out outlay output outstanding over
overall owe owes owner p&i p.a paid parameters pay payable paying payment payments pays penny per percent percentage
period periodic person personal placed plug plugging plus pmt population portfolio positive precise precisely present
price priced pricing principal problem proceeds produces profit profitable profits project projected property provide
provides purchaser put pv qtr quarter quarterly quarters question quoted rate rates ratio reach reached reaches
receive received receives recurring reduce reduced reduction reflects regular reject rejected remain remaining remains
rent repaid repay repaying repayment repays represent represents require required requires result resulting results
return returns revenue revenues right rise risen rises rising rose roughly round rounded rounding rounds said salary
sales same saver saving savings say says scenario schedule scheduled security see seen sees sell sells semiannual
semiannually service servicing set settle settlement settles seven shall share shares she short should show showing
shows shrank simple simplified simplify simply since sits six so solving someone span spend spends spent standard
stands start starting starts stated step steps still stock student subsequent substitute substituting subtract
subtracted subtracting such suggests sum summed summing sums taking ten tenor tenure term terms that that's the their
them then there thereby therefore these they thirty this those three through throughout thus to today together too
total totaled totaling totalled totals trade trades trading traffic translate translates true turn turnover turns
twelve twenty twenty-five two ultimately under up us user using value values verified verify very via viable wages
want wanted wants was we week weekly weeks well went were what when where which whole will with wk work works worth
worthwhile would year yearly years yield yield-to-maturity yielding yields you your yr ytm
"""
_KNOWN = frozenset(_TABLE.split())
"""Words that leave the value what it is; periods and terms are judged apart."""
_CHANGE_VERBS = "dropped drops rose rises fell falls grew grows gained lost increased decreased declined"
_VERBS = frozenset(_CHANGE_VERBS.split())
"""Verbs before which any subject may stand: `exports fell`."""
_WORD = re.compile(r"[A-Za-z][A-Za-z'\u2019&.-]*[A-Za-z]|[A-Za-z]")
_BOUNDARY = re.compile(r"[.;!?\n](?=\s|\Z)|[,:](?!\d)|[=(){}\u2192\u2248]|=>|->")
_MAX_CLAUSE = 160
_CONTRACTION = re.compile(r"'(?:s|d|ll|ve|re|m)?\Z")
_CALCULATION = re.compile(r"[*/^+\u00d7\u00f7]|\d\s?[-x\u2212]\s?[\d(]")
_PLAIN = re.compile(r"(?<![\w.])\d{1,3}(?:,\d{3})+(?!\.?\d)|(?<![\w.,])\d{1,9}(?![\w%]|[.,]\d|\s%)")


def require_known_clause(name: str, text: str, start: int, end: int, numbers: Collection[Decimal] = ()) -> None:
    """Raise UnreadableInputError if the clause around the number has a word or number that could make it another value.

    With `numbers`, the clause may name these alone.
    """
    before, after = _clause_around(text, start, end)
    stray = (
        next((number for number in _numbers(f"{before} {after}") if number not in numbers), None) if numbers else None
    )
    if stray is not None:
        raise UnreadableInputError(f"`{name}` says `{stray}` of the value, which is not one of the numbers given")
    words = _words(f"{before} {after}")
    for word, following in pairwise([*words, ""]):
        # A single letter is a variable of a formula.
        if len(word) > 1 and not {*word.split("-")} <= _KNOWN and following not in _VERBS:
            advice = "end it with `the answer is $1,264.14`"
            raise UnreadableInputError(f"`{name}` says `{word[:30]}` of the value, which is not understood: {advice}")


def last_clause(before: str, boundary: re.Pattern[str]) -> str:
    """Return the text after the last boundary that has words after it: of `annual payment: ` all."""
    starts = [0, *(match.end() for match in boundary.finditer(before))]
    return next((before[start:] for start in reversed(starts) if _WORD.search(before, start)), before)


def _clause_around(text: str, start: int, end: int) -> tuple[str, str]:
    before, after = text[max(0, start - _MAX_CLAUSE) : start], text[end : end + _MAX_CLAUSE]
    closing = _BOUNDARY.search(after)
    return last_clause(before, _BOUNDARY), after[: closing.start()] if closing else after


def _numbers(clause: str) -> list[Decimal]:
    """Return the whole numbers and amounts of the clause; those of a calculation do not count."""
    if _CALCULATION.search(clause):
        return []
    return [Decimal(match[0].replace(",", "")) for match in _PLAIN.finditer(clause)]


def _words(clause: str) -> list[str]:
    words = (_CONTRACTION.sub("", word.lower().replace("\u2019", "'").rstrip(".")) for word in _WORD.findall(clause))
    return [word for word in words if word]
