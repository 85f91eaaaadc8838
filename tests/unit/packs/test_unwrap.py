"""Values of derived classes are read as their base values."""

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import Any, NamedTuple, NoReturn

import pytest

from qwed.packs.result import CheckStatus
from qwed.packs.unwrap import unwrap
from qwed_finance import FinanceVerifier
from qwed_legal import DeadlineGuard, LiabilityGuard
from qwed_tax import TaxVerifier
from qwed_ucp import UCPVerifier


def raising(*_args: Any, **_kwargs: Any) -> NoReturn:
    raise RuntimeError


class Term(StrEnum):
    MONTH = "1 month"


class Months(IntEnum):
    YEAR = 12


class Pair(NamedTuple):
    one: int
    other: int


class Text(str):
    __slots__ = ()
    __str__ = __len__ = strip = casefold = encode = raising


class Number(Decimal):
    __slots__ = ()
    __str__ = __format__ = is_finite = adjusted = raising


class Float(float):
    __slots__ = ()
    __repr__ = raising


class Day(date):
    isoformat = toordinal = __sub__ = raising


class Moment(datetime):
    date = utcoffset = raising


class Members(dict[str, Any]):
    __iter__ = __len__ = __contains__ = __getitem__ = items = get = raising


class Rows(list[Any]):
    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError


def object_with_raising_class() -> Any:
    """Return an object whose `__class__` raises; created late, because test collection would access it."""
    return type("Masked", (), {"__class__": property(raising)})()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Term.MONTH, "1 month"),
        (Months.YEAR, 12),
        (Pair(1, 2), (1, 2)),
        (Text("a"), "a"),
        (Number("1.50"), Decimal("1.50")),
        (Float(2.5), 2.5),
        (Day(2026, 1, 15), date(2026, 1, 15)),
        (Moment(2026, 1, 15, 8, tzinfo=UTC), datetime(2026, 1, 15, 8, tzinfo=UTC)),
        (Members(a=1), {"a": 1}),
        (Rows([1, 2]), [1, 2]),
        (True, True),
        (None, None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_is_what_it_holds(value: Any, expected: Any) -> None:
    assert unwrap(value) == expected
    assert type(unwrap(value)) is type(expected)


def test_what_is_of_no_kind_of_ours_stays_as_it_is() -> None:
    value = object()
    assert unwrap(value) is value
    assert type(unwrap(object_with_raising_class())) is object
    assert FinanceVerifier().verify_npv([1, 2], object_with_raising_class(), 5).status is CheckStatus.UNVERIFIABLE
    assert UCPVerifier().verify_cart(object_with_raising_class()).status is CheckStatus.UNVERIFIABLE


def test_derived_values_are_answered_like_plain_ones() -> None:
    guard = DeadlineGuard(Text("US"))
    assert guard.verify(Day(2026, 1, 15), Term.MONTH, Moment(2026, 2, 15)).verified
    assert LiabilityGuard().verify_cap(Number(500), Float(200.0), Text("$1,000")).verified
    assert FinanceVerifier().verify_sum(Rows([1, Number(2), Float(3.5)]), Text("6.50")).verified
    assert TaxVerifier().verify_sales_tax(Number(100), Float(0.0825), Text("8.25")).verified
    checkout = Members(currency="USD", line_items=[], totals=[{"type": "total", "amount": 0}])
    assert UCPVerifier().verify_cart(checkout).verified


STRANGE: dict[str, Callable[[], Any]] = {
    "a type": lambda: int,
    "a function": lambda: len,
    "a huge number": lambda: 10**5000,
    "a huge name": lambda: {10**5000: 1},
}


@pytest.mark.parametrize("name", STRANGE)
def test_what_cannot_be_read_is_never_raised(name: str) -> None:
    value = STRANGE[name]()
    assert FinanceVerifier().verify_npv([1, 2], value, 5).status is CheckStatus.UNVERIFIABLE
    assert FinanceVerifier().verify_npv(value, 0.1, 5).status is CheckStatus.UNVERIFIABLE
    assert TaxVerifier().verify_us_payroll(4000, value, year=2024).status is CheckStatus.UNVERIFIABLE
    assert TaxVerifier().verify_india_crypto(value, {"VDA": 1}).status is CheckStatus.UNVERIFIABLE
    assert not UCPVerifier().verify_transition(value, "completed").verified
    document = {"currency": "USD", "status": value, "line_items": [], "totals": [{"type": "total", "amount": 0}]}
    assert UCPVerifier().verify_checkout(document).status is not CheckStatus.VERIFIED
    line_item = {"id": value, "quantity": 1, "price": 0, "currency": value}
    assert UCPVerifier().verify_cart({**document, "line_items": [line_item]}).status is not CheckStatus.VERIFIED
