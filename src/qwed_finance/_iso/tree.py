"""A message as a JSON object: keyed by the names of the elements, `@Ccy` or `Ccy` beside the amount."""

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from itertools import islice
from typing import Any

from qwed.packs.reading import number_of
from qwed.packs.result import Unreadable, briefly
from qwed.words.exact import shown
from qwed_finance._iso.node import Node
from qwed_finance._iso.schema import Anything, Complex, Message, Type, Valued, type_of
from qwed_finance._iso.xml import DEEPEST, LOCATIONS, MOST_ELEMENTS, TooLarge

_NUMBER = ("#text", "value", "Value", "$", "$value", "_", "_text", "text", "Amt", "amount")
_TEXT = frozenset((*_NUMBER, "ActiveCurrencyAndAmount", "ActiveOrHistoricCurrencyAndAmount"))
"""What the number of an amount is called by those who turn XML into JSON."""
_CURRENCY = ("@Ccy", "Ccy", "_Ccy", "-Ccy", "$Ccy", "ccy", "currency", "Currency")
_SAMPLED = 12
"""Of a list, to tell versions apart."""
_ENOUGH = 5_000
"""Elements, for the same."""
_LOCATIONS = frozenset(f"@xsi:{name}" for name in LOCATIONS)
_CALLED = 'write it as in `{"@Ccy": "EUR", "#text": "12.00"}`'


def namespace_of(given: Mapping[Any, Any]) -> str | None:
    """The namespace that the object names for itself."""
    inner = given.get("Document", given)
    found = inner.get("@xmlns") if isinstance(inner, Mapping) else None
    return found if isinstance(found, str) else None


def read_tree(given: Mapping[Any, Any], message: Message, sample: bool = False) -> Node:
    """The tree that an object stands for, as this message; of a sample only what tells versions apart."""
    return _Reader(sample).document(_unwrapped(given, message), message)


def _unwrapped(given: Mapping[Any, Any], message: Message) -> Mapping[Any, Any]:
    """What is within `Document`, if that is there: the root by its name."""
    inner = given.get("Document", given) if len(given) == 1 else given
    if not isinstance(inner, Mapping):
        raise Unreadable(f"`Document` must be an object that holds `{message.root}`")
    named = {name: value for name, value in inner.items() if not _about_namespaces(name)}
    kind = type_of(message.kind)
    bare = isinstance(kind, Complex) and any(name in kind.parts for name in named if isinstance(name, str))
    return {message.root: named} if bare else named


def _about_namespaces(name: Any) -> bool:
    return isinstance(name, str) and (name.startswith("@xmlns") or name in _LOCATIONS)


class _Reader:
    def __init__(self, sample: bool) -> None:
        self._sample = sample
        self._elements = 0

    def document(self, roots: Mapping[Any, Any], message: Message) -> Node:
        top = Node("Document")
        for name, value in islice(roots.items(), _SAMPLED) if self._sample else roots.items():
            self._add(top, name, value, type_of(message.kind) if name == message.root else None, 1)
        return top

    def _add(self, parent: Node, name: Any, value: Any, kind: Type | None, depth: int) -> None:
        if not isinstance(name, str):
            raise Unreadable("the names of a message must be texts")
        if depth > DEEPEST:
            raise Unreadable(f"the message has objects more than {DEEPEST} deep in one another")
        several = value if isinstance(value, list | tuple) else (value,)
        for each in several[:_SAMPLED] if self._sample else several:
            if self._sample and self._elements > _ENOUGH:
                return
            self._elements += 1
            if self._elements > MOST_ELEMENTS:
                raise TooLarge(f"a message of more than {MOST_ELEMENTS:,} elements is not looked at, send it in parts")
            node = Node(name[:100], parent)
            parent.children.append(node)
            self._fill(node, each, kind, depth)

    def _fill(self, node: Node, value: Any, kind: Type | None, depth: int) -> None:
        if isinstance(kind, Anything):
            return
        if isinstance(kind, Valued):
            _valued(node, value)
        elif isinstance(value, Mapping):
            self._members(node, value, kind, depth)
        elif isinstance(value, list | tuple):
            raise Unreadable(f"`{node.name}` is a list in a list, write one list")
        else:
            node.text = _text(node.name, value)

    def _members(self, node: Node, value: Mapping[Any, Any], kind: Type | None, depth: int) -> None:
        parts = kind.parts if isinstance(kind, Complex) else {}
        # An object has no order of its own: its members are taken in the order of the standard.
        items = islice(value.items(), _ENOUGH) if self._sample else value.items()
        ordered = sorted(items, key=lambda item: parts[item[0]].place if _among(item[0], parts) else 10**6)
        for name, each in ordered:
            if name == "#text" and not parts:
                node.text = _text(node.name, each)
            elif isinstance(name, str) and name.startswith("@"):
                node.mark(name[1:100], _text(name, each))
            else:
                of = type_of(parts[name].kind) if _among(name, parts) else None
                self._add(node, name, each, of, depth + 1)


def _among(name: Any, parts: Mapping[str, Any]) -> bool:
    return isinstance(name, str) and name in parts


def _valued(node: Node, value: Any) -> None:
    """An amount: the number and its currency, under one of the names that are usual."""
    if not isinstance(value, Mapping):
        node.text = _text(node.name, value)
        return
    for name, each in value.items():
        if name in _CURRENCY and "Ccy" not in node.attributes:
            node.mark("Ccy", _text("Ccy", each))
        elif name in _TEXT and not node.text:
            node.text = _text(node.name, each)
        else:
            raise Unreadable(f"`{briefly(name)}` in the amount `{node.name}` reads in more than one way, {_CALLED}")


def _text(name: str, value: Any) -> str:
    """A value as it would stand in XML."""
    if isinstance(value, str):
        return str(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, int | float | Decimal):
        return shown(number_of(name[:40], value))
    raise Unreadable(f"`{name[:40]}` must be a text, a number, an object or a list")
