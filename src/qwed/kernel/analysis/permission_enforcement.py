"""Enforcement of an agent's permissions on what an action does, whatever tool it uses (ruling 4.22).

For `allowed_paths` and `allowed_domains` the targets of the effects count, and for a tool every text that it could open
or connect to. For `blocked_tools` the effects of a call count: they must not be those of a blocked action type.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from qwed.guards import path as paths
from qwed.guards.text_scan import strings_in
from qwed.kernel.analysis.addresses import (
    TooManyAddressesError,
    host_of,
    hosts_within,
    recipients_in,
    to_ascii,
    whole_host,
)
from qwed.kernel.analysis.content_scan import name_at
from qwed.kernel.analysis.embedded_values import strings_within
from qwed.kernel.analysis.inferred_effects import MAX_FILES
from qwed.kernel.analysis.parameter_kinds import classify_name
from qwed.kernel.case import Case
from qwed.kernel.request import Action, quoted
from qwed.kernel.tool_verbs import words_of
from qwed.kernel.tools import INFORMATION_ONLY_TOOLS, PATH, SHELL, SQL_TOOLS, text_of
from qwed.model import FILE_EFFECTS, Effect, EffectKind, Status, Verdict
from qwed.model.tool_name import base_tool_name, server_of
from qwed.model.unicode_normal import normalize

_CHECKED_BY_EFFECTS = frozenset({"code", "shell"})
_PATH_LIKE = re.compile(
    r"\s*(?:[/~\\]|\.\.?(?:[/\\]|$)|[A-Za-z]:[\\/]|\$\{?[a-z_]\w*\}?[/\\]|%[a-z_]\w*%[/\\])"
    r"|[/\\]\.\.(?:[/\\]|$)|%(?:25)*(?:2e|2f|5c)",
    re.IGNORECASE,
)
_ADDRESS_LIKE = re.compile(r"://|^\s*(?:https?|wss?|ftp):", re.IGNORECASE)
_FILE_URL = re.compile(r"\s*(?:[a-z][a-z0-9+.-]{0,30}:){0,4}?file:", re.IGNORECASE)
_RECIPIENT = re.compile(
    r"(?:\w+_)?(?:to|cc|bcc|recipients?|reply_to|emails?|mail|mailto|e_mail|attendees?|invitees?|participants?|guests?"
    r"|(?:to|email|mail)_address(?:es)?|receivers?|subscribers?|forward_to|send_to|addressees?|audience|contacts?)"
)


def enforce_allowlists(case: Case, verdict: Verdict) -> Verdict:
    """Return the verdict, or a refusal if a file or an address is outside the agent's allowlists."""
    allowed = case.agent.permissions
    if case.resolved_action.name in INFORMATION_ONLY_TOOLS:
        return verdict
    if allowed.allowed_paths is not None:
        problem = _path_problem(list(_files_of(case, verdict)), allowed.allowed_paths)
        if problem:
            return _refused(verdict, "path_allowed", problem)
    if allowed.allowed_domains is not None:
        problem = _domain_problem(case, verdict, allowed.allowed_domains)
        if problem:
            return _refused(verdict, "domain_allowed", problem)
    return verdict


def _path_problem(files: list[str], allowed: tuple[str, ...]) -> str:
    """Return a message on the first file outside the allowed paths, or the empty string."""
    if len(files) > MAX_FILES:
        return f"the action names more than {MAX_FILES} files: divide it"
    outside = next((file for file in files if not _is_inside(file, allowed)), None)
    return "" if outside is None else f"{quoted(outside)} is outside the agent's allowed paths: {listed(allowed)}"


def _files_of(case: Case, verdict: Verdict) -> Iterable[str]:
    if case.resolved_action.analyzer in _CHECKED_BY_EFFECTS:
        yield from (effect.target for effect in verdict.effects if effect.kind in FILE_EFFECTS and effect.target)
    if case.action.target and case.resolved_action.is_tool and _is_path_like(case.action.target):
        yield case.action.target
    for path, text in _openable_texts(case):
        name = classify_name(name_at(path))
        named = name.file and text != name_at(path)
        url = _FILE_URL.match(text)
        if url is not None:
            yield "/" + text[url.end() :].lstrip("/\\")
        elif name.content and not _ONE_WORD.fullmatch(text, 0, paths.MAX_LENGTH):
            continue  # the content that is written or sent, not its destination
        elif (named or _is_path_like(text)) and not _ADDRESS_LIKE.search(text):
            yield _one_slash(text)


def _one_slash(text: str) -> str:
    """Return `//etc/passwd` as a file system reads it."""
    return "/" + text.lstrip("/") if text.startswith("//") else text


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
    for path, text, _complete in strings_within(case.action.parameters):
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


def _domain_problem(case: Case, verdict: Verdict, allowed: tuple[str, ...]) -> str:
    """Return a message on the first address outside the allowed domains, or the empty string."""
    domains = tuple(to_ascii(domain) or domain.lower() for domain in allowed)
    try:
        addresses = _addresses_of(case, verdict)
        outside = next((address for address in addresses if not _is_domain_allowed(address, domains)), None)
    except TooManyAddressesError:
        return "a text names more addresses than are checked: divide the action"
    if outside is None:
        return ""
    return f"{quoted(host_of(outside) or outside)} is not in the agent's allowed domains: {listed(allowed)}"


def _addresses_of(case: Case, verdict: Verdict) -> Iterator[str]:
    yield from (effect.target for effect in verdict.effects if effect.kind is EffectKind.NETWORK)
    resolved_action = case.resolved_action
    target = case.action.target if resolved_action.is_tool else None
    texts = [*([("target", target)] if target else []), *_openable_texts(case)]
    # A tool that only reads sends nothing: an address is what it looks for.
    sends = resolved_action.effect is not EffectKind.READ
    for path, text in texts:
        if not _FILE_URL.match(text):
            yield from _addresses_in(name_at(path), text, sends=sends)


