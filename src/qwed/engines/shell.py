"""Shell engine: effects of a command, parsed in a worker because the parser is third-party code."""

import re
from functools import reduce

from qwed.engines.protocol import EngineRequest
from qwed.guards import shell
from qwed.model import Effect, EffectKind, Facts, Status, Verdict
from qwed.model.facts import ShellFacts, SqlFacts, merge_sql

ENGINE = "shell"


def findings(command: str) -> shell.ShellFindings:
    """Return the findings of a command, with the statements of database clients judged as SQL."""
    return shell.findings(command, judge_statements)


def judge_statements(text: str, dialect: str) -> shell.StatementFindings:
    """Return the effects of the statements in a text; each is judged by itself, because a client may be given many."""
    from qwed.engines import sql
    from qwed.engines._sql.statements import split_statements
    from qwed.engines._sql.transactions import read_block

    block = read_block(text, dialect)
    if block is not None and not block.problem:
        statements: list[str] | None = [statement.text for statement in block.statements]
    else:
        statements = split_statements(text, dialect)
    if statements is None:
        unread = SqlFacts(complete=False)
        return shell.StatementFindings(unresolved=("the statements cannot be told apart",), facts=unread)
    parameters = {"dialect": dialect} if dialect else {}
    verdicts = [sql.verify(EngineRequest(query=statement, parameters=parameters)) for statement in statements]
    local = [dialect == "duckdb" and _uses_local_files(*pair) for pair in zip(statements, verdicts, strict=True)]
    files = {
        effect for verdict, is_local in zip(verdicts, local, strict=True) if is_local for effect in verdict.effects
    }
    refusing = [verdict for verdict, is_local in zip(verdicts, local, strict=True) if not is_local]
    return shell.StatementFindings(
        tuple(effect for verdict in refusing for effect in verdict.effects),
        tuple(violation for verdict in refusing for violation in verdict.violations),
        tuple(
            verdict.message or "a statement is not understood" for verdict in refusing if verdict.status in _UNDECIDED
        ),
        tuple(effect for effect in files if effect.kind in _FILE_KINDS),
        reduce(merge_sql, (verdict.facts.sql for verdict in verdicts), None),
    )


_UNDECIDED = frozenset({Status.INCONCLUSIVE, Status.FAILED, Status.ERROR})
_READERS = frozenset(
    {"read_csv", "read_csv_auto", "read_parquet", "parquet_scan", "read_json", "read_json_auto", "read_ndjson"}
)
_FILE_ACCESS = frozenset({"file_access", *(f"dangerous_function:{name}" for name in _READERS)})
_FILE_KINDS = frozenset({EffectKind.READ, EffectKind.WRITE})
_NOT_A_FILE = re.compile(r"://|\||^/dev/fd")
_COPIES = re.compile(r"(?i)copy\b")
_WRITES = re.compile(r"(?i)(?:copy|insert\s+into|create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+)?(?:table|view))\b")


def _uses_local_files(statement: str, verdict: Verdict) -> bool:
    """Return True if a statement of DuckDB only reads and writes local files, which is what its command line is for.

    A file that is not named by a literal has the name of the function as its target.
    """
    kinds = _FILE_KINDS if _WRITES.match(statement) else {EffectKind.READ}
    return (
        bool(verdict.violations)
        and _FILE_ACCESS.issuperset(verdict.violations)
        and all(
            (effect.kind in kinds and not _NOT_A_FILE.search(effect.target) and effect.target.lower() not in _READERS)
            or effect.kind is EffectKind.SECRET
            or (effect == _COPY_OPTIONS and _COPIES.match(statement) is not None)
            for effect in verdict.effects
        )
    )


_COPY_OPTIONS = Effect(EffectKind.UNRESOLVED, "copy")
"""Effect of the options of COPY."""


def verify(request: EngineRequest) -> Verdict:
    """Return the effects of the command; INCONCLUSIVE if unresolved, BLOCKED for a violation."""
    if not request.query:
        return Verdict(
            status=Status.FAILED,
            engine=ENGINE,
            message="give the command in `action.query`",
            effects=(Effect(EffectKind.UNRESOLVED),),
            checks_failed=("command_given",),
            facts=Facts(shell=ShellFacts(complete=False)),
        )
    result = findings(request.query)
    if result.violations:
        return Verdict(
            status=Status.BLOCKED,
            engine=ENGINE,
            message="; ".join(map(_violation_message, result.violations, result.refused))[:_MAX_MESSAGE],
            effects=result.effects,
            violations=result.violations,
            checks_failed=("no_dangerous_calls",),
            facts=result.facts,
        )
    unresolved = any(effect.kind is EffectKind.UNRESOLVED for effect in result.effects)
    return Verdict(
        status=Status.INCONCLUSIVE if unresolved else Status.VERIFIED,
        engine=ENGINE,
        message=f"part of the command cannot be resolved: {_reasons(result.unresolved)}" if unresolved else "",
        effects=result.effects,
        checks_passed=("no_dangerous_calls",),
        checks_failed=("command_resolved",) if unresolved else (),
        facts=result.facts,
    )


_VERBAL = frozenset(shell.Violation)
"""Violations of which the text is what the command does; those of statements and programs are names."""
_MAX_MESSAGE = 300
_MAX_COMMAND = 80
_MAX_REASONS = 3


def _violation_message(violation: str, command: str) -> str:
    """Return a violation with the command that has it, if one is known."""
    if not command:
        return violation
    shown = command if len(command) <= _MAX_COMMAND else f"{command[:_MAX_COMMAND]}..."
    return f"`{shown.replace('`', chr(39))}`{'' if violation in _VERBAL else ':'} {violation}"


def _reasons(unresolved: tuple[str, ...]) -> str:
    """Return the first reasons why a command is not resolved."""
    return "; ".join(unresolved[:_MAX_REASONS])[:_MAX_MESSAGE] or "its effects are not known"
