"""One pass over a syntax tree that gathers what a quick look judges by; a node it does not know ends it.

Scopes are told apart, the order of bindings and the values of names are not.
"""

import ast
from collections.abc import Callable

from qwed.guards._python.places import Place, Survey, Unplain

OWN = ("self", "cls")
_NAME, _LOAD = ast.Name, ast.Load
MAX_DEPTH = 50
"""Levels of a tree; the full check follows names through a few more."""


def survey(tree: ast.Module) -> Survey:
    """What `tree` consists of; Unplain where it holds more than a survey can tell."""
    found = Survey([Place("module", None, "", tree.body, 0)])
    try:
        for place in found.places:
            _enter(found, place)
    except KeyError:
        # A kind of node that is not in the table.
        raise Unplain from None
    return found


def _enter(found: Survey, place: Place) -> None:
    """Go through a place level by level; what begins a place of its own is left for later."""
    level, loaded, values = place.level, place.loaded, place.values
    while level:
        place.depth += 1
        if place.depth > MAX_DEPTH:
            raise Unplain
        below: list[ast.AST] = []
        for node in level:
            kind = type(node)
            if kind is _NAME:
                (loaded if type(node.ctx) is _LOAD else values).add(node.id)  # type: ignore[attr-defined]  # a name
            else:
                _ENTERED[kind](found, node, place, below)
        level = below


def _constant(found: Survey, node: ast.Constant, _place: Place, _below: list[ast.AST]) -> None:
    if type(node.value) is str and "_" in node.value:
        found.texts.append(node.value)


def _attribute(found: Survey, node: ast.Attribute, _place: Place, below: list[ast.AST]) -> None:
    held, name = node.value, node.attr
    if name[0] == "_":
        _private(found, held, name)
    found.attributes.add(name)
    if type(node.ctx) is not _LOAD:
        found.fields.add(name)
    below.append(held)


def _private(found: Survey, held: ast.expr, name: str) -> None:
    """A name between two underscores on each side is anybody's, any other with one is the object's own."""
    if name[:2] == "__" and name[-2:] == "__":
        return
    if type(held) is not ast.Name or held.id not in OWN or name[:2] == "__":
        raise Unplain
    found.own.add(held.id)


def _call(found: Survey, node: ast.Call, place: Place, below: list[ast.AST]) -> None:
    func = node.func
    found.calls.append(node)
    if type(func) is ast.Name:
        place.called.add(func.id)
    elif type(func) is ast.Attribute:
        found.methods.add(func.attr)
        if func.attr[0] == "_":
            _private(found, func.value, func.attr)
        below.append(func.value)
    else:
        below.append(func)
    below += node.args
    for word in node.keywords:
        if word.arg is not None:
            found.words.add(word.arg)
        below.append(word.value)


def _assign(found: Survey, node: ast.Assign, _place: Place, below: list[ast.AST]) -> None:
    value = node.value
    for target in node.targets:
        found.bindings.append((target, value))
        below.append(target)
    below.append(value)


def _annotated(found: Survey, node: ast.AnnAssign, place: Place, below: list[ast.AST]) -> None:
    found.annotations.append((node.annotation, place))
    below.append(node.target)
    if node.value is not None:
        found.bindings.append((node.target, node.value))
        below.append(node.value)


def _grown(found: Survey, node: ast.AugAssign, _place: Place, below: list[ast.AST]) -> None:
    found.bindings.append((node.target, node.value))
    below += (node.target, node.value)
    _operator(node.op)


def _operator(op: ast.operator) -> None:
    if type(op) is ast.BitXor:
        raise Unplain


def _operation(_found: Survey, node: ast.BinOp, _place: Place, below: list[ast.AST]) -> None:
    if type(node.op) is ast.BitXor:
        raise Unplain
    below += (node.left, node.right)


def _loop(found: Survey, node: ast.For, _place: Place, below: list[ast.AST]) -> None:
    found.bindings.append((node.target, node.iter))
    below += (node.target, node.iter, *node.body, *node.orelse)


def _with(found: Survey, node: ast.With, _place: Place, below: list[ast.AST]) -> None:
    for item in node.items:
        below.append(item.context_expr)
        if item.optional_vars is not None:
            found.bindings.append((item.optional_vars, item.context_expr))
            below.append(item.optional_vars)
    below += node.body


