"""The `sql` engine: what a query would do, whether it hides something, and whether the agent may touch what it names.

A plain DROP, DELETE or UPDATE is VERIFIED with its effects, and trust decides; only violations are BLOCKED.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from qwed.engines._sql.access import Limits, column_problem, limits_of, sensitive_problem, table_problem
from qwed.engines._sql.commands import DANGEROUS_FUNCTION, FILE_ACCESS, calls_in, command
from qwed.engines._sql.comments import comment_violations, reads_differently
from qwed.engines._sql.effects import Deeds, deeds_of, statement_name
from qwed.engines._sql.fragment import fragment_violations
from qwed.engines._sql.injection import STACKED, token_violations, tree_violations
from qwed.engines._sql.names import CREDENTIAL_TABLES, Names
from qwed.engines._sql.parse import Reading, Unreadable, read, read_as_any
from qwed.engines._sql.repair import repaired, rows_problem
from qwed.engines._sql.schema import schema_problem, width_problem
from qwed.engines._sql.tokens import without_comments
from qwed.engines.protocol import EngineRequest
from qwed.words import Effect, EffectKind, Status, Verdict

ENGINE = "sql"
_UNRESOLVED = (Effect(EffectKind.UNRESOLVED, "query"),)
_MOST_STATEMENTS = 200
"""How many of a stack are looked at: it is refused however many there are."""
_DESCRIBED = ("information_schema",)
_HARMLESS = frozenset({EffectKind.READ, EffectKind.SECRET, EffectKind.UNRESOLVED})
"""What changes nothing, or is judged by a check of its own."""
# sqlglot leaks these on trees its own grammar does not foresee; each means that we could not decide.
_SURPRISES = (
    SqlglotError,
    RecursionError,
    MemoryError,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    ArithmeticError,
    AssertionError,
    NotImplementedError,
)


def verify(request: EngineRequest) -> Verdict:
    """What one SQL query would do and whether it may be tried; never raises."""
    try:
        return _verify(request)
    except _SURPRISES:
        return _verdict(Status.INCONCLUSIVE, "the query is too complex to judge: split it into simpler ones")


def _verify(request: EngineRequest) -> Verdict:
    limits = limits_of(request)
    if isinstance(limits, str):
        return _verdict(Status.BLOCKED, limits)
    reading = read(request.query, limits.dialect) if limits.dialect else read_as_any(request.query)
    if isinstance(reading, Unreadable):
        return _unreadable(request.query, reading, limits)
    if len(reading.statements) > 1:
        return _stacked(reading)
    return _with_repair(_Judgement(reading, limits, strict=request.strict), limits)


def _with_repair(judgement: "_Judgement", limits: Limits) -> Verdict:
    verdict = judgement.verdict()
    if verdict.status is not Status.FAILED or judgement.reading.prefix:
        return verdict
    tree, dialect = repaired(judgement.statement, judgement.names, limits), judgement.reading.dialect
    text = tree.sql(dialect=dialect, comments=False) if tree is not None else ""
    again = read(text, dialect) if text else None
    # A dialect is printed without what it does not have: a text that reads as another query is no repair.
    if not isinstance(again, Reading) or again.statements != (tree,):
        return verdict
    if not _Judgement(again, limits, strict=judgement.strict).verdict().verified:
        return verdict
    return judgement.verdict(corrected={"query": text})


def _verdict(status: Status, message: str, **rest: Any) -> Verdict:
    return Verdict(status=status, engine=ENGINE, message=message, **{"effects": _UNRESOLVED, **rest})


def _unreadable(text: str, unreadable: Unreadable, limits: Limits) -> Verdict:
    """A text that does not parse is FAILED; one that also shows an attack is BLOCKED; one too large is not judged."""
    deeds = _seen_in(text)
    found = [*deeds.violations, *token_violations(unreadable.tokens)]
    if unreadable.tokens:
        found += comment_violations(text, unreadable.tokens)
    if not unreadable.too_large:
        found += fragment_violations(text)
    if found:
        violations = tuple(dict.fromkeys(found))
        message = f"the query looks like an injection ({', '.join(violations)}): send one whole statement"
        effects = tuple(dict.fromkeys((*deeds.effects, *_UNRESOLVED)))
        failed = ("syntax_valid", "no_injection")
        return _verdict(Status.BLOCKED, message, checks_failed=failed, violations=violations, effects=effects)
    status = Status.INCONCLUSIVE if unreadable.too_large else Status.FAILED
    name = limits.dialect or "generic SQL"
    return _verdict(status, f"cannot read the query as {name}: {unreadable.problem}", checks_failed=("syntax_valid",))


def _seen_in(text: str) -> Deeds:
    """What the words of a text show that no parser could read: a known command, and calls of known functions."""
    known = command(text)
    calls = list(calls_in(text))
    violations = [violation for violation, _ in calls]
    if known is not None and known.violation:
        violations.append(known.violation)
    return Deeds(effects=[*(known.effects if known else ()), *(effect for _, effect in calls)], violations=violations)


def _stacked(reading: Reading) -> Verdict:
    effects = [
        effect
        for statement in reading.statements[:_MOST_STATEMENTS]
        for effect in deeds_of(statement, Names(statement, reading.dialect)).effects
    ]
    return _verdict(
        Status.BLOCKED,
        "more than one statement: send them one by one",
        effects=tuple(dict.fromkeys(effects)),
        checks_passed=("syntax_valid",),
        checks_failed=("single_statement", "no_injection"),
        violations=(STACKED,),
    )


@dataclass(slots=True)
class _Checks:
    """The checks in their order, and what the failed ones said."""

    passed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def note(self, name: str, problem: str) -> None:
        """Passed where there is no problem."""
        (self.failed if problem else self.passed).append(name)
        if problem:
            self.problems.append(problem)


class _Judgement:
    """One readable statement, judged once."""

    def __init__(self, reading: Reading, limits: Limits, *, strict: bool = False) -> None:
        self.reading = reading
        self.strict = strict
        self.statement = reading.statements[0]
        self.names = Names(self.statement, reading.dialect)
        self._limits = limits
        self._deeds: Deeds = deeds_of(self.statement, self.names, without_comments(reading.text, reading.tokens))
        self._violations = tuple(dict.fromkeys(self._find_violations()))
        self._doubts = self._find_doubts()
        self._checks = _Checks()
        self._notes: list[str] = []
        self._run_checks()

    def _find_violations(self) -> Iterable[str]:
        yield from self._deeds.violations
        yield from comment_violations(self.reading.text, self.reading.tokens)
        yield from tree_violations(self.statement, self.names, self._limits.sensitive)

    def _find_doubts(self) -> list[str]:
        doubts = [f"function `{name}` is not known to be harmless" for name in self._deeds.unknown_calls]
        doubts += [
            f"what is read from `{name}` is not known: name the table and its columns as they are"
            for name in self._deeds.unknown_sources
        ]
        if reads_differently(self.reading):
            doubts.append("databases read this text in different ways: name the `dialect`, and write names plainly")
        return doubts

    def _run_checks(self) -> None:
        checks, deeds, limits = self._checks, self._deeds, self._limits
        unresolved = f"`{deeds.unresolved}` cannot be resolved: send the statement it would run"
        checks.note("syntax_valid", unresolved if deeds.unresolved else "")
        checks.note("single_statement", "")
        checks.note("no_injection", _told(self._violations))
        dangerous = [each for each in self._violations if each.startswith((DANGEROUS_FUNCTION, FILE_ACCESS))]
        if dangerous or not deeds.unknown_calls:
            checks.note("no_dangerous_functions", _told(dangerous))
        self._check_access(checks, limits)
        if limits.max_rows is not None:
            checks.note("within_max_rows", rows_problem(self.statement, limits.max_rows))
        self._check_changes(checks)

    def _check_changes(self, checks: _Checks) -> None:
        """Passed by reads alone; what is not known to read passes nothing, and only a strict request fails a write."""
        kinds = dict.fromkeys(effect.kind for effect in self._deeds.effects)
        told = ", ".join(kind.value for kind in kinds if kind not in _HARMLESS)
        if told:
            self._notes.append(f"not read-only: {told}")
        if told and self.strict:
            checks.note("no_destructive_operations", f"only reads are allowed here, this would {told}")
        elif not told and EffectKind.UNRESOLVED not in kinds:
            checks.note("no_destructive_operations", "")

    def _check_access(self, checks: _Checks, limits: Limits) -> None:
        statement, names = self.statement, self.names
        if limits.tables is not None:
            described = isinstance(statement, exp.Show) or bool(self._deeds.untold)
            checks.note("tables_allowed", table_problem(names, _DESCRIBED if described else (), limits))
        if limits.columns is not None:
            checks.note("columns_allowed", column_problem(statement, names, limits))
        sensitive = sensitive_problem(statement, names, limits)
        checks.note("no_sensitive_columns", sensitive)
        if sensitive or any(name in CREDENTIAL_TABLES for name in names.names):
            self._deeds.effects.append(Effect(EffectKind.SECRET, names.names[0] if names.names else "column"))
        schema = limits.schema
        unfit = schema_problem(statement, names, schema, self.reading.dialect) if schema else ""
        checks.note("schema_valid", unfit or width_problem(statement))

    def verdict(self, corrected: dict[str, Any] | None = None) -> Verdict:
        """The verdict, with a repair where one was found."""
        checks = self._checks
        status = self._status()
        effects = self._deeds.effects
        resolved = all(effect.kind is not EffectKind.UNRESOLVED for effect in effects)
        return Verdict(
            status=status,
            engine=ENGINE,
            message="; ".join(dict.fromkeys((*checks.problems, *self._doubts)))
            or "the query may be judged by its effects",
            effects=(*effects, *(_UNRESOLVED if self._doubts and resolved else ())),
            checks_passed=tuple(checks.passed),
            checks_failed=tuple(checks.failed),
            violations=self._violations,
            corrected=corrected,
            result=self._result(),
        )

    def _status(self) -> Status:
        if self._violations or (self.strict and "no_destructive_operations" in self._checks.failed):
            return Status.BLOCKED
        if self._checks.failed:
            return Status.FAILED
        return Status.INCONCLUSIVE if self._doubts else Status.VERIFIED

    def _result(self) -> dict[str, Any]:
        return {
            "statement": self.reading.prefix or statement_name(self.statement),
            "dialect": self.reading.dialect or "generic",
            "tables": list(self.names.names),
            "columns": _column_names(self.statement),
            "complexity": complexity(self.statement, self.names),
            "notes": self._notes,
        }


def _told(violations: Iterable[str]) -> str:
    listed = ", ".join(violations)
    return f"refused at every trust level: {listed}" if listed else ""


def _column_names(statement: exp.Expr) -> list[str]:
    names = (column.name.lower() for column in statement.find_all(exp.Column, bfs=False))
    return list(dict.fromkeys(name for name in names if name != "*"))


def complexity(statement: exp.Expr, names: Names) -> dict[str, int]:
    """How much a database has to do for it; the cost has no unit and only orders queries."""
    joins = sum(1 for _ in statement.find_all(exp.Join))
    depth = _subquery_depth(statement)
    unfiltered = sum(1 for select in statement.find_all(exp.Select) if _scans(select))
    return {
        "table_count": len(names.names),
        "join_count": joins,
        "subquery_depth": depth,
        "estimated_cost": len(names.tables) + 3 * joins + 5 * depth + 10 * unfiltered,
    }


def _scans(select: exp.Expr) -> bool:
    return select.args.get("from_") is not None and not select.args.get("where") and not select.args.get("limit")


def _subquery_depth(statement: exp.Expr) -> int:
    if all(select is statement for select in statement.find_all(exp.Select)):
        return 0
    depths = {id(statement): 0}
    for node in statement.walk(bfs=False):
        if node.parent is not None and node is not statement:
            nested = isinstance(node, exp.Select) and not isinstance(
                node.parent, exp.SetOperation | exp.Insert | exp.Create
            )
            depths[id(node)] = depths.get(id(node.parent), 0) + nested
    return max(depths.values())
