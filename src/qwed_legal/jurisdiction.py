"""JurisdictionGuard: do parties, governing law and forum go together, and does a convention bind the parties?"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from qwed.packs.question import Question
from qwed.packs.reading import day_of, text_of
from qwed.packs.result import Result, Standing, Unreadable, answering, standing, unknown
from qwed_legal._jurisdiction.applying import Applying, Found, applied
from qwed_legal._jurisdiction.choosing import RULE, Choice, conflicts_of, steps_of, warnings_of
from qwed_legal._jurisdiction.conventions import conventions, find_convention
from qwed_legal._jurisdiction.places import among, parties_of, place_of, several

_KINDS = ("consumer", "employment")


@dataclass(frozen=True, kw_only=True)
class ChoiceOfLawResult(Result):
    """What does not go together, and what should be looked at by somebody."""

    conflicts: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    parties: list[str] = field(default_factory=list)
    governing_law: str | None = None
    """The law as it was read."""
    forum: str | None = None


@dataclass(frozen=True, kw_only=True)
class ConventionResult(Result):
    """Whether a convention is in force between the parties on a day."""

    applicable: bool | None = None
    """The same as `verified`; None where it cannot be known."""
    convention: str | None = None
    as_of: date | None = None
    in_force: dict[str, date | None] = field(default_factory=dict)
    """By party: since when it is bound, or None where it is not."""
    conflicts: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


class JurisdictionGuard:
    """Checks choices of law and forum, and the reach of conventions, by tables with dates."""

    def __init__(self, clock: Callable[[], date] | None = None) -> None:
        self._today = clock or (lambda: datetime.now(UTC).date())

    @answering(ChoiceOfLawResult)
    def verify_choice_of_law(
        self,
        parties_countries: Any,
        governing_law: Any,
        forum: Any = None,
        *,
        contract_type: Any = None,
        weaker_party: Any = None,
    ) -> ChoiceOfLawResult:
        """Conflicts make it FAILED; what is unusual but allowed is a warning."""
        choice = _choice(parties_countries, governing_law, forum, contract_type, weaker_party)
        conflicts, warnings = conflicts_of(choice), warnings_of(choice)
        return ChoiceOfLawResult(
            status=standing(not conflicts),
            message=_message(choice, conflicts, warnings),
            rule=RULE,
            by_hand=steps_of(choice, conflicts, warnings),
            conflicts=conflicts,
            warnings=warnings,
            parties=[place.name for place in choice.parties],
            governing_law=choice.law.name if choice.law else None,
            forum=choice.forum.name if choice.forum else None,
        )

    @answering(ConventionResult)
    def check_convention_applicability(
        self, parties: Any, convention: Any, *, as_of: Any = None, governing_law: Any = None, forum: Any = None
    ) -> ConventionResult:
        """Whether the convention applies between parties with their places of business in these countries."""
        asked = text_of("convention", convention, 200)
        found = find_convention(asked)
        if found is None:
            raise unknown("convention", asked, conventions())
        day = self._today() if as_of is None else day_of("as_of", as_of)
        law = None if governing_law is None else place_of("governing_law", governing_law)
        court = None if forum is None else place_of("forum", forum)
        places = parties_of(parties)
        if len(places) < 2:
            raise Unreadable("`parties` must name the countries of two parties at least")
        return _answer(applied(Applying(found, places, day, law, court)), found.name, day)


def _choice(parties: Any, law: Any, forum: Any, kind: Any, weaker: Any) -> Choice:
    if kind is not None and (not isinstance(kind, str) or kind not in _KINDS):
        raise unknown("contract type", kind, _KINDS)
    places = parties_of(parties)
    named = " ".join(text_of("governing_law", law, 200).split())
    laws = several(named)
    return Choice(
        places,
        None if laws else among(place_of("governing_law", named), places),
        tuple(laws),
        None if forum is None else among(place_of("forum", forum), places),
        kind,
        None if weaker is None else place_of("weaker_party", weaker),
    )


def _message(choice: Choice, conflicts: list[str], warnings: list[str]) -> str:
    if conflicts:
        return f"the choice does not hold: {'; '.join(conflicts)}"
    law = choice.law.name if choice.law else ""
    beside = (
        f", with {len(warnings)} warning{'s' if len(warnings) > 1 else ''}: {'; '.join(warnings)}" if warnings else ""
    )
    return f"the law of {law} can be chosen{beside}"


def _answer(found: Found, name: str, day: date) -> ConventionResult:
    if found.open:
        raise Unreadable("; ".join(found.open))
    return ConventionResult(
        status=Standing.FAILED if found.against else Standing.VERIFIED,
        message=f"{name}: {'; '.join(found.against or found.reasons)}",
        rule=found.rule,
        by_hand=tuple(found.steps),
        applicable=not found.against,
        convention=name,
        as_of=day,
        in_force=found.since,
        conflicts=found.against,
        warnings=found.warnings,
    )


def _ask_choice(**values: Any) -> Result:
    return JurisdictionGuard().verify_choice_of_law(**values)


def _ask_convention(**values: Any) -> Result:
    return JurisdictionGuard().check_convention_applicability(**values)


QUESTIONS: tuple[Question, ...] = (
    Question(
        name="choice_of_law",
        says="do the parties, the governing law and the forum of a contract go together?",
        ask=_ask_choice,
        required=("parties_countries", "governing_law"),
        optional=("forum", "contract_type", "weaker_party"),
    ),
    Question(
        name="convention",
        says="does a convention (CISG, New York, Hague) apply between parties in these countries?",
        ask=_ask_convention,
        required=("parties", "convention"),
        optional=("as_of", "governing_law", "forum"),
    ),
)
