"""Whether a text of the program can reach sympy, which runs it for a formula: looked for by name, in any order.

A name, an attribute and a function of one name are taken together, wherever they are bound. What a library's function
gives back is no text of the program.
"""

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from qwed.guards._python import pure
from qwed.guards._python.children import TELLING
from qwed.guards._python.places import Survey
from qwed.guards._python.tables import words
from qwed.guards._python.text_calls import CALLING, ON_FORMULAS, is_formula, parts

_MAKES_TEXT = words("str repr chr hex format bytes bytearray ascii bin oct input")
_FOLDED = frozenset(path.rpartition(".")[2] for path in pure.FUNCTIONS if "." in path)
"""Functions of libraries whose results are worked out."""


class Names(NamedTuple):
    """What imports and the program bind, for one look."""

    opaque: frozenset[str]
    """Bound by nothing but imports, to what gives back no text of the program."""
    sympy: frozenset[str]
    """Bound to something of sympy."""
    own: frozenset[str]
    """Bound to values of the program."""


class _Made(NamedTuple):
    """What an expression is made of."""

    text: bool
    names: set[str]


_PLAIN = _Made(False, set())
_WRITTEN = frozenset({str, bytes})


class _Sources:
    """What each name is made of."""

    def __init__(self) -> None:
        self.names: dict[str, set[str]] = {}
        self.texts: set[str] = set()
        """Those that are bound to a text."""

    def add(self, name: str, made: _Made) -> None:
        """One thing that `name` is bound to."""
        before = self.names.get(name)
        self.names[name] = made.names if before is None else before | made.names
        if made.text:
            self.texts.add(name)

    def made_of(self, found: set[str]) -> set[str]:
        """These names, and all that are made of them."""
        before = 0
        while len(found) != before:
            before = len(found)
            for name, names in self.names.items():
                if name not in found and not names.isdisjoint(found):
                    found.add(name)
        return found


def formulas_are_plain(found: Survey, names: Names) -> bool:
    """Whether every text that sympy may be given is written out there and plain."""
    sources = _sources(found, names)
    texts = sources.made_of(set(sources.texts))
    formulas: set[str] | None = None
    for holders, given in (*_calls(found, names), *_kept(found)):
        if all(_is_plain(part, names, texts) for part in given):
            continue
        formulas = sources.made_of(set(names.sympy)) if formulas is None else formulas
        if not holders or not _made(holders, names).names.isdisjoint(formulas):
            return False
    return True


Given = tuple[Sequence[ast.expr], Sequence[ast.expr]]
"""What is sympy's if one of these is, or in any case where there are none, and what it is given."""


def _calls(found: Survey, names: Names) -> Iterator[Given]:
    """Every call that may be one of sympy."""
    for call in found.calls:
        func = call.func
        given = [*call.args, *[word.value for word in call.keywords]] if call.keywords else call.args
        called = _called(func)
        if called in _CALLERS:
            yield given or [func], given
        elif (not called and type(func) is not ast.Lambda) or (type(func) is ast.Attribute and called in ON_FORMULAS):
            yield (), given
        elif called and _may_be_formula(func, names):
            yield (func,), given


def _may_be_formula(func: ast.expr, names: Names) -> bool:
    root = _root(func)
    if type(func) is ast.Name:
        return root in names.sympy or root in names.own
    return root in names.sympy or root not in names.opaque


def _kept(found: Survey) -> Iterator[Given]:
    """Whatever is indexed, and what is put there."""
    for node in found.subscripts:
        yield (node.value,), (node.slice,)
    for target, value in found.bindings:
        if type(target) is not ast.Name:
            held = [each.value for each in parts([target]) if isinstance(each, ast.Subscript)]
            if held:
                yield held, (value,)


_CALLERS = frozenset(path.rpartition(".")[2] for path in CALLING)
"""They call what they are given."""


def calls_what_it_is_given(found: Survey, paths: dict[str, set[str]]) -> bool:
    """Whether such a function is used under another name, or handed on itself; `paths` are what imports bind."""
    renamed = any(name not in _CALLERS and not of.isdisjoint(CALLING) for name, of in paths.items())
    asked = found.attributes.union(*(place.loaded for place in found.places))
    return renamed or not asked.isdisjoint(_CALLERS)


