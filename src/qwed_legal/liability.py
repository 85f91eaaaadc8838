"""LiabilityGuard: whether the cap, the sum of tiers or the indemnity limit of a contract is what it comes to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

from qwed.packs.claimed import Claimed, claimed_of
from qwed.packs.question import Question
from qwed.packs.reading import number_of
from qwed.packs.result import Result, Standing, Unreadable, answering, standing, unknown
from qwed.words.currency import CURRENCIES
from qwed.words.exact import EXACT, fits, shown

_CENT, _HUNDRED, _HALF = Decimal("0.01"), Decimal(100), Decimal("0.5")
_MOST_PERCENT = Decimal(1_000_000)
_MOST_TOLERANCE = Decimal(100)
_MOST_TIERS = 1_000
_BASES = ("base", "base_amount", "amount", "value", "contract_value")
_PERCENTS = ("percentage", "percent", "cap_percentage", "pct")
_BESIDE = frozenset({"name", "label", "description", "tier", "id"})
_SHAPE = "each of `tiers` is an object such as `{base: 1000000, percentage: 50}` or a pair `[1000000, 50]`"


@dataclass(frozen=True, kw_only=True)
class LiabilityResult(Result):
    """How far a claimed amount is from what the contract comes to."""

    difference: Decimal | None = None
    """The claimed amount less the computed one."""
    tolerance: Decimal | None = None
    """How far the claim may be off, as an amount."""
    exact: bool | None = None
    """Whether the claim is the computed amount to the last unit of its currency."""


@dataclass(frozen=True, kw_only=True)
class CapResult(LiabilityResult):
    """A share of the contract's value."""

    contract_value: Decimal | None = None
    cap_percentage: Decimal | None = None
    claimed_cap: Decimal | None = None
    computed_cap: Decimal | None = None


@dataclass(frozen=True, kw_only=True)
class TieredResult(LiabilityResult):
    """The sum of shares of several amounts."""

    claimed_total: Decimal | None = None
    computed_total: Decimal | None = None
    tiers: tuple[Decimal, ...] = ()
    """What each tier comes to."""


@dataclass(frozen=True, kw_only=True)
class IndemnityResult(LiabilityResult):
    """A multiple of the annual fee."""

    annual_fee: Decimal | None = None
    multiplier: Decimal | None = None
    claimed_limit: Decimal | None = None
    computed_limit: Decimal | None = None


class Judged(NamedTuple):
    """What holds for a claim whatever it is about."""

    status: Standing
    message: str
    last_step: str
    difference: Decimal
    tolerance: Decimal
    exact: bool


