"""Parsing of Python source within stated bounds: language version, nesting, and the node kinds that are understood.

Every interpreter gives the same answer: the version is fixed, nesting is counted here and not left to the recursion
limit, and a node kind or a field that is not in the table is not understood.
"""

import ast
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from qwed.model.data_files import read_table

VERSION = (3, 11)
"""Language version, whatever the interpreter is."""
MAX_BRACKETS = 100
MAX_DEPTH = 250
"""Levels of the syntax tree."""

_BRACKETS = re.compile(r"[()\[\]{}]")
_OPENING = frozenset("([{")

_TABLE = read_table(__file__, "node_fields.txt")
FIELDS: dict[str, tuple[str, ...]] = {row.split()[0]: tuple(row.split()[1:]) for row in _TABLE.split("\n") if row}
"""Node kinds that are understood, with the fields of each in every version; `type_params` is empty in `VERSION`."""
_BARE_KINDS = (ast.expr_context, ast.boolop, ast.operator, ast.unaryop, ast.cmpop)
"""Kinds without fields."""


class NestingError(ValueError):
    """The source is nested more deeply than the bounds allow."""


def parse(code: str) -> ast.Module:
    """Return the syntax tree; raise SyntaxError, or NestingError if the source is nested too deeply."""
    with _bounds(code):
        return ast.parse(code, feature_version=VERSION)


def parse_expression(code: str) -> ast.Expression:
    """Return the syntax tree of an expression; raise SyntaxError, or NestingError if it is nested too deeply."""
    with _bounds(code):
        tree = ast.parse(code, mode="eval", feature_version=VERSION)
    require_depth(tree)
    return tree


@contextmanager
def _bounds(code: str) -> Iterator[None]:
    """Refuse nesting that the parser of some interpreter cannot parse."""
    if count_brackets(code) > MAX_BRACKETS:
        raise NestingError(f"more than {MAX_BRACKETS} nested brackets")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        except (RecursionError, MemoryError):
            raise NestingError(f"more than {MAX_DEPTH} nested levels") from None


def count_brackets(code: str) -> int:
    """Return the deepest nesting of brackets, those in texts included."""
    if sum(map(code.count, _OPENING)) <= MAX_BRACKETS:
        return 0
    depth = deepest = 0
    for bracket in _BRACKETS.findall(code):
        depth = depth + 1 if bracket in _OPENING else max(depth - 1, 0)
        deepest = max(deepest, depth)
    return deepest


def is_known(kind: type[ast.AST]) -> bool:
    """Return True if the kind and all of its fields are understood."""
    if issubclass(kind, _BARE_KINDS):
        return not kind._fields
    return set(kind._fields) <= set(FIELDS.get(kind.__name__, ())) if kind.__name__ in FIELDS else False


def require_depth(tree: ast.AST, most: int = MAX_DEPTH) -> None:
    """Raise NestingError if the tree has more than `most` levels."""
    level = [tree]
    for _ in range(most):
        level = [child for node in level if node._fields for child in ast.iter_child_nodes(node)]
    if level:
        raise NestingError(f"more than {most} nested levels")


def dotted_name(node: ast.AST) -> str:
    """Return `a.b.c` as text, or "" if the node is anything else."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""
