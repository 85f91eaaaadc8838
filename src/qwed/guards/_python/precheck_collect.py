"""Single pass over a syntax tree that collects the data of the pre-check; an unknown kind of node stops it.

Scopes are distinguished; the order of bindings and the values of names are not.
"""

import ast
from collections.abc import Callable

from qwed.guards._python.precheck_model import NeedsFullCheckError, PrecheckScope, Survey
from qwed.guards._python.syntax import is_known

OWN_NAMES = ("self", "cls")
_NAME, _LOAD = ast.Name, ast.Load
MAX_CHAIN = 6
"""Attributes of a name that are recorded as one use."""
MAX_DEPTH = 50
"""Levels of a tree; the full check follows names through a few more."""


def collect_survey(tree: ast.Module) -> Survey:
    """Return the survey of `tree`; raise NeedsFullCheckError if it contains more than a survey can represent."""
    survey = Survey([PrecheckScope("module", None, "", tree.body, 0)])
    try:
        for scope in survey.scopes:
            _collect_scope(survey, scope)
    except KeyError:
        # A kind of node that is not in the table.
        raise NeedsFullCheckError from None
    return survey


def _collect_scope(survey: Survey, scope: PrecheckScope) -> None:
    """Visit a scope level by level; inner scopes are left for later."""
    level, loaded, values = scope.level, scope.loaded, scope.values
    while level:
        scope.depth += 1
        if scope.depth > MAX_DEPTH:
            raise NeedsFullCheckError
        below: list[ast.AST] = []
        for node in level:
            kind = type(node)
            if kind is _NAME:
                (loaded if type(node.ctx) is _LOAD else values).add(node.id)  # type: ignore[attr-defined]  # a name
                survey.bare.add(node.id)  # type: ignore[attr-defined]  # a name
            else:
                _COLLECTORS[kind](survey, node, scope, below)
        level = below


def _constant(survey: Survey, node: ast.Constant, _scope: PrecheckScope, _below: list[ast.AST]) -> None:
    if type(node.value) is str and ("_" in node.value or "(" in node.value):
        survey.texts.append(node.value)


def _attribute(survey: Survey, node: ast.Attribute, _scope: PrecheckScope, below: list[ast.AST]) -> None:
    owner, name = node.value, node.attr
    if name[0] == "_":
        _private(survey, owner, name)
    survey.attributes.add(name)
    if type(node.ctx) is not _LOAD:
        survey.fields.add(name)
        survey.assigned_owners.add(_first_name(owner))
    _owner(survey, node, _scope, below)


def _first_name(node: ast.expr) -> str:
    while type(node) is ast.Attribute:
        node = node.value
    return node.id if type(node) is _NAME else ""


def _owner(survey: Survey, node: ast.Attribute, scope: PrecheckScope, below: list[ast.AST]) -> None:
    """Record `a.b.c` as what is used of the name `a`, or continue with the owner of the attribute."""
    attributes, owner = [node.attr], node.value
    while type(owner) is ast.Attribute and len(attributes) < MAX_CHAIN:
        attributes.append(owner.attr)
        owner = owner.value
    if type(owner) is not _NAME:
        below.append(node.value)
        return
    scope.loaded.add(owner.id)
    survey.uses.add((owner.id, ".".join(reversed(attributes))))
    for inner in attributes[1:]:
        _inner_attribute(survey, owner, inner, len(attributes))


def _inner_attribute(survey: Survey, owner: ast.Name, name: str, length: int) -> None:
    if name[0] == "_":
        _private(survey, owner if length == 2 else ast.Constant(None), name)
    survey.attributes.add(name)


def _private(survey: Survey, owner: ast.expr, name: str) -> None:
    """Check a private attribute: a dunder name is allowed, any other only on the object itself."""
    if name[:2] == "__" and name[-2:] == "__":
        if name == "__init__" and not _is_super(owner):
            raise NeedsFullCheckError
        return
    if type(owner) is not ast.Name or owner.id not in OWN_NAMES or name[:2] == "__":
        raise NeedsFullCheckError
    survey.own.add(owner.id)


def _is_super(node: ast.expr) -> bool:
    return type(node) is ast.Call and type(node.func) is ast.Name and node.func.id == "super"


def _call(survey: Survey, node: ast.Call, scope: PrecheckScope, below: list[ast.AST]) -> None:
    func = node.func
    survey.calls.append(node)
    if type(func) is ast.Name:
        scope.called.add(func.id)
        survey.bare.add(func.id)
    elif type(func) is ast.Attribute:
        survey.methods.add(func.attr)
        if func.attr[0] == "_":
            _private(survey, func.value, func.attr)
        _owner(survey, func, scope, below)
    else:
        below.append(func)
    below += node.args
    for word in node.keywords:
        if word.arg is not None:
            survey.words.add(word.arg)
        below.append(word.value)


