"""Verdict on a transaction block: the union of what its statements do, and every check of every statement."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from qwed.engines._sql.transactions import BlockStatement
from qwed.model import Effect, EffectKind, Facts, Status, Verdict
from qwed.model.facts import merge_sql

CHECKS = (
    "syntax_valid",
    "single_statement",
    "no_injection",
    "no_dangerous_functions",
    "tables_allowed",
    "columns_allowed",
    "no_sensitive_columns",
    "schema_valid",
    "within_max_rows",
    "no_destructive_operations",
)
"""Checks of a statement, in the order in which an answer names them."""
_STRICTEST_FIRST = (Status.BLOCKED, Status.FAILED, Status.INCONCLUSIVE)
_MAX_MESSAGES = 5
"""Statements whose problems are told; the checks name them all."""


def combine(statements: Sequence[BlockStatement], verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict on a block of these statements, each with a verdict of its own."""
    failed = {check for verdict in verdicts for check in verdict.checks_failed}
    passed = {check for check in CHECKS if all(check in verdict.checks_passed for verdict in verdicts)}
    status = next((one for one in _STRICTEST_FIRST if any(verdict.status is one for verdict in verdicts)), None)
    messages = [
        f"statement {statement.number}: {verdict.message}"
        for statement, verdict in zip(statements, verdicts, strict=True)
        if not verdict.verified
    ]
    return Verdict(
        status=status or Status.VERIFIED,
        engine=verdicts[0].engine,
        message="; ".join(messages[:_MAX_MESSAGES]) or "the transaction may be judged by its effects",
        effects=tuple(dict.fromkeys(effect for verdict in verdicts for effect in verdict.effects)),
        checks_passed=tuple(check for check in CHECKS if check in passed),
        checks_failed=tuple(check for check in CHECKS if check in failed),
        violations=tuple(dict.fromkeys(violation for verdict in verdicts for violation in verdict.violations)),
        facts=Facts(sql=reduce(merge_sql, [verdict.facts.sql for verdict in verdicts])),
        result=_result([verdict.result for verdict in verdicts]),
    )


def with_problem(
    verdict: Verdict, check: str, problem: str, *, status: Status = Status.FAILED, violations: Sequence[str] = ()
) -> Verdict:
    """Return the verdict with a check of the whole block that failed."""
    problems = [problem, "" if verdict.verified else verdict.message]
    failed = {*verdict.checks_failed, check}
    return replace(
        verdict,
        status=next(one for one in _STRICTEST_FIRST if one in (status, verdict.status)),
        message="; ".join(filter(None, problems)),
        checks_passed=tuple(name for name in verdict.checks_passed if name != check),
        checks_failed=tuple(name for name in CHECKS if name in failed),
        violations=tuple(dict.fromkeys((*verdict.violations, *violations))),
    )


def with_doubt(verdict: Verdict, doubt: str) -> Verdict:
    """Return the verdict for a text whose effects are not certain."""
    sql = verdict.facts.sql
    resolved = all(effect.kind is not EffectKind.UNRESOLVED for effect in verdict.effects)
    return replace(
        verdict,
        status=Status.INCONCLUSIVE if verdict.verified else verdict.status,
        message=doubt if verdict.verified else f"{verdict.message}; {doubt}",
        effects=(*verdict.effects, Effect(EffectKind.UNRESOLVED, "query")) if resolved else verdict.effects,
        facts=Facts(sql=None if sql is None else replace(sql, complete=False)),
    )


def _result(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    tables = _union(result.get("tables", ()) for result in results)
    costs = [result["complexity"] for result in results if "complexity" in result]
    return {
        "statement": "BEGIN",
        "statements": [result.get("statement", "") for result in results],
        "dialect": results[0].get("dialect", "generic"),
        "tables": tables,
        "columns": _union(result.get("columns", ()) for result in results),
        "complexity": {
            "table_count": len(tables),
            "join_count": sum(cost["join_count"] for cost in costs),
            "subquery_depth": max((cost["subquery_depth"] for cost in costs), default=0),
            "estimated_cost": sum(cost["estimated_cost"] for cost in costs),
        },
        "notes": _union(result.get("notes", ()) for result in results),
    }


def _union(lists: Iterable[Iterable[str]]) -> list[str]:
    return list(dict.fromkeys(item for items in lists for item in items))
