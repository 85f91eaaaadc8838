"""Effects of a statement, collected from its whole tree: a CTE may delete and a SELECT may write."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from qwed.engines._sql.catalog import is_opaque_catalog
from qwed.engines._sql.commands import DANGEROUS_FUNCTION, FILE_ACCESS, SHELL, classify_command, dangerous_calls
from qwed.engines._sql.constant_folding import ignores_rows, values_under
from qwed.engines._sql.function_names import is_pure, table_readers
from qwed.engines._sql.functions import (
    CallKind,
    call_name,
    classify_call,
    effects_of_call,
    file_effects,
)
from qwed.engines._sql.table_names import StatementNames, is_file, is_remote, may_be_file, table_name
from qwed.model import Effect, EffectKind

UNRESOLVED_STATEMENT = "unresolved_statement"

STATEMENTS: dict[type[exp.Expr], str] = {
    exp.Select: "SELECT",
    exp.Union: "SELECT",
    exp.Except: "SELECT",
    exp.Intersect: "SELECT",
    exp.Subquery: "SELECT",
    exp.Values: "VALUES",
    exp.Pivot: "SELECT",
    exp.Summarize: "SUMMARIZE",
    exp.Describe: "DESCRIBE",
    exp.Show: "SHOW",
    exp.Insert: "INSERT",
    exp.Update: "UPDATE",
    exp.Delete: "DELETE",
    exp.Merge: "MERGE",
    exp.TruncateTable: "TRUNCATE",
    exp.Drop: "DROP",
    exp.Create: "CREATE",
    exp.Alter: "ALTER",
    exp.Grant: "GRANT",
    exp.Revoke: "REVOKE",
    exp.Comment: "COMMENT",
    exp.Set: "SET",
    exp.Use: "USE",
    exp.Copy: "COPY",
    exp.Transaction: "BEGIN",
    exp.Commit: "COMMIT",
    exp.Rollback: "ROLLBACK",
}
"""Statements that can be resolved; any other root is refused, even if it parses."""

_ADMIN_WORDS = frozenset({"SET", "ALTER", "CREATE", "DROP", "GRANT", "REVOKE", "LOCK", "PRAGMA", "ANALYZE"})
_PLAIN_CREATES = frozenset({"TABLE", "VIEW", "INDEX", "SCHEMA", "DATABASE", "SEQUENCE"})
_STREAMS = frozenset({"STDIN", "STDOUT"})
_SOURCES = (exp.Table, exp.Query, exp.Values, exp.Unnest, exp.Lateral, exp.Paren, exp.Pivot, exp.Final, exp.JSONTable)
_BODIES = (*_SOURCES, exp.DML, exp.Summarize, exp.Describe, exp.Show)
_PLAIN_SETTINGS = (
    *("max_", "min_", "optimize_", "join_", "group_by_", "output_format_", "use_uncompressed_cache", "final"),
    *("prefer_localhost_replica", "totals_mode", "force_", "skip_unavailable_shards", "distributed_", "extremes"),
)
_XQUERY_CALL = re.compile(r"([\w:.-]*)\s*\(")
_XQUERY_FUNCTIONS = frozenset(
    """
    text node comment processing-instruction position last count sum avg min max not contains starts-with ends-with
    string number boolean name local-name normalize-space concat substring string-length translate true false data
    distinct-values exists empty upper-case lower-case round floor ceiling
    """.split()  # noqa: SIM905 - a table of words reads better than a list of literals
) | {""}
_ADMIN_TYPES = (
    exp.Grant,
    exp.Revoke,
    exp.Comment,
    exp.Set,
    exp.Use,
    exp.Transaction,
    exp.Commit,
    exp.Rollback,
    exp.Alter,
)


_CHANGES = (exp.Insert, exp.Update, exp.Delete, exp.Merge)
"""Statements that change a table; one whose table is not known is unresolved."""


@dataclass(slots=True)
class StatementEffects:
    """Effects and violations of one statement."""

    effects: list[Effect] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    known_calls: set[str] = field(default_factory=set)
    """Names of the functions whose effects are among these."""
    unknown_sources: list[str] = field(default_factory=list)
    unresolved: str = ""
    """Statement that cannot be judged, if there is one."""
    text_only: str = ""
    """Statement known only by its first words, so that its tables are unknown."""


def statement_name(statement: exp.Expr) -> str:
    """Return SELECT, UPDATE, ...; the first word of a statement that cannot be resolved."""
    name = STATEMENTS.get(type(statement))
    if name:
        return name
    return str(statement.this).upper() if isinstance(statement, exp.Command) else statement.key.upper()


def effects_of(statement: exp.Expr, names: StatementNames, text: str = "", target: str = "") -> StatementEffects:
    """Return everything the statement would do, apart from calls that are not known.

    `text` is the original, for what the parser leaves as text; `target` is the dialect of the database, if it is known.
    """
    summary = StatementEffects()
    if type(statement) not in STATEMENTS:
        _add_text_effects(summary, statement, text or statement.sql())
    targets: set[int] = set()
    for node in statement.walk():
        handle = _HANDLERS.get(type(node))
        pairs = list(handle(node, names, summary)) if handle else []
        for effect, table in pairs:
            summary.effects.append(effect)
            targets.add(id(table))
        # A branch of MERGE changes the table of the MERGE.
        if isinstance(node, _CHANGES) and not pairs and not isinstance(node.parent, exp.When):
            summary.unknown_sources.append(statement_name(node))
            summary.effects.append(Effect(EffectKind.UNRESOLVED, statement_name(node)))
        if not summary.text_only:
            _add_call_effects(node, summary, target)
    if not summary.text_only:
        _add_read_effects(names, targets, summary, target)
    summary.effects = list(dict.fromkeys(summary.effects))
    return summary


_TableEffects = Iterator[tuple[Effect, exp.Expr]]


def _add_text_effects(summary: StatementEffects, node: exp.Expr, text: str) -> None:
    matched = classify_command(text)
    targets = {effect.target for effect in matched.effects} if matched else set()
    for violation, effect in dangerous_calls(text):
        if effect.target not in targets:
            summary.violations.append(violation)
            summary.effects.append(effect)
    if matched is None:
        _mark_unresolved(summary, node)
        return
    summary.text_only = statement_name(node)
    summary.effects += matched.effects
    summary.violations += [matched.violation] if matched.violation else []


def _mark_unresolved(summary: StatementEffects, node: exp.Expr) -> None:
    word = statement_name(node)
    if word in _ADMIN_WORDS:
        summary.effects.append(Effect(EffectKind.ADMIN, word))
    summary.effects.append(Effect(EffectKind.UNRESOLVED, word))
    summary.violations.append(UNRESOLVED_STATEMENT)
    summary.unresolved = word


def _add_call_effects(node: exp.Expr, summary: StatementEffects, target: str) -> None:
    call = classify_call(node, target)
    if call is CallKind.PURE:
        return
    name = call_name(node)
    summary.known_calls.add(name)
    if call is CallKind.DANGEROUS:
        summary.effects += effects_of_call(node)
        summary.violations.append(f"{DANGEROUS_FUNCTION}:{name}")
    else:
        summary.effects.append(Effect(EffectKind.WRITE, name))


def _add_read_effects(names: StatementNames, targets: set[int], summary: StatementEffects, target: str) -> None:
    for table in names.tables:
        if is_file(table, target):
            summary.violations.append(FILE_ACCESS)
            summary.effects += file_effects(EffectKind.READ, table.name)
        if is_remote(table):
            summary.effects.append(Effect(EffectKind.NETWORK, names.name_of(table)))
        if _is_unknown_source(table, target):
            summary.effects.append(Effect(EffectKind.UNRESOLVED, names.name_of(table)))
            summary.unknown_sources.append(names.name_of(table))
        elif id(table) not in targets:
            summary.effects.append(Effect(EffectKind.READ, names.name_of(table)))


def _is_unknown_source(table: exp.Table, target: str) -> bool:
    """Return True if the columns or the table itself cannot be told from the name."""
    name = table.name.lower()
    action = name.startswith("pragma_") and not is_pure(name, "sqlite")
    named = isinstance(table.this, exp.Parameter | exp.Placeholder) or bool(table.alias_column_names)
    return (
        named or action or may_be_file(table, target) or _shows_extremes(table) or is_opaque_catalog(table_name(table))
    )


def _shows_extremes(table: exp.Table) -> bool:
    """Return True for the smallest and largest value of a column in the catalogue of Oracle."""
    select = table.parent_select if table.name.lower().endswith(("_tab_columns", "_tab_cols")) else None
    columns = select.find_all(exp.Column) if select is not None else ()
    return any(column.name.lower() in {"low_value", "high_value"} for column in columns)


def _targets(node: exp.Expr | None, names: StatementNames) -> list[tuple[str, exp.Expr]]:
    """Return the table a statement changes, without the column list around it."""
    inner = node.this if isinstance(node, exp.Schema) else node
    if isinstance(inner, exp.Table) and table_name(inner):
        return [(names.name_of(inner), inner)]
    return []


def _insert(node: exp.Expr, names: StatementNames, summary: StatementEffects) -> _TableEffects:
    if isinstance(node.this, exp.Directory):
        summary.violations.append(FILE_ACCESS)
    for name, table in _targets(node.this, names):
        yield Effect(EffectKind.WRITE, name, unbounded=bool(node.args.get("overwrite"))), table


def _update(node: exp.Expr, names: StatementNames, _summary: StatementEffects) -> _TableEffects:
    for name, table in _targets(node.this, names):
        yield Effect(EffectKind.WRITE, name, unbounded=_affects_every_row(node)), table


def _delete(node: exp.Expr, names: StatementNames, _summary: StatementEffects) -> _TableEffects:
    listed = node.args.get("tables") or [node.this]
    for target in listed:
        for name, table in _targets(target, names):
            yield Effect(EffectKind.DELETE, name, unbounded=_affects_every_row(node)), table


def _affects_every_row(node: exp.Expr) -> bool:
    where = node.args.get("where")
    return where is None or ignores_rows(where.this, values_under(where.this))


def _merge(node: exp.Expr, names: StatementNames, _summary: StatementEffects) -> _TableEffects:
    deletes = any(when.args["then"].name.upper() == "DELETE" for when in node.find_all(exp.When))
    for name, table in _targets(node.this, names):
        yield Effect(EffectKind.WRITE, name), table
        if deletes:
            yield Effect(EffectKind.DELETE, name), table


def _drop(node: exp.Expr, names: StatementNames, _summary: StatementEffects) -> _TableEffects:
    listed = node.args.get("tables") or node.expressions or [node.this]
    pairs = [pair for target in listed for pair in _targets(target, names)]
    for name, table in pairs or [(node.name.lower() or statement_name(node), node)]:
        yield Effect(EffectKind.DELETE, name), table


def _create(node: exp.Expr, names: StatementNames, summary: StatementEffects) -> _TableEffects:
    """Yield WRITE for a new table, and ADMIN for any other object."""
    kind = str(node.args.get("kind") or "").upper()
    if kind not in _PLAIN_CREATES or node.find(exp.ExecuteAsProperty):
        # `AS EXECUTE name` runs a statement that was prepared before.
        _mark_unresolved(summary, node)
    if node.find(exp.LocationProperty, exp.ExternalProperty):
        summary.violations.append(FILE_ACCESS)
    effect_kind = EffectKind.WRITE if kind == "TABLE" else EffectKind.ADMIN
    for name, table in _targets(node.this, names) or [(kind, node)]:
        yield Effect(effect_kind, name), table
        if node.args.get("replace") and kind == "TABLE":
            yield Effect(EffectKind.DELETE, name), table


def _admin(node: exp.Expr, names: StatementNames, summary: StatementEffects) -> _TableEffects:
    matched = classify_command(node.sql()) if isinstance(node, exp.Set) else None
    summary.violations += [matched.violation] if matched and matched.violation else []
    pairs = _targets(node.args.get("securable") or node.args.get("this"), names)
    for name, table in pairs or [(statement_name(node), node)]:
        yield Effect(EffectKind.ADMIN, name), table


def _source(node: exp.Expr, _names: StatementNames, summary: StatementEffects) -> _TableEffects:
    is_call = isinstance(node.this, exp.TableFromRows) and isinstance(node.this.this, exp.Func)
    source = node.this.this if isinstance(node.this, exp.Table) else None
    if isinstance(source, exp.Func) and call_name(source) in table_readers():
        summary.unknown_sources.append(call_name(source))
        yield Effect(EffectKind.UNRESOLVED, call_name(source)), node
    elif not is_call and not isinstance(node.this, _SOURCES):
        summary.unknown_sources.append(node.this.key if isinstance(node.this, exp.Expr) else node.key)
        yield Effect(EffectKind.UNRESOLVED, summary.unknown_sources[-1]), node


def _body(node: exp.Expr, _names: StatementNames, summary: StatementEffects) -> _TableEffects:
    """Record the body of a CTE or a subquery that is not known to be a query."""
    if not isinstance(node.this, _BODIES):
        summary.unknown_sources.append(node.this.key if isinstance(node.this, exp.Expr) else node.key)
        yield Effect(EffectKind.UNRESOLVED, summary.unknown_sources[-1]), node


def _in_list(node: exp.Expr, names: StatementNames, summary: StatementEffects) -> _TableEffects:
    """Record the table of `id IN secrets`, which SQLite and ClickHouse read."""
    source = node.args.get("field")
    if isinstance(source, exp.Column) and not names.has_cte(source.name):
        summary.unknown_sources.append(source.sql())
        yield Effect(EffectKind.UNRESOLVED, source.sql()), node


def _into(node: exp.Expr, names: StatementNames, _summary: StatementEffects) -> _TableEffects:
    for name, table in _targets(node.this, names):
        yield Effect(EffectKind.WRITE, name), table


def _copy(node: exp.Expr, names: StatementNames, summary: StatementEffects) -> _TableEffects:
    files = [file.name for file in node.args.get("files") or ()]
    outside = [file for file in files if file.upper() not in _STREAMS]
    inward = bool(node.args.get("kind"))
    if any(file.upper() == "PROGRAM" for file in files):
        summary.effects.append(Effect(EffectKind.EXECUTE, "PROGRAM"))
        summary.violations.append(SHELL)
    for file in outside:
        summary.effects += file_effects(EffectKind.READ if inward else EffectKind.WRITE, file)
    if not files or outside:
        summary.violations.append(FILE_ACCESS)
    effect_kind = EffectKind.WRITE if inward else EffectKind.READ
    for name, table in _targets(node.this, names):
        yield Effect(effect_kind, name), table


def _xquery(node: exp.Expr, _names: StatementNames, summary: StatementEffects) -> _TableEffects:
    """Record a query of XML that calls more than plain functions: `fn:collection` of Oracle reads a table."""
    holder = node.parent
    if "(" in node.name and isinstance(holder, exp.Func) and "xml" in call_name(holder).replace("_", ""):
        calls = {name.lower() for name in _XQUERY_CALL.findall(node.name)}
        if calls - _XQUERY_FUNCTIONS:
            summary.unknown_sources.append(call_name(holder))
            yield Effect(EffectKind.UNRESOLVED, call_name(holder)), node


def _settings(node: exp.Expr, _names: StatementNames, summary: StatementEffects) -> _TableEffects:
    """Record SETTINGS of ClickHouse, apart from limits and choices of how a query is computed."""
    for setting in node.args.get("settings") or ():
        name = setting.this.name.lower()
        if not name.startswith(_PLAIN_SETTINGS) or setting.expression.name == "0":
            summary.unknown_sources.append(name)
            yield Effect(EffectKind.UNRESOLVED, name), node


def _describe(node: exp.Expr, _names: StatementNames, summary: StatementEffects) -> _TableEffects:
    """Record what is described, unless it is a table or a query: ClickHouse asks the address in a function for it."""
    described = node.this
    if described is None:
        return
    if not isinstance(described, exp.Table | exp.Query) or isinstance(described.this, exp.Func):
        summary.unknown_sources.append(described.sql())
        yield Effect(EffectKind.UNRESOLVED, described.sql()), node


def _summarize(node: exp.Expr, _names: StatementNames, summary: StatementEffects) -> _TableEffects:
    if not isinstance(node.this, exp.Table | exp.Query):
        summary.unknown_sources.append(node.this.name)
        yield Effect(EffectKind.UNRESOLVED, node.this.name), node


def _show(node: exp.Expr, _names: StatementNames, _summary: StatementEffects) -> _TableEffects:
    yield Effect(EffectKind.READ, "information_schema"), node


def _nested(node: exp.Expr, _names: StatementNames, summary: StatementEffects) -> _TableEffects:
    if node.parent is not None:
        _mark_unresolved(summary, node)
    yield from ()


def _sequence(node: exp.Expr, _names: StatementNames, summary: StatementEffects) -> _TableEffects:
    """Record a column named NEXTVAL, which draws from a sequence in Oracle."""
    if node.name.upper() == "NEXTVAL" and isinstance(node, exp.Column) and node.table:
        summary.effects.append(Effect(EffectKind.WRITE, node.table.lower()))
    yield from ()


_HANDLERS: dict[type[exp.Expr], Callable[[exp.Expr, StatementNames, StatementEffects], _TableEffects]] = {
    exp.Insert: _insert,
    exp.Update: _update,
    exp.Delete: _delete,
    exp.Merge: _merge,
    exp.Drop: _drop,
    exp.TruncateTable: _drop,
    exp.Create: _create,
    exp.Into: _into,
    exp.In: _in_list,
    exp.CTE: _body,
    exp.Subquery: _body,
    exp.From: _source,
    exp.Join: _source,
    exp.Copy: _copy,
    exp.Show: _show,
    exp.Describe: _describe,
    exp.Select: _settings,
    exp.Literal: _xquery,
    exp.Summarize: _summarize,
    exp.Command: _nested,
    exp.Execute: _nested,
    exp.Column: _sequence,
    **dict.fromkeys(_ADMIN_TYPES, _admin),
}
