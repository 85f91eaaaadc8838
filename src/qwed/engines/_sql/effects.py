"""What a statement would do, counted everywhere in its tree: a CTE may delete and a SELECT may write."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from qwed.engines._sql.commands import DANGEROUS_FUNCTION, FILE_ACCESS, SHELL, calls_in, command
from qwed.engines._sql.functions import Call, call_name, call_of, effects_of_call, file_effects
from qwed.engines._sql.names import Names, is_file, is_remote, table_name
from qwed.engines._sql.truth import ignores_rows, values_under
from qwed.words import Effect, EffectKind

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
"""The statements we can resolve; any other root is refused, even one that happens to parse."""

_ADMIN_WORDS = frozenset({"SET", "ALTER", "CREATE", "DROP", "GRANT", "REVOKE", "LOCK", "PRAGMA", "ANALYZE"})
_PLAIN_CREATES = frozenset({"TABLE", "VIEW", "INDEX", "SCHEMA", "DATABASE", "SEQUENCE"})
_STREAMS = frozenset({"STDIN", "STDOUT"})
_SOURCES = (exp.Table, exp.Query, exp.Values, exp.Unnest, exp.Lateral, exp.Paren, exp.Pivot, exp.Final, exp.JSONTable)
_SWITCH = (exp.Grant, exp.Revoke, exp.Comment, exp.Set, exp.Use, exp.Transaction, exp.Commit, exp.Rollback, exp.Alter)


@dataclass(slots=True)
class Deeds:
    """What was found: effects, violations, and calls nobody knows."""

    effects: list[Effect] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    unknown_calls: list[str] = field(default_factory=list)
    unknown_sources: list[str] = field(default_factory=list)
    unresolved: str = ""
    """The statement that cannot be judged, if there is one."""
    untold: str = ""
    """A statement known by its first words alone: which tables it names is not known."""


def statement_name(statement: exp.Expr) -> str:
    """SELECT, UPDATE, ...; the first word of a statement we cannot resolve."""
    known = STATEMENTS.get(type(statement))
    if known:
        return known
    return str(statement.this).upper() if isinstance(statement, exp.Command) else statement.key.upper()


def deeds_of(statement: exp.Expr, names: Names, text: str = "") -> Deeds:
    """Everything the statement would do; `text` is how it was sent, for what the parser does not take apart."""
    deeds = Deeds()
    if type(statement) not in STATEMENTS:
        _judge_text(deeds, statement, text or statement.sql())
    targets: set[int] = set()
    for node in statement.walk():
        handle = _HANDLERS.get(type(node))
        for effect, table in handle(node, names, deeds) if handle else ():
            deeds.effects.append(effect)
            targets.add(id(table))
        if not deeds.untold:
            _judge_call(node, deeds)
    if not deeds.untold:
        _judge_reads(names, targets, deeds)
    deeds.effects = list(dict.fromkeys(deeds.effects))
    return deeds


_Found = Iterator[tuple[Effect, exp.Expr]]


def _judge_text(deeds: Deeds, node: exp.Expr, text: str) -> None:
    known = command(text)
    named = {effect.target for effect in known.effects} if known else set()
    for violation, effect in calls_in(text):
        if effect.target not in named:
            deeds.violations.append(violation)
            deeds.effects.append(effect)
    if known is None:
        _refuse(deeds, node)
        return
    deeds.untold = statement_name(node)
    deeds.effects += known.effects
    deeds.violations += [known.violation] if known.violation else []


def _refuse(deeds: Deeds, node: exp.Expr) -> None:
    word = statement_name(node)
    if word in _ADMIN_WORDS:
        deeds.effects.append(Effect(EffectKind.ADMIN, word))
    deeds.effects.append(Effect(EffectKind.UNRESOLVED, word))
    deeds.violations.append(UNRESOLVED_STATEMENT)
    deeds.unresolved = word


def _judge_call(node: exp.Expr, deeds: Deeds) -> None:
    call = call_of(node)
    if call is Call.PURE:
        return
    name = call_name(node)
    if call is Call.DANGEROUS:
        deeds.effects += effects_of_call(node)
        deeds.violations.append(f"{DANGEROUS_FUNCTION}:{name}")
    elif call is Call.STATEFUL:
        deeds.effects.append(Effect(EffectKind.WRITE, name))
    else:
        deeds.effects.append(Effect(EffectKind.UNRESOLVED, name))
        deeds.unknown_calls.append(name)


def _judge_reads(names: Names, targets: set[int], deeds: Deeds) -> None:
    for table in names.tables:
        if is_file(table):
            deeds.violations.append(FILE_ACCESS)
            deeds.effects += file_effects(EffectKind.READ, table.name)
        if is_remote(table):
            deeds.effects.append(Effect(EffectKind.NETWORK, names.name_of(table)))
        if isinstance(table.this, exp.Parameter | exp.Placeholder) or table.alias_column_names:
            deeds.effects.append(Effect(EffectKind.UNRESOLVED, names.name_of(table)))
            deeds.unknown_sources.append(names.name_of(table))
        elif id(table) not in targets:
            deeds.effects.append(Effect(EffectKind.READ, names.name_of(table)))


def _targets(node: exp.Expr | None, names: Names) -> list[tuple[str, exp.Expr]]:
    """The table a statement works on, out of the list of columns it may stand in."""
    inner = node.this if isinstance(node, exp.Schema) else node
    if isinstance(inner, exp.Table) and table_name(inner):
        return [(names.name_of(inner), inner)]
    return []


def _insert(node: exp.Expr, names: Names, deeds: Deeds) -> _Found:
    if isinstance(node.this, exp.Directory):
        deeds.violations.append(FILE_ACCESS)
    for name, table in _targets(node.this, names):
        yield Effect(EffectKind.WRITE, name, unbounded=bool(node.args.get("overwrite"))), table


def _update(node: exp.Expr, names: Names, _deeds: Deeds) -> _Found:
    for name, table in _targets(node.this, names):
        yield Effect(EffectKind.WRITE, name, unbounded=_every_row(node)), table


def _delete(node: exp.Expr, names: Names, _deeds: Deeds) -> _Found:
    listed = node.args.get("tables") or [node.this]
    for each in listed:
        for name, table in _targets(each, names):
            yield Effect(EffectKind.DELETE, name, unbounded=_every_row(node)), table


def _every_row(node: exp.Expr) -> bool:
    where = node.args.get("where")
    return where is None or ignores_rows(where.this, values_under(where.this))


def _merge(node: exp.Expr, names: Names, _deeds: Deeds) -> _Found:
    deletes = any(when.args["then"].name.upper() == "DELETE" for when in node.find_all(exp.When))
    for name, table in _targets(node.this, names):
        yield Effect(EffectKind.WRITE, name), table
        if deletes:
            yield Effect(EffectKind.DELETE, name), table


def _drop(node: exp.Expr, names: Names, _deeds: Deeds) -> _Found:
    listed = node.args.get("tables") or node.expressions or [node.this]
    found = [pair for each in listed for pair in _targets(each, names)]
    for name, table in found or [(node.name.lower() or statement_name(node), node)]:
        yield Effect(EffectKind.DELETE, name), table


def _create(node: exp.Expr, names: Names, deeds: Deeds) -> _Found:
    """A new table is data written; any other object changes the database itself."""
    kind = str(node.args.get("kind") or "").upper()
    if kind not in _PLAIN_CREATES:
        _refuse(deeds, node)
    if node.find(exp.LocationProperty, exp.ExternalProperty):
        deeds.violations.append(FILE_ACCESS)
    wanted = EffectKind.WRITE if kind == "TABLE" else EffectKind.ADMIN
    for name, table in _targets(node.this, names) or [(kind, node)]:
        yield Effect(wanted, name), table
        if node.args.get("replace") and kind == "TABLE":
            yield Effect(EffectKind.DELETE, name), table


def _switch(node: exp.Expr, names: Names, deeds: Deeds) -> _Found:
    known = command(node.sql()) if isinstance(node, exp.Set) else None
    deeds.violations += [known.violation] if known and known.violation else []
    found = _targets(node.args.get("securable") or node.args.get("this"), names)
    for name, table in found or [(statement_name(node), node)]:
        yield Effect(EffectKind.ADMIN, name), table


def _source(node: exp.Expr, _names: Names, deeds: Deeds) -> _Found:
    called = isinstance(node.this, exp.TableFromRows) and isinstance(node.this.this, exp.Func)
    if not called and not isinstance(node.this, _SOURCES):
        deeds.unknown_sources.append(node.this.key if isinstance(node.this, exp.Expr) else node.key)
        yield Effect(EffectKind.UNRESOLVED, deeds.unknown_sources[-1]), node


def _into(node: exp.Expr, names: Names, _deeds: Deeds) -> _Found:
    for name, table in _targets(node.this, names):
        yield Effect(EffectKind.WRITE, name), table


def _copy(node: exp.Expr, names: Names, deeds: Deeds) -> _Found:
    files = [file.name for file in node.args.get("files") or ()]
    outside = [file for file in files if file.upper() not in _STREAMS]
    inward = bool(node.args.get("kind"))
    if any(file.upper() == "PROGRAM" for file in files):
        deeds.effects.append(Effect(EffectKind.EXECUTE, "PROGRAM"))
        deeds.violations.append(SHELL)
    for file in outside:
        deeds.effects += file_effects(EffectKind.READ if inward else EffectKind.WRITE, file)
    if not files or outside:
        deeds.violations.append(FILE_ACCESS)
    wanted = EffectKind.WRITE if inward else EffectKind.READ
    for name, table in _targets(node.this, names):
        yield Effect(wanted, name), table


def _show(node: exp.Expr, _names: Names, _deeds: Deeds) -> _Found:
    yield Effect(EffectKind.READ, "information_schema"), node


def _nested(node: exp.Expr, _names: Names, deeds: Deeds) -> _Found:
    if node.parent is not None:
        _refuse(deeds, node)
    yield from ()


def _sequence(node: exp.Expr, _names: Names, deeds: Deeds) -> _Found:
    """A column called NEXTVAL is Oracle's way to draw from a sequence."""
    if node.name.upper() == "NEXTVAL" and isinstance(node, exp.Column) and node.table:
        deeds.effects.append(Effect(EffectKind.WRITE, node.table.lower()))
    yield from ()


_HANDLERS: dict[type[exp.Expr], Callable[[exp.Expr, Names, Deeds], _Found]] = {
    exp.Insert: _insert,
    exp.Update: _update,
    exp.Delete: _delete,
    exp.Merge: _merge,
    exp.Drop: _drop,
    exp.TruncateTable: _drop,
    exp.Create: _create,
    exp.Into: _into,
    exp.From: _source,
    exp.Join: _source,
    exp.Copy: _copy,
    exp.Show: _show,
    exp.Command: _nested,
    exp.Execute: _nested,
    exp.Column: _sequence,
    **dict.fromkeys(_SWITCH, _switch),
}
