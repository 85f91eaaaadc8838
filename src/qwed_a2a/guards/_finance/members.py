"""Members beside those of an invoice: what is called by a name of money says what was verified, or does not pass."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, auto
from functools import lru_cache
from typing import Any, NamedTuple

from qwed.words.currency import CURRENCIES
from qwed.words.exact import NotANumber, number, shown

_LONGEST_NAME = 64
_DEEPEST = 8
_MOST = 10_000
"""Values beside the invoice that are looked through in one payload."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_OURS = ("claimed_total", "line_items", "tax", "discount", "currency", "amount", "quantity", "data")
_SPELT = {name.replace("_", ""): name for name in _OURS}
_MONEY = _words(
    "adjustment adjustments amt arrears balance bill billed bonus charge charges commission commissions cost costs "
    "credit credits debit debits deposit due duty eur excise expense expenses fee fees freight gbp gross gst gratuity "
    "importe importo installment instalment interest invoiced iva kosten kwota levy money mwst net outstanding owed "
    "owing paid pay payment payments payout penalty postage precio preis premium prezzo price prices prix pst qty "
    "rabatt rate rates rebate rebates refund refunds remaining remittance rounding sales shipping skonto steuer sum "
    "suma summe sums tariff tax taxes tip tips tva usd ust valor vat voucher withholding worth"
)
_WITHIN = re.compile(
    r"amount|balance|bedrag|belopp|betrag|discount|gesamt|lineitem|montant|payable|price|quantit|subtotal"
    r"|surcharge|totaal|total"
)
"""Long enough to mean money wherever they stand in a name, as in `grandtotal`."""
_HARMLESS = _words("paymentdue salesperson taxpoint")
_SPOKEN = _words(
    "account address at authority bank by category class code contact count country date day days details email exempt "
    "exemption history hour hours iban id included index key label line link list method minutes mode month name no "
    "note notes nr number office option order page pages period person point policy position provider purpose reason "
    "recipient ref reference region registration rep revision row scheme scope seq sequence sku status term terms text "
    "title to type url version week year zone"
)
"""What a name ends in that tells things apart, says when or only speaks of money: `discount_code`, `due_days`."""
_WHOLE = 100
_AMOUNT = re.compile(
    r"[+-]?\s*([$\u20ac\u00a3\u00a5\u20b9]|[A-Za-z]{3}(?![A-Za-z]))?\s*[+-]?"
    r"[0-9]+(?:[., '][0-9]{3})*(?:[.,][0-9]+)?\s*([$\u20ac\u00a3\u00a5\u20b9]|[A-Za-z]{3})?"
)
_LONGEST_AMOUNT = 64
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.]+(?:Z|[+-][0-9:]+)?)?")
_SHARES = _words("percent percentage pct rate rates")
_SHARED = _words("discount exchange fx gst hst interest iva mwst pst tax tva ust vat")
"""What a rate may be of: `tax_rate` is a share, and `hourly_rate` a price."""


class Stray(Exception):
    """A member that would say more about money than is checked; the text says which, and what to do."""


class _Kind(Enum):
    """What a name says of what stands under it."""

    MONEY = auto()
    SHARE = auto()
    """A percentage, such as `tax_rate`."""
    SPOKEN = auto()
    """It speaks of money, tells things apart or says when."""
    PLAIN = auto()


class Beside(NamedTuple):
    """A number under a name of money, to be held against what was verified."""

    name: str
    value: Decimal

    def require(self, verified: Mapping[str, Decimal]) -> None:
        """Stray unless it is one of the sums that are verified under such a name."""
        if not any(self.value == each for word, each in verified.items() if word in _plain(self.name)):
            raise Stray(f"`{self.name}` is {shown(self.value)}, which nothing here comes to: {_INSTEAD}")


