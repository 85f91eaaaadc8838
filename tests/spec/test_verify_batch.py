"""INTERFACES 2, batch: parallel, bounded, with visible progress, and stored across a crash."""

import asyncio
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from qwed.fair_semaphore import FairSemaphore
from qwed.gate import GateError
from qwed.kernel.audit_change import Actor
from qwed.kernel.verification import batch_runner
from qwed.kernel.verification.batch_jobs import MAX_ITEMS, Batch, body_of, read_batch, seal_item
from qwed.store.protocol import StoreError
from tests.spec.conftest import SpecServer
from tests.spec.sections import spec
from tests.support.gate_factory import open_gate
from tests.support.polling import until
from tests.support.server import Server
from tests.support.stored_rows import StoredRows

MIXED = [
    {"query": "2+2 = 4"},
    {"query": "2+2 = 5", "type": "math"},
    {"query": "SELECT id FROM t", "type": "sql"},
    {"query": "what a day"},
    {"query": "x > 1", "type": "logic"},
]


def sent(api: httpx.Client, items: list[dict[str, Any]], **options: Any) -> dict[str, Any]:
    response = api.post("/verify/batch", json={"items": items, "options": options})
    assert response.status_code in (200, 202), response.text
    return finished(api, response.json()["job_id"])


def finished(api: httpx.Client, job_id: str, seconds: float = 60) -> dict[str, Any]:
    def ended() -> dict[str, Any] | None:
        job: dict[str, Any] = api.get(f"/verify/batch/{job_id}").json()
        return job if job["status"] in ("completed", "partial", "failed") else None

    return until(ended, seconds)


@spec("B")
def test_each_item_is_answered_as_its_own_endpoint_would(api: httpx.Client) -> None:
    job = sent(api, MIXED)
    assert (job["status"], job["progress_percent"], job["total_items"]) == ("completed", 100, 5)
    assert (job["completed_items"], job["failed_items"]) == (5, 0)
    assert job["summary"] == {"total": 5, "verified": 3, "failed": 2, "success_rate": 0.6}
    assert [item["result"]["status"] for item in job["items"]] == [
        "VERIFIED",
        "FAILED",
        "VERIFIED",
        "UNKNOWN",
        "VERIFIED",
    ]
    assert [item["id"] for item in job["items"]] == ["0", "1", "2", "3", "4"]
    assert all(item["error"] is None and item["latency_ms"] >= 0 for item in job["items"])
    alone = api.post("/verify/math", json={"expression": "2+2 = 5"}).json()
    assert job["items"][1]["result"]["proof_ref"] == alone["proof_ref"]


@spec("B")
def test_the_first_that_is_not_verified_ends_a_job_that_wants_it_so(api: httpx.Client) -> None:
    items = [{"query": "1 = 2", "type": "math"}, *({"query": f"{n} = {n}", "type": "math"} for n in range(20))]
    job = sent(api, items, fail_fast=True, max_parallel=1)
    assert job["status"] == "partial"
    assert [item["status"] for item in job["items"]] == ["completed", *["skipped"] * 20]
    assert job["summary"]["verified"] == 0


@spec("B")
def test_a_hundred_items_are_a_job_and_one_more_is_none(api: httpx.Client) -> None:
    items = [{"query": f"{n}*2 = {2 * n}", "type": "math"} for n in range(MAX_ITEMS)]
    assert sent(api, items)["summary"]["verified"] == MAX_ITEMS
    refused = api.post("/verify/batch", json={"items": [*items, items[0]]})
    assert refused.json()["error"]["code"] == "QWED-REQ-001"


