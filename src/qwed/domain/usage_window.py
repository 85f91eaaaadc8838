"""Rolling usage: calls of a tool, and sums of one of its arguments, within the last seconds (DESIGN 11).

A series counts one tool, or one argument of it, for one owner: an agent or an organisation. It keeps a running total,
and for each use the total before it. So the value of a window takes two rows, however many uses are in it. Pure
functions; amounts are exact decimals.
"""

from collections.abc import Callable, Iterable, Mapping
from decimal import Context, Decimal, Inexact, InvalidOperation, Overflow
from typing import NamedTuple, Protocol

from qwed.model import Decision
from qwed.model.clock import DAY

MAX_WINDOW_SECONDS = 31 * DAY
AGENT, ORGANISATION = "agent", "organisation"
"""Scopes of a value."""
COUNT, SUM = "count", "sum"
"""Measures of a value."""
MAX_DECIMAL_PLACES = 20
MAX_AMOUNT = 10**18
"""Amounts from here on are not added up, nor are those with more decimal places."""
_EXACT = Context(prec=100, traps=[Inexact, InvalidOperation, Overflow])
"""Enough digits for more uses than a database can hold; a sum that would be rounded raises instead."""
_ONE, ZERO = Decimal(1), Decimal(0)

Amount = int | Decimal


class UsageKey(NamedTuple):
    """Value that a rule reads: calls of a tool, or the sum of an argument, within the last seconds."""

    scope: str
    """`agent` or `organisation`."""
    measure: str
    """`count` or `sum`."""
    tool: str
    argument: str
    """Empty for a count."""
    seconds: int


UsageValues = Mapping[UsageKey, Amount]
NO_USAGE_VALUES: UsageValues = {}


class SeriesKey(NamedTuple):
    """Name of a series."""

    owner_id: str
    """Agent or organisation."""
    tool: str
    argument: str = ""
    """Argument that is added up; empty where calls are counted."""


class Use(NamedTuple):
    """Amount that one call adds to a series."""

    series: SeriesKey
    amount: Decimal


class UseEntry(NamedTuple):
    """Time of a use in milliseconds, and the total of its series before it. Of uses at one time it is the first."""

    at: int
    total_before: Decimal


class Series(NamedTuple):
    """State of a series."""

    total: Decimal = ZERO
    """Sum of all uses since the series began."""
    held: Decimal = ZERO
    """Sum of the uses that wait for a person."""
    last: int = 0
    """Time of the newest use, in milliseconds."""

    def window_begin(self, seconds: int, now: int) -> int:
        """Return the time after which uses count; a clock that jumps back frees none."""
        return max(now, self.last) - seconds * 1000

    def value(self, total_before: Decimal | None) -> Decimal:
        """Return the value of a window from the total before the first use in it, or None without one."""
        used = ZERO if total_before is None else _EXACT.subtract(self.total, total_before)
        return _EXACT.add(used, self.held)


EMPTY_SERIES = Series()


class SeriesChange(NamedTuple):
    """Series after a decision or a resolution, and the entry that it adds."""

    key: SeriesKey
    after: Series
    entry: UseEntry | None = None


class SeriesReader(Protocol):
    """Source of series, at one moment."""

    def series(self, key: SeriesKey) -> Series:
        """Return the state of a series."""

    def total_before(self, key: SeriesKey, begin: int) -> Decimal | None:
        """Return the total before the first use after `begin`, or None without one."""


class CountedCall(NamedTuple):
    """Call as usage counts it: the repaired one where a repair was made."""

    agent_id: str
    organisation_id: str
    names: frozenset[str]
    """Names under which policies know it: the tool and the action type."""
    arguments: Mapping[str, object]


class UncountableArgument(NamedTuple):
    """Argument that a rule adds up and whose value is missing, negative, too large or not a number."""

    tool: str
    argument: str

    @property
    def message(self) -> str:
        """Return what is wrong and what would pass."""
        limits = f"from 0 to 10^18 with at most {MAX_DECIMAL_PLACES} decimal places"
        return f"argument `{self.argument}` of `{self.tool}` is added up by a policy: it must be a number {limits}"