class LiabilityGuard:
    """Computes exactly; a claim may be off by `tolerance_percent` of what was computed, and 0.01 means 0.01 %."""

    def __init__(self, tolerance_percent: Any = 0.01) -> None:
        self.tolerance_percent = tolerance_percent

    @answering(CapResult)
    def verify_cap(self, contract_value: Any, cap_percentage: Any, claimed_cap: Any) -> CapResult:
        """Whether the cap is that percentage of the contract's value."""
        value, percent = _amount("contract_value", contract_value), _percent("cap_percentage", cap_percentage)
        computed = EXACT.divide(EXACT.multiply(value.value, percent), _HUNDRED)
        claim = claimed_of("claimed_cap", claimed_cap)
        judged = self._judged("cap", computed, claim, (value,))
        return CapResult(
            **_common(judged),
            rule="the cap is the contract's value times the percentage, divided by 100",
            by_hand=(
                f"{shown(value.value)} x {shown(percent)} / 100 = {shown(computed)}",
                judged.last_step,
            ),
            contract_value=value.value,
            cap_percentage=percent,
            claimed_cap=claim.value,
            computed_cap=computed,
        )

    @answering(TieredResult)
    def verify_tiered_liability(self, tiers: Any, claimed_total: Any) -> TieredResult:
        """Whether the total is the sum of each tier's percentage of its base."""
        read = _tiers(tiers)
        parts = tuple(EXACT.divide(EXACT.multiply(base.value, percent), _HUNDRED) for base, percent in read)
        computed = _sum(parts)
        claim = claimed_of("claimed_total", claimed_total)
        judged = self._judged("total", computed, claim, tuple(base for base, _ in read))
        steps = (
            f"tier {place}: {shown(base.value)} x {shown(percent)} / 100 = {shown(part)}"
            for place, ((base, percent), part) in enumerate(zip(read, parts, strict=True), 1)
        )
        return TieredResult(
            **_common(judged),
            rule="the total is the sum over all tiers of base times percentage, divided by 100",
            by_hand=(*steps, f"the sum of the {len(parts)} tiers is {shown(computed)}", judged.last_step),
            claimed_total=claim.value,
            computed_total=computed,
            tiers=parts,
        )

    @answering(IndemnityResult)
    def verify_indemnity_limit(self, annual_fee: Any, multiplier: Any, claimed_limit: Any) -> IndemnityResult:
        """Whether the limit is that multiple of the annual fee."""
        fee, times = _amount("annual_fee", annual_fee), _multiplier(multiplier)
        computed = EXACT.multiply(fee.value, times)
        claim = claimed_of("claimed_limit", claimed_limit)
        judged = self._judged("limit", computed, claim, (fee,))
        return IndemnityResult(
            **_common(judged),
            rule="the limit is the annual fee times the multiplier",
            by_hand=(f"{shown(fee.value)} x {shown(times)} = {shown(computed)}", judged.last_step),
            annual_fee=fee.value,
            multiplier=times,
            claimed_limit=claim.value,
            computed_limit=computed,
        )

    def _judged(self, name: str, computed: Decimal, claim: Claimed, given: Sequence[Claimed]) -> Judged:
        if claim.percent:
            raise Unreadable(f"the claimed {name} is a percentage, write the amount")
        unit = _unit(claim, given)
        tolerance = EXACT.divide(EXACT.multiply(computed, self._tolerance()), _HUNDRED)
        difference = EXACT.subtract(claim.value, computed)
        exact = _rounded(claim.value, difference, unit)
        holds = exact or EXACT.abs(difference) <= tolerance
        return Judged(
            status=standing(holds),
            message=_message(name, computed, claim.value, difference, tolerance, exact, holds),
            last_step=f"claimed {shown(claim.value)} less {shown(computed)} is {shown(difference)}, "
            f"and up to {shown(tolerance)} is tolerated",
            difference=difference,
            tolerance=tolerance,
            exact=exact,
        )

    def _tolerance(self) -> Decimal:
        found = number_of("tolerance_percent", self.tolerance_percent)
        if not 0 <= found <= _MOST_TOLERANCE:
            raise Unreadable("`tolerance_percent` must be from 0 to 100")
        return found


def _common(judged: Judged) -> dict[str, Any]:
    return {name: value for name, value in judged._asdict().items() if name != "last_step"}


def _message(
    name: str, computed: Decimal, claimed: Decimal, difference: Decimal, tolerance: Decimal, exact: bool, holds: bool
) -> str:
    if exact:
        return f"the {name} is {shown(computed)}, as claimed"
    off = f"off by {shown(difference)}"
    if holds:
        return f"the {name} is {shown(computed)} and {shown(claimed)} is claimed: {off}, within {shown(tolerance)}"
    return f"the {name} is {shown(computed)}, not {shown(claimed)}: {off}"


def _rounded(claimed: Decimal, difference: Decimal, unit: Decimal) -> bool:
    """Whether it is the computed amount, or that rounded to the nearest unit, either way from the middle."""
    if not difference:
        return True
    return fits(claimed, unit) and EXACT.abs(difference) <= EXACT.multiply(unit, _HALF)


def _unit(claim: Claimed, given: Sequence[Claimed]) -> Decimal:
    """The smallest unit of the currency that is named; a cent where none is."""
    named = {each.currency for each in (claim, *given) if each.currency}
    if len(named) > 1:
        raise Unreadable(f"the amounts are in {' and '.join(sorted(named))}: write them in one currency")
    code = next(iter(named), None)
    if code is not None and code not in CURRENCIES:
        raise unknown("currency", code, CURRENCIES)
    return _CENT if code is None else Decimal(1).scaleb(-CURRENCIES[code], EXACT)


