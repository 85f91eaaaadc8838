"""Whether a convention applies between parties in given countries on a given day."""

from dataclasses import dataclass, field
from datetime import date
from typing import NamedTuple

from qwed.packs.countries import COUNTRIES
from qwed_legal._jurisdiction.conventions import ARTICLE_95, NORDIC, RECIPROCITY, Convention
from qwed_legal._jurisdiction.places import Place

_LISTED = """
AI AS AW AX BL BM BQ CC CW CX FK FO GF GG GI GL GP GU HK IM IO JE KY MF MO MP MQ MS NC NF NU PF PM PN PR RE SH SJ SX TC
TK VG VI WF YT
"""
_TERRITORIES = frozenset(_LISTED.split())
"""Bound only where the convention was extended to them."""


class Applying(NamedTuple):
    """What is asked."""

    convention: Convention
    parties: tuple[Place, ...]
    day: date
    law: Place | None
    forum: Place | None


@dataclass(kw_only=True)
class Found:
    """What was found out."""

    rule: str
    since: dict[str, date | None] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    against: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)


def applied(asked: Applying) -> Found:
    """The answer, with its reasons."""
    found = Found(rule=f"{_RULES[asked.convention.key][0]} (members: {asked.convention.source})")
    for place in asked.parties:
        _look_up(asked, place, found)
    outside = [name for name, since in found.since.items() if since is None]
    if not found.open:
        _RULES[asked.convention.key][1](asked, found, outside)
    found.steps += found.reasons + found.against
    return found


def bound(convention: Convention, country: str, day: date) -> bool | None:
    """Whether a country is bound on that day; None where that is not known."""
    if country in convention.open:
        return None
    since = convention.members.get(country)
    if since is None:
        return None if country in _TERRITORIES else False
    return None if since[0] <= day < since[1] else day >= since[1]


def _look_up(asked: Applying, place: Place, found: Found) -> None:
    convention, country = asked.convention, place.country
    state = bound(convention, country, asked.day)
    name = COUNTRIES[country].name
    if state is None:
        found.open.append(f"whether {name} is bound by {convention.key} on {asked.day} is not in the table")
        return
    since = convention.members[country][0] if state else None
    found.since[name] = since
    signed = " (it signed and did not ratify)" if country in convention.signed and not state else ""
    found.steps.append(f"{name}: {'bound since ' + str(since) if state else 'not bound on ' + str(asked.day)}{signed}")
    if not state and asked.day > convention.told:
        found.warnings.append(f"who joined after {convention.told} is not in the table: look {name} up")


def _sale(asked: Applying, found: Found, outside: list[str]) -> None:
    """CISG, articles 1, 6, 92, 94 and 95."""
    countries = {place.country for place in asked.parties}
    if len(countries) == 1:
        found.against.append(
            "the parties are in one country, and a sale must be between different states (article 1(1))"
        )
    elif countries <= NORDIC:
        found.against.append("between the Nordic countries it does not apply (declarations by article 94)")
    elif not outside:
        found.reasons.append("the parties are in different contracting states, so it applies (article 1(1)(a))")
    else:
        _by_law(asked, found, outside)
    if found.reasons:
        found.warnings.append("the parties may exclude it (article 6): look whether the contract does")


def _by_law(asked: Applying, found: Found, outside: list[str]) -> None:
    law = asked.law
    missing = f"{', '.join(outside)} {'is' if len(outside) == 1 else 'are'} no contracting state"
    if law is not None and bound(asked.convention, law.country, asked.day) and law.country not in ARTICLE_95:
        found.reasons.append(
            f"{missing}, but the law of {law.name}, a contracting state, leads to it (article 1(1)(b))"
        )
        return
    declared = (
        f"; {law.name} declared by article 95 not to be bound by article 1(1)(b)"
        if law and law.country in ARTICLE_95
        else ""
    )
    found.against.append(f"{missing}, so it does not apply by article 1(1)(a){declared}")
    if law is None:
        found.warnings.append(
            "it may apply by article 1(1)(b) where the law of a contracting state governs the contract"
        )


def _award(asked: Applying, found: Found, outside: list[str]) -> None:
    """New York, articles I and III."""
    if outside:
        found.against.append(f"{', '.join(outside)} {'is' if len(outside) == 1 else 'are'} not bound")
        return
    found.reasons.append(
        "every country is bound, so an award made in one is enforced in the other (articles I and III)"
    )
    if len({place.country for place in asked.parties}) == 1:
        found.warnings.append("an award must be foreign, or not domestic, where it is enforced (article I(1))")
    declared = sorted({place.name for place in asked.parties if place.country in RECIPROCITY})
    if declared:
        found.warnings.append(f"{', '.join(declared)} enforces awards of contracting states only (article I(3))")


def _court(asked: Applying, found: Found, outside: list[str]) -> None:
    """Choice of Court 2005, articles 1 to 3 and 16; Judgments 2019, articles 1 and 29."""
    if len({place.country for place in asked.parties}) == 1 and asked.forum in (None, asked.parties[0]):
        found.against.append("the parties are in one country: the case is not international (article 1)")
        return
    if asked.forum is not None and not bound(asked.convention, asked.forum.country, asked.day):
        found.against.append(f"the courts of {asked.forum.name} are not of a contracting state")
        return
    if outside:
        found.against.append(f"{', '.join(outside)} {'is' if len(outside) == 1 else 'are'} not bound on {asked.day}")
        return
    found.reasons.append("every country is bound")
    found.warnings.append("consumers, employment and other matters are outside (article 2)")


_RULES = {
    "CISG": ("it applies to sales of goods between parties in different contracting states (CISG, article 1)", _sale),
    "New York 1958": (
        "awards made in one contracting state are enforced in the others (New York Convention, articles I, III)",
        _award,
    ),
    "Hague Choice of Court 2005": (
        "exclusive choices of a court of a contracting state are followed (articles 1, 3, 5, 8)",
        _court,
    ),
    "Hague Judgments 2019": (
        "judgments of one contracting state are enforced in the others (articles 1, 4, 29)",
        _court,
    ),
}
