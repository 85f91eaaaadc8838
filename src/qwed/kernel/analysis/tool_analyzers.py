"""Analyzers for actions without an engine: a tool by its registry entry, a file by its path."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from qwed.guards import path as paths
from qwed.guards.file_effects import file_effects
from qwed.kernel.analysis.inferred_effects import (
    COPYING,
    MAX_EFFECTS_PER_KIND,
    MAX_FILES,
    MOVING,
    WRITING,
    file_words,
    inferred_effects,
    with_address_effects,
)
from qwed.kernel.analysis.permission_enforcement import listed, named_files
from qwed.kernel.analysis.sql_statements import has_statement
from qwed.kernel.case import Case
from qwed.kernel.request import quoted
from qwed.kernel.tools import INFORMATION_ONLY_TOOLS, PATH, TOOL, text_of
from qwed.model import OUTBOUND, Effect, EffectKind, Status, Verdict

SECRET_IN_PARAMETERS, SECRET_EXFILTRATION = "secret in parameters", "secret leaving"
"""Violations found in the parameters and effects of a call, whatever analyzer it has."""
WRITING_VERBS = WRITING | MOVING | COPYING


def analyze_tool(case: Case) -> Verdict:
    """Return VERIFIED if the call itself has no defect; its effect is that of its registry entry."""
    resolved_action = case.resolved_action
    if resolved_action.custom:
        return _analyze_unregistered(case)
    if resolved_action.tool.verification_engine == "sql" and has_statement(case.action):
        return _unverified_statement(resolved_action.name)
    target = text_of(case.action, "target")
    effects = (
        () if resolved_action.effect is None else (Effect(resolved_action.effect, target or resolved_action.name),)
    )
    return Verdict(
        status=Status.VERIFIED,
        engine=TOOL,
        effects=tuple(dict.fromkeys((*effects, *islice(_file_risk_effects(case), MAX_EFFECTS_PER_KIND)))),
        checks_passed=_permission_checks(case),
    )


def _analyze_unregistered(case: Case) -> Verdict:
    """Return the verdict on an unregistered tool by its name; its inferred effects are added later."""
    resolved_action = case.resolved_action
    if resolved_action.executable_text is not None:
        return Verdict(
            status=Status.INCONCLUSIVE,
            engine=TOOL,
            message="cannot determine what this tool would execute: "
            "register it (`PUT /tools/{name}`) or pass the command in one plain parameter",
            effects=(Effect(EffectKind.UNRESOLVED, resolved_action.name),),
            checks_failed=("text_resolved",),
        )
    return Verdict(status=Status.VERIFIED, engine=TOOL, checks_passed=_permission_checks(case))


def _permission_checks(case: Case) -> tuple[str, ...]:
    return tuple(name for name in ("tool_allowed", "tool_not_blocked") if name in case.checks_passed)


def add_inferred_effects(case: Case, verdict: Verdict) -> Verdict:
    """Return the verdict with the effects implied by an unregistered tool's name and values, and by the addresses."""
    resolved_action = case.resolved_action
    if resolved_action.custom:
        target = text_of(case.action, "target") or resolved_action.name
        by_name = () if resolved_action.effect is None else (Effect(resolved_action.effect, target),)
        verdict = replace(verdict, effects=tuple(dict.fromkeys((*by_name, *verdict.effects, *inferred_effects(case)))))
    if any(effect.kind is EffectKind.NETWORK for effect in verdict.effects):
        return replace(verdict, effects=tuple(dict.fromkeys(with_address_effects(verdict))))
    return verdict


def _file_risk_effects(case: Case) -> Iterator[Effect]:
    """Yield the effects of files named in the call, whatever the tool: a secret read, a program planted."""
    if case.resolved_action.name in INFORMATION_ONLY_TOOLS:
        return
    writes = case.resolved_action.effect is EffectKind.WRITE or WRITING_VERBS & file_words(case.resolved_action.name)
    for index, file in enumerate(named_files(case.action)):
        if index == MAX_FILES:
            yield Effect(EffectKind.UNRESOLVED, f"more than {MAX_FILES} files")
            return
        yield from file_effects(EffectKind.WRITE if writes else EffectKind.READ, file)[1:]


