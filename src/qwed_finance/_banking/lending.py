"""Scenarios with one amount, one rate and one term (loans, compound and simple interest), and lists of cash flows."""

import re
from collections.abc import Callable
from decimal import Decimal

from qwed_finance import interest, loans
from qwed_finance._arguments import parse_loan
from qwed_finance._banking.grammar import (
    AMOUNT,
    COMPOUNDED,
    PERCENT,
    TERM,
    Amount,
    amount_from,
    extract_matches,
    months_from,
    percent_from,
    require_one_currency,
    require_single,
    require_words,
    unparsed_error,
    word_set,
)
from qwed_finance._banking.solution import Solution
from qwed_finance._decimal import FINE, MAX_MONTHS, MAX_YEARS, TWELVE
from qwed_finance.cashflows import excel_npv, irr, npv

_COMMON_WORDS = (
    "was were wants want would like need needs now later end time calculation using "
    "a an the of on at for over with in is are what what's whats will would be calculate compute find "
    "determine how much do does i we my you your customer client borrower bank he she they his her their "
    "their's to and per year yearly annual annually annum interest rate nominal fixed please if from "
    "given that has have term period this after it by each us charges charged"
)
_LOAN_WORDS = word_set(
    f"{_COMMON_WORDS} loan loans mortgage home car auto personal student house fixed-rate takes take took out "
    "borrows borrow borrowed borrowing lends lent lend pay pays paid payable repaid repay amount "
    "principal amortized amortised fully apr payments instalments installments equal level"
)
_INTEREST_WORDS = word_set(
    f"{_COMMON_WORDS} deposit deposits deposited invest invests invested investment investing principal sum "
    "account savings earn earns earned amount saves saved put puts placed places certificate cd fd into "
    "accumulated accumulates paying pays "
    "savings bond makes value be grow left leaves left kept receive received receives"
)
_FLOW_WORDS = word_set(
    f"{_COMMON_WORDS} cash flows flow cashflows cashflow project discount discounted rate following followed returns "
    "annual inflows inflow receives yielding generating series t first then"
)
_LOAN_QUANTITIES = {
    "payment": re.compile(
        r"\bmonthly (?:mortgage |loan )?(?:payments?|instal?lments?|repayments?)\b|\bemi\b|\bpayments? per month\b"
        r"|\bpays? (?:each|every|per|a) month\b"
    ),
    "total_interest": re.compile(r"\btotal interest(?: paid| cost| payable)?\b"),
    "total_paid": re.compile(r"\btotal (?:amount )?(?:paid|repaid|repayment|cost|of payments)\b"),
}
_INTEREST_QUANTITIES = {
    "amount": re.compile(
        r"\b(?:future|maturity|final|accumulated|total|ending) (?:value|amount|balance)\b|\bgrows? to\b|\bworth\b"
        r"|\bbalance\b"
    ),
    "interest": re.compile(r"\b(?:compound|simple) interest\b|\binterest earned\b"),
}
_BARE_LOAN = re.compile(
    r"(?:an? )?(?:[a-z-]{3,20} ){0,2}(?:loan|mortgage) of [^a-z]{1,30} at [^a-z]{1,12} (?:for|over) .{1,20}"
)
"""Loan without a question: its payment is asked for."""
_COMPOUND = re.compile(r"\bcompound(?:ed|ing)?\b")
_OUTLAY = re.compile(
    r"\b(?:initial|upfront) (?:investment|outlay|cost)(?: of| is|:)?(?= ?-?[$\u20ac\u00a3\u20b9]?-?[0-9])"
)
"""Phrase for the initial payment, whatever its sign; it must precede the first amount."""
_FLOW_QUANTITIES = {
    "npv": re.compile(r"\b(?:net present value|npv)\b"),
    "irr": re.compile(r"\b(?:internal rate of return|irr)\b"),
}
QuantityPatterns = dict[str, re.Pattern[str]]


def _find_quantities(text: str, table: QuantityPatterns) -> tuple[list[str], str]:
    quantities = [key for key, pattern in table.items() if pattern.search(text)]
    for pattern in table.values():
        text = pattern.sub(" ", text)
    return quantities, text


def _parse_slots(text: str, known: frozenset[str]) -> tuple[Amount, Decimal, Decimal]:
    """Return the amount, the rate and the months of a scenario without other content."""
    rates, text = extract_matches(PERCENT, text)
    terms, text = extract_matches(TERM, text)
    amounts, text = extract_matches(AMOUNT, text)
    require_words(text, known)
    slots = (
        amount_from(require_single(amounts, "amount")),
        percent_from(require_single(rates, "rate")),
        months_from(require_single(terms, "term")),
    )
    require_one_currency([slots[0]])
    return slots


