"""Child nodes of a syntax node, without context and operator nodes, which no rule needs and which are the majority."""

import ast

from qwed.guards._python.scopes import Scope, Visit
from qwed.guards._python.syntax import FIELDS

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


def _relevant_fields(name: str) -> tuple[str, ...]:
    return () if name == "Constant" else tuple(field for field in FIELDS[name] if field not in _IRRELEVANT_FIELDS)


RELEVANT_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {getattr(ast, name): _relevant_fields(name) for name in FIELDS}


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
