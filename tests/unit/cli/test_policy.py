"""`qwed policy`: checks, tests and explains policies without a server, with exit codes for CI."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from qwed.cli import main
from tests.support.policy_calls import policy, rule

Capture = pytest.CaptureFixture[str]
TESTED = policy(rule("args.amount > 50", "deny"), args="amount: number", head="applies_to: {tools: [refund]}\n")


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _write(text: str, name: str = "p.yaml") -> str:
    Path(name).write_text(text)
    return name


def _test(expect: str, amount: int = 60) -> str:
    return f"tests:\n  - {{call: {{tool: refund, args: {{amount: {amount}}}}}, expect: {expect}}}\n"


def test_check_of_a_good_policy_is_0(capsys: Capture) -> None:
    assert main(["policy", "check", _write(TESTED + _test("deny"))]) == 0
    assert capsys.readouterr().out == "ok: 1 policy, 1 rule, 1 test\n"


def test_check_shows_the_problem_with_its_line_and_is_1(capsys: Capture) -> None:
    assert main(["policy", "check", _write(TESTED.replace("args.amount >", "args.amont >"))]) == 1
    out = capsys.readouterr().out
    assert out.startswith("p.yaml:7:16: the type of the argument `amont` is not known: did you mean `amount`?")
    assert out.endswith("                 ^\n")


def test_check_reports_as_json(capsys: Capture) -> None:
    assert main(["policy", "check", "--json", _write(policy(rule("risk > 3")))]) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["ok"], report["problems"][0]["line"], report["problems"][0]["column"]) == (False, 5, 17)


def test_check_runs_the_tests_and_finds_rules_that_never_decide(capsys: Capture) -> None:
    text = TESTED + "  - {id: never, when: 'false', then: ask}\n" + _test("allow")
    assert main(["policy", "check", _write(text)]) == 1
    out = capsys.readouterr().out
    assert "p.yaml:9:23: the rule never decides: its condition is false" in out
    assert "expected `allow`, got `deny` by rule `only`" in out
    assert main(["policy", "check", "--no-tests", "--json", "p.yaml"]) == 1


def test_a_directory_stands_for_its_policies(capsys: Capture) -> None:
    Path("rules").mkdir()
    _write(TESTED, "rules/a.yaml")
    _write('{"policy": "b", "facts": 1, "rules": [{"id": "r", "when": "true", "then": "ask"}]}', "rules/b.json")
    _write("no policy", "rules/notes.txt")
    assert main(["policy", "check", "rules"]) == 0
    assert capsys.readouterr().out == "ok: 2 policies, 2 rules, 0 tests\n"


@pytest.mark.parametrize("arguments", [
    ["policy", "check"],
    ["policy", "check", "missing.yaml"],
    ["policy", "chek", "p.yaml"],
    ["policy", "explain", "missing.json", "--policies", "p.yaml"],
    ["policy", "use", "read-olny"],
    ["policy"],
])  # fmt: skip
def test_wrong_usage_is_2(arguments: list[str]) -> None:
    assert main(arguments) == 2


def test_test_reports_each_test(capsys: Capture) -> None:
    _write(TESTED + _test("deny") + _test("none", 20).removeprefix("tests:\n"))
    assert main(["policy", "test", "p.yaml"]) == 0
    assert capsys.readouterr().out == "2 tests, 0 failed\n"
    _write(TESTED + _test("ask"))
    assert main(["policy", "test", "--json", "p.yaml"]) == 1
    (result,) = json.loads(capsys.readouterr().out)["tests"]
    assert (result["passed"], result["failure"]) == (False, "expected `ask`, got `deny` by rule `only`")


def test_a_test_that_expects_a_denial_does_not_pass_by_an_error(capsys: Capture) -> None:
    _write(TESTED + "tests:\n  - {call: {tool: refund}, expect: deny}\n")
    assert main(["policy", "test", "p.yaml"]) == 1
    assert "got `deny` by rule `only`: the call has no `amount`" in capsys.readouterr().out


def test_a_call_that_is_refused_before_any_rule_fails_its_test(capsys: Capture) -> None:
    _write(TESTED + "tests:\n  - {call: {action: {type: no_such_type}}, expect: deny}\n")
    assert main(["policy", "test", "p.yaml"]) == 1
    assert "the call is refused before any rule is asked: unknown action type" in capsys.readouterr().out


def test_a_policy_in_shadow_is_tested_as_if_it_decided() -> None:
    _write(policy(rule("true"), head="mode: shadow\n") + "tests:\n  - {call: {tool: a}, expect: deny}\n")
    assert main(["policy", "test", "p.yaml"]) == 0


def test_explain_names_the_rules_and_the_one_that_decides(capsys: Capture) -> None:
    _write(TESTED)
    _write('{"type": "tool_call", "tool": "refund", "parameters": {"amount": 60}}', "action.json")
    assert main(["policy", "explain", "action.json", "--policies", "p.yaml"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "deny by rule `only` of policy `tested`"
    assert main(["policy", "explain", "action.json", "--policies", "p.yaml", "--json", "--trust", "3"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["then"], report["rule"], report["risk"]) == ("deny", "only", "critical")
    assert report["rules"] == [{"policy": "tested", "rule": "only", "then": "deny", "reason": ""}]


def test_packs_are_listed_and_copied(capsys: Capture) -> None:
    assert main(["policy", "packs", "--json"]) == 0
    assert [pack["name"] for pack in json.loads(capsys.readouterr().out)][-1] == "read-only"
    assert main(["policy", "use", "read-only"]) == 0
    assert main(["policy", "check", "read-only.yaml"]) == 0
    assert main(["policy", "use", "read-only"]) == 2
    assert "`read-only.yaml` exists" in capsys.readouterr().err
    assert main(["policy", "use", "read-only", "--force", "--to", "mine.yaml", "--json"]) == 0


@pytest.mark.parametrize("package", ["cel_expr_python", "yaml"])
def test_a_missing_package_is_named_with_its_extra(package: str) -> None:
    program = (
        f"import sys; sys.modules[{package!r}] = None; from qwed.cli import main; sys.exit(main(['policy', 'packs']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr == f"qwed: policies need `{package}`: pip install 'qwed[policy]'\n"


def test_schema_prints_a_json_schema(capsys: Capture) -> None:
    assert main(["policy", "schema"]) == 0
    assert json.loads(capsys.readouterr().out)["required"] == ["policy", "facts", "rules"]
