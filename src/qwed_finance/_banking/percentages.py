"""Scenarios with one figure: a percentage fee, a percentage change, an effective rate, a sum."""

import re
from decimal import Decimal

from qwed_finance import interest, sums
from qwed_finance._banking.grammar import (
    AMOUNT,
    COMPOUNDED,
    PERCENT,
    amount_from,
    extract_matches,
    percent_from,
    require_one_currency,
    require_single,
    require_words,
    unparsed_error,
    word_set,
)
from qwed_finance._banking.solution import Solution
from qwed_finance._decimal import FINE, ZERO, Computation

_MAX_AMOUNTS = 200
_COMMON_WORDS = (
    "a an the of on at for with in is are what what's will be calculate compute find determine how much does do i my "
    "customer client bank merchant he she they his her to and has have that this it by was were please from"
)
_FEE = re.compile(r"\b(?:fees?|commission|surcharge)\b")
_FIXED = re.compile(r"\s?(?:\+|plus)\s")
_FEE_WORDS = word_set(
    f"{_COMMON_WORDS} charge charges charged pays pay paid wire bank card credit debit transfer purchase purchases "
    "payment transaction withdrawal deposit exchange foreign international processing origination sending made amount "
    "loan account atm cash plus + makes"
)
_CHANGE = re.compile(r"\bpercent(?:age)? (?:change|increase|decrease|growth|drop|rise|decline)\b")
_LESS = re.compile(r"\bpercent(?:age)? (?:decrease|drop|decline)\b")
_MOVED = re.compile(
    r"\b(?:rose|risen|rises|increased?s?|grew|grows?|grown|climbed|fell|falls?|fallen|dropped|drops|decreased?|"
    r"declined?s?|went|moved|changed?|goes)\b"
)
_FROM_TO = re.compile(r"\bfrom\s+\0\s+to\s+\0")
_CHANGE_WORDS = word_set(
    f"{_COMMON_WORDS} price prices deposits deposit balance revenue income portfolio share stock value year-over-year "
    "year over assets loans loan sales profit fund account its"
)
_EFFECTIVE = re.compile(r"\beffective (?:annual )?(?:interest )?rate\b|\bapy\b|\bannual percentage yield\b|\bear\b")
_RATE_WORDS = word_set(f"{_COMMON_WORDS} nominal rate interest annual yearly when if account apr savings")
_SUM = re.compile(r"\b(?:sum|total)(?: value| amount)?\b|\badd up\b")
_SUM_WORDS = word_set(f"{_COMMON_WORDS} transactions transaction payments purchases following three four add up")


def solve_fee(text: str, _decimals: int) -> Solution | None:
    """Solve a percentage of an amount, with an optional fixed fee."""
    rates, rest = extract_matches(PERCENT, text)
    if not (_FEE.search(text) and len(rates) == 1) or "balance" in text:
        return None
    rate, amounts = percent_from(rates[0]), [amount_from(match) for match in AMOUNT.finditer(rest)]
    require_words(_FEE.sub(" ", AMOUNT.sub(" ", rest)), _FEE_WORDS)
    fixed = amounts.pop(0).value if _FIXED.match(text, rates[0].end()) and len(amounts) == 2 else ZERO
    if len(amounts) != 1:
        raise unparsed_error(f"the scenario must contain one amount for the fee, and contains {len(amounts)}")
    base = amounts[0]
    share = FINE.multiply(base.value, rate)
    exact = FINE.add(share, fixed)
    steps = (f"{base.value:f} x {rate:f} = {share:f}", *((f"+ {fixed:f} = {exact:f}",) if fixed else ()))
    computation = Computation(exact, "amount x rate + fixed", "a fee in percent: of the amount", steps, base.value)
    return Solution(
        quantities={"fee": [computation]},
        asked=["fee"],
        inputs=frozenset({base.value, rate, fixed}),
        currency=require_one_currency(amounts),
    )


def solve_change(text: str, _decimals: int) -> Solution | None:
    """Solve the change of an amount in percent of the old value."""
    if not _CHANGE.search(text):
        return None
    matches, rest = extract_matches(AMOUNT, text)
    if len(matches) != 2 or not _FROM_TO.search(AMOUNT.sub("\0", text)):
        raise unparsed_error("a change in percent is `from` one amount `to` another")
    require_words(_MOVED.sub(" ", _CHANGE.sub(" ", rest)), _CHANGE_WORDS)
    amounts = [amount_from(item) for item in matches]
    require_one_currency(amounts)
    computation = sums.percentage_change(amounts[0].value, amounts[1].value)
    # A decrease of 20 % is a change of -20 %.
    readings = (
        [computation, computation._replace(value=computation.value.copy_abs())] if _LESS.search(text) else [computation]
    )
    return Solution(quantities={"change": readings}, asked=["change"], inputs=frozenset(item.value for item in amounts))


def solve_effective_rate(text: str, _decimals: int) -> Solution | None:
    """Solve the effective rate of a nominal one."""
    if not _EFFECTIVE.search(text):
        return None
    compoundings, rest = extract_matches(COMPOUNDED, _EFFECTIVE.sub(" ", text))
    rates, rest = extract_matches(PERCENT, rest)
    require_words(rest, _RATE_WORDS)
    rate, match = percent_from(require_single(rates, "rate")), require_single(compoundings, "compounding")
    computation = interest.effective_rate(rate, interest.parse_compounding(match["one"] or match["other"]))
    return Solution(quantities={"effective_rate": [computation]}, asked=["effective_rate"], inputs=frozenset({rate}))


def solve_sum(text: str, _decimals: int) -> Solution | None:
    """Solve the sum of a list of amounts."""
    matches, rest = extract_matches(AMOUNT, text)
    if not _SUM.search(text) or not 2 <= len(matches) <= _MAX_AMOUNTS or PERCENT.search(text) or "interest" in text:
        return None
    require_words(_SUM.sub(" ", rest), _SUM_WORDS)
    amounts = [amount_from(item) for item in matches]
    values: list[Decimal] = [item.value for item in amounts]
    return Solution(
        quantities={"sum": [sums.sum_amounts(values)]},
        asked=["sum"],
        inputs=frozenset(values),
        currency=require_one_currency(amounts),
    )
