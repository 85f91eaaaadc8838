"""GST: the rate of an amount, and whether it is a rate of the country on that day."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from qwed.packs.claimed import claimed_of
from qwed.packs.countries import find_country
from qwed.packs.question import Question
from qwed.packs.reading import day_of
from qwed.packs.result import Result, Unreadable, answering, standing, unknown
from qwed_tax.money import agrees, amount_of, exactly, money, plain, rounded
from qwed_tax.tables.gst import CURRENCY, GST, SPECIAL, SPECIAL_UNTIL, Rates


@dataclass(frozen=True, kw_only=True)
class GstResult(Result):
    """What was claimed beside what the rate comes to."""

    amount: Decimal | None = None
    rate_percent: Decimal | None = None
    claimed_tax: Decimal | None = None
    computed_tax: Decimal | None = None
    difference: Decimal | None = None
    total: Decimal | None = None
    cgst: Decimal | None = None
    sgst: Decimal | None = None
    igst: Decimal | None = None
    country: str | None = None


class _Asked(NamedTuple):
    country: str | None
    base: Fraction
    rate: Fraction
    halves: bool
    """Whether the tax is CGST and SGST, each half of the rate and rounded alone."""

    @property
    def half(self) -> Decimal:
        return rounded(self.base * self.rate / 200)

    @property
    def exact(self) -> Fraction:
        return Fraction(self.half) * 2 if self.halves else self.base * self.rate / 100


_UNNAMED = "US"
_INTRA, _INTER = "intra_state", "inter_state"
_SUPPLIES = {"intra": _INTRA, "intrastate": _INTRA, "inter": _INTER, "interstate": _INTER}


def _percent_of(value: Any) -> Fraction:
    read = claimed_of("rate_percent", value)
    rate = Fraction(read.value) * (100 if read.percent else 1)
    if read.currency or not 0 <= rate <= 100:
        raise Unreadable("`rate_percent` must be from 0 to 100, write 18 for 18 %")
    return rate


def _country_of(given: Any) -> str | None:
    """The country that levies GST; the US, which the verifier is for by default and which has none, names none."""
    found = find_country(given)
    if found is None or found.code not in (_UNNAMED, *GST):
        raise unknown("country with GST", given, GST)
    return None if found.code == _UNNAMED else found.code


def _halves_of(country: str | None, supply: Any, split: tuple[Any, Any], igst: Any) -> bool:
    chosen = None
    if supply is not None:
        squeezed = supply.casefold().translate(str.maketrans("", "", " -_")) if isinstance(supply, str) else ""
        chosen = _SUPPLIES.get(squeezed)
        if chosen is None:
            raise unknown("supply", supply, (_INTRA, _INTER))
    parts = any(each is not None for each in split)
    if country not in ("IN", None) and (chosen or parts or igst is not None):
        raise Unreadable("`supply`, CGST, SGST and IGST are of India only")
    if (parts and (igst is not None or chosen == _INTER)) or (igst is not None and chosen == _INTRA):
        raise Unreadable("a supply within a state has CGST and SGST, one between states IGST: write one of the two")
    return parts or chosen == _INTRA


def _rows(country: str, on: Any) -> tuple[Rates, ...]:
    """The rates of the day; without a day all that there ever were."""
    if on is None:
        return GST[country]
    day = day_of("date", on)
    return tuple(row for row in GST[country] if row.since <= day < row.until)


def _slabs(country: str, on: Any) -> list[Fraction]:
    return sorted({slab for row in _rows(country, on) for slab in row.slabs})


def _rate_rule(asked: _Asked, on: Any) -> tuple[bool, str]:
    """Whether it is a rate of the country, or of any, and the sentence that says so."""
    if asked.country is None:
        return True, _anywhere(asked.rate, on)
    rows, slabs = _rows(asked.country, on), _slabs(asked.country, on)
    if not rows:
        raise Unreadable(f"no GST of {asked.country} on that day is in the table", _spans(asked.country))
    when = "" if on is None else f" on {day_of('date', on)}"
    known = f"the rates of {asked.country}{when} are {', '.join(map(plain, slabs))} % ({rows[-1].source})"
    if asked.rate in slabs:
        return True, known
    if asked.country == "IN" and asked.rate in SPECIAL and not _has_ended(asked.rate, on):
        raise Unreadable(f"{plain(asked.rate)} % is for {SPECIAL[asked.rate]} alone; {known}", map(plain, slabs))
    return False, known


def _has_ended(rate: Fraction, on: Any) -> bool:
    return rate in SPECIAL_UNTIL and on is not None and day_of("date", on) >= SPECIAL_UNTIL[rate]


def _spans(country: str) -> list[str]:
    return [f"{row.since} to {row.until}" for row in GST[country]]


def _anywhere(rate: Fraction, on: Any) -> str:
    named = [country for country in GST if rate in _slabs(country, on)]
    if not named:
        raise Unreadable(f"{plain(rate)} % is a GST rate of no country in the table, write `country`", GST)
    return f"no country was named; {plain(rate)} % is a GST rate of {', '.join(named)}"


@answering(GstResult)
def verify_gst(
    amount: Any = None,
    rate_percent: Any = None,
    claimed_tax: Any = None,
    *,
    country: Any = None,
    jurisdiction: Any = "US",
    date: Any = None,
    supply: Any = None,
    claimed_cgst: Any = None,
    claimed_sgst: Any = None,
    claimed_igst: Any = None,
) -> GstResult:
    """Whether the tax is the rate of the amount, and the rate one that the country has on that day."""
    code = _country_of(jurisdiction if country is None else country)
    currency = CURRENCY.get(code or "") or claimed_of("amount", amount).currency
    halves = _halves_of(code, supply, (claimed_cgst, claimed_sgst), claimed_igst)
    asked = _Asked(code, amount_of("amount", amount, currency), _percent_of(rate_percent), halves)
    given = {"claimed_tax": claimed_tax, "claimed_cgst": claimed_cgst, "claimed_sgst": claimed_sgst}
    given["claimed_igst"] = claimed_igst
    claims = {name: amount_of(name, each, currency) for name, each in given.items() if each is not None}
    if not claims:
        raise Unreadable("nothing is claimed, write `claimed_tax`")
    wrong = _wrong(asked, claims)
    allowed, known = (True, "tax = amount x rate") if wrong else _rate_rule(asked, date)
    if not allowed:
        wrong = [f"{plain(asked.rate)} % is no rate: {known}"]
    return _result(asked, wrong, known, claims.get("claimed_tax"))


def _wrong(asked: _Asked, claims: Mapping[str, Fraction]) -> list[str]:
    whole = asked.base * asked.rate / 100
    rights = {"claimed_tax": asked.exact, "claimed_cgst": whole / 2, "claimed_sgst": whole / 2, "claimed_igst": whole}
    return [
        f"`{name}` is {money(claimed)}, but comes to {money(rounded(rights[name]))}"
        for name, claimed in claims.items()
        if not agrees(claimed, rights[name])
    ]


def _result(asked: _Asked, wrong: list[str], known: str, claimed: Fraction | None) -> GstResult:
    tax = rounded(asked.exact)
    halved = (
        f"half of it, {plain(asked.rate / 2)} %: {money(asked.half)} of CGST and as much of SGST, together {money(tax)}"
    )
    return GstResult(
        status=standing(not wrong),
        message="; ".join(wrong) or f"the tax comes to {money(tax)}, as claimed; {known}",
        rule=f"{known}; rounded half up to the cent or paisa",
        by_hand=(
            f"{money(asked.base)} x {plain(asked.rate)} % = {money(asked.base * asked.rate / 100)}",
            halved if asked.halves else f"rounded half up: {money(tax)}",
        ),
        amount=exactly(asked.base),
        rate_percent=rounded(asked.rate, 4),
        claimed_tax=None if claimed is None else exactly(claimed),
        computed_tax=tax,
        difference=None if claimed is None else exactly(claimed - Fraction(tax)),
        total=rounded(asked.base + Fraction(tax)),
        cgst=asked.half if asked.halves else None,
        sgst=asked.half if asked.halves else None,
        igst=None if asked.halves or asked.country != "IN" else tax,
        country=asked.country,
    )


QUESTIONS = (
    Question(
        "gst",
        "whether a GST is the rate of its amount, and the rate one of its country and day",
        verify_gst,
        required=("amount", "rate_percent"),
        optional=(
            "claimed_tax",
            "country",
            "jurisdiction",
            "date",
            "supply",
            "claimed_cgst",
            "claimed_sgst",
            "claimed_igst",
        ),
    ),
)
