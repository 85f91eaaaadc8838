"""Terminal output: control characters are escaped, markup is not interpreted, colours are for terminals."""

import io
import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from qwed.cli import main
from qwed.cli.output import console, echo, fail, print_json, print_table, run_command, sanitize
from tests.support.case_tables import rows

Capture = pytest.CaptureFixture[str]
STYLE = re.compile(r"\x1b\[[0-9;]*m")
"""Escape sequences that rich writes for colours."""

TEXTS = rows("terminal_injections.jsonl")

each_text = pytest.mark.parametrize(
    ("text", "expected"), [(row["text"], row["shown"]) for row in TEXTS], ids=[row["name"] for row in TEXTS]
)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def colourful(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "300")


@contextmanager
def terminal() -> Iterator[Terminal]:
    """Redirect standard output to a terminal."""
    with redirect_stdout(Terminal()) as stream:
        yield stream


def harmless(printed: str) -> bool:
    """Return True if the output has no control characters."""
    return all(line.isprintable() for line in printed.split("\n"))


@each_text
def test_a_line_and_a_table_show_a_text_and_never_obey_it(text: str, expected: str, capsys: Capture) -> None:
    echo(text, "bold red")
    print_table(["name", "trust"], [[text, 1], ["other", None]])
    line, heads, first, other = capsys.readouterr().out.splitlines()
    assert line == expected
    assert heads.split() == ["NAME", "TRUST"]
    assert first == f"{expected.ljust(max(len(expected), len('other')))}  1"
    assert other == "other"


@each_text
def test_on_a_terminal_all_that_is_obeyed_is_our_own_colour(text: str, expected: str) -> None:
    with terminal() as stream:
        echo(text, "bold red")
        print_table(["name", "trust"], [[text, text]])
    printed = stream.getvalue()
    assert printed.startswith("\x1b[1;31m")
    plain = STYLE.sub("", printed)
    assert harmless(plain)
    line, _above, heads, _rule, row, *_below = plain.splitlines()
    assert line == expected
    assert heads.split() == ["name", "trust"]
    assert row.count(expected) == 2


def test_rich_takes_no_text_of_ours_for_markup() -> None:
    with terminal() as stream:
        console().print("[red]DENIED[/red] :bomb: [/] 127.0.0.1 'quoted'")
    assert stream.getvalue() == "[red]DENIED[/red] :bomb: [/] 127.0.0.1 'quoted'\n"


@each_text
def test_json_is_ascii_on_one_line_and_says_the_same(text: str, expected: str, capsys: Capture) -> None:
    print_json({text: [text]})
    (line,) = capsys.readouterr().out.splitlines()
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line) == {text: [text]}


@each_text
def test_a_refusal_is_one_line_that_quotes_safely(text: str, expected: str, capsys: Capture) -> None:
    assert run_command(lambda: fail(f"`{text}` is not known")) == 2
    assert capsys.readouterr() == ("", f"qwed: `{expected}` is not known\n")


@pytest.mark.parametrize(
    "arguments",
    [
        lambda text: [f"c{text}"],
        lambda text: ["serve", f"--{text}"],
        lambda text: ["serve", "--port", text],
        lambda text: ["serve", "--workers", text],
        lambda text: ["audit", "verify", text, text],
        lambda text: ["audit", f"x{text}"],
        lambda text: ["audit", "export", "--data-dir", f"/nowhere/{text}"],
        lambda text: ["audit", "verify", "--export", f"/nowhere/{text}"],
        lambda text: ["attestation", "verify", f"/nowhere/{text}", "--jwks", f"/nowhere/{text}"],
        lambda text: ["keys", "list", "--data-dir", f"/nowhere/{text}"],
        lambda text: ["--show-completion", text],
    ],
)
def test_what_was_typed_is_told_back_safely(arguments: Callable[[str], list[str]], capsys: Capture) -> None:
    for row in TEXTS:
        assert main(arguments(row["text"])) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.startswith("qwed: ")
        assert printed.err.count("\n") == 1
        assert harmless(printed.err)


@each_text
def test_a_log_with_a_nasty_name_is_told_safely(text: str, expected: str, tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "export.jsonl"
    file.write_text(json.dumps({"qwed_log": 1, "log_id": text, "issuer": text}) + "\n" + json.dumps({"keys": []}))
    assert main(["audit", "verify", "--export", str(file)]) in (0, 1, 2)
    printed = capsys.readouterr()
    assert harmless(printed.out)
    assert harmless(printed.err)


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_nobody_gets_colours_who_asked_for_none(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with terminal() as stream:
        echo("DENIED", "bold red")
        print_table(["name"], [["x"]])
    assert stream.getvalue() == "DENIED\nNAME\nx\n"


def test_no_variable_puts_colours_into_a_pipe(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    echo("DENIED", "bold red")
    console().print("DENIED", style="bold red")
    assert capsys.readouterr().out == "DENIED\nDENIED\n"


def test_a_long_cell_is_never_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    with terminal() as stream:
        print_table(["id", "name"], [["x" * 100, "y"]])
    assert stream.getvalue().count("x") == 100


def test_an_empty_table_has_its_heads(capsys: Capture) -> None:
    print_table(["agent", "trust"], [])
    assert capsys.readouterr().out == "AGENT  TRUST\n"


def test_a_stream_that_cannot_show_a_letter_is_given_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert run_command(lambda: echo("Zoë 🚀")) == 0
    assert raw.getvalue() == b"Zo\\xeb \\U0001f680\n"


@pytest.mark.parametrize(
    ("run", "code"),
    [
        (lambda: None, 0),
        (lambda: 1, 1),
        (lambda: sys.exit(), 0),
        (lambda: sys.exit(1), 1),
        (lambda: sys.exit("it cannot be done"), 2),
    ],
)
def test_a_command_ends_with_a_code_however_it_ends(run: Callable[[], Any], code: int, capsys: Capture) -> None:
    assert run_command(run) == code
    assert capsys.readouterr().err == ("qwed: it cannot be done\n" if code == 2 else "")


def test_what_is_no_text_can_be_shown() -> None:
    assert sanitize(7) == "7"
    assert sanitize(Path("/a\x1b")) == "/a\\x1b"
