"""LiabilityGuard: check the cap, the sum of tiers or the indemnity limit of a contract."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

from qwed.model.currency import CURRENCIES
from qwed.model.decimals import EXACT, format_decimal, is_multiple_of
from qwed.packs.amount_parsing import ClaimedAmount, parse_claimed_amount
from qwed.packs.check import PackCheck
from qwed.packs.result import (
    CheckStatus,
    Result,
    UnreadableInputError,
    status_of,
    unknown_name_error,
    unverifiable_on_error,
)
from qwed.packs.value_parsing import number_of

_CENT, _HUNDRED, _HALF = Decimal("0.01"), Decimal(100), Decimal("0.5")
_MAX_PERCENT = Decimal(1_000_000)
_MAX_TOLERANCE = Decimal(10)
"""Percent; with more, a claim of almost anything would hold."""
_MAX_TIERS = 1_000
_BASES = ("base", "base_amount", "amount", "value", "contract_value")
_PERCENTS = ("percentage", "percent", "cap_percentage", "pct")
_IGNORED_KEYS = frozenset({"name", "label", "description", "tier", "id"})
_TIER_FORMAT = "each of `tiers` is an object such as `{base: 1000000, percentage: 50}` or a pair `[1000000, 50]`"


@dataclass(frozen=True, kw_only=True)
class LiabilityResult(Result):
    """Difference between a claimed amount and the computed one."""

    difference: Decimal | None = None
    """Claimed amount minus the computed one."""
    tolerance: Decimal | None = None
    """Allowed difference, as an amount."""
    exact: bool | None = None
    """True if the claim equals the computed amount to the smallest unit of its currency."""


@dataclass(frozen=True, kw_only=True)
class CapResult(LiabilityResult):
    """Liability cap as a share of the contract value."""

    contract_value: Decimal | None = None
    cap_percentage: Decimal | None = None
    claimed_cap: Decimal | None = None
    computed_cap: Decimal | None = None


@dataclass(frozen=True, kw_only=True)
class TieredResult(LiabilityResult):
    """Sum of shares of several amounts."""

    claimed_total: Decimal | None = None
    computed_total: Decimal | None = None
    tiers: tuple[Decimal, ...] = ()
    """Computed amount of each tier."""


@dataclass(frozen=True, kw_only=True)
class IndemnityResult(LiabilityResult):
    """Indemnity limit as a multiple of the annual fee."""

    annual_fee: Decimal | None = None
    multiplier: Decimal | None = None
    claimed_limit: Decimal | None = None
    computed_limit: Decimal | None = None


class AmountVerdict(NamedTuple):
    """Fields that the results of all liability checks share."""

    status: CheckStatus
    message: str
    last_step: str
    difference: Decimal
    tolerance: Decimal
    exact: bool


class LiabilityGuard:
    """Guard with exact arithmetic: a claim must be right to the smallest unit of its currency.

    It may differ by `tolerance_percent` of the computed amount where one is given; 0.01 means 0.01 %.
    """

    def __init__(self, tolerance_percent: Any = 0) -> None:
        self.tolerance_percent = tolerance_percent

    @unverifiable_on_error(CapResult)
    def verify_cap(self, contract_value: Any, cap_percentage: Any, claimed_cap: Any) -> CapResult:
        """Verify that the cap is this percentage of the contract value."""
        value, percent = (
            _parse_amount("contract_value", contract_value),
            _parse_percent("cap_percentage", cap_percentage),
        )
        computed = EXACT.divide(EXACT.multiply(value.value, percent), _HUNDRED)
        claim = parse_claimed_amount("claimed_cap", claimed_cap)
        verdict = self._judge_claim("cap", computed, claim, (value,))
        return CapResult(
            **_shared_fields(verdict),
            rule="the cap is the contract's value times the percentage, divided by 100",
            by_hand=(
                f"{format_decimal(value.value)} x {format_decimal(percent)} / 100 = {format_decimal(computed)}",
                verdict.last_step,
            ),
            contract_value=value.value,
            cap_percentage=percent,
            claimed_cap=claim.value,
            computed_cap=computed,
        )

    @unverifiable_on_error(TieredResult)
    def verify_tiered_liability(self, tiers: Any, claimed_total: Any) -> TieredResult:
        """Verify that the total is the sum of each tier's percentage of its base."""
        parsed = _parse_tiers(tiers)
        parts = tuple(EXACT.divide(EXACT.multiply(base.value, percent), _HUNDRED) for base, percent in parsed)
        computed = _sum(parts)
        claim = parse_claimed_amount("claimed_total", claimed_total)
        verdict = self._judge_claim("total", computed, claim, tuple(base for base, _ in parsed))
        steps = (
            f"tier {number}: {format_decimal(base.value)} x {format_decimal(percent)} / 100 = {format_decimal(part)}"
            for number, ((base, percent), part) in enumerate(zip(parsed, parts, strict=True), 1)
        )
        return TieredResult(
            **_shared_fields(verdict),
            rule="the total is the sum over all tiers of base times percentage, divided by 100",
            by_hand=(*steps, f"the sum of the {len(parts)} tiers is {format_decimal(computed)}", verdict.last_step),
            claimed_total=claim.value,
            computed_total=computed,
            tiers=parts,
        )

    @unverifiable_on_error(IndemnityResult)
    def verify_indemnity_limit(self, annual_fee: Any, multiplier: Any, claimed_limit: Any) -> IndemnityResult:
        """Verify that the limit is this multiple of the annual fee."""
        fee, times = _parse_amount("annual_fee", annual_fee), _parse_multiplier(multiplier)
        computed = EXACT.multiply(fee.value, times)
        claim = parse_claimed_amount("claimed_limit", claimed_limit)
        verdict = self._judge_claim("limit", computed, claim, (fee,))
        return IndemnityResult(
            **_shared_fields(verdict),
            rule="the limit is the annual fee times the multiplier",
            by_hand=(
                f"{format_decimal(fee.value)} x {format_decimal(times)} = {format_decimal(computed)}",
                verdict.last_step,
            ),
            annual_fee=fee.value,
            multiplier=times,
            claimed_limit=claim.value,
            computed_limit=computed,
        )

    def _judge_claim(
        self, name: str, computed: Decimal, claim: ClaimedAmount, amounts: Sequence[ClaimedAmount]
    ) -> AmountVerdict:
        if claim.percent:
            raise UnreadableInputError(f"the claimed {name} is a percentage, write the amount")
        unit = _currency_unit(claim, amounts)
        tolerance = EXACT.divide(EXACT.multiply(computed, self._tolerance()), _HUNDRED)
        difference = EXACT.subtract(claim.value, computed)
        exact = _is_rounded(claim.value, difference, unit)
        holds = exact or EXACT.abs(difference) <= tolerance
        return AmountVerdict(
            status=status_of(holds),
            message=_message(name, computed, claim.value, difference, tolerance, exact, holds),
            last_step=f"claimed {format_decimal(claim.value)} less {format_decimal(computed)} "
            f"is {format_decimal(difference)}, and up to {format_decimal(tolerance)} is tolerated",
            difference=difference,
            tolerance=tolerance,
            exact=exact,
        )

    def _tolerance(self) -> Decimal:
        percent = number_of("tolerance_percent", self.tolerance_percent)
        if not 0 <= percent <= _MAX_TOLERANCE:
            raise UnreadableInputError(f"`tolerance_percent` must be from 0 to {_MAX_TOLERANCE}")
        return percent


