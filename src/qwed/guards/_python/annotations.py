"""Checks of annotations and of other expressions that only name a type."""

import ast
import re
from collections.abc import Iterator

from qwed.guards._python.abstract_values import ANYTHING
from qwed.guards._python.analysis import PythonAnalysis
from qwed.guards._python.ast_children import children_of, descendants
from qwed.guards._python.attributes import REACHING
from qwed.guards._python.library_rules import BUILTINS, words
from qwed.guards._python.scopes import Binding, Scope
from qwed.guards._python.syntax import NestingError, parse_expression
from qwed.guards.code_findings import ViolationKind

_TYPE_NODES = frozenset(
    {ast.Expression, ast.Name, ast.Attribute, ast.Subscript, ast.Tuple, ast.List, ast.BinOp, ast.BitOr, ast.Constant}
    | {ast.UnaryOp, ast.USub, ast.Starred, ast.Load}
)
"""Parts of a type; anything else in the text of an annotation is code."""
_NEWER_STRING = re.compile(r"\b(?:[ft]r?|r[ft])[\"']", re.IGNORECASE)
"""Beginning of a formatted string: newer versions accept more of them, and no other expression that `VERSION` lacks."""
TYPES = words("""
types.FunctionType types.LambdaType types.CodeType types.ModuleType types.FrameType types.CellType types.TracebackType
typing.ForwardRef
""")
"""Types that are dangerous to call and harmless to compare with."""


def excuse(analysis: PythonAnalysis, node: ast.expr | None) -> None:
    """Mark an expression in which an undefined name is acceptable."""
    if node is not None:
        analysis.excused.update(map(id, descendants(node)))


def mark_type_only(analysis: PythonAnalysis, node: ast.expr | None) -> None:
    """Mark names that are only compared with the type or the identity of a value; a call among them is still a call."""
    pending = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, ast.Tuple | ast.List):
            pending += current.elts
        elif current is not None:
            analysis.type_only.add(id(current))


def mark_types(analysis: PythonAnalysis, node: ast.expr | None, scope: Scope) -> None:
    """Mark the names of types that are harmless to compare with, wherever they are in an expression: an operator, a
    comparison or an index passes its operands to the program's own code."""
    for part in descendants(node) if node is not None else ():
        if isinstance(part, ast.Name | ast.Attribute):
            paths = analysis.values.paths(part, scope)
            if paths and paths <= TYPES:
                analysis.type_only.add(id(part))


def check_annotation(analysis: PythonAnalysis, node: ast.expr | None, scope: Scope) -> None:
    """Check that an annotation does not contain a call, because libraries evaluate its text."""
    if node is None:
        return
    excuse(analysis, node)
    if isinstance(node, ast.Name) and node.id in BUILTINS and analysis.is_certain(node, scope):
        return
    mark_types(analysis, node, scope)
    for part in descendants(node):
        text = part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else ""
        if can_hold_code(text):
            _check_text(analysis, text, node.lineno)
    _check_values(analysis, node, scope)
    for text in _forward_references(analysis, node, scope):
        _check_names(analysis, text, scope, node.lineno)
    if not isinstance(node, ast.Constant):
        _check_computed(analysis, node, scope)


def _check_values(analysis: PythonAnalysis, node: ast.expr, scope: Scope) -> None:
    """Report a part of an annotation whose value is not known to be a type: a text would be run."""
    pending: list[ast.AST] = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, ast.Subscript) and is_data_type(analysis, current.value, scope):
            pending += current.slice.elts[:1] if isinstance(current.slice, ast.Tuple) else []
        elif isinstance(current, ast.Name | ast.Attribute | ast.Call):
            if not _may_be_type(analysis, current, scope):
                analysis.report.add_lookup("value of an annotation", node.lineno)
        else:
            pending += children_of(current)


def _may_be_type(analysis: PythonAnalysis, node: ast.expr, scope: Scope) -> bool:
    if isinstance(node, ast.Call):
        return _makes_type(analysis, node, scope)
    if isinstance(node, ast.Attribute) or analysis.values.paths(node, scope):
        return True
    homes = analysis.program.lookup(node.id, scope)[0] if isinstance(node, ast.Name) else []
    bindings = [binding for home in homes for binding in home.names[getattr(node, "id", "")]]
    return all(_binds_type(analysis, binding, binding.scope or scope) for binding in bindings)


def _binds_type(analysis: PythonAnalysis, binding: Binding, scope: Scope) -> bool:
    value = binding.value
    if isinstance(value, ast.Call):
        return _makes_type(analysis, value, scope)
    if isinstance(value, ast.Subscript):
        return not any(isinstance(part, ast.Call) for part in descendants(value))
    if isinstance(value, ast.Constant):
        return True
    plain = value is None and binding.iterates is None and binding.augments is None and not binding.call_arguments
    return plain or isinstance(value, ast.Name | ast.Attribute | ast.BinOp | ast.Tuple | ast.IfExp)


