"""CodeGuard: refuse standalone code that does more than compute (no file, process, network or dynamic code; INTERFACES
5)."""

from collections.abc import Callable
from dataclasses import dataclass

from qwed.guards import javascript_code, python_code, shell
from qwed.guards.code_findings import LANGUAGE_ALIASES, CodeFindings, effect_issues
from qwed.model import EffectKind, Record, Risk, risk_of

LANGUAGES = ("python", "javascript", "typescript", "bash")


@dataclass(frozen=True)
class CodeSafety(Record):
    """Verdict on standalone code with every reason to refuse it; `risk` is low, medium, high or critical."""

    verified: bool
    violations: list[str]
    message: str
    risk: str


class CodeGuard:
    """Static checker for source code; it never runs the code."""

    def verify_safety(self, code: str, language: str = "python", *, allow_unresolved: bool = False) -> CodeSafety:
        """Return `verified=True` if `code` only computes; refuse code that cannot be parsed or has unknown effects.
        With `allow_unresolved`, names and modules that cannot be resolved are only named in the message. Never
        raises."""
        if not isinstance(code, str) or not code.strip():
            return _refused("no code to check, pass it as text")
        name = language.strip().lower() if isinstance(language, str) else ""
        analyze = _FINDINGS.get(LANGUAGE_ALIASES.get(name, name))
        if analyze is None:
            return _refused(
                f"unknown language `{str(language)[:40]}`, known are {', '.join(LANGUAGES)}{_HINTS.get(name, '')}"
            )
        try:
            findings = analyze(code)
        except ImportError as missing:
            return _refused(str(missing))
        reads = analyze is _bash_findings
        return _to_safety(findings, reads, () if reads or not allow_unresolved else findings.resolvable_elsewhere)


MAX_LISTED = 10
_HINTS = {"sql": "; use SQLGuard for SQL"}


def _to_safety(findings: CodeFindings, reads: bool, allowed: tuple[str, ...]) -> CodeSafety:
    if findings.syntax_error is not None:
        line = f" on line {findings.error_line}" if findings.error_line else ""
        return _refused(f"{findings.syntax_error}{line}")
    unresolved = {f"{EffectKind.UNRESOLVED.value} {name}" for name in allowed}
    effects = [issue for issue in effect_issues(findings, reads) if issue.pattern not in unresolved]
    patterns = [*findings.called_names(effects), *(issue.pattern for issue in effects)]
    violations = list(dict.fromkeys([*findings.violations, *(f"Dangerous pattern: {text}" for text in patterns)]))
    risk = Risk.CRITICAL if findings.violations else risk_of(findings.effects)
    if not violations:
        listed = f"; cannot be resolved: {', '.join(allowed[:MAX_LISTED])}" if allowed else ""
        return CodeSafety(True, [], f"no dangerous pattern found{listed}", risk.word)
    return CodeSafety(False, violations, f"{len(violations)} found: {violations[0]}", risk.word)


def _refused(reason: str) -> CodeSafety:
    return CodeSafety(False, [reason], reason, Risk.CRITICAL.word)


def _bash_findings(code: str) -> CodeFindings:
    findings = shell.findings(code)
    violations = tuple(f"Dangerous pattern: {violation}" for violation in findings.violations)
    return CodeFindings(effects=findings.effects, violations=violations, unresolved=tuple(findings.unresolved))


_FINDINGS: dict[str, Callable[[str], CodeFindings]] = {
    "python": python_code.findings,
    "javascript": javascript_code.findings,
    "typescript": lambda code: javascript_code.findings(code, typescript=True),
    "bash": _bash_findings,
}
