"""Cash flows: what they are worth today, and the rate at which that is nothing."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from qwed.packs.reading import day_of
from qwed.packs.result import Unreadable
from qwed.packs.wording import counted
from qwed_finance._exact import FINE, ONE, ZERO, Worked, amount_of, brief, within
from qwed_finance._roots import MOST_FLOWS, changes, roots, worth

MOST = 10_000
_FEW = 12
NPV_RULE = (
    "net present value: each cash flow divided by (1 + rate)^t and summed up, the first at t = 0 "
    "(numpy-financial npv; Excel's NPV takes the first at t = 1)"
)
IRR_RULE = "internal rate of return: the rate at which the net present value is nothing, the first cash flow at t = 0"
XNPV_RULE = (
    "net present value by dates: each cash flow divided by (1 + rate)^(days / 365), days since the first (Excel XNPV)"
)


def flows_of(value: Any, most: int = MOST) -> list[Decimal]:
    """The cash flows; Unreadable where they are none."""
    if hasattr(type(value), "tolist"):
        value = value.tolist()
    if not isinstance(value, list | tuple):
        raise Unreadable("`cashflows` must be a list of amounts such as [-1000, 300, 400, 500]")
    if not 1 <= len(value) <= most:
        raise Unreadable(f"`cashflows` must hold 1 to {most} amounts")
    return [amount_of(f"cashflows[{at}]", each) for at, each in enumerate(value)]


def _largest(flows: Sequence[Decimal]) -> Decimal:
    return max(each.copy_abs() for each in flows)


def npv(flows: Sequence[Decimal], rate: Decimal) -> Worked:
    """What the flows are worth today."""
    base = FINE.add(ONE, rate)
    # No single value may be so large that what it is off by could be seen in the sum.
    within(worth([each.copy_abs() for each in flows], base))
    exact = worth(flows, base)
    steps = [
        f"t = {at}: {each:f} / {base:f}^{at} = {brief(_present(each, base, at))}"
        for at, each in enumerate(flows[:_FEW])
    ]
    if len(flows) > _FEW:
        steps.append(f"and so on for all {len(flows)} cash flows")
    steps.append(f"the sum is {brief(exact)}")
    return Worked(exact, "sum of CF_t / (1 + r)^t, t = 0, 1, 2, ...", NPV_RULE, tuple(steps), _largest(flows))


def _present(flow: Decimal, base: Decimal, at: int) -> Decimal:
    return FINE.divide(flow, FINE.power(base, at))


def npv_of_excel(worked: Worked, rate: Decimal) -> Worked:
    """The same flows, the first after one period."""
    later = FINE.divide(worked.value, FINE.add(ONE, rate))
    return worked._replace(value=later, called="the value with the first cash flow at t = 1, as Excel's NPV has it")


def irr(flows: Sequence[Decimal]) -> list[Worked]:
    """Every internal rate of return."""
    if len(flows) > MOST_FLOWS:
        raise Unreadable(f"`cashflows` must hold at most {MOST_FLOWS} amounts for a rate of return")
    if changes(flows) == 0:
        raise Unreadable("the cash flows never change their sign, so they have no internal rate of return")
    found = roots(flows)
    if not found:
        raise Unreadable("the cash flows have no internal rate of return: they are worth nothing at no rate")
    return [_rate(flows, each, found) for each in found]


def _rate(flows: Sequence[Decimal], rate: Decimal, all_of_them: Sequence[Decimal]) -> Worked:
    several = "" if len(all_of_them) == 1 else "one of several: " + ", ".join(_percent(each) for each in all_of_them)
    off = Decimal("1e-6")
    sides = [(each, worth(flows, FINE.add(ONE, each))) for each in (FINE.subtract(rate, off), FINE.add(rate, off))]
    steps = (
        f"the signs of the cash flows change {counted(changes(flows), 'time')}, which is the most rates there can be",
        *(f"NPV at {brief(each)} is {brief(value)}" for each, value in sides),
        f"between them NPV is nothing, at {brief(rate)}",
    )
    return Worked(rate, "0 = sum of CF_t / (1 + IRR)^t", IRR_RULE, steps, rate=True, called=several)


def _percent(rate: Decimal) -> str:
    return f"{FINE.quantize(rate.scaleb(2, FINE), Decimal('0.0001')):f} %"


def days_of(value: Any, many: int) -> list[date]:
    """As many days as there are flows."""
    if not isinstance(value, list | tuple) or len(value) != many:
        raise Unreadable(f"`dates` must be a list of {many} dates, one for each cash flow")
    days = [day_of(f"dates[{at}]", each) for at, each in enumerate(value)]
    if min(days) < days[0]:
        raise Unreadable("`dates`: the first is the day of value, none may be before it")
    return days


def xnpv(flows: Sequence[Decimal], days: Sequence[date], rate: Decimal) -> Worked:
    """What dated flows are worth on the first day."""
    base = FINE.add(ONE, rate)
    daily = FINE.power(base, FINE.divide(ONE, Decimal(365)))
    exact, steps = ZERO, []
    for at, (flow, day) in enumerate(zip(flows, days, strict=True)):
        elapsed = (day - days[0]).days
        present = within(FINE.divide(flow, FINE.power(daily, elapsed)))
        exact = FINE.add(exact, present)
        if at < _FEW:
            steps.append(f"{day.isoformat()}: {flow:f} / {base:f}^({elapsed}/365) = {brief(present)}")
    steps.append(f"the sum of all {len(flows)} is {brief(exact)}")
    return Worked(exact, "sum of CF_i / (1 + r)^((d_i - d_0) / 365)", XNPV_RULE, tuple(steps), _largest(flows))
