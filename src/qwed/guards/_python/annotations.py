"""Expressions that only say which kind a value is."""

import ast

from qwed.guards._python.attributes import REACHING
from qwed.guards._python.choices import ANYTHING
from qwed.guards._python.look import Look
from qwed.guards._python.scopes import Scope
from qwed.guards._python.tables import words
from qwed.guards.code_words import Danger

_CODE = (ast.Call, ast.Lambda, ast.GeneratorExp, ast.ListComp, ast.NamedExpr, ast.Await)
TYPES = words("""
types.FunctionType types.LambdaType types.CodeType types.ModuleType types.FrameType types.CellType types.TracebackType
typing.ForwardRef
""")
"""Dangerous to call, harmless to compare with."""


def excuse(look: Look, node: ast.expr | None) -> None:
    """Mark an expression in which a name from elsewhere is ordinary."""
    if node is not None:
        look.excused.update(map(id, ast.walk(node)))


def only_type(look: Look, node: ast.expr | None) -> None:
    """Mark names that say which kind a value is; a call among them is still a call."""
    pending = [node]
    while pending:
        here = pending.pop()
        if isinstance(here, ast.Tuple | ast.List):
            pending += here.elts
        elif isinstance(here, ast.BinOp):
            pending += [here.left, here.right]
        elif isinstance(here, ast.Subscript):
            pending += [here.value, here.slice]
        elif here is not None:
            look.typed.add(id(here))


def annotated(look: Look, node: ast.expr | None, scope: Scope) -> None:
    """Libraries evaluate the text of an annotation, so it must not hold a call."""
    if node is None:
        return
    excuse(look, node)
    for part in ast.walk(node):
        if isinstance(part, ast.Name | ast.Attribute) and any(path in TYPES for path in look.values.paths(part, scope)):
            look.typed.add(id(part))
        text = part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else ""
        if may_hold_code(text):
            _annotation_text(look, text, node.lineno)
    if not isinstance(node, ast.Constant):
        _made(look, node, scope)


def may_hold_code(text: str) -> bool:
    """Whether the text of an annotation has to be read."""
    return "__" in text or "(" in text or "lambda" in text


def _made(look: Look, node: ast.expr, scope: Scope) -> None:
    """An annotation that is a text made elsewhere, or in a way nobody can tell."""
    for text in look.folder.texts(node, scope):
        _annotation_text(look, text, node.lineno)
    if look.folder.possible(node, scope) == ANYTHING and look.hidden(node, scope):
        look.report.danger(Danger.DYNAMIC, "code in an annotation", node.lineno)


def _annotation_text(look: Look, text: str, line: int) -> None:
    try:
        parts = list(ast.walk(ast.parse(text.strip(), mode="eval")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    inner = any(isinstance(part, ast.Attribute) and part.attr in REACHING for part in parts)
    if inner or any(isinstance(part, _CODE) for part in parts):
        look.report.danger(Danger.DYNAMIC, "code in an annotation", line)
