"""DESIGN 3 and 8, the code engine: what a program would do, and whether it may be run at all.

Effects alone leave code VERIFIED; trust decides about them. A violation is BLOCKED at every trust level, what cannot
be read is BLOCKED too, and a name nobody knows is INCONCLUSIVE. Code that stands alone must be pure computation, bash
and SQL that stand alone must only read.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from qwed.engines.protocol import EngineRequest
from qwed.guards import javascript_code, python_code, shell
from qwed.guards.code_words import CHECK_OF, DESCRIPTIONS, LANGUAGE_ALIASES, CodeFindings, Danger, Issue, impure
from qwed.words import Effect, EffectKind, Status, Verdict

LANGUAGES = ("python", "javascript", "typescript", "bash", "sql")
_CHECKS = ("no_dangerous_calls", "no_dynamic_code", "no_deserialisation", "no_reflection")
_PURE = "pure_computation"
_READING = frozenset({"bash", "sql"})
"""Languages that are for reading: alone they may do that much."""


def verify(request: EngineRequest) -> Verdict:
    """VERIFIED with effects, or why the code is refused or not understood."""
    asked = request.parameters.get("language", "python")
    language = asked.strip().lower() if isinstance(asked, str) else ""
    language = LANGUAGE_ALIASES.get(language, language)
    if language not in LANGUAGES:
        message = f"unknown language `{str(asked)[:40]}`, known are {', '.join(LANGUAGES)}"
        return _verdict(Status.BLOCKED, message, effects=(Effect(EffectKind.UNRESOLVED, "language"),))
    code = request.code or request.query
    if not code.strip():
        return _verdict(Status.BLOCKED, "no code was given", checks_failed=("syntax_valid",))
    if language == "sql":
        return _sql(code, request)
    return _judged(_FINDINGS[language](code), language, request.strict)


def _judged(found: CodeFindings, language: str, strict: bool) -> Verdict:
    if found.syntax_error is not None:
        return _unreadable(found, language)
    alone = impure(found, reads=language in _READING) if strict else ()
    failed = {CHECK_OF[Danger(issue.type)] for issue in found.issues} | ({_PURE} if alone else set())
    checks = (*_CHECKS, _PURE) if strict else _CHECKS
    status, message = _judgement(found, alone)
    return _verdict(
        status,
        message,
        effects=found.effects,
        violations=found.violations,
        checks_passed=("syntax_valid", *(check for check in checks if check not in failed)),
        checks_failed=tuple(check for check in checks if check in failed),
        result=_result(language, (*found.issues, *alone), found.effects, found.unresolved),
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
    return _verdict(
        Status.BLOCKED,
        f"{found.syntax_error}{_on_line(found.error_line)}",
        effects=effects,
        checks_failed=("syntax_valid",),
        result={
            **_result(language, (), effects, ()),
            "error": found.syntax_error,
            "line_number": found.error_line,
        },
    )


def _result(
    language: str, issues: tuple[Issue, ...], effects: tuple[Effect, ...], unresolved: tuple[str, ...]
) -> dict[str, Any]:
    listed = [issue._asdict() for issue in issues]
    return {
        "language": language,
        "issues": listed,
        "vulnerabilities": listed,
        "effects": [{"kind": effect.kind.value, "target": effect.target} for effect in effects],
        "unresolved": list(unresolved),
    }


def _bash(code: str) -> CodeFindings:
    """What the shell guard finds, in the words of the others."""
    found = shell.findings(code)
    return CodeFindings(
        effects=found.effects,
        violations=tuple(map(str, found.violations)),
        issues=_refusals(found.violations),
        unresolved=tuple(found.unresolved),
    )


def _refusals(violations: tuple[str, ...]) -> tuple[Issue, ...]:
    """Shapes that run text as code, whatever the guard that saw them calls them."""
    _, recommendation = DESCRIPTIONS[Danger.DYNAMIC]
    return tuple(
        Issue("critical", Danger.DYNAMIC.value, str(shape), "is refused whoever asks", 0, recommendation)
        for shape in violations
    )


def _sql(code: str, request: EngineRequest) -> Verdict:
    """What the SQL engine says of a query, under our name."""
    # Imported here: most code is no SQL, and the parser is large.
    from qwed.engines import sql

    verdict = sql.verify(replace(request, query=code, code=""))
    found = CodeFindings(effects=verdict.effects)
    alone = impure(found, reads=True) if request.strict else ()
    field = "code" if request.code else "query"
    issues = (*_refusals(verdict.violations), *alone)
    shown = replace(
        verdict,
        engine="code",
        corrected={field: verdict.corrected["query"]} if verdict.corrected else verdict.corrected,
        result={**verdict.result, **_result("sql", issues, verdict.effects, ())},
    )
    if not alone or not verdict.verified:
        return shown
    message = f"`{alone[0].pattern}` {alone[0].description}: it may only read"
    failed = (*verdict.checks_failed, _PURE)
    return replace(shown, status=Status.BLOCKED, message=message, checks_failed=failed, corrected=None)


_FINDINGS: dict[str, Callable[[str], CodeFindings]] = {
    "python": python_code.findings,
    "javascript": javascript_code.findings,
    "typescript": lambda code: javascript_code.findings(code, typescript=True),
    "bash": _bash,
}


def _verdict(status: Status, message: str, **fields: Any) -> Verdict:
    return Verdict(status=status, engine="code", message=message, **fields)
