"""Hostile servers: the proxy stays small, answers its client and ends on a signal."""

import signal
import sys
from pathlib import Path

import pytest

from tests.mcp.proxy.test_shutdown import RawClient
from tests.support.mcp_proxies import PROXY, UPSTREAM

HOSTILE = [sys.executable, str(UPSTREAM.with_name("mcp_hostile.py"))]
_LARGEST = 400 << 10
"""Memory limit in KiB: several times what a proxy needs."""


@pytest.mark.drill
@pytest.mark.parametrize("way", ["asks", "nonsense"])
def test_a_server_that_never_stops_talking_neither_grows_the_proxy_nor_keeps_it_from_ending(
    way: str, tmp_path: Path
) -> None:
    client = RawClient([*PROXY, "--timeout", "2", "--", *HOSTILE, way], tmp_path / "home")
    answer = client.ask("tools/call", name="get_time", arguments={})["result"]
    assert answer["isError"]
    assert "the server" in answer["content"][0]["text"]
    status = Path(f"/proc/{client.process.pid}/status").read_text()
    assert int(status.partition("VmHWM:")[2].split()[0]) < _LARGEST
    client.process.send_signal(signal.SIGTERM)
    assert client.process.wait(timeout=30) in (0, 1)
    client.leave()


@pytest.mark.drill
@pytest.mark.parametrize("code", ["-32000", "-32001"])
def test_an_error_of_the_server_is_its_answer_whatever_number_it_has(code: str, tmp_path: Path) -> None:
    client = RawClient([*PROXY, "--", *HOSTILE, code], tmp_path / "home")
    answer = client.ask("tools/call", name="get_time", arguments={})
    assert answer["error"] == {"code": int(code), "message": "of my own"}
    assert client.leave() == 0


@pytest.mark.drill
def test_a_listing_whose_pages_come_slowly_is_waited_for_no_longer_than_an_answer(tmp_path: Path) -> None:
    client = RawClient([*PROXY, "--timeout", "1", "--", *HOSTILE, "pages"], tmp_path / "home")
    assert "did not list its tools within 1 seconds" in client.ask("tools/list")["error"]["message"]
    assert client.leave() == 0
