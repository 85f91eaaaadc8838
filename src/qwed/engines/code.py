"""Code engine: effects of a program, and whether it may run at all.

Effects alone leave code VERIFIED; trust decides about them. A violation is BLOCKED at every trust level, unparsable
code is BLOCKED too, and an unknown name is INCONCLUSIVE. Stand-alone code must be pure computation; stand-alone bash
and SQL must only read.
"""

from collections.abc import Callable
from dataclasses import replace

from qwed.engines.code_verdict import PURE, UNREAD_CODE, result_of, verdict_of, verdict_on_findings
from qwed.engines.protocol import EngineRequest
from qwed.engines.shell import findings as shell_findings
from qwed.guards import javascript_code, python_code
from qwed.guards.code_findings import (
    LANGUAGE_ALIASES,
    LANGUAGES,
    VIOLATION_DESCRIPTIONS,
    CodeFindings,
    Issue,
    ViolationKind,
    effect_issues,
)
from qwed.model import Effect, EffectKind, Status, Verdict
from qwed.model.facts import CodeFacts, code_with_effects, merge_code


def verify(request: EngineRequest) -> Verdict:
    """Return VERIFIED with effects, or why the code is refused or not understood."""
    stated = request.parameters.get("language", "python")
    language = stated.strip().lower() if isinstance(stated, str) else ""
    language = LANGUAGE_ALIASES.get(language, language)
    if language not in LANGUAGES:
        message = f"unknown language `{str(stated)[:40]}`, known are {', '.join(LANGUAGES)}"
        unresolved = (Effect(EffectKind.UNRESOLVED, "language"),)
        return verdict_of(Status.BLOCKED, message, effects=unresolved, facts=UNREAD_CODE)
    code = request.code or request.query
    if not code.strip():
        return verdict_of(Status.BLOCKED, "no code was given", checks_failed=("syntax_valid",), facts=UNREAD_CODE)
    if language == "sql":
        return _sql(code, request)
    if language == "bash":
        return _bash(code, request.strict)
    return verdict_on_findings(_FINDINGS[language](code), language, request.strict)


def _bash(code: str, strict: bool) -> Verdict:
    """Return the verdict on the shell guard's findings."""
    found = shell_findings(code)
    findings = CodeFindings(
        effects=found.effects,
        violations=tuple(map(str, found.violations)),
        issues=_refusals(found.violations),
        unresolved=tuple(found.unresolved),
    )
    verdict = verdict_on_findings(findings, "bash", strict)
    complete = found.facts.shell is not None and found.facts.shell.complete
    merged = merge_code(code_with_effects(found.effects, complete=complete), found.facts.code)
    return replace(verdict, facts=replace(found.facts, code=merged))


def _refusals(violations: tuple[str, ...]) -> tuple[Issue, ...]:
    """Return an issue for each shape that runs text as code."""
    _, recommendation = VIOLATION_DESCRIPTIONS[ViolationKind.DYNAMIC]
    return tuple(
        Issue("critical", ViolationKind.DYNAMIC.value, str(shape), "is refused at every trust level", 0, recommendation)
        for shape in violations
    )


def _sql(code: str, request: EngineRequest) -> Verdict:
    """Return the SQL engine's verdict under the name of the code engine."""
    # Imported here: the SQL parser is large and most code is not SQL.
    from qwed.engines import sql

    verdict = sql.verify(replace(request, query=code, code=""))
    findings = CodeFindings(effects=verdict.effects)
    strict_issues = effect_issues(findings, reads=True) if request.strict else ()
    field = "code" if request.code else "query"
    issues = (*_refusals(verdict.violations), *strict_issues)
    renamed = replace(
        verdict,
        engine="code",
        corrected={field: verdict.corrected["query"]} if verdict.corrected else verdict.corrected,
        result={**verdict.result, **result_of("sql", issues, verdict.effects, ())},
        facts=replace(verdict.facts, code=_facts_of_sql(verdict)),
    )
    if not strict_issues or not verdict.verified:
        return renamed
    message = f"`{strict_issues[0].pattern}` {strict_issues[0].description}: it may only read"
    failed = (*verdict.checks_failed, PURE)
    return replace(renamed, status=Status.BLOCKED, message=message, checks_failed=failed, corrected=None)


def _facts_of_sql(verdict: Verdict) -> CodeFacts:
    """Return the statement as code: it imports nothing, and has the effects of the verdict."""
    sql = verdict.facts.sql
    return code_with_effects(verdict.effects, complete=sql is not None and sql.complete)


_FINDINGS: dict[str, Callable[[str], CodeFindings]] = {
    "python": python_code.findings,
    "javascript": javascript_code.findings,
    "typescript": lambda code: javascript_code.findings(code, typescript=True),
}
