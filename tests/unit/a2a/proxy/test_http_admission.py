"""Admission of requests to the proxy, and limits on their bodies."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from qwed.proxies.backend import Identity
from qwed_a2a.proxy import http_admission
from qwed_a2a.proxy.errors import CallRefusedError
from qwed_a2a.proxy.http_admission import HostCheck, forwarded_headers, read_body, sender_of

HOST = (b"host", b"agents.example:8443")
HOST_CHECK = HostCheck("https://agents.example:8443", ["proxy.internal:9000"])


def scope(*headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {"type": "http", "headers": list(headers)}


@pytest.mark.parametrize("host", [b"agents.example:8443", b"AGENTS.example:8443", b"proxy.internal:9000"])
def test_whoever_calls_it_by_its_name_comes_in(host: bytes) -> None:
    assert HOST_CHECK.admit(scope((b"host", host)))


REFUSED_HEADERS = [
    ((), 421),
    (((b"host", b"evil.example"),), 421),
    (((b"host", b"agents.example"),), 421),
    (((b"host", b"agents.example:8443."),), 421),
    ((HOST, HOST), 421),
    ((HOST, (b"origin", b"https://evil.example")), 403),
    ((HOST, (b"origin", b"null")), 403),
    ((HOST, (b"content-length", b"5"), (b"transfer-encoding", b"chunked")), 400),
]


@pytest.mark.parametrize(("headers", "status"), REFUSED_HEADERS)
def test_whoever_comes_from_elsewhere_does_not(headers: tuple[tuple[bytes, bytes], ...], status: int) -> None:
    with pytest.raises(CallRefusedError) as refused:
        HOST_CHECK.admit(scope(*headers))
    assert refused.value.http == status


def test_on_its_usual_port_a_name_needs_none() -> None:
    usual = HostCheck("https://agents.example", [])
    for host in (b"agents.example", b"agents.example:443"):
        assert usual.admit(scope((b"host", host), (b"origin", b"https://agents.example")))


def body_receiver(*pieces: bytes, more: bool = False) -> Any:
    left: Iterator[bytes] = iter(pieces)
    last = len(pieces) - 1

    async def receive() -> dict[str, Any]:
        for number, piece in enumerate(left):
            return {"type": "http.request", "body": piece, "more_body": more or number < last}
        await asyncio.Event().wait()
        raise AssertionError

    return receive


def test_a_body_is_read_up_to_its_limit() -> None:
    assert asyncio.run(read_body(scope(), body_receiver(b"a" * 10), 10)) == b"a" * 10


@pytest.mark.parametrize("length", [b"11", b"-1", b"9" * 40, b"x"])
def test_a_body_that_says_it_is_too_large_is_not_read(length: bytes) -> None:
    with pytest.raises(CallRefusedError) as refused:
        asyncio.run(read_body(scope((b"content-length", length)), body_receiver(), 10))
    assert refused.value.http == 413


def test_a_body_that_does_not_say_so_is_read_no_further() -> None:
    with pytest.raises(CallRefusedError) as refused:
        asyncio.run(read_body(scope(), body_receiver(b"a" * 6, b"a" * 6, b"a" * 6), 10))
    assert refused.value.http == 413


def test_a_body_that_never_comes_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_admission, "BODY_SECONDS", 0.05)
    with pytest.raises(CallRefusedError) as refused:
        asyncio.run(read_body(scope(), body_receiver(b"a", more=True), 10))
    assert refused.value.http == 408


DEFAULT = Identity("visitor", "t")


def test_a_sender_is_named_and_proven_by_its_headers() -> None:
    assert sender_of({}, DEFAULT) == DEFAULT
    assert sender_of({b"qwed-agent-id": [b"a"]}, DEFAULT) == Identity("a", None)
    assert sender_of({b"qwed-agent-id": [b"a"], b"qwed-agent-token": [b"s"]}, DEFAULT) == Identity("a", "s")


@pytest.mark.parametrize(
    "headers",
    [
        {b"qwed-agent-token": [b"s"]},
        {b"qwed-agent-id": [b""], b"qwed-agent-token": [b"s"]},
        {b"qwed-agent-id": [b"a", b"b"]},
        {b"qwed-agent-id": [b"a"], b"qwed-agent-token": [b"s", b"s"]},
        {b"qwed-agent-id": [b"a"], b"qwed-agent-token": [b"s" * 300]},
    ],
)
def test_a_sender_that_is_named_in_two_ways_is_refused(headers: dict[bytes, list[bytes]]) -> None:
    with pytest.raises(CallRefusedError):
        sender_of(headers, DEFAULT)


def test_what_the_agent_sees_of_the_client_is_a_short_list() -> None:
    sent = {
        b"authorization": [b"Bearer x"],
        b"x-api-key": [b"k"],
        b"a2a-extensions": [b"https://e.example/1"],
        b"qwed-agent-id": [b"a"],
        b"qwed-agent-token": [b"s"],
        b"cookie": [b"c"],
        b"connection": [b"x-api-key"],
        b"transfer-encoding": [b"chunked"],
        b"host": [b"h"],
        b"x-forwarded-for": [b"1.2.3.4"],
    }
    assert {name for name, _ in forwarded_headers(sent)} == {b"authorization", b"x-api-key", b"a2a-extensions"}


@pytest.mark.parametrize("value", [b"Bearer x\r\nx: y", b"a\nb", b"a\0b"])
def test_a_header_that_ends_its_line_is_not_sent_on(value: bytes) -> None:
    with pytest.raises(CallRefusedError):
        forwarded_headers({b"authorization": [value]})


@pytest.mark.parametrize("name", [b"a2a-extensions", b"traceparent", b"tracestate"])
@pytest.mark.parametrize("value", [b"__import__('os').system('x')", b'{"a": 1}', b"x" * 5_000, b"\xc3\xa4"])
def test_a_header_that_nobody_looks_at_is_spelt_like_what_it_is(name: bytes, value: bytes) -> None:
    with pytest.raises(CallRefusedError, match="has an invalid format"):
        forwarded_headers({name: [value]})


def test_headers_as_they_are_usually_spelt_are_sent_on() -> None:
    sent = {
        b"a2a-extensions": [b"https://e.example/a-b/v1?x=y, urn:x:1", b"urn:y"],
        b"traceparent": [b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"],
        b"tracestate": [b"congo=t61rcWkgMzE,rojo@x=00f067aa0ba902b7"],
    }
    assert len(forwarded_headers(sent)) == 4


def test_a_path_is_read_below_the_public_address() -> None:
    behind = HostCheck("https://agents.example/clerk", [])
    for path, below in (
        ("/clerk", "/"),
        ("/clerk/", "/"),
        ("/clerk/message:send", "/message:send"),
        ("/message:send", "/message:send"),
        ("/clerks/message:send", "/clerks/message:send"),
        ("/", "/"),
    ):
        assert behind.relative_path(path) == below
