"""JurisdictionGuard: check choice of law and forum, and the applicability of conventions between parties."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from qwed.packs.check import PackCheck
from qwed.packs.result import (
    CheckStatus,
    Result,
    UnreadableInputError,
    status_of,
    unknown_name_error,
    unverifiable_on_error,
)
from qwed.packs.value_parsing import day_of, text_of
from qwed_legal._jurisdiction.choice_of_law import RULE, LawChoice, describe_steps, find_conflicts, find_warnings
from qwed_legal._jurisdiction.conventions import conventions, find_convention
from qwed_legal._jurisdiction.places import parse_parties, parse_place, parse_several_laws, resolve_among_parties
from qwed_legal._jurisdiction.treaty_applicability import TreatyFindings, TreatyQuery, check_applicability

_CONTRACT_TYPES = ("consumer", "employment")


@dataclass(frozen=True, kw_only=True)
class ChoiceOfLawResult(Result):
    """Conflicts in a choice of law, and warnings for human review."""

    conflicts: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    parties: list[str] = field(default_factory=list)
    governing_law: str | None = None
    """The law as parsed."""
    forum: str | None = None


@dataclass(frozen=True, kw_only=True)
class ConventionResult(Result):
    """Applicability of a convention between parties on a day."""

    applicable: bool | None = None
    """Same as `verified`; None if unknown."""
    convention: str | None = None
    as_of: date | None = None
    in_force: dict[str, date | None] = field(default_factory=dict)
    """First day on which each party is bound, or None if it is not."""
    conflicts: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


class JurisdictionGuard:
    """Guard for choices of law and forum, and for conventions, based on dated tables."""

    def __init__(self, clock: Callable[[], date] | None = None) -> None:
        self._today = clock or (lambda: datetime.now(UTC).date())

    @unverifiable_on_error(ChoiceOfLawResult)
    def verify_choice_of_law(
        self,
        parties_countries: Any,
        governing_law: Any,
        forum: Any = None,
        *,
        contract_type: Any = None,
        weaker_party: Any = None,
    ) -> ChoiceOfLawResult:
        """Verify the choice of law and forum. Conflicts fail it; unusual but allowed choices are warnings."""
        choice = _parse_choice(parties_countries, governing_law, forum, contract_type, weaker_party)
        conflicts, warnings = find_conflicts(choice), find_warnings(choice)
        return ChoiceOfLawResult(
            status=status_of(not conflicts),
            message=_message(choice, conflicts, warnings),
            rule=RULE,
            by_hand=describe_steps(choice, conflicts, warnings),
            conflicts=conflicts,
            warnings=warnings,
            parties=[place.name for place in choice.parties],
            governing_law=choice.law.name if choice.law else None,
            forum=choice.forum.name if choice.forum else None,
        )

    @unverifiable_on_error(ConventionResult)
    def check_convention_applicability(
        self, parties: Any, convention: Any, *, as_of: Any = None, governing_law: Any = None, forum: Any = None
    ) -> ConventionResult:
        """Verify that the convention applies between parties with places of business in these countries."""
        name = text_of("convention", convention, 200)
        treaty = find_convention(name)
        if treaty is None:
            raise unknown_name_error("convention", name, conventions())
        day = self._today() if as_of is None else day_of("as_of", as_of)
        law = None if governing_law is None else parse_place("governing_law", governing_law)
        court = None if forum is None else parse_place("forum", forum)
        places = parse_parties(parties)
        if len(places) < 2:
            raise UnreadableInputError("`parties` must name the countries of two parties at least")
        return _convention_result(check_applicability(TreatyQuery(treaty, places, day, law, court)), treaty.name, day)


def _parse_choice(parties: Any, law: Any, forum: Any, kind: Any, weaker: Any) -> LawChoice:
    if kind is not None and (not isinstance(kind, str) or kind not in _CONTRACT_TYPES):
        raise unknown_name_error("contract type", kind, _CONTRACT_TYPES)
    places = parse_parties(parties)
    law_text = " ".join(text_of("governing_law", law, 200).split())
    laws = parse_several_laws(law_text)
    return LawChoice(
        places,
        None if laws else resolve_among_parties(parse_place("governing_law", law_text), places),
        tuple(laws),
        None if forum is None else resolve_among_parties(parse_place("forum", forum), places),
        kind,
        None if weaker is None else parse_place("weaker_party", weaker),
    )


def _message(choice: LawChoice, conflicts: list[str], warnings: list[str]) -> str:
    if conflicts:
        return f"the choice does not hold: {'; '.join(conflicts)}"
    law = choice.law.name if choice.law else ""
    suffix = (
        f", with {len(warnings)} warning{'s' if len(warnings) > 1 else ''}: {'; '.join(warnings)}" if warnings else ""
    )
    return f"the law of {law} can be chosen{suffix}"


def _convention_result(findings: TreatyFindings, name: str, day: date) -> ConventionResult:
    if findings.open:
        raise UnreadableInputError("; ".join(findings.open))
    return ConventionResult(
        status=CheckStatus.FAILED if findings.against else CheckStatus.VERIFIED,
        message=f"{name}: {'; '.join(findings.against or findings.reasons)}",
        rule=findings.rule,
        by_hand=tuple(findings.steps),
        applicable=not findings.against,
        convention=name,
        as_of=day,
        in_force=findings.since,
        conflicts=findings.against,
        warnings=findings.warnings,
    )


def _check_choice_of_law(**values: Any) -> Result:
    return JurisdictionGuard().verify_choice_of_law(**values)


def _check_convention(**values: Any) -> Result:
    return JurisdictionGuard().check_convention_applicability(**values)


CHECKS: tuple[PackCheck, ...] = (
    PackCheck(
        name="choice_of_law",
        says="do the parties, the governing law and the forum of a contract go together?",
        ask=_check_choice_of_law,
        required=("parties_countries", "governing_law"),
        optional=("forum", "contract_type", "weaker_party"),
    ),
    PackCheck(
        name="convention",
        says="does a convention (CISG, New York, Hague) apply between parties in these countries?",
        ask=_check_convention,
        required=("parties", "convention"),
        optional=("as_of", "governing_law", "forum"),
    ),
)