BAD: list[tuple[Any, str]] = [
    ([], "QWED-REQ-001"),
    ({}, "QWED-REQ-004"),
    ({"items": []}, "QWED-REQ-001"),
    ({"items": {}}, "QWED-REQ-001"),
    ({"items": [1]}, "QWED-REQ-001"),
    ({"items": [{}]}, "QWED-REQ-004"),
    ({"items": [{"query": 1}]}, "QWED-REQ-001"),
    ({"items": [{"query": "1", "type": "astrology"}]}, "QWED-REQ-003"),
    ({"items": [{"query": "1", "type": []}]}, "QWED-REQ-003"),
    ({"items": [{"query": "1", "type": {}}]}, "QWED-REQ-003"),
    ({"items": [{"query": "1", "type": 0}]}, "QWED-REQ-003"),
    ({"items": [{"query": 0}]}, "QWED-REQ-001"),
    ({"items": [{"query": [], "type": "math"}]}, "QWED-REQ-001"),
    ({"items": [{"query": "1 = 1", "params": {"content_base64": "YQ=="}}]}, "QWED-REQ-001"),
    ({"items": [{"query": "1", "kind": "math"}]}, "QWED-REQ-001"),
    ({"items": [{"query": "1", "type": "math", "params": {"surprise": 1}}]}, "QWED-REQ-001"),
    ({"items": [{"query": "1"}], "options": {"max_parallel": 0}}, "QWED-REQ-005"),
    ({"items": [{"query": "1"}], "options": {"max_parallel": 11}}, "QWED-REQ-005"),
    ({"items": [{"query": "1"}], "options": {"max_parallel": True}}, "QWED-REQ-005"),
    ({"items": [{"query": "1"}], "options": {"fail_fast": "yes"}}, "QWED-REQ-005"),
    ({"items": [{"query": "1"}], "options": {"hurry": True}}, "QWED-REQ-005"),
]


@spec("B")
@pytest.mark.parametrize(("body", "code"), BAD, ids=lambda value: ascii(value)[:50])
def test_a_job_with_an_item_that_cannot_be_asked_is_not_begun(api: httpx.Client, body: Any, code: str) -> None:
    response = api.post("/verify/batch", json=body)
    assert (response.status_code, response.json()["error"]["code"]) == (400, code)


@spec("B")
def test_the_item_that_is_wrong_is_named(api: httpx.Client) -> None:
    response = api.post("/verify/batch", json={"items": [{"query": "1"}, {"query": "1", "type": "astrology"}]})
    assert response.json()["error"]["message"].startswith("item 1: unknown type `astrology`")


@spec("B")
def test_a_job_is_its_organisations_alone(spec_server: SpecServer) -> None:
    with spec_server.client("member") as ours, spec_server.client("foreign") as theirs:
        job = sent(ours, [{"query": "1 = 1"}])
        for job_id in (job["job_id"], "job_0"):
            response = theirs.get(f"/verify/batch/{job_id}")
            assert (response.status_code, response.json()["error"]["code"]) == (404, "QWED-REQ-007")


@spec("B")
def test_of_a_secret_nothing_is_kept(api: httpx.Client, server: Server) -> None:
    secret = "ghp_" + "k1L2m3N4o5P6q7R8s9T0" * 2
    job = sent(api, [{"query": f"SELECT '{secret}'", "type": "sql"}])
    assert secret not in api.get(f"/verify/batch/{job['job_id']}").text
    assert "[secret:" in job["items"][0]["query"]


@spec("B")
def test_of_a_secret_nothing_is_kept_in_an_answer_either(api: httpx.Client) -> None:
    secret = "ghp_" + "Z1y2X3w4V5u6T7s8R9q0" * 2
    context = f"The token is {secret}. It was issued in 1998."
    items: list[dict[str, Any]] = [
        {"query": f"open('/tmp/{secret}')", "type": "code"},
        {"query": "The token was issued in 1998", "type": "fact", "params": {"context": context}},
        {"query": f"The token is {secret}", "type": "fact", "params": {"context": context}},
        {"query": f"(EQ {secret} 1)", "type": "logic"},
    ]
    job = sent(api, items)
    assert job["completed_items"] == len(items)
    assert secret not in api.get(f"/verify/batch/{job['job_id']}").text


def kept_rows(directory: Path) -> str:
    return repr(StoredRows(directory).rows("SELECT * FROM job_items"))


@spec("B")
def test_of_a_secret_that_nobody_was_asked_about_nothing_is_kept(tmp_path: Path) -> None:
    secret = "ghp_" + "J1k2L3m4N5o6P7q8R9s0" * 2
    file = "QUJDREVGR0g=" * 10
    items: list[dict[str, Any]] = [
        {"query": "1 = 2", "type": "math"},
        {"query": f"SELECT '{secret}'", "type": "sql"},
        {"query": "rows = 1", "type": "stats", "params": {"content_base64": file}},
    ]
    with open_gate(tmp_path) as gate:
        job = gate.verify_batch(items, {"fail_fast": True, "max_parallel": 1})
        assert [item["status"] for item in job["items"]] == ["completed", "skipped", "skipped"]
        rows = kept_rows(tmp_path)
    assert secret not in rows
    assert file not in rows


