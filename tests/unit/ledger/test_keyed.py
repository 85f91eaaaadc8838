"""The HMAC of the vault is everybody's HMAC."""

import hmac

import pytest

from qwed.ledger.keyed import Keyed, mac


@pytest.mark.parametrize("length", [0, 1, 31, 32, 63, 64, 65, 200])
def test_a_key_of_any_length_gives_what_the_standard_library_gives(length: int) -> None:
    key = bytes(range(length))
    keyed = Keyed(key)
    for message in (b"", b"one", b"x" * 55, b"x" * 64, b"y" * 5000):
        told = hmac.digest(key, message, "sha256")
        assert (mac(key, message), keyed.digest(message), keyed.digest(message)) == (told, told, told)
