"""`qwed report`: the report is written completely or not at all."""

import json
import os
from pathlib import Path

import pytest

from qwed.cli import main
from qwed_sdk import QWEDAgentClient, QWEDClient
from tests.support.agent_names import unique_name
from tests.support.server import Server
from tests.support.terminal import Terminal

Binary = pytest.CaptureFixture[bytes]
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def agent_id(server: Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """An agent that asked something; the commands ask the same server."""
    monkeypatch.setenv("QWED_BASE_URL", server.base_url)
    monkeypatch.setenv("QWED_API_KEY", server.owner_key)
    client = QWEDClient(server.owner_key, server.base_url)
    agent = client.register_agent(unique_name("[red]reported"), principal_id="user_123")
    acts = QWEDAgentClient(agent.agent_id, agent.agent_token, client=client)
    acts.verify_tool_call("search_web", {"query": "\x1b[31mred"})
    return agent.agent_id


def test_a_report_goes_to_a_file_that_only_its_owner_reads(agent_id: str, tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "report.pdf"
    assert main(["report", agent_id, "-o", str(file)]) == 0
    content = file.read_bytes()
    assert content.startswith(b"%PDF-")
    assert capsys.readouterr().out == f"{file}: {len(content)} bytes\n"
    assert file.stat().st_mode & 0o777 == 0o600
    assert main(["report", agent_id, "-o", str(file), "--format", "csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "agent_id": agent_id,
        "format": "csv",
        "output": str(file),
        "bytes": file.stat().st_size,
    }
    assert file.read_bytes().startswith(b"activity_id,")
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.pdf"]


def test_a_report_goes_to_standard_output(agent_id: str, capfdbinary: Binary) -> None:
    assert main(["report", agent_id]) == 0
    assert capfdbinary.readouterr().out.startswith(b"%PDF-")
    assert main(["report", agent_id, "--format", "json", "--from", "2020-01-01", "--to", "2020-02-01"]) == 0
    report = json.loads(capfdbinary.readouterr().out)
    assert (report["agent_id"], report["activities"]) == (agent_id, [])
    assert report["period"] == {"from": "2020-01-01T00:00:00Z", "to": "2020-02-01T00:00:00Z"}
    assert main(["report", agent_id, "--format", "csv", "-o", "-"]) == 0
    assert capfdbinary.readouterr().out.startswith(b"activity_id,")


def test_a_terminal_is_shown_text_and_never_a_pdf(agent_id: str, server: Server, tmp_path: Path) -> None:
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "QWED_BASE_URL": server.base_url,
        "QWED_API_KEY": server.owner_key,
    }
    with Terminal(["report", agent_id], environment) as terminal:
        assert terminal.end() == 2
        assert terminal.seen == "qwed: a PDF cannot be written to a terminal: give --output FILE\r\n"
    with Terminal(["report", agent_id, "--format", "json"], environment) as terminal:
        assert terminal.end() == 0
        assert "creating the report of" in terminal.seen
        assert "\x1b[31m" not in terminal.seen


def test_what_cannot_be_written_or_made_leaves_the_old_report(agent_id: str, tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "report.csv"
    file.write_text("old")
    assert main(["report", agent_id, "-o", str(file), "--from", "2026-02-01", "--to", "2026-01-01"]) == 2
    assert "`from` must be before `to`" in capsys.readouterr().err
    assert file.read_text() == "old"
    assert main(["report", agent_id, "-o", str(tmp_path / "nowhere" / "r.pdf")]) == 2
    assert capsys.readouterr().err == f"qwed: `{tmp_path}/nowhere/r.pdf` cannot be written: No such file or directory\n"
    assert main(["report", agent_id, "-o", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"qwed: `{tmp_path}` cannot be written: Is a directory\n"


def test_a_link_is_followed_and_a_device_is_written_to(agent_id: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    assert main(["report", agent_id, "--format", "csv", "-o", str(tmp_path / "link.csv")]) == 0
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text().startswith("activity_id,")
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert main(["report", agent_id, "--format", "csv", "-o", str(tmp_path / "pipe")]) == 0
        assert os.read(reader, 12) == b"activity_id,"
    finally:
        os.close(reader)
    assert (tmp_path / "pipe").is_fifo()
