"""Enforcement of `allowed_paths` and `allowed_domains`, for every kind of action (ruling 4.22).

The targets of the action's effects count, and for a tool every text that it could open or connect to.
"""

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from qwed.guards import path as paths
from qwed.guards.text_scan import strings_in
from qwed.kernel.analysis.content_scan import name_at
from qwed.kernel.analysis.inferred_effects import MAX_FILES
from qwed.kernel.analysis.parameter_kinds import classify_name
from qwed.kernel.case import Case
from qwed.kernel.request import Action
from qwed.kernel.tools import INFORMATION_ONLY_TOOLS
from qwed.model import FILE_EFFECTS, Effect, EffectKind, Status, Verdict
from qwed.model.unicode_normal import normalize

_CHECKED_BY_EFFECTS = frozenset({"code", "shell"})
_PATH_LIKE = re.compile(
    r"\s*(?:[/~\\]|\.\.?(?:[/\\]|$)|[A-Za-z]:[\\/]|file:)|[/\\]\.\.(?:[/\\]|$)|%(?:25)*(?:2e|2f|5c)", re.IGNORECASE
)
_ADDRESS_LIKE = re.compile(r"://|^\s*(?:https?|wss?|ftp):|^\s*//", re.IGNORECASE)
_HOST = re.compile(r"[A-Za-z0-9.-]+")
_AMBIGUOUS_CHARACTER = re.compile(r"[\x00-\x20\\@]|[^\x00-\x7f]")


def enforce_allowlists(case: Case, verdict: Verdict) -> Verdict:
    """Return the verdict, or a refusal if a file or an address is outside the agent's allowlists."""
    allowed = case.agent.permissions
    if case.resolved_action.name in INFORMATION_ONLY_TOOLS:
        return verdict
    if allowed.allowed_paths is not None:
        files = list(_files_of(case, verdict))
        if len(files) > MAX_FILES or not all(_is_inside(file, allowed.allowed_paths) for file in files):
            return _not_allowed(verdict, "path_allowed", "a file is outside the agent's allowed paths")
    if allowed.allowed_domains is not None:
        addresses = list(_addresses_of(case, verdict))
        if not all(_is_domain_allowed(address, allowed.allowed_domains) for address in addresses):
            return _not_allowed(verdict, "domain_allowed", "an address is not in the agent's allowed domains")
    return verdict


def _files_of(case: Case, verdict: Verdict) -> Iterable[str]:
    if case.resolved_action.analyzer in _CHECKED_BY_EFFECTS:
        yield from (effect.target for effect in verdict.effects if effect.kind in FILE_EFFECTS and effect.target)
    if case.action.target and case.resolved_action.is_tool and _is_path_like(case.action.target):
        yield case.action.target
    for path, text in _openable_texts(case):
        name = classify_name(name_at(path))
        named = name.file and text != name_at(path)
        if text.lower().startswith("file:"):
            yield "/" + text[5:].lstrip("/")
        elif name.content and not _ONE_WORD.fullmatch(text, 0, paths.MAX_LENGTH):
            continue  # the content that is written or sent, not its destination
        elif (named or _is_path_like(text)) and not _ADDRESS_LIKE.search(text):
            yield text


def _is_path_like(text: str) -> bool:
    if _PATH_LIKE.search(text):
        return True
    return not text.isascii() and _PATH_LIKE.search(normalize("NFKC", text)) is not None


def _openable_texts(case: Case) -> Iterable[tuple[str, str]]:
    """Yield the texts that a tool could open or connect to; executed text was analyzed by its effects."""
    resolved_action = case.resolved_action
    if not resolved_action.is_tool or (resolved_action.analyzer == "shell" and not resolved_action.custom):
        return
    executable_text = resolved_action.executable_text
    for path, text in strings_in(case.action.parameters):
        if executable_text is None or (
            text not in (executable_text.original, executable_text.normalized)
            and not classify_name(name_at(path)).command
        ):
            yield path, text


_ONE_WORD = re.compile(r"(?=.*[/\\])\S+")


def named_files(action: Action) -> Iterable[str]:
    """Yield the texts of a tool call that name a file, by the parameter's name or because the text is one path."""
    named = [("target", action.target)] if action.target else []
    for path, text in (*named, *strings_in(action.parameters)):
        name = name_at(path)
        local = "://" not in text or text.lower().startswith("file:")
        if local and ((classify_name(name).file and text != name) or _ONE_WORD.fullmatch(text, 0, paths.MAX_LENGTH)):
            yield text


def _addresses_of(case: Case, verdict: Verdict) -> Iterable[str]:
    yield from (effect.target for effect in verdict.effects if effect.kind is EffectKind.NETWORK)
    if case.action.target and case.resolved_action.is_tool and _ADDRESS_LIKE.search(case.action.target):
        yield case.action.target
    for path, text in _openable_texts(case):
        name = classify_name(name_at(path))
        named = (name.url or name.host) and text != name_at(path)
        if (named or _ADDRESS_LIKE.search(text)) and not text.lower().startswith("file:"):
            yield text


def _is_inside(file: str, allowed: tuple[str, ...]) -> bool:
    return paths.resolve(file, allowed).location is paths.PathLocation.INSIDE


def _is_domain_allowed(address: str, allowed: tuple[str, ...]) -> bool:
    host = _host_of(address)
    return host is not None and any(host == domain.lower() or host.endswith("." + domain.lower()) for domain in allowed)


def _host_of(address: str) -> str | None:
    r"""Return the host on which all URL parsers agree; None where they differ, as over `\\` and `@`."""
    if _AMBIGUOUS_CHARACTER.search(address):
        return None
    try:
        parts = urlsplit(address if "//" in address else f"//{address}")
        host = parts.hostname
    except ValueError:
        return None
    return host if host is not None and _HOST.fullmatch(host) and not parts.path.startswith(":") else None


def _not_allowed(verdict: Verdict, check: str, message: str) -> Verdict:
    return Verdict(
        status=Status.FAILED if verdict.status is not Status.BLOCKED else Status.BLOCKED,
        engine=verdict.engine,
        message=message,
        effects=verdict.effects or (Effect(EffectKind.UNRESOLVED),),
        violations=verdict.violations,
        checks_passed=verdict.checks_passed,
        checks_failed=(check, *verdict.checks_failed),
    )
