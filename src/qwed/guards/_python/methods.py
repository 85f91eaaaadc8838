"""Effects of a method that is known by its name only: on a value of any kind, or of a library that the program uses."""

import ast

from qwed.guards._python import file_calls
from qwed.guards._python.analysis import PythonAnalysis
from qwed.guards._python.attributes import DANGEROUS_METHODS, LIBRARY_METHOD_EFFECTS, METHOD_EFFECTS
from qwed.guards._python.library_rules import RESULT_EFFECTS, SHARED_METHODS, words
from qwed.guards._python.scopes import Scope
from qwed.model import EffectKind

_NOUNS = words("""
open load export show save run append print filter move copy execute query replace rename stat group owner
""")
"""Names of methods that are columns or fields just as often; they count only if they are called."""


def report_method(analysis: PythonAnalysis, node: ast.Attribute, scope: Scope) -> None:
    """Report `value.name`, where the value is not known."""
    name, called = node.attr, id(node) in analysis.callers
    if name in DANGEROUS_METHODS and called:
        analysis.report.add_violation(DANGEROUS_METHODS[name], name, node.lineno)
    if not _returns_text(analysis, node):
        _report(analysis, _kinds(analysis, name, called), node, scope)


def report_method_of_result(analysis: PythonAnalysis, node: ast.Attribute, scope: Scope) -> None:
    """Report a method that the results of many libraries have: a frame contains figures, a figure images."""
    if id(node) in analysis.callers and not _returns_text(analysis, node):
        kinds = {METHOD_EFFECTS[node.attr]} if node.attr in METHOD_EFFECTS else set()
        _report(analysis, SHARED_METHODS.get(node.attr, kinds), node, scope)


def report_named_method(analysis: PythonAnalysis, name: str, line: int) -> None:
    """Report a method that a text names: `operator.methodcaller("unlink")`."""
    if name in DANGEROUS_METHODS:
        analysis.report.add_violation(DANGEROUS_METHODS[name], name, line)
    for kind in sorted(_kinds(analysis, name, called=True)):
        analysis.report.add_access(kind, name, line)


def _kinds(analysis: PythonAnalysis, name: str, called: bool) -> set[EffectKind]:
    kinds = {METHOD_EFFECTS[name]} if name in METHOD_EFFECTS else set()
    for root in analysis.program.roots:
        if called and name in LIBRARY_METHOD_EFFECTS.get(root, {}):
            kinds.add(LIBRARY_METHOD_EFFECTS[root][name])
        if called or name not in _NOUNS:
            kinds |= RESULT_EFFECTS.get(root, {}).get(name, set())
    return kinds


def _returns_text(analysis: PythonAnalysis, node: ast.Attribute) -> bool:
    call = analysis.callers.get(id(node))
    return node.attr in file_calls.TEXT_EXPORTS and call is not None and not file_calls.names_file(call)


def _report(analysis: PythonAnalysis, kinds: set[EffectKind], node: ast.Attribute, scope: Scope) -> None:
    analysis.report.subject = node.attr
    for kind in sorted(kinds):
        target = next(iter(analysis.targets(node, scope)), "") or node.attr
        analysis.report.add_access(kind, target, node.lineno)
    analysis.report.subject = ""
