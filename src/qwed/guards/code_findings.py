"""Result of a code analysis in any language: issues, effects and unresolved names, without duplicates."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from qwed.guards.file_effects import file_effects
from qwed.model import FILE_EFFECTS, OUTBOUND, Effect, EffectKind
from qwed.model.facts import CodeFacts, SqlFacts, bounded, code_with_effects

MAX_FINDINGS = 200
MAX_TARGET = 200
ENVIRONMENT = "environment"
"""Target of an effect that reaches all environment variables, secrets included."""
_WHOLE_ENVIRONMENT = frozenset({ENVIRONMENT, "process.env"})


LANGUAGES = ("python", "javascript", "typescript", "bash", "sql")
"""Languages the code engine analyses."""
LANGUAGE_ALIASES = {
    "py": "python",
    "python3": "python",
    "js": "javascript",
    "jsx": "javascript",
    "node": "javascript",
    "ts": "typescript",
    "tsx": "typescript",
    "sh": "bash",
    "shell": "bash",
}


class ViolationKind(StrEnum):
    """Reasons why code is refused at every trust level."""

    PROCESS = "process_start"
    DYNAMIC = "dynamic_code"
    DESERIALISE = "deserialisation"
    REFLECT = "reflection"
    OBFUSCATE = "obfuscation"


VIOLATION_DESCRIPTIONS: dict[ViolationKind, tuple[str, str]] = {
    ViolationKind.PROCESS: ("starts another process", "use a library call that does the work inside the program"),
    ViolationKind.DYNAMIC: (
        "builds or imports code while it runs",
        "write the code out, or parse data with a data parser",
    ),
    ViolationKind.DESERIALISE: ("rebuilds objects from bytes, which runs code", "use json for data"),
    ViolationKind.REFLECT: ("reaches the interpreter's own objects", "name the attribute or value directly"),
    ViolationKind.OBFUSCATE: ("hides what the code says", "write the text out plainly"),
}
CHECK_OF: dict[ViolationKind, str] = {
    ViolationKind.PROCESS: "no_dangerous_calls",
    ViolationKind.DYNAMIC: "no_dynamic_code",
    ViolationKind.DESERIALISE: "no_deserialisation",
    ViolationKind.REFLECT: "no_reflection",
    ViolationKind.OBFUSCATE: "no_dynamic_code",
}


class Issue(NamedTuple):
    """One reason to refuse the code, with its line number."""

    severity: str
    type: str
    pattern: str
    description: str
    line_number: int
    recommendation: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeFindings:
    """All effects of the code and all reasons to refuse it."""

    effects: tuple[Effect, ...] = ()
    effect_lines: tuple[int, ...] = ()
    """Line of the first occurrence of each effect, 0 if unknown."""
    effect_names: tuple[str, ...] = ()
    """Name of the call that has each effect, "" if it is the target itself."""
    violations: tuple[str, ...] = ()
    issues: tuple[Issue, ...] = ()
    unresolved: tuple[str, ...] = ()
    """Names with an unknown effect, and lookups."""
    lookups: tuple[str, ...] = ()
    """Uses of values by computed names, and of modules as values: any name may be meant."""
    syntax_error: str | None = None
    """Reason why the code cannot be parsed."""
    error_line: int | None = None
    imports: tuple[str, ...] = field(default=(), compare=False)
    """Modules that the code imports."""
    has_unknown_targets: bool = field(default=False, compare=False)
    """True if an effect may have further targets than the ones that are listed."""

    @property
    def resolvable_elsewhere(self) -> tuple[str, ...]:
        """Names and modules that are unknown here, but say which name they are."""
        return tuple(name for name in self.unresolved if name not in self.lookups)

    def called_names(self, issues: Iterable["Issue"]) -> tuple[str, ...]:
        """Return the names of the calls that have the effects of these issues."""
        patterns = {issue.pattern for issue in issues}
        names = {
            name.replace("()", ""): None
            for effect, name in zip(self.effects, self.effect_names, strict=False)
            if name and name != effect.target and _pattern_of(effect) in patterns
        }
        return tuple(names)


def _pattern_of(effect: Effect) -> str:
    return f"{effect.kind.value} {effect.target}".strip()


@dataclass(slots=True)
class CodeReport:
    """Findings in the order they were added."""

    issues: dict[Issue, None] = field(default_factory=dict)
    effects: dict[Effect, int] = field(default_factory=dict)
    """Effects, each with the line of its first occurrence."""
    unresolved: dict[str, None] = field(default_factory=dict)
    lookups: dict[str, None] = field(default_factory=dict)
    names: dict[Effect, str] = field(default_factory=dict)
    """Name of the call that has each effect."""
    subject: str = ""
    """Name of the call that is being judged."""
    imports: dict[str, None] = field(default_factory=dict)
    has_unknown_targets: bool = False

    def add_violation(self, kind: ViolationKind, pattern: str, line: int) -> None:
        """Add a reason to refuse the code."""
        if len(self.issues) < MAX_FINDINGS:
            description, recommendation = VIOLATION_DESCRIPTIONS[kind]
            issue = Issue("critical", kind.value, pattern[:MAX_TARGET], description, line, recommendation)
            self.issues[issue] = None

    def add_effect(self, kind: EffectKind, target: str, line: int = 0) -> None:
        """Add an effect of the code; UNRESOLVED if the effect is not known."""
        self.has_unknown_targets |= len(target) > MAX_TARGET or _SEVERAL in target
        target = target[:MAX_TARGET]
        # A truncated list still holds at least one effect of each kind, so the most severe kind is never lost.
        if len(self.effects) >= MAX_FINDINGS and any(effect.kind is kind for effect in self.effects):
            self.has_unknown_targets = True
            return
        if kind is EffectKind.SECRET and target in _WHOLE_ENVIRONMENT:
            self._add(Effect(kind, target, unbounded=True), line)
            return
        for effect in file_effects(kind, target):
            self._add(effect, line)
        if kind is EffectKind.UNRESOLVED:
            self.unresolved[target] = None

    def add_lookup(self, target: str, line: int) -> None:
        """Add a use of a value by a computed name, or of a module as a value."""
        self.add_effect(EffectKind.UNRESOLVED, target, line)
        self.lookups[target[:MAX_TARGET]] = None

    def _add(self, effect: Effect, line: int) -> None:
        self.effects.setdefault(effect, line)
        self.names.setdefault(effect, self.subject)

    def findings(self) -> CodeFindings:
        """Return the findings, with the issues sorted by line."""
        issues = tuple(sorted(self.issues, key=lambda issue: (issue.line_number, issue.pattern)))
        return CodeFindings(
            effects=tuple(self.effects),
            effect_lines=tuple(self.effects.values()),
            effect_names=tuple(self.names[effect] for effect in self.effects),
            violations=tuple(dict.fromkeys(f"Dangerous pattern: {issue.pattern}" for issue in issues)),
            issues=issues,
            unresolved=tuple(self.unresolved),
            lookups=tuple(self.lookups),
            imports=tuple(self.imports),
            has_unknown_targets=self.has_unknown_targets,
        )


def code_facts(findings: CodeFindings) -> CodeFacts:
    """Return the facts of code: its imports and its effects."""
    imports, all_imports = bounded(findings.imports)
    names = findings.effect_names or ("",) * len(findings.effects)
    known = all(
        effect.kind not in _WITH_TARGET or name not in ("", effect.target)
        for effect, name in zip(findings.effects, names, strict=False)
    )
    is_certain = known and not (findings.violations or findings.unresolved or findings.has_unknown_targets)
    relative = any(name.startswith(".") for name in imports)
    complete = is_certain and findings.syntax_error is None and all_imports and not relative
    return code_with_effects(findings.effects, complete=complete, imports=imports)


def sql_facts(findings: CodeFindings) -> SqlFacts | None:
    """Return the facts of statements in code, which are not read; None if the code imports no database client."""
    roots = {name.partition(".")[0] for name in findings.imports}
    return None if roots.isdisjoint(_DATABASE_CLIENTS) else SqlFacts(complete=False)


_DATABASE_CLIENTS = frozenset(
    """
    sqlite3 aiosqlite duckdb psycopg psycopg2 asyncpg pg8000 pymysql MySQLdb mysql aiomysql mariadb pyodbc pymssql
    cx_Oracle oracledb sqlalchemy sqlmodel peewee records databases snowflake clickhouse_connect clickhouse_driver
    trino prestodb django pg pg-promise postgres mysql2 sqlite better-sqlite3 mssql tedious knex sequelize typeorm
    """.split()  # noqa: SIM905 - a table of words reads better than a list of literals
)
"""Modules that send statements to a database."""
_SEVERAL = " | "
"""Separates the possible targets of one call."""
_WITH_TARGET = FILE_EFFECTS | OUTBOUND
"""Effects with a target that is known only if it is not the name of the call."""


def effect_issues(findings: CodeFindings, reads: bool = False) -> tuple[Issue, ...]:
    """Return an issue for every effect, because standalone code may only compute; exempt reads if `reads` is true."""
    lines = findings.effect_lines or (0,) * len(findings.effects)
    # Starting a process is both a violation and an effect; report it once.
    reported = {Effect(EffectKind.EXECUTE, issue.pattern) for issue in findings.issues}
    return tuple(
        Issue(
            "high",
            f"effect_{effect.kind.value.lower()}",
            _pattern_of(effect),
            EFFECT_DESCRIPTIONS[effect.kind],
            line,
            "leave it out: standalone code may only compute",
        )
        for effect, line in zip(findings.effects, lines, strict=True)
        if effect not in reported and not (reads and effect.kind is EffectKind.READ)
    )


EFFECT_DESCRIPTIONS: dict[EffectKind, str] = {
    EffectKind.READ: "reads from outside the program",
    EffectKind.WRITE: "changes something outside the program",
    EffectKind.DELETE: "deletes something",
    EffectKind.EXECUTE: "runs another program",
    EffectKind.NETWORK: "uses the network",
    EffectKind.COMMUNICATE: "sends messages",
    EffectKind.SPEND: "spends money",
    EffectKind.ADMIN: "changes the system or its processes",
    EffectKind.SECRET: "reaches secrets",
    EffectKind.UNRESOLVED: "has an unknown effect",
}
