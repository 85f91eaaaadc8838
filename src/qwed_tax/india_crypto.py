"""Tax on virtual digital assets in India: 30 % of every gain, no set-off of losses (Income-tax Act 1961, section
115BBH)."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from qwed.packs.check import PackCheck
from qwed.packs.result import CheckStatus, Result, UnreadableInputError, status_of, unverifiable_on_error
from qwed_tax.money import agrees, amount_of, exactly, money, not_negative, rounded

RATE = Fraction(30, 100)
CESS = Fraction(4, 100)
TDS = Fraction(1, 100)
RULE = (
    "Income-tax Act 1961, section 115BBH(1) and (2), since 2022-04-01: 30 % of the income from virtual digital assets, "
    "no set off of any loss against it, no set off of their loss against anything"
)
CESS_RULE = "health and education cess of 4 % of the tax (Finance Act); surcharge is not computed"
TDS_RULE = "section 194S: 1 % of the consideration is deducted at source"
_INR = "INR"
_MOST = 10_000
_ASSETS = frozenset(
    ["vda", "crypto", "cryptocurrency", "nft", "virtualdigitalasset", "virtualdigitalassets", "bitcoin", "btc", "eth"]
)


@dataclass(frozen=True, kw_only=True)
class IndiaCryptoResult(Result):
    """Taxed gains and the tax, in rupees."""

    gains: Decimal | None = None
    losses: Decimal | None = None
    set_off: Decimal | None = None
    """Losses set off against the gains: always zero."""
    taxable: Decimal | None = None
    computed_tax: Decimal | None = None
    """30 % of the gains."""
    cess: Decimal | None = None
    total_tax: Decimal | None = None
    """Tax including the cess."""
    tds: Decimal | None = None


def _sum_of(name: str, value: Any) -> Fraction:
    if isinstance(value, list | tuple):
        if len(value) > _MOST:
            raise UnreadableInputError(f"`{name}` has more than {_MOST} entries")
        return sum((_one_of(f"{name}[{place}]", each) for place, each in enumerate(value)), Fraction(0))
    return _one_of(name, value)


def _one_of(name: str, value: Any) -> Fraction:
    if name.startswith("losses"):
        return abs(amount_of(name, value, _INR))
    exact = amount_of(name, value, _INR)
    if exact < 0:
        raise UnreadableInputError(f"`{name}` is negative, write it among the `losses`")
    return exact


class _Amounts(NamedTuple):
    lost: Fraction
    won: Fraction
    """Gains from virtual digital assets."""
    set_off: str = ""
    """Message if losses are set off that may not be."""


def _amounts_of(losses: Any, gains: Any) -> _Amounts:
    """Return the amounts, given plainly or by head of income."""
    if not isinstance(losses, Mapping) and not isinstance(gains, Mapping):
        return _Amounts(_sum_of("losses", losses), _sum_of("gains", gains))
    if not isinstance(losses, Mapping) or not isinstance(gains, Mapping) or len(losses) + len(gains) > _MOST:
        raise UnreadableInputError("write `losses` and `gains` both as amounts, or both by head as in {`VDA`: 5000}")
    if not all(isinstance(head, str) for head in (*losses, *gains)):
        raise UnreadableInputError("a head of income must be a text, as in {`VDA`: 5000}")
    lost = {str(head): _one_of(f"losses.{head}", each) for head, each in losses.items()}
    won = {str(head): _one_of(f"gains.{head}", each) for head, each in gains.items()}
    lost, won = ({head: each for head, each in some.items() if each} for some in (lost, won))
    assets = sum((each for head, each in won.items() if _is_asset(head)), Fraction(0))
    if not any(_is_asset(head) for head in (*lost, *won)):
        raise UnreadableInputError(
            "neither side has a virtual digital asset, write its head as `VDA`; other set off is not checked"
        )
    message = (
        f"losses of {', '.join(lost)} may not be set off against gains of {', '.join(won)}" if lost and won else ""
    )
    return _Amounts(sum(lost.values(), Fraction(0)), assets, message)


def _is_asset(head: str) -> bool:
    return head.casefold().replace("_", "").replace(" ", "") in _ASSETS


@unverifiable_on_error(IndiaCryptoResult)
def verify_india_crypto(
    losses: Any = None,
    gains: Any = None,
    claimed_tax: Any = None,
    *,
    claimed_taxable: Any = None,
    claimed_total: Any = None,
    consideration: Any = None,
    claimed_tds: Any = None,
) -> IndiaCryptoResult:
    """Check the claimed tax on the gains, without set-off of losses."""
    lost, won, set_off = _amounts_of(losses, gains)
    sale = None if consideration is None else not_negative("consideration", consideration, _INR)
    if claimed_tds is not None and sale is None:
        raise UnreadableInputError("`claimed_tds` needs `consideration`, the amount that the asset was sold for")
    checks = (
        set_off,
        _wrong("claimed_taxable", claimed_taxable, (won,)),
        _wrong("claimed_tax", claimed_tax, (won * RATE, _with_cess(won))),
        _wrong("claimed_total", claimed_total, (_with_cess(won),)),
        _wrong("claimed_tds", claimed_tds, ((sale or Fraction(0)) * TDS,)),
    )
    wrong = [said for said in checks if said]
    said = "; ".join(wrong) or f"{money(won * RATE)} of tax on gains of {money(won)}, losses are not set off"
    return _result(lost, won, status_of(not wrong), said, sale)


def _with_cess(gains: Fraction) -> Fraction:
    tax = Fraction(rounded(gains * RATE))
    return tax + Fraction(rounded(tax * CESS))


def _wrong(name: str, value: Any, rights: tuple[Fraction, ...]) -> str:
    if value is None:
        return ""
    claimed = amount_of(name, value, _INR)
    if any(agrees(claimed, right) for right in rights):
        return ""
    return f"`{name}` is {money(claimed)}, but comes to {money(rounded(rights[0]))}: losses are not set off"


def _result(
    lost: Fraction, won: Fraction, status: CheckStatus, message: str, sale: Fraction | None = None
) -> IndiaCryptoResult:
    tax = rounded(won * RATE)
    cess = rounded(Fraction(tax) * CESS)
    steps = (
        f"taxable: gains of {money(won)}, of which losses of {money(lost)} take nothing",
        f"30 % of {money(won)} = {money(tax)}",
        f"cess: 4 % of {money(tax)} = {money(cess)}, together {money(_with_cess(won))}",
    )
    return IndiaCryptoResult(
        status=status,
        message=message,
        rule="; ".join((RULE, CESS_RULE, *((TDS_RULE,) if sale is not None else ()))),
        by_hand=steps if sale is None else (*steps, f"1 % of {money(sale)} = {money(rounded(sale * TDS))}"),
        gains=exactly(won),
        losses=exactly(lost),
        set_off=Decimal("0.00"),
        taxable=exactly(won),
        computed_tax=tax,
        cess=cess,
        total_tax=rounded(_with_cess(won)),
        tds=None if sale is None else rounded(sale * TDS),
    )


CHECKS = (
    PackCheck(
        "india_crypto",
        "what gains from virtual digital assets are taxed with in India, where no loss is set off",
        verify_india_crypto,
        required=("losses", "gains"),
        optional=("claimed_tax", "claimed_taxable", "claimed_total", "consideration", "claimed_tds"),
    ),
)
