"""Check of fields that are not part of an invoice: a field named like money must equal a verified sum."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, auto
from functools import lru_cache
from typing import Any, NamedTuple

from qwed.model.currency import CURRENCIES
from qwed.model.decimals import NumberFormatError, format_decimal, parse_number

_MAX_NAME_LENGTH = 64
_MAX_DEPTH = 8
_MAX_VALUES = 10_000
"""Extra values that are scanned in one payload."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_INVOICE_FIELDS = ("claimed_total", "line_items", "tax", "discount", "currency", "amount", "quantity", "data")
_KNOWN_SPELLINGS = {name.replace("_", ""): name for name in _INVOICE_FIELDS}
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
"""Words that mean money anywhere in a name, as in `grandtotal`."""
_HARMLESS = _words("paymentdue salesperson taxpoint")
_DESCRIPTIVE = _words(
    "account address at authority bank by category class code contact count country date day days details email exempt "
    "exemption history hour hours iban id included index key label line link list method minutes mode month name no "
    "note notes nr number office option order page pages period person point policy position provider purpose reason "
    "recipient ref reference region registration rep revision row scheme scope seq sequence sku status term terms text "
    "title to type url version week year zone"
)
"""Last words of names that identify, date or describe money: `discount_code`, `due_days`."""
_WHOLE = 100
_AMOUNT = re.compile(
    r"[+-]?\s*([$\u20ac\u00a3\u00a5\u20b9]|[A-Za-z]{3}(?![A-Za-z]))?\s*[+-]?"
    r"[0-9]+(?:[., '][0-9]{3})*(?:[.,][0-9]+)?\s*([$\u20ac\u00a3\u00a5\u20b9]|[A-Za-z]{3})?"
)
_MAX_AMOUNT_LENGTH = 64
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.]+(?:Z|[+-][0-9:]+)?)?")
_SHARES = _words("percent percentage pct rate rates")
_RATED = _words("discount exchange fx gst hst interest iva mwst pst tax tva ust vat")
"""Words before `rate` that make it a percentage: `tax_rate` is a share, `hourly_rate` is a price."""


class ExtraFieldError(Exception):
    """Extra field that could be read as unchecked money; the text names it and says what to do."""


class _NameKind(Enum):
    """Meaning of a field name."""

    MONEY = auto()
    SHARE = auto()
    """A percentage, such as `tax_rate`."""
    DESCRIPTIVE = auto()
    """A name that identifies, dates or describes money."""
    PLAIN = auto()


class ExtraAmount(NamedTuple):
    """Number under a name of money that must equal a verified sum."""

    name: str
    value: Decimal

    def require(self, verified: Mapping[str, Decimal]) -> None:
        """Raise ExtraFieldError unless it equals a sum that is verified under such a name."""
        if not any(self.value == amount for word, amount in verified.items() if word in _joined_words(self.name)):
            raise ExtraFieldError(
                f"`{self.name}` is {format_decimal(self.value)}, which equals no verified sum: {_INSTEAD}"
            )


@dataclass(slots=True)
class ExtraFieldScan:
    """Scan of the extra fields of one payload, with a limit for the whole payload."""

    left: int = _MAX_VALUES

    def scan(self, members: Mapping[Any, Any], known: frozenset[str]) -> list[ExtraAmount]:
        """Return the numbers under other names of money; raise ExtraFieldError if a field could be taken for one of the
        invoice."""
        amounts: list[ExtraAmount] = []
        pending = [(name, _name_kind(name), value, 0) for name, value in members.items() if name not in known]
        while pending:
            name, kind, value, depth = pending.pop()
            self.left -= 1
            nested = _nested_values(name, kind, value)
            if depth > _MAX_DEPTH or len(pending) + len(nested) > self.left:
                raise ExtraFieldError(f"`{name}` contains too many values, leave it out of a financial payload")
            pending += [(*item, depth + 1) for item in nested]
            if not nested:
                amounts += _extra_amounts(name, kind, value)
        return amounts


def _nested_values(name: str, kind: _NameKind, value: Any) -> list[tuple[str, _NameKind, Any]]:
    if isinstance(value, Mapping):
        # Members of a payment may be money even under a neutral name.
        return [
            (inner, kind if _name_kind(inner) is _NameKind.PLAIN else _name_kind(inner), item)
            for inner, item in value.items()
        ]
    return [(name, kind, item) for item in value] if isinstance(value, list | tuple) else []


def _extra_amounts(name: str, kind: _NameKind, value: Any) -> list[ExtraAmount]:
    if isinstance(value, str) and _is_amount(value):
        raise _unchecked_money(name)
    if kind not in (_NameKind.MONEY, _NameKind.SHARE) or _is_not_amount(value):
        return []
    try:
        exact = parse_number(
            value.removesuffix("%").rstrip() if kind is _NameKind.SHARE and isinstance(value, str) else value
        )
    except NumberFormatError:
        raise _unchecked_money(name) from None
    return [] if kind is _NameKind.SHARE and 0 <= exact <= _WHOLE else [ExtraAmount(name, exact)]


def _is_not_amount(value: Any) -> bool:
    """Return True if the value of a money field is a date, a text or a flag, and not a number."""
    if isinstance(value, str):
        return not any(character.isdigit() for character in value) or _DATE.fullmatch(value) is not None
    return value is None or isinstance(value, bool) or value in ([], {})


def _is_amount(text: str) -> bool:
    """Return True if it is a number with a currency sign or code and nothing else."""
    match = _AMOUNT.fullmatch(text.strip()) if len(text) <= _MAX_AMOUNT_LENGTH else None
    marks = [] if match is None else [mark for mark in match.groups() if mark]
    return bool(marks) and all(not mark.isalpha() or mark.upper() in CURRENCIES for mark in marks)


_INSTEAD = "use `claimed_total`, `tax`, `discount` and an `amount` for each line, fees and shipping included"


def _unchecked_money(name: str) -> ExtraFieldError:
    return ExtraFieldError(f"`{name}` could be taken for money and is not checked: {_INSTEAD}")


def _name_kind(name: Any) -> _NameKind:
    if not isinstance(name, str):
        raise ExtraFieldError("the name of a member is not text")
    if len(name) > _MAX_NAME_LENGTH:
        raise ExtraFieldError(f"the name of a member has more than {_MAX_NAME_LENGTH} characters")
    kind = _classify_name(name)
    if isinstance(kind, str):
        raise ExtraFieldError(kind)
    return kind


def _joined_words(name: str) -> str:
    return "".join(_WORD.findall(name)).lower()


@lru_cache(maxsize=2048)
def _classify_name(name: str) -> str | _NameKind:
    """Return the kind of a name, or why no field may have it."""
    if not name.isascii() or not name.isprintable() or "$" in name:
        # A letter of another alphabet may look like an ASCII one, and then a second total looks like the first.
        return "the name of a member has characters beyond ASCII or a `$`, write it in plain letters"
    words = [word.lower() for word in _WORD.findall(name)]
    joined = "".join(words)
    if joined in _KNOWN_SPELLINGS or "currenc" in joined:
        ours = _KNOWN_SPELLINGS.get(joined, "currency")
        return f"`{name}` is not accepted here, write `{ours}` once and where it belongs"
    if words and words[-1] in _SHARES and not _RATED.isdisjoint(words):
        return _NameKind.SHARE
    if joined in _HARMLESS or (words and words[-1] in _DESCRIPTIVE):
        return _NameKind.DESCRIPTIVE
    return _NameKind.MONEY if _WITHIN.search(joined) or not _MONEY.isdisjoint(words) else _NameKind.PLAIN
