"""Which name is bound to what, scope by scope, without regard to order: every binding of a name counts."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(eq=False, slots=True)
class Scope:
    """A module, class, function or comprehension and the names it binds."""

    kind: str
    parent: "Scope | None" = None
    names: dict[str, list["Binding"]] = field(default_factory=dict)


class Binding(NamedTuple):
    """One way a name gets its value; all empty means we cannot say."""

    path: str = ""
    """A dotted name, from an import."""
    value: ast.expr | None = None
    each: ast.expr | None = None
    """The name runs over the elements of this."""
    scope: Scope | None = None
    """Where `value` or `each` is evaluated."""


class Visit(NamedTuple):
    """A node and the scope it is evaluated in."""

    node: ast.AST
    scope: Scope


@dataclass(slots=True)
class Program:
    """The nodes in order, parents first, and every binding."""

    module: Scope = field(default_factory=lambda: Scope("module"))
    scopes: list[Scope] = field(default_factory=list)
    visits: list[Visit] = field(default_factory=list)
    loose: set[str] = field(default_factory=set)
    """Names declared global or nonlocal somewhere: their bindings in all scopes are taken together."""
    stars: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)
    """Every module the program imports."""
    roots: set[str] = field(default_factory=set)
    """The first word of each."""
    shared: Scope = field(default_factory=lambda: Scope("module"))
    """Holds every binding of the loose names."""
    settled: set[int] = field(default_factory=set)
    """Names that an assignment has bound already, by id."""

    def lookup(self, name: str, scope: Scope) -> tuple[list[Scope], bool]:
        """The scopes that may hold `name`, and whether it may also be a builtin."""
        if name in self.loose:
            return [self.shared] if name in self.shared.names else [], True
        found: list[Scope] = []
        here: Scope | None = scope
        while here is not None:
            if name in here.names and (here is scope or here.kind != "class"):
                found.append(here)
                if here.kind in ("function", "comprehension"):
                    return found, False
            here = here.parent
        return found, True


def read(tree: ast.Module) -> Program:
    """The scopes and bindings of `tree`."""
    program = Program()
    program.scopes.append(program.module)
    pending = [Visit(tree, program.module)]
    while pending:
        visit = pending.pop()
        program.visits.append(visit)
        binder = _BINDERS.get(type(visit.node))
        if binder is not None:
            binder(program, visit.node, visit.scope)
        pending.extend(reversed(list(_children(program, visit))))
    program.roots = {module.partition(".")[0] for module in program.modules}
    for scope in program.scopes:
        for name in program.loose & scope.names.keys():
            program.shared.names.setdefault(name, []).extend(scope.names[name])
    program.scopes.append(program.shared)
    return program


def _bind(scope: Scope, name: str, binding: Binding | None = None) -> None:
    scope.names.setdefault(name, []).append(binding or Binding())


def _inner(program: Program, kind: str, parent: Scope) -> Scope:
    scope = Scope(kind, parent)
    program.scopes.append(scope)
    return scope


def _children(program: Program, visit: Visit) -> Iterator[Visit]:
    node, scope = visit
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return _function(program, node, scope)
    if isinstance(node, ast.ClassDef):
        return _class(program, node, scope)
    if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
        return _comprehension(program, node, scope)
    return (Visit(child, scope) for child in ast.iter_child_nodes(node))


def _function(
    program: Program, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, outer: Scope
) -> Iterator[Visit]:
    inner = _inner(program, "function", outer)
    for argument, default in _parameters(node.args):
        _bind(inner, argument)
        if default is not None:
            _bind(inner, argument, Binding(value=default, scope=outer))
    yield Visit(node.args, outer)
    if isinstance(node, ast.Lambda):
        yield Visit(node.body, inner)
        return
    for decorator in node.decorator_list:
        yield Visit(decorator, outer)
    if node.returns is not None:
        yield Visit(node.returns, outer)
    for statement in node.body:
        yield Visit(statement, inner)


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
    inner = _inner(program, "class", outer)
    for outside in (*node.decorator_list, *node.bases, *node.keywords):
        yield Visit(outside, outer)
    for statement in node.body:
        yield Visit(statement, inner)


def _comprehension(
    program: Program, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, outer: Scope
) -> Iterator[Visit]:
    inner = _inner(program, "comprehension", outer)
    for index, generator in enumerate(node.generators):
        scope = outer if index == 0 else inner
        _bind_loop(program, generator.target, generator.iter, inner, scope)
        yield Visit(generator.iter, scope)
        for rest in (generator.target, *generator.ifs):
            yield Visit(rest, inner)
    results = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
    for result in results:
        yield Visit(result, inner)


def _bind_loop(program: Program, target: ast.expr, iterable: ast.expr, scope: Scope, outer: Scope) -> None:
    if isinstance(target, ast.Name):
        program.settled.add(id(target))
        _bind(scope, target.id, Binding(each=iterable, scope=outer))


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
            program.stars.add(module)
        else:
            _bind(scope, alias.asname or alias.name, Binding(path=f"{module}.{alias.name}"))


def _bind_assign(program: Program, node: ast.AST, scope: Scope) -> None:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]  # type: ignore[attr-defined]  # Assign or AnnAssign
    value: ast.expr | None = node.value  # type: ignore[attr-defined]  # Assign or AnnAssign
    for target in targets:
        for name, part in pairs(target, value):
            program.settled.add(id(name))
            _bind(scope, name.id, Binding(value=part, scope=scope))


def pairs(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[ast.Name, ast.expr]]:
    """Names and the expressions they are set to, where that can be read off: `a, b = x, y` too."""
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
    program.settled.add(id(node.target))
    _bind(home, node.target.id, Binding(value=node.value, scope=scope))


def _bind_for(program: Program, node: ast.AST, scope: Scope) -> None:
    assert isinstance(node, ast.For | ast.AsyncFor)  # noqa: S101 - the table says so
    _bind_loop(program, node.target, node.iter, scope, scope)


def _bind_name(program: Program, node: ast.AST, scope: Scope) -> None:
    assert isinstance(node, ast.Name)  # noqa: S101 - the table says so
    if not isinstance(node.ctx, ast.Load) and id(node) not in program.settled:
        _bind(scope, node.id)


def _bind_named(_program: Program, node: ast.AST, scope: Scope) -> None:
    name = getattr(node, "name", None) or getattr(node, "rest", None)
    if isinstance(name, str):
        _bind(scope, name)


def _bind_loose(program: Program, node: ast.AST, _scope: Scope) -> None:
    assert isinstance(node, ast.Global | ast.Nonlocal)  # noqa: S101 - the table says so
    program.loose.update(node.names)


_BINDERS: dict[type[ast.AST], Callable[[Program, ast.AST, Scope], None]] = {
    ast.Import: _bind_import,
    ast.ImportFrom: _bind_from,
    ast.Assign: _bind_assign,
    ast.AnnAssign: _bind_assign,
    ast.NamedExpr: _bind_walrus,
    ast.For: _bind_for,
    ast.AsyncFor: _bind_for,
    ast.Name: _bind_name,
    ast.Global: _bind_loose,
    ast.Nonlocal: _bind_loose,
    **dict.fromkeys(
        (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar),
        _bind_named,
    ),
    ast.MatchMapping: _bind_named,
}
