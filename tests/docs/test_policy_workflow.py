"""The workflow in examples/policies/ci runs: it passes, shows what is newly allowed, or asks for a review."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.docs.pages import ROOT, environment
from tests.support.policy_calls import policy, rule

WORKFLOW = yaml.safe_load((ROOT / "examples" / "policies" / "ci" / "workflow.yml").read_text())
STEPS: dict[str, Any] = {step["name"]: step for step in WORKFLOW["jobs"]["policies"]["steps"] if "run" in step}
INSTALL, CHECK, TEST, COMPARE = STEPS
BEFORE = "args.amount <= 50"
FLAGS = 'has(args.to) && args.to.matches("(?i)^{}$")'

Run = Callable[[str], subprocess.CompletedProcess[str]]


class Change(NamedTuple):
    """Conditions on the main branch and in the pull request, and how the comparison ends."""

    before: str
    after: str
    code: int
    said: str


CHANGES = {
    "narrower": Change(BEFORE, "args.amount <= 20", 0, "Proved: nothing new is allowed."),
    "wider": Change(BEFORE, "args.amount <= 80", 1, "were not allowed before. A person decides whether that is meant."),
    "not proven": Change(FLAGS.format("shop"), FLAGS.format("store"), 3, "Not proven. Review the change"),
}


def _write(directory: Path, condition: str) -> None:
    (directory / "policies").mkdir(exist_ok=True)
    head = "applies_to: {tools: [refund]}\n"
    text = policy(rule(condition, "allow"), args="amount: number, to: string", head=head)
    (directory / "policies" / "refunds.yaml").write_text(text)


def _git(directory: Path, *arguments: str) -> None:
    author = ["-c", "user.name=ci", "-c", "user.email=ci@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *author, *arguments], cwd=directory, check=True, capture_output=True)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a step as GitHub does."""

    def call(name: str) -> subprocess.CompletedProcess[str]:
        step = STEPS[name]
        stated = {key: value.replace("${{ github.base_ref }}", "main") for key, value in step.get("env", {}).items()}
        command = ["bash", "-e", "-c", step["run"]]
        return subprocess.run(
            command, cwd=tmp_path, env=environment() | stated, capture_output=True, text=True, timeout=120
        )

    return call


@pytest.mark.parametrize("name", CHANGES)
def test_a_pull_request_is_compared_with_the_main_branch(name: str, tmp_path: Path, run: Run) -> None:
    change = CHANGES[name]
    _write(tmp_path, change.before)
    _git(tmp_path, "init", "--quiet")
    _git(tmp_path, "add", "policies")
    _git(tmp_path, "commit", "--quiet", "--message", "policies")
    _git(tmp_path, "update-ref", "refs/remotes/origin/main", "HEAD")
    _write(tmp_path, change.after)
    for step in (CHECK, TEST):
        assert run(step).returncode == 0
    done = run(COMPARE)
    assert done.returncode == change.code, done.stderr
    assert change.said in done.stdout
    assert ("refund(amount=" in done.stdout) == (change.code == 1)


def test_a_mistake_fails_the_check(tmp_path: Path, run: Run) -> None:
    _write(tmp_path, "args.amont <= 50")
    done = run(CHECK)
    assert done.returncode == 1
    assert "did you mean `amount`?" in done.stdout


def test_only_the_installation_is_not_run_here() -> None:
    assert STEPS[INSTALL]["run"].startswith("pip install ")
    assert len(STEPS) == 4
