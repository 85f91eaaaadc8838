"""Pre-check for texts that can reach sympy, which runs them as formulas; names are matched in any order.

A name, an attribute and a function with the same name are merged, wherever they are bound. The result of a library
function is not a text of the program.
"""

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from qwed.guards._python import pure_functions
from qwed.guards._python.ast_children import RELEVANT_FIELDS
from qwed.guards._python.library_rules import words
from qwed.guards._python.precheck_model import Survey
from qwed.guards._python.string_eval_calls import FORMULA_METHODS, HIGHER_ORDER, flatten_containers, is_formula

_MAKES_TEXT = words("str repr chr hex format bytes bytearray ascii bin oct input")
_FOLDED = frozenset(path.rpartition(".")[2] for path in pure_functions.FUNCTIONS if "." in path)
"""Library functions whose results are folded."""


class BoundNames(NamedTuple):
    """Names that imports and the program bind."""

    opaque: frozenset[str]
    """Names bound only by imports, to something that returns no text of the program."""
    sympy: frozenset[str]
    """Names bound to something of sympy."""
    own: frozenset[str]
    """Names bound to values of the program."""


class _Composition(NamedTuple):
    """Texts and names that an expression is composed of."""

    text: bool
    names: set[str]


_PLAIN = _Composition(False, set())
_WRITTEN = frozenset({str, bytes})


class _NameSources:
    """Names from which each name is composed."""

    def __init__(self) -> None:
        self.names: dict[str, set[str]] = {}
        self.texts: set[str] = set()
        """Names bound to a text."""

    def add(self, name: str, composition: _Composition) -> None:
        """Add one binding of `name`."""
        before = self.names.get(name)
        self.names[name] = composition.names if before is None else before | composition.names
        if composition.text:
            self.texts.add(name)

    def made_of(self, names_found: set[str]) -> set[str]:
        """Return these names, and all that are composed of them."""
        before = 0
        while len(names_found) != before:
            before = len(names_found)
            for name, names in self.names.items():
                if name not in names_found and not names.isdisjoint(names_found):
                    names_found.add(name)
        return names_found


def are_formulas_plain(survey: Survey, names: BoundNames) -> bool:
    """Return True if every text that may reach sympy is a plain literal."""
    sources = _sources(survey, names)
    texts = sources.made_of(set(sources.texts))
    formulas: set[str] | None = None
    for holders, arguments in (*_calls(survey, names), *_items(survey)):
        if all(_is_plain(part, names, texts) for part in arguments):
            continue
        formulas = sources.made_of(set(names.sympy)) if formulas is None else formulas
        if not holders or not _composition_of(holders, names).names.isdisjoint(formulas):
            return False
    return True


PossibleInput = tuple[Sequence[ast.expr], Sequence[ast.expr]]
"""Expressions of which one must be sympy's (any if empty), and the arguments it gets."""


def _calls(survey: Survey, names: BoundNames) -> Iterator[PossibleInput]:
    """Yield every call that may be one of sympy."""
    for call in survey.calls:
        func = call.func
        arguments = [*call.args, *[word.value for word in call.keywords]] if call.keywords else call.args
        name = _called_name(func)
        if name in _CALLERS:
            yield arguments or [func], arguments
        elif (not name and type(func) is not ast.Lambda) or (type(func) is ast.Attribute and name in FORMULA_METHODS):
            yield (), arguments
        elif name and _may_be_formula(func, names):
            yield (func,), arguments


def _may_be_formula(func: ast.expr, names: BoundNames) -> bool:
    root = _root(func)
    if type(func) is ast.Name:
        return root in names.sympy or root in names.own
    return root in names.sympy or root not in names.opaque


def _items(survey: Survey) -> Iterator[PossibleInput]:
    """Yield every index expression and item assignment."""
    for node in survey.subscripts:
        yield (node.value,), (node.slice,)
    for target, value in survey.bindings:
        if type(target) is not ast.Name:
            containers = [item.value for item in flatten_containers([target]) if isinstance(item, ast.Subscript)]
            if containers:
                yield containers, (value,)


_CALLERS = frozenset(path.rpartition(".")[2] for path in HIGHER_ORDER)
"""Functions that call their arguments."""


def passes_on_higher_order(survey: Survey, paths: dict[str, set[str]]) -> bool:
    """Return True if such a function is used under another name or as a value; `paths` are the import bindings."""
    renamed = any(
        name not in _CALLERS and not bound_paths.isdisjoint(HIGHER_ORDER) for name, bound_paths in paths.items()
    )
    used = survey.attributes.union(*(scope.loaded for scope in survey.scopes))
    return renamed or not used.isdisjoint(_CALLERS)


