"""DESIGN 7: what is personal, sealed under a key of its subject. Whoever destroys the key has erased all of it.

A leaf says of its content only an HMAC under a salt that is derived from the same key: while the key lives anybody who
is given salt and content can check it, and afterwards nobody can so much as guess what it was.
"""

import os
from base64 import b64decode
from binascii import b2a_base64
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from qwed.ledger.files import read_private, write_private
from qwed.ledger.keyed import Keyed, mac
from qwed.words.chance import some_bytes

MASTER_FILE = "vault.key"
_KEY_BYTES = 32
_NONCE_BYTES = 12


class VaultError(Exception):
    """What is sealed cannot be opened: it was changed, or belongs elsewhere."""


class SubjectKey:
    """Seals and opens what belongs to one subject."""

    __slots__ = ("_aead", "_salts", "subject_id")

    def __init__(self, subject_id: str, key: bytes) -> None:
        self.subject_id = subject_id
        self._aead = AESGCM(mac(key, b"seal"))
        self._salts = Keyed(mac(key, b"commit"))

    def seal(self, place: str, text: str) -> str:
        """The text as only this key opens it, and only at its place."""
        return self._sealed(place.encode(), text.encode())

    def open(self, place: str, sealed: str) -> str:
        """What was sealed; VaultError if it is not what was sealed here."""
        try:
            data = b64decode(sealed, validate=True)
            return self._aead.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], place.encode()).decode()
        except (InvalidTag, ValueError) as error:
            raise VaultError(f"the content at {place} was changed") from error

    def salt(self, place: str) -> bytes:
        """What the commitment at a place is made with."""
        return self._salts.digest(place.encode())

    def commitment(self, place: str, text: str) -> str:
        """What a leaf says about its content."""
        return mac(self.salt(place), text.encode()).hex()

    def keep(self, place: str, text: str) -> tuple[str, str]:
        """What a leaf says about its content, and the content sealed."""
        at, content = place.encode(), text.encode()
        return mac(self._salts.digest(at), content).hex(), self._sealed(at, content)

    def _sealed(self, place: bytes, content: bytes) -> str:
        nonce = some_bytes()[:_NONCE_BYTES]
        return b2a_base64(nonce + self._aead.encrypt(nonce, content, place), newline=False).decode()


class Master:
    """The node's own key, under which the keys of the subjects are kept: the database alone opens nothing."""

    def __init__(self, key: bytes) -> None:
        self._aead = AESGCM(mac(key, b"wrap"))
        self._names = Keyed(mac(key, b"name"))
        self._fingerprints = Keyed(mac(key, b"fingerprint"))

    def name(self, organisation_id: str, subject: str) -> str:
        """What a subject is filed under: the same every time, and telling nothing of who it is."""
        return self._names.digest(f"{organisation_id}\x00{subject}".encode("utf-8", "surrogatepass")).hex()

    def fingerprint(self, text: str) -> str:
        """A hash to compare with later ones, which nobody without this key can guess the text from."""
        return self._fingerprints.digest(text.encode("utf-8", "surrogatepass")).hex()

    def make(self, subject_id: str) -> tuple[SubjectKey, bytes]:
        """A new key, and the form it is kept in."""
        key, nonce = os.urandom(_KEY_BYTES), os.urandom(_NONCE_BYTES)
        return SubjectKey(subject_id, key), nonce + self._aead.encrypt(nonce, key, subject_id.encode())

    def unwrap(self, subject_id: str, kept: bytes) -> SubjectKey:
        """The key in its kept form; VaultError if it is not one of ours."""
        try:
            return SubjectKey(
                subject_id, self._aead.decrypt(kept[:_NONCE_BYTES], kept[_NONCE_BYTES:], subject_id.encode())
            )
        except (InvalidTag, ValueError) as error:
            raise VaultError(f"the key of {subject_id} was changed, or {MASTER_FILE} is of another node") from error


def fresh_master() -> Master:
    """A key that ends with the process."""
    return Master(os.urandom(_KEY_BYTES))


def master_from(file: Path) -> Master:
    """The key in `file`, made with mode 0600 on the first start and kept ever after."""
    try:
        return existing_master(file)
    except FileNotFoundError:
        write_private(file, os.urandom(_KEY_BYTES).hex().encode() + b"\n")
        return existing_master(file)


def existing_master(file: Path) -> Master:
    """The key in `file`; FileNotFoundError where there is none."""
    try:
        key = bytes.fromhex(read_private(file).decode("ascii").strip())
    except (UnicodeDecodeError, ValueError):
        key = b""
    if len(key) != _KEY_BYTES:
        raise ValueError(f"{file} does not hold a key of {2 * _KEY_BYTES} hex digits")
    return Master(key)
