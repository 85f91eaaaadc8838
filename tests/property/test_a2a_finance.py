"""Finance guard against an independent oracle: fractions of integers, no Decimal."""

import json
from fractions import Fraction
from random import Random
from typing import Any, NamedTuple

import pytest

from qwed.futures import run_in_thread
from qwed.kernel.a2a.message import MessageVerdict
from qwed_a2a.guards.finance import check_finance
from tests.support.shared_engine_workers import shared_verdicts

DECIMALS = {None: 6, "USD": 2, "EUR": 2, "JPY": 0, "KRW": 0, "KWD": 3, "TND": 3, "CLF": 4}
"""Decimals of each currency, by hand from the standard; six without a currency."""
FEW, ALL = 500, 10_000


class Amount(NamedTuple):
    """Number as digits and the position of its point, so that only integers are computed with."""

    units: int
    decimals: int

    @property
    def exact(self) -> Fraction:
        return Fraction(self.units, 10**self.decimals)

    @property
    def text(self) -> str:
        digits = str(abs(self.units)).rjust(self.decimals + 1, "0")
        whole, decimals = digits[: len(digits) - self.decimals], digits[len(digits) - self.decimals :]
        return ("-" if self.units < 0 else "") + whole + (f".{decimals}" if decimals else "")


def written(amount: Amount, random: Random) -> Any:
    """Return one of the JSON forms of a number."""
    ways: list[Any] = [amount.text]
    if "." in amount.text:
        ways.append(amount.text + "0" * random.randint(1, 3))
    if amount.exact.denominator == 1:
        ways.append(int(amount.exact))
    # A float is one of them if its shortest digits are the intended ones.
    if Fraction(repr(float(amount.text))) == amount.exact:
        ways.append(float(amount.text))
    return random.choice(ways)


class Invoice(NamedTuple):
    currency: str | None
    lines: tuple[tuple[Amount, Amount | None], ...]
    tax: Amount | None
    discount: Amount | None
    claimed: Amount

    @property
    def total(self) -> Fraction:
        lines = sum((amount.exact * (1 if many is None else many.exact) for amount, many in self.lines), Fraction(0))
        return lines + (self.tax.exact if self.tax else 0) - (self.discount.exact if self.discount else 0)

    @property
    def tolerance(self) -> Fraction:
        return min(Fraction(1, 100), Fraction(1, 10 ** DECIMALS[self.currency])) if self.currency else Fraction(1, 100)

    @property
    def honest(self) -> bool:
        """Return True if the invoice follows the rules, checked in the order of the page."""
        finest = DECIMALS[self.currency] if self.currency else None
        single = [amount for amount, many in self.lines if many is None or many.exact == 1]
        held = [self.claimed, *filter(None, (self.tax, self.discount)), *single]
        if finest is not None and any((item.exact * 10**finest).denominator != 1 for item in held):
            return False
        lines = sum((amount.exact * (1 if many is None else many.exact) for amount, many in self.lines), Fraction(0))
        tax, discount = (item.exact if item else Fraction(0) for item in (self.tax, self.discount))
        if discount < 0 or (discount > 0 and discount > lines + tax):
            return False
        if (
            (tax < 0 <= lines)
            or (tax > 0 > lines)
            or any(many is not None and many.exact < 0 for _, many in self.lines)
        ):
            return False
        off = abs(self.claimed.exact - self.total)
        # A total of fractions of a yen is claimed in whole yen.
        return off <= self.tolerance or (finest is not None and off * 10**finest < 1)

    def payload(self, random: Random) -> dict[str, Any]:
        lines = []
        for amount, many in self.lines:
            line = {"amount": written(amount, random)} | ({} if many is None else {"quantity": written(many, random)})
            if random.random() < 0.2:
                line["description"] = "work"
            lines.append(line)
        data: dict[str, Any] = {"claimed_total": written(self.claimed, random), "line_items": lines}
        for name in ("tax", "discount"):
            if (each := getattr(self, name)) is not None:
                data[name] = written(each, random)
        if self.currency:
            data["currency"] = self.currency
        return {"data": data} if random.random() < 0.5 else data


def nearest(exact: Fraction, decimals: int) -> Amount:
    return Amount(round(exact * 10**decimals), decimals)


def random_invoice(random: Random) -> Invoice:
    """Return an invoice that is mostly right, or wrong by a little, by much, or in its signs."""
    currency = random.choice(list(DECIMALS))
    decimals = DECIMALS[currency]
    sign = -1 if random.random() < 0.1 else 1
    lines = []
    for _ in range(random.choice([1, 2, 3, 5, 12])):
        many = None if random.random() < 0.4 else Amount(random.randint(-1 if random.random() < 0.02 else 0, 40), 0)
        if many is not None and random.random() < 0.2:
            many = Amount(random.randint(0, 4000), 2)
        finer = random.choice([0, 0, 0, 2]) if many is not None else int(random.random() < 0.01)
        amount = Amount(sign * random.randint(0, 10 ** random.choice([2, 5, 9, 20])), decimals + finer)
        lines.append((amount, many))
    bare = Invoice(currency, tuple(lines), None, None, Amount(0, 0))
    share = Fraction(random.randint(-5 if random.random() < 0.05 else 0, 30), 100)
    tax = nearest(bare.total * share, decimals) if random.random() < 0.5 else None
    part = Fraction(random.randint(-5 if random.random() < 0.05 else 0, 40), 100)
    discount = nearest(abs(bare.total) * part, decimals) if random.random() < 0.4 else None
    whole = bare._replace(tax=tax, discount=discount)
    return whole._replace(claimed=claim(whole, random))


