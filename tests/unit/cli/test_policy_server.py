"""`qwed policy apply`, `list`, `show` and `rollback`: what is in force is shown, confirmed and changed."""

import io
import json
from pathlib import Path

import pytest

from qwed.cli import main
from qwed_sdk import QWEDClient
from tests.support.server import Server

Capture = pytest.CaptureFixture[str]

MAIL = """\
policy: mail
facts: 1
description: Nobody sends mail.
rules:
  - id: never
    when: action.type == "send_email"
    then: deny
"""
FILES = MAIL.replace("mail", "files").replace("send_email", "file_delete")
ASKING = MAIL.replace("then: deny", "then: ask\n    approvers: finance")


@pytest.fixture(autouse=True)
def client(server: Server, monkeypatch: pytest.MonkeyPatch) -> QWEDClient:
    """Owner's client of an organisation of its own; the commands use the same server."""
    created = QWEDClient(server.owner_key, server.base_url).create_organisation("policies")
    monkeypatch.setenv("QWED_BASE_URL", server.base_url)
    monkeypatch.setenv("QWED_API_KEY", created["owner_key"])
    return QWEDClient(created["owner_key"], server.base_url)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "mail.yaml").write_text(MAIL)
    (tmp_path / "files.yaml").write_text(FILES)
    return tmp_path


def _answer(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_what_is_counted_for_the_first_time_is_said(directory: Path, client: QWEDClient, capsys: Capture) -> None:
    counting = (
        'usage.count("send_email", duration("1h")) > 2 && usage.org.sum("refund", "amount", duration("24h")) > 9.0'
    )
    (directory / "mail.yaml").write_text(
        f"policy: mail\nfacts: 1\nrules:\n  - {{id: a, when: '{counting}', then: deny}}\n"
    )
    assert main(["policy", "apply", str(directory), "--yes"]) == 0
    assert capsys.readouterr().out.splitlines()[2:] == [
        "counted from then on: calls of `send_email` by agent",
        "counted from then on: the argument `amount` of `refund` by organisation",
        "version 1 is in force",
    ]
    (directory / "files.yaml").unlink()
    assert main(["policy", "apply", str(directory), "--yes"]) == 0
    assert capsys.readouterr().out == "- files\nversion 2 is in force\n"


def test_the_changes_are_shown_confirmed_and_applied(
    directory: Path, client: QWEDClient, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    _answer("n\n", monkeypatch)
    assert main(["policy", "apply", str(directory)]) == 1
    captured = capsys.readouterr()
    assert captured.out == "+ files\n+ mail\n"
    assert "replace version 0 of the policies?" in captured.err
    assert "nothing was changed" in captured.err
    _answer("y\n", monkeypatch)
    assert main(["policy", "apply", str(directory)]) == 0
    assert capsys.readouterr().out == "+ files\n+ mail\nversion 1 is in force\n"
    assert [policy["policy"] for policy in client.get_policies()["policies"]] == ["files", "mail"]
    (directory / "mail.yaml").write_text(MAIL.replace("Nobody", "No agent"))
    (directory / "files.yaml").unlink()
    assert main(["policy", "apply", str(directory), "--yes"]) == 0
    assert capsys.readouterr().out == "~ mail\n- files\nversion 2 is in force\n"


def test_the_same_files_again_change_nothing_and_ask_nothing(directory: Path, capsys: Capture) -> None:
    assert main(["policy", "apply", str(directory), "--yes"]) == 0
    capsys.readouterr()
    assert main(["policy", "apply", str(directory)]) == 0
    assert capsys.readouterr().out == "nothing to change: version 1 is in force\n"


def test_a_dry_run_changes_nothing(directory: Path, client: QWEDClient, capsys: Capture) -> None:
    assert main(["policy", "apply", str(directory), "--dry-run", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["dry_run"], shown["policies_added"], shown["version"]) == (True, ["files", "mail"], 0)
    assert client.get_policies()["version"] == 0


def test_what_the_server_refuses_is_shown_with_its_line(directory: Path, client: QWEDClient, capsys: Capture) -> None:
    (directory / "mail.yaml").write_text(ASKING)
    assert main(["policy", "apply", str(directory), "--yes"]) == 1
    out = capsys.readouterr().out
    assert "mail.yaml:5:5: no key can approve in the name of the group `finance`" in out
    assert main(["api-keys", "create", "ada", "--role", "approver", "--group", "finance", "--json"]) == 0
    key = json.loads(capsys.readouterr().out)
    assert key["groups"] == ["finance"]
    assert main(["policy", "apply", str(directory), "--yes", "--json"]) == 0
    applied = json.loads(capsys.readouterr().out)
    assert (applied["ok"], applied["version"], applied["changed"]) == (True, 1, True)
    assert main(["api-keys", "groups", key["id"], "--group", "security", "--group", "finance"]) == 0
    assert capsys.readouterr().out == f"{key['id']} (ada) approves for finance, security\n"
    assert client.get_policies()["version"] == 1


def test_a_mistake_is_found_before_the_server_is_asked(directory: Path, capsys: Capture) -> None:
    (directory / "mail.yaml").write_text(MAIL.replace("action.type", "action.kind"))
    assert main(["policy", "apply", str(directory), "--yes", "--url", "http://127.0.0.1:1"]) == 1
    assert "mail.yaml:6:" in capsys.readouterr().out


def test_what_is_in_force_and_what_was_is_listed_and_shown(directory: Path, capsys: Capture) -> None:
    assert main(["policy", "list"]) == 0
    assert capsys.readouterr().out == "version 0\n"
    assert main(["policy", "apply", str(directory), "--yes"]) == 0
    (directory / "files.yaml").unlink()
    assert main(["policy", "apply", str(directory), "--yes"]) == 0
    capsys.readouterr()
    assert main(["policy", "list"]) == 0
    head, _columns, *lines = capsys.readouterr().out.splitlines()
    assert head.startswith("version 2, since 20")
    assert [line.split() for line in lines] == [["mail", "7"]]
    assert main(["policy", "show", "mail"]) == 0
    assert capsys.readouterr().out == MAIL
    assert main(["policy", "show", "files", "--version", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"policy": "files", "text": FILES, "version": 1}
    assert main(["policy", "show", "files"]) == 2
    assert main(["policy", "show", "files", "--version", "2"]) == 2
    assert "version 2 has no policy `files`: it has mail" in capsys.readouterr().err


def test_a_rollback_puts_an_earlier_version_in_force_as_a_new_one(directory: Path, capsys: Capture) -> None:
    assert main(["policy", "apply", str(directory), "--yes"]) == 0
    (directory / "files.yaml").unlink()
    assert main(["policy", "apply", str(directory), "--yes"]) == 0
    capsys.readouterr()
    assert main(["policy", "rollback", "1", "--yes"]) == 0
    assert capsys.readouterr().out == "+ files\nversion 3 is in force\n"
    assert main(["policy", "rollback", "900", "--yes"]) == 2
