"""Period that a text states for a value: `$500 a year` and `the weekly payment is $500` are no monthly payments."""

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from qwed.packs.result import UnreadableInputError
from qwed_finance._claim_clause import last_clause
from qwed_finance._decimal import FINE, TWELVE, percent_to_fraction

_PERIODS = {
    "day": ("day", "days", "daily", "diem"),
    "week": ("week", "weeks", "weekly", "wk"),
    "two weeks": ("biweekly", "bi-weekly", "fortnight", "fortnightly"),
    "half month": ("semimonthly", "semi-monthly"),
    "month": ("month", "months", "monthly", "mo", "mth", "pm", "m"),
    "two months": ("bimonthly", "bi-monthly"),
    "quarter": ("quarter", "quarters", "quarterly", "qtr"),
    "half year": ("semiannual", "semi-annual", "semiannually", "semi-annually", "half-year", "half-yearly"),
    "year": ("year", "years", "yearly", "annual", "annually", "annum", "yr", "pa", "a"),
    "decade": ("decade", "decades"),
    "hour": ("hour", "hours", "hourly", "hr"),
}
_PERIOD_OF = {word: period for period, words in _PERIODS.items() for word in words}
_NOUN = "|".join(sorted((word for word in _PERIOD_OF if not word.endswith("ly")), key=len, reverse=True))
_ADJECTIVE = "|".join(
    sorted((word for word in _PERIOD_OF if word.endswith("ly") or "annual" in word), key=len, reverse=True)
)
_TIMES = r"(?P<many>two\s|three\s|four\s|six\s|other\s|[0-9]{1,2}\s)?"
_RATIO = rf"(?:/\s?|per\s|each\s|every\s|an?\s|p\.\s?){_TIMES}(?P<noun>{_NOUN})\b"
_BEFORE = re.compile(
    rf"\b(?P<adjective>{_ADJECTIVE})\b"
    rf"|\b(?:(?:per|each|every)\s{_TIMES}|(?:in|over|during)\s(?:an?|one)\s)(?P<noun>{_NOUN})\b",
    re.IGNORECASE,
)
_AFTER = re.compile(
    rf"[\s,(\u2013-]{{0,3}}(?:(?:that|which)\sis\s)?(?:(?:paid|payable|due|charged|billed|in\stotal|on\san?)\s)?"
    rf"(?P<times>(?:once|twice|(?:two|three|four|[2-9])\stimes)\s)?(?:(?P<adjective>{_ADJECTIVE})\b|{_RATIO})",
    re.IGNORECASE,
)
_REMARK = re.compile(
    rf"\.\s(?:This|That|It)\s[^.\n]{{0,40}}?(?P<times>(?!))?(?:\b(?P<adjective>{_ADJECTIVE})\b|\b{_RATIO})",
    re.IGNORECASE,
)
"""Remark in the next sentence, such as `This is the annual payment`."""
_COMPOUNDING = re.compile(r"\bcompound(?:ed|ing)\s[\w-]+|\b[\w-]+\scompounding\b", re.IGNORECASE)
_OTHER_QUANTITY = re.compile(
    rf"%\s(?:{_ADJECTIVE})\b|\b(?:{_ADJECTIVE}|{_NOUN})\s(?:(?:interest|nominal|percentage|discount)\s)*"
    r"(?:rates?\b|percentage\syield|income|debts?|cash\sflows?|basis|periods?|payments\b|instal?lments\b)",
    re.IGNORECASE,
)
"""Phrases in which the period belongs to another quantity than an amount."""
_CLAUSE_START = re.compile(r"[.;:,(\n](?!\d)|(?<!every\s)(?<!\d)\d[\d,.]*\s?%?(?!\d)")
_SENTENCE_START = re.compile(r"[.;!?\n](?=\s)")
_LEAD = re.compile(r"(?:\A|[.;:\n])\s{0,3}(?P<words>[A-Za-z-]{1,20}(?:\s[A-Za-z-]{1,20}){0,2}),[^,.;:\n]*\Z")
"""Adverbial before a comma, such as `Annually, you pay`."""
_SEVERAL = re.compile(
    r"\b(?:two|three|four|five|six|half)\s(?:\w+\s)?(?:payments?|instal?lments?)\sof\s{0,2}\Z", re.IGNORECASE
)
_COUNTED = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_NUMBER_WORDS = dict(zip(_COUNTED, range(1, 13), strict=True))
_NUMBER_WORDS |= {"fifteen": 15, "twenty": 20, "twenty-five": 25, "thirty": 30, "forty": 40}
_TERM = (
    rf"(?P<number>[0-9]{{1,4}}(?:\.[0-9]{{1,6}})?|\b(?:{'|'.join(_NUMBER_WORDS)}))"
    r"(?P<unit>\s?%|[\s-]?years?\b|[\s-]?months?\b)"
)
_SCOPE_AFTER = re.compile(
    rf"(?:\s(?:(?:a|per|each|every)\s)?(?:month|year|monthly|annually))?,?\s(?:for|over|after|at)\s(?:\w+\s){{0,4}}?{_TERM}",
    re.IGNORECASE,
)
_SCOPE_BEFORE = re.compile(
    rf"\b(?:for|over|after|in|on|at|with|using|of)\s(?:\w+\s){{0,4}}?{_TERM}[^.;\n0-9]{{0,60}}\Z", re.IGNORECASE
)
_LABEL_AFTER = re.compile(
    r"\s(?:in|of|as)\s(?:total\s)?(?P<label>interest|principal|fees|taxes|tax)\b(?!\sand\b)", re.IGNORECASE
)
_CONTEXT = 120


