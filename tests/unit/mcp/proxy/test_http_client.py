"""HTTP client of the proxy: answers are bounded, and no answer ends the proxy."""

import gzip
import socket

import anyio
import httpx2
import pytest

from qwed.proxies.cli_options import require_private_transport
from qwed_mcp.proxy.framing import MAX_MESSAGE_BYTES
from qwed_mcp.proxy.http_client import bounded_http_client
from qwed_sdk.errors import UsageError
from tests.support.fake_server import Behave, close_connection, fake_server

_MESSAGE = b'{"jsonrpc": "2.0"}'


def _says(head: bytes, *body: bytes) -> Behave:
    def behave(line: socket.socket) -> None:
        line.sendall(b"HTTP/1.1 200 So\r\nconnection: close\r\n" + head + b"\r\n\r\n")
        for chunk in body:
            line.sendall(chunk)

    return behave


def get_answer(behave: Behave) -> tuple[int, bytes]:
    with fake_server(behave) as other:

        async def get() -> httpx2.Response:
            async with bounded_http_client({}, 5.0) as http:
                return await http.get(other.url)

        answer = anyio.run(get)
        assert answer.request.headers["accept-encoding"] == "identity"
        return answer.status_code, answer.content


@pytest.mark.parametrize(
    ("behave", "status", "size"),
    [
        (_says(b"content-type: application/json", _MESSAGE), 200, len(_MESSAGE)),
        (_says(b"content-type: application/json\r\ncontent-encoding: gzip", gzip.compress(_MESSAGE)), 200, 0),
        (_says(b"content-type: application/json\r\ncontent-length: 99", _MESSAGE), 200, len(_MESSAGE)),
        (close_connection, 503, 0),
    ],
)
def test_what_is_packed_or_torn_is_not_read_and_who_is_not_reached_is_told(
    behave: Behave, status: int, size: int
) -> None:
    actual_status, content = get_answer(behave)
    assert (actual_status, len(content)) == (status, size)


@pytest.mark.parametrize(
    ("kind", "ending", "whole"),
    [("application/json", b"  ", False), ("text/event-stream", b"  ", False), ("text/event-stream", b"\n\n", True)],
)
def test_one_message_is_bounded_and_a_stream_of_them_is_not(kind: str, ending: bytes, whole: bool) -> None:
    pieces = [b"x" * (1 << 20) + ending] * ((MAX_MESSAGE_BYTES >> 20) + 2)
    _, content = get_answer(_says(b"content-type: " + kind.encode(), *pieces))
    assert (len(content) > MAX_MESSAGE_BYTES) is whole


@pytest.mark.parametrize(
    ("url", "open_to_others"),
    [
        ("https://mcp.test/", False),
        ("http://127.0.0.1:8000/mcp", False),
        ("http://localhost/mcp", False),
        ("http://[::1]/mcp", False),
        ("http://mcp.test/", True),
        ("HTTP://10.0.0.1/", True),
        ("http://localhost.mcp.test/", True),
    ],
)
def test_a_secret_is_sent_where_nobody_on_the_way_reads_it(url: str, open_to_others: bool) -> None:
    require_private_transport(url, {})
    if open_to_others:
        with pytest.raises(UsageError, match="use https://"):
            require_private_transport(url, {"Authorization": "s"})
    else:
        require_private_transport(url, {"Authorization": "s"})
