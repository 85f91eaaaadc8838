"""A body with a decision is returned, everything else is a typed error (ruling 4.9)."""

import asyncio
import socket
import threading
from contextlib import suppress
from typing import Any

import pytest

from qwed_sdk import (
    QWEDAsyncClient,
    QWEDAuthError,
    QWEDClient,
    QWEDConflictError,
    QWEDConnectionError,
    QWEDError,
    QWEDNotFoundError,
    QWEDProtocolError,
    QWEDRateLimitError,
    QWEDRequestError,
    QWEDServerError,
    QWEDTimeoutError,
)
from tests.support.fake_server import (
    Behave,
    close_connection,
    drip_body,
    drip_headers,
    fake_server,
    never_respond,
    respond_with,
    send_bytes,
    send_interim_responses,
)

CONTEXT = {"conversation_id": "c", "step_number": 1}
ERROR = {"error": {"code": "QWED-X-001", "message": "because", "details": {"a": 1}, "suggestion": "try b"}}
DENIED = {"decision": "DENIED", "error": {"code": "QWED-AGENT-002", "message": "no", "details": {}, "final": True}}
APPROVED = {"decision": "APPROVED", "action_id": "act_1"}


def verify(url: str, timeout: float = 20.0, query: str = "1") -> Any:
    with QWEDClient("qwed_live_x", url, timeout, retries=0) as client:
        return client.verify_action("agent_1", {"type": "calculate", "query": query}, CONTEXT)


def verify_awaiting(url: str, timeout: float = 20.0, query: str = "1") -> Any:
    async def ask() -> Any:
        async with QWEDAsyncClient("qwed_live_x", url, timeout, retries=0) as client:
            return await client.verify_action("agent_1", {"type": "calculate", "query": query}, CONTEXT)

    return asyncio.run(ask())


both = pytest.mark.parametrize("ask", [verify, verify_awaiting], ids=["blocking", "awaiting"])


@both
@pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 409, 429, 500, 503])
def test_a_body_with_a_decision_that_refuses_is_returned_whatever_its_status(ask: Any, status: int) -> None:
    with fake_server(respond_with(status, DENIED)) as other:
        answer = ask(other.url)
    assert (answer.decision, answer["error"]["code"], bool(answer)) == ("DENIED", "QWED-AGENT-002", False)


@both
@pytest.mark.parametrize("status", [300, 302, 400, 404, 429, 500, 503])
@pytest.mark.parametrize("decision", ["APPROVED", "CORRECTED"])
def test_a_permission_under_a_status_that_refuses_is_believed_by_nobody(ask: Any, status: int, decision: str) -> None:
    with (
        fake_server(respond_with(status, {**APPROVED, "decision": decision})) as other,
        pytest.raises(QWEDProtocolError),
    ):
        ask(other.url)


ERRORS: list[tuple[int, type[QWEDError]]] = [
    (400, QWEDRequestError),
    (401, QWEDAuthError),
    (403, QWEDAuthError),
    (404, QWEDNotFoundError),
    (409, QWEDConflictError),
    (413, QWEDRequestError),
    (429, QWEDRateLimitError),
    (500, QWEDServerError),
    (503, QWEDServerError),
]


@both
@pytest.mark.parametrize(("status", "kind"), ERRORS)
def test_an_error_of_the_protocol_is_typed_and_keeps_what_it_says(ask: Any, status: int, kind: type[QWEDError]) -> None:
    with fake_server(respond_with(status, ERROR, retry_after="7")) as other, pytest.raises(kind) as caught:
        ask(other.url)
    error = caught.value
    assert (error.code, error.message, error.details, error.suggestion) == ("QWED-X-001", "because", {"a": 1}, "try b")
    assert (error.status, error.retry_after, str(error)) == (status, 7.0, "because (QWED-X-001): try b")


