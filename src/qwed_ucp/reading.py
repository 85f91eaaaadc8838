"""A document as it is handed in: an object, or JSON that can be read in one way only."""

from collections.abc import Mapping
from typing import Any

from qwed.packs.own import own
from qwed.packs.result import Unreadable
from qwed.words.json_value import has_half_surrogates, holds_more
from qwed.words.strict import NotStrict, read_json
from qwed_ucp.document import Defect, Document, Kind
from qwed_ucp.envelope import read_envelope
from qwed_ucp.structure import Shape

LARGEST = 2_000_000
MOST_VALUES = 60_000
DEEPEST = 32


def members_of(value: Any, kind: Kind) -> Mapping[str, Any]:
    """The members of the document; a Defect where JSON is not what it should be."""
    value = own(value)
    if isinstance(value, str | bytes | bytearray):
        value = _parsed(value.encode("utf-8", "surrogatepass") if isinstance(value, str) else bytes(value), kind)
        if not isinstance(value, dict):
            raise Defect(f"the {kind} must be a JSON object")
    if not isinstance(value, dict):
        raise Unreadable(f"the {kind} must be an object, or a text in JSON, with `currency`, `line_items` and `totals`")
    _require_bounded(value, kind)
    return value


def _require_bounded(value: Any, kind: Kind) -> None:
    """An object of Python may hold itself, or names that are no texts."""
    pending, seen = [(value, 1)], 0
    while pending:
        each, depth = pending.pop()
        seen += 1
        if seen > MOST_VALUES or depth > DEEPEST:
            raise Unreadable(f"the {kind} has more than {MOST_VALUES} values, or is nested deeper than {DEEPEST}")
        if isinstance(each, dict):
            if not all(isinstance(name, str) for name in each):
                raise Unreadable(f"the {kind} has a member whose name is no text")
            pending += [(inner, depth + 1) for inner in each.values()]
        elif isinstance(each, list | tuple):
            pending += [(inner, depth + 1) for inner in each]


def _parsed(data: bytes, kind: Kind) -> Any:
    if len(data) > LARGEST or holds_more(data, MOST_VALUES):
        raise Unreadable(f"the {kind} is larger than {LARGEST} bytes or {MOST_VALUES} values")
    try:
        value = read_json(data, f"the {kind}", exact=True)
    except NotStrict as wrong:
        raise Defect(str(wrong)) from None
    if b"\\u" in data and has_half_surrogates(_texts(value)):
        raise Defect(f"the {kind} holds half of a surrogate pair")
    return value


def _texts(value: Any) -> Any:
    """The value with its decimals as texts, as JSON can write it."""
    if isinstance(value, dict):
        return {name: _texts(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_texts(each) for each in value]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def read(members: Mapping[str, Any], kind: Kind, *, strict: bool) -> Document:
    """The document, by the models of UCP where it has an envelope, else in its simple form."""
    shape = Shape(strict=strict)
    return read_envelope(members, kind, shape) if "ucp" in members else shape.read(members, kind)
