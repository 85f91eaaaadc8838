"""Code blocks of the documentation pages, and the programs that run them."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.postgres_server import Postgres
from tests.support.telemetry_off import CREWAI

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
NOT_LISTED = frozenset({"conformance.md"})
"""Pages written for the tests: neither on the front page nor in the site."""
PRINTED_URL = "http://127.0.0.1:8000"
"""Address that a page shows; it is replaced by the server under test."""
UNREACHABLE_URL = "http://127.0.0.1:9"
"""Address in pages that show the behaviour without a server."""
ANY_PORT_URL = "http://127.0.0.1"
"""Address of a program of a page that listens on any free port."""

ELSEWHERE = {"crewai.md": "crewai", "crewai_crew.py": "crewai"}
"""Pages and examples that need CrewAI, whose dependencies conflict with the others; `make test-crewai` runs them."""

PYTHON = [sys.executable, "-W", "error"]
if importlib.util.find_spec("crewai"):
    # CrewAI has an import cycle and deprecated fields, which Python does not report by default.
    PYTHON += ["-W", "ignore::ImportWarning", "-W", "ignore::DeprecationWarning"]

PRINTED_DATABASE = re.compile(r"postgresql://(\w+)@127\.0\.0\.1/(\w+)")
"""Database URL that a page shows; it is replaced by the server under test."""

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK = "~~~ end of block ~~~"
_PATIENCE = 600
"""Seconds until a page counts as hanging; a page starts up to 40 programs, on a machine that may be busy."""
_RUNNABLE = frozenset({"python", "bash"})
_OUTPUT = frozenset({"text", "json"})


@dataclass(frozen=True)
class Block:
    """One fenced block; `shown` is the output printed under it, if any."""

    language: str
    text: str
    line: int
    shown: "Block | None" = None


def blocks_of(page: Path) -> list[Block]:
    """Return the blocks of a page in order, each with the output that belongs to it."""
    content = page.read_text()
    blocks: list[Block] = []
    for match in _FENCE.finditer(content):
        block = Block(match[1], match[2], content.count("\n", 0, match.start()) + 1)
        last = blocks[-1] if blocks else None
        if block.language in _OUTPUT and last is not None and last.shown is None and last.language in _RUNNABLE:
            blocks[-1] = Block(last.language, last.text, last.line, block)
        else:
            blocks.append(block)
    return blocks


def runs_here(file: Path) -> bool:
    """Return True if a page or an example can run in this environment."""
    package = ELSEWHERE.get(file.name)
    return package is None or importlib.util.find_spec(package) is not None


def is_verbs(block: Block) -> bool:
    """Return True if a bash block only runs targets of the Makefile."""
    return all(line.startswith("make ") for line in block.text.splitlines())


def serve_arguments(block: Block) -> list[str] | None:
    """Return the arguments of a bash block that only starts a server, or None."""
    words = block.text.split()
    return words[1:] if block.language == "bash" and words[:2] == ["qwed", "serve"] else None


def environment() -> dict[str, str]:
    """Return the environment with this environment's commands first, and without settings of qwed and make."""
    dropped = ("QWED_", "MAKE", "MFLAGS")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return variables | CREWAI | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def run_python(blocks: list[Block], place: Path, url: str) -> list[str]:
    """Return the output of each block, run as one program."""
    program = "".join(f"{block.text}\nprint({_MARK!r}, flush=True)\n" for block in blocks)
    return _run([*PYTHON, "-"], program.replace(PRINTED_URL, url), place, url)


def run_bash(blocks: list[Block], place: Path, url: str, databases: Postgres | None = None) -> list[str]:
    """Return the output of each block, run in one shell."""
    program = "set -euo pipefail\n" + "".join(f"{block.text}\necho\necho '{_MARK}'\n" for block in blocks)
    program = program.replace(PRINTED_URL, url)
    if databases is None:
        return _run(["bash", "-s"], program, place, url)
    there = PRINTED_DATABASE.sub(rf"'postgresql://\1@/\2?host={databases.home}'", program)
    there = f'PATH="{databases.programs}:$PATH"\n{there}'
    return [
        text.replace("postgresql:///", "postgresql://127.0.0.1/") for text in _run(["bash", "-s"], there, place, url)
    ]


def reader(place: Path, url: str) -> dict[str, str]:
    """Return the environment of a reader of the page: server address, credentials and a home directory."""
    key = (place / "data" / "owner.key").read_text().strip()
    return environment() | {"QWED_BASE_URL": url, "QWED_API_KEY": key, "HOME": str(place)}


def _run(command: list[str], program: str, place: Path, url: str) -> list[str]:
    if _MARK not in program:
        return []  # a page without a block of this language
    done = subprocess.run(
        command, input=program, cwd=place, env=reader(place, url), capture_output=True, text=True, timeout=_PATIENCE
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout.split(_MARK)[:-1]


def require_shown(block: Block, printed: str, url: str) -> None:
    """Assert that the output is what the page shows: `...` matches anything, and JSON may leave members out."""
    if block.shown is None:
        return
    expected, actual = block.shown.text.strip(), printed.strip().replace(url, PRINTED_URL)
    where = f"the block on line {block.line} prints\n{actual}"
    if block.shown.language == "json":
        assert _agrees(json.loads(expected), json.loads(actual)), where
    else:
        assert _matches(expected, actual), where


def _agrees(expected: Any, actual: Any) -> bool:
    if isinstance(expected, dict):
        return isinstance(actual, dict) and all(
            name in actual and _agrees(value, actual[name]) for name, value in expected.items()
        )
    if isinstance(expected, list):
        return isinstance(actual, list) and len(expected) == len(actual) and all(map(_agrees, expected, actual))
    if isinstance(expected, str) and isinstance(actual, str):
        return _matches(expected, actual)
    return type(expected) is type(actual) and bool(expected == actual)


def _matches(expected: str, actual: str) -> bool:
    pattern = ".*?".join(re.escape(part) for part in expected.split("..."))
    return re.fullmatch(pattern, actual, re.DOTALL) is not None