def _result(found: Survey, node: ast.Return | ast.Yield, place: Place, below: list[ast.AST]) -> None:
    if node.value is not None:
        found.results.append((place.label, node.value))
        below.append(node.value)


def _handler(_found: Survey, node: ast.ExceptHandler, place: Place, below: list[ast.AST]) -> None:
    if node.name is not None:
        place.values.add(node.name)
    if node.type is not None:
        below.append(node.type)
    below += node.body


def _import(found: Survey, node: ast.Import, place: Place, _below: list[ast.AST]) -> None:
    for alias in node.names:
        found.imports.append((alias.name, "", alias.asname or ""))
        place.defined.add(alias.asname or alias.name.partition(".")[0])


def _import_from(found: Survey, node: ast.ImportFrom, place: Place, _below: list[ast.AST]) -> None:
    if node.level or node.module is None:
        raise Unplain
    for alias in node.names:
        bound = alias.asname or alias.name
        found.imports.append((node.module, alias.name, bound))
        place.defined.add(bound)


def _function(found: Survey, node: ast.FunctionDef, place: Place, below: list[ast.AST]) -> None:
    place.defined.add(node.name)
    below += node.decorator_list
    if node.returns is not None:
        found.annotations.append((node.returns, place))
    inner = Place("function", place, node.name, node.body, place.depth)
    found.places.append(inner)
    names = (node.name, place.label) if place.kind == "class" else (node.name,)
    _parameters(found, node.args, names, inner, below)
    if place.kind == "class":
        _own_object(found, node, inner)


def _own_object(found: Survey, node: ast.FunctionDef, inner: Place) -> None:
    """`self`, where nothing but the object itself can be handed over as that."""
    first = [*node.args.posonlyargs, *node.args.args]
    plain = len(first) > len(node.args.defaults) and first[0].annotation is None
    static = any(type(each) is ast.Name and each.id == "staticmethod" for each in node.decorator_list)
    if plain and not static and first[0].arg in OWN:
        inner.values.discard(first[0].arg)
        found.parameters -= 1
        inner.defined.add(first[0].arg)


def _parameters(found: Survey, node: ast.arguments, names: tuple[str, ...], inner: Place, below: list[ast.AST]) -> None:
    found.functions.append((names, node))
    every = [*node.posonlyargs, *node.args, *node.kwonlyargs]
    if node.vararg is not None:
        every.append(node.vararg)
    if node.kwarg is not None:
        every.append(node.kwarg)
    if every:
        found.parameters += len(every)
        inner.values.update([each.arg for each in every])
        outer = inner.outer or inner
        found.annotations += [(each.annotation, outer) for each in every if each.annotation is not None]
    below += node.defaults
    below += [each for each in node.kw_defaults if each is not None]


def _lambda(found: Survey, node: ast.Lambda, place: Place, below: list[ast.AST]) -> None:
    found.loops += 1
    inner = Place("function", place, "", (node.body,), place.depth)
    found.places.append(inner)
    _parameters(found, node.args, (), inner, below)


def _class(found: Survey, node: ast.ClassDef, place: Place, below: list[ast.AST]) -> None:
    place.defined.add(node.name)
    below += (*node.decorator_list, *node.bases, *(word.value for word in node.keywords))
    found.places.append(Place("class", place, node.name, node.body, place.depth))


def _comprehension(
    found: Survey,
    node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
    place: Place,
    below: list[ast.AST],
) -> None:
    found.loops += 1
    inside: list[ast.AST] = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    for index, each in enumerate(node.generators):
        found.bindings.append((each.target, each.iter))
        (inside if index else below).append(each.iter)
        inside += (each.target, *each.ifs)
    found.places.append(Place("comprehension", place, "", inside, place.depth))


def _subscript(found: Survey, node: ast.Subscript, _place: Place, below: list[ast.AST]) -> None:
    found.subscripts.append(node)
    below += (node.value, node.slice)


def _slice(_found: Survey, node: ast.Slice, _place: Place, below: list[ast.AST]) -> None:
    if node.step is not None:
        raise Unplain
    below += [each for each in (node.lower, node.upper) if each is not None]


def _mapping(_found: Survey, node: ast.Dict, _place: Place, below: list[ast.AST]) -> None:
    below += [each for each in node.keys if each is not None]
    below += node.values


