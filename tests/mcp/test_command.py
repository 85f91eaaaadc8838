"""Options of `qwed-mcp`, its skill manifest, and start-up errors."""

import json
import os
import pty
import subprocess
from pathlib import Path

import anyio
import pytest

import qwed
from qwed.proxies.listen_address import ListenAddress, is_loopback, listen
from qwed_mcp import main
from qwed_mcp.auth import KeySourceError, open_api_keys
from tests.support.case_tables import rows
from tests.support.mcp_sessions import COMMAND, environment
from tests.support.server import Server

SKILL = rows("skill_honest.jsonl")[0]["manifest"]


def run(*options: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, *options],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(**settings),
        check=False,
    )


def test_it_tells_its_version_and_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["--version"]) == 0
    assert capsys.readouterr().out == f"qwed-mcp {qwed.__version__}\n"
    assert main.main(["--help"]) == 0
    output = capsys.readouterr().out
    assert all(option in output for option in ("--http", "--host", "--port", "--allow-remote", "--allow-host"))


def test_a_trusted_skill_lets_the_server_start_and_a_closed_input_ends_it(tmp_path: Path) -> None:
    file = tmp_path / "skill-manifest.json"
    file.write_text(json.dumps(SKILL))
    ended = run(QWED_SKILL_MANIFEST=str(file))
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_a_poisoned_skill_is_logged_and_the_server_ends_at_once(tmp_path: Path) -> None:
    file = tmp_path / "skill-manifest.json"
    file.write_text(json.dumps({**SKILL, "registry": "clawdhub.com"}))
    ended = run(QWED_SKILL_MANIFEST=str(file))
    assert (ended.returncode, ended.stdout) == (1, "")
    output = json.loads(ended.stderr)
    assert output["event"] == "skill manifest refused"
    assert "clawdhub.com" in " ".join(output["findings"])


@pytest.mark.parametrize("content", [None, b"", b"no JSON", b"[" * 100_000, b" " * (2 << 20), b'"text"', b"{}"])
def test_a_manifest_that_cannot_be_read_keeps_the_server_from_starting(
    tmp_path: Path, content: bytes | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "skill-manifest.json"
    if content is not None:
        file.write_bytes(content)
    monkeypatch.setenv("QWED_SKILL_MANIFEST", str(file))
    with pytest.raises(SystemExit) as end:
        main.main([])
    assert end.value.code == 1
    assert json.loads(capsys.readouterr().err)["event"] == "skill manifest refused"


WRONG = [
    (["--nothing"], 2, "--nothing"),
    (["--port", "70000"], 2, "65535"),
    (["nothing"], 2, "nothing"),
    (["--http", "--host", "0.0.0.0"], 1, "add --allow-remote"),
    (["--http", "--host", "::"], 1, "add --allow-remote"),
    (["--http", "--host", "example.com"], 1, "add --allow-remote"),
]


@pytest.mark.parametrize(("options", "code", "expected"), WRONG)
def test_what_is_called_wrongly_is_told_in_a_sentence(
    options: list[str], code: int, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main.main(options)
    assert end.value.code == code
    output = capsys.readouterr()
    assert output.out == ""
    assert expected in output.err


def test_a_sandbox_nobody_knows_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("QWED_MCP_SANDBOX", "docker")
    with pytest.raises(SystemExit) as end:
        main.main([])
    assert end.value.code == 2
    assert "must be one of bubblewrap, none" in capsys.readouterr().err


def test_a_port_that_is_taken_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with listen(ListenAddress(port=0)) as listener, pytest.raises(SystemExit) as end:
        main.main(["--http", "--port", str(listener.getsockname()[1])])
    assert end.value.code == 2
    assert "choose another --host or --port" in capsys.readouterr().err


def test_an_address_that_others_can_reach_is_warned_about(capsys: pytest.CaptureFixture[str]) -> None:
    with listen(ListenAddress(port=0)) as listener, pytest.raises(SystemExit):
        # The port is taken, so it ends after the warning.
        main.main(["--http", "--host", "0.0.0.0", "--allow-remote", "--port", str(listener.getsockname()[1])])
    assert "keys cross the network unencrypted" in capsys.readouterr().err


@pytest.mark.drill
def test_keys_that_cannot_be_opened_keep_the_server_from_starting(server: Server) -> None:
    ended = run("--http", "--port", "0", QWED_DATA_DIR=str(server.data_dir))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "set QWED_BASE_URL to the server that runs there" in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("url", ["http://a\tb", "ftp://127.0.0.1", "127.0.0.1:8000", "http://"])
def test_a_server_that_cannot_be_asked_is_no_server(url: str) -> None:
    async def opened() -> None:
        async with open_api_keys({"QWED_BASE_URL": url}):
            pass

    with pytest.raises(KeySourceError, match=r"^QWED_BASE_URL cannot be used: "):
        anyio.run(opened)


@pytest.mark.drill
def test_a_person_who_starts_it_is_told_what_it_is() -> None:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [COMMAND], stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), text=True
    )
    os.close(slave)
    assert process.stderr is not None
    output = "".join(process.stderr.readline() for _ in range(6))
    os.write(master, b"\x04")
    rest = process.communicate(timeout=30)
    os.close(master)
    assert "is an MCP server" in output
    assert '"command": "qwed-mcp"' in output
    assert (process.returncode, rest[0]) == (0, "")


INSIDE = ("127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost")
OUTSIDE = ("0.0.0.0", "::", "192.168.1.1", "localhost.evil.example", "")


@pytest.mark.parametrize(("host", "inside"), [*((host, True) for host in INSIDE), *((host, False) for host in OUTSIDE)])
def test_only_addresses_of_this_machine_are_inside(host: str, inside: bool) -> None:
    assert is_loopback(host) is inside


def test_names_are_spelled_as_a_host_spells_them() -> None:
    assert ListenAddress("::1", 8765, ("Verify.Example", "[::2]")).host_header_names() == [
        "[::1]",
        "verify.example",
        "[::2]",
    ]
