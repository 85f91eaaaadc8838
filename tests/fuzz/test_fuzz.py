"""Every parser of untrusted input, fuzzed: it answers or refuses, in time, whatever the bytes."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).parents[2]
LONGEST_RUN = 900
_EXECUTED = re.compile(r"number_of_executed_units:\s*(\d+)")


@pytest.mark.drill
@pytest.mark.parametrize("name", TARGETS)
def test_no_input_raises_or_takes_too_long(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [sys.executable, "-m", "tests.fuzz", name, str(TARGETS[name].runs), str(tmp_path)]
    # The command consists of names from the table.
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST_RUN, errors="replace")
    assert ended.returncode == 0, ended.stderr[-4000:]
    executed = _EXECUTED.search(ended.stderr)
    assert executed is not None
    assert int(executed[1]) >= TARGETS[name].runs
    with capsys.disabled():
        print(f"\nfuzz {name}: {executed[1]} executions")
