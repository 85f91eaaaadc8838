"""Judges for what has no engine of its own: a tool by its row, a file by its path, a command by the shell guard."""

import re
from urllib.parse import urlsplit

from qwed.guards import path as paths
from qwed.guards import shell
from qwed.guards.text import strings_in
from qwed.kernel.case import Case
from qwed.kernel.content import Content
from qwed.kernel.tools import PATH, SHELL, TOOL, text_of
from qwed.words import Effect, EffectKind, Status, Verdict


def judge_tool(case: Case) -> Verdict:
    """VERIFIED when nothing about the call itself is wrong; its effect is its row's."""
    subject = case.subject
    target = text_of(case.action, "target")
    refusal = _refuse_addresses(case, target) or _refuse_files(case) or _refuse_hidden_sql(case)
    if refusal is not None:
        return refusal
    effects = () if subject.effect is None else (Effect(subject.effect, target or subject.name),)
    return Verdict(
        status=Status.VERIFIED, engine=TOOL, effects=effects, checks_passed=("tool_allowed", "tool_not_blocked")
    )


def _refuse_addresses(case: Case, target: str) -> Verdict | None:
    allowed = case.agent.permissions.allowed_domains
    if allowed is None:
        return None
    addresses = [text for _path, text in strings_in(case.action.parameters) if "://" in text[:32]]
    if case.subject.effect is EffectKind.NETWORK:
        addresses.append(target)
    if all(_domain_allowed(address, allowed) for address in addresses):
        return None
    return _failed(TOOL, "domain_allowed", "an address is not in the agent's allowed domains", EffectKind.NETWORK)


def _refuse_files(case: Case) -> Verdict | None:
    """Whatever a tool calls its file, it is held to the allowed paths."""
    allowed, parameters = case.agent.permissions.allowed_paths, case.action.parameters or {}
    if allowed is None:
        return None
    named = [value for name, value in parameters.items() if name in FILE_NAMES and isinstance(value, str)]
    if all(paths.resolve(file, allowed).place is paths.Place.INSIDE for file in named):
        return None
    return _failed(TOOL, "path_allowed", "a file is outside the agent's allowed paths", EffectKind.UNRESOLVED)


def _refuse_hidden_sql(case: Case) -> Verdict | None:
    """A statement under a name we do not know is not verified, so a tool that runs SQL is not verified either."""
    if case.subject.row.verification_engine != "sql":
        return None
    if not any(_STATEMENT.match(text) for _path, text in strings_in(case.action.parameters)):
        return None
    return Verdict(
        status=Status.INCONCLUSIVE,
        engine=TOOL,
        message="give the statement in `parameters.query`, so that it can be verified",
        effects=(Effect(EffectKind.UNRESOLVED, case.subject.name),),
        checks_failed=("statement_verified",),
    )


FILE_NAMES = frozenset({"path", "file", "filepath", "filename", "file_path"})
_VERBS = "select|insert|update|delete|drop|alter|truncate|create|grant|revoke|with|exec|execute|merge|call|replace"
_STATEMENT = re.compile(rf"\s*(?:{_VERBS})\s+\S", re.IGNORECASE)


def _domain_allowed(url: str, allowed: tuple[str, ...]) -> bool:
    host = _host_of(url)
    return host is not None and any(host == domain.lower() or host.endswith("." + domain.lower()) for domain in allowed)


def _host_of(url: str) -> str | None:
    """The host every reader of this address agrees on; None where readers differ, as over `\\` and `@`."""
    if _MISREAD.search(url):
        return None
    try:
        return urlsplit(url if "://" in url else f"//{url}").hostname
    except ValueError:
        return None


_MISREAD = re.compile(r"[\x00-\x20\\@]|[^\x00-\x7f]")


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
    effects = [Effect(kind, found.path)]
    if found.sensitive:
        effects.append(Effect(EffectKind.SECRET, found.path))
    return Verdict(
        status=Status.VERIFIED, engine=PATH, effects=tuple(effects), checks_passed=("path_resolved", "path_allowed")
    )


def judge_shell(case: Case) -> Verdict:
    """What the command would do; what cannot be told is UNCERTAIN, what must never happen is BLOCKED."""
    command = text_of(case.action, "query")
    if not command:
        return _failed(SHELL, "command_given", "give the command in `action.query`", EffectKind.UNRESOLVED)
    found = shell.findings(command)
    if found.violations:
        return Verdict(
            status=Status.BLOCKED,
            engine=SHELL,
            message="; ".join(found.violations),
            effects=found.effects,
            violations=found.violations,
            checks_failed=("no_dangerous_calls",),
        )
    if not _paths_allowed(found.effects, case.agent.permissions.allowed_paths):
        return _failed(
            SHELL, "path_allowed", "the command touches a path outside the agent's allowed paths", EffectKind.UNRESOLVED
        )
    unresolved = any(effect.kind is EffectKind.UNRESOLVED for effect in found.effects)
    return Verdict(
        status=Status.INCONCLUSIVE if unresolved else Status.VERIFIED,
        engine=SHELL,
        message="part of the command cannot be resolved" if unresolved else "",
        effects=found.effects,
        checks_passed=("no_dangerous_calls",),
        checks_failed=("command_resolved",) if unresolved else (),
    )


_ON_FILES = frozenset({EffectKind.READ, EffectKind.WRITE, EffectKind.DELETE})


def _paths_allowed(effects: tuple[Effect, ...], allowed: tuple[str, ...] | None) -> bool:
    if allowed is None:
        return True
    targets = [effect.target for effect in effects if effect.kind in _ON_FILES and effect.target]
    return all(paths.resolve(target, allowed).place is paths.Place.INSIDE for target in targets)


JUDGES = {TOOL: judge_tool, PATH: judge_path, SHELL: judge_shell}


def refuse_secrets(verdict: Verdict, content: Content) -> Verdict:
    """A secret leaving is a violation, whatever the tool."""
    kinds = ", ".join(content.secrets)
    return Verdict(
        status=Status.BLOCKED,
        engine=verdict.engine,
        message=f"the parameters carry a secret ({kinds}): pass a reference to it instead",
        effects=(*verdict.effects, Effect(EffectKind.SECRET, kinds)),
        violations=("secret in parameters",),
        checks_passed=verdict.checks_passed,
        checks_failed=(*verdict.checks_failed, "no_secret_leakage"),
    )


def _failed(engine: str, check: str, message: str, kind: EffectKind) -> Verdict:
    return Verdict(
        status=Status.FAILED, engine=engine, message=message, effects=(Effect(kind),), checks_failed=(check,)
    )
