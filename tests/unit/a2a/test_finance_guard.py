"""Finance guard: a total is forwarded if it equals its lines and no other field could be read as money."""

import copy
from decimal import Context, Decimal, localcontext
from typing import Any

import pytest

from qwed.futures import run_in_thread
from qwed.kernel.a2a.message import MessageVerdict
from qwed_a2a.guards._finance.invoice import MAX_LINES
from qwed_a2a.guards.finance import check_finance
from tests.support.case_tables import each, rows
from tests.support.shared_engine_workers import shared_verdicts


def check(payload: dict[str, Any]) -> MessageVerdict:
    return run_in_thread(check_finance(payload, shared_verdicts()), 1)


def invoice(total: Any, *lines: Any, **more: Any) -> dict[str, Any]:
    return {"data": {"claimed_total": total, "line_items": list(lines), **more}}


def name(row: dict[str, Any]) -> str:
    return str(row["name"])


@each("row", rows("a2a_finance_honest.jsonl"), ids=name)
def test_an_honest_invoice_passes_with_what_it_comes_to(row):
    result = check(row["payload"])
    assert result.forwarded, result.reason
    assert result.details["computed_total"] == row["computed"]
    assert not result.violation


@each("row", rows("a2a_finance_attacks.jsonl"), ids=name)
def test_what_is_wrong_or_cannot_be_verified_is_refused_with_what_to_change(row):
    result = check(row["payload"])
    assert not result.forwarded
    assert row["says"] in result.reason
    assert not result.reason.endswith(".")
    # A wrong sum may be a mistake: it costs no trust.
    assert not result.violation


def test_the_finding_says_what_was_claimed_and_how_the_total_was_computed():
    result = check(invoice("120.00", {"amount": "50.00", "quantity": 2}, tax="19.00", discount="4.00", currency="EUR"))
    assert result.reason == (
        "`claimed_total` is 120.00, but the total comes to 115.00 = 100.00 of 1 line item + tax 19.00 - discount 4.00"
    )
    assert result.details == {
        "claimed_total": "120.00",
        "computed_total": "115.00",
        "difference": "5.00",
        "tolerance": "0.01",
        "subtotal": "100.00",
        "tax": "19.00",
        "discount": "4.00",
        "line_items": 1,
        "currency": "EUR",
    }


def test_a_value_that_is_no_number_is_not_repeated():
    secret = "sk-live-0123456789"
    for result in (check(invoice(secret, {"amount": 1})), check(invoice(1, {"amount": 1}, currency=secret))):
        assert not result.forwarded
        assert secret not in result.reason


@pytest.mark.parametrize("precision", [1, 6, 28])
def test_a_context_that_rounds_changes_nothing(precision):
    line = {"amount": "123456789012345678.90", "quantity": 2}
    with localcontext(Context(prec=precision)) as context:
        assert check(invoice("246913578024691357.81", line)).forwarded
        assert not check(invoice("246913578024691357.811", line)).forwarded
        assert not check(invoice("246913578024691357.82", line)).forwarded
        assert not any(context.flags.values())


def test_the_least_that_can_be_beyond_the_tolerance_is_beyond_it():
    least = {"amount": "0." + "0" * 17 + "1", "quantity": "0." + "0" * 17 + "1"}
    assert check(invoice("0.01", {"amount": 0})).forwarded
    assert check(invoice("0.01", least)).forwarded
    result = check(invoice("-0.01", least))
    assert not result.forwarded
    assert result.details["difference"] == "-0.01" + "0" * 33 + "1"


def test_the_most_lines_are_summed_and_one_more_is_refused():
    lines = [{"amount": "0.01", "quantity": 1, "description": f"line {number}"} for number in range(MAX_LINES)]
    assert check(invoice("20.00", *lines)).forwarded
    assert f"more than {MAX_LINES} lines" in check(invoice("20.01", *lines, lines[0])).reason
    assert f"more than {MAX_LINES} lines" in check(invoice(1, *[{"amount": 1}] * 1_000_000)).reason


def test_the_largest_numbers_on_the_most_lines_are_summed_exactly():
    amount, quantity = "9" * 24 + "." + "9" * 18, "9" * 24 + ".123456789012345678"
    lines = [{"amount": amount, "quantity": quantity}] * MAX_LINES
    result = check(invoice(0, *lines))
    with localcontext(prec=500):
        assert Decimal(result.details["computed_total"]) == Decimal(amount) * Decimal(quantity) * MAX_LINES


@pytest.mark.parametrize(
    "extras",
    [
        {f"member {number}": "text" for number in range(20_000)},
        {"extra": ["text"] * 1_000_000},
        {"extra": {f"member {number}": "text" for number in range(20_000)}},
        {"extra": [["text"] * 5_000] * 5_000},
    ],
    ids=["members", "a list", "an object", "lists"],
)
def test_what_stands_beside_an_invoice_is_bounded(extras):
    assert "contains too many values" in check(invoice(1, {"amount": 1}, **extras)).reason


def test_a_name_that_is_no_text_is_refused():
    assert "is not text" in check({1: "x", **invoice(1, {"amount": 1})}).reason  # type: ignore[dict-item]


def test_a_payload_is_left_as_it_was_and_judged_the_same_every_time():
    payload = invoice("3.30", {"amount": 1.1, "quantity": 3, "note": {"a": ["b"]}}, currency="USD")
    original = copy.deepcopy(payload)
    assert check(payload) == check(payload) == check(copy.deepcopy(payload))
    assert payload == original