def _statement(_found: Survey, node: ast.Expr, _place: Place, below: list[ast.AST]) -> None:
    below.append(node.value)


def _comparison(_found: Survey, node: ast.Compare, _place: Place, below: list[ast.AST]) -> None:
    below.append(node.left)
    if not (type(node.left) is ast.Name and node.left.id == "__name__" and _is_main(node.comparators)):
        below += node.comparators


def _is_main(compared: list[ast.expr]) -> bool:
    """Whether it is asked if the program is run as one, which hands the name of that module to nobody."""
    return len(compared) == 1 and type(compared[0]) is ast.Constant and compared[0].value == "__main__"


def _choice(_found: Survey, node: ast.If, _place: Place, below: list[ast.AST]) -> None:
    below.append(node.test)
    below += node.body
    below += node.orelse


def _items(_found: Survey, node: ast.Tuple | ast.List | ast.Set, _place: Place, below: list[ast.AST]) -> None:
    below += node.elts


def _entering(*names: str) -> Callable[[Survey, ast.AST, Place, list[ast.AST]], None]:
    """Goes on with these members of a node, each a node, a list of them or None."""

    def enter(_found: Survey, node: ast.AST, _place: Place, below: list[ast.AST]) -> None:
        for name in names:
            held = getattr(node, name)
            if type(held) is list:
                below += held
            elif held is not None:
                below.append(held)

    return enter


_KINDS: dict[type[ast.AST], tuple[Callable[..., None], str]] = {
    ast.Constant: (_constant, "value kind"),
    ast.Attribute: (_attribute, "value attr ctx"),
    ast.Call: (_call, "func args keywords"),
    ast.Assign: (_assign, "targets value type_comment"),
    ast.AnnAssign: (_annotated, "target annotation value simple"),
    ast.AugAssign: (_grown, "target op value"),
    ast.BinOp: (_operation, "left op right"),
    ast.For: (_loop, "target iter body orelse type_comment"),
    ast.With: (_with, "items body type_comment"),
    ast.Return: (_result, "value"),
    ast.Yield: (_result, "value"),
    ast.ExceptHandler: (_handler, "type name body"),
    ast.Import: (_import, "names"),
    ast.ImportFrom: (_import_from, "module names level"),
    ast.FunctionDef: (_function, "name args body decorator_list returns type_comment"),
    ast.Lambda: (_lambda, "args body"),
    ast.ClassDef: (_class, "name bases keywords body decorator_list"),
    ast.ListComp: (_comprehension, "elt generators"),
    ast.SetComp: (_comprehension, "elt generators"),
    ast.GeneratorExp: (_comprehension, "elt generators"),
    ast.DictComp: (_comprehension, "key value generators"),
    ast.Slice: (_slice, "lower upper step"),
    ast.Dict: (_mapping, "keys values"),
    ast.Expr: (_statement, "value"),
    ast.If: (_choice, "test body orelse"),
    ast.While: (_entering("test", "body", "orelse"), "test body orelse"),
    ast.Try: (_entering("body", "handlers", "orelse", "finalbody"), "body handlers orelse finalbody"),
    ast.Assert: (_entering("test", "msg"), "test msg"),
    ast.Raise: (_entering("exc", "cause"), "exc cause"),
    ast.IfExp: (_entering("test", "body", "orelse"), "test body orelse"),
    ast.BoolOp: (_entering("values"), "op values"),
    ast.UnaryOp: (_entering("operand"), "op operand"),
    ast.Compare: (_comparison, "left ops comparators"),
    ast.Subscript: (_subscript, "value slice ctx"),
    ast.Tuple: (_items, "elts ctx"),
    ast.List: (_items, "elts ctx"),
    ast.Set: (_items, "elts"),
    ast.Starred: (_entering("value"), "value ctx"),
    ast.JoinedStr: (_entering("values"), "values"),
    ast.FormattedValue: (_entering("value", "format_spec"), "value conversion format_spec"),
    ast.Pass: (_entering(), ""),
    ast.Break: (_entering(), ""),
    ast.Continue: (_entering(), ""),
}
"""The nodes that are entered, and the members that each of them has where this was written."""
_ENTERED = {kind: enter for kind, (enter, members) in _KINDS.items() if kind._fields == tuple(members.split())}
