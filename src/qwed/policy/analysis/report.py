"""Report of a comparison: lines for people and values for programs."""

from collections.abc import Iterator
from dataclasses import asdict
from decimal import Decimal
from typing import Any, NamedTuple

from qwed.model.decision import Status
from qwed.policy.analysis.comparison import Change, ChangeProof, Comparison
from qwed.policy.analysis.model_search import ProofStatus
from qwed.policy.analysis.witness import USUAL_TIME, Witness
from qwed.policy.compiled_policies import CompiledPolicies
from qwed.policy.document import PolicyAnswer
from qwed.policy.policy_input import PolicyInput, PolicyOutcome

_SENTENCES = {
    (Change.ALLOWED, ProofStatus.NONE): "allows nothing new: proved",
    (Change.ALLOWED, ProofStatus.SOME): "allows calls that were not allowed:",
    (Change.ALLOWED, ProofStatus.NOT_PROVEN): "not proven whether anything new is allowed",
    (Change.ASKED, ProofStatus.NONE): "asks about nothing new: proved",
    (Change.ASKED, ProofStatus.SOME): "asks about calls that it did not ask about:",
    (Change.ASKED, ProofStatus.NOT_PROVEN): "not proven whether anything new is asked about",
    (Change.DENIED, ProofStatus.NONE): "denies nothing new: proved",
    (Change.DENIED, ProofStatus.SOME): "denies calls that were not denied:",
    (Change.DENIED, ProofStatus.NOT_PROVEN): "not proven whether anything new is denied",
}
_DECIDED = {"APPROVED": "allowed", "CORRECTED": "allowed as corrected", "PENDING": "asked", "DENIED": "denied"}


class ApproverChange(NamedTuple):
    """A question that other people answer than before."""

    policy: str
    rule: str
    before: tuple[str, ...]
    after: tuple[str, ...]


def approver_changes(old: CompiledPolicies, new: CompiledPolicies) -> tuple[ApproverChange, ...]:
    """Return the rules that ask other groups than before."""
    before = {rule.key: rule.rule for rule in old.rules if rule.rule.then is PolicyAnswer.ASK}
    return tuple(
        ApproverChange(*rule.key, tuple(sorted(before[rule.key].approvers)), tuple(sorted(rule.rule.approvers)))
        for rule in new.rules
        if rule.rule.then is PolicyAnswer.ASK and rule.key in before
        if {*before[rule.key].approvers} != {*rule.rule.approvers}
    )


def describe_comparison(comparison: Comparison, approvers: tuple[ApproverChange, ...] = ()) -> Iterator[str]:
    """Yield the lines of a comparison."""
    for finding in comparison.changes:
        yield from _finding_lines(finding)
    for change in approvers:
        yield (
            f"rule `{change.rule}` of policy `{change.policy}` asks {_listed(change.after)}, "
            f"and asked {_listed(change.before)}"
        )


def _finding_lines(finding: ChangeProof) -> Iterator[str]:
    sentence = _SENTENCES[finding.change, finding.status]
    yield f"{sentence}: {finding.reason}" if finding.reason else sentence
    for witness in finding.witnesses:
        yield f"  {describe_call(witness.call)}"
        if (further := _circumstances(witness)) is not None:
            yield f"    {further}"
        yield f"    before: {_decided(witness.before, witness.before_outcome)}"
        yield f"    after:  {_decided(witness.after, witness.after_outcome)}"


def _listed(groups: tuple[str, ...]) -> str:
    return " and ".join(f"`{group}`" for group in groups) if groups else "any approver"


def _circumstances(witness: Witness) -> str | None:
    parts = []
    if witness.circumstances.status is not Status.VERIFIED:
        parts.append(f"where the verification is {witness.circumstances.status}")
    if witness.circumstances.needs_person:
        parts.append("where a person must approve the tool, the risk or personal data anyway")
    return ", ".join(parts) or None


def _decided(decision: str, outcome: PolicyOutcome) -> str:
    word = _DECIDED[decision]
    if outcome.then is None:
        return f"{word}, by the tables of trust and risk"
    rule = f"rule `{outcome.rule_id}` of policy `{outcome.policy_id}`"
    if outcome.is_error:
        return f"{word}, because {rule} cannot be evaluated: {outcome.message}"
    if outcome.is_incomplete:
        return f"{word}, because the facts that {rule} reads are incomplete"
    applies = {PolicyAnswer.ALLOW: "allowed", PolicyAnswer.ASK: "asked", PolicyAnswer.DENY: "denied"}[outcome.then]
    if word.startswith(applies):
        return f"{word}, by {rule}"
    return f"{word}, by the tables, although {rule} says {outcome.then}"


