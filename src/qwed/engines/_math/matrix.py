"""Matrices and vectors of trees: every result is again made of trees, which the engine judges entry by entry."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from qwed.engines._math.tree import (
    ONE,
    ZERO,
    Node,
    Refused,
    added,
    call,
    minus,
    named,
    negated,
    number,
    over,
    power,
    times,
)
from qwed.engines.arithmetic import NotQuick, rational

MAX_SIZE = 8
_MAX_SYMBOLIC = 4
_MAX_POWER = 10


class Table(NamedTuple):
    """Rows of trees; a vector is one column."""

    rows: tuple[tuple[Node, ...], ...]
    vector: bool = False

    @property
    def size(self) -> tuple[int, int]:
        """How many rows and columns."""
        return len(self.rows), len(self.rows[0])


class Spectrum(NamedTuple):
    """The eigenvalues of a matrix, not yet computed: a claim about them is proven by its polynomial."""

    of: Table


Value = Node | Table | Spectrum


def table_of(node: Node) -> Table:
    """The matrix or vector a list writes."""
    items = node.args
    if not items or len(items) > MAX_SIZE:
        raise Refused("within_limits", f"a matrix has 1 to {MAX_SIZE} rows and columns")
    if not any(item.kind == "list" for item in items):
        return Table(tuple((item,) for item in items), vector=True)
    widths = {len(item.args) for item in items if item.kind == "list"}
    if len(widths) != 1 or not all(item.kind == "list" for item in items) or not 0 < max(widths) <= MAX_SIZE:
        raise Refused("syntax_valid", f"the rows of a matrix must be equally long, at most {MAX_SIZE}")
    if any(part.kind == "list" for item in items for part in item.args):
        raise Refused("syntax_valid", "a matrix is a list of rows of numbers")
    return Table(tuple(item.args for item in items))


def combined(node: Node, args: Sequence[Value]) -> Value:
    """What an operation makes of arguments of which at least one is a matrix."""
    rule = _CALLS.get(node.name) if node.kind == "call" else _RULES.get(node.kind)
    if rule is None:
        raise Refused("defined", f"`{node.name or node.kind}` of a matrix is not defined here")
    return rule(*args)


def _square(table: Table) -> Table:
    if table.vector or table.size[0] != table.size[1]:
        raise Refused("defined", "only a square matrix has that")
    return table


def _same(one: Value, other: Value) -> tuple[Table, Table]:
    if not (isinstance(one, Table) and isinstance(other, Table) and one.size == other.size):
        raise Refused("defined", "only matrices of the same size are added")
    return one, other


def _sum(*values: Value) -> Table:
    total = values[0]
    for value in values[1:]:
        one, other = _same(total, value)
        rows = tuple(
            tuple(added(a, b) for a, b in zip(left, right, strict=True))
            for left, right in zip(one.rows, other.rows, strict=True)
        )
        total = Table(rows, one.vector)
    return _table(total)


def _table(value: Value) -> Table:
    if not isinstance(value, Table):
        raise Refused("defined", "a matrix is needed there")
    return value


def _scaled(factor: Node, table: Table) -> Table:
    return Table(tuple(tuple(times(factor, entry) for entry in row) for row in table.rows), table.vector)


def _multiplied(one: Value, other: Value) -> Value:
    if isinstance(one, Node) and isinstance(other, Node):
        return times(one, other)
    if isinstance(one, Node):
        return _scaled(one, _table(other))
    if isinstance(other, Node):
        return _scaled(other, _table(one))
    left, right = _table(one), _table(other)
    if left.vector and right.vector:
        raise Refused("unambiguous", "the product of two vectors has two readings: write `dot(u, v)` or `cross(u, v)`")
    if left.size[1] != right.size[0]:
        raise Refused("defined", f"a matrix of {left.size[1]} columns is not multiplied by one of {right.size[0]} rows")
    columns = tuple(zip(*right.rows, strict=True))
    rows = tuple(
        tuple(added(*(times(a, b) for a, b in zip(row, column, strict=True))) for column in columns)
        for row in left.rows
    )
    return Table(rows, right.vector)


def _product(*values: Value) -> Value:
    total = values[0]
    for value in values[1:]:
        total = _multiplied(total, value)
    return total


def _power(base: Value, exponent: Value) -> Value:
    table = _table(base)
    if exponent == named("T"):
        return transposed(table)
    try:
        value = rational(exponent) if isinstance(exponent, Node) else None
    except NotQuick:
        value = None
    if value is None or value.denominator != 1 or not -_MAX_POWER <= value <= _MAX_POWER:
        raise Refused("defined", f"a matrix is raised to a whole power from -{_MAX_POWER} to {_MAX_POWER}")
    size = _square(table).size[0]
    total = Table(tuple(tuple(ONE if row == column else ZERO for column in range(size)) for row in range(size)))
    factor = inverted(table) if value < 0 else table
    for _ in range(abs(int(value))):
        total = settled(_table(_multiplied(total, factor)))
    return total


def settled(table: Table) -> Table:
    """The same table with every entry of plain numbers computed, so that powers do not pile up."""
    return Table(tuple(tuple(_computed(entry) for entry in row) for row in table.rows), table.vector)


def _computed(node: Node) -> Node:
    try:
        return number(rational(node))
    except NotQuick:
        return node


def transposed(table: Table) -> Table:
    """Rows as columns."""
    return Table(tuple(zip(*table.rows, strict=True)))


def determinant(table: Table) -> Node:
    """The determinant as a tree."""
    _square(table)
    try:
        return added(number(_eliminated([[Fraction(rational(entry)) for entry in row] for row in table.rows])[0]))
    except NotQuick:
        if len(table.rows) > _MAX_SYMBOLIC:
            raise Refused("within_limits", f"with variables a matrix has at most {_MAX_SYMBOLIC} rows here") from None
    return _expanded(table.rows)


def _expanded(rows: tuple[tuple[Node, ...], ...]) -> Node:
    if len(rows) == 1:
        return rows[0][0]
    terms = []
    for column, entry in enumerate(rows[0]):
        term = times(entry, _expanded(_without(rows, 0, column)))
        terms.append(negated(term) if column % 2 else term)
    return added(*terms)


def _without(rows: tuple[tuple[Node, ...], ...], row: int, column: int) -> tuple[tuple[Node, ...], ...]:
    return tuple(line[:column] + line[column + 1 :] for index, line in enumerate(rows) if index != row)


def _eliminated(rows: list[list[Fraction]]) -> tuple[Fraction, int]:
    """The determinant (of a square matrix) and the rank, by exact elimination."""
    value, rank = Fraction(1), 0
    for column in range(len(rows[0])):
        pivot = next((index for index in range(rank, len(rows)) if rows[index][column]), None)
        if pivot is None:
            value = Fraction(0)
            continue
        if pivot != rank:
            rows[rank], rows[pivot] = rows[pivot], rows[rank]
            value = -value
        value *= rows[rank][column]
        for below in rows[rank + 1 :]:
            factor = below[column] / rows[rank][column]
            below[:] = [a - factor * b for a, b in zip(below, rows[rank], strict=True)]
        rank += 1
        if rank == len(rows):
            break
    return value, rank


def inverted(table: Table) -> Table:
    """The inverse; Refused for a matrix that has none."""
    below = determinant(_square(table))
    if _computed(below) == ZERO:
        raise Refused("defined", "the matrix is singular: it has no inverse")
    size = len(table.rows)
    if size == 1:
        return Table(((over(table.rows[0][0]),),))
    rows = []
    for row in range(size):
        entries = []
        for column in range(size):
            minor = determinant(Table(_without(table.rows, column, row)))
            entries.append(times(negated(minor) if (row + column) % 2 else minor, over(below)))
        rows.append(tuple(entries))
    return settled(Table(tuple(rows)))


def _rank(value: Value) -> Node:
    table = _table(value)
    try:
        rows = [[Fraction(rational(entry)) for entry in row] for row in table.rows]
    except NotQuick:
        raise Refused("decidable", "the rank is only decided for matrices of plain numbers") from None
    return added(number(_eliminated(rows)[1]))


def _trace(value: Value) -> Node:
    table = _square(_table(value))
    return added(*(table.rows[index][index] for index in range(len(table.rows))))


def _vector(value: Value) -> list[Node]:
    table = _table(value)
    if not table.vector:
        raise Refused("defined", "a vector such as `[1, 2, 3]` is needed there")
    return [row[0] for row in table.rows]


def _dot(one: Value, other: Value) -> Node:
    left, right = _vector(one), _vector(other)
    if len(left) != len(right):
        raise Refused("defined", "the vectors differ in length")
    return added(*(times(a, b) for a, b in zip(left, right, strict=True)))


def _cross(one: Value, other: Value) -> Table:
    left, right = _vector(one), _vector(other)
    if len(left) != 3 or len(right) != 3:
        raise Refused("defined", "a cross product is of two vectors of three numbers")
    pairs = ((1, 2), (2, 0), (0, 1))
    return Table(tuple((minus(times(left[a], right[b]), times(left[b], right[a])),) for a, b in pairs), vector=True)


def _norm(value: Value) -> Node:
    return call("sqrt", added(*(power(part, number(2)) for part in _vector(value))))


_RULES: dict[str, Callable[..., Value]] = {
    "sum": _sum,
    "negative": lambda value: _scaled(number(-1), _table(value)),
    "product": _product,
    "power": _power,
}
_CALLS: dict[str, Callable[..., Value]] = {
    "det": lambda value: determinant(_table(value)),
    "inv": lambda value: inverted(_table(value)),
    "transpose": lambda value: transposed(_table(value)),
    "rank": _rank,
    "trace": _trace,
    "dot": _dot,
    "cross": _cross,
    "norm": _norm,
    "abs": _norm,
    "eigenvalues": lambda value: Spectrum(_square(_table(value))),
}


def characteristic(table: Table, variable: str) -> Node:
    """The polynomial whose zeros are the eigenvalues."""
    unknown = named(variable)
    rows = tuple(
        tuple(minus(entry, unknown) if row == column else entry for column, entry in enumerate(line))
        for row, line in enumerate(table.rows)
    )
    if len(rows) > _MAX_SYMBOLIC:
        raise Refused("within_limits", f"eigenvalues are decided for at most {_MAX_SYMBOLIC} rows")
    return _expanded(rows)
