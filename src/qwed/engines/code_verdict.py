"""Verdict of the code engine on findings, without any parser.

Separate from the engine because the request process computes it too and must not load the SQL parser.
"""

from typing import Any

from qwed.guards.code_findings import CHECK_OF, CodeFindings, Issue, ViolationKind, code_facts, effect_issues, sql_facts
from qwed.model import Effect, EffectKind, Facts, Status, Verdict
from qwed.model.facts import CodeFacts

PURE = "pure_computation"
UNREAD_CODE = Facts(code=CodeFacts(complete=False))
_CHECKS = ("no_dangerous_calls", "no_dynamic_code", "no_deserialisation", "no_reflection")
_READING = frozenset({"bash", "sql"})
"""Languages whose stand-alone code may read."""


def verdict_on_findings(findings: CodeFindings, language: str, strict: bool = False) -> Verdict:
    """Return the verdict on a guard's findings in code of a language."""
    if findings.syntax_error is not None:
        return _unreadable(findings, language)
    strict_issues = effect_issues(findings, reads=language in _READING) if strict else ()
    failed = {CHECK_OF[ViolationKind(issue.type)] for issue in findings.issues} | ({PURE} if strict_issues else set())
    checks = (*_CHECKS, PURE) if strict else _CHECKS
    status, message = _status_and_message(findings, strict_issues)
    return verdict_of(
        status,
        message,
        effects=findings.effects,
        violations=findings.violations,
        facts=Facts(code=code_facts(findings), sql=sql_facts(findings)),
        checks_passed=("syntax_valid", *(check for check in checks if check not in failed)),
        checks_failed=tuple(check for check in checks if check in failed),
        result={
            **result_of(language, (*findings.issues, *strict_issues), findings.effects, findings.unresolved),
            **({"lookups": list(findings.lookups)} if findings.lookups else {}),
        },
    )


def _status_and_message(findings: CodeFindings, strict_issues: tuple[Issue, ...]) -> tuple[Status, str]:
    if findings.violations:
        first = findings.issues[0]
        return Status.BLOCKED, f"`{first.pattern}`{_on_line(first.line_number)} {first.description}"
    effect = next((issue for issue in strict_issues if not issue.pattern.startswith(EffectKind.UNRESOLVED.value)), None)
    if effect is not None:
        return (
            Status.BLOCKED,
            f"`{effect.pattern}`{_on_line(effect.line_number)} {effect.description}: it may only compute",
        )
    if findings.unresolved:
        return Status.INCONCLUSIVE, f"cannot determine what `{findings.unresolved[0]}` does"
    return Status.VERIFIED, "no dangerous pattern found"


def _on_line(line: int | None) -> str:
    return f" on line {line}" if line else ""


def _unreadable(findings: CodeFindings, language: str) -> Verdict:
    """Return BLOCKED without violations: unparsable code is refused but costs no trust."""
    effects = (Effect(EffectKind.UNRESOLVED, "source"),)
    return verdict_of(
        Status.BLOCKED,
        f"{findings.syntax_error}{_on_line(findings.error_line)}",
        effects=effects,
        checks_failed=("syntax_valid",),
        facts=UNREAD_CODE,
        result={
            **result_of(language, (), effects, ()),
            "error": findings.syntax_error,
            "line_number": findings.error_line,
        },
    )


def result_of(
    language: str, issues: tuple[Issue, ...], effects: tuple[Effect, ...], unresolved: tuple[str, ...]
) -> dict[str, Any]:
    """Return the findings as JSON values."""
    listed = [issue._asdict() for issue in issues]
    return {
        "language": language,
        "issues": listed,
        "vulnerabilities": listed,
        "effects": [{"kind": effect.kind.value, "target": effect.target} for effect in effects],
        "unresolved": list(unresolved),
    }


def verdict_of(status: Status, message: str, **fields: Any) -> Verdict:
    """Return a verdict of the code engine."""
    return Verdict(status=status, engine="code", message=message, **fields)