def _makes_type(analysis: PythonAnalysis, call: ast.Call, scope: Scope) -> bool:
    """Return True for a type that a library makes, such as `TypeVar("T")`; any other call may return a text."""
    paths = analysis.values.paths(call.func, scope)
    return any(path in _TYPE_MAKERS or path.partition(".")[0] in _MAKING_LIBRARIES for path in paths)


_MAKING_LIBRARIES = words("""
pydantic typing typing_extensions annotated_types sqlalchemy sqlmodel fastapi typer click z3
""")


_TYPE_MAKERS = words("""
typing.TypeVar typing.NewType typing.ParamSpec typing.TypeVarTuple typing.NamedTuple typing.TypedDict typing.ForwardRef
typing_extensions.TypeVar typing_extensions.NewType typing_extensions.ParamSpec typing_extensions.TypedDict
typing_extensions.TypeVarTuple typing_extensions.NamedTuple collections.namedtuple enum.Enum enum.IntEnum enum.Flag
enum.StrEnum type dataclasses.make_dataclass pydantic.create_model pydantic.constr pydantic.conint pydantic.confloat
pydantic.conlist
""")


def _forward_references(analysis: PythonAnalysis, node: ast.expr, scope: Scope) -> Iterator[str]:
    """Yield the texts that name a type; those of `Literal` and the remarks of `Annotated` are data."""
    pending: list[ast.AST] = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, ast.Constant) and isinstance(current.value, str):
            yield current.value
        elif isinstance(current, ast.Subscript) and is_data_type(analysis, current.value, scope):
            named = analysis.values.paths(current.value, scope) <= _ANNOTATED and isinstance(current.slice, ast.Tuple)
            pending += current.slice.elts[:1] if named and isinstance(current.slice, ast.Tuple) else []
        else:
            pending += children_of(current)


def is_data_type(analysis: PythonAnalysis, node: ast.expr, scope: Scope) -> bool:
    """Return True for `Literal` and `Annotated`, whose texts are data."""
    paths = analysis.values.paths(node, scope)
    return bool(paths) and paths <= _ANNOTATED | _LITERAL and analysis.is_certain(node, scope)


_ANNOTATED = words("typing.Annotated typing_extensions.Annotated")
_LITERAL = words("typing.Literal typing_extensions.Literal")


def _check_names(analysis: PythonAnalysis, text: str, scope: Scope, line: int) -> None:
    """Check the names in the text of an annotation like those of an annotation without quotes: libraries look them
    up."""
    try:
        tree = parse_expression(text.strip()).body
    except NestingError:
        analysis.report.add_violation(ViolationKind.DYNAMIC, "code in an annotation", line)
        return
    except (SyntaxError, ValueError):
        return
    analysis.type_texts.append(tree)
    pending: list[ast.AST] = [tree]
    while pending:
        current = pending.pop()
        if not isinstance(current, ast.Name | ast.Attribute):
            pending += ast.iter_child_nodes(current)
            continue
        current.lineno = line
        assumed = isinstance(current, ast.Name) and analysis.values.is_assumed(current.id, scope)
        for path in sorted(analysis.values.paths(current, scope) - TYPES) if not assumed else ():
            analysis.report_use(path, current, scope)


def can_hold_code(text: str) -> bool:
    """Return True if the text of an annotation has to be parsed."""
    return "__" in text or "(" in text or "lambda" in text


def _check_computed(analysis: PythonAnalysis, node: ast.expr, scope: Scope) -> None:
    """Check an annotation whose text is computed elsewhere or unknown."""
    for text in _computed_texts(analysis, node, scope):
        _check_text(analysis, text, node.lineno)
        _check_names(analysis, text, scope, node.lineno)
    if analysis.folder.possible(node, scope) == ANYTHING and analysis.is_obfuscated(node, scope):
        analysis.report.add_violation(ViolationKind.DYNAMIC, "code in an annotation", node.lineno)


def _computed_texts(analysis: PythonAnalysis, node: ast.expr, scope: Scope) -> Iterator[str]:
    """Yield the texts that the names in an annotation may stand for, those in containers included."""
    names = [part for part in descendants(node) if isinstance(part, ast.Name) and part is not node]
    pending = [value for part in (node, *names) for value in analysis.folder.possible(part, scope)]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, tuple | list | dict):
            pending += [*value, *(value.values() if isinstance(value, dict) else ())]


def _check_text(analysis: PythonAnalysis, text: str, line: int) -> None:
    if not _is_type_or_prose(text.strip()):
        analysis.report.add_violation(ViolationKind.DYNAMIC, "code in an annotation", line)


def _is_type_or_prose(text: str) -> bool:
    """Return True if the text names a type, or if no version of Python can evaluate it."""
    try:
        parts = list(ast.walk(parse_expression(text)))
    except NestingError:
        return False
    except (SyntaxError, ValueError):
        return not _NEWER_STRING.search(text)
    reaches = any(isinstance(part, ast.Attribute) and part.attr in REACHING for part in parts)
    return not reaches and _TYPE_NODES.issuperset(map(type, parts))
