"""`qwed policy explain`: which rules look at an action, and which one decides."""

import re
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qwed.cli.backend import MAX_TEXT, read_bytes
from qwed.cli.options import AsJson
from qwed.cli.output import EXIT_FAILED, echo, fail, print_json, print_table
from qwed.cli.policy.files import compile_or_report

if TYPE_CHECKING:
    from qwed.policy import Evaluation, PolicyInput
    from qwed.policy.document import PolicyTest
    from qwed.policy.evaluator import RuleResult

ActionFile = Annotated[
    str, typer.Argument(metavar="ACTION.json", help="the action as it is sent; - reads standard input")
]
Policies = Annotated[
    list[str], typer.Option("--policies", metavar="FILE", help="policy file or directory; can be repeated")
]
Trust = Annotated[int, typer.Option("--trust", min=0, max=3, help="trust level of the agent")]
Labels = Annotated[
    list[str] | None, typer.Option("--label", metavar="NAME=VALUE", help="label of the agent; can be repeated")
]
Now = Annotated[str | None, typer.Option("--now", metavar="TIME", help="time of the call, with a time zone")]
_HELP = "Show which rules look at an action, what each of them says, and which one decides."
_LABEL = re.compile(r"([^=]{1,100})=(.{0,200})")


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command("explain", help=_HELP)(_explain)


def _explain(
    action: ActionFile,
    policies: Policies,
    trust: Trust = 2,
    label: Labels = None,
    now: Now = None,
    as_json: AsJson = False,
) -> int:
    from qwed.cli.policy.analysis import open_analysis
    from qwed.policy import explain

    test = _call_of(
        _read_action(action), {"trust": trust, "labels": dict(map(_split_label, label or ()))}, _checked(now)
    )
    compiled = compile_or_report(policies, as_json=as_json)
    if compiled is None:
        return EXIT_FAILED
    with open_analysis() as analyze:
        call = analyze(test, dict.fromkeys(compiled.usage, 0))
    if isinstance(call, str):
        return _show_refused(call, as_json=as_json)
    evaluation = explain(compiled, call)
    if as_json:
        print_json(_as_json(call, evaluation))
    else:
        _show(call, evaluation)
    return 0


def _read_action(name: str) -> dict[str, Any]:
    from qwed.model.strict_json import StrictJsonError, parse_strict_json

    try:
        action = parse_strict_json(read_bytes(name, MAX_TEXT), f"`{name}`")
    except StrictJsonError as error:
        fail(error)
    if not isinstance(action, dict):
        fail(f"`{name}` must be a JSON object with the `type` of the action")
    return action


def _split_label(text: str) -> tuple[str, str]:
    match = _LABEL.fullmatch(text)
    if match is None:
        fail(f"--label must be NAME=VALUE, not `{text[:60]}`")
    return match[1], match[2]


def _checked(now: str | None) -> str | None:
    try:
        has_zone = now is None or datetime.fromisoformat(now).tzinfo is not None
    except ValueError:
        has_zone = False
    if not has_zone:
        fail("--now must be a time with a zone, such as 2026-03-02T09:30:00+01:00")
    return now


def _call_of(action: Mapping[str, Any], agent: Mapping[str, Any], now: str | None) -> "PolicyTest":
    from qwed.policy.document import PolicyTest
    from qwed.policy.problem import Position

    return PolicyTest(at=Position(), action=action, expect=None, agent=agent, now=now, usage={})


def _show_refused(reason: str, *, as_json: bool) -> int:
    if as_json:
        print_json({"refused": reason, "then": None, "rules": []})
    else:
        echo(f"refused before any rule is asked: {reason}")
    return EXIT_FAILED


def _as_json(call: "PolicyInput", evaluation: "Evaluation") -> dict[str, Any]:
    outcome = evaluation.outcome
    return {
        "then": outcome.then,
        "policy": outcome.policy_id or None,
        "rule": outcome.rule_id or None,
        "message": outcome.message,
        "approvers": outcome.approvers,
        "is_error": outcome.is_error,
        "risk": call.risk.word,
        "effects": [{"kind": effect.kind, "target": effect.target} for effect in call.effects],
        "facts": asdict(call.facts),
        "rules": [
            {"policy": result.rule.key[0], "rule": result.rule.key[1], "then": result.then, "reason": result.reason}
            for result in evaluation.results
        ],
        "shadow": [asdict(entry) for entry in outcome.shadow],
    }


def _show(call: "PolicyInput", evaluation: "Evaluation") -> None:
    outcome = evaluation.outcome
    decided = f"{outcome.then} by rule `{outcome.rule_id}` of policy `{outcome.policy_id}`"
    echo(decided if outcome.then else "no rule decides: the tables of trust and risk do")
    if outcome.message:
        echo(f"  {outcome.message}")
    effects = ", ".join(f"{effect.kind} {effect.target}".strip() for effect in call.effects) or "none"
    echo(f"  risk {call.risk.word}, effects: {effects}")
    if evaluation.results:
        print_table(("policy", "rule", "says", "why"), map(_row, evaluation.results))


def _row(result: "RuleResult") -> tuple[str, str, str, str]:
    rule = result.rule
    shadow = " (shadow)" if rule.is_shadow else ""
    why = result.reason or (rule.rule.message if result.then else "")
    return rule.key[0], rule.key[1], f"{result.then or '-'}{shadow}", why
