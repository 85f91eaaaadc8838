"""Child nodes of a syntax node, without context and operator nodes, which no rule needs and which are the majority."""

import ast

from qwed.guards._python.scopes import Scope, Visit

_IRRELEVANT_FIELDS = frozenset(
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


def _relevant_fields(kind: type[ast.AST]) -> tuple[str, ...]:
    return () if kind is ast.Constant else tuple(name for name in kind._fields if name not in _IRRELEVANT_FIELDS)


RELEVANT_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {
    kind: _relevant_fields(kind) for kind in vars(ast).values() if isinstance(kind, type) and issubclass(kind, ast.AST)
}


def child_visits(node: ast.AST, scope: Scope) -> list[Visit]:
    """Return the child nodes, all in the scope of the node."""
    visits: list[Visit] = []
    for name in RELEVANT_FIELDS[type(node)]:
        value = getattr(node, name, None)
        if type(value) is list:
            visits += [(child, scope) for child in value if isinstance(child, ast.AST)]
        elif isinstance(value, ast.AST):
            visits.append((value, scope))
    return visits
