"""DeadlineGuard: check that a deadline is the last day of a term counted from a signing date."""

from dataclasses import dataclass
from datetime import date
from typing import Any, TypeVar

from qwed.packs.check import PackCheck
from qwed.packs.plural import pluralize
from qwed.packs.result import Result, UnreadableInputError, status_of, unknown_name_error, unverifiable_on_error
from qwed.packs.unwrap import unwrap
from qwed.packs.value_parsing import day_of, whole_of
from qwed_legal._deadline.calendar import CalendarRegion, parse_region
from qwed_legal._deadline.compute import DeadlineStep, compute_deadline, format_day
from qwed_legal._deadline.grammar import parse_term
from qwed_legal._deadline.term import Counting, Roll, Span, Term, describe_term

_MAX_TOLERANCE = 3_650
_ROLLS = {member.value: member for member in Roll} | {
    "following": Roll.NEXT,
    "forward": Roll.NEXT,
    "preceding": Roll.PREVIOUS,
    "modified following": Roll.MODIFIED,
    "modified_following": Roll.MODIFIED,
}
_COUNTINGS = {member.value: member for member in Counting}
_NOT_COUNTED = "the day of the event is not counted (FRCP 6(a)(1)(A), BGB 187(1))"
_COUNTED = "the day of the event is counted as the first day (BGB 187(2))"
_MONTHS = "a month ends on the day of the same number, or on its last day where it has none (BGB 188(2) and (3))"
_BUSINESS = "business days are all but weekends and public holidays of {region}, as observed"
_BANKING = "banking days of the United States are those of 12 CFR 229.2(f) and (g)"
_ROLLED = "a last day that is no business day moves (FRCP 6(a)(1)(C), BGB 193, or as the term says)"
_STAYS = "a last day on a weekend or holiday stays, since neither the term nor `roll` moves it"

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class DeadlineResult(Result):
    """Computed deadline and its distance from the claimed one."""

    signing_date: date | None = None
    claimed_deadline: date | None = None
    computed_deadline: date | None = None
    term_parsed: str | None = None
    """The parsed term in words."""
    difference_days: int | None = None
    """Claimed day minus computed day; negative if the claim is early."""
    calendar: str | None = None
    """Region whose weekends and holidays apply: `US`, `DE-BY`."""
    estimated: tuple[date, ...] = ()
    """Holidays in the period whose date is estimated, not fixed."""


class DeadlineGuard:
    """Guard that counts terms by the calendar of one country or one of its states."""

    def __init__(self, country: str = "US", state: str | None = None) -> None:
        self.country = country
        self.state = state

    @unverifiable_on_error(DeadlineResult)
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
        """Verify that the term from the signing date ends on the claimed day, within the tolerance."""
        region = parse_region(unwrap(self.country), unwrap(self.state))
        signed, claimed = day_of("signing_date", signing_date), day_of("claimed_deadline", claimed_deadline)
        tolerance = whole_of("tolerance_days", tolerance_days, 0, _MAX_TOLERANCE)
        parsed = _apply_options(parse_term(term), roll, counting)
        steps = compute_deadline(parsed, signed, region)
        return _deadline_result(parsed, region, steps, claimed, tolerance)


def _apply_options(term: Term, roll: Any, counting: Any) -> Term:
    """Return the term with `roll` and `counting` applied. Raise UnreadableInputError if they contradict it."""
    if roll is not None:
        chosen = _parse_choice("roll", roll, _ROLLS)
        if term.roll not in (None, chosen):
            raise UnreadableInputError(
                f"`term` moves the last day to the {term.roll} business day and `roll` says `{chosen}`"
            )
        term = term._replace(roll=chosen)
    if counting is not None:
        inclusive = _parse_choice("counting", counting, _COUNTINGS) is Counting.INCLUSIVE
        if term.span is None:
            return term
        if term.inclusive not in (None, inclusive):
            raise UnreadableInputError("`term` and `counting` differ on whether the first day is counted")
        term = term._replace(inclusive=inclusive)
    return term


def _parse_choice(name: str, value: Any, table: dict[str, T]) -> T:
    choice = table.get(value.strip().casefold()) if isinstance(value, str) and len(value) < 40 else None
    if choice is None:
        raise unknown_name_error(name, value if isinstance(value, str) else type(value).__name__, table)
    return choice


def _deadline_result(
    term: Term, region: CalendarRegion, steps: tuple[DeadlineStep, ...], claimed: date, tolerance: int
) -> DeadlineResult:
    computed = steps[-1].day
    difference = (claimed - computed).days
    within = f", within {pluralize(tolerance, 'day')} of it" if tolerance and difference else ""
    holds = abs(difference) <= tolerance
    estimated = tuple(day for step in steps for day, why in step.skipped if why.estimated)
    estimate_note = f"; {len(estimated)} of the holidays are estimated and may move" if estimated else ""
    return DeadlineResult(
        status=status_of(holds),
        message=(
            f"the deadline is {format_day(computed)}, and {claimed.isoformat()} is claimed{within}{estimate_note}"
            if holds
            else f"the deadline is {format_day(computed)}, not {format_day(claimed)}: "
            f"{_describe_difference(difference)}{estimate_note}"
        ),
        rule=_rule(term, region),
        by_hand=(
            *(step.description for step in steps),
            f"claimed {claimed.isoformat()} less computed {computed.isoformat()} is {pluralize(difference, 'day')}",
        ),
        signing_date=steps[0].day,
        claimed_deadline=claimed,
        computed_deadline=computed,
        term_parsed=describe_term(term),
        difference_days=difference,
        calendar=str(region),
        estimated=estimated,
    )


def _describe_difference(difference: int) -> str:
    return f"{abs(difference)} day{'' if abs(difference) == 1 else 's'} too {'late' if difference > 0 else 'early'}"


def _rule(term: Term, region: CalendarRegion) -> str:
    span, rolled = term.span or Span(), term.roll not in (None, Roll.NONE)
    business = span.counts_business or rolled or (term.anchor is not None and term.anchor.business)
    rows = (
        (term.span is not None, _COUNTED if term.inclusive else _NOT_COUNTED),
        (bool(span.months), _MONTHS),
        (business, _BUSINESS.format(region=region)),
        (span.banking and region.country == "US", _BANKING),
        (rolled, _ROLLED),
        (not rolled and not span.counts_business, _STAYS),
    )
    return "; ".join(text for applies, text in rows if applies)


def _check_deadline(
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


CHECKS = (
    PackCheck(
        name="deadline",
        says="whether a deadline is the last day of a term such as `30 business days` after a signing date",
        ask=_check_deadline,
        required=("signing_date", "term", "claimed_deadline"),
        optional=("tolerance_days", "country", "state", "roll", "counting"),
        text="term",
    ),
)
