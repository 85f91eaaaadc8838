"""Documents with a `ucp` envelope: validated by the models of ucp-sdk, amounts in minor units."""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from qwed.packs.result import UnreadableInputError
from qwed_ucp.document import (
    MOST_ENTRIES,
    MOST_LINES,
    CommerceDocument,
    DocumentError,
    DocumentKind,
    LineItem,
    TotalsRow,
)
from qwed_ucp.structure import OF_A_DOCUMENT, StructureReader, require_distinct

_SHOWN_ERRORS = 3


def read_envelope(members: Mapping[str, Any], kind: DocumentKind, shape: StructureReader) -> CommerceDocument:
    """Parse the document; raise DocumentError with what its model does not allow."""
    for name, most in (("line_items", MOST_LINES), ("totals", MOST_ENTRIES)):
        if isinstance(members.get(name), list) and len(members[name]) > most:
            raise UnreadableInputError(f"`{name}` has more than {most} rows, split the document")
    _validate(members, kind)
    # An extension prefixes its members with its domain.
    shape.known(
        {name: None for name in members if "." not in str(name)}, OF_A_DOCUMENT | {"ap2", "loyalty"}, "the document"
    )
    lines = tuple(_line(each, f"line_items[{at}]") for at, each in enumerate(members["line_items"]))
    require_distinct(lines)
    return CommerceDocument(
        kind=kind,
        currency=members["currency"],
        status=members.get("status"),
        lines=lines,
        entries=_entries(members["totals"], "totals"),
        members=members,
        minor=True,
        strict=shape.strict,
        warnings=tuple(shape.warnings),
    )


def _validate(members: Mapping[str, Any], kind: DocumentKind) -> None:
    models = _models(kind)
    from pydantic import ValidationError

    try:
        text = json.dumps(members, allow_nan=False, default=_plain)
    except (TypeError, ValueError, RecursionError):
        raise DocumentError("the document holds what JSON cannot") from None
    for model in models:
        try:
            # Strict JSON validation: in minor units 12.0 and "12" are not amounts.
            model.model_validate_json(text, strict=True)
        except ValidationError as wrong:
            told = "; ".join(
                f"`{_path(each['loc'])}`: {_lowered(each['msg'])}" for each in wrong.errors()[:_SHOWN_ERRORS]
            )
            raise DocumentError(f"the {kind} is no {kind} of UCP: {told}") from None


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError


def _models(kind: DocumentKind) -> tuple[Any, ...]:
    try:
        from ucp_sdk.models.schemas.shopping import discount, fulfillment, order
    except ImportError:
        raise ImportError("documents with a `ucp` envelope need ucp-sdk: install `qwed[ucp]`") from None
    if kind is DocumentKind.ORDER:
        return (order.Order,)
    return (discount.Cart,) if kind is DocumentKind.CART else (discount.Checkout, fulfillment.Checkout)


def _path(loc: tuple[int | str, ...]) -> str:
    return ".".join(str(each) for each in loc if not str(each).endswith("Schema"))[:120]


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


def _entries(rows: list[Any], at: str) -> tuple[TotalsRow, ...]:
    return tuple(
        TotalsRow(each["type"], Decimal(each["amount"]), f"{at}[{row}]", each) for row, each in enumerate(rows)
    )


def _line(members: Mapping[str, Any], at: str) -> LineItem:
    item, many = members["item"], members["quantity"]
    of_order = isinstance(many, dict)
    original = many.get("original") if of_order else None
    unit = item.get("quantity_unit") or {}
    return LineItem(
        members["id"],
        Decimal(many["total"] if of_order else many),
        Decimal(item["price"]),
        _entries(members["totals"], f"{at}.totals"),
        at,
        members,
        original=None if original is None else Decimal(original),
        scale=unit.get("scale") or 0,
        measured=item.get("unit_price") is not None,
    )