def describe_call(call: PolicyInput) -> str:
    """Return a call in one line: what differs from an ordinary call."""
    shown = ", ".join(f"{name}={_value(value)}" for name, value in call.args.items())
    parts = [f"{call.tool.name or call.action_type}({shown})"]
    if call.tool.name and call.action_type != "tool_call":
        parts.append(f"action type {call.action_type}")
    if call.tool.registered:
        parts.append("registered")
    if call.tool.server:
        parts.append(f"server {_value(call.tool.server)}")
    parts.append(f"risk {call.risk.word}")
    parts += _agent_parts(call)
    if call.effects:
        parts.append("effects " + " ".join(f"{effect.kind}{_target(effect.target)}" for effect in call.effects))
    if call.checks_failed:
        parts.append(f"checks failed {_value(list(call.checks_failed))}")
    parts += _fact_parts(call)
    parts += [
        f"usage of {key.tool}{f'.{key.argument}' if key.argument else ''} in {key.seconds} s = {_value(value)}"
        for key, value in call.usage.items()
        if value
    ]
    if call.now != USUAL_TIME:
        parts.append(f"at {call.now.isoformat()}")
    return ", ".join(parts)


def _agent_parts(call: PolicyInput) -> list[str]:
    agent = call.agent
    parts = [f"trust {agent.trust}"]
    if agent.registered_trust != agent.trust:
        parts.append(f"registered at {agent.registered_trust}")
    stated = {"id": agent.agent_id, "name": agent.name, "type": agent.type, "principal": agent.principal}
    usual = {"id": "agent", "name": "", "type": "supervised", "principal": ""}
    parts += [f"agent {name} {_value(value)}" for name, value in stated.items() if value != usual[name]]
    return [*parts, *(f"label {name}={_value(value)}" for name, value in agent.labels.items())]


def _fact_parts(call: PolicyInput) -> list[str]:
    parts = []
    for name, group in asdict(call.facts).items():
        if group is None:
            continue
        complete = group.pop("complete")
        values = ", ".join(f"{field}={_value(value)}" for field, value in group.items() if value not in ("", (), None))
        parts.append(f"{name}{'' if complete else ' (incomplete)'}: {values or 'nothing'}")
    return parts


def _target(target: str) -> str:
    return f" {_value(target)}" if target else ""


def _value(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        return format(value.normalize(), "f")
    if isinstance(value, dict):
        members = (f"{name}: {_value(part)}" for name, part in value.items() if part not in ("", ()))
        return "{" + ", ".join(members) + "}"
    return "[" + ", ".join(map(_value, value)) + "]" if isinstance(value, list | tuple) else str(value)


def comparison_values(comparison: Comparison, approvers: tuple[ApproverChange, ...] = ()) -> dict[str, Any]:
    """Return a comparison as plain values."""
    verdict = comparison.allowed.status
    return {
        "allows_nothing_new": None if verdict is ProofStatus.NOT_PROVEN else verdict is ProofStatus.NONE,
        **{finding.change.value: _finding_values(finding) for finding in comparison.changes},
        "approvers": [change._asdict() for change in approvers],
        "not_understood": [use._asdict() for use in comparison.opaque],
    }


def _finding_values(finding: ChangeProof) -> dict[str, Any]:
    return {
        "status": finding.status.value,
        "reason": finding.reason,
        "calls": [_witness_values(witness) for witness in finding.witnesses],
    }


def _witness_values(witness: Witness) -> dict[str, Any]:
    call = witness.call
    return {
        "text": describe_call(call),
        "call": {
            "action_type": call.action_type,
            "tool": asdict(call.tool),
            "args": {name: _plain(value) for name, value in call.args.items()},
            "effects": [{"kind": effect.kind.value, "target": effect.target} for effect in call.effects],
            "risk": call.risk.word,
            "checks_failed": list(call.checks_failed),
            "facts": {name: group for name, group in asdict(call.facts).items() if group is not None},
            "agent": asdict(call.agent),
            "now": call.now.isoformat(),
            "usage": [{**key._asdict(), "value": _plain(value)} for key, value in call.usage.items()],
            "status": witness.circumstances.status.value,
            "needs_person": witness.circumstances.needs_person,
        },
        "before": _outcome_values(witness.before.value, witness.before_outcome),
        "after": _outcome_values(witness.after.value, witness.after_outcome),
    }


def _outcome_values(decision: str, outcome: PolicyOutcome) -> dict[str, Any]:
    return {
        "decision": decision,
        "then": outcome.then,
        "policy": outcome.policy_id or None,
        "rule": outcome.rule_id or None,
        "text": _decided(decision, outcome),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return {name: _plain(part) for name, part in value.items()} if isinstance(value, dict) else value
