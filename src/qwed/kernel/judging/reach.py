"""Ruling 4.22: the allowed paths and domains hold for whatever an action touches, however it is called.

What counts is what the action would do (the targets of its effects) and, for a tool, every text of it that a tool
could open or connect to.
"""

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from qwed.guards import path as paths
from qwed.guards.text import strings_in
from qwed.kernel.case import Case
from qwed.kernel.judging.content import name_at
from qwed.kernel.judging.naming import read_name
from qwed.kernel.judging.touched import MOST_FILES
from qwed.kernel.request import Action
from qwed.kernel.tools import ONLY_READ
from qwed.words import ON_FILES, Effect, EffectKind, Status, Verdict
from qwed.words.normal import normalize

_JUDGED_BY_EFFECTS = frozenset({"code", "shell"})
_PATH_LIKE = re.compile(
    r"\s*(?:[/~\\]|\.\.?(?:[/\\]|$)|[A-Za-z]:[\\/]|file:)|[/\\]\.\.(?:[/\\]|$)|%(?:25)*(?:2e|2f|5c)", re.IGNORECASE
)
_ADDRESS_LIKE = re.compile(r"://|^\s*(?:https?|wss?|ftp):|^\s*//", re.IGNORECASE)
_HOST = re.compile(r"[A-Za-z0-9.-]+")
_MISREAD = re.compile(r"[\x00-\x20\\@]|[^\x00-\x7f]")


def held_to_reach(case: Case, verdict: Verdict) -> Verdict:
    """The verdict, or the one that says what is out of the agent's reach."""
    allowed = case.agent.permissions
    if case.subject.name in ONLY_READ:
        return verdict
    if allowed.allowed_paths is not None:
        files = list(_files(case, verdict))
        if len(files) > MOST_FILES or not all(_inside(file, allowed.allowed_paths) for file in files):
            return _out_of_reach(verdict, "path_allowed", "a file is outside the agent's allowed paths")
    if allowed.allowed_domains is not None:
        addresses = list(_addresses(case, verdict))
        if not all(_domain_allowed(address, allowed.allowed_domains) for address in addresses):
            return _out_of_reach(verdict, "domain_allowed", "an address is not in the agent's allowed domains")
    return verdict


def _files(case: Case, verdict: Verdict) -> Iterable[str]:
    if case.subject.judge in _JUDGED_BY_EFFECTS:
        yield from (effect.target for effect in verdict.effects if effect.kind in ON_FILES and effect.target)
    if case.action.target and case.subject.is_tool and _is_path_like(case.action.target):
        yield case.action.target
    for path, text in _texts(case):
        name = read_name(name_at(path))
        named = name.file and text != name_at(path)
        if text.lower().startswith("file:"):
            yield "/" + text[5:].lstrip("/")
        elif name.content and not _ONE_WORD.fullmatch(text, 0, paths.MAX_LENGTH):
            continue  # what is written or sent, and not where to
        elif (named or _is_path_like(text)) and not _ADDRESS_LIKE.search(text):
            yield text


def _is_path_like(text: str) -> bool:
    if _PATH_LIKE.search(text):
        return True
    return not text.isascii() and _PATH_LIKE.search(normalize("NFKC", text)) is not None


def _texts(case: Case) -> Iterable[tuple[str, str]]:
    """The texts that a tool could open or connect to; what is run was judged by what it would do."""
    subject = case.subject
    if not subject.is_tool or (subject.judge == "shell" and not subject.custom):
        return
    told = subject.told
    for path, text in strings_in(case.action.parameters):
        if told is None or (text not in (told.said, told.text) and not read_name(name_at(path)).command):
            yield path, text


_ONE_WORD = re.compile(r"(?=.*[/\\])\S+")


def named_files(action: Action) -> Iterable[str]:
    """The texts of a tool call that name a file, by the name they stand under or by being one path and no more."""
    named = [("target", action.target)] if action.target else []
    for path, text in (*named, *strings_in(action.parameters)):
        name = name_at(path)
        local = "://" not in text or text.lower().startswith("file:")
        if local and ((read_name(name).file and text != name) or _ONE_WORD.fullmatch(text, 0, paths.MAX_LENGTH)):
            yield text


def _addresses(case: Case, verdict: Verdict) -> Iterable[str]:
    yield from (effect.target for effect in verdict.effects if effect.kind is EffectKind.NETWORK)
    if case.action.target and case.subject.is_tool and _ADDRESS_LIKE.search(case.action.target):
        yield case.action.target
    for path, text in _texts(case):
        name = read_name(name_at(path))
        named = (name.url or name.host) and text != name_at(path)
        if (named or _ADDRESS_LIKE.search(text)) and not text.lower().startswith("file:"):
            yield text


def _inside(file: str, allowed: tuple[str, ...]) -> bool:
    return paths.resolve(file, allowed).place is paths.Place.INSIDE


def _domain_allowed(address: str, allowed: tuple[str, ...]) -> bool:
    host = _host_of(address)
    return host is not None and any(host == domain.lower() or host.endswith("." + domain.lower()) for domain in allowed)


def _host_of(address: str) -> str | None:
    """The host every reader of this address agrees on; None where readers differ, as over `\\` and `@`."""
    if _MISREAD.search(address):
        return None
    try:
        parts = urlsplit(address if "//" in address else f"//{address}")
        host = parts.hostname
    except ValueError:
        return None
    return host if host is not None and _HOST.fullmatch(host) and not parts.path.startswith(":") else None


def _out_of_reach(verdict: Verdict, check: str, message: str) -> Verdict:
    return Verdict(
        status=Status.FAILED if verdict.status is not Status.BLOCKED else Status.BLOCKED,
        engine=verdict.engine,
        message=message,
        effects=verdict.effects or (Effect(EffectKind.UNRESOLVED),),
        violations=verdict.violations,
        checks_passed=verdict.checks_passed,
        checks_failed=(check, *verdict.checks_failed),
    )