def solve_loan(text: str, decimals: int) -> Solution | None:
    """Solve a loan with monthly repayment."""
    quantities, rest = _find_quantities(text, _LOAN_QUANTITIES)
    quantities = quantities or (["payment"] if _BARE_LOAN.fullmatch(text) else [])
    if not quantities or _COMPOUND.search(text):
        return None
    amount, rate, term = _parse_slots(rest, _LOAN_WORDS)
    if term != int(term) or not 1 <= term <= MAX_MONTHS:
        raise unparsed_error(f"the term must be from 1 to {MAX_MONTHS} whole months")
    loan = parse_loan(amount.value, rate, int(term))
    interests = loans.total_interest(loan, decimals)
    paid = [
        computation._replace(value=FINE.add(computation.value, amount.value), formula=f"{computation.formula} + P")
        for computation in interests
    ]
    return Solution(
        quantities={"payment": [loans.monthly_payment(loan)], "total_interest": interests, "total_paid": paid},
        asked=quantities,
        inputs=frozenset({amount.value, rate, term, FINE.divide(term, TWELVE)}),
        currency=amount.currency,
    )


def solve_interest(text: str, _decimals: int) -> Solution | None:
    """Solve an amount with interest."""
    is_simple = "simple interest" in text
    quantities, rest = _find_quantities(text, _INTEREST_QUANTITIES)
    if not (is_simple or _COMPOUND.search(text)):
        return None
    quantities = quantities or ["amount"]
    compoundings, rest = extract_matches(COMPOUNDED, rest)
    deposit, rate, term = _parse_slots(rest, _INTEREST_WORDS)
    years = FINE.divide(term, TWELVE)
    if not 0 < years <= MAX_YEARS:
        raise unparsed_error(f"the term must be at most {MAX_YEARS} years")
    if is_simple:
        interest_alone, total = interest.simple_interest(deposit.value, rate, years)
    else:
        name = (
            require_single(compoundings, "compounding")["one"] or compoundings[0]["other"] if compoundings else "annual"
        )
        total, interest_alone = interest.compound_interest(deposit.value, rate, years, interest.parse_compounding(name))
    return Solution(
        quantities={"amount": [total], "interest": [interest_alone]},
        asked=quantities,
        inputs=frozenset({deposit.value, rate, term, years}),
        currency=deposit.currency,
    )


def solve_cash_flows(text: str, _decimals: int) -> Solution | None:
    """Solve cash flows with a discount rate."""
    quantities, rest = _find_quantities(text, _FLOW_QUANTITIES)
    if not quantities:
        return None
    paid_first = _OUTLAY.search(rest)
    rates, rest = extract_matches(PERCENT, _OUTLAY.sub(" ", rest))
    amounts, rest = extract_matches(AMOUNT, rest)
    require_words(rest, _FLOW_WORDS)
    if len(quantities) > 1 or len(amounts) < 2:
        raise unparsed_error(
            "the scenario must ask for NPV or IRR of two cash flows or more, each after a comma and a blank"
        )
    parsed = [amount_from(item) for item in amounts]
    values = [item.value for item in parsed]
    if paid_first:
        values[0] = FINE.minus(FINE.abs(values[0]))
    return _FLOW_SOLVERS[quantities[0]](values, [percent_from(item) for item in rates], require_one_currency(parsed))


def _solve_npv(values: list[Decimal], rates: list[Decimal], currency: str) -> Solution:
    if len(rates) != 1:
        raise unparsed_error("the scenario must contain one rate")
    computation = npv(values, rates[0])
    later = [excel_npv(computation, rates[0])]
    return Solution(
        quantities={"npv": [computation]},
        asked=["npv"],
        inputs=_input_values(values, rates),
        currency=currency,
        hints=later,
    )


def _solve_irr(values: list[Decimal], rates: list[Decimal], _currency: str) -> Solution:
    if rates:
        raise unparsed_error("an IRR is asked for and a rate is given")
    return Solution(quantities={"irr": irr(values)}, asked=["irr"], inputs=_input_values(values, rates))


def _input_values(values: list[Decimal], rates: list[Decimal]) -> frozenset[Decimal]:
    return frozenset({*values, *rates, *(value.copy_abs() for value in values)})


_FLOW_SOLVERS: dict[str, Callable[[list[Decimal], list[Decimal], str], Solution]] = {
    "npv": _solve_npv,
    "irr": _solve_irr,
}
