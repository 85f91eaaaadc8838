"""The words of a scenario: slots are taken out of its text by pattern, and every word that is left has to be known."""

import re
from decimal import Decimal
from typing import NamedTuple

from qwed.packs.claimed import claimed_of
from qwed.packs.result import Unreadable
from qwed.words.currency import CURRENCIES
from qwed_finance._exact import FINE, shift

GRAMMAR = (
    "a loan of $200,000 at 6.5% for 30 years: monthly payment",
    "total interest on a loan of $200,000 at 6.5% over 360 months",
    "compound interest on $10,000 at 7.5% compounded quarterly for 5 years",
    "simple interest on $10,000 at 5% for 3 years",
    "NPV of -1000, 300, 400, 500 at 8%",
    "IRR of -1000, 300, 420, 680",
    "Balance is $500. Withdraw $200. Deposit $50.",
    "Monthly debt is $2,000. Monthly income is $6,000. Maximum DTI is 43%.",
    "Loan is $320,000. Property value is $400,000. Maximum LTV is 80%.",
    "Daily limit is $500. Already withdrawn $300. Requests $150.",
    "a fee of 2.5% on a purchase of $1,200",
    "the price rose from $80 to $100: percentage change",
    "effective annual rate of 12% compounded monthly",
    "the sum of $120.50, $75.25 and $310.00",
)
NUMBER = r"(?:[0-9]{1,3}(?:,[0-9]{3}){1,7}|[0-9]{1,2}(?:,[0-9]{2}){1,10},[0-9]{3}|[0-9]{1,24})(?:\.[0-9]{1,18})?"
_END = r"(?![0-9]|[.,][0-9]|\s?%)"
_TIMES = {
    "k": 3,
    "thousand": 3,
    "m": 6,
    "million": 6,
    "bn": 9,
    "billion": 9,
    "lakh": 5,
    "lakhs": 5,
    "crore": 7,
    "crores": 7,
}
_MONEY = {"dollars": "USD", "euros": "EUR", "pounds": "GBP", "rupees": "INR"}
_CODES = "|".join(CURRENCIES).lower()
AMOUNT = re.compile(
    rf"""(?<![\w.,$])(?P<sign>[-\u2212]\s?)?(?P<before>us\$|[$\u20ac\u00a3\u00a5\u20b9]|(?:{_CODES})\s)?\s?(?P<inner>[-\u2212])?
        (?P<digits>{NUMBER}){_END}(?:\s?(?P<times>k|m|bn|thousand|million|billion|lakhs?|crores?)\b)?
        (?:\s(?P<after>dollars|euros|pounds|rupees|{_CODES})\b)?""",
    re.VERBOSE,
)
PERCENT = re.compile(
    rf"(?<![\w.,])(?P<value>-?{NUMBER})\s?(?:%|percent\b|per cent\b)"
    r"(?P<yearly>\s(?:annual(?:ly)?(?! percentage)|nominal|yearly|p\.?a\.?|per (?:year|annum)|a year|apr|fixed)\b)?"
)
TERM = re.compile(r"(?<![\w.,$])(?P<many>[0-9]{1,4}(?:\.[0-9]{1,2})?)[ -](?P<unit>years?|yrs?|months?)\b(?! payments)")
COMPOUNDED = re.compile(r"\bcompound(?:ed|ing) (?P<one>[a-z-]{5,14})\b|\b(?P<other>[a-z-]{5,14}) compounding\b")
_SHORTER = re.compile(
    r"\s?(?:interest |rate )?(?:per |a |each |every )?(?:months?|monthly|quarter|week|day|daily|semi)"
)
_WORD = re.compile(r"[a-z][a-z'-]*|[^\s\w]|\w+")
_IGNORED = frozenset(".,:;?!'\"()[]")


def words(text: str) -> frozenset[str]:
    """The words of a list."""
    return frozenset(text.split())


class Amount(NamedTuple):
    """An amount of a scenario; `currency` is empty where it names none."""

    value: Decimal
    currency: str


def unparsed(what: str) -> Unreadable:
    """To be raised where a scenario is not understood as a whole."""
    return Unreadable(f"{what}: write a scenario such as `{GRAMMAR[0]}`", GRAMMAR)


def normal(text: str) -> str:
    """In small letters, with single blanks and straight signs."""
    for odd, usual in (("\u2019", "'"), ("\u2013", "-"), ("\u2212", "-"), ("\u00a0", " ")):
        text = text.replace(odd, usual)
    return " ".join(text.lower().split())


def taken(pattern: re.Pattern[str], text: str) -> tuple[list[re.Match[str]], str]:
    """Every match, and the text with a blank in the place of each."""
    return list(pattern.finditer(text)), pattern.sub(" ", text)


def amount(match: re.Match[str]) -> Amount:
    """The amount that was found."""
    mark = _currency(match["before"]) or _currency(match["after"])
    exact = claimed_of("amount", match["digits"]).value.scaleb(_TIMES.get(match["times"] or "", 0), FINE)
    minus = bool(match["sign"]) or bool(match["inner"])
    return Amount(FINE.minus(exact) if minus else exact, mark)


_SIGNS = {"$": "USD", "us$": "USD", "\u20ac": "EUR", "\u00a3": "GBP", "\u20b9": "INR"}


def _currency(mark: str | None) -> str:
    name = (mark or "").strip()
    if name in _SIGNS or name in _MONEY:
        return _SIGNS.get(name) or _MONEY[name]
    return name.upper() if name.upper() in CURRENCIES else ""


def percent(match: re.Match[str]) -> Decimal:
    """The fraction that was found; Unreadable where it is the rate of something else than a year."""
    if _SHORTER.match(match.string, match.end()):
        raise unparsed("a rate is understood as that of a year")
    return shift(claimed_of("rate", match["value"]).value)


def months(match: re.Match[str]) -> Decimal:
    """The term in months."""
    many = Decimal(match["many"])
    return many if match["unit"].startswith("month") else FINE.multiply(many, Decimal(12))


def one_currency(amounts: list[Amount]) -> str:
    """The currency of all of them; Unreadable where they are in two."""
    named = sorted({each.currency for each in amounts if each.currency})
    if len(named) > 1:
        raise Unreadable(f"the scenario has amounts in {' and '.join(named)}, which are not exchanged here: use one")
    return named[0] if named else ""


def require_words(rest: str, known: frozenset[str]) -> None:
    """Unreadable where a word is left that is not known."""
    strange = next((word for word in _WORD.findall(rest) if word not in known and word not in _IGNORED), None)
    if strange is not None:
        raise unparsed(f"`{strange[:40]}` is not understood in this scenario")


def only(found: list[re.Match[str]], what: str) -> re.Match[str]:
    """The one match; Unreadable where there is none, or more."""
    if len(found) != 1:
        raise unparsed(f"the scenario must say one {what}, and says {len(found)}")
    return found[0]
