"""What a look at source code brings back, whatever its language: issues, effects and what stayed unknown, each once."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from qwed.guards.files import file_effects
from qwed.words import Effect, EffectKind

MAX_FINDINGS = 200
MAX_TARGET = 200
ENVIRONMENT = "environment"
"""Every variable there is, and the secrets among them."""
_WHOLE = frozenset({ENVIRONMENT, "process.env"})


LANGUAGES = ("python", "javascript", "typescript", "bash", "sql")
"""What the code engine reads."""
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


class Danger(StrEnum):
    """Why code is refused at every trust level."""

    PROCESS = "process_start"
    DYNAMIC = "dynamic_code"
    DESERIALISE = "deserialisation"
    REFLECT = "reflection"
    OBFUSCATE = "obfuscation"


DESCRIPTIONS: dict[Danger, tuple[str, str]] = {
    Danger.PROCESS: ("starts another process", "use a library call that does the work inside the program"),
    Danger.DYNAMIC: ("builds or imports code while it runs", "write the code out, or parse data with a data parser"),
    Danger.DESERIALISE: ("rebuilds objects from bytes, which runs code", "use json for data"),
    Danger.REFLECT: ("reaches the interpreter's own objects", "name the attribute or value directly"),
    Danger.OBFUSCATE: ("hides what the code says", "write the text out plainly"),
}
CHECK_OF: dict[Danger, str] = {
    Danger.PROCESS: "no_dangerous_calls",
    Danger.DYNAMIC: "no_dynamic_code",
    Danger.DESERIALISE: "no_deserialisation",
    Danger.REFLECT: "no_reflection",
    Danger.OBFUSCATE: "no_dynamic_code",
}


class Issue(NamedTuple):
    """One reason to refuse, with the line it stands on."""

    severity: str
    type: str
    pattern: str
    description: str
    line_number: int
    recommendation: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CodeFindings:
    """Everything the code would do, and every reason to refuse it."""

    effects: tuple[Effect, ...] = ()
    effect_lines: tuple[int, ...] = ()
    """Where each effect is first seen, 0 where the guard cannot say."""
    violations: tuple[str, ...] = ()
    issues: tuple[Issue, ...] = ()
    unresolved: tuple[str, ...] = ()
    """Names whose doing we do not know."""
    syntax_error: str | None = None
    """Why the code cannot be read at all."""
    error_line: int | None = None


@dataclass(slots=True)
class Report:
    """Findings in the order they were made."""

    issues: dict[Issue, None] = field(default_factory=dict)
    effects: dict[Effect, int] = field(default_factory=dict)
    """Each with the line it is first seen on."""
    unresolved: dict[str, None] = field(default_factory=dict)

    def danger(self, danger: Danger, pattern: str, line: int) -> None:
        """A reason to refuse."""
        if len(self.issues) < MAX_FINDINGS:
            description, recommendation = DESCRIPTIONS[danger]
            issue = Issue("critical", danger.value, pattern[:MAX_TARGET], description, line, recommendation)
            self.issues[issue] = None

    def effect(self, kind: EffectKind, target: str, line: int = 0) -> None:
        """Something the code would do; UNRESOLVED where we cannot say what."""
        target = target[:MAX_TARGET]
        # The gravest kinds are never the ones left out: a list cut short still holds one of each.
        if len(self.effects) >= MAX_FINDINGS and any(effect.kind is kind for effect in self.effects):
            return
        if kind is EffectKind.SECRET and target in _WHOLE:
            self.effects.setdefault(Effect(kind, target, unbounded=True), line)
            return
        for effect in file_effects(kind, target):
            self.effects.setdefault(effect, line)
        if kind is EffectKind.UNRESOLVED:
            self.unresolved[target] = None

    def findings(self) -> CodeFindings:
        """The report closed, its issues in the order of their lines."""
        issues = tuple(sorted(self.issues, key=lambda issue: (issue.line_number, issue.pattern)))
        return CodeFindings(
            effects=tuple(self.effects),
            effect_lines=tuple(self.effects.values()),
            violations=tuple(dict.fromkeys(f"Dangerous pattern: {issue.pattern}" for issue in issues)),
            issues=issues,
            unresolved=tuple(self.unresolved),
        )


def impure(found: CodeFindings, reads: bool = False) -> tuple[Issue, ...]:
    """Why code that stands alone is refused: every effect it has, save plain reads where those are allowed."""
    lines = found.effect_lines or (0,) * len(found.effects)
    # Starting a process is a violation and an effect; it is told once.
    told = {Effect(EffectKind.EXECUTE, issue.pattern) for issue in found.issues}
    return tuple(
        Issue(
            "high",
            f"effect_{effect.kind.value.lower()}",
            f"{effect.kind.value} {effect.target}".strip(),
            DEEDS[effect.kind],
            line,
            "leave it out: code that stands alone may only compute",
        )
        for effect, line in zip(found.effects, lines, strict=True)
        if effect not in told and not (reads and effect.kind is EffectKind.READ)
    )


DEEDS: dict[EffectKind, str] = {
    EffectKind.READ: "reads from outside the program",
    EffectKind.WRITE: "changes something outside the program",
    EffectKind.DELETE: "deletes something",
    EffectKind.EXECUTE: "runs another program",
    EffectKind.NETWORK: "uses the network",
    EffectKind.COMMUNICATE: "sends messages",
    EffectKind.SPEND: "spends money",
    EffectKind.ADMIN: "changes the system or its processes",
    EffectKind.SECRET: "reaches secrets",
    EffectKind.UNRESOLVED: "does what nobody knows",
}
