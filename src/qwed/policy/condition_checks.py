"""Checks of a condition that its types alone do not make: names, literals, labels, risk and usage."""

import re
from collections.abc import Callable
from typing import Any

from qwed.model.suggestions import did_you_mean
from qwed.policy.argument_types import MAX_DIGITS
from qwed.policy.cel_ast import Node
from qwed.policy.document import UsageKey
from qwed.policy.example_reader import MAX_USAGE_SECONDS
from qwed.policy.facts_schema import AGENT_VARIABLES, MESSAGES, PREFIX, RISKS, VARIABLES
from qwed.policy.problem import shown

Report = Callable[[Node, str], None]
Evaluate = Callable[[str], str | None]
"""Evaluates a constant expression; returns the error, or None."""
_NUMBER = re.compile(r"[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_COMPARISONS = ("_==_", "_!=_")
_LABELS = "agent.labels"
_TIME_ZONE = "time zone"
_LITERALS = {"matches": "regular expression", "duration": "duration", "timestamp": "time"}
_LARGEST_DOUBLE_INT = 2**53


class ConditionChecks:
    """Walks a checked expression once and notes what it reads."""

    def __init__(self, text: str, evaluate: Evaluate, report: Report, *, agent: bool = False) -> None:
        self._text = text
        self._evaluate = evaluate
        self._report = report
        self._variables = AGENT_VARIABLES if agent else VARIABLES
        self.labels: set[str] = set()
        self.usage: set[UsageKey] = set()
        self.arguments: set[str] = set()
        self.variables: set[str] = set()

    def check(self, root: Node) -> None:
        """Check every expression below the root."""
        if root.type != "bool":
            kind = root.type.removeprefix(PREFIX)
            self._report(root, f"the condition must be true or false, not a value of type {shown(kind)}")
        self._visit(root, None, ())

    def _visit(self, node: Node, parent: Node | None, bound: tuple[str, ...]) -> None:
        if "dyn" in node.type or node.type in ("null", "any"):
            self._report(
                node, "the type of this value is not known: state it in `args`, and do not mix types in a list"
            )
        check = _CHECKS.get(node.kind)
        if check is not None:
            check(self, node, parent, bound)
        inside = (*bound, node.name) if node.kind in _LOOPS else bound
        for number, child in enumerate(node.children):
            self._visit(child, node, inside if number else bound)

    def _check_ident(self, node: Node, parent: Node | None, bound: tuple[str, ...]) -> None:
        if node.name in bound:
            return
        self.variables.add(node.name)
        if node.name == "risk" and not _is_risk_use(node, parent):
            self._report(node, 'compare `risk` with `==` or `in`, or ask `risk_at_least("high")`')
        if node.name == "args" and (parent is None or parent.kind not in ("select", "has")):
            self._report(node, "read one argument, such as `args.amount`")
        self._check_labels(node, parent)

    def _check_select(self, node: Node, parent: Node | None, _bound: tuple[str, ...]) -> None:
        owner = node.children[0].path
        if owner == "args":
            self.arguments.add(node.name)
        if owner == _LABELS:
            self._note_label(node, node.name)
        self._check_labels(node, parent)

    def _check_labels(self, node: Node, parent: Node | None) -> None:
        if node.path != _LABELS or node.kind == "has":
            return
        if parent is not None and parent.kind in ("select", "has") and parent.children[0] is node:
            return
        if parent is not None and parent.name == "_[_]" and parent.children[0] is node:
            name = parent.children[1].value
            if isinstance(name, str):
                self._note_label(parent, name)
                return
        self._report(node, "name the label in the condition, such as `agent.labels.team`")

    def _note_label(self, node: Node, name: str) -> None:
        if node.kind == "has":
            self._report(node, f'a missing label reads as "": compare `{node.path}` with ""')
        self.labels.add(name)

    def _check_call(self, node: Node, _parent: Node | None, _bound: tuple[str, ...]) -> None:
        if node.name in (*_COMPARISONS, "@in"):
            self._check_closed_set(node)
        elif node.name.startswith("usage."):
            self._check_usage(node)
        elif node.name == "risk_at_least":
            if node.children[0].value not in RISKS:
                self._report(node, f"`risk_at_least` takes one of {_listed(RISKS)} in quotes")
        elif node.name in _LITERALS or node.name.startswith("get"):
            self._try_literal(node)

    def _check_closed_set(self, node: Node) -> None:
        left, right = node.children
        for side, other in ((left, right), (right, left)):
            known = _closed_set(side)
            for part in other.walk() if known else ():
                if part.kind == "const" and isinstance(part.value, str) and part.value not in known:
                    advice = did_you_mean(part.value, known) or _case_advice(part.value, known)
                    self._report(part, f"{shown(part.value)} never occurs here: {advice}use one of {_listed(known)}")

    def _check_usage(self, node: Node) -> None:
        *names, span = node.children
        if any(name.kind != "const" for name in names) or span.name != "duration" or span.children[0].kind != "const":
            self._report(node, f'the arguments of `{node.name}` must be literals, such as "refund" and duration("24h")')
            return
        seconds = _seconds(str(span.children[0].value))
        if seconds is None or not 1 <= seconds <= MAX_USAGE_SECONDS:
            self._report(span, "the window of `usage` must be whole seconds, from 1 second to 31 days (`744h`)")
            return
        scope = "organisation" if node.name.startswith("usage.org") else "agent"
        argument = str(names[1].value) if len(names) > 1 else ""
        self.usage.add(UsageKey(scope, node.name.rsplit(".", 1)[1], str(names[0].value), argument, seconds))

    def _try_literal(self, node: Node) -> None:
        last = node.children[-1]
        if last.kind != "const" or not isinstance(last.value, str):
            return
        literal = _quote(last.value)
        if node.name == "matches":
            error = self._evaluate(f'"".matches({literal})')
        elif node.name in _LITERALS:
            error = self._evaluate(f"{node.name}({literal}) == {node.name}({literal})")
        else:
            error = self._evaluate(f'timestamp("2026-01-01T00:00:00Z").{node.name}({literal}) >= 0')
        if error:
            what = _LITERALS.get(node.name, _TIME_ZONE)
            self._report(last, f"{shown(last.value)} is not a valid {what}")

    def _check_const(self, node: Node, parent: Node | None, _bound: tuple[str, ...]) -> None:
        if isinstance(node.value, bytes):
            self._report(node, "bytes are not used by any fact: write text")
        if isinstance(node.value, float) or (isinstance(node.value, int) and abs(node.value) > _LARGEST_DOUBLE_INT):
            match = _NUMBER.search(self._text, node.position)
            digits = len(match[0].split("e")[0].split("E")[0].replace(".", "").strip("0")) if match else 0
            if digits > MAX_DIGITS and parent is not None and any(part.type == "double" for part in parent.children):
                self._report(node, f"a number that is compared with a `number` may have at most {MAX_DIGITS} digits")

    def _check_struct(self, node: Node, _parent: Node | None, _bound: tuple[str, ...]) -> None:
        self._report(node, f"a condition creates no messages: {shown(node.name)}")

    def _check_loop(self, node: Node, _parent: Node | None, bound: tuple[str, ...]) -> None:
        if node.name in self._variables or node.name in ("args", "usage") or node.name in bound:
            self._report(node, f"the loop variable `{node.name}` hides the fact of this name: rename it")


_LOOPS = ("exists", "all", "exists_one", "filter", "map_list")
_CHECKS: dict[str, Callable[[ConditionChecks, Node, Node | None, tuple[str, ...]], None]] = {
    "ident": ConditionChecks._check_ident,
    "select": ConditionChecks._check_select,
    "has": ConditionChecks._check_select,
    "call": ConditionChecks._check_call,
    "const": ConditionChecks._check_const,
    "struct": ConditionChecks._check_struct,
    **dict.fromkeys(_LOOPS, ConditionChecks._check_loop),
}


def _is_risk_use(node: Node, parent: Node | None) -> bool:
    if parent is None:
        return False
    if parent.name in _COMPARISONS:
        other = next((part for part in parent.children if part is not node), None)
        return other is not None and other.kind == "const"
    return parent.name == "@in" and parent.children[0] is node and parent.children[1].kind == "list"


def _closed_set(node: Node) -> tuple[str, ...]:
    if node.path == "risk":
        return RISKS
    owner, name = ("", node.name)
    if node.kind == "select":
        owner = node.children[0].type.removeprefix(PREFIX)
    elif node.path == "agent.type":
        owner, name = "Agent", "type"
    return next((field.values for field in MESSAGES.get(owner, ()) if field.name == name), ())


def _case_advice(text: str, known: tuple[str, ...]) -> str:
    return next((f"did you mean `{name}`? " for name in known if name.casefold() == text.casefold()), "")


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


_UNITS = {"h": 3600, "m": 60, "s": 1}
_SPAN = re.compile(r"(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,9})s)?\Z")


def _seconds(text: str) -> int | None:
    """Return the seconds of a duration such as `1h30m`, or None if it is not whole."""
    match = _SPAN.match(text)
    if match is None or not text:
        return None
    return sum(int(part or 0) * unit for part, unit in zip(match.groups(), _UNITS.values(), strict=True))


def _quote(text: str) -> str:
    """Return the text as a literal of the expression language."""
    parts: list[Any] = [char if char.isalnum() and char.isascii() else f"\\U{ord(char):08x}" for char in text]
    return f'"{"".join(parts)}"'
