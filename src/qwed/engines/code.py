"""DESIGN 3 and 8, the code engine: what a program would do, and whether it may be run at all.

Effects alone leave code VERIFIED; trust decides about them. A violation is BLOCKED at every trust level, what cannot
be read is BLOCKED too, and a name nobody knows is INCONCLUSIVE.
"""

from typing import Any

from qwed.engines.protocol import EngineRequest
from qwed.guards.code_words import CHECK_OF, CodeFindings, Danger
from qwed.guards.python_code import findings
from qwed.words import Effect, EffectKind, Status, Verdict

LANGUAGES = ("python", "javascript", "typescript", "bash", "sql")
_ALIASES = {"py": "python", "python3": "python", "js": "javascript", "ts": "typescript", "sh": "bash", "shell": "bash"}
_CHECKS = ("no_dangerous_calls", "no_dynamic_code", "no_deserialisation", "no_reflection")


def verify(request: EngineRequest) -> Verdict:
    """VERIFIED with effects, or why the code is refused or not understood."""
    asked = request.parameters.get("language", "python")
    language = asked.strip().lower() if isinstance(asked, str) else ""
    language = _ALIASES.get(language, language)
    if language not in LANGUAGES:
        message = f"unknown language `{str(asked)[:40]}`, known are {', '.join(LANGUAGES)}"
        return _verdict(Status.BLOCKED, message, effects=(Effect(EffectKind.UNRESOLVED, "language"),))
    if language != "python":
        return _verdict(
            Status.INCONCLUSIVE,
            f"{language} is not supported yet, use python",
            effects=(Effect(EffectKind.UNRESOLVED, language),),
        )
    return _python(request.code or request.query)


def _python(code: str) -> Verdict:
    if not code.strip():
        return _verdict(Status.BLOCKED, "no code was given", checks_failed=("syntax_valid",))
    found = findings(code)
    if found.syntax_error is not None:
        return _unreadable(found)
    failed = {CHECK_OF[Danger(issue.type)] for issue in found.issues}
    status, message = _judgement(found)
    return _verdict(
        status,
        message,
        effects=found.effects,
        violations=found.violations,
        checks_passed=("syntax_valid", *(check for check in _CHECKS if check not in failed)),
        checks_failed=tuple(check for check in _CHECKS if check in failed),
        result=_result(found),
    )


def _judgement(found: CodeFindings) -> tuple[Status, str]:
    if found.violations:
        first = found.issues[0]
        return Status.BLOCKED, f"`{first.pattern}` on line {first.line_number} {first.description}"
    if found.unresolved:
        return Status.INCONCLUSIVE, f"nobody knows what `{found.unresolved[0]}` does"
    return Status.VERIFIED, "no dangerous pattern found"


def _unreadable(found: CodeFindings) -> Verdict:
    """Code that cannot be read is refused, but nothing in it was seen that would cost trust."""
    where = f" on line {found.error_line}" if found.error_line else ""
    return _verdict(
        Status.BLOCKED,
        f"{found.syntax_error}{where}",
        effects=(Effect(EffectKind.UNRESOLVED, "source"),),
        checks_failed=("syntax_valid",),
        result={"error": found.syntax_error, "line_number": found.error_line, "issues": []},
    )


def _result(found: CodeFindings) -> dict[str, Any]:
    return {
        "language": "python",
        "issues": [issue._asdict() for issue in found.issues],
        "effects": [{"kind": effect.kind.value, "target": effect.target} for effect in found.effects],
        "unresolved": list(found.unresolved),
    }


def _verdict(status: Status, message: str, **fields: Any) -> Verdict:
    return Verdict(status=status, engine="code", message=message, **fields)
