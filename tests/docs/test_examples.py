"""Every program of examples/ runs, is short, and prints what its last comment says."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.docs.pages import PRINTED_URL, PYTHON, ROOT, environment, runs_here
from tests.support.server import Server

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
LINES = 16


@pytest.mark.parametrize("example", [*filter(runs_here, EXAMPLES)], ids=lambda example: example.stem)
def test_an_example_prints_what_it_says(example: Path, server: Server, tmp_path: Path) -> None:
    # Two variables of the client say where the server is; an example without a server reads neither.
    client = {"QWED_BASE_URL": server.base_url, "QWED_API_KEY": server.owner_key, "HOME": str(tmp_path)}
    done = subprocess.run(
        [*PYTHON, str(example)],
        cwd=tmp_path,
        env=environment() | client,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    expected = re.findall(r"^# prints: (.*)$", example.read_text(), re.MULTILINE)
    assert done.stdout.splitlines() == expected


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_is_about_ten_lines(example: Path) -> None:
    code = [line for line in example.read_text().splitlines() if line.strip() and not line.startswith(("#", '"""'))]
    assert len(code) <= LINES


def test_every_example_is_named_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    assert [example.name for example in EXAMPLES if f"examples/{example.name}" not in index] == []


def test_the_default_address_of_an_example_is_the_printed_one() -> None:
    for example in EXAMPLES:
        assert set(re.findall(r"http://[\w.:]+", example.read_text())) <= {PRINTED_URL}, example.name
