"""Private keys of wallets in one word, each proven by its checksum."""

import hashlib

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def _values_of(alphabet: str) -> dict[str, int]:
    return {letter: value for value, letter in enumerate(alphabet)}


_BITCOIN = _values_of("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz")
_RIPPLE = _values_of("rpshnaf39wBUDNEGHJKLM4PQRST7VWXYZ2bcdeCg65jkm8oFqi1tuvAxyz")
_BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_CHECKSUM = 4
_BECH32_CHECKSUM = 6
_BECH32_GENERATORS = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_BECH32_CONSTANTS = (1, 0x2BC830A3)
"""What the remainder is in bech32 and in bech32m."""
_STELLAR_SEED = 18 << 3
_CRC16 = 0x1021


def is_wallet_key(text: str) -> bool:
    """Return True if the text is a private key with the checksum of its encoding."""
    if text.startswith(("nsec1", "ed25519")):
        return _is_bech32(text)
    if text.startswith("sEd"):
        return _is_base58_check(text, _RIPPLE)
    return is_base58_check(text) or _is_stellar_seed(text)


def is_base58_check(text: str) -> bool:
    """Return True if the text is base58 with a valid checksum, as the keys of most wallets are."""
    return _is_base58_check(text, _BITCOIN)


def decode_base58(text: str, values: dict[str, int] = _BITCOIN) -> bytes:
    """Decode base58; return b"" if a character is not of its alphabet."""
    number = 0
    for letter in text:
        if letter not in values:
            return b""
        number = 58 * number + values[letter]
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


def _is_base58_check(text: str, values: dict[str, int]) -> bool:
    raw = decode_base58(text, values)
    payload, checksum = raw[:-_CHECKSUM], raw[-_CHECKSUM:]
    return bool(payload) and hashlib.sha256(hashlib.sha256(payload).digest()).digest()[:_CHECKSUM] == checksum


def is_key_pair(text: str) -> bool:
    """Return True for base58 of an Ed25519 key with its own public key after it; a signature is as long."""
    raw = decode_base58(text)
    return len(raw) == 64 and Ed25519PrivateKey.from_private_bytes(raw[:32]).public_key().public_bytes_raw() == raw[32:]


def _is_bech32(text: str) -> bool:
    prefix, _separator, data = text.rpartition("1")
    if len(data) <= _BECH32_CHECKSUM or not all(letter in _BECH32 for letter in data):
        return False
    expanded = [*(ord(letter) >> 5 for letter in prefix), 0, *(ord(letter) & 31 for letter in prefix)]
    return _bech32_remainder([*expanded, *map(_BECH32.index, data)]) in _BECH32_CONSTANTS


def _bech32_remainder(values: list[int]) -> int:
    remainder = 1
    for value in values:
        top = remainder >> 25
        remainder = (remainder & 0x1FFFFFF) << 5 ^ value
        for bit, generator in enumerate(_BECH32_GENERATORS):
            remainder ^= generator * (top >> bit & 1)
    return remainder


def _is_stellar_seed(text: str) -> bool:
    """Return True for base32 of a version byte, 32 bytes and a CRC-16 of them."""
    if len(text) != 56 or not all(letter in _BASE32 for letter in text):
        return False
    number = 0
    for letter in text:
        number = number << 5 | _BASE32.index(letter)
    raw = number.to_bytes(35, "big")
    return raw[0] == _STELLAR_SEED and _crc16(raw[:-2]) == int.from_bytes(raw[-2:], "little")


def _crc16(data: bytes) -> int:
    remainder = 0
    for byte in data:
        remainder ^= byte << 8
        for _bit in range(8):
            remainder = (remainder << 1 ^ (_CRC16 if remainder & 0x8000 else 0)) & 0xFFFF
    return remainder
