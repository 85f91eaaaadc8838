"""Lookups of attributes by an unknown name that cannot leave the objects of the program."""

import ast
from collections.abc import Iterator

from qwed.guards._python.analysis import PythonAnalysis
from qwed.guards._python.library_rules import words
from qwed.guards._python.scopes import Binding, Scope

_FIELD_NAMES = words("dataclasses.fields attr.fields attrs.fields")


def is_own_lookup(analysis: PythonAnalysis, node: ast.Call, scope: Scope) -> bool:
    """Return True if `getattr(base, name)` only gets an attribute of an object of the program, or a field, or only
    shows what it gets."""
    base, name = node.args[:2]
    return (
        id(node) in analysis.shown
        or is_own_object(analysis, base, scope)
        or _is_delegated(name, scope)
        or _is_field_name(analysis, name, scope)
    )


def is_own_object(analysis: PythonAnalysis, node: ast.expr, scope: Scope) -> bool:
    """Return True for the object of a method, and for objects that the program creates of its own classes."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and analysis.is_own_class(node.func, scope)
    if not isinstance(node, ast.Name):
        return False
    if node.id in ("self", "cls") or _is_owner_of_descriptor(node.id, scope):
        return True
    bindings = list(_bindings(analysis, node, scope))
    return bool(bindings) and all(_holds_own_objects(analysis, binding, scope) for binding in bindings)


def _bindings(analysis: PythonAnalysis, node: ast.Name, scope: Scope) -> Iterator[Binding]:
    for home in analysis.program.lookup(node.id, scope)[0]:
        yield from home.names[node.id]


def _holds_own_objects(analysis: PythonAnalysis, binding: Binding, scope: Scope) -> bool:
    if isinstance(binding.value, ast.Call):
        return is_own_object(analysis, binding.value, binding.scope or scope)
    functions = {key.replace("=", ":").partition(":")[0] for key in binding.call_arguments}
    if not functions or not all(map(analysis.folder.limits.is_called_by_name, functions)):
        return False
    arguments = analysis.program.call_arguments.names
    given = [argument for key in binding.call_arguments for argument in arguments.get(key, ())]
    return bool(given) and all(
        isinstance(item.value, ast.Call) and is_own_object(analysis, item.value, scope) for item in given
    )


def _is_owner_of_descriptor(name: str, scope: Scope) -> bool:
    """Return True for the second parameter of `__get__`, which the interpreter passes: nothing else may call it."""
    return scope.label == "__get__" and list(scope.names)[1:2] == [name] and len(scope.names[name]) == 1


def _is_delegated(name: ast.expr, scope: Scope) -> bool:
    """Return True for the name that `__getattr__` gets, which was checked where the attribute is used."""
    is_parameter = isinstance(name, ast.Name) and list(scope.names)[1:2] == [name.id] and len(scope.names[name.id]) == 1
    return scope.label in ("__getattr__", "__getattribute__") and is_parameter


def _is_field_name(analysis: PythonAnalysis, name: ast.expr, scope: Scope) -> bool:
    """Return True for `f.name` where `f` iterates over the fields of a class."""
    if not isinstance(name, ast.Attribute) or name.attr != "name" or not isinstance(name.value, ast.Name):
        return False
    bindings = list(_bindings(analysis, name.value, scope))
    return bool(bindings) and all(
        isinstance(binding.iterates, ast.Call)
        and analysis.values.paths(binding.iterates.func, binding.scope or scope) <= _FIELD_NAMES
        and analysis.is_certain(binding.iterates.func, binding.scope or scope)
        for binding in bindings
    )
