"""Conversion of a syntax tree to scopes and bindings."""

import ast
import copy
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from qwed.guards._python.ast_children import MEMBERS, children_of
from qwed.guards._python.library_rules import DANGEROUS_BUILTINS
from qwed.guards._python.scopes import Binding, Program, Scope, Signature, Visit
from qwed.guards._python.syntax import MAX_DEPTH, NestingError


def build_program(tree: ast.Module) -> Program:
    """Return the scopes and bindings of `tree`; raise NestingError if it has more than `MAX_DEPTH` levels."""
    program = Program()
    program.scopes.append(program.module)
    levels: list[Iterator[Visit]] = [iter([(tree, program.module)])]
    record = program.visits.append
    while levels:
        for visit in levels[-1]:
            record(visit)
            node, scope = visit
            if type(node) in _LEAVES:
                if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                    _bind_name(program, node, scope)
            elif children := _enter(program, node, scope):
                if len(levels) >= MAX_DEPTH:
                    raise NestingError(f"more than {MAX_DEPTH} nested levels")
                levels.append(iter(children))
                break
        else:
            levels.pop()
    _complete(program, tree)
    return program


def _complete(program: Program, tree: ast.Module) -> None:
    """Add what is known only when all nodes have been seen."""
    _bind_arguments(program)
    program.shadowed = _shadowed(program, tree)
    program.roots = {module.partition(".")[0] for module in program.modules}
    for scope in program.scopes:
        for name in program.global_names & scope.names.keys():
            program.shared.names.setdefault(name, []).extend(scope.names[name])
    program.scopes += [program.shared, program.results, program.fields, program.call_arguments]


def _enter(program: Program, node: ast.AST, scope: Scope) -> Sequence[Visit]:
    """Record the bindings of a node, and return its children."""
    kind = type(node)
    _BINDERS.get(kind, _bind_nothing)(program, node, scope)
    inner = _SCOPED.get(kind)
    if inner is not None:
        return list(inner(program, node, scope))
    members = MEMBERS.get(kind)
    if members is None:
        program.unknown.add(kind.__name__)
        return ()
    children: list[Visit] = []
    for member in members(node):
        if type(member) is list:
            for child in member:
                if child is not None:
                    children.append((child, scope))  # noqa: PERF401 - most lists are empty or short
        elif member is not None:
            children.append((member, scope))
    return children


def _shadowed(program: Program, tree: ast.Module) -> set[str]:
    bound: dict[str, int] = {}
    for statement in tree.body:
        for name in _definition_names(statement):
            if name in DANGEROUS_BUILTINS or name == "open":
                bound.setdefault(name, statement.lineno)
    for node in program.nodes(ast.Name) if bound else ():
        if isinstance(node.ctx, ast.Load) and node.lineno <= bound.get(node.id, 0):
            del bound[node.id]
    return set(bound)


def _definition_names(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.ImportFrom | ast.Import):
        return [alias.asname or alias.name for alias in statement.names]
    return []


def _bind(scope: Scope, name: str, binding: Binding | None = None) -> None:
    scope.names.setdefault(name, []).append(binding or Binding())


def _inner_scope(program: Program, kind: str, parent: Scope, label: str = "") -> Scope:
    scope = Scope(kind, parent, label)
    program.scopes.append(scope)
    return scope


def _function(
    program: Program, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, outer: Scope
) -> Iterator[Visit]:
    inner = _inner_scope(program, "function", outer, getattr(node, "name", ""))
    _bind_parameters(program, node.args, inner, outer, _register(program, node, inner, outer))
    yield node.args, outer
    if isinstance(node, ast.Lambda):
        yield node.body, inner
        return
    for decorator in node.decorator_list:
        yield decorator, outer
    if node.returns is not None:
        yield node.returns, outer
    for statement in node.body:
        yield statement, inner


class _CallName(NamedTuple):
    """Name by which a function is called, and the number of parameters before its arguments."""

    name: str
    skipped: int


