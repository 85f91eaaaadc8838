"""Scenarios of a ratio and its limit: debt to income, loan to value."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import NamedTuple

from qwed_finance._banking.posed import Posed
from qwed_finance._banking.words import (
    AMOUNT,
    PERCENT,
    amount,
    percent,
    require_words,
    taken,
    unparsed,
    words,
)
from qwed_finance._exact import FINE, Worked, brief

_CLAUSE = re.compile(
    r"(?<=[a-z0-9)%])[.;?!:](?=\s|\Z)|,(?=\s)| and (?!no)"
    r"| (?:on|against|for) (?=(?:an? |the )?(?:property|home|house)\b)"
)
_KNOWN = words(
    "a an the of is are has have with customer client borrower applicant he she his her their my i at for "
    "on to in and it be this that what what's each per gross total all loan application mortgage bank "
    "requires allows if whether approve approved approval qualify qualifies eligible eligibility does do "
    "can ratio set policy s's earns pays month"
)


class Kind(NamedTuple):
    """One ratio: what is divided by what, and what they are called."""

    name: str
    called: re.Pattern[str]
    over: re.Pattern[str]
    under: re.Pattern[str]


KINDS = (
    Kind(
        "debt-to-income ratio",
        re.compile(r"\b(?:dti|debt[- ]to[- ]income)\b"),
        re.compile(r"\b(?:total |gross )?monthly debts?(?: payments?| obligations?)?\b|\bdebt payments?\b"),
        re.compile(r"\b(?:gross )?monthly income\b|\bincome per month\b|\bearns\b"),
    ),
    Kind(
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


def ratio(text: str, _decimals: int) -> Posed | None:
    """A ratio, and whether it keeps its limit."""
    kind = next((each for each in KINDS if each.called.search(text)), None)
    if kind is None:
        return None
    found = _Ratio(kind)
    for clause in _CLAUSE.split(text):
        if clause.strip(" ,:.?!;"):
            found.read(clause.strip())
    return found.posed()


class _Ratio:
    """What is known so far."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.values: dict[str, Decimal] = {}
        self.limit: Decimal | None = None
        self.strict = False
        self.currencies: list[str] = []

    def read(self, clause: str) -> None:
        rates, rest = taken(PERCENT, clause)
        amounts, rest = taken(AMOUNT, rest)
        if len(rates) + len(amounts) > 1:
            raise unparsed(f"a clause must have one number, and `{clause[:60]}` has several")
        rest = self.kind.called.sub(" ", rest)
        if rates:
            self._limit(rest, percent(rates[0]))
        elif amounts:
            found = amount(amounts[0])
            self.currencies.append(found.currency)
            self._value(rest, found.value)
        else:
            require_words(rest, _KNOWN)

    def _limit(self, rest: str, value: Decimal) -> None:
        sign = next((sign for sign, pattern in _LIMIT.items() if pattern.search(rest)), None)
        if sign is None or self.limit is not None:
            raise unparsed("a percentage is understood as the limit, once, as in `Maximum DTI is 43%`")
        for pattern in _LIMIT.values():
            rest = pattern.sub(" ", rest)
        require_words(rest, _KNOWN)
        self.limit, self.strict = value, sign == "<"

    def _value(self, rest: str, value: Decimal) -> None:
        for name, pattern in (("under", self.kind.under), ("over", self.kind.over)):
            if pattern.search(rest):
                if name in self.values or value <= 0:
                    raise unparsed(f"`{rest.strip()[:40]}` must be said once, and above 0")
                require_words(pattern.sub(" ", rest), _KNOWN)
                self.values[name] = value
                return
        raise unparsed(f"`{rest.strip()[:60]}` is no part of a {self.kind.name}")

    def posed(self) -> Posed:
        """What the ratio comes to."""
        if len(self.values) != 2 or len({each for each in self.currencies if each}) > 1:
            raise unparsed(f"a {self.kind.name} is made of two amounts in one currency")
        over, under = self.values["over"], self.values["under"]
        exact = FINE.divide(over, under)
        rule = f"{self.kind.name}: one amount divided by the other"
        steps = (f"{over:f} / {under:f} = {brief(exact)}",)
        worked = Worked(exact, "a / b", rule, steps, rate=True)
        inputs = {over, under} | ({self.limit} if self.limit is not None else set())
        holds, reason = self._held(exact)
        return Posed(
            quantities={"ratio": [worked]}, asked=["ratio"], inputs=frozenset(inputs), holds=holds, reason=reason,
            decides=self.limit is not None,
        )  # fmt: skip

    def _held(self, exact: Decimal) -> tuple[bool | None, str]:
        if self.limit is None:
            return None, ""
        holds = exact < self.limit if self.strict else exact <= self.limit
        shown, most = brief(exact.scaleb(2, FINE)), brief(self.limit.scaleb(2, FINE))
        return holds, f"{shown} % is {'within' if holds else 'beyond'} the limit of {most} %"