def _assign(survey: Survey, node: ast.Assign, _scope: PrecheckScope, below: list[ast.AST]) -> None:
    value = node.value
    for target in node.targets:
        survey.bindings.append((target, value))
        below.append(target)
    below.append(value)


def _annotated(survey: Survey, node: ast.AnnAssign, scope: PrecheckScope, below: list[ast.AST]) -> None:
    survey.annotations.append((node.annotation, scope))
    below.append(node.target)
    if node.value is not None:
        survey.bindings.append((node.target, node.value))
        below.append(node.value)


def _augmented(survey: Survey, node: ast.AugAssign, _scope: PrecheckScope, below: list[ast.AST]) -> None:
    survey.bindings.append((node.target, node.value))
    below += (node.target, node.value)
    _operator(node.op)


def _operator(op: ast.operator) -> None:
    if type(op) is ast.BitXor:
        raise NeedsFullCheckError


def _operation(_survey: Survey, node: ast.BinOp, _scope: PrecheckScope, below: list[ast.AST]) -> None:
    if type(node.op) is ast.BitXor:
        raise NeedsFullCheckError
    below += (node.left, node.right)


def _loop(survey: Survey, node: ast.For, _scope: PrecheckScope, below: list[ast.AST]) -> None:
    survey.bindings.append((node.target, node.iter))
    below += (node.target, node.iter, *node.body, *node.orelse)


def _with(survey: Survey, node: ast.With, _scope: PrecheckScope, below: list[ast.AST]) -> None:
    for item in node.items:
        below.append(item.context_expr)
        if item.optional_vars is not None:
            survey.bindings.append((item.optional_vars, item.context_expr))
            below.append(item.optional_vars)
    below += node.body


def _result(survey: Survey, node: ast.Return | ast.Yield, scope: PrecheckScope, below: list[ast.AST]) -> None:
    if node.value is not None:
        survey.results.append((scope.label, node.value))
        below.append(node.value)


def _handler(_survey: Survey, node: ast.ExceptHandler, scope: PrecheckScope, below: list[ast.AST]) -> None:
    if node.name is not None:
        scope.values.add(node.name)
    if node.type is not None:
        below.append(node.type)
    below += node.body


def _import(survey: Survey, node: ast.Import, scope: PrecheckScope, _below: list[ast.AST]) -> None:
    _forbid_class(scope)
    for alias in node.names:
        survey.imports.append((alias.name, "", alias.asname or ""))
        scope.defined.add(alias.asname or alias.name.partition(".")[0])


def _forbid_class(scope: PrecheckScope) -> None:
    """Leave imports into a class to the full check: they are attributes of it."""
    if scope.kind == "class":
        raise NeedsFullCheckError


def _import_from(survey: Survey, node: ast.ImportFrom, scope: PrecheckScope, _below: list[ast.AST]) -> None:
    _forbid_class(scope)
    if node.level or node.module is None:
        raise NeedsFullCheckError
    for alias in node.names:
        bound = alias.asname or alias.name
        survey.imports.append((node.module, alias.name, bound))
        scope.defined.add(bound)


def _function(survey: Survey, node: ast.FunctionDef, scope: PrecheckScope, below: list[ast.AST]) -> None:
    scope.defined.add(node.name)
    below += node.decorator_list
    if node.returns is not None:
        survey.annotations.append((node.returns, scope))
    inner = PrecheckScope("function", scope, node.name, node.body, scope.depth)
    survey.scopes.append(inner)
    names = (node.name, scope.label) if scope.kind == "class" else (node.name,)
    _parameters(survey, node.args, names, inner, below)
    if scope.kind == "class":
        _own_object(survey, node, inner)


def _own_object(survey: Survey, node: ast.FunctionDef, inner: PrecheckScope) -> None:
    """Mark `self` as defined if only the object itself can be passed for it."""
    first = [*node.args.posonlyargs, *node.args.args]
    plain = len(first) > len(node.args.defaults) and first[0].annotation is None
    static = any(type(decorator) is ast.Name and decorator.id == "staticmethod" for decorator in node.decorator_list)
    if plain and not static and first[0].arg in OWN_NAMES:
        inner.values.discard(first[0].arg)
        survey.parameters -= 1
        inner.defined.add(first[0].arg)


def _parameters(
    survey: Survey, node: ast.arguments, names: tuple[str, ...], inner: PrecheckScope, below: list[ast.AST]
) -> None:
    survey.functions.append((names, node))
    parameters = [*node.posonlyargs, *node.args, *node.kwonlyargs]
    if node.vararg is not None:
        parameters.append(node.vararg)
    if node.kwarg is not None:
        parameters.append(node.kwarg)
    if parameters:
        survey.parameters += len(parameters)
        inner.values.update([parameter.arg for parameter in parameters])
        outer = inner.outer or inner
        survey.annotations += [
            (parameter.annotation, outer) for parameter in parameters if parameter.annotation is not None
        ]
    below += node.defaults
    below += [parameter for parameter in node.kw_defaults if parameter is not None]


