"""Currency guard: one known currency, and no amount finer than its smallest unit."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from qwed.model.currency import CURRENCIES, WITHOUT_UNIT, CurrencyError, decimals_of
from qwed.model.decimals import EXACT, is_multiple_of
from qwed.packs.result import abbreviate, unknown_name_error
from qwed_ucp.document import ONE, CommerceDocument, DocumentError, digits
from qwed_ucp.result import GuardFinding

NAME = "currency"
_DEEPEST = 40


def unit_of(document: CommerceDocument) -> Decimal:
    """Return the smallest unit; raise UnreadableInputError with the known currencies if this one is unknown."""
    code = document.currency
    try:
        decimals = decimals_of(code)
    except CurrencyError as error:
        if isinstance(code, str) and code.strip().upper() not in CURRENCIES and code not in WITHOUT_UNIT:
            raise unknown_name_error("currency", code, CURRENCIES) from None
        raise DocumentError(f"`currency` {error}") from None
    return ONE if document.minor else ONE.scaleb(-decimals, EXACT)


def look(document: CommerceDocument) -> GuardFinding:
    """Check that every amount is payable in the currency."""
    unit = unit_of(document)
    amounts = [(f"{row.at}.price", row.price) for row in document.lines]
    amounts += [(f"{row.at}.amount", row.effect) for row in document.entries]
    amounts += [(f"{row.at}.amount", row.effect) for line in document.lines for row in line.entries]
    finer = next((at for at, value in amounts if not is_multiple_of(value, unit)), None)
    if finer is not None:
        raise DocumentError(f"`{finer}` is finer than {digits(unit)}, the smallest unit of {document.currency}")
    other = next((row for row in _named(document.members) if row != document.currency), None)
    if other is not None:
        raise DocumentError(f"the document is in {document.currency}, and a part of it in `{abbreviate(other)}`")
    details = {"currency": document.currency, "decimals": decimals_of(document.currency), "minor_units": document.minor}
    return GuardFinding(guard_name=NAME, verified=True, details=details)


def _named(members: Any) -> Iterator[Any]:
    """Yield every currency named in the document."""
    pending = [(members, 0)]
    while pending:
        value, depth = pending.pop()
        if isinstance(value, Mapping):
            if value.get("currency") is not None:
                yield value["currency"]
            pending += [(each, depth + 1) for each in value.values() if depth < _DEEPEST]
        elif isinstance(value, list | tuple) and depth < _DEEPEST:
            pending += [(each, depth + 1) for each in value]
