"""Checks of texts: names of interpreter attributes, fields of formats, settings of libraries that are named by text."""

import ast
import re
from collections.abc import Callable

from qwed.guards._python.abstract_values import UNKNOWN
from qwed.guards._python.analysis import PythonAnalysis
from qwed.guards._python.attributes import ATTRIBUTE_CALLS, CLASS_DATA, INTERNALS, REACHING
from qwed.guards._python.scopes import Scope
from qwed.guards.code_findings import ViolationKind
from qwed.model import EffectKind

TEXT_SETTINGS: dict[str, Callable[[PythonAnalysis, int], None]] = {
    "fromfile_prefix_chars": lambda analysis, line: analysis.report.add_effect(
        EffectKind.READ, "fromfile_prefix_chars", line
    ),
    "text.usetex": lambda analysis, line: analysis.report.add_violation(ViolationKind.PROCESS, "text.usetex", line),
    "auto_envvar_prefix": lambda analysis, line: analysis.report.add_effect(
        EffectKind.SECRET, "auto_envvar_prefix", line
    ),
}
"""Settings that have an effect wherever a program names them."""
_FORMAT_FIELD = re.compile(r"\{[^{}]*[.\[][^{}]*\}")
_FORMAT_STEP = re.compile(r"[.\[](\w+)")
_PLAIN_FORMAT = re.compile(r"\.__class__(?=\.__(?:name|qualname|module|doc)__)")
_INTERNAL_TEXTS = INTERNALS - ATTRIBUTE_CALLS - {"__code__", "__main__", "load_module", "exec_module"}
_DUNDERS = {name for name in _INTERNAL_TEXTS if name.startswith("__")}
_INTERNAL_FRAGMENTS = {name[:end] for name in _DUNDERS for end in range(5, len(name))} | {
    name[start:] for name in _DUNDERS for start in range(1, len(name) - 4)
}
"""Parts of interpreter attribute names that were split to hide them."""


def check_text(analysis: PythonAnalysis, node: ast.Constant, _scope: Scope) -> None:
    value = node.value
    if not isinstance(value, str) or ("_" not in value and "://" not in value and value not in TEXT_SETTINGS):
        return
    if value in CLASS_DATA and id(node) not in analysis.handled:
        analysis.annotations[node.lineno] = None
    for part in value.split(".") if len(value) < 200 else ():
        if part in _INTERNAL_TEXTS or part in _INTERNAL_FRAGMENTS:
            analysis.inner_texts.setdefault(part, node.lineno)
    if value in TEXT_SETTINGS:
        TEXT_SETTINGS[value](analysis, node.lineno)
    if value.startswith("module://"):
        analysis.report.add_lookup(value, node.lineno)
    _format(analysis, value, node.lineno)


def _format(analysis: PythonAnalysis, text: str, line: int) -> None:
    if is_reaching_format(text):
        analysis.report.add_violation(ViolationKind.REFLECT, "attribute lookup in a format string", line)


def is_reaching_format(text: str) -> bool:
    """Return True if a field of a format string looks up an interpreter attribute."""
    fields = _FORMAT_FIELD.findall(_PLAIN_FORMAT.sub("", text))
    return any(step in REACHING for field in fields for step in _FORMAT_STEP.findall(field))


def note_formatted(analysis: PythonAnalysis, node: ast.FormattedValue, _scope: Scope) -> None:
    analysis.shown.add(id(node.value))


def check_formatted_text(analysis: PythonAnalysis, node: ast.Call, text: ast.expr, scope: Scope) -> None:
    """Check the fields of a format, which look up attributes of what it is given."""
    values = analysis.folder.possible(text, scope)
    for value in values:
        if isinstance(value, str):
            _format(analysis, value, node.lineno)
    paths = analysis.values.paths(text, scope)
    is_class = bool(paths & {"str"}) and bool(node.args)
    if is_class:
        check_formatted_text(analysis, node, node.args[0], scope)
    elif UNKNOWN in values and not paths and not all(map(_is_plain_value, _format_arguments(node))):
        analysis.report.add_lookup("format with a computed text", node.lineno)


def _format_arguments(node: ast.Call) -> list[ast.expr]:
    return [*node.args, *(word.value for word in node.keywords)]


def _is_plain_value(node: ast.expr) -> bool:
    """Return True for a value that is a text or a number, whose attributes lead nowhere."""
    return isinstance(node, ast.Constant | ast.JoinedStr | ast.Compare)
