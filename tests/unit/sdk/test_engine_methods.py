"""Every verification method against a real server, with both clients, for true and false claims."""

import asyncio
import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from qwed_sdk import QWEDAsyncClient, QWEDClient, QWEDRequestError
from tests.support.server import Server

PIXEL = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
CONTEXT = "The plant opened in 1998. It closed in 2004."
DDL = "CREATE TABLE orders (id INT, total INT)"

Call = Callable[[str, tuple[Any, ...]], Any]


def _blocking(server: Server, verb: str, arguments: tuple[Any, ...]) -> Any:
    with QWEDClient(server.owner_key, server.base_url) as client:
        return getattr(client, verb)(*arguments)


def _awaiting(server: Server, verb: str, arguments: tuple[Any, ...]) -> Any:
    async def ask() -> Any:
        async with QWEDAsyncClient(api_key=server.owner_key, base_url=server.base_url) as client:
            return await getattr(client, verb)(*arguments)

    return asyncio.run(ask())


@pytest.fixture(params=[_blocking, _awaiting], ids=["blocking", "awaiting"])
def call(server: Server, request: pytest.FixtureRequest) -> Call:
    return lambda verb, arguments: request.param(server, verb, arguments)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    table, image = tmp_path / "table.csv", tmp_path / "pixel.gif"
    table.write_text("region,total\nEU,10\nUS,20\n")
    image.write_bytes(PIXEL)
    return {"table": table, "image": image}


CASES: dict[str, list[tuple[tuple[Any, ...], str]]] = {
    "verify": [(("2+2 = 4",), "VERIFIED"), (("2+2 = 5",), "FAILED"), (("what a day",), "UNKNOWN")],
    "verify_math": [(("x + x = 2*x",), "VERIFIED"), (("x = x + 1",), "FAILED"), (("1/0",), "BLOCKED")],
    "verify_logic": [(("(AND (GT x 1) (LT x 3))",), "VERIFIED"), (("(AND p (NOT p))",), "FAILED")],
    "verify_code": [
        (("print(1)",), "VERIFIED"),
        (("eval(input())", "python"), "BLOCKED"),
        (("1 +", "javascript"), "BLOCKED"),
    ],
    "verify_sql": [
        (("SELECT id FROM orders", DDL, "sqlite"), "VERIFIED"),
        (("SELECT nothing FROM orders", DDL), "FAILED"),
        (("SELECT id FROM orders",), "VERIFIED"),
    ],
    "verify_fact": [
        (("The plant opened in 1998", CONTEXT), "VERIFIED"),
        (("The plant opened in 1999", CONTEXT), "FAILED"),
    ],
    "verify_stats": [(("sum of total = 30", "table"), "VERIFIED"), (("sum of total = 31", "table"), "FAILED")],
    "verify_image": [(("image", "width = 1"), "VERIFIED"), (("image", "width = 2"), "FAILED")],
    "verify_consensus": [(("2+2 = 4",), "VERIFIED"), (("2+2 = 5", "high", 0.9), "FAILED")],
}


@pytest.mark.parametrize("verb", CASES)
def test_each_verb_of_the_document_answers(call: Call, files: dict[str, Path], verb: str) -> None:
    for arguments, status in CASES[verb]:
        result = call(
            verb,
            tuple(files.get(argument, argument) if isinstance(argument, str) else argument for argument in arguments),
        )
        assert (result.status, result["status"], result.is_verified) == (status, status, status == "VERIFIED"), result


@pytest.mark.parametrize("mode", ["single", "high", "maximum"])
def test_consensus_takes_three_modes(call: Call, mode: str) -> None:
    result = call("verify_consensus", ("sqrt(2)*sqrt(3) = sqrt(6)", mode))
    assert result.status == "VERIFIED"
    assert result.result["meets_requirement"] is True


def test_consensus_takes_no_other_mode(call: Call) -> None:
    with pytest.raises(QWEDRequestError, match="unknown mode `unanimous`: known are single, high, maximum") as refused:
        call("verify_consensus", ("2+2 = 4", "unanimous"))
    assert refused.value.status == 400


def test_a_minimum_that_is_not_reached_is_said_so(call: Call) -> None:
    result = call("verify_consensus", ("2+2 = 4", "single", 1.0))
    assert result.result["meets_requirement"] is (result.result["confidence"] >= 1.0)


def test_a_batch_proves_equalities_and_only_simplifies_what_claims_nothing(call: Call) -> None:
    items = [{"query": "x + x = 2*x", "type": "math"}, {"query": "x + x", "type": "math"}]
    job = call("verify_batch", (items,))
    proven, simplified = (item["result"] for item in job.results)
    assert (proven["status"], proven["is_valid"]) == ("VERIFIED", True)
    assert (simplified["status"], simplified["is_valid"], simplified["verified"]) == ("SIMPLIFIED", False, False)
    assert job.summary["verified"] == 1


def test_several_items_are_verified_at_once_and_each_is_told_of(call: Call) -> None:
    job = call("verify_batch", (["1 = 1", {"query": "1 = 2"}, {"query": "SELECT 1", "type": "sql"}],))
    assert (job.status, job.summary["total"], job.summary["verified"]) == ("completed", 3, 2)
    assert call("get_batch_status", (job.job_id,)) == job


def test_the_statuses_of_the_document_are_all_there(call: Call) -> None:
    calls = {
        "VERIFIED": ("verify_math", ("1 = 1",)),
        "INCONCLUSIVE": ("verify_math", ("(x^3)^(1/3) = x",)),
        "BLOCKED": ("verify_math", ("1/0",)),
        "UNKNOWN": ("verify", ("is it going to rain?",)),
    }
    assert {call(*argument).status for argument in calls.values()} == set(calls)
