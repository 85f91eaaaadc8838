"""Shell completion: the scripts and their completions."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from qwed.cli import main

Capture = pytest.CaptureFixture[str]
ENVIRONMENT = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def completed_by_bash(*words: str) -> list[str]:
    """Return the completions of the last word by a bash with our script."""
    program = """
        source <(qwed --show-completion bash)
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        "$(complete -p qwed | sed 's/.*-F \\([^ ]*\\) .*/\\1/')" qwed
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    ran = subprocess.run(
        ["bash", "-c", program, "bash", *words], env=ENVIRONMENT, capture_output=True, text=True, timeout=60
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout.split()


def test_bash_completes_a_command_a_verb_and_an_option() -> None:
    assert completed_by_bash("qwed", "aud") == ["audit"]
    assert completed_by_bash("qwed", "audit", "") == ["verify", "export", "head", "erase"]
    assert completed_by_bash("qwed", "audit", "verify", "--org") == ["--organisation"]


@pytest.mark.parametrize(
    ("shell", "more"), [("zsh", {}), ("fish", {"_TYPER_COMPLETE_FISH_ACTION": "get-args"})], ids=["zsh", "fish"]
)
def test_the_other_shells_are_answered_too(shell: str, more: dict[str, str]) -> None:
    variables = {"_QWED_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": "qwed audit ver", **more}
    ran = subprocess.run(["qwed"], env=ENVIRONMENT | variables, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "verify" in ran.stdout
    assert "export" not in ran.stdout


@pytest.mark.parametrize(
    ("shell", "begins"),
    [("bash", "_qwed_completion() {"), ("zsh", "#compdef qwed"), ("fish", "complete --command qwed")],
)
def test_the_script_is_printed_for_a_shell_that_is_named_and_for_that_of_the_login(
    shell: str, begins: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["--show-completion", shell]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(begins)
    monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    assert main(["--show-completion"]) == 0
    assert capsys.readouterr().out == printed


def test_it_is_installed_in_the_home_directory_once(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for _time in range(2):
        assert main(["--install-completion", "bash"]) == 0
        assert capsys.readouterr().out.startswith("bash completes `qwed` from its next start: ")
    assert (tmp_path / ".bashrc").read_text().count("qwed.sh") == 1
    main(["--show-completion", "bash"])
    assert (tmp_path / ".bash_completions" / "qwed.sh").read_text() == capsys.readouterr().out.rstrip("\n")
