"""Child nodes of a syntax node, without context and operator nodes, which no rule needs and which are the majority."""

import ast
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from qwed.guards._python.library_rules import words
from qwed.guards._python.syntax import FIELDS, is_known

_IRRELEVANT_FIELDS = words("""
ctx op ops id attr level kind type_comment type_ignores conversion is_async simple
name module arg asname rest kwd_attrs
""")
"""Contexts, operators, texts and numbers."""
_LEAVES = words("Constant MatchSingleton Global Nonlocal")


def _members(kind: type[ast.AST]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that gets the members of a node that hold nodes."""
    fields = [name for name in kind._fields if name not in _IRRELEVANT_FIELDS]
    if not fields or kind.__name__ in _LEAVES:
        return lambda _node: ()
    return attrgetter(*fields) if len(fields) > 1 else lambda node: (getattr(node, fields[0]),)


MEMBERS = {kind: _members(kind) for kind in map(ast.__dict__.get, FIELDS) if kind is not None and is_known(kind)}
"""Functions that return the members of each kind of node that is understood: a node, a list or None each."""


def children_of(node: ast.AST) -> list[ast.AST]:
    """Return the child nodes; none if the kind of the node is not understood."""
    members = MEMBERS.get(type(node))
    children: list[ast.AST] = []
    for member in members(node) if members is not None else ():
        if type(member) is list:
            children += [child for child in member if child is not None]
        elif member is not None:
            children.append(member)
    return children


def descendants(node: ast.AST) -> list[ast.AST]:
    """Return the node and all nodes below it."""
    nodes = [node]
    for current in nodes:
        nodes += children_of(current)
    return nodes
