"""Ruling 4.27: the recipients of a message are its destination, and no personal data in its content."""

import pytest

from tests.spec.conftest import Keyholders
from tests.spec.requests import Json, said
from tests.spec.sections import spec
from tests.support.case_tables import rows

HONEST = rows("recipients.jsonl")


@spec("5.2")
@pytest.mark.parametrize("row", HONEST, ids=lambda row: row["name"])
def test_the_address_of_a_recipient_is_no_leak(keyholders: Keyholders, row: Json) -> None:
    answer = keyholders.create_agent(**row["agent"])(row["action"], 1)
    assert said(answer) == ("APPROVED", None), answer["error"]
    assert answer["verification"]["checks_failed"] == []
