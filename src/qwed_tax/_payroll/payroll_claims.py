"""Claims of a payslip: accepted names and the computation of each."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from qwed.packs.result import UnreadableInputError, unknown_name_error
from qwed_tax._payroll import fica
from qwed_tax._payroll.income_tax import federal_withholding, income_tax
from qwed_tax._payroll.input import USD, Payment
from qwed_tax._payroll.line_item import PayslipLine
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
"""Lines with their accepted names; each may be prefixed with `claimed_`."""
CLAIMED = tuple(f"claimed_{part}" for part in NAMES)
"""Lines as argument names of the check."""
_PART = {name: part for part, names in NAMES.items() for name in names.split()}
_MOST = 20


def parse_claims(claims: Any, keyword_claims: Mapping[str, Any]) -> dict[str, Fraction]:
    """Return the claimed amounts by line; None means not claimed."""
    if claims is not None and not isinstance(claims, Mapping):
        raise UnreadableInputError("`claims` must be an object such as {`social_security`: 310.00, `medicare`: 72.50}")
    items = [*(claims or {}).items(), *keyword_claims.items()]
    if len(items) > _MOST:
        raise UnreadableInputError(f"more than {_MOST} claims")
    amounts: dict[str, Fraction] = {}
    for name, value in items:
        if value is None:
            continue
        part = _PART.get(name.removeprefix("claimed_")) if isinstance(name, str) else None
        if part is None:
            raise unknown_name_error("claim", name, CLAIMED)
        if part in amounts:
            raise UnreadableInputError(f"`{part}` is claimed twice, write it once")
        amounts[part] = amount_of(str(name), value, USD)
    return amounts


def compute_line(part: str, payment: Payment, claimed: Mapping[str, Fraction], taxable: Fraction | None) -> PayslipLine:
    """Compute a claimed line."""
    if part == "medicare" and "additional_medicare" in claimed:
        return fica.regular_medicare(payment)
    if part == "income_tax":
        return income_tax(payment, taxable)
    return _COMPUTE[part](payment)


def _net(payment: Payment) -> PayslipLine:
    withheld = (fica.fica(payment), federal_withholding(payment))
    variants = [(part.exact, *map(Fraction, part.also)) for part in withheld]
    less = payment.gross - payment.pretax - payment.other
    nets = [less - first - second for first in variants[0] for second in variants[1]]
    also = tuple(dict.fromkeys(PayslipLine(net, "", ()).computed for net in nets[1:] if net != nets[0]))
    step = (
        f"net: {money(payment.gross)} - {money(payment.pretax)} - {money(payment.other)} - {money(withheld[0].exact)} "
        f"- {money(withheld[1].exact)} = {money(nets[0])}"
    )
    rule = f"pay less FICA, federal withholding and what else is taken; {withheld[0].rule}; {withheld[1].rule}"
    return PayslipLine(nets[0], rule, (*withheld[0].steps, *withheld[1].steps, step), also)


_COMPUTE: dict[str, Callable[[Payment], PayslipLine]] = {
    "social_security": fica.social_security,
    "medicare": fica.medicare,
    "additional_medicare": fica.additional_medicare,
    "fica": fica.fica,
    "federal_withholding": federal_withholding,
    "additional_medicare_liability": fica.additional_medicare_liability,
    "net": _net,
}