def milliseconds(at: float) -> int:
    """Return a time as the entries have it."""
    return int(at * 1000)


def series_of(key: UsageKey, agent_id: str, organisation_id: str) -> SeriesKey:
    """Return the series that a value is read from."""
    return SeriesKey(organisation_id if key.scope == ORGANISATION else agent_id, key.tool, key.argument)


def usage_values(
    keys: Iterable[UsageKey], agent_id: str, organisation_id: str, reader: SeriesReader, at: float
) -> UsageValues:
    """Return the values of an agent and its organisation at a time."""
    now, values = milliseconds(at), dict[UsageKey, Amount]()
    for key in keys:
        name = series_of(key, agent_id, organisation_id)
        series = reader.series(name)
        before = reader.total_before(name, series.window_begin(key.seconds, now))
        values[key] = amount_of(key, series.value(before))
    return values


def values_without(values: UsageValues, uses: Iterable[Use], agent_id: str, organisation_id: str) -> UsageValues:
    """Return the values without these held uses: an approved call does not count against itself."""
    held = {use.series: use.amount for use in uses}
    return {
        key: amount_of(key, _EXACT.subtract(Decimal(value), held.get(series_of(key, agent_id, organisation_id), ZERO)))
        for key, value in values.items()
    }


def amount_of(key: UsageKey, value: Decimal) -> Amount:
    """Return a count as an integer, a sum as it is."""
    return int(value) if key.measure == COUNT else value


def uses_of(keys: Iterable[UsageKey], call: CountedCall) -> tuple[Use, ...] | UncountableArgument:
    """Return what a call adds to the series that these keys read, or the argument that cannot be added."""
    uses: dict[SeriesKey, Decimal] = {}
    for key in sorted(keys):
        if key.tool not in call.names:
            continue
        amount = _ONE if key.measure == COUNT else _measured(call.arguments.get(key.argument))
        if amount is None:
            return UncountableArgument(key.tool, key.argument)
        if amount:
            uses[series_of(key, call.agent_id, call.organisation_id)] = amount
    return tuple(Use(*use) for use in uses.items())


def _measured(value: object) -> Decimal | None:
    """Return a number as an exact decimal, or None if it cannot be added up."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    # The shortest decimal of a float is what its author wrote.
    amount = Decimal(repr(value) if isinstance(value, float) else value)
    if not amount.is_finite() or not 0 <= amount < MAX_AMOUNT:
        return None
    exponent = amount.as_tuple().exponent
    return amount if isinstance(exponent, int) and exponent >= -MAX_DECIMAL_PLACES else None


def changes_of_decision(
    uses: Iterable[Use], decision: Decision, series: Callable[[SeriesKey], Series], at: float
) -> tuple[SeriesChange, ...]:
    """Return the series after a decision: a call that waits for a person is held, one that may run is used."""
    if not decision.commits:
        return ()
    change = _held if decision is Decision.PENDING else _used
    return tuple(change(use, series(use.series), at) for use in uses)


def changes_of_resolution(
    uses: Iterable[Use], state: str, series: Callable[[SeriesKey], Series], at: float
) -> tuple[SeriesChange, ...]:
    """Return the series after held uses were resolved: used at that time if approved, else free."""
    changes = []
    for use in uses:
        before = series(use.series)
        free = before._replace(held=_EXACT.subtract(before.held, use.amount))
        changes.append(_used(use, free, at) if state == "approved" else SeriesChange(use.series, free))
    return tuple(changes)


def _held(use: Use, before: Series, _at: float) -> SeriesChange:
    return SeriesChange(use.series, before._replace(held=_EXACT.add(before.held, use.amount)))


def _used(use: Use, before: Series, at: float) -> SeriesChange:
    now = max(milliseconds(at), before.last)
    after = before._replace(total=_EXACT.add(before.total, use.amount), last=now)
    return SeriesChange(use.series, after, UseEntry(now, before.total))