def _register(
    program: Program, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, inner: Scope, outer: Scope
) -> list[_CallName]:
    """Register the function and return the names by which it is called."""
    parameters = tuple(name for name, _ in _parameters(node.args))
    if isinstance(node, ast.Lambda):
        # A lambda takes its arguments from the first parameter on, whatever name it is called by.
        names = [f"lambda {id(node)}", program.lambdas.get(id(node), "")]
        for name in filter(None, names):
            program.functions.setdefault(name, []).append(Signature(parameters, inner))
        return [_CallName(name, 0) for name in filter(None, names)]
    method = outer.kind == "class" and not any(
        isinstance(decorator, ast.Name) and decorator.id == "staticmethod" for decorator in node.decorator_list
    )
    program.functions.setdefault(node.name, []).append(Signature(parameters, inner))
    call_names = [_CallName(node.name, int(method))]
    if outer.kind == "class":
        program.methods.add(node.name)
        if node.name in ("__init__", "__new__", "__call__"):
            call_names.append(_CallName(outer.label, 1))
    return call_names


def _bind_parameters(
    program: Program, arguments: ast.arguments, inner: Scope, outer: Scope, call_names: list[_CallName]
) -> None:
    kinds = {
        parameter.arg: parameter.annotation
        for parameter in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    }
    program.call_names.update(name for name, _ in call_names)
    for index, (argument, default) in enumerate(_parameters(arguments)):
        keys = [key for name, skipped in call_names for key in (f"{name}:{index - skipped}", f"{name}={argument}")]
        _bind(inner, argument, Binding(kind=kinds.get(argument), scope=outer, call_arguments=tuple(keys)))
        if default is not None:
            _bind(inner, argument, Binding(value=default, scope=outer))
    for rest in (arguments.vararg, arguments.kwarg):
        if rest is not None:
            # A container of arguments, not one of them.
            _bind(inner, rest.arg)


def _note_call(program: Program, node: ast.AST, scope: Scope) -> None:
    assert isinstance(node, ast.Call)  # noqa: S101 - the table says so
    program.calls.append((node, scope))
    func = node.func
    if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.attr in _MUTATORS:
        program.mutated.add(func.value.id)


def _bind_arguments(program: Program) -> None:
    """Bind the arguments of each call to the name of the function, for all functions of the program of that name."""
    for node, scope in program.calls if program.call_names else ():
        func = node.func
        name = func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""
        name = f"lambda {id(func)}" if isinstance(func, ast.Lambda) else name
        if name not in program.call_names:
            continue
        for index, argument in enumerate(node.args):
            if not isinstance(argument, ast.Starred):
                _bind(program.call_arguments, f"{name}:{index}", Binding(value=argument, scope=scope))
        for word in node.keywords:
            _bind(program.call_arguments, f"{name}={word.arg}", Binding(value=word.value, scope=scope))


def _parameters(arguments: ast.arguments) -> Iterator[tuple[str, ast.expr | None]]:
    plain = [*arguments.posonlyargs, *arguments.args]
    missing = [None] * (len(plain) - len(arguments.defaults))
    for argument, default in zip(plain, [*missing, *arguments.defaults], strict=True):
        yield argument.arg, default
    for argument, keyword_default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield argument.arg, keyword_default
    for rest in (arguments.vararg, arguments.kwarg):
        if rest is not None:
            yield rest.arg, None


def _class(program: Program, node: ast.ClassDef, outer: Scope) -> Iterator[Visit]:
    inner = _inner_scope(program, "class", outer, node.name)
    program.classes.add(node.name)
    for outside in (*node.decorator_list, *node.bases, *node.keywords):
        yield outside, outer
    for statement in node.body:
        yield statement, inner


def _comprehension(
    program: Program, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, outer: Scope
) -> Iterator[Visit]:
    inner = _inner_scope(program, "comprehension", outer)
    program.comprehensions[id(node)] = inner
    for index, generator in enumerate(node.generators):
        scope = outer if index == 0 else inner
        _bind_loop(program, generator.target, generator.iter, inner, scope)
        yield generator.iter, scope
        for rest in (generator.target, *generator.ifs):
            yield rest, inner
    results = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
    for result in results:
        yield result, inner


def _bind_loop(program: Program, target: ast.expr, iterable: ast.expr, scope: Scope, outer: Scope) -> None:
    if isinstance(target, ast.Name):
        program.bound_targets.add(id(target))
        _bind(scope, target.id, Binding(iterates=iterable, scope=outer))


