"""What a payslip may claim, under which names, and what each of them comes to."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from qwed.packs.result import Unreadable, unknown
from qwed_tax._payroll import fica
from qwed_tax._payroll.asked import USD, Payment
from qwed_tax._payroll.income_tax import income_tax, withheld
from qwed_tax._payroll.part import Part
from qwed_tax.money import amount_of, money

NAMES = {
    "social_security": "social_security ss oasdi social_security_tax ss_tax",
    "medicare": "medicare medicare_tax total_medicare",
    "additional_medicare": "additional_medicare additional_medicare_tax medicare_surtax",
    "fica": "fica total_fica fica_total fica_tax",
    "federal_withholding": (
        "federal_withholding federal_income_tax federal_tax fit federal_income_tax_withholding withholding"
    ),
    "income_tax": "income_tax annual_income_tax income_tax_liability federal_income_tax_liability",
    "additional_medicare_liability": "additional_medicare_liability",
    "net": "net net_pay take_home take_home_pay",
}
"""The parts, each with the names it is claimed by; `claimed_` may stand before any of them."""
CLAIMED = tuple(f"claimed_{part}" for part in NAMES)
"""The parts as values of the check."""
_PART = {name: part for part, names in NAMES.items() for name in names.split()}
_MOST = 20


def claims_of(given: Any, named: Mapping[str, Any]) -> dict[str, Fraction]:
    """The claimed amounts by part; what is None is not claimed."""
    if given is not None and not isinstance(given, Mapping):
        raise Unreadable("`claims` must be an object such as {`social_security`: 310.00, `medicare`: 72.50}")
    every = [*(given or {}).items(), *named.items()]
    if len(every) > _MOST:
        raise Unreadable(f"more than {_MOST} claims")
    read: dict[str, Fraction] = {}
    for name, value in every:
        if value is None:
            continue
        part = _PART.get(name.removeprefix("claimed_")) if isinstance(name, str) else None
        if part is None:
            raise unknown("claim", name, CLAIMED)
        if part in read:
            raise Unreadable(f"`{part}` is claimed twice, write it once")
        read[part] = amount_of(str(name), value, USD)
    return read


def computed_of(part: str, payment: Payment, claimed: Mapping[str, Fraction], taxable: Fraction | None) -> Part:
    """What a claimed part comes to."""
    if part == "medicare" and "additional_medicare" in claimed:
        return fica.regular_medicare(payment)
    if part == "income_tax":
        return income_tax(payment, taxable)
    return _COMPUTE[part](payment)


def _net(payment: Payment) -> Part:
    taken = (fica.fica(payment), withheld(payment))
    each = [(part.exact, *map(Fraction, part.also)) for part in taken]
    less = payment.gross - payment.pretax - payment.other
    nets = [less - first - second for first in each[0] for second in each[1]]
    also = tuple(dict.fromkeys(Part(net, "", ()).computed for net in nets[1:] if net != nets[0]))
    line = (
        f"net: {money(payment.gross)} - {money(payment.pretax)} - {money(payment.other)} - {money(taken[0].exact)} "
        f"- {money(taken[1].exact)} = {money(nets[0])}"
    )
    rule = f"pay less FICA, federal withholding and what else is taken; {taken[0].rule}; {taken[1].rule}"
    return Part(nets[0], rule, (*taken[0].steps, *taken[1].steps, line), also)


_COMPUTE: dict[str, Callable[[Payment], Part]] = {
    "social_security": fica.social_security,
    "medicare": fica.medicare,
    "additional_medicare": fica.additional_medicare,
    "fica": fica.fica,
    "federal_withholding": withheld,
    "additional_medicare_liability": fica.additional_medicare_liability,
    "net": _net,
}
