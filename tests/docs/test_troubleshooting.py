"""Operator pages quote log lines and messages that the source has; troubleshooting.md misses no warning or error."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

SRC = ROOT / "src"
PAGE = ROOT / "docs" / "troubleshooting.md"
TASKS = [ROOT / "docs" / f"operate-{task}.md" for task in ("backup", "rotate-keys", "scale-out", "upgrade")]
"""Pages with a table `When it refuses` whose first column quotes messages."""
ROW = re.compile(r"^\| `([^`]+)` \|", re.MULTILINE)
PLACEHOLDER = re.compile(r"%[sdr]|\{[^{}]*\}")
QUOTED = ROW.findall(PAGE.read_text())
REFUSALS = [line for task in TASKS for line in ROW.findall(task.read_text().partition("## When it refuses")[2])]
SERIOUS = frozenset({"warning", "error", "exception", "critical"})


@cache
def texts() -> tuple[str, ...]:
    """Return every string of the source, with `...` for what is filled in."""
    return tuple({text for file in SRC.rglob("*.py") for text in _strings(ast.parse(file.read_text()))})


def _strings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "..." for part in node.values)
            yield _plain("".join(map(str, parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield _plain(PLACEHOLDER.sub("...", node.value))


def _plain(text: str) -> str:
    return text.replace("`...`", "...").replace("`", "")


def logged_by_the_server() -> Iterator[tuple[Path, str]]:
    """Yield each constant text that the server logs as a warning or an error."""
    for file in sorted((SRC / "qwed").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.Call(func=ast.Attribute(value=logger, attr=level), args=[ast.Constant(value=str(text)), *_]):
                    if level in SERIOUS and "log" in ast.unparse(logger):
                        yield file, _plain(PLACEHOLDER.sub("...", text))


@pytest.mark.parametrize("line", [*QUOTED, *REFUSALS])
def test_every_quoted_line_is_in_the_source(line: str) -> None:
    wanted = re.compile(".*".join(map(re.escape, line.split("..."))), re.DOTALL)
    assert any(wanted.search(text) for text in texts())


def test_every_warning_and_error_of_the_server_is_on_the_page() -> None:
    missing = [(file.name, text) for file, text in logged_by_the_server() if text not in QUOTED]
    assert missing == []


def test_the_pages_quote_lines_at_all() -> None:
    assert len(QUOTED) > 50
    assert len(REFUSALS) > 10