def _addresses_in(key: str, text: str, *, sends: bool) -> Iterator[str]:
    name = classify_name(key)
    addresses = list(hosts_within(text))
    yield from addresses
    if sends and text != key and _RECIPIENT.fullmatch(name.plain):
        yield from recipients_in(text)
    elif sends and _MAIL_ADDRESS.fullmatch(text.strip()):
        yield text.strip().rpartition("@")[2]
    if addresses or text == key:
        return
    if name.url or name.host:
        yield text
    elif not name.content:
        host = whole_host(text)
        if host is not None:
            yield host


_MAIL_ADDRESS = re.compile(r"(?:mailto:)?[^\s<>@,;\"]{1,64}@[^\s<>@,;/\"]{1,255}", re.IGNORECASE)


def _is_inside(file: str, allowed: tuple[str, ...]) -> bool:
    return paths.resolve(file, allowed).location is paths.PathLocation.INSIDE


def _is_domain_allowed(address: str, allowed: tuple[str, ...]) -> bool:
    host = host_of(address)
    return host is not None and any(host == domain or host.endswith(f".{domain}") for domain in allowed)


def _refused(verdict: Verdict, check: str, message: str) -> Verdict:
    return Verdict(
        status=Status.FAILED if verdict.status is not Status.BLOCKED else Status.BLOCKED,
        engine=verdict.engine,
        message=message,
        effects=verdict.effects or (Effect(EffectKind.UNRESOLVED),),
        violations=verdict.violations,
        facts=verdict.facts,
        checks_passed=verdict.checks_passed,
        checks_failed=tuple(dict.fromkeys((check, *verdict.checks_failed))),
    )


_MAX_LISTED = 5


def listed(allowed: Sequence[str]) -> str:
    """Return what is allowed, for a message."""
    if not allowed:
        return "there are none"
    more = f" and {len(allowed) - _MAX_LISTED} more" if len(allowed) > _MAX_LISTED else ""
    return ", ".join(quoted(one) for one in allowed[:_MAX_LISTED]) + more


_E = EffectKind
_MAIL_WORDS = frozenset(
    {"email", "emails", "mail", "mails", "gmail", "smtp", "outlook", "sendgrid", "mailgun", "ses", "imap", "postmark"}
)
_DATABASE_CLIENT = re.compile(
    r"(?:^|[\s;&|(/`])(?:psql|mysql|mariadb|sqlite3?|duckdb|sqlcmd|cqlsh|bq|snowsql|clickhouse(?:-client)?|mongosh)"
    r"(?=[\s;|&)]|$)"
)
_OF_FILES = frozenset({PATH, SHELL, "code"})
_CHANGES = frozenset({_E.WRITE, _E.DELETE, _E.ADMIN})


class _CallEffects(NamedTuple):
    """Analyzer and effects of one call."""

    case: Case
    analyzer: str
    kinds: frozenset[EffectKind]

    def is_on_files(self, kind: EffectKind) -> bool:
        """Return True if a file is the object of this effect."""
        if kind not in self.kinds:
            return False
        return self.analyzer in _OF_FILES or next(iter(named_files(self.case.action)), None) is not None

    def runs_sql(self) -> bool:
        """Return True if a statement is run, also by a client in a command."""
        if self.analyzer != SHELL:
            return self.analyzer == "sql"
        executable_text = self.case.resolved_action.executable_text
        command = text_of(self.case.action, "query") if executable_text is None else executable_text.normalized
        return _DATABASE_CLIENT.search(command) is not None

    def is_mail(self) -> bool:
        """Return True if a message leaves by mail."""
        name = self.case.resolved_action.name
        words = (*words_of(base_tool_name(name)), *words_of(server_of(name) or ""))
        is_mail = not _MAIL_WORDS.isdisjoint(words) or {"to", "subject"} <= {
            key.lower() for key in self.case.action.parameters or {}
        }
        return _E.COMMUNICATE in self.kinds and is_mail


_EQUIVALENTS: dict[str, Callable[[_CallEffects], bool]] = {
    **dict.fromkeys(SQL_TOOLS, _CallEffects.runs_sql),
    "database_write": lambda call: call.runs_sql() and not _CHANGES.isdisjoint(call.kinds),
    "shell_command": lambda call: call.analyzer == SHELL,
    "execute_code": lambda call: call.analyzer == "code",
    "file_read": lambda call: call.is_on_files(_E.READ),
    "read_file": lambda call: call.is_on_files(_E.READ),
    "file_write": lambda call: call.is_on_files(_E.WRITE),
    "file_delete": lambda call: call.is_on_files(_E.DELETE),
    "delete_files": lambda call: call.is_on_files(_E.DELETE),
    "send_email": _CallEffects.is_mail,
    "api_call": lambda call: _E.NETWORK in call.kinds,
}
"""Test for each action type that can be blocked: does the call have the same effects?"""


def refuse_blocked_equivalent(case: Case, verdict: Verdict) -> Verdict:
    """Return the verdict, or a refusal if the call does what a blocked action type does."""
    call = _CallEffects(case, case.resolved_action.analyzer, frozenset(effect.kind for effect in verdict.effects))
    blocked = next(
        (name for name, has_effects in _EQUIVALENTS.items() if case.agent.blocks(name) and has_effects(call)), None
    )
    if blocked is None:
        return verdict
    return _refused(verdict, "tool_not_blocked", f"`{blocked}` is blocked for this agent, and this call does the same")