def _bind_import(program: Program, node: ast.AST, scope: Scope) -> None:
    assert isinstance(node, ast.Import)  # noqa: S101 - the table says so
    for alias in node.names:
        program.modules.add(alias.name)
        bound = alias.asname or alias.name.partition(".")[0]
        _bind(scope, bound, Binding(path=alias.name if alias.asname else bound))


def _bind_from(program: Program, node: ast.AST, scope: Scope) -> None:
    assert isinstance(node, ast.ImportFrom)  # noqa: S101 - the table says so
    module = "." * node.level + (node.module or "")
    program.modules.add(module)
    for alias in node.names:
        if alias.name == "*":
            program.star_imports.add(module)
        else:
            _bind(scope, alias.asname or alias.name, Binding(path=f"{module}.{alias.name}"))


def _bind_assign(program: Program, node: ast.AST, scope: Scope) -> None:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]  # type: ignore[attr-defined]  # Assign or AnnAssign
    value: ast.expr | None = node.value  # type: ignore[attr-defined]  # Assign or AnnAssign
    kind: ast.expr | None = getattr(node, "annotation", None)
    for target in targets:
        if kind is not None and value is None and isinstance(target, ast.Name):
            program.bound_targets.add(id(target))
            _bind_both(program, scope, target.id, Binding(kind=kind, scope=scope))
        for name, part in assignment_pairs(target, value):
            program.bound_targets.add(id(name))
            _bind_both(program, scope, name.id, Binding(value=part, scope=scope))
            if isinstance(part, ast.Lambda):
                program.lambdas[id(part)] = name.id
        if isinstance(target, ast.Attribute):
            _bind(program.fields, target.attr, Binding(value=value, kind=kind, scope=scope))


def _bind_both(program: Program, scope: Scope, name: str, binding: Binding) -> None:
    """Bind a name; in a class also as an attribute."""
    _bind(scope, name, binding)
    if scope.kind == "class":
        _bind(program.fields, name, binding)


def assignment_pairs(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[ast.Name, ast.expr]]:
    """Yield names and the expressions assigned to them, as far as they are visible: `a, b = x, y` too."""
    if value is None:
        return
    if isinstance(target, ast.Name):
        yield target, value
    elif isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
        starred = any(isinstance(item, ast.Starred) for item in target.elts + value.elts)
        for one, other in zip(target.elts, value.elts, strict=False) if not starred else ():
            if isinstance(one, ast.Name):
                yield one, other


def _bind_walrus(program: Program, node: ast.AST, scope: Scope) -> None:
    assert isinstance(node, ast.NamedExpr)  # noqa: S101 - the table says so
    home = scope
    while home.kind == "comprehension" and home.parent is not None:
        home = home.parent
    program.bound_targets.add(id(node.target))
    _bind(home, node.target.id, Binding(value=node.value, scope=scope))


def _bind_for(program: Program, node: ast.AST, scope: Scope) -> None:
    assert isinstance(node, ast.For | ast.AsyncFor)  # noqa: S101 - the table says so
    _bind_loop(program, node.target, node.iter, scope, scope)
    loop = node if isinstance(node, ast.For) else None
    for statement in loop.body if loop is not None else ():
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            program.bound_targets.add(id(statement.target))
            _bind(scope, statement.target.id, Binding(augments=statement, loop=loop, scope=scope))


def _bind_growth(program: Program, node: ast.AST, scope: Scope) -> None:
    assert isinstance(node, ast.AugAssign)  # noqa: S101 - the table says so
    if isinstance(node.target, ast.Name) and id(node.target) not in program.bound_targets:
        program.bound_targets.add(id(node.target))
        _bind(scope, node.target.id, Binding(augments=node, scope=scope))
    elif isinstance(node.target, ast.Attribute):
        _bind(program.fields, node.target.attr, Binding(value=node.value, scope=scope))


def _bind_with(program: Program, node: ast.AST, scope: Scope) -> None:
    assert isinstance(node, ast.With | ast.AsyncWith)  # noqa: S101 - the table says so
    for item in node.items:
        if isinstance(item.optional_vars, ast.Name):
            program.bound_targets.add(id(item.optional_vars))
            _bind(scope, item.optional_vars.id, Binding(value=item.context_expr, scope=scope))


