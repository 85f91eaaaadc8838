"""What a server says over HTTP, bounded: none of it is the end of the proxy, and none of it grows there."""

import gzip
import socket

import anyio
import httpx2
import pytest

from qwed.proxies.secrecy import check_secrets
from qwed_mcp.proxy.lines import LONGEST_LINE
from qwed_mcp.proxy.web import client
from qwed_sdk.hook.call import Unusable
from tests.support.impostor import Behave, hangs_up, impostor

_MESSAGE = b'{"jsonrpc": "2.0"}'


def _says(head: bytes, *body: bytes) -> Behave:
    def behave(line: socket.socket) -> None:
        line.sendall(b"HTTP/1.1 200 So\r\nconnection: close\r\n" + head + b"\r\n\r\n")
        for each in body:
            line.sendall(each)

    return behave


def heard(behave: Behave) -> tuple[int, bytes]:
    with impostor(behave) as other:

        async def get() -> httpx2.Response:
            async with client({}, 5.0) as http:
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
        (hangs_up, 503, 0),
    ],
)
def test_what_is_packed_or_torn_is_not_read_and_who_is_not_reached_is_told(
    behave: Behave, status: int, size: int
) -> None:
    found, content = heard(behave)
    assert (found, len(content)) == (status, size)


@pytest.mark.parametrize(
    ("kind", "ending", "whole"),
    [("application/json", b"  ", False), ("text/event-stream", b"  ", False), ("text/event-stream", b"\n\n", True)],
)
def test_one_message_is_bounded_and_a_stream_of_them_is_not(kind: str, ending: bytes, whole: bool) -> None:
    pieces = [b"x" * (1 << 20) + ending] * ((LONGEST_LINE >> 20) + 2)
    _, content = heard(_says(b"content-type: " + kind.encode(), *pieces))
    assert (len(content) > LONGEST_LINE) is whole


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
    check_secrets(url, {})
    if open_to_others:
        with pytest.raises(Unusable, match="use https://"):
            check_secrets(url, {"Authorization": "s"})
    else:
        check_secrets(url, {"Authorization": "s"})
