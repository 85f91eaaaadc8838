"""INTERFACES 5, CodeGuard: code that stands alone may only compute - no file, process, network or dynamic code."""

from collections.abc import Callable
from dataclasses import dataclass

from qwed.guards import javascript_code, python_code, shell
from qwed.guards.code_words import LANGUAGE_ALIASES, CodeFindings, impure
from qwed.words import Record, Risk, risk_of

LANGUAGES = ("python", "javascript", "typescript", "bash")


@dataclass(frozen=True)
class CodeSafety(Record):
    """Whether the code only computes, and if not every reason; `risk` is low, medium, high or critical."""

    verified: bool
    violations: list[str]
    message: str
    risk: str


class CodeGuard:
    """Judges source code without running it."""

    def verify_safety(self, code: str, language: str = "python") -> CodeSafety:
        """Whether `code` only computes; what cannot be read or is not known is refused, and nothing raises."""
        if not isinstance(code, str) or not code.strip():
            return _refused("no code was given, pass it as text")
        name = language.strip().lower() if isinstance(language, str) else ""
        look = _FINDINGS.get(LANGUAGE_ALIASES.get(name, name))
        if look is None:
            return _refused(
                f"unknown language `{str(language)[:40]}`, known are {', '.join(LANGUAGES)}{_HINTS.get(name, '')}"
            )
        try:
            found = look(code)
        except ImportError as missing:
            return _refused(str(missing))
        return _judged(found, reads=look is _bash)


_HINTS = {"sql": "; use SQLGuard for SQL"}


def _judged(found: CodeFindings, reads: bool) -> CodeSafety:
    if found.syntax_error is not None:
        line = f" on line {found.error_line}" if found.error_line else ""
        return _refused(f"{found.syntax_error}{line}")
    effects = impure(found, reads)
    violations = [*found.violations, *(f"Dangerous pattern: {issue.pattern}" for issue in effects)]
    risk = Risk.CRITICAL if found.violations else risk_of(found.effects)
    if not violations:
        return CodeSafety(True, [], "no dangerous pattern found", risk.word)
    return CodeSafety(False, violations, f"{len(violations)} found: {violations[0]}", risk.word)


def _refused(reason: str) -> CodeSafety:
    return CodeSafety(False, [reason], reason, Risk.CRITICAL.word)


def _bash(code: str) -> CodeFindings:
    found = shell.findings(code)
    violations = tuple(f"Dangerous pattern: {each}" for each in found.violations)
    return CodeFindings(effects=found.effects, violations=violations, unresolved=tuple(found.unresolved))


_FINDINGS: dict[str, Callable[[str], CodeFindings]] = {
    "python": python_code.findings,
    "javascript": javascript_code.findings,
    "typescript": lambda code: javascript_code.findings(code, typescript=True),
    "bash": _bash,
}
