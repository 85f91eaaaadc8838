"""Shell engine: effects of a command, parsed in a worker because the parser is third-party code."""

from qwed.engines.protocol import EngineRequest
from qwed.guards import shell
from qwed.model import Effect, EffectKind, Status, Verdict

ENGINE = "shell"


def findings(command: str) -> shell.ShellFindings:
    """Return the findings of a command, with the statements of database clients judged as SQL."""
    return shell.findings(command, judge_statements)


def judge_statements(text: str, dialect: str) -> shell.StatementFindings:
    """Return the effects of the statements in a text; each is judged by itself, because a client may be given many."""
    from qwed.engines import sql
    from qwed.engines._sql.statements import split_statements

    statements = split_statements(text, dialect)
    if statements is None:
        return shell.StatementFindings(unresolved=("the statements cannot be told apart",))
    parameters = {"dialect": dialect} if dialect else {}
    verdicts = [sql.verify(EngineRequest(query=statement, parameters=parameters)) for statement in statements]
    files = {effect for verdict in verdicts if _reads_files(verdict, dialect) for effect in verdict.effects}
    refusing = [verdict for verdict in verdicts if not _reads_files(verdict, dialect)]
    return shell.StatementFindings(
        tuple(effect for verdict in refusing for effect in verdict.effects),
        tuple(violation for verdict in refusing for violation in verdict.violations),
        tuple(
            verdict.message or "a statement is not understood" for verdict in refusing if verdict.status in _UNDECIDED
        ),
        tuple(files),
    )


_UNDECIDED = frozenset({Status.INCONCLUSIVE, Status.FAILED, Status.ERROR})
_FILE_ACCESS = ("file_access",)


def _reads_files(verdict: Verdict, dialect: str) -> bool:
    """Return True if the statement only reads local files, which is what the command line of DuckDB is for."""
    reads = all(effect.kind is EffectKind.READ and "://" not in effect.target for effect in verdict.effects)
    return dialect == "duckdb" and verdict.violations == _FILE_ACCESS and reads


def verify(request: EngineRequest) -> Verdict:
    """Return the effects of the command; INCONCLUSIVE if unresolved, BLOCKED for a violation."""
    if not request.query:
        return Verdict(
            status=Status.FAILED,
            engine=ENGINE,
            message="give the command in `action.query`",
            effects=(Effect(EffectKind.UNRESOLVED),),
            checks_failed=("command_given",),
        )
    result = findings(request.query)
    if result.violations:
        return Verdict(
            status=Status.BLOCKED,
            engine=ENGINE,
            message="; ".join(result.violations),
            effects=result.effects,
            violations=result.violations,
            checks_failed=("no_dangerous_calls",),
        )
    unresolved = any(effect.kind is EffectKind.UNRESOLVED for effect in result.effects)
    return Verdict(
        status=Status.INCONCLUSIVE if unresolved else Status.VERIFIED,
        engine=ENGINE,
        message="part of the command cannot be resolved" if unresolved else "",
        effects=result.effects,
        checks_passed=("no_dangerous_calls",),
        checks_failed=("command_resolved",) if unresolved else (),
    )
