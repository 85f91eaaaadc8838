"""What a look at a program comes to: the code engine's verdict on findings, without the parsers of any language.

Apart from the engine, because the asking process judges what it has read itself and must not load a parser of SQL.
"""

from typing import Any

from qwed.guards.code_words import CHECK_OF, CodeFindings, Danger, Issue, impure
from qwed.words import Effect, EffectKind, Status, Verdict

PURE = "pure_computation"
_CHECKS = ("no_dangerous_calls", "no_dynamic_code", "no_deserialisation", "no_reflection")
_READING = frozenset({"bash", "sql"})
"""Languages that are for reading: alone they may do that much."""


def judged(found: CodeFindings, language: str, strict: bool = False) -> Verdict:
    """The verdict on what a guard found in code of a language."""
    if found.syntax_error is not None:
        return _unreadable(found, language)
    alone = impure(found, reads=language in _READING) if strict else ()
    failed = {CHECK_OF[Danger(issue.type)] for issue in found.issues} | ({PURE} if alone else set())
    checks = (*_CHECKS, PURE) if strict else _CHECKS
    status, message = _judgement(found, alone)
    return verdict_of(
        status,
        message,
        effects=found.effects,
        violations=found.violations,
        checks_passed=("syntax_valid", *(check for check in checks if check not in failed)),
        checks_failed=tuple(check for check in checks if check in failed),
        result=result_of(language, (*found.issues, *alone), found.effects, found.unresolved),
    )


def _judgement(found: CodeFindings, alone: tuple[Issue, ...]) -> tuple[Status, str]:
    if found.violations:
        first = found.issues[0]
        return Status.BLOCKED, f"`{first.pattern}`{_on_line(first.line_number)} {first.description}"
    deed = next((issue for issue in alone if not issue.pattern.startswith(EffectKind.UNRESOLVED.value)), None)
    if deed is not None:
        return Status.BLOCKED, f"`{deed.pattern}`{_on_line(deed.line_number)} {deed.description}: it may only compute"
    if found.unresolved:
        return Status.INCONCLUSIVE, f"nobody knows what `{found.unresolved[0]}` does"
    return Status.VERIFIED, "no dangerous pattern found"


def _on_line(line: int | None) -> str:
    return f" on line {line}" if line else ""


def _unreadable(found: CodeFindings, language: str) -> Verdict:
    """Code that cannot be read is refused, but nothing in it was seen that would cost trust."""
    effects = (Effect(EffectKind.UNRESOLVED, "source"),)
    return verdict_of(
        Status.BLOCKED,
        f"{found.syntax_error}{_on_line(found.error_line)}",
        effects=effects,
        checks_failed=("syntax_valid",),
        result={
            **result_of(language, (), effects, ()),
            "error": found.syntax_error,
            "line_number": found.error_line,
        },
    )


def result_of(
    language: str, issues: tuple[Issue, ...], effects: tuple[Effect, ...], unresolved: tuple[str, ...]
) -> dict[str, Any]:
    """The findings of the engine, as JSON would have them."""
    listed = [issue._asdict() for issue in issues]
    return {
        "language": language,
        "issues": listed,
        "vulnerabilities": listed,
        "effects": [{"kind": effect.kind.value, "target": effect.target} for effect in effects],
        "unresolved": list(unresolved),
    }


def verdict_of(status: Status, message: str, **fields: Any) -> Verdict:
    """A verdict in the name of the code engine."""
    return Verdict(status=status, engine="code", message=message, **fields)