class ClaimScope(NamedTuple):
    """Period, term and rate of the value that is asked for, which a text may repeat but not change."""

    period: str = ""
    """`month` for a monthly payment; empty for a value that belongs to no period."""
    months: Decimal | None = None
    rate: Decimal | None = None
    labels: Sequence[str] = ()
    """Names of the value; another quantity after the number, as in `$500 in interest`, is another value."""

    @property
    def counts(self) -> tuple[Decimal, ...]:
        """Return the term in months, quarters, half years and years."""
        return () if self.months is None else tuple(FINE.divide(self.months, Decimal(n)) for n in (1, 3, 6, 12))

    @property
    def terms(self) -> tuple[Decimal, ...]:
        """Return the term in months."""
        return () if self.months is None else (self.months,)

    def rates(self, stated: Decimal) -> tuple[Decimal, ...]:
        """Return the rate of a year, and that of a month with the decimals of the percentage that was stated."""
        if self.rate is None:
            return ()
        unit = Decimal(1).scaleb(int(stated.as_tuple().exponent) - 2)
        return self.rate, FINE.quantize(FINE.divide(self.rate, TWELVE), unit)


def require_period(name: str, text: str, start: int, end: int, period: str) -> None:
    """Raise UnreadableInputError if the text states the number at `start` for another period than `period`."""
    before, after = text[max(0, start - _CONTEXT) : start], text[end : end + _CONTEXT]
    for stated in (_period_before(before, period), _period_after(after)):
        if stated not in ("", period):
            wanted = f"the value of one {period}" if period else "no value of a period"
            raise UnreadableInputError(f"`{name}` states the value of one {stated}, and {wanted} is asked for")


def _period_before(before: str, period: str) -> str:
    """Return the period stated in the clause that leads to the number, the deviating one if there are several."""
    # A total is often named after a monthly payment in the same sentence, but a payment has one period.
    clause = last_clause(before, _SENTENCE_START if period == "month" else _CLAUSE_START)
    lead = _LEAD.search(before)
    clause = f"{lead['words'] if lead else ''} {clause}"
    if _SEVERAL.search(clause):
        return "part of the payment"
    clause = _COMPOUNDING.sub(" ", clause)
    if period != "year" and not (period and "payments" in clause.lower()):
        clause = _OTHER_QUANTITY.sub(" ", clause)
    periods = [_period_of(match) for match in _BEFORE.finditer(clause)]
    return next((stated for stated in periods if stated != period), periods[-1] if periods else "")


def _period_after(after: str) -> str:
    match = _AFTER.match(after) or _REMARK.match(after)
    if match is None:
        return ""
    times = (match["times"] or "once").strip().lower()
    return _period_of(match) if times == "once" else f"payment made {times} a {_period_of(match)}"


def _period_of(match: re.Match[str]) -> str:
    period = _PERIOD_OF[(match["adjective"] or match["noun"]).lower()]
    return f"{match['many'].strip()} {period}s" if match["many"] else period


def require_scope(name: str, text: str, start: int, end: int, scope: ClaimScope) -> None:
    """Raise UnreadableInputError if the text is about another term or rate, as in `$500 for 15 years`."""
    before = _SCOPE_BEFORE.search(text[max(0, start - _CONTEXT) : start])
    for match in filter(None, (before, _SCOPE_AFTER.match(text, end))):
        number, unit = _number_of(match["number"].lower()), match["unit"].strip(" -").lower()
        known = scope.rates(number) if unit == "%" else scope.terms
        stated = percent_to_fraction(number) if unit == "%" else number
        stated = FINE.multiply(number, TWELVE) if unit.startswith("year") else stated
        if known and stated not in known:
            raise UnreadableInputError(f"`{name}` is about `{match[0].strip()[:40]}`, which is not what was asked")


def require_label(name: str, text: str, end: int, scope: ClaimScope) -> None:
    """Raise UnreadableInputError if the text names another quantity after the number."""
    match = _LABEL_AFTER.match(text, end)
    if match is not None and scope.labels and match["label"].lower() not in " ".join(scope.labels):
        raise UnreadableInputError(f"`{name}` states an amount of {match['label']}, which is not what was asked")


def _number_of(text: str) -> Decimal:
    return Decimal(_NUMBER_WORDS.get(text, text))
