"""Causes of a decision in words: what made the risk, and which checks ask for a person (ruling 4.27)."""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import Any, NamedTuple

from qwed.kernel.answer import PendingCause, PolicyCheck
from qwed.kernel.case import Case
from qwed.model import Effect, EffectKind, Risk, Status, Trust, Verdict, risk_of
from qwed.model.data_files import read_mapping

_E = EffectKind
_MAX_TARGETS = 2
_MAX_KINDS = 2
_MAX_LENGTH = 48
_MAX_DETAILS = 10
_MAX_MESSAGE = 120
_DOES: dict[EffectKind, tuple[str, str]] = {
    _E.READ: ("reads", "reads data"),
    _E.WRITE: ("writes", "writes data"),
    _E.DELETE: ("deletes", "deletes data"),
    _E.EXECUTE: ("runs", "runs code"),
    _E.NETWORK: ("connects to", "connects to another machine"),
    _E.COMMUNICATE: ("sends to", "sends a message"),
    _E.SPEND: ("spends with", "spends money"),
    _E.ADMIN: ("administers", "administers a system"),
    _E.SECRET: ("reads the secret", "reads a secret"),
    _E.UNRESOLVED: ("may do anything with", "may do anything"),
}
"""Words for an effect on a target, and for one without a target of its own."""
_LEAKS_PII = PolicyCheck("no_pii_leakage", False)


_PEOPLE = {Trust.TRUSTED: "an owner"}
"""People who grant a trust level that an approver cannot."""


class Question(NamedTuple):
    """Check that asks for a person, beyond trust and risk."""

    check: str
    message: str


def risk_cause(case: Case, verdict: Verdict) -> str:
    """Return what made the risk: the gravest effects with their targets, or the kind of action."""
    name = case.resolved_action.name
    gravest = gravest_effects(verdict)
    highest = risk_of(gravest)
    if gravest and highest >= case.resolved_action.base:
        cause = "; ".join(list(_sentences(gravest, name))[:_MAX_KINDS])
        if verdict.message and any(effect.kind is _E.UNRESOLVED and " " not in effect.target for effect in gravest):
            cause = f"{cause} ({verdict.message[:_MAX_MESSAGE]})"
        if highest == case.risk or not case.factors:
            return f"it {cause}"
        return f"it {cause}; raised by {', '.join(factor.factor for factor in case.factors)}"
    return f"`{_clipped(name)}` has {case.resolved_action.base.word} risk"


def gravest_effects(verdict: Verdict) -> list[Effect]:
    """Return the effects with the highest risk."""
    highest = risk_of(verdict.effects)
    return [effect for effect in verdict.effects if effect.risk is highest]


def effect_details(verdict: Verdict) -> list[dict[str, str]]:
    """Return the gravest effects for the details of an answer."""
    return [
        {"effect": effect.kind.value, "target": _clipped(effect.target)}
        for effect in gravest_effects(verdict)[:_MAX_DETAILS]
    ]


def _sentences(effects: Sequence[Effect], name: str) -> Iterator[str]:
    ordered = sorted(effects, key=lambda effect: list(EffectKind).index(effect.kind))
    for kind, group in groupby(ordered, key=lambda effect: effect.kind):
        targets = [effect for effect in group if effect.target and effect.target != name]
        on_target, alone = _DOES[kind]
        if not targets:
            yield alone
            continue
        if kind is EffectKind.UNRESOLVED and " " in targets[0].target:
            yield f"does what cannot be determined: {_clipped(targets[0].target)}"
            continue
        listed = [f"{'all of ' if one.unbounded else ''}`{_clipped(one.target)}`" for one in targets[:_MAX_TARGETS]]
        more = f" and {len(targets) - _MAX_TARGETS} more" if len(targets) > _MAX_TARGETS else ""
        yield f"{on_target} {', '.join(listed)}{more}"


def _clipped(text: str) -> str:
    plain = text.replace("`", "'")
    return plain if len(plain) <= _MAX_LENGTH else f"{plain[: _MAX_LENGTH - 3]}..."


def _questions(case: Case, verdict: Verdict) -> Iterator[Question]:
    status, check = verdict.status.on_agent_wire, next(iter(verdict.checks_failed), "")
    name = _clipped(case.resolved_action.name)
    if status is Status.UNCERTAIN:
        cause = verdict.message or "its effects are not certain"
        yield Question(check or "verification_certain", f"the {verdict.engine} engine could not decide: {cause}")
    if status is Status.CORRECTED and case.risk > Risk.LOW:
        cause = verdict.message or "the action was not permitted as it was sent"
        yield Question(check or "repair_accepted", f"the action was repaired, and only the repair may pass: {cause}")
    if _LEAKS_PII in case.policies:
        fields = ", ".join(f"`{field}`" for field in case.content.pii_fields)
        where = f"personal data in {fields} would leave" if fields else "the content is too long to be scanned"
        yield Question("no_pii_leakage", where)
    tool = case.resolved_action.tool
    if tool.dangerous:
        yield Question("dangerous_tool", f"`{name}` is on the list of dangerous tools")
    elif tool.requires_approval and case.agent.trust < Trust.TRUSTED:
        yield Question("requires_approval", f"the registry says that `{name}` requires approval")
    if case.risk > case.options.risk_threshold:
        threshold = case.options.risk_threshold.word
        yield Question("risk_threshold", f"the request asks for a person above `risk_threshold` {threshold}")


def pending_cause(case: Case, verdict: Verdict, *, by_trust: bool) -> PendingCause:
    """Return why a person must approve: the checks that ask, else the risk at this trust level."""
    asked = tuple(_questions(case, verdict))
    details: dict[str, Any] = {}
    if asked:
        details["checks_failed"] = [question.check for question in asked]
    if any(question.check == _LEAKS_PII.policy for question in asked):
        details["fields"] = list(case.content.pii_fields)
    causes = [question.message for question in asked]
    if by_trust:
        details |= {"trust_level": int(case.agent.trust), "effects": effect_details(verdict)}
        causes.append(f"{risk_cause(case, verdict)}, at trust level {int(case.agent.trust)}")
    return PendingCause(
        check=asked[0].check if asked else None,
        message=f"a person must approve this {case.risk.word} risk action: {'; '.join(causes)}",
        details=details,
        checks_failed=tuple(question.check for question in asked),
    )


@cache
def _advice() -> dict[str, str]:
    return read_mapping(__file__, "advice.txt")


def advice_for(checks: Sequence[str]) -> str | None:
    """Return what would pass and who can grant it, for the first failed check that has advice of its own."""
    return next((_advice()[check] for check in checks if check in _advice()), None)


def grant_of(level: Trust) -> str:
    """Return the advice by which an agent may get a trust level."""
    people = _PEOPLE.get(level, "an owner or approver")
    return f"ask a person to do it, or request trust level {int(level)} for the agent, which {people} grants"
