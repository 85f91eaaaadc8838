"""Applicability of a convention between parties in given countries on a given day."""

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
"""Territories that are bound only if the convention was extended to them."""


class TreatyQuery(NamedTuple):
    """Question of applicability."""

    convention: Convention
    parties: tuple[Place, ...]
    day: date
    law: Place | None
    forum: Place | None


@dataclass(kw_only=True)
class TreatyFindings:
    """Findings for and against applicability."""

    rule: str
    since: dict[str, date | None] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    against: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)


def check_applicability(query: TreatyQuery) -> TreatyFindings:
    """Return the findings for the query."""
    findings = TreatyFindings(rule=f"{_RULES[query.convention.key][0]} (members: {query.convention.source})")
    for place in query.parties:
        _check_member(query, place, findings)
    outside = [name for name, since in findings.since.items() if since is None]
    if not findings.open:
        _RULES[query.convention.key][1](query, findings, outside)
    findings.steps += findings.reasons + findings.against
    return findings


def is_bound(convention: Convention, country: str, day: date) -> bool | None:
    """Return whether the country is bound on that day, or None if unknown."""
    if country in convention.open:
        return None
    since = convention.members.get(country)
    if since is None:
        return None if country in _TERRITORIES else False
    return None if since[0] <= day < since[1] else day >= since[1]


def _check_member(query: TreatyQuery, place: Place, findings: TreatyFindings) -> None:
    convention, country = query.convention, place.country
    state = is_bound(convention, country, query.day)
    name = COUNTRIES[country].name
    if state is None:
        findings.open.append(f"whether {name} is bound by {convention.key} on {query.day} is not in the table")
        return
    since = convention.members[country][0] if state else None
    findings.since[name] = since
    signed = " (it signed and did not ratify)" if country in convention.signed and not state else ""
    findings.steps.append(
        f"{name}: {'bound since ' + str(since) if state else 'not bound on ' + str(query.day)}{signed}"
    )
    if not state and query.day > convention.as_of:
        findings.warnings.append(f"who joined after {convention.as_of} is not in the table: look {name} up")


def _apply_sale_rules(query: TreatyQuery, findings: TreatyFindings, outside: list[str]) -> None:
    """Apply CISG, articles 1, 6, 92, 94 and 95."""
    countries = {place.country for place in query.parties}
    if len(countries) == 1:
        findings.against.append(
            "the parties are in one country, and a sale must be between different states (article 1(1))"
        )
    elif countries <= NORDIC:
        findings.against.append("between the Nordic countries it does not apply (declarations by article 94)")
    elif not outside:
        findings.reasons.append("the parties are in different contracting states, so it applies (article 1(1)(a))")
    else:
        _apply_governing_law(query, findings, outside)
    if findings.reasons:
        findings.warnings.append("the parties may exclude it (article 6): look whether the contract does")


def _apply_governing_law(query: TreatyQuery, findings: TreatyFindings, outside: list[str]) -> None:
    law = query.law
    missing = f"{', '.join(outside)} {'is' if len(outside) == 1 else 'are'} no contracting state"
    if law is not None and is_bound(query.convention, law.country, query.day) and law.country not in ARTICLE_95:
        findings.reasons.append(
            f"{missing}, but the law of {law.name}, a contracting state, leads to it (article 1(1)(b))"
        )
        return
    declared = (
        f"; {law.name} declared by article 95 not to be bound by article 1(1)(b)"
        if law and law.country in ARTICLE_95
        else ""
    )
    findings.against.append(f"{missing}, so it does not apply by article 1(1)(a){declared}")
    if law is None:
        findings.warnings.append(
            "it may apply by article 1(1)(b) where the law of a contracting state governs the contract"
        )


def _apply_award_rules(query: TreatyQuery, findings: TreatyFindings, outside: list[str]) -> None:
    """Apply the New York Convention, articles I and III."""
    if outside:
        findings.against.append(f"{', '.join(outside)} {'is' if len(outside) == 1 else 'are'} not bound")
        return
    findings.reasons.append(
        "every country is bound, so an award made in one is enforced in the other (articles I and III)"
    )
    if len({place.country for place in query.parties}) == 1:
        findings.warnings.append("an award must be foreign, or not domestic, where it is enforced (article I(1))")
    declared = sorted({place.name for place in query.parties if place.country in RECIPROCITY})
    if declared:
        findings.warnings.append(f"{', '.join(declared)} enforces awards of contracting states only (article I(3))")


def _apply_court_rules(query: TreatyQuery, findings: TreatyFindings, outside: list[str]) -> None:
    """Apply Choice of Court 2005, articles 1 to 3 and 16, and Judgments 2019, articles 1 and 29."""
    if len({place.country for place in query.parties}) == 1 and query.forum in (None, query.parties[0]):
        findings.against.append("the parties are in one country: the case is not international (article 1)")
        return
    if query.forum is not None and not is_bound(query.convention, query.forum.country, query.day):
        findings.against.append(f"the courts of {query.forum.name} are not of a contracting state")
        return
    if outside:
        findings.against.append(f"{', '.join(outside)} {'is' if len(outside) == 1 else 'are'} not bound on {query.day}")
        return
    findings.reasons.append("every country is bound")
    findings.warnings.append("consumers, employment and other matters are outside (article 2)")


_RULES = {
    "CISG": (
        "it applies to sales of goods between parties in different contracting states (CISG, article 1)",
        _apply_sale_rules,
    ),
    "New York 1958": (
        "awards made in one contracting state are enforced in the others (New York Convention, articles I, III)",
        _apply_award_rules,
    ),
    "Hague Choice of Court 2005": (
        "exclusive choices of a court of a contracting state are followed (articles 1, 3, 5, 8)",
        _apply_court_rules,
    ),
    "Hague Judgments 2019": (
        "judgments of one contracting state are enforced in the others (articles 1, 4, 29)",
        _apply_court_rules,
    ),
}
