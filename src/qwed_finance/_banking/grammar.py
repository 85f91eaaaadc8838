"""Grammar of scenarios: slots are extracted by pattern, and every remaining word must be known."""

import re
from decimal import Decimal
from typing import NamedTuple

from qwed.model.currency import CURRENCIES
from qwed.packs.amount_parsing import parse_claimed_amount
from qwed.packs.result import UnreadableInputError
from qwed_finance._decimal import FINE, percent_to_fraction

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
_SCALES = {
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
_CURRENCY_WORDS = {"dollars": "USD", "euros": "EUR", "pounds": "GBP", "rupees": "INR"}
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
_NON_ANNUAL = re.compile(
    r"\s?(?:interest |rate )?(?:per |a |each |every )?(?:months?|monthly|quarter|week|day|daily|semi)"
)
_WORD = re.compile(r"[a-z][a-z'-]*|[^\s\w]|\w+")
_IGNORED = frozenset(".,:;?!'\"()[]")


def word_set(text: str) -> frozenset[str]:
    """Return the words of a list."""
    return frozenset(text.split())


class Amount(NamedTuple):
    """Amount of a scenario; `currency` is empty if none is named."""

    value: Decimal
    currency: str


def unparsed_error(what: str) -> UnreadableInputError:
    """Return the error for a scenario that is not understood."""
    return UnreadableInputError(f"{what}: write a scenario such as `{GRAMMAR[0]}`", GRAMMAR)


def normalise(text: str) -> str:
    """Return the text in lower case, with single blanks and ASCII signs."""
    for odd, usual in (("\u2019", "'"), ("\u2013", "-"), ("\u2212", "-"), ("\u00a0", " ")):
        text = text.replace(odd, usual)
    return " ".join(text.lower().split())


def extract_matches(pattern: re.Pattern[str], text: str) -> tuple[list[re.Match[str]], str]:
    """Return every match, and the text with a blank in place of each."""
    return list(pattern.finditer(text)), pattern.sub(" ", text)


def amount_from(match: re.Match[str]) -> Amount:
    """Return the amount of the match."""
    mark = _currency(match["before"]) or _currency(match["after"])
    exact = parse_claimed_amount("amount", match["digits"]).value.scaleb(_SCALES.get(match["times"] or "", 0), FINE)
    minus = bool(match["sign"]) or bool(match["inner"])
    return Amount(FINE.minus(exact) if minus else exact, mark)


_SIGNS = {"$": "USD", "us$": "USD", "\u20ac": "EUR", "\u00a3": "GBP", "\u20b9": "INR"}


def _currency(mark: str | None) -> str:
    name = (mark or "").strip()
    if name in _SIGNS or name in _CURRENCY_WORDS:
        return _SIGNS.get(name) or _CURRENCY_WORDS[name]
    return name.upper() if name.upper() in CURRENCIES else ""


def percent_from(match: re.Match[str]) -> Decimal:
    """Return the fraction of the match. Raise UnreadableInputError if the rate is not annual."""
    if _NON_ANNUAL.match(match.string, match.end()):
        raise unparsed_error("rates are annual")
    return percent_to_fraction(parse_claimed_amount("rate", match["value"]).value)


def months_from(match: re.Match[str]) -> Decimal:
    """Return the term in months."""
    count = Decimal(match["many"])
    return count if match["unit"].startswith("month") else FINE.multiply(count, Decimal(12))


def require_one_currency(amounts: list[Amount]) -> str:
    """Return the common currency. Raise UnreadableInputError if there are two."""
    currencies = sorted({amount.currency for amount in amounts if amount.currency})
    if len(currencies) > 1:
        raise UnreadableInputError(
            f"the scenario has amounts in {' and '.join(currencies)}, which are not converted: use one"
        )
    return currencies[0] if currencies else ""


def require_words(rest: str, known: frozenset[str]) -> None:
    """Raise UnreadableInputError if a word is not known."""
    unknown = next((word for word in _WORD.findall(rest) if word not in known and word not in _IGNORED), None)
    if unknown is not None:
        raise unparsed_error(f"`{unknown[:40]}` is not understood in this scenario")


def require_single(matches: list[re.Match[str]], what: str) -> re.Match[str]:
    """Return the only match. Raise UnreadableInputError for no match or several."""
    if len(matches) != 1:
        raise unparsed_error(f"the scenario must contain one {what}, and contains {len(matches)}")
    return matches[0]
