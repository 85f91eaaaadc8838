"""First use: a command that failed never exits with 0, and none prints a traceback."""

import subprocess
import sys
from pathlib import Path

import pytest

from qwed.cli import main
from qwed_sdk import QWEDArgumentError, QWEDClient, QWEDProtocolError
from tests.frameworks.table import unreachable_url
from tests.support.fake_server import fake_server, respond_with

PAGE = respond_with(200, raw=b"<html>welcome</html>", content_type="text/html")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("QWED_API_KEY", "qwed_live_x")
    monkeypatch.setenv("HOME", str(tmp_path))


def test_looking_once_for_what_waits_where_nobody_answers_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    with unreachable_url() as url:
        assert main(["approvals", "watch", "--once", "--url", url]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)


@pytest.mark.parametrize("form", ["pdf", "csv", "json"])
def test_a_page_is_no_report(tmp_path: Path, form: str) -> None:
    file = tmp_path / "report"
    with fake_server(PAGE) as other:
        assert main(["report", "agent_1", "--format", form, "-o", str(file), "--url", other.url]) == 2
        with pytest.raises(QWEDProtocolError):
            QWEDClient("k", other.url).compliance_report("agent_1", form)
    assert not file.exists()


def test_keys_without_an_end_are_not_read_to_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "verify", "--data-dir", str(tmp_path), "--jwks", "/dev/zero"]) == 2
    assert "is not a JWKS" in capsys.readouterr().err


CLOSED = [
    ["cache", "clear"],
    ["audit", "erase", "--subject", "me"],
    ["attestation", "verify", "-", "--url", "http://127.0.0.1:9"],
    ["audit", "verify", "--export", "-"],
    ["verify", "-"],
]


@pytest.mark.parametrize("arguments", CLOSED, ids=" ".join)
def test_without_a_standard_input_it_is_one_sentence(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / ".qwed" / "cache").mkdir(parents=True, mode=0o700)
    command = [sys.executable, "-m", "qwed.cli", *arguments]
    closed = ["sh", "-c", 'exec "$@" <&-', "sh", *command]
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(closed, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("qwed: ")


def test_a_closed_standard_error_says_nothing_on_standard_output(tmp_path: Path) -> None:
    command = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-m", "qwed.cli", "agents", "nothing"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")


def test_a_claim_that_begins_with_a_minus_is_told_how(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "-2 + 2 = 0"]) == 2
    assert "put `--` before" in capsys.readouterr().err


def test_one_query_is_no_list_of_them() -> None:
    with pytest.raises(QWEDArgumentError, match="list"):
        QWEDClient("k", "http://127.0.0.1:9").verify_batch("2+2 = 4")


@pytest.mark.parametrize(("key", "url"), [(123, None), ("k", 5), ("k", "localhost:8000")])
def test_an_address_or_a_key_that_is_none_is_named(key: object, url: object) -> None:
    with pytest.raises(QWEDArgumentError):
        QWEDClient(key, url)  # type: ignore[arg-type]
