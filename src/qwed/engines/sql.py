"""SQL engine: the effects of a query, hidden or injected parts, and the permission to access what it names.

A plain DROP, DELETE or UPDATE is VERIFIED with its effects, and trust decides; only violations are BLOCKED.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError

from qwed.engines._sql.block_verdict import combine, with_doubt, with_problem
from qwed.engines._sql.catalog import is_credential_table, reads_catalog
from qwed.engines._sql.commands import DANGEROUS_FUNCTION, FILE_ACCESS, classify_command, dangerous_calls
from qwed.engines._sql.comments import comment_violations
from qwed.engines._sql.effects import StatementEffects, effects_of, statement_name
from qwed.engines._sql.facts import UNREAD, facts_of, facts_of_stack
from qwed.engines._sql.fragment_injection import fragment_violations
from qwed.engines._sql.function_calls import unknown_calls
from qwed.engines._sql.injection import STACKED, token_violations, tree_violations
from qwed.engines._sql.lexer import other_readings
from qwed.engines._sql.parse import ParsedSql, UnparsableSql, parse_any_dialect, parse_sql
from qwed.engines._sql.permissions import AccessLimits, column_problem, limits_of, sensitive_problem, table_problem
from qwed.engines._sql.readings import has_statement_words, reading_problem
from qwed.engines._sql.repair import narrow_query, row_bound, rows_problem
from qwed.engines._sql.schema import schema_problem, width_problem
from qwed.engines._sql.table_names import StatementNames
from qwed.engines._sql.tokens import blank_comments
from qwed.engines._sql.transactions import (
    TransactionBlock,
    as_parsed,
    definition_problem,
    has_other_reading,
    read_block,
)
from qwed.engines._sql.violation_words import violation_message
from qwed.engines._sql.whole_rows import unlisted_star, unnamed_read
from qwed.engines.protocol import EngineRequest
from qwed.model import Effect, EffectKind, Facts, Status, Verdict
from qwed.model.facts import SqlFacts

ENGINE = "sql"
_UNRESOLVED = (Effect(EffectKind.UNRESOLVED, "query"),)
_UNREAD_FACTS = Facts(sql=UNREAD)
_MAX_STATEMENTS = 200
"""Maximum number of stacked statements that are analysed; a stack is refused in any case."""
_DESCRIBED_TABLES = ("information_schema",)
_HARMLESS = frozenset({EffectKind.READ, EffectKind.SECRET, EffectKind.UNRESOLVED})
"""Effects that change nothing, or that have a check of their own."""
# sqlglot raises these on trees that its grammar does not foresee; each means that the query is undecided.
_PARSER_ERRORS = (
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
    """Return the effects of one SQL query and the verdict on it; never raises."""
    try:
        return _verify(request)
    except _PARSER_ERRORS:
        return _verdict(Status.INCONCLUSIVE, "the query is too complex to judge: split it into simpler ones")


def _verify(request: EngineRequest) -> Verdict:
    limits = limits_of(request)
    if isinstance(limits, str):
        return _verdict(Status.BLOCKED, limits, checks_failed=("parameters_valid",))
    block = read_block(request.query, limits.dialect)
    if block is not None:
        return _block_verdict(block, limits, strict=request.strict)
    parsed = parse_sql(request.query, limits.dialect) if limits.dialect else parse_any_dialect(request.query)
    if isinstance(parsed, UnparsableSql):
        return _unparsable_verdict(request.query, parsed, limits)
    if len(parsed.statements) > 1:
        return _stacked_verdict(parsed)
    check = _StatementCheck(parsed, limits, strict=request.strict)
    if not limits.target:
        check.add_doubt(_other_reading(parsed, limits))
    return replace(_with_repair(check, limits), facts=Facts(sql=check.facts()))


_READ_DIFFERENTLY = "databases read this text in different ways: name the `dialect` in the agent's permissions"


def _block_verdict(block: TransactionBlock, limits: AccessLimits, *, strict: bool) -> Verdict:
    """Return the verdict on a transaction block, which is never repaired."""
    limits = replace(limits, dialect=block.dialect)
    if not block.statements:
        return _verdict(Status.FAILED, block.problem, checks_failed=("single_statement",))
    parsed = [parse_sql(statement.text, block.dialect) for statement in block.statements]
    verdicts = [
        _part_verdict(statement.text, part, limits, strict)
        for statement, part in zip(block.statements, parsed, strict=True)
    ]
    verdict = combine(block.statements, verdicts)
    trees = [part.statements[0] if isinstance(part, ParsedSql) else None for part in parsed]
    known = [(one, tree) for one, tree in zip(block.statements, trees, strict=True) if tree is not None]
    problem = block.problem or next(filter(None, (definition_problem(*pair, limits.target) for pair in known)), "")
    if block.stacked:
        verdict = with_problem(verdict, "single_statement", problem, status=Status.BLOCKED)
        verdict = with_problem(verdict, "no_injection", "", status=Status.BLOCKED, violations=(STACKED,))
    elif problem:
        verdict = with_problem(verdict, "single_statement", problem)
    cut = tuple(comment_violations(block.text, block.tokens))
    if cut:
        verdict = with_problem(verdict, "no_injection", violation_message(cut), status=Status.BLOCKED, violations=cut)
    if limits.max_rows is not None:
        verdict = _within_rows(verdict, [tree for _, tree in known], limits.max_rows)
    doubt = reading_problem(as_parsed(block, [tree for _, tree in known]), limits.target) if known else ""
    if not doubt and not limits.target and has_other_reading(block):
        doubt = _READ_DIFFERENTLY
    return with_doubt(verdict, doubt) if doubt else verdict


def _part_verdict(text: str, parsed: ParsedSql | UnparsableSql, limits: AccessLimits, strict: bool) -> Verdict:
    """Return the verdict on one statement of a transaction block."""
    if isinstance(parsed, UnparsableSql):
        return _unparsable_verdict(text, parsed, limits)
    if len(parsed.statements) > 1:
        return _stacked_verdict(parsed)
    check = _StatementCheck(parsed, limits, strict=strict)
    return replace(check.verdict(), facts=Facts(sql=check.facts()))


def _within_rows(verdict: Verdict, trees: Iterable[exp.Expr], max_rows: int) -> Verdict:
    """Return the verdict, or a refusal if the statements of a block together may return too many rows."""
    total = sum(row_bound(tree) or 0 for tree in trees)
    if total <= max_rows:
        return verdict
    problem = f"the statements together may return {total} rows: at most {max_rows} are allowed, so lower their LIMIT"
    return with_problem(verdict, "within_max_rows", problem)


def _other_reading(parsed: ParsedSql, limits: AccessLimits) -> str:
    """Return why the text is something else to a database that reads its strings and comments differently.

    The empty string if there is no such database, or if the text is a permitted read to all of them.
    """
    for reading in other_readings(parsed.text, parsed.dialect):
        other = parse_sql(reading.text, reading.dialect)
        if isinstance(other, UnparsableSql) and reading.shorter and not has_statement_words(parsed):
            continue
        if not _reads_no_more(other, parsed, replace(limits, dialect=reading.dialect)):
            return _READ_DIFFERENTLY
    return ""


def _reads_no_more(other: ParsedSql | UnparsableSql, parsed: ParsedSql, limits: AccessLimits) -> bool:
    """Return True if another reading of a text is one permitted read of the tables and columns of the first one."""
    if not isinstance(other, ParsedSql) or len(other.statements) != 1:
        return False
    check, first = _StatementCheck(other, limits), _StatementCheck(parsed, limits)
    if not check.verdict().verified or any(effect.kind is not EffectKind.READ for effect in check.verdict().effects):
        return False
    columns = set(_column_names(check.statement)) <= set(_column_names(first.statement))
    return columns and set(check.names.names) <= set(first.names.names)


def _with_repair(check: "_StatementCheck", limits: AccessLimits) -> Verdict:
    verdict = check.verdict()
    if verdict.status is not Status.FAILED or check.parsed.prefix:
        return verdict
    tree, dialect = narrow_query(check.statement, check.names, limits), check.parsed.dialect
    text = tree.sql(dialect=dialect, comments=False) if tree is not None else ""
    reparsed = parse_sql(text, dialect) if text else None
    # Printing drops what a dialect does not support: if the text parses as another query, it is not a repair.
    if not isinstance(reparsed, ParsedSql) or reparsed.statements != (tree,):
        return verdict
    if not _StatementCheck(reparsed, limits, strict=check.strict).verdict().verified:
        return verdict
    return check.verdict(corrected={"query": text})


def _verdict(status: Status, message: str, **rest: Any) -> Verdict:
    return Verdict(
        status=status, engine=ENGINE, message=message, **{"effects": _UNRESOLVED, "facts": _UNREAD_FACTS, **rest}
    )


def _unparsable_verdict(text: str, parsed: UnparsableSql, limits: AccessLimits) -> Verdict:
    """Return FAILED for a text that does not parse, BLOCKED if it shows an attack, INCONCLUSIVE if it is too large."""
    visible = _effects_in_text(text)
    violations = [*visible.violations, *token_violations(parsed.tokens)]
    if parsed.tokens:
        violations += comment_violations(text, parsed.tokens)
    if not parsed.too_large:
        violations += fragment_violations(text)
    if violations:
        unique = tuple(dict.fromkeys(violations))
        message = f"the query looks like an injection ({', '.join(unique)}): send one whole statement"
        effects = tuple(dict.fromkeys((*visible.effects, *_UNRESOLVED)))
        failed = ("syntax_valid", "no_injection")
        return _verdict(Status.BLOCKED, message, checks_failed=failed, violations=unique, effects=effects)
    status = Status.INCONCLUSIVE if parsed.too_large else Status.FAILED
    name = limits.dialect or "generic SQL"
    return _verdict(status, f"cannot read the query as {name}: {parsed.problem}", checks_failed=("syntax_valid",))


def _effects_in_text(text: str) -> StatementEffects:
    """Return what is visible in a text that does not parse: a known command, and calls of known functions."""
    matched = classify_command(text)
    calls = list(dangerous_calls(text))
    violations = [violation for violation, _ in calls]
    if matched is not None and matched.violation:
        violations.append(matched.violation)
    return StatementEffects(
        effects=[*(matched.effects if matched else ()), *(effect for _, effect in calls)], violations=violations
    )


def _stacked_verdict(parsed: ParsedSql) -> Verdict:
    effects = [
        effect
        for statement in parsed.statements[:_MAX_STATEMENTS]
        for effect in effects_of(statement, StatementNames(statement)).effects
    ]
    return _verdict(
        Status.BLOCKED,
        f"{len(parsed.statements)} statements in one query: send them one by one, or as one transaction block "
        "(`BEGIN; ...; COMMIT`)",
        effects=tuple(dict.fromkeys(effects)),
        checks_passed=("syntax_valid",),
        checks_failed=("single_statement", "no_injection"),
        violations=(STACKED,),
        facts=Facts(sql=facts_of_stack(parsed.statements[:_MAX_STATEMENTS])),
    )


@dataclass(slots=True)
class _Checks:
    """Checks in their order, and the messages of the failed ones."""

    passed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def note(self, name: str, problem: str) -> None:
        """Record a check: failed with the problem, or passed if `problem` is empty."""
        (self.failed if problem else self.passed).append(name)
        if problem:
            self.problems.append(problem)


class _StatementCheck:
    """Analysis of one parsed statement."""

    def __init__(self, parsed: ParsedSql, limits: AccessLimits, *, strict: bool = False) -> None:
        self.parsed = parsed
        self.strict = strict
        self.statement = parsed.statements[0]
        self.names = StatementNames(self.statement, limits.target)
        self._limits = limits
        self._summary: StatementEffects = effects_of(
            self.statement, self.names, blank_comments(parsed.text, parsed.tokens), limits.target
        )
        self._unknown_calls = self._find_unknown_calls()
        self._summary.effects += [Effect(EffectKind.UNRESOLVED, name) for name in self._unknown_calls]
        self._violations = tuple(dict.fromkeys(self._find_violations()))
        self._doubts = self._find_doubts()
        self._checks = _Checks()
        self._notes: list[str] = []
        self._run_checks()

    def _find_violations(self) -> Iterable[str]:
        yield from self._summary.violations
        yield from comment_violations(self.parsed.text, self.parsed.tokens)
        yield from tree_violations(self.statement, self.names, self._limits.sensitive)

    def _find_unknown_calls(self) -> list[str]:
        if self._summary.text_only:
            return []
        names = unknown_calls(self.parsed, self._limits.target, self._limits.functions)
        return [name for name in names if name.rpartition(".")[2] not in self._summary.known_calls]

    def add_doubt(self, doubt: str) -> None:
        """Record why the effects of the statement are not certain; the empty string records nothing."""
        if doubt:
            self._doubts.append(doubt)

    def _find_doubts(self) -> list[str]:
        doubts = [f"function `{name}` is not known to be harmless" for name in self._unknown_calls]
        doubts += [
            f"cannot determine what is read from `{name}`: name the table and its columns directly"
            for name in self._summary.unknown_sources
        ]
        unnamed = unnamed_read(self.parsed, self.names, self._limits)
        if unnamed:
            doubts.append(f"`{unnamed}` reads columns without naming them: list the columns, with their tables")
        problem = reading_problem(self.parsed, self._limits.target)
        return [*doubts, problem] if problem else doubts

    def _run_checks(self) -> None:
        checks, summary, limits = self._checks, self._summary, self._limits
        unresolved = f"`{summary.unresolved}` cannot be resolved: send the statement it would run"
        checks.note("syntax_valid", unresolved if summary.unresolved else "")
        checks.note("single_statement", "")
        checks.note("no_injection", violation_message(self._violations))
        dangerous = [
            violation for violation in self._violations if violation.startswith((DANGEROUS_FUNCTION, FILE_ACCESS))
        ]
        if dangerous or not self._unknown_calls:
            checks.note("no_dangerous_functions", violation_message(dangerous))
        self._check_access(checks, limits)
        if limits.max_rows is not None:
            checks.note("within_max_rows", rows_problem(self.statement, limits.max_rows))
        self._check_changes(checks)

    def _check_changes(self, checks: _Checks) -> None:
        """Pass if the statement only reads; fail a write in a strict request only.

        Unresolved effects neither pass nor fail the check.
        """
        kinds = dict.fromkeys(effect.kind for effect in self._summary.effects)
        changes = ", ".join(kind.value for kind in kinds if kind not in _HARMLESS)
        if changes:
            self._notes.append(f"not read-only: {changes}")
        if changes and self.strict:
            checks.note("no_destructive_operations", f"only reads are allowed here, this would {changes}")
        elif not changes and EffectKind.UNRESOLVED not in kinds:
            checks.note("no_destructive_operations", "")

    def _check_access(self, checks: _Checks, limits: AccessLimits) -> None:
        statement, names = self.statement, self.names
        if limits.tables is not None:
            described = isinstance(statement, exp.Show) or bool(self._summary.text_only) or reads_catalog(statement)
            checks.note("tables_allowed", table_problem(names, _DESCRIBED_TABLES if described else (), limits))
        unlisted = unlisted_star(statement, names, limits) if limits.explicit else ""
        hidden = f"{unlisted} may hold columns that are not allowed: list the columns" if unlisted else ""
        if limits.columns is not None:
            checks.note("columns_allowed", hidden or column_problem(statement, names, limits))
        sensitive = sensitive_problem(statement, names, limits) or (hidden if limits.columns is None else "")
        checks.note("no_sensitive_columns", sensitive)
        if sensitive or any(is_credential_table(name) for name in names.names):
            self._summary.effects.append(Effect(EffectKind.SECRET, names.names[0] if names.names else "column"))
        schema = limits.schema
        unfit = schema_problem(statement, names, schema, self.parsed.dialect) if schema else ""
        checks.note("schema_valid", unfit or width_problem(statement))

    def verdict(self, corrected: dict[str, Any] | None = None) -> Verdict:
        """Return the verdict, with a repair if there is one."""
        checks = self._checks
        status = self._status()
        effects = self._summary.effects
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

    def facts(self) -> SqlFacts:
        """Return the facts of the statement."""
        summary = self._summary
        is_certain = not (self._violations or self._doubts or summary.unknown_sources or summary.text_only)
        return facts_of(self.parsed, self.names, self._limits, summary.effects, resolved=is_certain)

    def _status(self) -> Status:
        if self._violations or (self.strict and "no_destructive_operations" in self._checks.failed):
            return Status.BLOCKED
        if self._checks.failed:
            return Status.FAILED
        return Status.INCONCLUSIVE if self._doubts else Status.VERIFIED

    def _result(self) -> dict[str, Any]:
        return {
            "statement": self.parsed.prefix or statement_name(self.statement),
            "dialect": self.parsed.dialect or "generic",
            "tables": list(self.names.names),
            "columns": _column_names(self.statement),
            "complexity": complexity(self.statement, self.names),
            "notes": self._notes,
        }


def _column_names(statement: exp.Expr) -> list[str]:
    names = (column.name.lower() for column in statement.find_all(exp.Column, bfs=False))
    return list(dict.fromkeys(name for name in names if name != "*"))


def complexity(statement: exp.Expr, names: StatementNames) -> dict[str, int]:
    """Estimate the work for a database; the cost has no unit and only orders queries."""
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
