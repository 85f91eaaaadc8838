"""Check that no `||` hides an absent value: both sides must need the same facts and arguments.

CEL answers `true || error` with true. So a rule whose left side holds would match although its right side reads an
argument that the call does not have, and `!(false && error)` would match too. Such conditions are refused.
"""

from collections.abc import Callable

from qwed.policy.cel_ast import Node
from qwed.policy.facts_schema import GROUPS, MESSAGES, PREFIX, TIME_FUNCTIONS

_LABELS = "agent.labels"
_FAILS = "an operation that can fail"
_NUMERIC = ("_+_", "_-_", "_*_", "_/_", "_%_", "-_")
_COMPARISONS = ("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in")
_TEXT_FUNCTIONS = ("size", "startsWith", "endsWith", "contains")
_CONTEXT_FUNCTIONS = ("risk_at_least", "usage.count", "usage.sum", "usage.org.count", "usage.org.sum")
_SAFE = frozenset({*_COMPARISONS, *_TEXT_FUNCTIONS, *_CONTEXT_FUNCTIONS})
_SAFE_WITH_LITERAL = frozenset({"matches", "duration", "timestamp", *TIME_FUNCTIONS})
"""Functions whose text argument is tried when the policy is loaded, so that they cannot fail later."""
_OPTIONAL = {
    f"{PREFIX}{message}.{field.name}" for message, fields in MESSAGES.items() for field in fields if field.optional
}
Needs = frozenset[str]
_NOTHING: Needs = frozenset()
Report = Callable[[Node, str], None]
_AND, _OR, _BOTH = 1, -1, 0
"""Which operator hides nothing where an expression stands: `&&`, under a negation `||`, or neither."""


def check_presence(root: Node, report: Report) -> None:
    """Report every place where one side of an operator hides that the other side fails."""
    _Presence(report).needs(root, _NOTHING, _AND)


class _Presence:
    def __init__(self, report: Report) -> None:
        self._report = report

    def needs(self, node: Node, guards: Needs, place: int) -> Needs:
        """Return what must be present for the expression to have a value."""
        if node.name in ("_&&_", "_||_"):
            return self._logical(node, guards, place)
        if node.name == "!_" and node.kind == "call":
            return self.needs(node.children[0], guards, -place)
        if node.name == "_?_:_":
            return self._choice(node, guards, place)
        if node.kind in ("exists", "all", "exists_one", "filter", "map_list"):
            return self._loop(node, guards, place)
        return self._plain(node, guards)

    def _logical(self, node: Node, guards: Needs, place: int) -> Needs:
        left, right = node.children
        is_and = node.name == "_&&_"
        first = self.needs(left, guards, place)
        second = self.needs(right, guards | (_facts_if(left, is_and)), place)
        if place != (_AND if is_and else _OR):
            self._check_balance(node, first, second)
        return first | second

    def _check_balance(self, node: Node, first: Needs, second: Needs) -> None:
        either = (first | second) if _FAILS in first | second else first ^ second
        if either:
            operator = node.name.strip("_")
            self._report(
                node,
                f"`{operator}` would hide that {_listed(either)} on one side: {_advice(either)}write two rules",
            )

    def _choice(self, node: Node, guards: Needs, place: int) -> Needs:
        condition, yes, no = node.children
        asked = self.needs(condition, guards, _BOTH)
        first = self.needs(yes, guards | _facts_if(condition, True), place)
        second = self.needs(no, guards | _facts_if(condition, False), place)
        if unequal := {need for need in first ^ second if need in GROUPS}:
            self._report(node, f"`? :` would hide that {_listed(frozenset(unequal))} on one side: write two rules")
        return asked | first | second

    def _loop(self, node: Node, guards: Needs, place: int) -> Needs:
        needs = self.needs(node.children[0], guards, _BOTH)
        inner = {"exists": place, "all": place}.get(node.kind, _BOTH)
        for body in node.children[1:]:
            wanted = self.needs(body, guards, inner)
            own = {need for need in wanted if need.startswith(f"{node.name}.") or need == _FAILS}
            if own and place != (_AND if node.kind == "all" else _OR):
                self._report(
                    node, f"`{node.kind}` would hide that {_listed(frozenset(own))} for one element: ask `has(...)`"
                )
            # An empty list needs nothing of the body.
            needs |= {need if need in GROUPS else f"{need} in a loop" for need in wanted - own}
        return needs

    def _plain(self, node: Node, guards: Needs) -> Needs:
        needs = frozenset().union(*(self.needs(part, guards, _BOTH) for part in node.children))
        if node.kind == "ident":
            return needs | ({node.name} if node.name in GROUPS else _NOTHING)
        if node.kind == "select" and _is_optional(node) and node.path not in guards:
            return needs | {node.path or _FAILS}
        if node.kind == "call" and _can_fail(node):
            return needs | {_FAILS}
        return needs


def _is_optional(node: Node) -> bool:
    owner = node.children[0].type
    if owner.startswith("map("):
        return node.children[0].path != _LABELS
    return owner.startswith(f"{PREFIX}Args") or f"{owner}.{node.name}" in _OPTIONAL


def _can_fail(node: Node) -> bool:
    if node.name in _NUMERIC:
        return node.type != "double" or node.name == "_%_"
    if node.name == "_[_]":
        return node.children[0].path != _LABELS
    if node.name in _SAFE_WITH_LITERAL:
        return any(part.type == "string" and part.kind != "const" for part in node.children[-1:])
    return node.name not in _SAFE


def _facts_if(node: Node, value: bool) -> Needs:
    """Return the paths that are present if the expression has this value."""
    if node.kind == "has":
        return frozenset({str(node.path)}) if value else _NOTHING
    if node.name == "!_":
        return _facts_if(node.children[0], not value)
    if node.name in ("_&&_", "_||_"):
        left, right = (_facts_if(part, value) for part in node.children)
        return left | right if (node.name == "_&&_") == value else left & right
    return _NOTHING


def _listed(needs: Needs) -> str:
    if _FAILS in needs:
        return "an operation fails"
    return " and ".join(f"`{need.removesuffix(' in a loop')}` can be absent" for need in sorted(needs))


def _advice(needs: Needs) -> str:
    named = sorted(need for need in needs if "." in need and " " not in need and _FAILS not in needs)
    return f"ask `has({named[0]})` first, or " if named else ""