RUBBISH: dict[str, tuple[Behave, type[QWEDError]]] = {
    "a page": (respond_with(200, raw=b"<html>welcome</html>"), QWEDProtocolError),
    "nothing": (respond_with(200, raw=b""), QWEDProtocolError),
    "a list": (respond_with(200, [APPROVED]), QWEDProtocolError),
    "a string": (respond_with(200, "APPROVED"), QWEDProtocolError),
    "an empty object": (respond_with(200, {}), QWEDProtocolError),
    "a decision of no protocol": (respond_with(200, {"decision": "SURE"}), QWEDProtocolError),
    "a decision that is a list": (respond_with(200, {"decision": ["APPROVED"]}), QWEDProtocolError),
    "a decision in lower case": (respond_with(200, {"decision": "approved"}), QWEDProtocolError),
    "deep nesting": (respond_with(200, raw=b"[" * 100_000), QWEDProtocolError),
    "no text": (respond_with(200, raw=b'{"decision": "APPROVED\xff"}'), QWEDProtocolError),
    "a redirect": (respond_with(302, {}, location="http://127.0.0.1:9/"), QWEDProtocolError),
    "an error without a code": (respond_with(400, {"error": "no"}), QWEDProtocolError),
    "a page with status 500": (respond_with(500, raw=b"<html>oh</html>"), QWEDServerError),
    "a page with status 502": (respond_with(502, raw=b"<html>oh</html>"), QWEDServerError),
    "compressed": (respond_with(200, APPROVED, content_encoding="gzip"), QWEDProtocolError),
    "half an answer": (send_bytes(b"HTTP/1.1 200 So\r\ncontent-length: 900\r\n\r\n{}"), QWEDConnectionError),
    "no HTTP": (send_bytes(b"220 mail.example.com ESMTP\r\n"), QWEDConnectionError),
    "silence and the end": (close_connection, QWEDConnectionError),
}


@both
@pytest.mark.parametrize("name", RUBBISH)
def test_what_is_no_answer_of_a_server_is_an_error(ask: Any, name: str) -> None:
    behave, kind = RUBBISH[name]
    with fake_server(behave) as other, pytest.raises(kind):
        ask(other.url)


@both
@pytest.mark.parametrize("behave", [never_respond, drip_body], ids=["silence", "a byte at a time"])
def test_an_answer_that_does_not_end_is_not_waited_for(ask: Any, behave: Behave) -> None:
    with fake_server(behave) as other, pytest.raises(QWEDTimeoutError):
        ask(other.url, timeout=0.3)


@pytest.mark.parametrize("body", [{}, {"verified": True}, {"status": None, "verified": True}])
def test_a_result_without_a_status_is_no_result(body: Any) -> None:
    with (
        fake_server(respond_with(200, body)) as other,
        QWEDClient("k", other.url) as client,
        pytest.raises(QWEDProtocolError),
    ):
        client.verify_math("1 = 1")


@pytest.mark.parametrize(
    ("body", "verified"),
    [
        ({"status": "VERIFIED", "verified": True}, True),
        ({"status": "VERIFIED", "verified": False}, False),
        ({"status": "VERIFIED"}, False),
        ({"status": "VERIFIED", "verified": "true"}, False),
        ({"status": "FAILED", "verified": True}, False),
        ({"status": "verified", "verified": True}, False),
    ],
)
def test_verified_is_true_for_verified_alone(body: Any, verified: bool) -> None:
    with fake_server(respond_with(200, body)) as other, QWEDClient("k", other.url) as client:
        result = client.verify_math("1 = 1")
    assert (result.is_verified, bool(result)) == (verified, verified)


def test_an_answer_that_is_too_large_is_not_read() -> None:
    endless = b"HTTP/1.1 200 So\r\ncontent-length: 99999999999\r\n\r\n" + b" " * (65 << 20)
    with fake_server(send_bytes(endless)) as other, pytest.raises(QWEDProtocolError, match="larger"):
        verify(other.url)