def _is_plain(part: ast.expr, names: Names, texts: set[str]) -> bool:
    kind = type(part)
    if kind is ast.Name:
        return part.id not in texts  # type: ignore[attr-defined]  # a name
    if kind is ast.Constant:
        return type(part.value) is not str or is_formula(part.value)  # type: ignore[attr-defined]  # a constant
    if kind in _SEQUENCES:
        return all(_is_plain(each, names, texts) for each in part.elts)  # type: ignore[attr-defined]  # a sequence
    if kind in _HOLDERS:
        return all(_is_plain(each, names, texts) for each in parts([part]))
    made = _made((part,), names)
    return not made.text and made.names.isdisjoint(texts)


_SEQUENCES = frozenset({ast.List, ast.Tuple, ast.Set})
_HOLDERS = frozenset({ast.Dict, ast.Starred})


def _made(nodes: Iterable[ast.AST], names: Names) -> _Made:
    """What these are made of, without what their names are bound to."""
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
            text = _call(node, names, used, pending) or text  # type: ignore[arg-type]  # a call
        else:
            text = _other(node, used, pending) or text
    return _Made(text, used)


def _other(node: ast.AST, used: set[str], pending: list[ast.AST]) -> bool:
    """Go on with the parts of a node; whether it is a text by itself."""
    if type(node) is ast.Attribute:
        used.add(node.attr)
    for member in TELLING[type(node)]:
        held = getattr(node, member)
        if type(held) is list:
            pending += [each for each in held if each is not None]
        elif isinstance(held, ast.AST):
            pending.append(held)
    return type(node) in _TEXTS


_TEXTS = frozenset({ast.JoinedStr, ast.Lambda})
"""A lambda is taken for what it may give back."""


def _call(node: ast.Call, names: Names, used: set[str], pending: list[ast.AST]) -> bool:
    """Go on with the parts of a call that its result may be made of; whether it makes a text by itself."""
    func = node.func
    called = _called(func)
    if called:
        used.add(called)
    root = _root(func)
    if root in names.opaque and called not in _FOLDED:
        used.add(root)
        return False
    pending.append(func)
    pending += node.args
    pending += [word.value for word in node.keywords]
    return called in _MAKES_TEXT


def _called(func: ast.expr) -> str:
    return func.id if type(func) is ast.Name else func.attr if type(func) is ast.Attribute else ""


def _root(node: ast.expr) -> str:
    """The name that `a.b.c` begins with, where it is one."""
    while type(node) is ast.Attribute:
        node = node.value
    return node.id if type(node) is ast.Name else ""


def _sources(found: Survey, names: Names) -> _Sources:
    sources = _Sources()
    for target, value in found.bindings:
        made = _PLAIN if type(value) is ast.Constant and type(value.value) not in _WRITTEN else _made((value,), names)
        for name in [target.id] if type(target) is ast.Name else _targets(target):
            sources.add(name, made)
    for label, value in found.results:
        sources.add(label, _made((value,), names))
    if found.functions:
        _parameters(found, names, sources)
    return sources


def _targets(target: ast.expr) -> list[str]:
    """The names and attributes that are set; what is held by one is taken for the whole of it."""
    found: list[str] = []
    pending = [target]
    for each in pending:
        if isinstance(each, ast.Name):
            found.append(each.id)
        elif isinstance(each, ast.Tuple | ast.List):
            pending += each.elts
        elif isinstance(each, ast.Attribute):
            found.append(each.attr)
        elif isinstance(each, ast.Starred | ast.Subscript):
            pending.append(each.value)
    return found


def _parameters(found: Survey, names: Names, sources: _Sources) -> None:
    handed: dict[str, list[ast.expr]] = {label: [] for labels, _ in found.functions for label in labels}
    for call in found.calls:
        given = handed.get(_called(call.func))
        if given is not None:
            given += call.args
            given += [word.value for word in call.keywords]
    for labels, arguments in found.functions:
        given = [each for label in labels for each in handed[label]]
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        given += [each for each in (*arguments.defaults, *arguments.kw_defaults) if each is not None]
        given += [each.annotation for each in every if each is not None and each.annotation is not None]
        # What a lambda is handed depends on who calls it.
        made = _made(given, names) if labels else _Made(True, set(names.sympy))
        for each in every:
            if each is not None:
                sources.add(each.arg, made)
