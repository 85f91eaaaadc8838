"""Gateway router for other applications, alone and mounted."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount

from qwed_a2a import A2AVerificationInterceptor, InterceptorConfig, TrustBoundary, verify_attestation
from qwed_a2a.gateway import ENVELOPE_BYTES, Authorise, router
from tests.support.a2a_messages import HONEST, message
from tests.support.manual_clock import NOON, ManualClock

GOOD: dict[str, Any] = {"sender_agent_id": "a", "receiver_agent_id": "b", "payload": {"text": "hello"}}
TOKENS = {"a-token": "a", "friend-token": "friend"}


def by_token(request: Request) -> str | None:
    return TOKENS.get(request.headers.get("authorization", ""))


async def by_token_later(request: Request) -> str | None:
    await asyncio.sleep(0)
    return by_token(request)


def interceptor(boundary: TrustBoundary | None = None, **config: Any) -> A2AVerificationInterceptor:
    config = {"trusted_agents": ["friend"], **config}
    return A2AVerificationInterceptor(InterceptorConfig(**config), boundary, clock=ManualClock().clock())


def ask(app: Any, method: str, path: str, **more: Any) -> httpx.Response:
    async def call() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.request(method, path, **more)

    return asyncio.run(call())


def send(app: Any, body: Any = None, token: str | None = None, path: str = "/a2a/intercept") -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(GOOD if body is None else body).encode()
    return ask(app, "POST", path, content=content, headers={} if token is None else {"authorization": token})


def refusal(answer: httpx.Response) -> tuple[int, str, str]:
    error = answer.json()["error"]
    assert error.keys() >= {"code", "message", "details", "final"}
    return answer.status_code, error["code"], error["message"]


def test_a_message_gets_its_verdict() -> None:
    subject = interceptor()
    answer = send(router(subject))
    verdict = answer.json()
    assert answer.status_code == 200
    assert list(verdict) == [
        "status",
        "reason",
        "audit_trace_id",
        "attestation_jwt",
        "engine_used",
        "verified_at",
        "details",
    ]
    assert (verdict["status"], verdict["engine_used"]) == ("forwarded", "passthrough")
    valid, claims = verify_attestation(verdict["attestation_jwt"], subject.jwks(), now=NOON + 1)
    assert (valid, claims["jti"]) == (True, verdict["audit_trace_id"])


def test_the_trace_id_is_made_for_each_message() -> None:
    app = router(interceptor())
    trace_ids = [send(app).json()["audit_trace_id"] for _ in range(5)]
    assert len(set(trace_ids)) == 5
    assert all(trace_id.startswith("a2a_") and len(bytes.fromhex(trace_id[4:])) == 6 for trace_id in trace_ids)


def test_a_blocked_message_is_an_answer_too() -> None:
    boundary = TrustBoundary()
    boundary.block_agent("a")
    answer = send(router(interceptor(boundary)))
    assert (answer.status_code, answer.json()["status"], answer.json()["reason"]) == (
        200,
        "blocked",
        "the sender is blocked",
    )


def test_the_time_of_a_verdict_is_ours_and_not_what_the_sender_says() -> None:
    subject = interceptor()
    for timestamp in ("1999-01-01T00:00:00Z", "9999-12-31T23:59:59Z"):
        verdict = send(router(subject), {**GOOD, "timestamp": timestamp}).json()
        assert verify_attestation(verdict["attestation_jwt"], subject.jwks(), now=NOON)[1]["iat"] == NOON


BAD = {
    b"": (400, "QWED-REQ-001", "the body is not JSON: expecting value at position 0"),
    b"[]": (400, "QWED-REQ-001", "the body must be an object"),
    b"\xff": (400, "QWED-REQ-001", "the body is not UTF-8"),
    b'{"a": 1, "a": 2}': (400, "QWED-REQ-001", "the key `a` appears twice in one object"),
    b'{"payload": NaN}': (400, "QWED-REQ-001", "NaN is not JSON"),
    b"[" * 65 + b"]" * 65: (400, "QWED-REQ-001", "the JSON is nested deeper than 64"),
    b"[" + b"0," * 20_000 + b"0]": (400, "QWED-REQ-001", "the JSON holds more than 20000 values"),
    b'{"payload": "\\ud800"}': (400, "QWED-REQ-001", "the JSON contains half of a surrogate pair"),
    b'{"proven": true}': (
        400,
        "QWED-REQ-001",
        "unknown field `proven`: known are sender_agent_id, receiver_agent_id, payload_type, payload, timestamp, "
        "metadata",
    ),
    json.dumps({**GOOD, "timestamp": "0001-01-01T00:00:00+14:00"}).encode(): (
        400,
        "QWED-REQ-001",
        "`timestamp` must be a time with its time zone, such as 2026-01-15T10:00:00Z",
    ),
    b'{"receiver_agent_id": "b", "payload": {}}': (400, "QWED-REQ-004", "`sender_agent_id` is required"),
}


@pytest.mark.parametrize("body", BAD, ids=lambda body: repr(body[:20]))
def test_a_body_that_is_no_message_is_refused_by_name_and_not_counted(body: bytes) -> None:
    subject = interceptor()
    assert refusal(send(router(subject), body)) == BAD[body]
    assert subject.metrics.snapshot()["total_intercepts"] == 0


def test_a_body_is_refused_by_its_stated_length_before_a_byte_of_it_is_read() -> None:
    pulled = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal pulled
        pulled += 1
        yield b"{"

    headers = {"content-length": str(1024 + ENVELOPE_BYTES + 1)}
    app = router(interceptor(max_payload_size_bytes=1024))
    answer = ask(app, "POST", "/a2a/intercept", content=body(), headers=headers)
    assert refusal(answer) == (413, "QWED-REQ-002", f"the body is larger than {1024 + ENVELOPE_BYTES} bytes")
    assert pulled == 0


@pytest.mark.parametrize("length", [None, "1", "-1", "9" * 50, "\u00b2"])
def test_a_body_that_says_less_than_it_is_or_nothing_is_read_no_further_than_may_be(length: str | None) -> None:
    pulled = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal pulled
        while True:
            pulled += 1
            yield b" " * 10_000

    headers = {} if length is None else {"content-length": length.encode("latin-1")}
    app = router(interceptor(max_payload_size_bytes=1024))
    answer = ask(app, "POST", "/a2a/intercept", content=body(), headers=headers)
    assert answer.status_code == 413
    assert pulled <= (1024 + ENVELOPE_BYTES) // 10_000 + 2


def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    app = router(interceptor(), body_seconds=0.01)
    answer = ask(app, "POST", "/a2a/intercept", content=body())
    assert refusal(answer) == (503, "QWED-SYS-003", "the body did not arrive within 0.01 seconds")


def test_a_client_that_leaves_in_the_middle_gets_no_verdict() -> None:
    subject, statuses = interceptor(), list[int]()
    parts = iter([{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}])

    async def receive() -> Any:
        return next(parts)

    async def send_event(event: Any) -> None:
        statuses.append(event.get("status", 0))

    scope = {"type": "http", "method": "POST", "path": "/a2a/intercept", "headers": [], "query_string": b""}
    asyncio.run(router(subject)(scope, receive, send_event))
    assert statuses[0] == 400
    assert subject.metrics.snapshot()["total_intercepts"] == 0


def test_a_payload_above_its_limit_in_a_body_below_its_own_is_a_verdict() -> None:
    answer = send(router(interceptor(max_payload_size_bytes=1024)), {**GOOD, "payload": {"text": "x" * 2000}})
    assert (answer.status_code, answer.json()["reason"]) == (200, "the payload is larger than 1024 bytes")


def test_a_payload_of_the_limit_fits_in_the_body() -> None:
    answer = send(router(interceptor(max_payload_size_bytes=100_000)), {**GOOD, "payload": {"a": "x" * (100_000 - 8)}})
    assert answer.json()["status"] == "forwarded"


@pytest.mark.parametrize("authorise", [by_token, by_token_later])
def test_whoever_proves_to_be_a_trusted_agent_is_not_verified(authorise: Authorise) -> None:
    sent = {**GOOD, "sender_agent_id": "friend", "payload_type": "code_execution", "payload": {"code": "eval(x)"}}
    answer = send(router(interceptor(), authorise=authorise), sent, "friend-token").json()
    assert (answer["status"], answer["engine_used"]) == ("forwarded", "bypass")


@pytest.mark.parametrize("token", [None, "unknown", "a-token"])
@pytest.mark.parametrize("authorise", [None, by_token, by_token_later])
def test_the_name_of_a_trusted_agent_without_its_proof_is_refused(
    authorise: Authorise | None, token: str | None
) -> None:
    subject = interceptor()
    answer = send(router(subject, authorise=authorise), {**GOOD, "sender_agent_id": "friend"}, token)
    assert refusal(answer) == (401, "QWED-AUTH-002", "it is not proven that `friend` sends this")
    assert subject.metrics.snapshot()["total_intercepts"] == 0


def test_a_name_of_the_allowlist_must_be_proven_too() -> None:
    boundary = TrustBoundary(strict_mode=True)
    boundary.trust_agent("a")
    app = router(interceptor(boundary), authorise=by_token)
    assert refusal(send(app))[:2] == (401, "QWED-AUTH-002")
    assert send(app, token="a-token").json()["status"] == "forwarded"


def test_whoever_proves_to_be_one_agent_does_not_speak_for_another() -> None:
    app = router(interceptor(), authorise=by_token)
    assert refusal(send(app, {**GOOD, "sender_agent_id": "nobody"}, "a-token"))[:2] == (401, "QWED-AUTH-002")
    assert send(app, {**GOOD, "sender_agent_id": "nobody"}).json()["status"] == "forwarded"


def test_a_boundary_of_another_kind_decides_by_itself() -> None:
    class Closed:
        def evaluate(self, *_asked: Any) -> tuple[bool, str]:
            return False, "closed today"

    subject = A2AVerificationInterceptor(trust_boundary=Closed())
    assert send(router(subject)).json()["reason"] == "closed today"


def test_it_says_that_it_is_there() -> None:
    answer = ask(router(interceptor(), authorise=by_token), "GET", "/a2a/health")
    assert (answer.status_code, answer.json()["status"]) == (200, "ok")


def test_the_numbers_are_told_to_whoever_may_know() -> None:
    subject = interceptor()
    app = router(subject)
    send(app)
    assert ask(app, "GET", "/a2a/metrics").json() == subject.metrics.snapshot()
    closed = router(subject, authorise=by_token)
    assert refusal(ask(closed, "GET", "/a2a/metrics"))[:2] == (401, "QWED-AUTH-002")
    answer = ask(closed, "GET", "/a2a/metrics", headers={"authorization": "a-token"})
    assert answer.json()["total_intercepts"] == 1


@pytest.mark.parametrize(("method", "path"), [("GET", "intercept"), ("POST", "health"), ("POST", "metrics")])
def test_another_method_is_refused(method: str, path: str) -> None:
    app = Starlette(routes=router(interceptor()).routes)
    assert ask(app, method, f"/a2a/{path}").status_code == 405


@pytest.mark.parametrize(
    ("app", "path"),
    [
        (router(interceptor(), prefix=""), "/intercept"),
        (router(interceptor(), prefix="/agents/v1"), "/agents/v1/intercept"),
        (Starlette(routes=router(interceptor()).routes), "/a2a/intercept"),
        (Starlette(routes=[Mount("/gate", app=router(interceptor()))]), "/gate/a2a/intercept"),
        (Starlette(routes=[Mount("/gate", app=router(interceptor(), prefix=""))]), "/gate/intercept"),
    ],
)
def test_it_stands_wherever_it_is_put(app: Any, path: str) -> None:
    assert send(app, path=path).json()["status"] == "forwarded"


def test_messages_at_once_are_each_answered() -> None:
    subject = interceptor(TrustBoundary(1000))

    async def many() -> set[str]:
        transport = httpx.ASGITransport(app=router(subject))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            answers = await asyncio.gather(*(client.post("/a2a/intercept", json=GOOD) for _ in range(50)))
        return {answer.json()["audit_trace_id"] for answer in answers}

    assert len(asyncio.run(many())) == 50
    assert subject.metrics.snapshot()["total_forwarded"] == 50


def test_a_message_written_by_the_model_is_read_again() -> None:
    sent = message(HONEST["general"])
    assert send(router(interceptor()), sent.model_dump_json().encode()).json()["status"] == "forwarded"