def _shared_fields(verdict: AmountVerdict) -> dict[str, Any]:
    return {name: value for name, value in verdict._asdict().items() if name != "last_step"}


def _message(
    name: str, computed: Decimal, claimed: Decimal, difference: Decimal, tolerance: Decimal, exact: bool, holds: bool
) -> str:
    if exact:
        return f"the {name} is {format_decimal(computed)}, as claimed"
    off = f"off by {format_decimal(difference)}"
    if holds:
        return (
            f"the {name} is {format_decimal(computed)} and {format_decimal(claimed)} is claimed: "
            f"{off}, within {format_decimal(tolerance)}"
        )
    return f"the {name} is {format_decimal(computed)}, not {format_decimal(claimed)}: {off}"


def _is_rounded(claimed: Decimal, difference: Decimal, unit: Decimal) -> bool:
    """Return True if the claim is the computed amount, or that rounded to the nearest unit (ties either way)."""
    if not difference:
        return True
    return is_multiple_of(claimed, unit) and EXACT.abs(difference) <= EXACT.multiply(unit, _HALF)


def _currency_unit(claim: ClaimedAmount, amounts: Sequence[ClaimedAmount]) -> Decimal:
    """Return the smallest unit of the named currency; a cent without one."""
    currencies = {amount.currency for amount in (claim, *amounts) if amount.currency}
    if len(currencies) > 1:
        raise UnreadableInputError(f"the amounts are in {' and '.join(sorted(currencies))}: write them in one currency")
    code = next(iter(currencies), None)
    if code is not None and code not in CURRENCIES:
        raise unknown_name_error("currency", code, CURRENCIES)
    return _CENT if code is None else Decimal(1).scaleb(-CURRENCIES[code], EXACT)


