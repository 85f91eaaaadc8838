"""Effects of a method that is known by its name only: on a value of any kind, or of a library that the program uses."""

import ast

from qwed.guards._python import file_calls
from qwed.guards._python.analysis import PythonAnalysis
from qwed.guards._python.attributes import DANGEROUS_METHODS, LIBRARY_METHOD_EFFECTS, METHOD_EFFECTS
from qwed.guards._python.library_rules import RESULT_EFFECTS, RESULT_RULES, RETURNING_ARRAYS, SHARED_METHODS, words
from qwed.guards._python.scopes import Scope
from qwed.model import EffectKind

_NOUNS = words("""
open load export show save run append print filter move copy execute query replace rename stat group owner
""")
"""Names of methods that are columns or fields just as often; they count only if they are called."""


_RETURNING_PATHS = frozenset({"pydantic", "platformdirs"})
"""Libraries whose results may be paths."""


def is_library_method(analysis: PythonAnalysis, node: ast.Attribute) -> bool:
    """Return True if a value may be an object of a library, though the program defines a method of that name."""
    named = any(node.attr in RESULT_RULES.get(root, {}) for root in analysis.program.roots)
    return named and isinstance(node.value, ast.Name | ast.Subscript | ast.Call)


def report_inherited(analysis: PythonAnalysis, node: ast.Attribute) -> None:
    """Report a method that an object may have from a class of a library that the program extends."""
    for root in sorted(analysis.base_roots & RESULT_RULES.keys()) if analysis.base_roots else ():
        rule = RESULT_RULES[root].get(node.attr)
        if rule is not None and node.attr not in analysis.program.methods:
            analysis.report.add_rule(f"{root}().{node.attr}", rule, node.lineno, [])


def report_method(analysis: PythonAnalysis, node: ast.Attribute, scope: Scope) -> None:
    """Report `value.name`, where the value is not known."""
    name, called = node.attr, id(node) in analysis.callers
    if name in DANGEROUS_METHODS and called:
        analysis.report.add_violation(DANGEROUS_METHODS[name], name, node.lineno)
    kinds = _kinds(analysis, name, called)
    if kinds and not _returns_text(analysis, node):
        _report(analysis, kinds, node, scope)


def report_method_of_result(analysis: PythonAnalysis, node: ast.Attribute, scope: Scope) -> None:
    """Report a method that the results of many libraries have: a frame contains figures, a figure images."""
    if id(node) in analysis.callers and not _returns_text(analysis, node):
        kinds = {METHOD_EFFECTS[node.attr]} if node.attr in METHOD_EFFECTS else set()
        array_rule = RESULT_RULES["numpy"].get(node.attr)
        if array_rule is not None and "sympy" in analysis.program.roots:
            kinds |= set(array_rule.effects)
        for root in sorted(analysis.program.roots & _RETURNING_PATHS):
            kinds |= {LIBRARY_METHOD_EFFECTS[root][node.attr]} if node.attr in LIBRARY_METHOD_EFFECTS[root] else set()
        _report(analysis, kinds | SHARED_METHODS.get(node.attr, set()), node, scope)


def report_named_method(analysis: PythonAnalysis, name: str, line: int) -> None:
    """Report a method that a text names: `operator.methodcaller("unlink")`."""
    if name in DANGEROUS_METHODS:
        analysis.report.add_violation(DANGEROUS_METHODS[name], name, line)
    for kind in sorted(_kinds(analysis, name, called=True)):
        analysis.report.add_access(kind, name, line)


def _kinds(analysis: PythonAnalysis, name: str, called: bool) -> set[EffectKind]:
    kinds = {METHOD_EFFECTS[name]} if name in METHOD_EFFECTS else set()
    roots = analysis.program.roots
    arrays = frozenset({"numpy"}) if roots & RETURNING_ARRAYS else frozenset()
    for root in (roots | arrays) & RESULT_RULES.keys() if called else ():
        rule = RESULT_RULES[root].get(name)
        if rule is not None:
            kinds |= set(rule.effects) or {EffectKind.UNRESOLVED}
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
        targets = analysis.targets(node, scope)
        analysis.report.has_unknown_targets |= sum(map(bool, targets)) > 1
        target = next(iter(targets), "") or node.attr
        analysis.report.add_access(kind, target, node.lineno)
    analysis.report.subject = ""