@spec("B")
def test_a_job_that_was_to_end_with_the_first_failure_does_so_after_a_restart() -> None:
    with open_gate() as gate:
        services = gate.services
        actor = Actor("gate", gate.organisation_id, "owner")
        items = [{"query": "1 = 2"}, {"query": "1 = 1"}, {"query": "2 = 2"}]
        batch = read_batch({"items": items, "options": {"fail_fast": True}}, actor, services)
        assert isinstance(batch, Batch)
        kept = [seal_item(batch.job, item, services) for item in batch.items]
        services.store.add_job(batch.job, kept).wait_result(60)
        failed = batch.items[0]._replace(state="completed", result='{"status": "FAILED"}')
        services.store.finish_item(seal_item(batch.job, failed, services)).wait_result(60)
        bell = services.waiters.wait(batch.job.job_id)
        gate.get_batch_status(batch.job.job_id)
        bell.wait(30)
        job = gate.get_batch_status(batch.job.job_id)
        assert [item["status"] for item in job["items"]] == ["completed", "skipped", "skipped"]


@spec("B")
def test_an_item_that_brings_a_surprise_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def surprising(item: dict[str, Any]) -> dict[str, Any]:
        if item["query"] == "2 = 2":
            raise ZeroDivisionError
        return body_of(item)

    monkeypatch.setattr(batch_runner, "body_of", surprising)
    with open_gate() as gate:
        job = gate.verify_batch([{"query": "1 = 1"}, {"query": "2 = 2"}, {"query": "3 = 3"}])
        assert (job.status, [item["status"] for item in job["items"]]) == (
            "partial",
            ["completed", "failed", "completed"],
        )
        assert job["items"][1]["error"]["code"] == "QWED-SYS-004"
        assert gate.services.store.open_jobs() == []


@spec("B")
def test_a_store_that_cannot_be_read_at_first_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_runner, "RETRY_SECONDS", 0.01)
    broken = [StoreError("the disk is away")] * 3

    with open_gate() as gate:
        for name in ("open_jobs", "job_items"):
            whole = getattr(gate.services.store, name)

            def failing(*asked: Any, whole: Any = whole) -> Any:
                if broken and threading.current_thread() is not threading.main_thread():
                    raise broken.pop()
                return whole(*asked)

            monkeypatch.setattr(gate.services.store, name, failing)
        assert gate.verify_batch([{"query": "1 = 1"}]).status == "completed"
        assert not broken


@spec("B")
def test_who_sends_many_jobs_at_once_has_no_more_of_them_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_runner, "MAX_OPEN_JOBS", 2)
    with open_gate(tmp_path) as gate:
        store, actor = gate.services.store, Actor("gate", gate.organisation_id, "owner")
        own = batch_runner.BatchRunner(gate.services)
        try:
            walks = []
            for _ in range(5):
                batch = read_batch({"items": [{"query": "1 = 1"}]}, actor, gate.services)
                assert isinstance(batch, Batch)
                walks.append(own.add(batch))
            refused = 0
            for walk in walks:
                # Each has reached the store, and none has its answer yet.
                try:
                    walk.send(None)
                except StopIteration as over:
                    refused += over.value is not None
            # One that is durable before its coroutine continues counts twice for a moment: never too few are refused.
            assert 3 <= refused <= 4
            for walk in walks:
                walk.close()
        finally:
            own.close()
        store.durable().wait_result(60)


@spec("B")
def test_each_organisation_has_its_turn() -> None:
    async def served() -> list[str]:
        turns, order = FairSemaphore(1), []

        async def ask(who: str) -> None:
            async with turns.slot(who):
                order.append(who)
                await asyncio.sleep(0)

        await asyncio.gather(*(ask(who) for who in ["a"] * 6 + ["b"] * 2 + ["c"]))
        return order

    assert asyncio.run(served()) == ["a", "a", "b", "c", "a", "b", "a", "a", "a"]


@spec("B")
def test_who_leaves_the_line_takes_no_turn_along() -> None:
    async def served() -> str:
        turns = FairSemaphore(1)

        async def take(owner: str) -> None:
            async with turns.slot(owner):
                pass

        async with turns.slot("a"):
            gone = asyncio.ensure_future(take("b"))
            stays = asyncio.ensure_future(take("c"))
            await asyncio.sleep(0)
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)
        await asyncio.wait_for(stays, 60)
        return "served"

    assert asyncio.run(served()) == "served"


