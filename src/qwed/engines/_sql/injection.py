"""Detection of injection in the syntax tree and in the tokens."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from sqlglot import Token, TokenType, exp

from qwed.engines._sql.blind_injection import ACCOUNT_TABLES, probe_violations
from qwed.engines._sql.catalog import is_catalog
from qwed.engines._sql.constant_folding import (
    UnknownValue,
    Values,
    always_holds,
    filters_nothing,
    ignores_rows,
    truth,
    values_under,
)
from qwed.engines._sql.introspection import reads_identity
from qwed.engines._sql.secret_columns import is_sensitive
from qwed.engines._sql.table_names import StatementNames, table_name

STACKED = "stacked_statements"
TAUTOLOGY = "tautology"
CHAINED = "chained_comparison"
UNION = "union_injection"
TIME_DELAY = "time_delay"
FILE_WRITE = "file_access"

_PREDICATES = (exp.Where, exp.Having, exp.Qualify, exp.Join)
_MAX_PAIRS = 20
_LETTER = 2
_COMPLEMENTS = ({exp.EQ, exp.NEQ}, {exp.GT, exp.LTE}, {exp.LT, exp.GTE})
_DANGEROUS_WORD_PAIRS = {("WAITFOR", "DELAY"): TIME_DELAY, ("WAITFOR", "TIME"): TIME_DELAY}
_DANGEROUS_WORD_PAIRS |= {
    ("INTO", "OUTFILE"): FILE_WRITE,
    ("INTO", "DUMPFILE"): FILE_WRITE,
    ("DATA", "INFILE"): FILE_WRITE,
}


def token_violations(tokens: Sequence[Token]) -> Iterator[str]:
    """Yield what the tokens of an unparsable text show: statements after a semicolon, waits, files."""
    started = False
    for first, second in pairwise([*tokens, None]):
        if first is None:
            return
        started = started or first.token_type is not TokenType.SEMICOLON
        if second is None:
            return
        if started and first.token_type is TokenType.SEMICOLON and second.token_type is not TokenType.SEMICOLON:
            yield STACKED
        verb = _DANGEROUS_WORD_PAIRS.get((first.text.upper(), second.text.upper()))
        if verb:
            yield verb


def tree_violations(statement: exp.Expr, names: StatementNames, sensitive: frozenset[str]) -> Iterator[str]:
    """Yield tautologies, foreign UNIONs and probes anywhere in the statement."""
    values = values_under(statement)
    alone = any(_is_always_true(clause, values) for clause in statement.find_all(exp.Where, exp.Having))
    if alone or (
        names.has_node(exp.Or, exp.Xor)
        and any(_has_always_true_side(node, values) for node in statement.find_all(exp.Or, exp.Xor))
    ):
        yield TAUTOLOGY
    if any(_is_chained(node) for node in statement.find_all(exp.EQ, exp.NEQ)):
        yield CHAINED
    for union in statement.find_all(exp.SetOperation) if names.has_node(exp.SetOperation) else ():
        if not isinstance(union.parent, exp.SetOperation) and _is_foreign_union(union, names, sensitive, values):
            yield UNION
    yield from probe_violations(statement, names, values)


def _is_always_true(clause: exp.Expr, values: Values) -> bool:
    """Return True if a whole condition is always true, although it names a column; `WHERE 1=1` is no condition."""
    condition = clause.this.unnest()
    if isinstance(condition, exp.Boolean | exp.Literal):
        return False
    if isinstance(clause, exp.Where) and filters_nothing(clause, values):
        return False
    if isinstance(condition, exp.Like | exp.ILike | exp.RegexpLike) and isinstance(condition.expression, exp.Literal):
        return False
    return always_holds(condition, values)


def _has_always_true_side(node: exp.Expr, values: Values) -> bool:
    if isinstance(node.parent, type(node)) or node.find_ancestor(*_PREDICATES, exp.Update, exp.Values) is None:
        return False
    sides = [side.unnest() for side in node.flatten()]
    return any(ignores_rows(side, values) for side in sides) or _cover_everything(sides) or _has_subsumed_side(sides)


def _is_chained(node: exp.Expr) -> bool:
    """Return True for `name = '' = ''`: the outer comparison is of a truth value, which coercion makes true for every
    row."""
    return (
        isinstance(node.this, exp.EQ | exp.NEQ | exp.Like | exp.ILike) and node.find_ancestor(*_PREDICATES) is not None
    )


def _cover_everything(sides: Sequence[exp.Expr]) -> bool:
    """Return True if one side is the opposite of another: `a = 1 OR a <> 1`, `a IS NULL OR NOT a IS NULL`."""
    seen: dict[tuple[str, str], set[type[exp.Expr]]] = {}
    lists = {side.sql() for side in sides if isinstance(side, exp.In)}
    if any(isinstance(side, exp.Not) and isinstance(side.this, exp.In) and side.this.sql() in lists for side in sides):
        return True
    for side in sides:
        positive = side.this.unnest() if isinstance(side, exp.Not) else side
        if not isinstance(positive, exp.Predicate) or not isinstance(positive, exp.Binary):
            continue
        kinds = seen.setdefault((positive.this.sql(), positive.expression.sql()), set())
        kinds.add(exp.Not if positive is not side else type(positive))
        if any(pair <= kinds for pair in _COMPLEMENTS) or (exp.Not in kinds and len(kinds) > 1):
            return True
    return False


def _has_subsumed_side(sides: Sequence[exp.Expr]) -> bool:
    """Return True for `id = 1 OR id > 0`, `name = '' OR name IS NOT NULL`: the second side subsumes the first."""
    equalities = [side for side in sides if isinstance(side, exp.EQ) and isinstance(side.expression, exp.Literal)]
    equalities = [side for side in equalities if isinstance(side.this, exp.Column)]
    return any(_subsumes(other, side) for side in equalities[:_MAX_PAIRS] for other in sides if other is not side)


def _subsumes(wide: exp.Expr, equality: exp.Expr) -> bool:
    if isinstance(wide, exp.Not) and isinstance(wide.this.unnest(), exp.Is):
        tested = wide.this.unnest()
        is_null_test = isinstance(tested.expression, exp.Null)
        return is_null_test and (tested.this == equality.this or not equality.expression.name)
    if not isinstance(wide, exp.GT | exp.GTE | exp.NEQ) or wide.this != equality.this:
        return False
    low, exact = wide.expression, equality.expression
    if not isinstance(low, exp.Literal):
        return False
    if isinstance(wide, exp.NEQ):
        return bool(low.name != exact.name)
    numbers = [
        literal.name
        for literal in (low, exact)
        if not literal.is_string and literal.name.isdigit() and literal.name.isascii()
    ]
    return len(numbers) == 2 and low.name == "0" and int(exact.name[:18]) > 0


def _is_foreign_union(union: exp.Expr, names: StatementNames, sensitive: frozenset[str], values: Values) -> bool:
    first, *others = _branches(union)
    if any(not isinstance(branch, exp.Query | exp.Values | exp.Table) for branch in (first, *others)):
        return True
    if not _tables(first, names):
        return False
    return any(_is_foreign_branch(first, other, names, sensitive, values) for other in others)


def _branches(union: exp.Expr) -> list[exp.Expr]:
    """Return the SELECTs of a chain of set operations, left to right, without recursion."""
    pending, selects = [union], []
    while pending:
        node = pending.pop().unnest()
        if isinstance(node, exp.SetOperation):
            pending += [node.expression, node.this]
        elif isinstance(node, exp.Subquery):
            pending.append(node.this)
        else:
            selects.append(node)
    return selects


def _tables(branch: exp.Expr, names: StatementNames) -> set[str]:
    return {table_name(table) for table in branch.find_all(exp.Table) if not names.is_cte(table)} - {""}


def _is_foreign_branch(
    first: exp.Expr, other: exp.Expr, names: StatementNames, sensitive: frozenset[str], values: Values
) -> bool:
    home, away = _tables(first, names), _tables(other, names)
    if any(is_catalog(name) for name in away - home):
        return True
    if away and away <= home:
        if not filters_nothing(other.args.get("where"), values):
            return False
        return _has_empty_result(first, values) or _picks_columns(first, other)
    if reads_identity(other) or _counts_columns(first, other, values):
        return True
    if not away:
        return False
    takes = any(is_sensitive(column.name.lower(), sensitive) for column in other.find_all(exp.Column))
    return (
        takes
        or (_pads_with_constants(first, other) and _has_empty_result(first, values))
        or _is_grafted(first, other, away, values)
    )


def _is_grafted(first: exp.Expr, other: exp.Expr, away: set[str], values: Values) -> bool:
    """Return True for an unfiltered read of accounts, with other columns, after a filter by one constant."""
    filtered = not filters_nothing(other.args.get("where"), values)
    if filtered or other.args.get("group") is not None or not _filters_by_constant(first):
        return False
    if not any(name.rpartition(".")[2] in ACCOUNT_TABLES for name in away):
        return _has_empty_result(first, values) and not _has_same_columns(first, other)
    return not _has_same_columns(first, other)


def _picks_columns(first: exp.Expr, other: exp.Expr) -> bool:
    """Return True if the first branch reads all columns of one row, and the other a few columns of every row."""
    stars = [any(cell.is_star for cell in branch.expressions) for branch in (first, other)]
    return stars == [True, False] and _filters_by_constant(first)


def _filters_by_constant(branch: exp.Expr) -> bool:
    where = branch.args.get("where")
    equalities = where.find_all(exp.EQ, exp.Like) if where is not None else ()
    return any(isinstance(equality.expression, exp.Literal | exp.Null) for equality in equalities)


def _has_same_columns(first: exp.Expr, other: exp.Expr) -> bool:
    """Return True if both branches have the same column names, or both read all columns."""
    ours = {cell.alias_or_name.lower() for cell in first.expressions}
    return all(cell.alias_or_name.lower() in ours for cell in other.expressions)


def _counts_columns(first: exp.Expr, other: exp.Expr, values: Values) -> bool:
    """Return True for `UNION SELECT NULL, NULL` or `1, 2, 3` after a filter, which counts the columns of the query."""
    cells = [cell.unnest() for cell in other.expressions]
    numbers = [cell.name for cell in cells if isinstance(cell, exp.Literal) and not cell.is_string]
    counted = numbers == [str(number) for number in range(1, len(cells) + 1)]
    if first.args.get("where") is None or not cells:
        return counted and len(cells) > _LETTER and any(cell.is_star for cell in first.expressions)
    if other.args.get("from_") is None and other.find(exp.Column) is not None:
        return True
    if any(values[id(cell)] is UnknownValue.ROW for cell in cells):
        return False
    if all(isinstance(cell, exp.Null) for cell in cells) or any(cell.is_star for cell in first.expressions):
        return True
    if any(isinstance(cell, exp.Null) for cell in cells):
        return first.args.get("group") is None and all(_is_filler(cell) for cell in cells)
    if _has_empty_result(first, values) or (counted and _filters_by_constant(first)):
        return True
    return (len(cells) > 1 and counted) or any(isinstance(cell, exp.Func | exp.HexString) for cell in cells)


def _is_filler(cell: exp.Expr) -> bool:
    """Return True for NULL, a number or a letter, as used to try out columns."""
    return isinstance(cell, exp.Null) or (isinstance(cell, exp.Literal) and len(cell.name) <= _LETTER)


def _pads_with_constants(first: exp.Expr, other: exp.Expr) -> bool:
    """Return True if a bare constant stands where the first branch has a column."""
    pairs = zip(first.expressions, other.expressions, strict=False)
    return any(isinstance(theirs, exp.Literal | exp.Null) and not _is_constant(ours) for ours, theirs in pairs)


def _is_constant(cell: exp.Expr) -> bool:
    return isinstance(cell.unalias(), exp.Literal | exp.Null)


def _has_empty_result(first: exp.Expr, values: Values) -> bool:
    """Return True if the first branch cannot match: `id = -1`, `name = ''`, `1 = 2`."""
    where = first.args.get("where")
    if where is None:
        return False
    if truth(values[id(where.this)]) is False:
        return True
    return any(_matches_nothing(side) for node in where.find_all(exp.EQ) for side in (node.this, node.expression))


def _matches_nothing(side: exp.Expr) -> bool:
    return isinstance(side, exp.Neg | exp.Null) or (isinstance(side, exp.Literal) and side.is_string and not side.name)