def _parse_amount(name: str, value: Any) -> ClaimedAmount:
    amount = parse_claimed_amount(name, value)
    if amount.percent or amount.value < 0:
        raise UnreadableInputError(f"`{name}` must be an amount that is not negative")
    return amount


def _parse_percent(name: str, value: Any) -> Decimal:
    """Parse a percentage; 150 and `150%` are both 150."""
    amount = parse_claimed_amount(name, value)
    percent = amount.value.scaleb(2, EXACT) if amount.percent else amount.value
    if amount.currency or not 0 <= percent <= _MAX_PERCENT:
        raise UnreadableInputError(f"`{name}` must be a percentage from 0 to {_MAX_PERCENT:,}, 50 for one half")
    return percent


def _parse_multiplier(value: Any) -> Decimal:
    """Parse a multiplier; 3, `3x`, `3 times` and `300%` all mean three times."""
    if isinstance(value, str):
        value = value.strip().removesuffix(" times").removesuffix("x").removesuffix("X").removesuffix("\u00d7").strip()
    amount = parse_claimed_amount("multiplier", value)
    if amount.currency or not 0 <= amount.value <= _MAX_PERCENT:
        raise UnreadableInputError(f"`multiplier` must be a number from 0 to {_MAX_PERCENT:,} such as 2 or `1.5x`")
    return amount.value


def _parse_tiers(tiers: Any) -> tuple[tuple[ClaimedAmount, Decimal], ...]:
    if not isinstance(tiers, list | tuple) or not tiers:
        raise UnreadableInputError(f"`tiers` must be a list: {_TIER_FORMAT}")
    if len(tiers) > _MAX_TIERS:
        raise UnreadableInputError(f"`tiers` has more than {_MAX_TIERS:,} members")
    return tuple(_parse_tier(index, tier) for index, tier in enumerate(tiers))


def _parse_tier(index: int, tier: Any) -> tuple[ClaimedAmount, Decimal]:
    name = f"tiers[{index}]"
    if isinstance(tier, list | tuple) and len(tier) == 2:
        return _parse_amount(f"{name}[0]", tier[0]), _parse_percent(f"{name}[1]", tier[1])
    if not isinstance(tier, Mapping):
        raise UnreadableInputError(f"`{name}` was not understood: {_TIER_FORMAT}")
    base, percent = _only_key(tier, _BASES), _only_key(tier, _PERCENTS)
    if base is None or percent is None or not {*tier} <= {base, percent, *_IGNORED_KEYS}:
        raise UnreadableInputError(f"`{name}` was not understood: {_TIER_FORMAT}")
    return _parse_amount(f"{name}.{base}", tier[base]), _parse_percent(f"{name}.{percent}", tier[percent])


def _only_key(tier: Mapping[Any, Any], names: Sequence[str]) -> str | None:
    present = [name for name in names if name in tier]
    return present[0] if len(present) == 1 else None


def _sum(parts: Sequence[Decimal]) -> Decimal:
    total = Decimal(0)
    for part in parts:
        total = EXACT.add(total, part)
    return total


def _check_cap(contract_value: Any, cap_percentage: Any, claimed_cap: Any, tolerance_percent: Any = 0) -> CapResult:
    return LiabilityGuard(tolerance_percent).verify_cap(contract_value, cap_percentage, claimed_cap)


def _check_tiers(tiers: Any, claimed_total: Any, tolerance_percent: Any = 0) -> TieredResult:
    return LiabilityGuard(tolerance_percent).verify_tiered_liability(tiers, claimed_total)


def _check_indemnity(
    annual_fee: Any, multiplier: Any, claimed_limit: Any, tolerance_percent: Any = 0
) -> IndemnityResult:
    return LiabilityGuard(tolerance_percent).verify_indemnity_limit(annual_fee, multiplier, claimed_limit)


CHECKS = (
    PackCheck(
        name="liability_cap",
        says="whether a liability cap is a percentage of the contract's value",
        ask=_check_cap,
        required=("contract_value", "cap_percentage", "claimed_cap"),
        optional=("tolerance_percent",),
    ),
    PackCheck(
        name="tiered_liability",
        says="whether a total is the sum of each tier's percentage of its base",
        ask=_check_tiers,
        required=("tiers", "claimed_total"),
        optional=("tolerance_percent",),
    ),
    PackCheck(
        name="indemnity_limit",
        says="whether an indemnity limit is a multiple of the annual fee",
        ask=_check_indemnity,
        required=("annual_fee", "multiplier", "claimed_limit"),
        optional=("tolerance_percent",),
    ),
)
