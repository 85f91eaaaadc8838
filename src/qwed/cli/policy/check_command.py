"""`qwed policy check` and `qwed policy test`."""

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qwed.cli.options import AsJson
from qwed.cli.output import EXIT_FAILED, echo, print_json
from qwed.cli.policy.files import PolicyFiles, compile_or_report, report_problems

if TYPE_CHECKING:
    from qwed.policy import CompiledPolicies, PolicyProblem
    from qwed.policy.policy_tests import PolicyTestResult

NoTests = Annotated[bool, typer.Option("--no-tests", help="do not run the tests of the policies")]
Prove = Annotated[bool, typer.Option("--prove", help="warn of rules that never decide or that disagree; takes longer")]
_CHECK = "Check types, conditions and tests of policies. Exit code 1 if there is a problem."
_TEST = "Run the tests of policies with the engines of this machine. Exit code 1 if one fails."


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("check", help=_CHECK)(_check)
    app.command("test", help=_TEST)(_test)


def _check(files: PolicyFiles, no_tests: NoTests = False, prove: Prove = False, as_json: AsJson = False) -> int:
    from qwed.policy.unreachable import find_unreachable_rules

    policies = compile_or_report(files, as_json=as_json)
    if policies is None:
        return EXIT_FAILED
    results = [] if no_tests else run_tests(policies)
    problems = (*find_unreachable_rules(policies), *(result.problem for result in results if result.failure))
    counts = {"policies": len(policies.policies), "rules": len(policies.rules), "tests": len(results)}
    warnings = _warnings(policies) if prove else ()
    more = {"warnings": [asdict(warning) for warning in warnings]} if prove else {}
    code = report_problems(problems, as_json=as_json, **counts, **more)
    if not as_json:
        _show_warnings(warnings)
    if code == 0 and not as_json:
        echo(f"ok: {', '.join(_counted(name, count) for name, count in counts.items())}")
    return code


def _warnings(policies: "CompiledPolicies") -> "tuple[PolicyProblem, ...]":
    from qwed.policy.analysis import find_rule_warnings

    return find_rule_warnings(policies)


def _show_warnings(warnings: "Iterable[PolicyProblem]") -> None:
    for warning in warnings:
        first, *others = warning.render().splitlines()
        for line in (f"warning: {first}", *others):
            echo(line)


def _test(files: PolicyFiles, as_json: AsJson = False) -> int:
    policies = compile_or_report(files, as_json=as_json)
    if policies is None:
        return EXIT_FAILED
    results = run_tests(policies)
    failed = [result for result in results if result.failure]
    if as_json:
        print_json({"ok": not failed, "tests": [_as_row(result) for result in results]})
        return EXIT_FAILED if failed else 0
    for result in failed:
        for line in result.problem.render().splitlines():
            echo(line)
    echo(f"{_counted('tests', len(results))}, {len(failed)} failed")
    return EXIT_FAILED if failed else 0


def run_tests(policies: "CompiledPolicies") -> Sequence["PolicyTestResult"]:
    """Return the results of all tests; the engines are loaded only if there is a test."""
    from qwed.cli.policy.analysis import open_analysis
    from qwed.policy.policy_tests import run_policy_tests

    has_tests = any(owner.policy.tests for owner in policies.policies)
    with open_analysis() if has_tests else nullcontext() as analyze:
        return run_policy_tests(policies, analyze) if analyze is not None else ()


def _counted(name: str, count: int) -> str:
    singular = {"policies": "policy"}.get(name, name.removesuffix("s"))
    return f"{count} {singular if count == 1 else name}"


def _as_row(result: "PolicyTestResult") -> dict[str, Any]:
    problem = asdict(result.problem)
    return {
        "policy": result.policy.policy.policy_id,
        "file": problem["file"],
        "line": problem["line"],
        "name": result.test.name,
        "passed": not result.failure,
        "expected": result.test.expect or "none",
        "failure": result.failure,
    }
