"""Parsing of a document: an object, or strict JSON."""

from collections.abc import Mapping
from typing import Any

from qwed.model.json_value import has_lone_surrogates, has_more_values_than
from qwed.model.strict_json import StrictJsonError, parse_strict_json
from qwed.packs.result import UnreadableInputError
from qwed.packs.unwrap import unwrap
from qwed_ucp.document import CommerceDocument, DocumentError, DocumentKind
from qwed_ucp.envelope import read_envelope
from qwed_ucp.structure import StructureReader

LARGEST = 2_000_000
MOST_VALUES = 60_000
DEEPEST = 32


def members_of(value: Any, kind: DocumentKind) -> Mapping[str, Any]:
    """Return the members of the document; raise DocumentError for invalid JSON."""
    value = unwrap(value)
    if isinstance(value, str | bytes | bytearray):
        value = _parsed(value.encode("utf-8", "surrogatepass") if isinstance(value, str) else bytes(value), kind)
        if not isinstance(value, dict):
            raise DocumentError(f"the {kind} must be a JSON object")
    if not isinstance(value, dict):
        raise UnreadableInputError(
            f"the {kind} must be an object, or a text in JSON, with `currency`, `line_items` and `totals`"
        )
    _require_bounded(value, kind)
    return value


def _require_bounded(value: Any, kind: DocumentKind) -> None:
    """Reject Python objects that contain themselves or have non-string keys."""
    pending, seen = [(value, 1)], 0
    while pending:
        each, depth = pending.pop()
        seen += 1
        if seen > MOST_VALUES or depth > DEEPEST:
            raise UnreadableInputError(
                f"the {kind} has more than {MOST_VALUES} values, or is nested deeper than {DEEPEST}"
            )
        if isinstance(each, dict):
            if not all(isinstance(name, str) for name in each):
                raise UnreadableInputError(f"the {kind} has a member whose name is no text")
            pending += [(inner, depth + 1) for inner in each.values()]
        elif isinstance(each, list | tuple):
            pending += [(inner, depth + 1) for inner in each]


def _parsed(data: bytes, kind: DocumentKind) -> Any:
    if len(data) > LARGEST or has_more_values_than(data, MOST_VALUES):
        raise UnreadableInputError(f"the {kind} is larger than {LARGEST} bytes or {MOST_VALUES} values")
    try:
        value = parse_strict_json(data, f"the {kind}", exact=True)
    except StrictJsonError as error:
        raise DocumentError(str(error)) from None
    if b"\\u" in data and has_lone_surrogates(_texts(value)):
        raise DocumentError(f"the {kind} contains an unpaired surrogate")
    return value


def _texts(value: Any) -> Any:
    """Return the value with decimals as strings, as JSON can write it."""
    if isinstance(value, dict):
        return {name: _texts(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_texts(each) for each in value]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def read(members: Mapping[str, Any], kind: DocumentKind, *, strict: bool) -> CommerceDocument:
    """Parse the document, by the models of UCP if it has an envelope, else in its simple form."""
    shape = StructureReader(strict=strict)
    return read_envelope(members, kind, shape) if "ucp" in members else shape.read(members, kind)
