"""Server and API key of a command: the key of this machine is not sent to another one by default."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from qwed.cli import main
from tests.support.server import Server

Capture = pytest.CaptureFixture[str]
_VARIABLES = ("QWED_BASE_URL", "QWED_API_KEY", "QWED_DATA_DIR")


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No variable is set, and the home directory is empty."""
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def stranger() -> Iterator[tuple[str, list[str | None]]]:
    """URL of a server that is not qwed, and the keys it received."""
    received_keys: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            received_keys.append(self.headers.get("X-API-Key"))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>")

        def log_message(self, *_: object) -> None:
            """Discard the log line."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", received_keys
        server.shutdown()
        thread.join()


def test_the_owners_key_is_read_where_the_data_is(server: Server, capsys: Capture) -> None:
    where = ["--url", server.base_url, "--data-dir", str(server.data_dir)]
    assert main(["verify", "1 = 1", *where]) == 0
    assert main(["agents", "list", "--json", *where]) == 0
    assert isinstance(json.loads(capsys.readouterr().out.splitlines()[-1]), list)


def test_the_variables_name_the_server_and_the_key(
    server: Server, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QWED_BASE_URL", server.base_url)
    monkeypatch.setenv("QWED_DATA_DIR", str(server.data_dir))
    assert main(["approvals", "list"]) == 0
    monkeypatch.setenv("QWED_API_KEY", "qwed_live_nobody")
    assert main(["approvals", "list"]) == 2
    printed = capsys.readouterr()
    assert "unknown or revoked credential (QWED-AUTH-002)" in printed.err
    assert "qwed_live_nobody" not in printed.err


def test_a_key_that_is_missing_is_asked_for(tmp_path: Path, capsys: Capture) -> None:
    assert main(["agents", "list"]) == 2
    file = tmp_path / ".qwed" / "data" / "owner.key"
    message = "qwed: an API key is missing: set QWED_API_KEY, or give the server's --data-dir"
    assert capsys.readouterr().err == f"{message} ({file}: No such file or directory)\n"
    assert main(["agents", "list", "--data-dir", str(tmp_path), "--url", "http://example.com"]) == 2
    assert f"{tmp_path}/owner.key: No such file or directory" in capsys.readouterr().err


def test_the_key_of_this_machine_is_not_shown_to_another(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / ".qwed" / "data").mkdir(parents=True)
    (tmp_path / ".qwed" / "data" / "owner.key").write_text("qwed_live_secret")
    for url in ("http://192.0.2.1", "https://localhost.example.com", "http://127.0.0.1.example.com", "http://[::2]"):
        assert main(["agents", "list", "--url", url]) == 2
        assert capsys.readouterr().err == f"qwed: an API key for {url} is missing: set QWED_API_KEY\n"


def test_what_is_no_server_is_told_so(
    stranger: tuple[str, list[str | None]], tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, received_keys = stranger
    monkeypatch.setenv("QWED_API_KEY", "qwed_live_given")
    assert main(["agents", "list", "--url", url]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith(f"qwed: {url}: ")
    assert printed.err.count("\n") == 1
    assert received_keys == ["qwed_live_given"]
    assert main(["agents", "list", "--url", "http://127.0.0.1:1"]) == 2
    assert capsys.readouterr().err.endswith("; is it running? `qwed serve` starts one\n")
    for wrong in ("example", "ftp://example.com", "http://me@example.com", "http://[::1"):
        assert main(["agents", "list", "--url", wrong]) == 2
        assert "must look like http://127.0.0.1:8000 or https://qwed.example.com" in capsys.readouterr().err


def test_a_key_that_is_no_text_is_not_sent(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "owner.key").write_bytes(b"\xff\xfe")
    assert main(["agents", "list", "--data-dir", str(tmp_path)]) == 2
    assert "it does not hold a key" in capsys.readouterr().err


def test_what_concerns_agents_needs_a_server(capsys: Capture) -> None:
    for command in (["agents", "list"], ["approvals", "list"], ["report", "agent_0"]):
        assert main([*command, "--local"]) == 2
        assert "--local" in capsys.readouterr().err
