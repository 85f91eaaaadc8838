"""Parsing of Python source within stated bounds: language version, nesting, and the node kinds that are understood.

Every interpreter gives the same answer: the version is fixed, nesting is counted here and not left to the recursion
limit, and a node kind or a field that is not in the table is not understood.
"""

import ast
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

VERSION = (3, 11)
"""Language version, whatever the interpreter is."""
MAX_BRACKETS = 100
MAX_DEPTH = 250
"""Levels of the syntax tree."""

_BRACKETS = re.compile(r"[()\[\]{}]")
_OPENING = frozenset("([{")

_TABLE = """
Module body type_ignores
FunctionDef name args body decorator_list returns type_comment type_params
AsyncFunctionDef name args body decorator_list returns type_comment type_params
ClassDef name bases keywords body decorator_list type_params
Return value
Delete targets
Assign targets value type_comment
AugAssign target op value
AnnAssign target annotation value simple
For target iter body orelse type_comment
AsyncFor target iter body orelse type_comment
While test body orelse
If test body orelse
With items body type_comment
AsyncWith items body type_comment
Match subject cases
Raise exc cause
Try body handlers orelse finalbody
TryStar body handlers orelse finalbody
Assert test msg
Import names
ImportFrom module names level
Global names
Nonlocal names
Expr value
Pass
Break
Continue
BoolOp op values
NamedExpr target value
BinOp left op right
UnaryOp op operand
Lambda args body
IfExp test body orelse
Dict keys values
Set elts
ListComp elt generators
SetComp elt generators
DictComp key value generators
GeneratorExp elt generators
Await value
Yield value
YieldFrom value
Compare left ops comparators
Call func args keywords
FormattedValue value conversion format_spec
JoinedStr values
Constant value kind
Attribute value attr ctx
Subscript value slice ctx
Starred value ctx
Name id ctx
List elts ctx
Tuple elts ctx
Slice lower upper step
comprehension target iter ifs is_async
ExceptHandler type name body
arguments posonlyargs args vararg kwonlyargs kw_defaults kwarg defaults
arg arg annotation type_comment
keyword arg value
alias name asname
withitem context_expr optional_vars
match_case pattern guard body
MatchValue value
MatchSingleton value
MatchSequence patterns
MatchMapping keys patterns rest
MatchClass cls patterns kwd_attrs kwd_patterns
MatchStar name
MatchAs pattern name
MatchOr patterns
"""
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


def unknown_kinds(tree: ast.AST) -> list[str]:
    """Return the names of the node kinds that are not understood; raise NestingError if there are too many levels."""
    kinds: set[type[ast.AST]] = set()
    for level in _levels(tree):
        kinds.update(map(type, level))
    return sorted(kind.__name__ for kind in kinds if not is_known(kind))


def require_depth(tree: ast.AST, most: int = MAX_DEPTH) -> None:
    """Raise NestingError if the tree has more than `most` levels."""
    for _ in _levels(tree, most):
        pass


def _levels(tree: ast.AST, most: int = MAX_DEPTH) -> Iterator[list[ast.AST]]:
    level = [tree]
    for _ in range(most):
        if not level:
            return
        yield level
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
