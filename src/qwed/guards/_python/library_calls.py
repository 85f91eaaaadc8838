"""Rules for calls of library functions that look up the names in their arguments."""

import ast

from qwed.guards._python import string_eval_calls
from qwed.guards._python.abstract_values import UNKNOWN
from qwed.guards._python.analysis import PythonAnalysis
from qwed.guards._python.attributes import INTERNALS, TRAVERSALS
from qwed.guards._python.file_calls import Handler
from qwed.guards._python.scopes import Scope
from qwed.guards.code_findings import ViolationKind


def _named_fields(analysis: PythonAnalysis, node: ast.Call, scope: Scope, path: str) -> None:
    """Check the names of the fields of `namedtuple`: a class pattern looks them up by position."""
    for part in string_eval_calls.flatten_containers([*node.args[1:2], *(word.value for word in node.keywords)]):
        values = [item for value in analysis.folder.possible(part, scope) for item in _field_names(value)]
        for name in values:
            if name in INTERNALS or name in TRAVERSALS:
                analysis.report.add_violation(ViolationKind.REFLECT, str(name), node.lineno)
        if UNKNOWN in values and analysis.is_composed(part, scope):
            analysis.composed_fields[node.lineno] = path


def _field_names(value: object) -> list[object]:
    """Return the names of fields in a text or a container."""
    if isinstance(value, str):
        return [*value.replace(",", " ").split()]
    return [name for item in value for name in _field_names(item)] if isinstance(value, tuple | list) else [value]


BY_NAME: dict[str, Handler] = {"collections.namedtuple": _named_fields}
