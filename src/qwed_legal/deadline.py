"""DeadlineGuard: whether a deadline is the last day of a term that is counted from a signing date."""

from dataclasses import dataclass
from datetime import date
from typing import Any, TypeVar

from qwed.packs.own import own
from qwed.packs.question import Question
from qwed.packs.reading import day_of, whole_of
from qwed.packs.result import Result, Unreadable, answering, standing, unknown
from qwed.packs.wording import counted
from qwed_legal._deadline.grammar import read_term
from qwed_legal._deadline.place import Place, place_of
from qwed_legal._deadline.reckoning import Step, reckon, shown
from qwed_legal._deadline.term import Counting, Roll, Span, Term, said

_MOST_TOLERANCE = 3_650
_ROLLS = {each.value: each for each in Roll} | {
    "following": Roll.NEXT,
    "forward": Roll.NEXT,
    "preceding": Roll.PREVIOUS,
    "modified following": Roll.MODIFIED,
    "modified_following": Roll.MODIFIED,
}
_COUNTINGS = {each.value: each for each in Counting}
_NOT_COUNTED = "the day of the event is not counted (FRCP 6(a)(1)(A), BGB 187(1))"
_COUNTED = "the day of the event is counted as the first day (BGB 187(2))"
_MONTHS = "a month ends on the day of the same number, or on its last day where it has none (BGB 188(2) and (3))"
_BUSINESS = "business days are all but weekends and public holidays of {place}, as observed"
_BANKING = "banking days of the United States are those of 12 CFR 229.2(f) and (g)"
_ROLLED = "a last day that is no business day moves (FRCP 6(a)(1)(C), BGB 193, or as the term says)"
_STAYS = "a last day on a weekend or holiday stays, since neither the term nor `roll` moves it"

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class DeadlineResult(Result):
    """What the term comes to, and how far the claim is from it."""

    signing_date: date | None = None
    claimed_deadline: date | None = None
    computed_deadline: date | None = None
    term_parsed: str | None = None
    """How the term was understood."""
    difference_days: int | None = None
    """The claimed day less the computed one: negative where the claim is early."""
    calendar: str | None = None
    """The place whose weekends and holidays count: `US`, `DE-BY`."""
    estimated: tuple[date, ...] = ()
    """Holidays that were met and whose day is foreseen, not fixed."""


class DeadlineGuard:
    """Counts terms by the calendar of one country, or of one of its states."""

    def __init__(self, country: str = "US", state: str | None = None) -> None:
        self.country = country
        self.state = state

    @answering(DeadlineResult)
    def verify(
        self,
        signing_date: Any,
        term: Any,
        claimed_deadline: Any,
        tolerance_days: Any = 0,
        *,
        roll: Any = None,
        counting: Any = None,
    ) -> DeadlineResult:
        """Whether the term that begins with the signing date ends on the claimed day, give or take the tolerance."""
        place = place_of(own(self.country), own(self.state))
        signed, claimed = day_of("signing_date", signing_date), day_of("claimed_deadline", claimed_deadline)
        tolerance = whole_of("tolerance_days", tolerance_days, 0, _MOST_TOLERANCE)
        meant = _settled(read_term(term), roll, counting)
        steps = reckon(meant, signed, place)
        return _answer(meant, place, steps, claimed, tolerance)


def _settled(term: Term, roll: Any, counting: Any) -> Term:
    """The term with what was said beside it; Unreadable where the two say different things."""
    if roll is not None:
        chosen = _one_of("roll", roll, _ROLLS)
        if term.roll not in (None, chosen):
            raise Unreadable(f"`term` moves the last day to the {term.roll} business day and `roll` says `{chosen}`")
        term = term._replace(roll=chosen)
    if counting is not None:
        inclusive = _one_of("counting", counting, _COUNTINGS) is Counting.INCLUSIVE
        if term.span is None:
            return term
        if term.inclusive not in (None, inclusive):
            raise Unreadable("`term` and `counting` differ on whether the first day is counted")
        term = term._replace(inclusive=inclusive)
    return term


def _one_of(name: str, given: Any, table: dict[str, T]) -> T:
    found = table.get(given.strip().casefold()) if isinstance(given, str) and len(given) < 40 else None
    if found is None:
        raise unknown(name, given if isinstance(given, str) else type(given).__name__, table)
    return found


def _answer(term: Term, place: Place, steps: tuple[Step, ...], claimed: date, tolerance: int) -> DeadlineResult:
    computed = steps[-1].day
    difference = (claimed - computed).days
    within = f", within {counted(tolerance, 'day')} of it" if tolerance and difference else ""
    holds = abs(difference) <= tolerance
    estimated = tuple(day for step in steps for day, why in step.met if why.estimated)
    foreseen = f"; {len(estimated)} of the holidays are foreseen and may move" if estimated else ""
    return DeadlineResult(
        status=standing(holds),
        message=(
            f"the deadline is {shown(computed)}, and {claimed.isoformat()} is claimed{within}{foreseen}"
            if holds
            else f"the deadline is {shown(computed)}, not {shown(claimed)}: {_off(difference)}{foreseen}"
        ),
        rule=_rule(term, place),
        by_hand=(
            *(step.said for step in steps),
            f"claimed {claimed.isoformat()} less computed {computed.isoformat()} is {counted(difference, 'day')}",
        ),
        signing_date=steps[0].day,
        claimed_deadline=claimed,
        computed_deadline=computed,
        term_parsed=said(term),
        difference_days=difference,
        calendar=str(place),
        estimated=estimated,
    )


def _off(difference: int) -> str:
    return f"{abs(difference)} day{'' if abs(difference) == 1 else 's'} too {'late' if difference > 0 else 'early'}"


def _rule(term: Term, place: Place) -> str:
    span, rolled = term.span or Span(), term.roll not in (None, Roll.NONE)
    business = span.counts_business or rolled or (term.point is not None and term.point.business)
    rows = (
        (term.span is not None, _COUNTED if term.inclusive else _NOT_COUNTED),
        (bool(span.months), _MONTHS),
        (business, _BUSINESS.format(place=place)),
        (span.banking and place.country == "US", _BANKING),
        (rolled, _ROLLED),
        (not rolled and not span.counts_business, _STAYS),
    )
    return "; ".join(text for applies, text in rows if applies)


def _ask(
    signing_date: Any,
    term: Any,
    claimed_deadline: Any,
    tolerance_days: Any = 0,
    country: Any = "US",
    state: Any = None,
    roll: Any = None,
    counting: Any = None,
) -> DeadlineResult:
    guard = DeadlineGuard(country, state)
    return guard.verify(signing_date, term, claimed_deadline, tolerance_days, roll=roll, counting=counting)


QUESTIONS = (
    Question(
        name="deadline",
        says="whether a deadline is the last day of a term such as `30 business days` after a signing date",
        ask=_ask,
        required=("signing_date", "term", "claimed_deadline"),
        optional=("tolerance_days", "country", "state", "roll", "counting"),
        text="term",
    ),
)