def _unverified_statement(tool: str) -> Verdict:
    """Return the refusal of a SQL tool whose statement is in an unknown parameter and so was not verified."""
    return Verdict(
        status=Status.INCONCLUSIVE,
        engine=TOOL,
        message="send the statement in `parameters.query`, so that it can be verified",
        effects=(Effect(EffectKind.UNRESOLVED, tool),),
        checks_failed=("statement_verified",),
    )


def analyze_path(case: Case) -> Verdict:
    """Return VERIFIED if the path resolves inside the allowed roots; a sensitive file is a SECRET."""
    target = text_of(case.action, "target")
    kind = case.resolved_action.effect or EffectKind.UNRESOLVED
    if not target:
        return _failed(PATH, "path_given", "name the file in `action.target`", kind)
    resolved = paths.resolve(target, case.agent.permissions.allowed_paths)
    if resolved.location is paths.PathLocation.UNRESOLVABLE:
        message = f"the path {quoted(target)} cannot be resolved to one file"
        return _failed(PATH, "path_resolved", message, EffectKind.UNRESOLVED)
    if resolved.location is paths.PathLocation.OUTSIDE:
        allowed = listed(case.agent.permissions.allowed_paths or ())
        message = f"{quoted(target)} is outside the agent's allowed paths: {allowed}"
        return _failed(PATH, "path_allowed", message, kind)
    return Verdict(
        status=Status.VERIFIED,
        engine=PATH,
        effects=file_effects(kind, resolved.path),
        checks_passed=("path_resolved", "path_allowed"),
    )


ANALYZERS = {TOOL: analyze_tool, PATH: analyze_path}


def add_declared_effects(case: Case, verdict: Verdict) -> Verdict:
    """Return the verdict with the effects that the caller declares: they can only add."""
    declared = (Effect(kind, case.resolved_action.name) for kind in case.action.effects)
    return replace(verdict, effects=tuple(dict.fromkeys((*verdict.effects, *declared))))


def block_secret_leaks(case: Case, verdict: Verdict) -> Verdict:
    """Return the verdict, or the refusal of a secret leaving the machine, which is a violation."""
    leaves = any(effect.kind in OUTBOUND for effect in verdict.effects)
    if case.content.secrets and (leaves or case.resolved_action.is_tool):
        kinds = ", ".join(case.content.secrets)
        message = f"the action carries a secret ({kinds}): pass a reference to it instead"
        return _blocked_leak(verdict, message, SECRET_IN_PARAMETERS, Effect(EffectKind.SECRET, kinds))
    if leaves and verdict.status is not Status.BLOCKED and any(map(_reads_secret, verdict.effects)):
        return _blocked_leak(verdict, "the action reads secrets and connects to another machine", SECRET_EXFILTRATION)
    return verdict


def _reads_secret(effect: Effect) -> bool:
    """Return True for a secret file or the whole environment, but not for one variable, which may be a credential."""
    if effect.kind is EffectKind.SECRET:
        return effect.unbounded
    return effect.kind is EffectKind.READ and paths.resolve(effect.target, None).sensitive


def _blocked_leak(verdict: Verdict, message: str, violation: str, *effects: Effect) -> Verdict:
    return Verdict(
        status=Status.BLOCKED,
        engine=verdict.engine,
        message=message,
        effects=(*verdict.effects, *effects),
        violations=(violation,),
        facts=verdict.facts,
        checks_passed=verdict.checks_passed,
        checks_failed=(*verdict.checks_failed, "no_secret_leakage"),
    )


def _failed(engine: str, check: str, message: str, kind: EffectKind) -> Verdict:
    return Verdict(
        status=Status.FAILED, engine=engine, message=message, effects=(Effect(kind),), checks_failed=(check,)
    )
