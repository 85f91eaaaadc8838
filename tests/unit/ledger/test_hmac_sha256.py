"""The HMAC implementation gives the same results as the standard library."""

import hmac

import pytest

from qwed.ledger.hmac_sha256 import Hmac, mac


@pytest.mark.parametrize("length", [0, 1, 31, 32, 63, 64, 65, 200])
def test_a_key_of_any_length_gives_what_the_standard_library_gives(length: int) -> None:
    key = bytes(range(length))
    keyed = Hmac(key)
    for message in (b"", b"one", b"x" * 55, b"x" * 64, b"y" * 5000):
        expected = hmac.digest(key, message, "sha256")
        assert (mac(key, message), keyed.digest(message), keyed.digest(message)) == (expected, expected, expected)
