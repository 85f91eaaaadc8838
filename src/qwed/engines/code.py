"""DESIGN 3 and 8, the code engine: what a program would do, and whether it may be run at all.

Effects alone leave code VERIFIED; trust decides about them. A violation is BLOCKED at every trust level, what cannot
be read is BLOCKED too, and a name nobody knows is INCONCLUSIVE. Code that stands alone must be pure computation, bash
and SQL that stand alone must only read.
"""

from collections.abc import Callable
from dataclasses import replace

from qwed.engines.programs import PURE, judged, result_of, verdict_of
from qwed.engines.protocol import EngineRequest
from qwed.guards import javascript_code, python_code, shell
from qwed.guards.code_words import DESCRIPTIONS, LANGUAGE_ALIASES, LANGUAGES, CodeFindings, Danger, Issue, impure
from qwed.words import Effect, EffectKind, Status, Verdict


def verify(request: EngineRequest) -> Verdict:
    """VERIFIED with effects, or why the code is refused or not understood."""
    asked = request.parameters.get("language", "python")
    language = asked.strip().lower() if isinstance(asked, str) else ""
    language = LANGUAGE_ALIASES.get(language, language)
    if language not in LANGUAGES:
        message = f"unknown language `{str(asked)[:40]}`, known are {', '.join(LANGUAGES)}"
        return verdict_of(Status.BLOCKED, message, effects=(Effect(EffectKind.UNRESOLVED, "language"),))
    code = request.code or request.query
    if not code.strip():
        return verdict_of(Status.BLOCKED, "no code was given", checks_failed=("syntax_valid",))
    if language == "sql":
        return _sql(code, request)
    return judged(_FINDINGS[language](code), language, request.strict)


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
        result={**verdict.result, **result_of("sql", issues, verdict.effects, ())},
    )
    if not alone or not verdict.verified:
        return shown
    message = f"`{alone[0].pattern}` {alone[0].description}: it may only read"
    failed = (*verdict.checks_failed, PURE)
    return replace(shown, status=Status.BLOCKED, message=message, checks_failed=failed, corrected=None)


_FINDINGS: dict[str, Callable[[str], CodeFindings]] = {
    "python": python_code.findings,
    "javascript": javascript_code.findings,
    "typescript": lambda code: javascript_code.findings(code, typescript=True),
    "bash": _bash,
}