@dataclass(slots=True)
class Rest:
    """What one payload holds beside its invoice: looked through, and bounded as a whole."""

    left: int = _MOST

    def look_through(self, members: Mapping[Any, Any], known: frozenset[str]) -> list[Beside]:
        """The numbers under names of money that are not ours; Stray where a member could be taken for one of ours."""
        found: list[Beside] = []
        pending = [(name, _kind(name), value, 0) for name, value in members.items() if name not in known]
        while pending:
            name, kind, value, depth = pending.pop()
            self.left -= 1
            within = _within(name, kind, value)
            if depth > _DEEPEST or len(pending) + len(within) > self.left:
                raise Stray(f"`{name}` holds too much, leave it out of a financial payload")
            pending += [(*each, depth + 1) for each in within]
            if not within:
                found += _number(name, kind, value)
        return found


def _within(name: str, kind: _Kind, value: Any) -> list[tuple[str, _Kind, Any]]:
    if isinstance(value, Mapping):
        # What is in a payment may well be money under a name that says nothing.
        return [(inner, kind if _kind(inner) is _Kind.PLAIN else _kind(inner), each) for inner, each in value.items()]
    return [(name, kind, each) for each in value] if isinstance(value, list | tuple) else []


def _number(name: str, kind: _Kind, value: Any) -> list[Beside]:
    if isinstance(value, str) and _is_amount(value):
        raise _stray(name)
    if kind not in (_Kind.MONEY, _Kind.SHARE) or _is_no_number(value):
        return []
    try:
        exact = number(value.removesuffix("%").rstrip() if kind is _Kind.SHARE and isinstance(value, str) else value)
    except NotANumber:
        raise _stray(name) from None
    return [] if kind is _Kind.SHARE and 0 <= exact <= _WHOLE else [Beside(name, exact)]


def _is_no_number(value: Any) -> bool:
    """Whether what stands under a name of money says when, how or whether, and not how much."""
    if isinstance(value, str):
        return not any(sign.isdigit() for sign in value) or _DATE.fullmatch(value) is not None
    return value is None or isinstance(value, bool) or value in ([], {})


def _is_amount(text: str) -> bool:
    """Whether it is a number with a sign or a code of its currency, and nothing else."""
    found = _AMOUNT.fullmatch(text.strip()) if len(text) <= _LONGEST_AMOUNT else None
    marks = [] if found is None else [mark for mark in found.groups() if mark]
    return bool(marks) and all(not mark.isalpha() or mark.upper() in CURRENCIES for mark in marks)


_INSTEAD = "use `claimed_total`, `tax`, `discount` and an `amount` for each line, fees and shipping included"


def _stray(name: str) -> Stray:
    return Stray(f"`{name}` could be taken for money and is not checked: {_INSTEAD}")


def _kind(name: Any) -> _Kind:
    if not isinstance(name, str):
        raise Stray("the name of a member is no text")
    if len(name) > _LONGEST_NAME:
        raise Stray(f"the name of a member has more than {_LONGEST_NAME} characters")
    judged = _judged(name)
    if isinstance(judged, str):
        raise Stray(judged)
    return judged


def _plain(name: str) -> str:
    return "".join(_WORD.findall(name)).lower()


@lru_cache(maxsize=2048)
def _judged(name: str) -> str | _Kind:
    """Whether a name speaks of money, or why there must be no member of that name."""
    if not name.isascii() or not name.isprintable() or "$" in name:
        # A letter of another alphabet may look like ours, and then a second total looks like the first.
        return "the name of a member has characters beyond ASCII or a `$`, write it in plain letters"
    words = [word.lower() for word in _WORD.findall(name)]
    joined = "".join(words)
    if joined in _SPELT or "currenc" in joined:
        ours = _SPELT.get(joined, "currency")
        return f"`{name}` is not read here, write `{ours}` once and where it belongs"
    if words and words[-1] in _SHARES and not _SHARED.isdisjoint(words):
        return _Kind.SHARE
    if joined in _HARMLESS or (words and words[-1] in _SPOKEN):
        return _Kind.SPOKEN
    return _Kind.MONEY if _WITHIN.search(joined) or not _MONEY.isdisjoint(words) else _Kind.PLAIN