@spec("B")
def test_closing_wakes_whoever_waits_for_a_batch(tmp_path: Path) -> None:
    gate = open_gate(tmp_path)
    job_id: list[str] = []
    bell_of = gate.services.waiters.wait
    began = threading.Event()

    def heard(what: str) -> Any:
        ticket = bell_of(what)
        job_id.append(what)
        began.set()
        return ticket

    gate.services.waiters.wait = heard  # type: ignore[method-assign]
    ended = threading.Event()

    def ask() -> None:
        with suppress(GateError, StoreError):
            gate.verify_batch([{"query": pigeons("z", 11), "type": "logic"}])
        ended.set()

    threading.Thread(target=ask, daemon=True).start()
    assert began.wait(30)
    until(lambda: gate.services.store.find_job(job_id[0]))
    gate.close()
    assert ended.wait(60)


def pigeons(name: str, count: int = 7) -> str:
    """Return a pigeonhole claim, which is short and takes the solver a while."""
    place = [[f"{name}{pigeon}x{hole}" for hole in range(count - 1)] for pigeon in range(count)]
    housed = [f"(OR {' '.join(holes)})" for holes in place]
    alone = [
        f"(NOT (AND {place[one][hole]} {place[other][hole]}))"
        for hole in range(count - 1)
        for one in range(count)
        for other in range(one)
    ]
    return f"(AND {' '.join(housed + alone)})"


@spec("B")
def test_a_job_goes_on_after_the_server_was_killed(tmp_path: Path) -> None:
    # The second is still being decided when the first is known to be.
    items = [{"query": pigeons(f"p{n}n", 7 if n == 1 else 3), "type": "logic"} for n in range(4)]
    server = Server(tmp_path / "data")
    headers = {"X-API-Key": server.owner_key}
    body = {"items": items, "options": {"max_parallel": 1}}

    def post() -> None:
        with pytest.raises(httpx.TransportError):
            httpx.post(f"{server.base_url}/verify/batch", json=body, headers=headers, timeout=60)

    asking = threading.Thread(target=post)
    asking.start()
    with httpx.Client(base_url=server.base_url, headers=headers, timeout=60) as api:
        job_id = begun(tmp_path / "data")
        path = f"/verify/batch/{job_id}"
        before = until(lambda: job if (job := api.get(path).json())["completed_items"] else None)
        server.kill()
    asking.join()
    assert before["status"] == "processing"
    assert 0 < before["progress_percent"] < 100
    again = Server(tmp_path / "data")
    try:
        with httpx.Client(base_url=again.base_url, headers=headers, timeout=60) as api:
            job = finished(api, job_id)
    finally:
        again.stop()
    assert (job["status"], job["completed_items"]) == ("completed", len(items))
    assert {item["result"]["status"] for item in job["items"]} == {"FAILED"}
    kept = [item for item in before["items"] if item["status"] == "completed"]
    assert kept == job["items"][: len(kept)]


def begun(directory: Path) -> str:
    """Return the only stored job as soon as there is one."""
    return str(until(lambda: StoredRows(directory).cell("SELECT job_id FROM jobs")))


@spec("B")
def test_in_process_a_batch_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_runner, "MAX_CONCURRENT_ITEMS", 2)
    with open_gate() as gate:
        job = gate.verify_batch([{"query": "1 = 1"}, {"query": "1 = 2"}])
        assert (job.status, job.summary["verified"]) == ("completed", 1)
        assert gate.get_batch_status(job.job_id) == job


@spec("B")
def test_an_organisation_has_so_many_open_jobs_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_runner, "MAX_OPEN_JOBS", 0)
    with open_gate() as gate, pytest.raises(GateError) as raised:
        gate.verify_batch([{"query": "1 = 1"}])
    assert raised.value.code == "QWED-SYS-001"


@spec("B")
@pytest.mark.parametrize("query", ["is it \ud800 or not?", "1 = 1 \ud800"])
def test_half_a_letter_is_no_question_and_harms_nobody(query: str) -> None:
    with open_gate() as gate:
        for ask in (gate.verify, gate.verify_math, lambda text: gate.verify_batch([{"query": text}])):
            with pytest.raises(GateError) as raised:
                ask(query)
            assert raised.value.code == "QWED-REQ-001"
        assert gate.verify_batch([{"query": "1 = 1"}]).status == "completed"


@spec("B")
def test_a_job_is_forgotten_when_its_time_is_over() -> None:
    with open_gate(batch_ttl_seconds=0) as gate:
        with pytest.raises(GateError) as raised:
            gate.verify_batch([{"query": "1 = 1"}])
        assert raised.value.code == "QWED-REQ-007"
        assert gate.services.store.open_jobs() == []