def _is_plain(part: ast.expr, names: BoundNames, texts: set[str]) -> bool:
    kind = type(part)
    if kind is ast.Name:
        return part.id not in texts  # type: ignore[attr-defined]  # a name
    if kind is ast.Constant:
        return type(part.value) is not str or is_formula(part.value)  # type: ignore[attr-defined]  # a constant
    if kind in _SEQUENCES:
        return all(_is_plain(element, names, texts) for element in part.elts)  # type: ignore[attr-defined]  # a sequence
    if kind in _HOLDERS:
        return all(_is_plain(element, names, texts) for element in flatten_containers([part]))
    composition = _composition_of((part,), names)
    return not composition.text and composition.names.isdisjoint(texts)


_SEQUENCES = frozenset({ast.List, ast.Tuple, ast.Set})
_HOLDERS = frozenset({ast.Dict, ast.Starred})


def _composition_of(nodes: Iterable[ast.AST], names: BoundNames) -> _Composition:
    """Return what these nodes are composed of, without following their names."""
    text = False
    used: set[str] = set()
    pending = list(nodes)
    for node in pending:
        kind = type(node)
        if kind is ast.Name:
            used.add(node.id)  # type: ignore[attr-defined]  # a name
        elif kind is ast.Constant:
            text = text or type(node.value) in _WRITTEN  # type: ignore[attr-defined,operator]  # a constant
        elif kind is ast.BinOp:
            pending += (node.left, node.right)  # type: ignore[attr-defined]  # an operation
        elif kind is ast.Call:
            text = _add_call(node, names, used, pending) or text  # type: ignore[arg-type]  # a call
        else:
            text = _add_members(node, used, pending) or text
    return _Composition(text, used)


def _add_members(node: ast.AST, used: set[str], pending: list[ast.AST]) -> bool:
    """Continue with the parts of a node; return True if it is a text itself."""
    if type(node) is ast.Attribute:
        used.add(node.attr)
    for member in RELEVANT_FIELDS[type(node)]:
        value = getattr(node, member, None)
        if type(value) is list:
            pending += [item for item in value if item is not None]
        elif isinstance(value, ast.AST):
            pending.append(value)
    return type(node) in _TEXTS


_TEXTS = frozenset({ast.JoinedStr, ast.Lambda})
"""Nodes that may be a text; a lambda counts because of its result."""


def _add_call(node: ast.Call, names: BoundNames, used: set[str], pending: list[ast.AST]) -> bool:
    """Continue with the parts of a call that its result may be composed of; return True if it creates a text."""
    func = node.func
    name = _called_name(func)
    if name:
        used.add(name)
    root = _root(func)
    if root in names.opaque and name not in _FOLDED:
        used.add(root)
        return False
    pending.append(func)
    pending += node.args
    pending += [word.value for word in node.keywords]
    return name in _MAKES_TEXT


def _called_name(func: ast.expr) -> str:
    return func.id if type(func) is ast.Name else func.attr if type(func) is ast.Attribute else ""


def _root(node: ast.expr) -> str:
    """Return the name that `a.b.c` begins with, or ""."""
    while type(node) is ast.Attribute:
        node = node.value
    return node.id if type(node) is ast.Name else ""


def _sources(survey: Survey, names: BoundNames) -> _NameSources:
    sources = _NameSources()
    for target, value in survey.bindings:
        composition = (
            _PLAIN
            if type(value) is ast.Constant and type(value.value) not in _WRITTEN
            else _composition_of((value,), names)
        )
        for name in [target.id] if type(target) is ast.Name else _targets(target):
            sources.add(name, composition)
    for label, value in survey.results:
        sources.add(label, _composition_of((value,), names))
    if survey.functions:
        _parameters(survey, names, sources)
    return sources


def _targets(target: ast.expr) -> list[str]:
    """Return the assigned names and attributes; an item counts as its container."""
    names: list[str] = []
    pending = [target]
    for node in pending:
        if isinstance(node, ast.Name):
            names.append(node.id)
        elif isinstance(node, ast.Tuple | ast.List):
            pending += node.elts
        elif isinstance(node, ast.Attribute):
            names.append(node.attr)
        elif isinstance(node, ast.Starred | ast.Subscript):
            pending.append(node.value)
    return names


def _parameters(survey: Survey, names: BoundNames, sources: _NameSources) -> None:
    passed: dict[str, list[ast.expr]] = {label: [] for labels, _ in survey.functions for label in labels}
    for call in survey.calls:
        values = passed.get(_called_name(call.func))
        if values is not None:
            values += call.args
            values += [word.value for word in call.keywords]
    for labels, arguments in survey.functions:
        values = [item for label in labels for item in passed[label]]
        parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        values += [item for item in (*arguments.defaults, *arguments.kw_defaults) if item is not None]
        values += [item.annotation for item in parameters if item is not None and item.annotation is not None]
        # The arguments of a lambda are not known, because it has no name.
        composition = _composition_of(values, names) if labels else _Composition(True, set(names.sympy))
        for item in parameters:
            if item is not None:
                sources.add(item.arg, composition)
