"""Cash flows: net present value and internal rate of return."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from qwed.packs.plural import pluralize
from qwed.packs.result import UnreadableInputError
from qwed.packs.value_parsing import day_of
from qwed_finance._decimal import FINE, ONE, ZERO, Computation, format_step, parse_amount, require_max_value
from qwed_finance._irr_roots import MAX_FLOWS, count_sign_changes, discounted_sum, find_roots

MAX_AMOUNTS = 10_000
_MAX_LISTED_STEPS = 12
NPV_RULE = (
    "net present value: each cash flow divided by (1 + rate)^t and summed up, the first at t = 0 "
    "(numpy-financial npv; Excel's NPV takes the first at t = 1)"
)
IRR_RULE = "internal rate of return: the rate at which the net present value is nothing, the first cash flow at t = 0"
XNPV_RULE = (
    "net present value by dates: each cash flow divided by (1 + rate)^(days / 365), days since the first (Excel XNPV)"
)


def parse_flows(value: Any, most: int = MAX_AMOUNTS) -> list[Decimal]:
    """Parse the cash flows. Raise UnreadableInputError if they are not a list of amounts."""
    if hasattr(type(value), "tolist"):
        value = value.tolist()
    if not isinstance(value, list | tuple):
        raise UnreadableInputError("`cashflows` must be a list of amounts such as [-1000, 300, 400, 500]")
    if not 1 <= len(value) <= most:
        raise UnreadableInputError(f"`cashflows` must hold 1 to {most} amounts")
    return [parse_amount(f"cashflows[{index}]", amount) for index, amount in enumerate(value)]


def _largest_amount(flows: Sequence[Decimal]) -> Decimal:
    return max(flow.copy_abs() for flow in flows)


def npv(flows: Sequence[Decimal], rate: Decimal) -> Computation:
    """Compute the net present value."""
    base = FINE.add(ONE, rate)
    # Bounds each present value, so that its error stays invisible in the sum.
    require_max_value(discounted_sum([flow.copy_abs() for flow in flows], base))
    exact = discounted_sum(flows, base)
    steps = [
        f"t = {period}: {flow:f} / {base:f}^{period} = {format_step(_discount(flow, base, period))}"
        for period, flow in enumerate(flows[:_MAX_LISTED_STEPS])
    ]
    if len(flows) > _MAX_LISTED_STEPS:
        steps.append(f"and so on for all {len(flows)} cash flows")
    steps.append(f"the sum is {format_step(exact)}")
    return Computation(
        exact, "sum of CF_t / (1 + r)^t, t = 0, 1, 2, ...", NPV_RULE, tuple(steps), _largest_amount(flows)
    )


def _discount(flow: Decimal, base: Decimal, at: int) -> Decimal:
    return FINE.divide(flow, FINE.power(base, at))


def excel_npv(worked: Computation, rate: Decimal) -> Computation:
    """Return the value with the first cash flow after one period."""
    later = FINE.divide(worked.value, FINE.add(ONE, rate))
    return worked._replace(value=later, label="the value with the first cash flow at t = 1, as Excel's NPV has it")


def irr(flows: Sequence[Decimal]) -> list[Computation]:
    """Compute every internal rate of return."""
    if len(flows) > MAX_FLOWS:
        raise UnreadableInputError(f"`cashflows` must hold at most {MAX_FLOWS} amounts for a rate of return")
    if count_sign_changes(flows) == 0:
        raise UnreadableInputError("the cash flows never change their sign, so they have no internal rate of return")
    rates = find_roots(flows)
    if not rates:
        raise UnreadableInputError("the cash flows have no internal rate of return: their value is zero at no rate")
    return [_irr_computation(flows, rate, rates) for rate in rates]


def _irr_computation(flows: Sequence[Decimal], rate: Decimal, all_rates: Sequence[Decimal]) -> Computation:
    several = "" if len(all_rates) == 1 else "one of several: " + ", ".join(map(_format_percent, all_rates))
    off = Decimal("1e-6")
    sides = [
        (nearby, discounted_sum(flows, FINE.add(ONE, nearby)))
        for nearby in (FINE.subtract(rate, off), FINE.add(rate, off))
    ]
    steps = (
        f"the signs of the cash flows change {pluralize(count_sign_changes(flows), 'time')}, "
        "which is the most rates there can be",
        *(f"NPV at {format_step(nearby)} is {format_step(value)}" for nearby, value in sides),
        f"between them NPV is nothing, at {format_step(rate)}",
    )
    return Computation(rate, "0 = sum of CF_t / (1 + IRR)^t", IRR_RULE, steps, rate=True, label=several)


def _format_percent(rate: Decimal) -> str:
    return f"{FINE.quantize(rate.scaleb(2, FINE), Decimal('0.0001')):f} %"


def parse_days(value: Any, count: int) -> list[date]:
    """Parse one date for each cash flow."""
    if not isinstance(value, list | tuple) or len(value) != count:
        raise UnreadableInputError(f"`dates` must be a list of {count} dates, one for each cash flow")
    days = [day_of(f"dates[{index}]", day) for index, day in enumerate(value)]
    if min(days) < days[0]:
        raise UnreadableInputError("`dates`: the first is the day of value, none may be before it")
    return days


def xnpv(flows: Sequence[Decimal], days: Sequence[date], rate: Decimal) -> Computation:
    """Compute the net present value of dated flows on the first day."""
    base = FINE.add(ONE, rate)
    daily = FINE.power(base, FINE.divide(ONE, Decimal(365)))
    exact, steps = ZERO, []
    for index, (flow, day) in enumerate(zip(flows, days, strict=True)):
        elapsed = (day - days[0]).days
        present = require_max_value(FINE.divide(flow, FINE.power(daily, elapsed)))
        exact = FINE.add(exact, present)
        if index < _MAX_LISTED_STEPS:
            steps.append(f"{day.isoformat()}: {flow:f} / {base:f}^({elapsed}/365) = {format_step(present)}")
    steps.append(f"the sum of all {len(flows)} is {format_step(exact)}")
    return Computation(
        exact, "sum of CF_i / (1 + r)^((d_i - d_0) / 365)", XNPV_RULE, tuple(steps), _largest_amount(flows)
    )
