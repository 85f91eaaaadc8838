"""Without CrewAI the module can be imported, and its class says what to install."""

import subprocess
import sys

import pytest

WITHOUT = "import sys; sys.modules['crewai'] = None; from qwed_sdk.crewai import QWEDVerifiedAgent; {}"


def run(statement: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", WITHOUT.format(statement)], capture_output=True, text=True, timeout=60
    )


def test_it_can_be_imported() -> None:
    done = run("print(QWEDVerifiedAgent.__name__)")
    assert (done.returncode, done.stdout, done.stderr) == (0, "QWEDVerifiedAgent\n", "")


@pytest.mark.parametrize(
    "arguments", ["", "role='Analyst', goal='Analyze data', agent_id='agent_abc123'", "agent=None"]
)
def test_making_one_says_what_to_install(arguments: str) -> None:
    done = run(f"QWEDVerifiedAgent({arguments})")
    assert done.returncode == 1
    assert "ImportError: QWEDVerifiedAgent needs crewai 1.15.30 or newer: pip install crewai" in done.stderr
