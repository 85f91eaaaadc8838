"""The nodes inside a node, without those that only say how it is used: no rule asks for them, and they are the most."""

import ast

from qwed.guards._python.scopes import Scope, Visit

_DULL = frozenset(
    (
        "ctx",
        "op",
        "ops",
        "id",
        "attr",
        "level",
        "kind",
        "type_comment",
        "type_ignores",
        "conversion",
        "is_async",
        "simple",
    )
)


def _telling(kind: type[ast.AST]) -> tuple[str, ...]:
    return () if kind is ast.Constant else tuple(name for name in kind._fields if name not in _DULL)


TELLING: dict[type[ast.AST], tuple[str, ...]] = {
    kind: _telling(kind) for kind in vars(ast).values() if isinstance(kind, type) and issubclass(kind, ast.AST)
}


def below(node: ast.AST, scope: Scope) -> list[Visit]:
    """The nodes inside one, all in its scope."""
    found: list[Visit] = []
    for name in TELLING[type(node)]:
        value = getattr(node, name, None)
        if type(value) is list:
            found += [(each, scope) for each in value if isinstance(each, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append((value, scope))
    return found
