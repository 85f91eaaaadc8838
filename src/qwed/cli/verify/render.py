"""Text rendering of an engine's result: the status line and its details."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

STYLES = {
    "VERIFIED": "bold green",
    "CORRECTED": "bold green",
    "SIMPLIFIED": "bold cyan",
    "FAILED": "bold red",
    "BLOCKED": "bold red",
    "ERROR": "bold red",
}
UNDECIDED_STYLE = "bold yellow"
"""Style of every other status."""
MAX_ROWS = 20
"""Maximum rows of one kind; `--json` has all of them."""


class Detail(NamedTuple):
    """Line under the status."""

    label: str
    text: str


def style_of(status: str) -> str:
    """Return the terminal style of a status."""
    return STYLES.get(status, UNDECIDED_STYLE)


def details_of(finding: Mapping[str, Any]) -> list[Detail]:
    """Return the lines under the status line; empty if the message says everything."""
    result = finding.get("result") or {}
    rows: list[Detail] = []
    for name, (label, texts_of) in _RENDERERS.items():
        value = result.get(name)
        if value is not None and not (name == "violations" and result.get("issues")):
            rows += _rows(label, list(texts_of(value)))
    if "by_hand" in result:
        rows = _computed_details(result) + rows
    # An inconclusive pack check ran nothing, so its checks did not fail.
    open_question = "by_hand" in result and finding.get("status") == "INCONCLUSIVE"
    failed = [] if open_question else _failed_checks(finding.get("checks") or ())
    return rows + _rows("failed check", failed) + _attestation(finding)


def _rows(label: str, texts: list[str]) -> list[Detail]:
    details = [Detail(label, text) for text in texts[:MAX_ROWS]]
    hidden = len(texts) - len(details)
    return [*details, Detail(label, f"and {hidden} more, which --json shows")] if hidden > 0 else details


def _computed_details(result: Mapping[str, Any]) -> list[Detail]:
    """Return the scalar fields that a pack check computed."""
    own = {name: value for name, value in result.items() if name not in _RENDERERS and name not in _HIDDEN}
    return [
        Detail(name.replace("_", " "), str(value))
        for name, value in own.items()
        if isinstance(value, str | int | float) and value != ""
    ]


_HIDDEN = ("operation", "status")


def _scalar(value: Any) -> Iterable[str]:
    if value != "":
        yield str(value)


def _joined(values: Any) -> Iterable[str]:
    return [", ".join(map(str, values))] if values else []


def _operations(rows: Any) -> Iterable[str]:
    for row in rows:
        optional = [f"[{name}]" for name in row["optional"]]
        yield f"{' '.join([row['operation'], *row['required'], *optional])}: {row['says']}"


def _one_per_item(values: Any) -> Iterable[str]:
    return map(str, values)


def _members(values: Any) -> Iterable[str]:
    pairs = [f"{name} = {value}" for name, value in values.items()]
    return [", ".join(pairs)] if pairs else []


def _repair(value: Any) -> Iterable[str]:
    return map(str, value.values()) if isinstance(value, Mapping) else _scalar(value)


def _issues(values: Any) -> Iterable[str]:
    """Yield each issue as text: a string, a broken rule with its path, or a finding with its line."""
    for issue in values:
        if isinstance(issue, str):
            yield issue
        elif "rule" in issue:
            yield f"{issue.get('path')}: {issue['rule']}: {issue.get('message')}"
        else:
            yield from _code_issue(issue)


def _code_issue(issue: Mapping[str, Any]) -> Iterable[str]:
    line = issue.get("line_number")
    prefix = "" if line is None else f"line {line}, "
    yield f"{prefix}{issue.get('severity')}: {issue.get('pattern')} {issue.get('description')}"
    if issue.get("recommendation"):
        yield f"  {issue['recommendation']}"


def _effects(values: Any) -> Iterable[str]:
    return (f"{effect.get('kind')} {effect.get('target')}" for effect in values)


def _sentence(value: Any) -> Iterable[str]:
    yield f"{value['sentence']} (characters {value['start']} to {value['end']})"


def _consensus_steps(values: Any) -> Iterable[str]:
    for step in values:
        answer = step["result"] if step.get("success") else "cannot say"
        yield f"{step['engine']} ({step['method']}): {answer}, confidence {step['confidence']:g}"


def _routed(value: Any) -> Iterable[str]:
    yield f"{value.get('engine')}, {value.get('why')}"


def _failed_checks(checks: Iterable[Mapping[str, Any]]) -> list[str]:
    return [str(check["name"]) for check in checks if not check["passed"]]


def _attestation(finding: Mapping[str, Any]) -> list[Detail]:
    signed = finding.get("attestation")
    return [Detail("attestation", signed)] if isinstance(signed, str) else []


_Texts = Callable[[Any], Iterable[str]]
_RENDERERS: dict[str, tuple[str, _Texts]] = {
    "routed": ("read as", _routed),
    "verdict": ("verdict", _scalar),
    "expected": ("expected", _scalar),
    "value": ("value", _scalar),
    "claimed": ("claimed", _scalar),
    "counterexample": ("counterexample", _members),
    "model": ("for example", _members),
    "holds_where": ("holds where", _scalar),
    "core_premises": ("because of", _one_per_item),
    "evidence": ("evidence", _sentence),
    "closest": ("closest", _sentence),
    "measured": ("measured", _members),
    "final_answer": ("answer", _scalar),
    "confidence": ("confidence", _scalar),
    "agreement_status": ("agreement", _scalar),
    "verification_chain": ("method", _consensus_steps),
    "issues": ("issue", _issues),
    "violations": ("violation", _one_per_item),
    "effects": ("effect", _effects),
    "notes": ("note", _one_per_item),
    "rule": ("rule", _scalar),
    "by_hand": ("by hand", _one_per_item),
    "known": ("known", _joined),
    "operations": ("operation", _operations),
    "sql": ("measured with", _scalar),
    "position": ("at character", _scalar),
    "repair": ("repair", _repair),
}
