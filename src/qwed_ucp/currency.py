"""Currency: there is one, it is known, and no amount is finer than its smallest unit."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from qwed.packs.result import briefly, unknown
from qwed.words.currency import CURRENCIES, WITHOUT_UNIT, CurrencyError, decimals_of
from qwed.words.exact import EXACT, fits
from qwed_ucp.document import ONE, Defect, Document, show
from qwed_ucp.result import GuardFinding

NAME = "currency"
_DEEPEST = 40


def unit_of(document: Document) -> Decimal:
    """The smallest amount; Unreadable lists the known currencies where this one is not known."""
    code = document.currency
    try:
        decimals = decimals_of(code)
    except CurrencyError as wrong:
        if isinstance(code, str) and code.strip().upper() not in CURRENCIES and code not in WITHOUT_UNIT:
            raise unknown("currency", code, CURRENCIES) from None
        raise Defect(f"`currency` {wrong}") from None
    return ONE if document.minor else ONE.scaleb(-decimals, EXACT)


def look(document: Document) -> GuardFinding:
    """Whether every amount is one that can be paid."""
    unit = unit_of(document)
    amounts = [(f"{each.at}.price", each.price) for each in document.lines]
    amounts += [(f"{each.at}.amount", each.effect) for each in document.entries]
    amounts += [(f"{each.at}.amount", each.effect) for line in document.lines for each in line.entries]
    finer = next((at for at, value in amounts if not fits(value, unit)), None)
    if finer is not None:
        raise Defect(f"`{finer}` is finer than {show(unit)}, the smallest unit of {document.currency}")
    other = next((each for each in _named(document.members) if each != document.currency), None)
    if other is not None:
        raise Defect(f"the document is in {document.currency}, and a part of it in `{briefly(other)}`")
    details = {"currency": document.currency, "decimals": decimals_of(document.currency), "minor_units": document.minor}
    return GuardFinding(guard_name=NAME, verified=True, details=details)


def _named(members: Any) -> Iterator[Any]:
    """Every currency that a part of the document names."""
    pending = [(members, 0)]
    while pending:
        value, depth = pending.pop()
        if isinstance(value, Mapping):
            if value.get("currency") is not None:
                yield value["currency"]
            pending += [(each, depth + 1) for each in value.values() if depth < _DEEPEST]
        elif isinstance(value, list | tuple) and depth < _DEEPEST:
            pending += [(each, depth + 1) for each in value]