def _lambda(survey: Survey, node: ast.Lambda, scope: PrecheckScope, below: list[ast.AST]) -> None:
    survey.loops += 1
    inner = PrecheckScope("function", scope, "", (node.body,), scope.depth)
    survey.scopes.append(inner)
    _parameters(survey, node.args, (), inner, below)


def _class(survey: Survey, node: ast.ClassDef, scope: PrecheckScope, below: list[ast.AST]) -> None:
    scope.defined.add(node.name)
    below += (*node.decorator_list, *node.bases, *(word.value for word in node.keywords))
    survey.scopes.append(PrecheckScope("class", scope, node.name, node.body, scope.depth))


def _comprehension(
    survey: Survey,
    node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
    scope: PrecheckScope,
    below: list[ast.AST],
) -> None:
    survey.loops += 1
    inside: list[ast.AST] = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    for index, generator in enumerate(node.generators):
        survey.bindings.append((generator.target, generator.iter))
        (inside if index else below).append(generator.iter)
        inside += (generator.target, *generator.ifs)
    survey.scopes.append(PrecheckScope("comprehension", scope, "", inside, scope.depth))


def _subscript(survey: Survey, node: ast.Subscript, _scope: PrecheckScope, below: list[ast.AST]) -> None:
    survey.subscripts.append(node)
    below += (node.value, node.slice)


def _slice(_survey: Survey, node: ast.Slice, _scope: PrecheckScope, below: list[ast.AST]) -> None:
    if node.step is not None:
        raise NeedsFullCheckError
    below += [bound for bound in (node.lower, node.upper) if bound is not None]


def _mapping(_survey: Survey, node: ast.Dict, _scope: PrecheckScope, below: list[ast.AST]) -> None:
    below += [key for key in node.keys if key is not None]
    below += node.values


def _statement(_survey: Survey, node: ast.Expr, _scope: PrecheckScope, below: list[ast.AST]) -> None:
    below.append(node.value)


def _comparison(_survey: Survey, node: ast.Compare, _scope: PrecheckScope, below: list[ast.AST]) -> None:
    below.append(node.left)
    if not (type(node.left) is ast.Name and node.left.id == "__name__" and _is_main(node.comparators)):
        below += node.comparators


def _is_main(compared: list[ast.expr]) -> bool:
    """Return True for `__name__ == "__main__"`, which does not pass the name of the module on."""
    return len(compared) == 1 and type(compared[0]) is ast.Constant and compared[0].value == "__main__"


def _choice(_survey: Survey, node: ast.If, _scope: PrecheckScope, below: list[ast.AST]) -> None:
    below.append(node.test)
    below += node.body
    below += node.orelse


def _items(_survey: Survey, node: ast.Tuple | ast.List | ast.Set, _scope: PrecheckScope, below: list[ast.AST]) -> None:
    below += node.elts


def _entering_members(*names: str) -> Callable[[Survey, ast.AST, PrecheckScope, list[ast.AST]], None]:
    """Return a collector that continues with these members of a node, each a node, a list or None."""

    def enter(_survey: Survey, node: ast.AST, _scope: PrecheckScope, below: list[ast.AST]) -> None:
        for name in names:
            member = getattr(node, name)
            if type(member) is list:
                below += member
            elif member is not None:
                below.append(member)

    return enter


_KINDS: dict[type[ast.AST], Callable[..., None]] = {
    ast.Constant: _constant,
    ast.Attribute: _attribute,
    ast.Call: _call,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.BinOp: _operation,
    ast.For: _loop,
    ast.With: _with,
    ast.Return: _result,
    ast.Yield: _result,
    ast.ExceptHandler: _handler,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.FunctionDef: _function,
    ast.Lambda: _lambda,
    ast.ClassDef: _class,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _comprehension,
    ast.Slice: _slice,
    ast.Dict: _mapping,
    ast.Expr: _statement,
    ast.If: _choice,
    ast.While: _entering_members("test", "body", "orelse"),
    ast.Try: _entering_members("body", "handlers", "orelse", "finalbody"),
    ast.Assert: _entering_members("test", "msg"),
    ast.Raise: _entering_members("exc", "cause"),
    ast.IfExp: _entering_members("test", "body", "orelse"),
    ast.BoolOp: _entering_members("values"),
    ast.UnaryOp: _entering_members("operand"),
    ast.Compare: _comparison,
    ast.Subscript: _subscript,
    ast.Tuple: _items,
    ast.List: _items,
    ast.Set: _items,
    ast.Starred: _entering_members("value"),
    ast.JoinedStr: _entering_members("values"),
    ast.FormattedValue: _entering_members("value", "format_spec"),
    ast.Pass: _entering_members(),
    ast.Break: _entering_members(),
    ast.Continue: _entering_members(),
}
"""Supported node kinds."""
_COLLECTORS = {kind: enter for kind, enter in _KINDS.items() if is_known(kind)}