@both
@pytest.mark.parametrize("behave", [drip_headers, send_interim_responses], ids=["a header without end", "promises"])
def test_an_answer_that_does_not_begin_is_not_waited_for(ask: Any, behave: Behave) -> None:
    with fake_server(behave) as other, pytest.raises(QWEDTimeoutError):
        ask(other.url, timeout=0.3)


@both
def test_a_server_that_reads_a_little_at_a_time_is_not_waited_for(ask: Any) -> None:
    def read_slowly() -> None:
        connection, _ = server.accept()
        with connection, suppress(OSError):
            while not gone.wait(0.01) and connection.recv(1024):
                pass

    gone = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        reader = threading.Thread(target=read_slowly)
        reader.start()
        with pytest.raises(QWEDTimeoutError):
            ask(f"http://127.0.0.1:{server.getsockname()[1]}", timeout=0.3, query="1" * (8 << 20))
        gone.set()
        reader.join()


@pytest.mark.parametrize("member", ["action_id", "approval_id", "attestation", "corrected", "verification", "error"])
@pytest.mark.parametrize("value", [7, [1], True, 1.5], ids=repr)
def test_a_decision_whose_members_are_of_another_kind_is_none(member: str, value: Any) -> None:
    for decision in ("APPROVED", "DENIED", "PENDING"):
        body = {"decision": decision, "action_id": "act_1", member: value}
        with fake_server(respond_with(200, body)) as other, pytest.raises(QWEDProtocolError, match=member):
            verify(other.url)


@pytest.mark.parametrize("error", ["no", {"code": 7}, {"message": ["no"]}, {"suggestion": {}}], ids=repr)
def test_an_error_in_a_decision_has_its_shape(error: Any) -> None:
    with (
        fake_server(respond_with(200, {"decision": "DENIED", "error": error})) as other,
        pytest.raises(QWEDProtocolError),
    ):
        verify(other.url)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"decision": "DENIED", "action_id": "act_1", "decision": "APPROVED"}',
        b'{"decision": "APPROVED", "action_id": "act_1", "corrected": {"query": "a", "query": "b"}}',
        b'{"decision": "APPROVED ", "action_id": "act_1"}',
        b'{"decision": "APPROVED\\u0000", "action_id": "act_1"}',
        b'{"decision": "APPROVED", "action_id": "act_1"} {"decision": "DENIED"}',
    ],
)
def test_an_answer_that_contradicts_itself_is_none(raw: bytes) -> None:
    with fake_server(respond_with(200, raw=raw)) as other, pytest.raises(QWEDProtocolError):
        verify(other.url)


LISTS = {"list_agents": "agents", "list_approvals": "approvals", "list_keys": "keys", "list_tools": "tools"}


@pytest.mark.parametrize("verb", LISTS)
@pytest.mark.parametrize("value", [None, "abc", [1], {"a": 1}], ids=repr)
def test_a_list_that_is_none_is_an_error(verb: str, value: Any) -> None:
    with (
        fake_server(respond_with(200, {LISTS[verb]: value})) as other,
        pytest.raises(QWEDProtocolError, match=LISTS[verb]),
    ):
        getattr(QWEDClient("k", other.url), verb)()


def test_pages_without_entries_end_and_longer_ones_are_cut() -> None:
    with fake_server(respond_with(200, {"agents": [], "next_cursor": "more"})) as other:
        assert QWEDClient("k", other.url).list_agents() == []
    with fake_server(respond_with(200, {"agents": [{"agent_id": "a"}] * 9, "next_cursor": "more"})) as other:
        assert len(QWEDClient("k", other.url).list_agents(limit=5)) == 5


def test_an_answer_about_another_action_is_none() -> None:
    with fake_server(respond_with(200, {**APPROVED, "action_id": "act_2"})) as other, pytest.raises(QWEDProtocolError):
        QWEDClient("k", other.url).get_action("agent_1", "act_1")
