"""`qwed verify` commands: results of a server and of local engines, for people and programs."""

import base64
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from qwed.cli import main
from qwed.cli.verify.run import show_result
from tests.support.case_tables import rows
from tests.support.server import Server
from tests.support.terminal import Terminal

Capture = pytest.CaptureFixture[str]
ANSWERED = rows("cli_verify.jsonl")
REFUSED = rows("cli_refused.jsonl")
GIF = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")


class Stdin:
    """Standard input that holds a text."""

    def __init__(self, text: str) -> None:
        self.buffer = io.BytesIO(text.encode())

    def isatty(self) -> bool:
        return False


@pytest.fixture(autouse=True)
def asked(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server under test is the one that is meant."""
    monkeypatch.setenv("QWED_BASE_URL", server.base_url)
    monkeypatch.setenv("QWED_API_KEY", server.owner_key)


@pytest.mark.parametrize("row", ANSWERED, ids=lambda row: row["name"])
def test_an_answer_is_a_strong_line_and_what_a_person_needs(
    row: dict[str, Any], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin(row.get("stdin", "")))
    code = main(row["arguments"])
    printed = capsys.readouterr()
    assert (code, printed.err) == (row["code"], ""), printed
    assert [part for part in row["out"] if part not in printed.out] == [], printed.out
    assert all(line.isprintable() for line in printed.out.split("\n"))


@pytest.mark.parametrize("row", ANSWERED, ids=lambda row: row["name"])
def test_json_is_the_whole_answer_and_says_the_same(
    row: dict[str, Any], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin(row.get("stdin", "")))
    arguments = [row["arguments"][0], "--json", *row["arguments"][1:]]
    assert main(arguments) == row["code"]
    printed = capsys.readouterr()
    answer = json.loads(printed.out)
    assert printed.err == ""
    assert answer["verified"] is (row["code"] == 0)
    assert {"status", "engine", "result", "message", "checks", "proof_ref", "latency_ms"} <= answer.keys()


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row["name"])
def test_what_cannot_be_asked_is_one_sentence(
    row: dict[str, Any], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Stdin(""))
    assert main(row["arguments"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("qwed: ")
    assert row["said"] in printed.err
    assert printed.err.count("\n") == 1


def test_files_are_read_and_the_name_of_code_says_its_language(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "query.sql").write_text("\ufeffSELECT b FROM t\n")
    (tmp_path / "schema.sql").write_text("CREATE TABLE t (a int)")
    sql = ["verify-sql", "--file", str(tmp_path / "query.sql"), "--schema", str(tmp_path / "schema.sql")]
    assert main(sql) == 1
    assert "schema_valid" in capsys.readouterr().out
    (tmp_path / "page.js").write_text("eval('1')")
    assert main(["verify-code", "-f", str(tmp_path / "page.js"), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["result"]["language"] == "javascript"
    (tmp_path / "text").write_text("The plant opened in 1998.")
    fact = ["verify-fact", "The plant opened in 1998", "--context-file", str(tmp_path / "text")]
    assert main(fact) == 0
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    capsys.readouterr()
    assert main(["verify", "-f", str(tmp_path / "latin")]) == 2
    assert capsys.readouterr().err == f"qwed: `{tmp_path}/latin` is not valid UTF-8: byte 3 is invalid\n"


def test_an_image_and_a_table_are_sent_to_a_server_and_read_here(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "dot.gif").write_bytes(GIF)
    (tmp_path / "prices.csv").write_text("item,price\na,10\nb,20\n")
    assert main(["verify-stats", "max(price) > 30", str(tmp_path / "prices.csv"), "--format", "csv"]) == 1
    assert "FAILED  stats" in capsys.readouterr().out
    for place in ([], ["--local"]):
        assert main(["verify-image", "the image is 1x1", str(tmp_path / "dot.gif"), *place]) == 0
        assert "measured  width = 1, height = 1" in capsys.readouterr().out


def test_without_a_server_the_engines_of_this_process_answer(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QWED_BASE_URL")
    monkeypatch.delenv("QWED_API_KEY")
    assert main(["verify", "2+2 = 5", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["result"]["expected"] == "4"
    assert main(["verify", "2+2 = 4", "--timeout", "60", "--attest"]) == 0
    assert "attestation  ey" in capsys.readouterr().out


def test_local_is_local_whatever_the_environment_says(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QWED_BASE_URL", "http://127.0.0.1:1")
    assert main(["verify", "2+2 = 4", "--local"]) == 0
    assert main(["verify", "2+2 = 4"]) == 2
    assert "request to http://127.0.0.1:1 failed" in capsys.readouterr().err


def test_an_engine_that_is_not_installed_is_named_with_what_installs_it(tmp_path: Path) -> None:
    (tmp_path / "lark.py").write_text("raise ModuleNotFoundError(\"No module named 'lark'\", name='lark')\n")
    (tmp_path / "z3.py").write_text("raise ModuleNotFoundError(\"No module named 'z3'\", name='z3')\n")
    done = subprocess.run(
        [sys.executable, "-m", "qwed.cli", "verify-logic", "(AND (> x 1) (< x 3))", "--local", "--json"],
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "qwed: the engine `logic` is not installed: pip install 'qwed[engines]', or use a server with --url\n"
    )


def test_a_person_at_a_terminal_sees_colours_and_a_program_does_not(server: Server, tmp_path: Path) -> None:
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "QWED_BASE_URL": server.base_url,
        "QWED_API_KEY": server.owner_key,
    }
    with Terminal(["verify", "2+2 = 5"], environment) as terminal:
        assert terminal.end() == 1
        assert "\x1b[1;31mFAILED  math" in terminal.seen
        assert "verifying" in terminal.seen
    with Terminal(["verify", "2+2 = 4"], environment, only_stderr=True) as terminal:
        assert terminal.end() == 0
        assert terminal.process.stdout is not None
        assert terminal.process.stdout.read().startswith(b"VERIFIED  math  ")


def test_an_answer_of_no_known_shape_is_no_traceback(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as end:
        show_result({"status": "VERIFIED", "verified": True, "result": {"issues": [1]}}, as_json=False)
    assert end.value.code == 2
    assert capsys.readouterr() == (
        "",
        "qwed: VERIFIED, but the rest of the result has an unknown format: use --json to see it\n",
    )


def test_of_very_many_findings_a_person_sees_the_first(capsys: Capture) -> None:
    show_result({"status": "FAILED", "engine": "sql", "result": {"notes": list(range(1000))}}, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 22
    assert lines[-1].strip() == "and 980 more, which --json shows"


def test_a_check_that_could_not_be_made_has_failed_at_nothing(capsys: Capture, tmp_path: Path) -> None:
    country = tmp_path / "country.txt"
    country.write_text("Germny")
    values = ["signing_date=2026-01-15", "term=30 days", "claimed_deadline=2026-02-14", f"country=@{country}"]
    assert main(["verify", "legal", "deadline", *values]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("INCONCLUSIVE  legal  unknown country `Germny`: did you mean `Germany` or ")
    assert "failed check" not in printed
