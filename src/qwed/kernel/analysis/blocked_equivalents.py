"""Refusal of calls with the same effect as a blocked action type, through whatever tool."""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from qwed.kernel.analysis.allowlists import named_files
from qwed.kernel.case import Case
from qwed.kernel.tool_verbs import words_of
from qwed.kernel.tools import PATH, SHELL, SQL_TOOLS, text_of
from qwed.model import Effect, EffectKind, Status, Verdict
from qwed.model.tool_name import base_tool_name, server_of

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
    if not case.agent.permissions.blocked_tools:
        return verdict
    call = _CallEffects(case, case.resolved_action.analyzer, _kinds(verdict.effects))
    blocked = next(
        (name for name, has_effects in _EQUIVALENTS.items() if case.agent.blocks(name) and has_effects(call)), None
    )
    if blocked is None:
        return verdict
    return Verdict(
        status=Status.BLOCKED if verdict.status is Status.BLOCKED else Status.FAILED,
        engine=verdict.engine,
        message=f"`{blocked}` is blocked for this agent, and this call does the same",
        effects=verdict.effects or (Effect(EffectKind.UNRESOLVED),),
        violations=verdict.violations,
        checks_passed=verdict.checks_passed,
        checks_failed=("tool_not_blocked", *verdict.checks_failed),
    )


def _kinds(effects: Iterable[Effect]) -> frozenset[EffectKind]:
    return frozenset(effect.kind for effect in effects)
