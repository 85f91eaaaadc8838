"""Shapes that no honest query has, judged on the tree and on the tokens between."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from sqlglot import Token, TokenType, exp

from qwed.engines._sql.columns import is_sensitive
from qwed.engines._sql.names import Names, is_catalog, table_name
from qwed.engines._sql.probes import ACCOUNT_TABLES, probe_violations
from qwed.engines._sql.truth import Open, Values, always_holds, ignores_rows, truth, values_under
from qwed.engines._sql.who import asks_who_we_are

STACKED = "stacked_statements"
TAUTOLOGY = "tautology"
CHAINED = "chained_comparison"
UNION = "union_injection"
TIME_DELAY = "time_delay"
FILE_WRITE = "file_access"

_PREDICATES = (exp.Where, exp.Having, exp.Qualify, exp.Join)
_MOST_PAIRS = 20
_LETTER = 2
_COMPLEMENTS = ({exp.EQ, exp.NEQ}, {exp.GT, exp.LTE}, {exp.LT, exp.GTE})
_UNREAD_VERBS = {("WAITFOR", "DELAY"): TIME_DELAY, ("WAITFOR", "TIME"): TIME_DELAY}
_UNREAD_VERBS |= {("INTO", "OUTFILE"): FILE_WRITE, ("INTO", "DUMPFILE"): FILE_WRITE, ("DATA", "INFILE"): FILE_WRITE}


def token_violations(tokens: Sequence[Token]) -> Iterator[str]:
    """What the tokens show of a text that does not parse: statements behind a semicolon, waits, files."""
    seen = False
    for first, second in pairwise([*tokens, None]):
        if first is None:
            return
        seen = seen or first.token_type is not TokenType.SEMICOLON
        if second is None:
            return
        if seen and first.token_type is TokenType.SEMICOLON and second.token_type is not TokenType.SEMICOLON:
            yield STACKED
        verb = _UNREAD_VERBS.get((first.text.upper(), second.text.upper()))
        if verb:
            yield verb


def tree_violations(statement: exp.Expr, names: Names, sensitive: frozenset[str]) -> Iterator[str]:
    """Tautologies and foreign UNIONs anywhere in the statement."""
    values = values_under(statement)
    alone = any(_stands_alone(clause, values) for clause in statement.find_all(exp.Where, exp.Having))
    if alone or (
        names.holds(exp.Or, exp.Xor)
        and any(_always_true_or(node, values) for node in statement.find_all(exp.Or, exp.Xor))
    ):
        yield TAUTOLOGY
    if any(_chained(node) for node in statement.find_all(exp.EQ, exp.NEQ)):
        yield CHAINED
    for union in statement.find_all(exp.SetOperation) if names.holds(exp.SetOperation) else ():
        if not isinstance(union.parent, exp.SetOperation) and _foreign_union(union, names, sensitive, values):
            yield UNION
    yield from probe_violations(statement, names, values)


def _stands_alone(clause: exp.Expr, values: Values) -> bool:
    """A whole condition that is always true; `WHERE TRUE`, which some databases demand, hides nothing."""
    condition = clause.this.unnest()
    if isinstance(condition, exp.Boolean | exp.Literal):
        return False
    if isinstance(condition, exp.Like | exp.ILike | exp.RegexpLike) and isinstance(condition.expression, exp.Literal):
        return False
    return always_holds(condition, values)


def _always_true_or(node: exp.Expr, values: Values) -> bool:
    if isinstance(node.parent, type(node)) or node.find_ancestor(*_PREDICATES, exp.Update, exp.Values) is None:
        return False
    sides = [side.unnest() for side in node.flatten()]
    return any(ignores_rows(side, values) for side in sides) or _cover_everything(sides) or _swallowed(sides)


def _chained(node: exp.Expr) -> bool:
    """`name = '' = ''`: the outer comparison weighs a truth value, which coercion makes true for every row."""
    return (
        isinstance(node.this, exp.EQ | exp.NEQ | exp.Like | exp.ILike) and node.find_ancestor(*_PREDICATES) is not None
    )


def _cover_everything(sides: Sequence[exp.Expr]) -> bool:
    """Whether one side is the very opposite of another: `a = 1 OR a <> 1`, `a IS NULL OR NOT a IS NULL`."""
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


def _swallowed(sides: Sequence[exp.Expr]) -> bool:
    """`id = 1 OR id > 0`, `name = '' OR name IS NOT NULL`: the second side makes the first one idle."""
    wanted = [side for side in sides if isinstance(side, exp.EQ) and isinstance(side.expression, exp.Literal)]
    wanted = [side for side in wanted if isinstance(side.this, exp.Column)]
    return any(_swallows(each, side) for side in wanted[:_MOST_PAIRS] for each in sides if each is not side)


def _swallows(wide: exp.Expr, equality: exp.Expr) -> bool:
    if isinstance(wide, exp.Not) and isinstance(wide.this.unnest(), exp.Is):
        tested = wide.this.unnest()
        nothing = isinstance(tested.expression, exp.Null)
        return nothing and (tested.this == equality.this or not equality.expression.name)
    if not isinstance(wide, exp.GT | exp.GTE | exp.NEQ) or wide.this != equality.this:
        return False
    low, exact = wide.expression, equality.expression
    if not isinstance(low, exp.Literal):
        return False
    if isinstance(wide, exp.NEQ):
        return bool(low.name != exact.name)
    numbers = [each.name for each in (low, exact) if not each.is_string and each.name.isdigit() and each.name.isascii()]
    return len(numbers) == 2 and low.name == "0" and int(exact.name[:18]) > 0


def _foreign_union(union: exp.Expr, names: Names, sensitive: frozenset[str], values: Values) -> bool:
    first, *others = _branches(union)
    if any(not isinstance(branch, exp.Query | exp.Values | exp.Table) for branch in (first, *others)):
        return True
    if not _tables(first, names):
        return False
    return any(_foreign(first, other, names, sensitive, values) for other in others)


def _branches(union: exp.Expr) -> list[exp.Expr]:
    """The selects of a chain of set operations, left to right, without recursion."""
    waiting, found = [union], []
    while waiting:
        node = waiting.pop().unnest()
        if isinstance(node, exp.SetOperation):
            waiting += [node.expression, node.this]
        elif isinstance(node, exp.Subquery):
            waiting.append(node.this)
        else:
            found.append(node)
    return found


def _tables(branch: exp.Expr, names: Names) -> set[str]:
    return {table_name(table) for table in branch.find_all(exp.Table) if not names.is_cte(table)} - {""}


def _foreign(first: exp.Expr, other: exp.Expr, names: Names, sensitive: frozenset[str], values: Values) -> bool:
    home, away = _tables(first, names), _tables(other, names)
    if any(is_catalog(name) for name in away - home):
        return True
    if away and away <= home:
        return other.args.get("where") is None and (_broken_out(first, values) or _picks(first, other))
    if asks_who_we_are(other) or _probes(first, other, values):
        return True
    if not away:
        return False
    takes = any(is_sensitive(column.name.lower(), sensitive) for column in other.find_all(exp.Column))
    return takes or (_pads(first, other) and _broken_out(first, values)) or _grafted(first, other, away, values)


def _grafted(first: exp.Expr, other: exp.Expr, away: set[str], values: Values) -> bool:
    """An unfiltered look at accounts, with other columns, behind a filter by one constant."""
    if other.args.get("where") is not None or other.args.get("group") is not None or not _by_constant(first):
        return False
    if not any(name.rpartition(".")[2] in ACCOUNT_TABLES for name in away):
        return _broken_out(first, values) and not _alike(first, other)
    return not _alike(first, other)


def _picks(first: exp.Expr, other: exp.Expr) -> bool:
    """All columns of one row first, then a few columns of every row."""
    stars = [any(cell.is_star for cell in branch.expressions) for branch in (first, other)]
    return stars == [True, False] and _by_constant(first)


def _by_constant(branch: exp.Expr) -> bool:
    where = branch.args.get("where")
    equalities = where.find_all(exp.EQ, exp.Like) if where is not None else ()
    return any(isinstance(each.expression, exp.Literal | exp.Null) for each in equalities)


def _alike(first: exp.Expr, other: exp.Expr) -> bool:
    """Whether both branches name their columns alike, or both take all of them."""
    ours = {cell.alias_or_name.lower() for cell in first.expressions}
    return all(cell.alias_or_name.lower() in ours for cell in other.expressions)


def _probes(first: exp.Expr, other: exp.Expr, values: Values) -> bool:
    """`UNION SELECT NULL, NULL` or `1, 2, 3` behind a filter: counting the columns of somebody else's query."""
    cells = [cell.unnest() for cell in other.expressions]
    numbers = [cell.name for cell in cells if isinstance(cell, exp.Literal) and not cell.is_string]
    counted = numbers == [str(number) for number in range(1, len(cells) + 1)]
    if first.args.get("where") is None or not cells:
        return counted and len(cells) > _LETTER and any(cell.is_star for cell in first.expressions)
    if other.args.get("from_") is None and other.find(exp.Column) is not None:
        return True
    if any(values[id(cell)] is Open.ROW for cell in cells):
        return False
    if all(isinstance(cell, exp.Null) for cell in cells) or any(cell.is_star for cell in first.expressions):
        return True
    if any(isinstance(cell, exp.Null) for cell in cells):
        return first.args.get("group") is None and all(_filler(cell) for cell in cells)
    if _broken_out(first, values) or (counted and _by_constant(first)):
        return True
    return (len(cells) > 1 and counted) or any(isinstance(cell, exp.Func | exp.HexString) for cell in cells)


def _filler(cell: exp.Expr) -> bool:
    """NULL, a number or a letter, as columns are tried out."""
    return isinstance(cell, exp.Null) or (isinstance(cell, exp.Literal) and len(cell.name) <= _LETTER)


def _pads(first: exp.Expr, other: exp.Expr) -> bool:
    """A bare constant where the first branch has a column."""
    pairs = zip(first.expressions, other.expressions, strict=False)
    return any(isinstance(theirs, exp.Literal | exp.Null) and not _bare(ours) for ours, theirs in pairs)


def _bare(cell: exp.Expr) -> bool:
    return isinstance(cell.unalias(), exp.Literal | exp.Null)


def _broken_out(first: exp.Expr, values: Values) -> bool:
    """The first branch was made to find nothing: `id = -1`, `name = ''`, `1 = 2`."""
    where = first.args.get("where")
    if where is None:
        return False
    if truth(values[id(where.this)]) is False:
        return True
    return any(_matches_nothing(side) for node in where.find_all(exp.EQ) for side in (node.this, node.expression))


def _matches_nothing(side: exp.Expr) -> bool:
    return isinstance(side, exp.Neg | exp.Null) or (isinstance(side, exp.Literal) and side.is_string and not side.name)
