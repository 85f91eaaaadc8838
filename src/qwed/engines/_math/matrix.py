"""Matrices and vectors of syntax trees; every result is made of trees again and is checked entry by entry."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from qwed.engines._math.syntax_tree import (
    ONE,
    ZERO,
    MathNode,
    MathRefusalError,
    add,
    call,
    multiply,
    name_node,
    negate,
    number,
    power,
    reciprocal,
    subtract,
)
from qwed.engines.arithmetic import NotPlainArithmeticError, evaluate_rational

MAX_SIZE = 8
_MAX_SYMBOLIC = 4
_MAX_POWER = 10


class Matrix(NamedTuple):
    """Matrix of syntax trees; a vector is one column."""

    rows: tuple[tuple[MathNode, ...], ...]
    vector: bool = False

    @property
    def size(self) -> tuple[int, int]:
        """Number of rows and columns."""
        return len(self.rows), len(self.rows[0])


class Spectrum(NamedTuple):
    """Eigenvalues of a matrix, not computed: a claim about them is proven with the characteristic polynomial."""

    matrix: Matrix


Value = MathNode | Matrix | Spectrum


def matrix_from_list(node: MathNode) -> Matrix:
    """Return the matrix or vector that a list denotes."""
    items = node.args
    if not items or len(items) > MAX_SIZE:
        raise MathRefusalError("within_limits", f"a matrix has 1 to {MAX_SIZE} rows and columns")
    if not any(item.kind == "list" for item in items):
        return Matrix(tuple((item,) for item in items), vector=True)
    widths = {len(item.args) for item in items if item.kind == "list"}
    if len(widths) != 1 or not all(item.kind == "list" for item in items) or not 0 < max(widths) <= MAX_SIZE:
        raise MathRefusalError("syntax_valid", f"the rows of a matrix must be equally long, at most {MAX_SIZE}")
    if any(part.kind == "list" for item in items for part in item.args):
        raise MathRefusalError("syntax_valid", "a matrix is a list of rows of numbers")
    return Matrix(tuple(item.args for item in items))


def apply_operation(node: MathNode, args: Sequence[Value]) -> Value:
    """Apply an operation to arguments of which at least one is a matrix."""
    rule = _CALLS.get(node.name) if node.kind == "call" else _RULES.get(node.kind)
    if rule is None:
        raise MathRefusalError("defined", f"`{node.name or node.kind}` of a matrix is not defined here")
    return rule(*args)


def _require_square(table: Matrix) -> Matrix:
    if table.vector or table.size[0] != table.size[1]:
        raise MathRefusalError("defined", "only a square matrix has that")
    return table


def _require_same_size(one: Value, other: Value) -> tuple[Matrix, Matrix]:
    if not (isinstance(one, Matrix) and isinstance(other, Matrix) and one.size == other.size):
        raise MathRefusalError("defined", "only matrices of the same size are added")
    return one, other


def _sum(*values: Value) -> Matrix:
    total = values[0]
    for value in values[1:]:
        one, other = _require_same_size(total, value)
        rows = tuple(
            tuple(add(a, b) for a, b in zip(left, right, strict=True))
            for left, right in zip(one.rows, other.rows, strict=True)
        )
        total = Matrix(rows, one.vector)
    return _require_matrix(total)


def _require_matrix(value: Value) -> Matrix:
    if not isinstance(value, Matrix):
        raise MathRefusalError("defined", "a matrix is needed there")
    return value


def _scale(factor: MathNode, table: Matrix) -> Matrix:
    return Matrix(tuple(tuple(multiply(factor, entry) for entry in row) for row in table.rows), table.vector)


def _multiply(one: Value, other: Value) -> Value:
    if isinstance(one, MathNode) and isinstance(other, MathNode):
        return multiply(one, other)
    if isinstance(one, MathNode):
        return _scale(one, _require_matrix(other))
    if isinstance(other, MathNode):
        return _scale(other, _require_matrix(one))
    left, right = _require_matrix(one), _require_matrix(other)
    if left.vector and right.vector:
        raise MathRefusalError(
            "unambiguous", "the product of two vectors has two readings: write `dot(u, v)` or `cross(u, v)`"
        )
    if left.size[1] != right.size[0]:
        raise MathRefusalError(
            "defined", f"a matrix of {left.size[1]} columns is not multiplied by one of {right.size[0]} rows"
        )
    columns = tuple(zip(*right.rows, strict=True))
    rows = tuple(
        tuple(add(*(multiply(a, b) for a, b in zip(row, column, strict=True))) for column in columns)
        for row in left.rows
    )
    return Matrix(rows, right.vector)


def _product(*values: Value) -> Value:
    total = values[0]
    for value in values[1:]:
        total = _multiply(total, value)
    return total


def _power(base: Value, exponent: Value) -> Value:
    table = _require_matrix(base)
    if exponent == name_node("T"):
        return transpose(table)
    try:
        value = evaluate_rational(exponent) if isinstance(exponent, MathNode) else None
    except NotPlainArithmeticError:
        value = None
    if value is None or value.denominator != 1 or not -_MAX_POWER <= value <= _MAX_POWER:
        raise MathRefusalError("defined", f"a matrix is raised to a whole power from -{_MAX_POWER} to {_MAX_POWER}")
    size = _require_square(table).size[0]
    total = Matrix(tuple(tuple(ONE if row == column else ZERO for column in range(size)) for row in range(size)))
    factor = invert(table) if value < 0 else table
    for _ in range(abs(int(value))):
        total = evaluate_entries(_require_matrix(_multiply(total, factor)))
    return total


def evaluate_entries(table: Matrix) -> Matrix:
    """Compute every entry that consists of plain numbers, so that powers do not accumulate."""
    return Matrix(tuple(tuple(_evaluate_entry(entry) for entry in row) for row in table.rows), table.vector)


def _evaluate_entry(node: MathNode) -> MathNode:
    try:
        return number(evaluate_rational(node))
    except NotPlainArithmeticError:
        return node


def transpose(table: Matrix) -> Matrix:
    """Return the transpose."""
    return Matrix(tuple(zip(*table.rows, strict=True)))


def determinant(table: Matrix) -> MathNode:
    """Return the determinant as a tree."""
    _require_square(table)
    try:
        return add(number(_eliminate([[Fraction(evaluate_rational(entry)) for entry in row] for row in table.rows])[0]))
    except NotPlainArithmeticError:
        if len(table.rows) > _MAX_SYMBOLIC:
            raise MathRefusalError(
                "within_limits", f"with variables a matrix has at most {_MAX_SYMBOLIC} rows here"
            ) from None
    return _expand_determinant(table.rows)


def _expand_determinant(rows: tuple[tuple[MathNode, ...], ...]) -> MathNode:
    if len(rows) == 1:
        return rows[0][0]
    terms = []
    for column, entry in enumerate(rows[0]):
        term = multiply(entry, _expand_determinant(_minor(rows, 0, column)))
        terms.append(negate(term) if column % 2 else term)
    return add(*terms)


def _minor(rows: tuple[tuple[MathNode, ...], ...], row: int, column: int) -> tuple[tuple[MathNode, ...], ...]:
    return tuple(entries[:column] + entries[column + 1 :] for index, entries in enumerate(rows) if index != row)


def _eliminate(rows: list[list[Fraction]]) -> tuple[Fraction, int]:
    """Return the determinant (of a square matrix) and the rank, by exact elimination."""
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


def invert(table: Matrix) -> Matrix:
    """Return the inverse; raise MathRefusalError for a singular matrix."""
    below = determinant(_require_square(table))
    if _evaluate_entry(below) == ZERO:
        raise MathRefusalError("defined", "the matrix is singular: it has no inverse")
    size = len(table.rows)
    if size == 1:
        return Matrix(((reciprocal(table.rows[0][0]),),))
    rows = []
    for row in range(size):
        entries = []
        for column in range(size):
            minor = determinant(Matrix(_minor(table.rows, column, row)))
            entries.append(multiply(negate(minor) if (row + column) % 2 else minor, reciprocal(below)))
        rows.append(tuple(entries))
    return evaluate_entries(Matrix(tuple(rows)))


def _rank(value: Value) -> MathNode:
    table = _require_matrix(value)
    try:
        rows = [[Fraction(evaluate_rational(entry)) for entry in row] for row in table.rows]
    except NotPlainArithmeticError:
        raise MathRefusalError("decidable", "the rank is only decided for matrices of plain numbers") from None
    return add(number(_eliminate(rows)[1]))


def _trace(value: Value) -> MathNode:
    table = _require_square(_require_matrix(value))
    return add(*(table.rows[index][index] for index in range(len(table.rows))))


def _require_vector(value: Value) -> list[MathNode]:
    table = _require_matrix(value)
    if not table.vector:
        raise MathRefusalError("defined", "a vector such as `[1, 2, 3]` is needed there")
    return [row[0] for row in table.rows]


def _dot(one: Value, other: Value) -> MathNode:
    left, right = _require_vector(one), _require_vector(other)
    if len(left) != len(right):
        raise MathRefusalError("defined", "the vectors differ in length")
    return add(*(multiply(a, b) for a, b in zip(left, right, strict=True)))


def _cross(one: Value, other: Value) -> Matrix:
    left, right = _require_vector(one), _require_vector(other)
    if len(left) != 3 or len(right) != 3:
        raise MathRefusalError("defined", "a cross product is of two vectors of three numbers")
    pairs = ((1, 2), (2, 0), (0, 1))
    return Matrix(
        tuple((subtract(multiply(left[a], right[b]), multiply(left[b], right[a])),) for a, b in pairs), vector=True
    )


def _norm(value: Value) -> MathNode:
    return call("sqrt", add(*(power(part, number(2)) for part in _require_vector(value))))


_RULES: dict[str, Callable[..., Value]] = {
    "sum": _sum,
    "negative": lambda value: _scale(number(-1), _require_matrix(value)),
    "product": _product,
    "power": _power,
}
_CALLS: dict[str, Callable[..., Value]] = {
    "det": lambda value: determinant(_require_matrix(value)),
    "inv": lambda value: invert(_require_matrix(value)),
    "transpose": lambda value: transpose(_require_matrix(value)),
    "rank": _rank,
    "trace": _trace,
    "dot": _dot,
    "cross": _cross,
    "norm": _norm,
    "abs": _norm,
    "eigenvalues": lambda value: Spectrum(_require_square(_require_matrix(value))),
}


def characteristic_polynomial(table: Matrix, variable: str) -> MathNode:
    """Return the characteristic polynomial, whose zeros are the eigenvalues."""
    unknown = name_node(variable)
    rows = tuple(
        tuple(subtract(entry, unknown) if row == column else entry for column, entry in enumerate(entries))
        for row, entries in enumerate(table.rows)
    )
    if len(rows) > _MAX_SYMBOLIC:
        raise MathRefusalError("within_limits", f"eigenvalues are decided for at most {_MAX_SYMBOLIC} rows")
    return _expand_determinant(rows)