def claim(invoice: Invoice, random: Random) -> Amount:
    decimals = DECIMALS[invoice.currency]
    right = nearest(invoice.total, decimals + (2 if random.random() < 0.05 else 0))
    units = 10 ** max(0, right.decimals - 2)
    off = random.choice(
        [0, 0, 0, 0, 1, -1, units, -units, units + 1, -units - 1, 10 * units, random.randint(-999, 999)]
    )
    return Amount(right.units + off, right.decimals)


def check(payload: dict[str, Any]) -> MessageVerdict:
    # Encode and decode as JSON, as on the wire.
    return run_in_thread(check_finance(json.loads(json.dumps(payload)), shared_verdicts()), 1)


def compare(seed: int, count: int) -> None:
    random = Random(seed)
    passed = 0
    for _ in range(count):
        invoice = random_invoice(random)
        payload = invoice.payload(random)
        found = check(payload)
        assert found.forwarded is invoice.honest, (payload, found)
        if found.details:
            assert Fraction(found.details["computed_total"]) == invoice.total, payload
            assert Fraction(found.details["difference"]) == invoice.claimed.exact - invoice.total, payload
        passed += found.forwarded
    # Both outcomes must be frequent enough to compare.
    assert count * 0.2 < passed < count * 0.8


def test_the_guard_passes_exactly_the_invoices_that_the_oracle_finds_honest():
    compare(seed=1, count=FEW)


@pytest.mark.drill
@pytest.mark.parametrize("seed", range(3))
def test_ten_thousand_invoices_each_are_judged_as_the_oracle_judges_them(seed):
    compare(seed=100 + seed, count=ALL)


def test_every_error_beyond_the_tolerance_is_found_and_none_within_it():
    random = Random(2)
    for _ in range(50):
        invoice = random_invoice(random)._replace(currency=None, tax=None, discount=None)
        lines = tuple((amount, None if many and many.units < 0 else many) for amount, many in invoice.lines)
        invoice = invoice._replace(lines=lines)
        total = nearest(invoice.total, 12)
        cent, least = 10**10, 10**8
        for off in (0, 1, cent - least, cent, cent + 1, cent + least, 2 * cent, 10**12):
            for sign in (1, -1):
                claimed = Amount(total.units + sign * off, 12)
                found = check(invoice._replace(claimed=claimed).payload(random))
                assert found.forwarded is (off <= cent), (off, found)


@pytest.mark.parametrize("lines", [2, 3, 10, 100, 1_000])
def test_lines_that_are_each_off_by_less_than_the_tolerance_do_not_add_up_unseen(lines):
    for off in (1, 9, 10):
        claimed = Amount(lines * (5_000 + off), 3)
        payload = {"claimed_total": claimed.text, "line_items": [{"amount": "5.000"}] * lines}
        assert check(payload).forwarded is (lines * off <= 10)


def test_neither_the_order_of_lines_nor_the_way_a_number_is_written_changes_the_verdict():
    random = Random(3)
    for _ in range(150):
        invoice = random_invoice(random)
        verdicts = set()
        for _ in range(4):
            shuffled = invoice._replace(lines=tuple(random.sample(invoice.lines, len(invoice.lines))))
            found = check(shuffled.payload(random))
            totals = (found.details.get("computed_total"), found.details.get("difference"))
            verdicts.add((found.forwarded, *(each and Fraction(each) for each in totals)))
        assert len(verdicts) == 1


def test_a_line_of_many_is_as_many_lines_of_one():
    random = Random(4)
    for _ in range(100):
        amount, many = Amount(random.randint(-(10**6), 10**6), 2), random.randint(1, 30)
        total = Amount(amount.units * many + random.choice([0, 0, 1, 2, -5]), 2)
        at_once = check({"claimed_total": total.text, "line_items": [{"amount": amount.text, "quantity": many}]})
        one_by_one = check({"claimed_total": total.text, "line_items": [{"amount": amount.text}] * many})
        assert at_once.forwarded is one_by_one.forwarded is (abs(total.units - amount.units * many) <= 1)


def test_the_same_invoice_has_the_same_finding_every_time():
    payloads = [random_invoice(Random(seed)).payload(Random(seed)) for seed in range(200)]
    first = [check(payload) for payload in payloads]
    assert [check(payload) for payload in reversed(payloads)] == first[::-1]
