"""Ratio scenarios with a limit: debt to income, loan to value."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import NamedTuple

from qwed_finance._banking.grammar import (
    AMOUNT,
    PERCENT,
    amount_from,
    extract_matches,
    percent_from,
    require_words,
    unparsed_error,
    word_set,
)
from qwed_finance._banking.solution import Solution
from qwed_finance._decimal import FINE, Computation, format_step

_CLAUSE = re.compile(
    r"(?<=[a-z0-9)%])[.;?!:](?=\s|\Z)|,(?=\s)| and (?!no)"
    r"| (?:on|against|for) (?=(?:an? |the )?(?:property|home|house)\b)"
)
_KNOWN_WORDS = word_set(
    "a an the of is are has have with customer client borrower applicant he she his her their my i at for "
    "on to in and it be this that what what's each per gross total all loan application mortgage bank "
    "requires allows if whether approve approved approval qualify qualifies eligible eligibility does do "
    "can ratio set policy s's earns pays month"
)


class RatioKind(NamedTuple):
    """Ratio with the patterns of its name, numerator and denominator."""

    name: str
    name_pattern: re.Pattern[str]
    over: re.Pattern[str]
    under: re.Pattern[str]


RATIOS = (
    RatioKind(
        "debt-to-income ratio",
        re.compile(r"\b(?:dti|debt[- ]to[- ]income)\b"),
        re.compile(r"\b(?:total |gross )?monthly debts?(?: payments?| obligations?)?\b|\bdebt payments?\b"),
        re.compile(r"\b(?:gross )?monthly income\b|\bincome per month\b|\bearns\b"),
    ),
    RatioKind(
        "loan-to-value ratio",
        re.compile(r"\b(?:ltv|loan[- ]to[- ]value)\b"),
        re.compile(r"\b(?:loan|mortgage)(?: amount)?\b"),
        re.compile(r"\b(?:property|home|house|appraised|market)(?: is)?(?: value| price| worth| valued)?\b|\bvalue\b"),
    ),
)
_LIMIT: Mapping[str, re.Pattern[str]] = {
    "<": re.compile(r"\b(?:must be|has to be|should be)? ?(?:below|under|less than)\b"),
    "<=": re.compile(
        r"\b(?:must|may|should|can)(?:not| not) (?:exceed|be (?:above|over|more than))\b|\bat most\b|\bmaximum\b"
        r"|\bmax\b|\blimit\b|\bthreshold\b|\bup to\b|\bor less\b|\bno more than\b|\bcap\b"
    ),
}


def solve_ratio(text: str, _decimals: int) -> Solution | None:
    """Return the ratio, and whether it is within its limit."""
    kind = next((row for row in RATIOS if row.name_pattern.search(text)), None)
    if kind is None:
        return None
    state = _Ratio(kind)
    for clause in _CLAUSE.split(text):
        if clause.strip(" ,:.?!;"):
            state.read(clause.strip())
    return state.solution()


class _Ratio:
    """State of the ratio while the scenario is read."""

    def __init__(self, kind: RatioKind) -> None:
        self.kind = kind
        self.values: dict[str, Decimal] = {}
        self.limit: Decimal | None = None
        self.strict = False
        self.currencies: list[str] = []

    def read(self, clause: str) -> None:
        rates, rest = extract_matches(PERCENT, clause)
        amounts, rest = extract_matches(AMOUNT, rest)
        if len(rates) + len(amounts) > 1:
            raise unparsed_error(f"a clause must have one number, and `{clause[:60]}` has several")
        rest = self.kind.name_pattern.sub(" ", rest)
        if rates:
            self._limit(rest, percent_from(rates[0]))
        elif amounts:
            parsed = amount_from(amounts[0])
            self.currencies.append(parsed.currency)
            self._value(rest, parsed.value)
        else:
            require_words(rest, _KNOWN_WORDS)

    def _limit(self, rest: str, value: Decimal) -> None:
        sign = next((sign for sign, pattern in _LIMIT.items() if pattern.search(rest)), None)
        if sign is None or self.limit is not None:
            raise unparsed_error("only one percentage, the limit, is allowed, as in `Maximum DTI is 43%`")
        for pattern in _LIMIT.values():
            rest = pattern.sub(" ", rest)
        require_words(rest, _KNOWN_WORDS)
        self.limit, self.strict = value, sign == "<"

    def _value(self, rest: str, value: Decimal) -> None:
        for name, pattern in (("under", self.kind.under), ("over", self.kind.over)):
            if pattern.search(rest):
                if name in self.values or value <= 0:
                    raise unparsed_error(f"`{rest.strip()[:40]}` must be said once, and above 0")
                require_words(pattern.sub(" ", rest), _KNOWN_WORDS)
                self.values[name] = value
                return
        raise unparsed_error(f"`{rest.strip()[:60]}` is not part of a {self.kind.name}")

    def solution(self) -> Solution:
        """Return the solution."""
        if len(self.values) != 2 or len({currency for currency in self.currencies if currency}) > 1:
            raise unparsed_error(f"a {self.kind.name} is made of two amounts in one currency")
        over, under = self.values["over"], self.values["under"]
        exact = FINE.divide(over, under)
        rule = f"{self.kind.name}: one amount divided by the other"
        steps = (f"{over:f} / {under:f} = {format_step(exact)}",)
        computation = Computation(exact, "a / b", rule, steps, rate=True)
        inputs = {over, under} | ({self.limit} if self.limit is not None else set())
        holds, reason = self._check_limit(exact)
        return Solution(
            quantities={"ratio": [computation]}, asked=["ratio"], inputs=frozenset(inputs), holds=holds, reason=reason,
            decides=self.limit is not None,
        )  # fmt: skip

    def _check_limit(self, exact: Decimal) -> tuple[bool | None, str]:
        if self.limit is None:
            return None, ""
        holds = exact < self.limit if self.strict else exact <= self.limit
        percent, most = format_step(exact.scaleb(2, FINE)), format_step(self.limit.scaleb(2, FINE))
        return holds, f"{percent} % is {'within' if holds else 'beyond'} the limit of {most} %"
