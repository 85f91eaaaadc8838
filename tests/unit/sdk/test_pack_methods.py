"""Every domain pack has a method that takes Python values: both clients and in process (INTERFACES 8)."""

import asyncio
import math
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

import qwed
from qwed.model.json_encode import to_json_value
from qwed_sdk import QWEDAsyncClient, QWEDClient
from tests.support.server import Server

Ask = Callable[..., Any]
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "verify_legal": (
        "deadline",
        {
            "signing_date": date(2026, 1, 15),
            "term": "30 business days",
            "claimed_deadline": datetime(2026, 3, 2, 9, tzinfo=UTC),
        },
        {"claimed_deadline": "2026-02-14"},
    ),
    "verify_finance": (
        "npv",
        {"cashflows": (Decimal("-1000.00"), Decimal("500.50"), 600.25), "rate": 0.1, "llm_output": Decimal("-48.93")},
        {"llm_output": "-48.39"},
    ),
    "verify_ucp": (
        "checkout",
        {
            "checkout": {
                "currency": "USD",
                "status": "ready_for_complete",
                "line_items": [{"id": "a", "quantity": 2, "price": Decimal("10.00")}],
                "totals": [{"type": "subtotal", "amount": 20}, {"type": "total", "amount": Decimal("20.00")}],
            }
        },
        {"checkout": {"currency": "USD"}},
    ),
    "verify_tax": (
        "sales_tax",
        {"amount": Decimal("100.00"), "rate": "0.0825", "claimed_tax": 8.25},
        {"claimed_tax": 8.52},
    ),
}


def _blocking(server: Server) -> Iterator[Ask]:
    with QWEDClient(server.owner_key, server.base_url) as client:
        yield lambda verb, *arguments, **values: getattr(client, verb)(*arguments, **values)


def _awaiting(server: Server) -> Iterator[Ask]:
    async def ask(verb: str, *arguments: Any, **values: Any) -> Any:
        async with QWEDAsyncClient(api_key=server.owner_key, base_url=server.base_url) as client:
            return await getattr(client, verb)(*arguments, **values)

    yield lambda *arguments, **values: asyncio.run(ask(*arguments, **values))


def _in_process(_server: Server) -> Iterator[Ask]:
    with qwed.open() as gate:
        yield lambda verb, *arguments, **values: getattr(gate, verb)(*arguments, **values)


@pytest.fixture(scope="module", params=[_blocking, _awaiting, _in_process], ids=["blocking", "awaiting", "in process"])
def call(server: Server, request: pytest.FixtureRequest) -> Iterator[Ask]:
    yield from request.param(server)


@pytest.mark.parametrize("verb", CASES)
def test_each_pack_has_a_verb_that_takes_values_by_name(call: Ask, verb: str) -> None:
    operation, values, wrong = CASES[verb]
    right = call(verb, operation, **values)
    assert (right.status, right.verified, right.engine) == ("VERIFIED", True, verb.removeprefix("verify_")), right
    assert right.result["by_hand"]
    result = call(verb, operation, **(values | wrong))
    assert (result.status, result.verified) == ("FAILED", False), result


def test_verify_takes_a_type_an_operation_and_params(call: Ask) -> None:
    operation, values, _ = CASES["verify_legal"]
    named = call("verify", type="legal", operation=operation, params=values)
    assert named.status == "VERIFIED"
    assert call("verify", "2+2 = 4", type="math").engine == "math"
    assert call("verify", "2+2 = 4").result["routed"]["engine"] == "math"


def test_the_text_of_a_check_stands_second(call: Ask) -> None:
    assert call("verify_finance", "iban", "DE89 3704 0044 0532 0130 00").status == "VERIFIED"
    assert call("verify_finance", "iban", "DE88 3704 0044 0532 0130 00").status == "FAILED"


def test_what_cannot_be_asked_is_answered_with_what_can(call: Ask) -> None:
    result = call("verify_legal", "divorce")
    assert (result.status, result.verified) == ("BLOCKED", False)
    assert "deadline" in [check["operation"] for check in result.result["operations"]]


def test_a_batch_takes_values_of_python_too(call: Ask) -> None:
    operation, values, wrong = CASES["verify_tax"]
    items = [{"type": "tax", "operation": operation, "params": params} for params in (values, values | wrong)]
    job = call("verify_batch", items)
    assert [item["result"]["status"] for item in job["items"]] == ["VERIFIED", "FAILED"]


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (Decimal("1.50"), "1.50"),
        (Decimal("1E+3"), "1000"),
        (Decimal("1E+999999"), "1E+999999"),
        (Decimal("NaN"), "NaN"),
        (date(2026, 1, 15), "2026-01-15"),
        (datetime(2026, 1, 15, 9, 30, tzinfo=UTC), "2026-01-15T09:30:00+00:00"),
        ({"a": (Decimal(1), [date(2026, 1, 15)])}, {"a": ["1", ["2026-01-15"]]}),
        (True, True),
        (math.inf, math.inf),
    ],
    ids=str,
)
def test_values_are_written_as_json_writes_them(value: Any, written: Any) -> None:
    assert to_json_value(value) == written


def test_what_holds_itself_is_left_to_be_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert to_json_value(endless)
