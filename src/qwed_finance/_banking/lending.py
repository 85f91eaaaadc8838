"""Scenarios of one amount, one rate and one term: loans, compound and simple interest; and of a list of cash flows."""

import re
from collections.abc import Callable
from decimal import Decimal

from qwed_finance import interest, loans
from qwed_finance._banking.posed import Posed
from qwed_finance._banking.words import (
    AMOUNT,
    COMPOUNDED,
    PERCENT,
    TERM,
    Amount,
    amount,
    months,
    one_currency,
    only,
    percent,
    require_words,
    taken,
    unparsed,
    words,
)
from qwed_finance._exact import FINE, MOST_MONTHS, MOST_YEARS, TWELVE
from qwed_finance._reading import loan_of
from qwed_finance.cashflows import irr, npv, npv_of_excel

_PLAIN = (
    "was were wants want would like need needs now later end time calculation using "
    "a an the of on at for over with in is are what what's whats will would be calculate compute find "
    "determine how much do does i we my you your customer client borrower bank he she they his her their "
    "their's to and per year yearly annual annually annum interest rate nominal fixed please if from "
    "given that has have term period this after it by each us charges charged"
)
_OF_LOANS = words(
    f"{_PLAIN} loan loans mortgage home car auto personal student house fixed-rate takes take took out "
    "borrows borrow borrowed borrowing lends lent lend pay pays paid payable repaid repay amount "
    "principal amortized amortised fully apr payments instalments installments equal level"
)
_OF_INTEREST = words(
    f"{_PLAIN} deposit deposits deposited invest invests invested investment investing principal sum "
    "account savings earn earns earned amount saves saved put puts placed places certificate cd fd into "
    "accumulated accumulates paying pays "
    "savings bond makes value be grow left leaves left kept receive received receives"
)
_OF_FLOWS = words(
    f"{_PLAIN} cash flows flow cashflows cashflow project discount discounted rate following followed returns annual "
    "inflows inflow receives yielding generating series t first then"
)
_LOANS = {
    "payment": re.compile(
        r"\bmonthly (?:mortgage |loan )?(?:payments?|instal?lments?|repayments?)\b|\bemi\b|\bpayments? per month\b"
        r"|\bpays? (?:each|every|per|a) month\b"
    ),
    "total_interest": re.compile(r"\btotal interest(?: paid| cost| payable)?\b"),
    "total_paid": re.compile(r"\btotal (?:amount )?(?:paid|repaid|repayment|cost|of payments)\b"),
}
_GROWN = {
    "amount": re.compile(
        r"\b(?:future|maturity|final|accumulated|total|ending) (?:value|amount|balance)\b|\bgrows? to\b|\bworth\b"
        r"|\bbalance\b"
    ),
    "interest": re.compile(r"\b(?:compound|simple) interest\b|\binterest earned\b"),
}
_LENT = re.compile(
    r"(?:an? )?(?:[a-z-]{3,20} ){0,2}(?:loan|mortgage) of [^a-z]{1,30} at [^a-z]{1,12} (?:for|over) .{1,20}"
)
"""A loan about which nothing is asked: its payment is."""
_COMPOUND = re.compile(r"\bcompound(?:ed|ing)?\b")
_OUTLAY = re.compile(
    r"\b(?:initial|upfront) (?:investment|outlay|cost)(?: of| is|:)?(?= ?-?[$\u20ac\u00a3\u20b9]?-?[0-9])"
)
"""What is paid first, whatever its sign; said before the first amount, or not understood."""
_FLOWS = {
    "npv": re.compile(r"\b(?:net present value|npv)\b"),
    "irr": re.compile(r"\b(?:internal rate of return|irr)\b"),
}
Asking = dict[str, re.Pattern[str]]


def _asked(text: str, table: Asking) -> tuple[list[str], str]:
    found = [key for key, pattern in table.items() if pattern.search(text)]
    for pattern in table.values():
        text = pattern.sub(" ", text)
    return found, text


