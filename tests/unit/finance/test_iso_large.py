"""Messages that are large in one way only: each is read once through, where looking again would take minutes."""

from typing import Any

import pytest

from qwed.packs.result import Standing
from qwed_finance import ISOGuard

OPEN = '<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pacs.008.001.08">'
BLANKS = " <!---->" * 200_000


def within_itself() -> Any:
    """An object of Python that is its own members, which no JSON can be."""
    root: dict[str, Any] = {}
    root |= {"FIToFICstmrCdtTrf": [root, root], "a": root, "b": [root] * 9}
    return root


LARGE = {
    "comments and blanks": (f"{OPEN}{BLANKS}</Document>", Standing.FAILED),
    "comments and blanks behind an element": (f"{OPEN}<FIToFICstmrCdtTrf/>{BLANKS}</Document>", Standing.FAILED),
    "attributes in JSON": ({"FIToFICstmrCdtTrf": {f"@a{at}": "1" for at in range(60_000)}}, Standing.FAILED),
    "members in JSON": ({"FIToFICstmrCdtTrf": {f"a{at}": "1" for at in range(60_000)}}, Standing.FAILED),
    "an object within itself": (within_itself(), Standing.UNVERIFIABLE),
}


@pytest.mark.parametrize("name", LARGE)
def test_a_large_message_is_answered(name: str) -> None:
    message, standing = LARGE[name]
    assert ISOGuard().verify_payment_message(message).status is standing


def test_a_comment_between_blanks_is_no_value() -> None:
    value = ISOGuard().verify_payment_message(f"{OPEN}<FIToFICstmrCdtTrf> <!-- a --> b</FIToFICstmrCdtTrf></Document>")
    assert value.status is Standing.FAILED
    assert "comment within the value" in value.message
    beside = ISOGuard().verify_payment_message(f"{OPEN}<FIToFICstmrCdtTrf><GrpHdr/> b</FIToFICstmrCdtTrf></Document>")
    assert "text beside the elements" in beside.message