def _amount(name: str, value: Any) -> Claimed:
    found = claimed_of(name, value)
    if found.percent or found.value < 0:
        raise Unreadable(f"`{name}` must be an amount that is not negative")
    return found


def _percent(name: str, value: Any) -> Decimal:
    """150 and `150%` are both 150."""
    found = claimed_of(name, value)
    percent = found.value.scaleb(2, EXACT) if found.percent else found.value
    if found.currency or not 0 <= percent <= _MOST_PERCENT:
        raise Unreadable(f"`{name}` must be a percentage from 0 to {_MOST_PERCENT:,}, 50 for one half")
    return percent


def _multiplier(value: Any) -> Decimal:
    """3, `3x`, `3 times` and `300%` are all three times."""
    if isinstance(value, str):
        value = value.strip().removesuffix(" times").removesuffix("x").removesuffix("X").removesuffix("\u00d7").strip()
    found = claimed_of("multiplier", value)
    if found.currency or not 0 <= found.value <= _MOST_PERCENT:
        raise Unreadable(f"`multiplier` must be a number from 0 to {_MOST_PERCENT:,} such as 2 or `1.5x`")
    return found.value


def _tiers(tiers: Any) -> tuple[tuple[Claimed, Decimal], ...]:
    if not isinstance(tiers, list | tuple) or not tiers:
        raise Unreadable(f"`tiers` must be a list: {_SHAPE}")
    if len(tiers) > _MOST_TIERS:
        raise Unreadable(f"`tiers` has more than {_MOST_TIERS:,} members")
    return tuple(_tier(place, tier) for place, tier in enumerate(tiers))


def _tier(place: int, tier: Any) -> tuple[Claimed, Decimal]:
    name = f"tiers[{place}]"
    if isinstance(tier, list | tuple) and len(tier) == 2:
        return _amount(f"{name}[0]", tier[0]), _percent(f"{name}[1]", tier[1])
    if not isinstance(tier, Mapping):
        raise Unreadable(f"`{name}` was not understood: {_SHAPE}")
    base, percent = _only(tier, _BASES), _only(tier, _PERCENTS)
    if base is None or percent is None or not {*tier} <= {base, percent, *_BESIDE}:
        raise Unreadable(f"`{name}` was not understood: {_SHAPE}")
    return _amount(f"{name}.{base}", tier[base]), _percent(f"{name}.{percent}", tier[percent])


def _only(tier: Mapping[Any, Any], names: Sequence[str]) -> str | None:
    found = [name for name in names if name in tier]
    return found[0] if len(found) == 1 else None


def _sum(parts: Sequence[Decimal]) -> Decimal:
    total = Decimal(0)
    for part in parts:
        total = EXACT.add(total, part)
    return total


def _ask_cap(contract_value: Any, cap_percentage: Any, claimed_cap: Any, tolerance_percent: Any = 0.01) -> CapResult:
    return LiabilityGuard(tolerance_percent).verify_cap(contract_value, cap_percentage, claimed_cap)


def _ask_tiers(tiers: Any, claimed_total: Any, tolerance_percent: Any = 0.01) -> TieredResult:
    return LiabilityGuard(tolerance_percent).verify_tiered_liability(tiers, claimed_total)


def _ask_indemnity(
    annual_fee: Any, multiplier: Any, claimed_limit: Any, tolerance_percent: Any = 0.01
) -> IndemnityResult:
    return LiabilityGuard(tolerance_percent).verify_indemnity_limit(annual_fee, multiplier, claimed_limit)


QUESTIONS = (
    Question(
        name="liability_cap",
        says="whether a liability cap is a percentage of the contract's value",
        ask=_ask_cap,
        required=("contract_value", "cap_percentage", "claimed_cap"),
        optional=("tolerance_percent",),
    ),
    Question(
        name="tiered_liability",
        says="whether a total is the sum of each tier's percentage of its base",
        ask=_ask_tiers,
        required=("tiers", "claimed_total"),
        optional=("tolerance_percent",),
    ),
    Question(
        name="indemnity_limit",
        says="whether an indemnity limit is a multiple of the annual fee",
        ask=_ask_indemnity,
        required=("annual_fee", "multiplier", "claimed_limit"),
        optional=("tolerance_percent",),
    ),
)
