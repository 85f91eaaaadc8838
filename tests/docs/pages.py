"""The pages of the documentation, cut into blocks, and the two programs that every page is."""

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
from tests.support.quiet import CREWAI

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
PRINTED_URL = "http://127.0.0.1:8000"
"""The one thing that is replaced in a page before it is run: by the address of the server under test."""
NOBODY_THERE = "http://127.0.0.1:9"
"""Where pages show what happens without a server."""
PORT_TO_COME = "http://127.0.0.1"
"""Where a program of a page listens on whatever port it is given."""

ELSEWHERE = {"crewai.md": "crewai", "crewai_crew.py": "crewai"}
"""Pages and examples that need a package which is not installed beside the others: CrewAI wants older versions of what
they stand on. `make test-crewai` runs them in an environment of its own."""

PYTHON = [sys.executable, "-W", "error"]
if importlib.util.find_spec("crewai"):
    # A circle in its own imports and deprecated fields of its own, which Python does not tell about by default.
    PYTHON += ["-W", "ignore::ImportWarning", "-W", "ignore::DeprecationWarning"]

PRINTED_DATABASE = re.compile(r"postgresql://(\w+)@127\.0\.0\.1/(\w+)")
"""Replaced as well, in the pages that print one: by the server that is started for them."""

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK = "~~~ end of block ~~~"
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
    """The blocks of a page in order, each output attached to the block it belongs to."""
    content = page.read_text()
    found: list[Block] = []
    for match in _FENCE.finditer(content):
        block = Block(match[1], match[2], content.count("\n", 0, match.start()) + 1)
        last = found[-1] if found else None
        if block.language in _OUTPUT and last is not None and last.shown is None and last.language in _RUNNABLE:
            found[-1] = Block(last.language, last.text, last.line, block)
        else:
            found.append(block)
    return found


def runs_here(file: Path) -> bool:
    """Whether a page or an example can be run in this environment."""
    package = ELSEWHERE.get(file.name)
    return package is None or importlib.util.find_spec(package) is not None


def is_verbs(block: Block) -> bool:
    """Whether a bash block only names verbs of the Makefile."""
    return all(line.startswith("make ") for line in block.text.splitlines())


def serve_arguments(block: Block) -> list[str] | None:
    """The arguments of a bash block that only starts a server."""
    words = block.text.split()
    return words[1:] if block.language == "bash" and words[:2] == ["qwed", "serve"] else None


def environment() -> dict[str, str]:
    """Ours, with the commands of this environment first, no setting of qwed's and nothing of a `make` above us."""
    dropped = ("QWED_", "MAKE", "MFLAGS")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return kept | CREWAI | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def run_python(blocks: list[Block], place: Path, url: str) -> list[str]:
    """What each block prints, run as one program from top to bottom."""
    program = "".join(f"{block.text}\nprint({_MARK!r}, flush=True)\n" for block in blocks)
    return _run([*PYTHON, "-"], program.replace(PRINTED_URL, url), place, url)


def run_bash(blocks: list[Block], place: Path, url: str, databases: Postgres | None = None) -> list[str]:
    """What each block prints, run in one shell from top to bottom."""
    program = "set -euo pipefail\n" + "".join(f"{block.text}\necho\necho '{_MARK}'\n" for block in blocks)
    program = program.replace(PRINTED_URL, url)
    if databases is None:
        return _run(["bash", "-s"], program, place, url)
    there = PRINTED_DATABASE.sub(rf"'postgresql://\1@/\2?host={databases.home}'", program)
    there = f'PATH="{databases._programs}:$PATH"\n{there}'
    return [
        text.replace("postgresql:///", "postgresql://127.0.0.1/") for text in _run(["bash", "-s"], there, place, url)
    ]


def reader(place: Path, url: str) -> dict[str, str]:
    """The environment of somebody who follows a page: where the server is, who asks, and a home of their own."""
    key = (place / "data" / "owner.key").read_text().strip()
    return environment() | {"QWED_BASE_URL": url, "QWED_API_KEY": key, "HOME": str(place)}


def _run(command: list[str], program: str, place: Path, url: str) -> list[str]:
    if _MARK not in program:
        return []  # a page without a block of this language
    done = subprocess.run(
        command, input=program, cwd=place, env=reader(place, url), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout.split(_MARK)[:-1]


def require_shown(block: Block, printed: str, url: str) -> None:
    """The printed output says what the page shows: `...` is anything, and JSON may leave members out."""
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
