"""Parser of a message as a JSON object: keyed by element names, `@Ccy` or `Ccy` next to the amount."""

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from itertools import islice
from typing import Any

from qwed.model.decimals import format_decimal
from qwed.packs.result import UnreadableInputError, abbreviate
from qwed.packs.value_parsing import number_of
from qwed_finance._iso.node import Element
from qwed_finance._iso.schema import AnyType, ComplexType, MessageDefinition, SchemaType, ValueWithAttributes, type_of
from qwed_finance._iso.xml_reader import LOCATIONS, MAX_DEPTH, MAX_ELEMENTS, MessageTooLargeError

_NUMBER = ("#text", "value", "Value", "$", "$value", "_", "_text", "text", "Amt", "amount")
_TEXT = frozenset((*_NUMBER, "ActiveCurrencyAndAmount", "ActiveOrHistoricCurrencyAndAmount"))
"""Keys for the number of an amount in common XML-to-JSON mappings."""
_CURRENCY = ("@Ccy", "Ccy", "_Ccy", "-Ccy", "$Ccy", "ccy", "currency", "Currency")
_SAMPLE_ITEMS = 12
"""Number of list items that are read to identify the version."""
_SAMPLE_ELEMENTS = 5_000
"""Number of elements that are read to identify the version."""
_LOCATIONS = frozenset(f"@xsi:{name}" for name in LOCATIONS)
_AMOUNT_FORMAT = 'write it as in `{"@Ccy": "EUR", "#text": "12.00"}`'


def namespace_of(content: Mapping[Any, Any]) -> str | None:
    """Return the namespace that the object declares, or None."""
    inner = content.get("Document", content)
    namespace = inner.get("@xmlns") if isinstance(inner, Mapping) else None
    return namespace if isinstance(namespace, str) else None


def parse_json_message(content: Mapping[Any, Any], message: MessageDefinition, sample: bool = False) -> Element:
    """Return the tree of the object as this message; with `sample`, only enough to identify the version."""
    return _JsonReader(sample).document(_unwrap_document(content, message), message)


def _unwrap_document(content: Mapping[Any, Any], message: MessageDefinition) -> Mapping[Any, Any]:
    """Return the content of `Document`, if present, keyed by the root element."""
    inner = content.get("Document", content) if len(content) == 1 else content
    if not isinstance(inner, Mapping):
        raise UnreadableInputError(f"`Document` must be an object that holds `{message.root}`")
    members = {name: value for name, value in inner.items() if not _is_namespace_key(name)}
    kind = type_of(message.kind)
    bare = isinstance(kind, ComplexType) and any(name in kind.parts for name in members if isinstance(name, str))
    return {message.root: members} if bare else members


def _is_namespace_key(name: Any) -> bool:
    return isinstance(name, str) and (name.startswith("@xmlns") or name in _LOCATIONS)


class _JsonReader:
    def __init__(self, sample: bool) -> None:
        self._sample = sample
        self._elements = 0

    def document(self, roots: Mapping[Any, Any], message: MessageDefinition) -> Element:
        top = Element("Document")
        for name, value in islice(roots.items(), _SAMPLE_ITEMS) if self._sample else roots.items():
            self._add(top, name, value, type_of(message.kind) if name == message.root else None, 1)
        return top

    def _add(self, parent: Element, name: Any, value: Any, kind: SchemaType | None, depth: int) -> None:
        if not isinstance(name, str):
            raise UnreadableInputError("the names of a message must be texts")
        if depth > MAX_DEPTH:
            raise UnreadableInputError(f"the message is nested more than {MAX_DEPTH} levels deep")
        items = value if isinstance(value, list | tuple) else (value,)
        for item in items[:_SAMPLE_ITEMS] if self._sample else items:
            if self._sample and self._elements > _SAMPLE_ELEMENTS:
                return
            self._elements += 1
            if self._elements > MAX_ELEMENTS:
                raise MessageTooLargeError(
                    f"a message of more than {MAX_ELEMENTS:,} elements is not accepted, send it in parts"
                )
            node = Element(name[:100], parent)
            parent.children.append(node)
            self._fill(node, item, kind, depth)

    def _fill(self, node: Element, value: Any, kind: SchemaType | None, depth: int) -> None:
        if isinstance(kind, AnyType):
            return
        if isinstance(kind, ValueWithAttributes):
            _fill_amount(node, value)
        elif isinstance(value, Mapping):
            self._members(node, value, kind, depth)
        elif isinstance(value, list | tuple):
            raise UnreadableInputError(f"`{node.name}` is a list in a list, write one list")
        else:
            node.text = _to_text(node.name, value)

    def _members(self, node: Element, value: Mapping[Any, Any], kind: SchemaType | None, depth: int) -> None:
        parts = kind.parts if isinstance(kind, ComplexType) else {}
        # JSON objects are unordered: members are processed in schema order.
        items = islice(value.items(), _SAMPLE_ELEMENTS) if self._sample else value.items()
        ordered = sorted(items, key=lambda item: parts[item[0]].place if _has_part(item[0], parts) else 10**6)
        for name, member in ordered:
            if name == "#text" and not parts:
                node.text = _to_text(node.name, member)
            elif isinstance(name, str) and name.startswith("@"):
                node.set_attribute(name[1:100], _to_text(name, member))
            else:
                member_type = type_of(parts[name].kind) if _has_part(name, parts) else None
                self._add(node, name, member, member_type, depth + 1)


def _has_part(name: Any, parts: Mapping[str, Any]) -> bool:
    return isinstance(name, str) and name in parts


def _fill_amount(node: Element, value: Any) -> None:
    """Set the number and the currency of an amount from any of the usual keys."""
    if not isinstance(value, Mapping):
        node.text = _to_text(node.name, value)
        return
    for name, member in value.items():
        if name in _CURRENCY and "Ccy" not in node.attributes:
            node.set_attribute("Ccy", _to_text("Ccy", member))
        elif name in _TEXT and not node.text:
            node.text = _to_text(node.name, member)
        else:
            raise UnreadableInputError(
                f"`{abbreviate(name)}` in the amount `{node.name}` is ambiguous, {_AMOUNT_FORMAT}"
            )


def _to_text(name: str, value: Any) -> str:
    """Convert a value to its XML text."""
    if isinstance(value, str):
        return str(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, int | float | Decimal):
        return format_decimal(number_of(name[:40], value))
    raise UnreadableInputError(f"`{name[:40]}` must be a text, a number, an object or a list")
