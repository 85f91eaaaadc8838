"""Judges for what has no engine of its own: a tool by its row, a file by its path."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from qwed.guards import path as paths
from qwed.guards.files import file_effects
from qwed.kernel.case import Case
from qwed.kernel.judging.reach import named_files
from qwed.kernel.judging.stray import has_statement
from qwed.kernel.judging.touched import COPYING, MOST_FILES, MOST_TOLD, MOVING, WRITING, touched, with_reach
from qwed.kernel.tools import ONLY_READ, PATH, TOOL, text_of, words_of
from qwed.words import LEAVING, Effect, EffectKind, Status, Verdict
from qwed.words.tool_name import bare

CARRIED, LEAVES = "secret in parameters", "secret leaving"
"""The violations that are told of what a call carries and reads, whoever judged it."""
WRITES = WRITING | MOVING | COPYING


def judge_tool(case: Case) -> Verdict:
    """VERIFIED when nothing about the call itself is wrong; its effect is its row's."""
    subject = case.subject
    if subject.custom:
        return _judge_custom(case)
    if subject.row.verification_engine == "sql" and has_statement(case.action):
        return _unverified_statement(subject.name)
    target = text_of(case.action, "target")
    effects = () if subject.effect is None else (Effect(subject.effect, target or subject.name),)
    return Verdict(
        status=Status.VERIFIED,
        engine=TOOL,
        effects=tuple(dict.fromkeys((*effects, *islice(_grave_files(case), MOST_TOLD)))),
        checks_passed=("tool_allowed", "tool_not_blocked"),
    )


def _judge_custom(case: Case) -> Verdict:
    """What nobody described is judged by its name here, and by what it touches afterwards, whoever judged it."""
    subject = case.subject
    if subject.told is not None:
        return Verdict(
            status=Status.INCONCLUSIVE,
            engine=TOOL,
            message="nobody can tell what would be run: describe the tool in the registry, or say it plainly",
            effects=(Effect(EffectKind.UNRESOLVED, subject.name),),
            checks_failed=("text_resolved",),
        )
    return Verdict(status=Status.VERIFIED, engine=TOOL, checks_passed=("tool_allowed", "tool_not_blocked"))


def with_touched(case: Case, verdict: Verdict) -> Verdict:
    """The verdict with what a custom tool says it does and would touch, and what the addresses in it make of it."""
    subject = case.subject
    if subject.custom:
        target = text_of(case.action, "target") or subject.name
        said = () if subject.effect is None else (Effect(subject.effect, target),)
        verdict = replace(verdict, effects=tuple(dict.fromkeys((*said, *verdict.effects, *touched(case)))))
    if any(effect.kind is EffectKind.NETWORK for effect in verdict.effects):
        return replace(verdict, effects=tuple(dict.fromkeys(with_reach(verdict))))
    return verdict


def _grave_files(case: Case) -> Iterator[Effect]:
    """What a file that the call names makes of it, whatever the tool: a secret touched, a program planted."""
    if case.subject.name in ONLY_READ:
        return
    writes = case.subject.effect is EffectKind.WRITE or WRITES.intersection(words_of(bare(case.subject.name)))
    for count, file in enumerate(named_files(case.action)):
        if count == MOST_FILES:
            yield Effect(EffectKind.UNRESOLVED, f"more than {MOST_FILES} files")
            return
        yield from file_effects(EffectKind.WRITE if writes else EffectKind.READ, file)[1:]


def _unverified_statement(tool: str) -> Verdict:
    """A statement under a name we do not know is not verified, so a tool that runs SQL is not verified either."""
    return Verdict(
        status=Status.INCONCLUSIVE,
        engine=TOOL,
        message="give the statement in `parameters.query`, so that it can be verified",
        effects=(Effect(EffectKind.UNRESOLVED, tool),),
        checks_failed=("statement_verified",),
    )


def judge_path(case: Case) -> Verdict:
    """VERIFIED when the path resolves inside the allowed roots; a sensitive file is a SECRET."""
    target = text_of(case.action, "target")
    kind = case.subject.effect or EffectKind.UNRESOLVED
    if not target:
        return _failed(PATH, "path_given", "name the file in `action.target`", kind)
    found = paths.resolve(target, case.agent.permissions.allowed_paths)
    if found.place is paths.Place.UNRESOLVABLE:
        return _failed(PATH, "path_resolved", "the path cannot be resolved to one file", EffectKind.UNRESOLVED)
    if found.place is paths.Place.OUTSIDE:
        return _failed(PATH, "path_allowed", "the path is outside the agent's allowed paths", kind)
    return Verdict(
        status=Status.VERIFIED,
        engine=PATH,
        effects=file_effects(kind, found.path),
        checks_passed=("path_resolved", "path_allowed"),
    )


JUDGES = {TOOL: judge_tool, PATH: judge_path}


def with_stated(case: Case, verdict: Verdict) -> Verdict:
    """The verdict with what the asker says the action does: it can only be more."""
    if not case.action.effects:
        return verdict
    stated = (Effect(kind, case.subject.name) for kind in case.action.effects)
    return replace(verdict, effects=tuple(dict.fromkeys((*verdict.effects, *stated))))


def refuse_secrets(case: Case, verdict: Verdict) -> Verdict:
    """The verdict, or the refusal of a secret leaving: a violation, in whatever words it is asked for."""
    leaves = any(effect.kind in LEAVING for effect in verdict.effects)
    if case.content.secrets and (leaves or case.subject.is_tool):
        kinds = ", ".join(case.content.secrets)
        message = f"the action carries a secret ({kinds}): pass a reference to it instead"
        return _leaking(verdict, message, CARRIED, Effect(EffectKind.SECRET, kinds))
    if leaves and verdict.status is not Status.BLOCKED and any(map(_reads_secret, verdict.effects)):
        return _leaking(verdict, "it reads secrets and talks to another machine", LEAVES)
    return verdict


def _reads_secret(effect: Effect) -> bool:
    """A variable in a request is how its sender is recognised; a file or the whole environment is not."""
    if effect.kind is EffectKind.SECRET:
        return effect.unbounded
    return effect.kind is EffectKind.READ and paths.resolve(effect.target, None).sensitive


def _leaking(verdict: Verdict, message: str, violation: str, *effects: Effect) -> Verdict:
    return Verdict(
        status=Status.BLOCKED,
        engine=verdict.engine,
        message=message,
        effects=(*verdict.effects, *effects),
        violations=(violation,),
        checks_passed=verdict.checks_passed,
        checks_failed=(*verdict.checks_failed, "no_secret_leakage"),
    )


def _failed(engine: str, check: str, message: str, kind: EffectKind) -> Verdict:
    return Verdict(
        status=Status.FAILED, engine=engine, message=message, effects=(Effect(kind),), checks_failed=(check,)
    )
