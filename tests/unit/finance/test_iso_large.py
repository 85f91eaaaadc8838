"""Large messages that must be processed in linear time."""

from typing import Any

import pytest

from qwed.packs.result import CheckStatus
from qwed_finance import ISOGuard

OPEN = '<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pacs.008.001.08">'
BLANKS = " <!---->" * 200_000


def self_containing_object() -> Any:
    """Return a Python object that contains itself, which JSON cannot express."""
    root: dict[str, Any] = {}
    root |= {"FIToFICstmrCdtTrf": [root, root], "a": root, "b": [root] * 9}
    return root


LARGE = {
    "comments and blanks": (f"{OPEN}{BLANKS}</Document>", CheckStatus.FAILED),
    "comments and blanks behind an element": (f"{OPEN}<FIToFICstmrCdtTrf/>{BLANKS}</Document>", CheckStatus.FAILED),
    "attributes in JSON": ({"FIToFICstmrCdtTrf": {f"@a{at}": "1" for at in range(60_000)}}, CheckStatus.FAILED),
    "members in JSON": ({"FIToFICstmrCdtTrf": {f"a{at}": "1" for at in range(60_000)}}, CheckStatus.FAILED),
    "an object within itself": (self_containing_object(), CheckStatus.UNVERIFIABLE),
}


@pytest.mark.parametrize("name", LARGE)
def test_a_large_message_is_answered(name: str) -> None:
    message, standing = LARGE[name]
    assert ISOGuard().verify_payment_message(message).status is standing


def test_a_comment_between_blanks_is_no_value() -> None:
    value = ISOGuard().verify_payment_message(f"{OPEN}<FIToFICstmrCdtTrf> <!-- a --> b</FIToFICstmrCdtTrf></Document>")
    assert value.status is CheckStatus.FAILED
    assert "comment within the value" in value.message
    between = ISOGuard().verify_payment_message(f"{OPEN}<FIToFICstmrCdtTrf><GrpHdr/> b</FIToFICstmrCdtTrf></Document>")
    assert "text between the elements" in between.message
