"""GST check: the tax on an amount, and whether the rate exists in the country on that day."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date as date_type
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from qwed.packs.amount_parsing import parse_claimed_amount
from qwed.packs.check import PackCheck
from qwed.packs.countries import find_country
from qwed.packs.result import Result, UnreadableInputError, status_of, unknown_name_error, unverifiable_on_error
from qwed.packs.value_parsing import day_of
from qwed_tax.money import agrees, amount_of, exactly, money, plain, rounded
from qwed_tax.tables.gst import CURRENCY, GST, SPECIAL, SPECIAL_UNTIL, GstRates


@dataclass(frozen=True, kw_only=True)
class GstResult(Result):
    """Claimed and computed GST."""

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


class _GstQuery(NamedTuple):
    country: str | None
    base: Fraction
    rate: Fraction
    halves: bool
    """True if the tax is CGST and SGST, each half of the rate and rounded separately."""

    @property
    def half(self) -> Decimal:
        return rounded(self.base * self.rate / 200)

    @property
    def exact(self) -> Fraction:
        return Fraction(self.half) * 2 if self.halves else self.base * self.rate / 100


_UNNAMED, _INDIA = "US", "IN"
_INTRA, _INTER = "intra_state", "inter_state"
_SUPPLIES = {"intra": _INTRA, "intrastate": _INTRA, "inter": _INTER, "interstate": _INTER}


def _percent_of(value: Any) -> Fraction:
    parsed = parse_claimed_amount("rate_percent", value)
    rate = Fraction(parsed.value) * (100 if parsed.percent else 1)
    if parsed.currency or not 0 <= rate <= 100:
        raise UnreadableInputError("`rate_percent` must be from 0 to 100, write 18 for 18 %")
    return rate


def _country_of(value: Any) -> str | None:
    """Return the country that levies GST; the US has none and maps to None."""
    country = find_country(value)
    if country is None or country.code not in (_UNNAMED, *GST):
        raise unknown_name_error("country with GST", value, GST)
    return None if country.code == _UNNAMED else country.code


def _halves_of(country: str | None, supply: Any, split: tuple[Any, Any], igst: Any) -> bool:
    chosen = None
    if supply is not None:
        squeezed = supply.casefold().translate(str.maketrans("", "", " -_")) if isinstance(supply, str) else ""
        chosen = _SUPPLIES.get(squeezed)
        if chosen is None:
            raise unknown_name_error("supply", supply, (_INTRA, _INTER))
    parts = any(each is not None for each in split)
    if country not in ("IN", None) and (chosen or parts or igst is not None):
        raise UnreadableInputError("`supply`, CGST, SGST and IGST are of India only")
    if (parts and (igst is not None or chosen == _INTER)) or (igst is not None and chosen == _INTRA):
        raise UnreadableInputError(
            "a supply within a state has CGST and SGST, one between states IGST: write one of the two"
        )
    return parts or chosen == _INTRA


def _rows(country: str, on: Any) -> tuple[GstRates, ...]:
    """Return the rates of the day, or the present ones without a day."""
    if on is None:
        return tuple(row for row in GST[country] if row.until == date_type.max)
    day = day_of("date", on)
    return tuple(row for row in GST[country] if row.since <= day < row.until)


def _slabs(country: str, on: Any) -> list[Fraction]:
    """Return the rates; without a day also earlier general ones that some goods still have."""
    kept = _ever(country) & SPECIAL.keys() if on is None and country == _INDIA else frozenset[Fraction]()
    return sorted({slab for row in _rows(country, on) for slab in row.slabs} | kept)


def _ever(country: str) -> frozenset[Fraction]:
    return frozenset(slab for row in GST[country] for slab in row.slabs)


def _rate_rule(query: _GstQuery, on: Any) -> tuple[bool, str]:
    """Return whether the rate exists in the country, or anywhere, and a sentence about it."""
    if query.country is None:
        return True, _anywhere(query.rate, on)
    rows, slabs = _rows(query.country, on), _slabs(query.country, on)
    if not rows:
        raise UnreadableInputError(f"no GST of {query.country} on that day is in the table", _spans(query.country))
    when = "" if on is None else f" on {day_of('date', on)}"
    known = f"the rates of {query.country}{when} are {', '.join(map(plain, slabs))} % ({rows[-1].source})"
    if query.rate in slabs:
        return True, known
    if query.country == "IN" and query.rate in SPECIAL and not _has_ended(query.rate, on):
        raise UnreadableInputError(
            f"{plain(query.rate)} % is for {SPECIAL[query.rate]} alone; {known}", map(plain, slabs)
        )
    if on is None and query.rate in _ever(query.country):
        raise UnreadableInputError(
            f"{plain(query.rate)} % was a rate of {query.country} earlier, write `date`; {known}"
        )
    return False, known


def _has_ended(rate: Fraction, on: Any) -> bool:
    return rate in SPECIAL_UNTIL and on is not None and day_of("date", on) >= SPECIAL_UNTIL[rate]


def _spans(country: str) -> list[str]:
    return [f"{row.since} to {row.until}" for row in GST[country]]


def _anywhere(rate: Fraction, on: Any) -> str:
    countries = [country for country in GST if rate in _slabs(country, on)]
    if not countries:
        raise UnreadableInputError(f"{plain(rate)} % is a GST rate of no country in the table, write `country`", GST)
    return f"no country was named; {plain(rate)} % is a GST rate of {', '.join(countries)}"


@unverifiable_on_error(GstResult)
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
    """Check that the tax is the rate of the amount and that the country has this rate on that day."""
    code = _country_of(jurisdiction if country is None else country)
    if code is None and country is not None:
        raise unknown_name_error("country with GST", country, GST)
    currency = CURRENCY.get(code or "") or parse_claimed_amount("amount", amount).currency
    halves = _halves_of(code, supply, (claimed_cgst, claimed_sgst), claimed_igst)
    asked = _GstQuery(code, amount_of("amount", amount, currency), _percent_of(rate_percent), halves)
    given = {"claimed_tax": claimed_tax, "claimed_cgst": claimed_cgst, "claimed_sgst": claimed_sgst}
    given["claimed_igst"] = claimed_igst
    claims = {name: amount_of(name, each, currency) for name, each in given.items() if each is not None}
    if not claims:
        raise UnreadableInputError("nothing is claimed, write `claimed_tax`")
    wrong = _find_errors(asked, claims)
    allowed, known = (True, "tax = amount x rate") if wrong else _rate_rule(asked, date)
    if not allowed:
        wrong = [f"{plain(asked.rate)} % is no rate: {known}"]
    return _result(asked, wrong, known, claims.get("claimed_tax"))


def _find_errors(query: _GstQuery, claims: Mapping[str, Fraction]) -> list[str]:
    whole = query.base * query.rate / 100
    rights = {"claimed_tax": query.exact, "claimed_cgst": whole / 2, "claimed_sgst": whole / 2, "claimed_igst": whole}
    return [
        f"`{name}` is {money(claimed)}, but comes to {money(rounded(rights[name]))}"
        for name, claimed in claims.items()
        if not agrees(claimed, rights[name])
    ]


def _result(query: _GstQuery, errors: list[str], known: str, claimed: Fraction | None) -> GstResult:
    tax = rounded(query.exact)
    halved = (
        f"half of it, {plain(query.rate / 2)} %: {money(query.half)} of CGST and as much of SGST, together {money(tax)}"
    )
    return GstResult(
        status=status_of(not errors),
        message="; ".join(errors) or f"the tax comes to {money(tax)}, as claimed; {known}",
        rule=f"{known}; rounded half up to the cent or paisa",
        by_hand=(
            f"{money(query.base)} x {plain(query.rate)} % = {money(query.base * query.rate / 100)}",
            halved if query.halves else f"rounded half up: {money(tax)}",
        ),
        amount=exactly(query.base),
        rate_percent=rounded(query.rate, 4),
        claimed_tax=None if claimed is None else exactly(claimed),
        computed_tax=tax,
        difference=None if claimed is None else exactly(claimed - Fraction(tax)),
        total=rounded(query.base + Fraction(tax)),
        cgst=query.half if query.halves else None,
        sgst=query.half if query.halves else None,
        igst=None if query.halves or query.country != "IN" else tax,
        country=query.country,
    )


CHECKS = (
    PackCheck(
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