def _slots(text: str, known: frozenset[str]) -> tuple[Amount, Decimal, Decimal]:
    """The amount, the rate and the months of a scenario that says nothing else."""
    rates, text = taken(PERCENT, text)
    terms, text = taken(TERM, text)
    amounts, text = taken(AMOUNT, text)
    require_words(text, known)
    found = amount(only(amounts, "amount")), percent(only(rates, "rate")), months(only(terms, "term"))
    one_currency([found[0]])
    return found


def loan(text: str, decimals: int) -> Posed | None:
    """A loan that is paid back month by month."""
    asked, rest = _asked(text, _LOANS)
    asked = asked or (["payment"] if _LENT.fullmatch(text) else [])
    if not asked or _COMPOUND.search(text):
        return None
    lent, rate, long = _slots(rest, _OF_LOANS)
    if long != int(long) or not 1 <= long <= MOST_MONTHS:
        raise unparsed(f"the term must be from 1 to {MOST_MONTHS} whole months")
    found = loan_of(lent.value, rate, int(long))
    interests = loans.total_interest(found, decimals)
    paid = [each._replace(value=FINE.add(each.value, lent.value), formula=f"{each.formula} + P") for each in interests]
    return Posed(
        quantities={"payment": [loans.payment(found)], "total_interest": interests, "total_paid": paid},
        asked=asked,
        inputs=frozenset({lent.value, rate, long, FINE.divide(long, TWELVE)}),
        currency=lent.currency,
    )


def grown(text: str, _decimals: int) -> Posed | None:
    """An amount that bears interest."""
    is_simple = "simple interest" in text
    asked, rest = _asked(text, _GROWN)
    if not (is_simple or _COMPOUND.search(text)):
        return None
    asked = asked or ["amount"]
    often, rest = taken(COMPOUNDED, rest)
    put, rate, long = _slots(rest, _OF_INTEREST)
    years = FINE.divide(long, TWELVE)
    if not 0 < years <= MOST_YEARS:
        raise unparsed(f"the term must be at most {MOST_YEARS} years")
    if is_simple:
        alone, amount_ = interest.simple(put.value, rate, years)
    else:
        name = only(often, "compounding")["one"] or often[0]["other"] if often else "annual"
        amount_, alone = interest.compound(put.value, rate, years, interest.compounding_of(name))
    return Posed(
        quantities={"amount": [amount_], "interest": [alone]},
        asked=asked,
        inputs=frozenset({put.value, rate, long, years}),
        currency=put.currency,
    )


def flows(text: str, _decimals: int) -> Posed | None:
    """Cash flows, and the rate that they are discounted at."""
    asked, rest = _asked(text, _FLOWS)
    if not asked:
        return None
    paid_first = _OUTLAY.search(rest)
    rates, rest = taken(PERCENT, _OUTLAY.sub(" ", rest))
    amounts, rest = taken(AMOUNT, rest)
    require_words(rest, _OF_FLOWS)
    if len(asked) > 1 or len(amounts) < 2:
        raise unparsed("the scenario must ask for NPV or IRR of two cash flows or more, each after a comma and a blank")
    found = [amount(each) for each in amounts]
    values = [each.value for each in found]
    if paid_first:
        values[0] = FINE.minus(FINE.abs(values[0]))
    return _FLOW_WORKED[asked[0]](values, [percent(each) for each in rates], one_currency(found))


def _npv(values: list[Decimal], rates: list[Decimal], currency: str) -> Posed:
    if len(rates) != 1:
        raise unparsed("the scenario must say one rate")
    worked = npv(values, rates[0])
    later = [npv_of_excel(worked, rates[0])]
    return Posed(
        quantities={"npv": [worked]}, asked=["npv"], inputs=_repeated(values, rates), currency=currency, hints=later
    )


def _irr(values: list[Decimal], rates: list[Decimal], _currency: str) -> Posed:
    if rates:
        raise unparsed("an IRR is asked for and a rate is given")
    return Posed(quantities={"irr": irr(values)}, asked=["irr"], inputs=_repeated(values, rates))


def _repeated(values: list[Decimal], rates: list[Decimal]) -> frozenset[Decimal]:
    return frozenset({*values, *rates, *(each.copy_abs() for each in values)})


_FLOW_WORKED: dict[str, Callable[[list[Decimal], list[Decimal], str], Posed]] = {"npv": _npv, "irr": _irr}
