"""Checks of annotations and of other expressions that only name a type."""

import ast
import re

from qwed.guards._python.abstract_values import ANYTHING
from qwed.guards._python.analysis import PythonAnalysis
from qwed.guards._python.attributes import REACHING
from qwed.guards._python.library_rules import words
from qwed.guards._python.scopes import Scope
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
        analysis.excused.update(map(id, ast.walk(node)))


def mark_type_only(analysis: PythonAnalysis, node: ast.expr | None) -> None:
    """Mark names that only name a type; a call among them is still a call."""
    pending = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, ast.Tuple | ast.List):
            pending += current.elts
        elif isinstance(current, ast.BinOp):
            pending += [current.left, current.right]
        elif isinstance(current, ast.Subscript):
            pending += [current.value, current.slice]
        elif current is not None:
            analysis.type_only.add(id(current))


def check_annotation(analysis: PythonAnalysis, node: ast.expr | None, scope: Scope) -> None:
    """Check that an annotation does not contain a call, because libraries evaluate its text."""
    if node is None:
        return
    excuse(analysis, node)
    for part in ast.walk(node):
        if isinstance(part, ast.Name | ast.Attribute) and any(
            path in TYPES for path in analysis.values.paths(part, scope)
        ):
            analysis.type_only.add(id(part))
        text = part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else ""
        if can_hold_code(text):
            _check_text(analysis, text, node.lineno)
    if not isinstance(node, ast.Constant):
        _check_computed(analysis, node, scope)


def can_hold_code(text: str) -> bool:
    """Return True if the text of an annotation has to be parsed."""
    return "__" in text or "(" in text or "lambda" in text


def _check_computed(analysis: PythonAnalysis, node: ast.expr, scope: Scope) -> None:
    """Check an annotation whose text is computed elsewhere or unknown."""
    for text in analysis.folder.texts(node, scope):
        _check_text(analysis, text, node.lineno)
    if analysis.folder.possible(node, scope) == ANYTHING and analysis.is_obfuscated(node, scope):
        analysis.report.add_violation(ViolationKind.DYNAMIC, "code in an annotation", node.lineno)


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
