"""Scenarios of one figure: a fee in percent, a change in percent, an effective rate, a sum."""

import re
from decimal import Decimal

from qwed_finance import interest, sums
from qwed_finance._banking.posed import Posed
from qwed_finance._banking.words import (
    AMOUNT,
    COMPOUNDED,
    PERCENT,
    amount,
    one_currency,
    only,
    percent,
    require_words,
    taken,
    unparsed,
    words,
)
from qwed_finance._exact import FINE, ZERO, Worked

_MOST = 200
_PLAIN = (
    "a an the of on at for with in is are what what's will be calculate compute find determine how much does do i my "
    "customer client bank merchant he she they his her to and has have that this it by was were please from"
)
_FEE = re.compile(r"\b(?:fees?|commission|surcharge)\b")
_FIXED = re.compile(r"\s?(?:\+|plus)\s")
_OF_FEES = words(
    f"{_PLAIN} charge charges charged pays pay paid wire bank card credit debit transfer purchase purchases payment "
    "transaction withdrawal deposit exchange foreign international processing origination sending made amount loan "
    "account atm cash plus + makes"
)
_CHANGE = re.compile(r"\bpercent(?:age)? (?:change|increase|decrease|growth|drop|rise|decline)\b")
_LESS = re.compile(r"\bpercent(?:age)? (?:decrease|drop|decline)\b")
_MOVED = re.compile(
    r"\b(?:rose|risen|rises|increased?s?|grew|grows?|grown|climbed|fell|falls?|fallen|dropped|drops|decreased?|"
    r"declined?s?|went|moved|changed?|goes)\b"
)
_FROM_TO = re.compile(r"\bfrom\s+\0\s+to\s+\0")
_OF_CHANGES = words(
    f"{_PLAIN} price prices deposits deposit balance revenue income portfolio share stock value year-over-year year "
    "over assets loans loan sales profit fund account its"
)
_EFFECTIVE = re.compile(r"\beffective (?:annual )?(?:interest )?rate\b|\bapy\b|\bannual percentage yield\b|\bear\b")
_OF_RATES = words(f"{_PLAIN} nominal rate interest annual yearly when if account apr savings")
_SUM = re.compile(r"\b(?:sum|total)(?: value| amount)?\b|\badd up\b")
_OF_SUMS = words(f"{_PLAIN} transactions transaction payments purchases following three four add up")


def fee(text: str, _decimals: int) -> Posed | None:
    """A share of an amount, with something fixed beside it."""
    rates, rest = taken(PERCENT, text)
    if not (_FEE.search(text) and len(rates) == 1) or "balance" in text:
        return None
    rate, amounts = percent(rates[0]), [amount(each) for each in AMOUNT.finditer(rest)]
    require_words(_FEE.sub(" ", AMOUNT.sub(" ", rest)), _OF_FEES)
    fixed = amounts.pop(0).value if _FIXED.match(text, rates[0].end()) and len(amounts) == 2 else ZERO
    if len(amounts) != 1:
        raise unparsed(f"the scenario must say one amount that the fee is of, and says {len(amounts)}")
    whole = amounts[0]
    share = FINE.multiply(whole.value, rate)
    exact = FINE.add(share, fixed)
    steps = (f"{whole.value:f} x {rate:f} = {share:f}", *((f"+ {fixed:f} = {exact:f}",) if fixed else ()))
    worked = Worked(exact, "amount x rate + fixed", "a fee in percent: of the amount", steps, whole.value)
    seen = frozenset({whole.value, rate, fixed})
    return Posed(quantities={"fee": [worked]}, asked=["fee"], inputs=seen, currency=one_currency(amounts))


def change(text: str, _decimals: int) -> Posed | None:
    """How far an amount has moved, in percent of what it was."""
    if not _CHANGE.search(text):
        return None
    found, rest = taken(AMOUNT, text)
    if len(found) != 2 or not _FROM_TO.search(AMOUNT.sub("\0", text)):
        raise unparsed("a change in percent is `from` one amount `to` another")
    require_words(_MOVED.sub(" ", _CHANGE.sub(" ", rest)), _OF_CHANGES)
    amounts = [amount(each) for each in found]
    one_currency(amounts)
    worked = sums.change(amounts[0].value, amounts[1].value)
    # A decrease of 20 % is a change of -20 %.
    either = [worked, worked._replace(value=worked.value.copy_abs())] if _LESS.search(text) else [worked]
    return Posed(quantities={"change": either}, asked=["change"], inputs=frozenset(each.value for each in amounts))


def effective(text: str, _decimals: int) -> Posed | None:
    """The effective rate of a nominal one."""
    if not _EFFECTIVE.search(text):
        return None
    often, rest = taken(COMPOUNDED, _EFFECTIVE.sub(" ", text))
    rates, rest = taken(PERCENT, rest)
    require_words(rest, _OF_RATES)
    rate, match = percent(only(rates, "rate")), only(often, "compounding")
    worked = interest.effective(rate, interest.compounding_of(match["one"] or match["other"]))
    return Posed(quantities={"effective_rate": [worked]}, asked=["effective_rate"], inputs=frozenset({rate}))


def added(text: str, _decimals: int) -> Posed | None:
    """The sum of a list of amounts."""
    found, rest = taken(AMOUNT, text)
    if not _SUM.search(text) or not 2 <= len(found) <= _MOST or PERCENT.search(text) or "interest" in text:
        return None
    require_words(_SUM.sub(" ", rest), _OF_SUMS)
    amounts = [amount(each) for each in found]
    values: list[Decimal] = [each.value for each in amounts]
    return Posed(
        quantities={"sum": [sums.added(values)]},
        asked=["sum"],
        inputs=frozenset(values),
        currency=one_currency(amounts),
    )
