"""`qwed policy diff`: what an edit changes, with exit codes for CI."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from qwed.cli import main
from tests.support.policy_calls import policy, rule

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _write(name: str, condition: str, then: str = "allow", **more: object) -> str:
    text = policy(
        rule(condition, then, **more), args="amount: number, to: string", head="applies_to: {tools: [refund]}\n"
    )
    Path(name).write_text(text)
    return name


def test_an_edit_that_allows_nothing_new_is_0(capsys: Capture) -> None:
    assert (
        main(["policy", "diff", _write("old.yaml", "args.amount <= 50"), _write("new.yaml", "args.amount < 50")]) == 0
    )
    out = capsys.readouterr().out
    assert out.startswith(
        "allows nothing new: proved\nasks about calls that it did not ask about:\n  refund(amount=50)"
    )


def test_an_edit_that_allows_something_new_is_1_and_shows_the_call(capsys: Capture) -> None:
    assert (
        main(["policy", "diff", _write("old.yaml", "args.amount < 50"), _write("new.yaml", "args.amount <= 50")]) == 1
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "allows calls that were not allowed:"
    assert lines[1].startswith("  refund(amount=50), risk ")
    assert lines[3] == "    after:  allowed, by rule `only` of policy `tested`"


def test_an_edit_that_is_not_proven_is_3_and_names_the_cause(capsys: Capture) -> None:
    condition = 'has(args.to) && args.to.matches("(?i)^first$")'
    files = [_write("old.yaml", condition), _write("new.yaml", condition.replace("first", "second"))]
    assert main(["policy", "diff", *files]) == 3
    out = capsys.readouterr().out
    assert out.startswith("not proven whether anything new is allowed: ")
    assert "`matches` in rule `only` of policy `tested` (7:" in out


def test_files_that_are_refused_are_2(capsys: Capture) -> None:
    assert main(["policy", "diff", _write("old.yaml", "args.amount < 50"), _write("new.yaml", "args.amont < 50")]) == 2
    assert "did you mean `amount`?" in capsys.readouterr().out


def test_a_file_that_is_not_there_is_2() -> None:
    assert main(["policy", "diff", _write("old.yaml", "true"), "missing.yaml"]) == 2


def test_directories_are_compared_whatever_their_files_are_called(capsys: Capture) -> None:
    for name in ("old/a.yaml", "new/b.yaml"):
        Path(name).parent.mkdir()
        _write(name, "args.amount < 50")
    assert main(["policy", "diff", "old", "new"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "allows nothing new: proved",
        "asks about nothing new: proved",
        "denies nothing new: proved",
    ]


def test_other_approvers_are_reported(capsys: Capture) -> None:
    old = _write("old.yaml", "true", "ask", approvers="[finance, security]")
    assert main(["policy", "diff", old, _write("new.yaml", "true", "ask", approvers="finance")]) == 0
    expected = "rule `only` of policy `tested` asks `finance`, and asked `finance` and `security`"
    assert capsys.readouterr().out.splitlines()[-1] == expected


def test_json_has_every_call_with_its_values(capsys: Capture) -> None:
    files = [_write("old.yaml", "args.amount < 50"), _write("new.yaml", "args.amount <= 50")]
    assert main(["policy", "diff", "--json", *files]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["allows_nothing_new"], found["allowed"]["status"], found["exit_code"]) == (False, "some", 1)
    shown = found["allowed"]["calls"][0]
    assert shown["call"]["args"] == {"amount": 50}
    assert shown["after"]["decision"] == "APPROVED"


def test_other_commands_do_not_load_the_solver() -> None:
    code = (
        "import sys; from qwed.cli import main; import qwed.policy.analysis; "
        "main(['policy', 'check', sys.argv[1]]); print('z3' in sys.modules)"
    )
    name = _write("old.yaml", "args.amount < 50")
    ended = subprocess.run([sys.executable, "-c", code, name], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "False"


def test_check_warns_of_rules_that_never_match_and_is_still_0(capsys: Capture) -> None:
    name = _write("p.yaml", "args.amount > 50 && args.amount < 50")
    assert main(["policy", "check", "--prove", name]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "warning: p.yaml:7:11: the rule never matches: no call satisfies its condition"
    assert lines[-1] == "ok: 1 policy, 1 rule, 0 tests"


def test_check_lists_warnings_in_json(capsys: Capture) -> None:
    assert main(["policy", "check", "--prove", "--json", _write("p.yaml", "args.amount > 50 && args.amount < 50")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["ok"], [warning["rule"] for warning in found["warnings"]]) == (True, ["only"])
