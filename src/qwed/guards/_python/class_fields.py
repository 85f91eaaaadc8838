"""Checks of the names of fields, which class patterns and generated code look up."""

import ast

from qwed.guards._python.analysis import PythonAnalysis
from qwed.guards._python.attributes import INTERNALS
from qwed.guards._python.library_rules import words
from qwed.guards._python.scopes import Scope
from qwed.guards.code_findings import ViolationKind


def report_field_names(analysis: PythonAnalysis) -> None:
    """Report names of fields that the program composes or changes: libraries look them up, or compose code of them."""
    for scope in analysis.program.scopes if analysis.program.classes else ():
        for name in sorted(_RAW_MEMORY & scope.names.keys()) if scope.kind == "class" else ():
            analysis.report.add_violation(ViolationKind.REFLECT, name, 0)
    for line in analysis.renamed if analysis.uses_fields else ():
        analysis.report.add_lookup("name of a field", line)
    for line, what in analysis.composed_fields.items() if analysis.class_patterns else ():
        analysis.report.add_lookup(f"{what} with computed names", line)


_RAW_MEMORY = words("__array_interface__ __array_struct__ __cuda_array_interface__")
"""Attributes by which an object says where in memory its data is."""


def note_class_pattern(analysis: PythonAnalysis, node: ast.MatchClass, _scope: Scope) -> None:
    """Note a lookup by position: the names of the fields of the class say which attributes it reads."""
    if node.patterns:
        analysis.class_patterns[node.lineno] = None
        analysis.computed_lookups.setdefault(node.lineno, "class pattern")


def check_field_name(analysis: PythonAnalysis, target: ast.expr, scope: Scope, *, stated: bool) -> None:
    """Report a field with the name of an interpreter attribute, which a class pattern looks up by position."""
    name = target.id if isinstance(target, ast.Name) and scope.kind == "class" else ""
    if name in INTERNALS and (stated or not name.startswith("__")):
        analysis.report.add_violation(ViolationKind.REFLECT, name, target.lineno)
