"""What a person needs of an engine's answer: one strong line, then what was found, in the order one looks for it."""

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
UNDECIDED = "bold yellow"
"""For every other status: nothing was settled."""
MOST_ROWS = 20
"""Of one kind, for a person; `--json` has all of them."""


class Detail(NamedTuple):
    """One line under the answer."""

    label: str
    text: str


def style_of(status: str) -> str:
    """How the status is shown on a terminal."""
    return STYLES.get(status, UNDECIDED)


def details_of(finding: Mapping[str, Any]) -> list[Detail]:
    """The lines under the answer; empty where the message says it all."""
    result = finding.get("result") or {}
    rows: list[Detail] = []
    for name, (label, texts_of) in _SHOWN.items():
        value = result.get(name)
        if value is not None and not (name == "violations" and result.get("issues")):
            rows += _rows(label, list(texts_of(value)))
    if "by_hand" in result:
        rows = _computed(result) + rows
    # A check of a pack that could not be made has failed at nothing.
    open_question = "by_hand" in result and finding.get("status") == "INCONCLUSIVE"
    failed = [] if open_question else _failed(finding.get("checks") or ())
    return rows + _rows("failed check", failed) + _proof(finding)


def _rows(label: str, texts: list[str]) -> list[Detail]:
    shown = [Detail(label, text) for text in texts[:MOST_ROWS]]
    hidden = len(texts) - len(shown)
    return [*shown, Detail(label, f"and {hidden} more, which --json shows")] if hidden > 0 else shown


def _computed(result: Mapping[str, Any]) -> list[Detail]:
    """What a check of a pack computed: each of its own fields that is one value, by its name."""
    own = {name: value for name, value in result.items() if name not in _SHOWN and name not in _SAID}
    return [
        Detail(name.replace("_", " "), str(value))
        for name, value in own.items()
        if isinstance(value, str | int | float) and value != ""
    ]


_SAID = ("operation", "status")


def _plain(value: Any) -> Iterable[str]:
    if value != "":
        yield str(value)


def _joined(values: Any) -> Iterable[str]:
    return [", ".join(map(str, values))] if values else []


def _operations(rows: Any) -> Iterable[str]:
    for row in rows:
        optional = [f"[{name}]" for name in row["optional"]]
        yield f"{' '.join([row['operation'], *row['required'], *optional])}: {row['says']}"


def _each(values: Any) -> Iterable[str]:
    return map(str, values)


def _members(values: Any) -> Iterable[str]:
    pairs = [f"{name} = {value}" for name, value in values.items()]
    return [", ".join(pairs)] if pairs else []


def _repair(value: Any) -> Iterable[str]:
    return map(str, value.values()) if isinstance(value, Mapping) else _plain(value)


def _issues(values: Any) -> Iterable[str]:
    """Each as its engine tells it: a sentence, a rule that a place in a message breaks, or what stands in a line."""
    for issue in values:
        if isinstance(issue, str):
            yield issue
        elif "rule" in issue:
            yield f"{issue.get('path')}: {issue['rule']}: {issue.get('message')}"
        else:
            yield from _flaw(issue)


def _flaw(issue: Mapping[str, Any]) -> Iterable[str]:
    line = issue.get("line_number")
    place = "" if line is None else f"line {line}, "
    yield f"{place}{issue.get('severity')}: {issue.get('pattern')} {issue.get('description')}"
    if issue.get("recommendation"):
        yield f"  {issue['recommendation']}"


def _effects(values: Any) -> Iterable[str]:
    return (f"{effect.get('kind')} {effect.get('target')}" for effect in values)


def _sentence(value: Any) -> Iterable[str]:
    yield f"{value['sentence']} (characters {value['start']} to {value['end']})"


def _chain(values: Any) -> Iterable[str]:
    for step in values:
        said = step["result"] if step.get("success") else "cannot say"
        yield f"{step['engine']} ({step['method']}): {said}, confidence {step['confidence']:g}"


def _routed(value: Any) -> Iterable[str]:
    yield f"{value.get('engine')}, {value.get('why')}"


def _failed(checks: Iterable[Mapping[str, Any]]) -> list[str]:
    return [str(check["name"]) for check in checks if not check["passed"]]


def _proof(finding: Mapping[str, Any]) -> list[Detail]:
    signed = finding.get("attestation")
    return [Detail("attestation", signed)] if isinstance(signed, str) else []


_Texts = Callable[[Any], Iterable[str]]
_SHOWN: dict[str, tuple[str, _Texts]] = {
    "routed": ("read as", _routed),
    "verdict": ("verdict", _plain),
    "expected": ("expected", _plain),
    "value": ("value", _plain),
    "claimed": ("claimed", _plain),
    "counterexample": ("counterexample", _members),
    "model": ("for example", _members),
    "holds_where": ("holds where", _plain),
    "core_premises": ("because of", _each),
    "evidence": ("evidence", _sentence),
    "closest": ("closest", _sentence),
    "measured": ("measured", _members),
    "final_answer": ("answer", _plain),
    "confidence": ("confidence", _plain),
    "agreement_status": ("agreement", _plain),
    "verification_chain": ("method", _chain),
    "issues": ("issue", _issues),
    "violations": ("violation", _each),
    "effects": ("effect", _effects),
    "notes": ("note", _each),
    "rule": ("rule", _plain),
    "by_hand": ("by hand", _each),
    "known": ("known", _joined),
    "operations": ("operation", _operations),
    "sql": ("measured with", _plain),
    "position": ("at character", _plain),
    "repair": ("repair", _repair),
}