def _bind_result(program: Program, node: ast.AST, scope: Scope) -> None:
    value = node.value if isinstance(node, ast.Return | ast.Yield) else None
    if value is not None and scope.label:
        _bind(program.results, scope.label, Binding(value=value, scope=scope))


def _note_item(program: Program, node: ast.AST, _scope: Scope) -> None:
    assert isinstance(node, ast.Subscript)  # noqa: S101 - the table says so
    if isinstance(node.value, ast.Name) and not isinstance(node.ctx, ast.Load):
        program.mutated.add(node.value.id)


def _note_deletion(program: Program, node: ast.AST, _scope: Scope) -> None:
    assert isinstance(node, ast.Delete)  # noqa: S101 - the table says so
    program.deleted.update(target.id for target in node.targets if isinstance(target, ast.Name))


def _bind_nothing(_program: Program, _node: ast.AST, _scope: Scope) -> None:
    """Leave a node without bindings."""


def _bind_name(program: Program, node: ast.Name, scope: Scope) -> None:
    if id(node) not in program.bound_targets:
        _bind(scope, node.id)


def _match(_program: Program, node: ast.Match, scope: Scope) -> Iterator[Visit]:
    """Bind the names of `case A(b=c)` to the attributes that the pattern looks up."""
    # A copy, because the subject itself is also a value.
    subject = copy.copy(node.subject)
    attributes: list[Visit] = []
    pending: list[tuple[ast.pattern, ast.expr]] = [(case.pattern, subject) for case in node.cases]
    while pending:
        pattern, value = pending.pop()
        if isinstance(pattern, ast.MatchAs):
            if pattern.name is not None:
                _bind(scope, pattern.name, Binding(value=value, scope=scope))
            pending += [(pattern.pattern, value)] if pattern.pattern is not None else []
        elif isinstance(pattern, ast.MatchOr):
            pending += [(choice, value) for choice in pattern.patterns]
        elif isinstance(pattern, ast.MatchClass):
            for name, inner in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
                attribute = ast.copy_location(ast.Attribute(value=value, attr=name, ctx=ast.Load()), pattern)
                attributes.append((attribute, scope))
                pending.append((inner, attribute))
    # The inner attributes first, because each is checked with those that it begins with.
    yield from reversed(attributes)
    yield from ((child, scope) for child in children_of(node))


def _bind_named(_program: Program, node: ast.AST, scope: Scope) -> None:
    name = getattr(node, "name", None) or getattr(node, "rest", None)
    if isinstance(name, str):
        _bind(scope, name)


def _bind_global(program: Program, node: ast.AST, _scope: Scope) -> None:
    assert isinstance(node, ast.Global | ast.Nonlocal)  # noqa: S101 - the table says so
    program.global_names.update(node.names)


_SCOPED: dict[type[ast.AST], Callable[..., Iterator[Visit]]] = {
    **dict.fromkeys((ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda), _function),
    ast.ClassDef: _class,
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp), _comprehension),
    ast.Match: _match,
}
"""Nodes whose parts are evaluated in different scopes, or that have further parts."""
_MUTATORS = frozenset({"append", "extend", "insert", "update", "add", "setdefault", "appendleft", "reverse", "sort"})
_BINDERS: dict[type[ast.AST], Callable[[Program, ast.AST, Scope], None]] = {
    ast.Import: _bind_import,
    ast.ImportFrom: _bind_from,
    ast.Assign: _bind_assign,
    ast.AnnAssign: _bind_assign,
    ast.NamedExpr: _bind_walrus,
    ast.For: _bind_for,
    ast.AsyncFor: _bind_for,
    ast.AugAssign: _bind_growth,
    ast.With: _bind_with,
    ast.AsyncWith: _bind_with,
    ast.Return: _bind_result,
    ast.Yield: _bind_result,
    ast.Call: _note_call,
    ast.Subscript: _note_item,
    ast.Delete: _note_deletion,
    ast.Global: _bind_global,
    ast.Nonlocal: _bind_global,
    **dict.fromkeys(
        (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar),
        _bind_named,
    ),
    ast.MatchMapping: _bind_named,
}
_LEAVES = {ast.Name, ast.Constant} & MEMBERS.keys()
"""The most frequent kinds, which have no children."""
