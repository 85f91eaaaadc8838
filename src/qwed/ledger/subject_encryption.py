"""Encryption of personal content under a key per data subject (DESIGN 7). Destroying the key erases all of it.

A leaf has only an HMAC of its content, under a salt derived from the same key: while the key exists, anybody with salt
and content can check it; afterwards it cannot even be guessed.
"""

import hmac
import os
from base64 import b64decode
from binascii import b2a_base64
from hashlib import sha256
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from qwed.model.ids import random_bytes
from qwed.model.private_files import read_private, write_private

MASTER_FILE = "vault.key"
_KEY_BYTES = 32
_NONCE_BYTES = 12


class VaultError(Exception):
    """Sealed content cannot be opened: it was changed, or moved."""


def _mac(key: bytes, message: bytes) -> bytes:
    # `hmac.digest` would release the interpreter lock, which a busy writer is slow to give back.
    return hmac.new(key, message, sha256).digest()


def _mac_with(keyed: hmac.HMAC, message: bytes) -> bytes:
    """Return the HMAC of a message under a key whose blocks are hashed already."""
    mac = keyed.copy()
    mac.update(message)
    return mac.digest()


class SubjectKey:
    """Seals and opens the content of one subject."""

    __slots__ = ("_aead", "_salts", "subject_id")

    def __init__(self, subject_id: str, key: bytes) -> None:
        self.subject_id = subject_id
        self._aead = AESGCM(_mac(key, b"seal"))
        self._salts = hmac.new(_mac(key, b"commit"), digestmod=sha256)

    def seal(self, place: str, text: str) -> str:
        """Encrypt the text, bound to its place."""
        return self._sealed(place.encode(), text.encode())

    def open(self, place: str, sealed: str) -> str:
        """Decrypt a text sealed at this place; raise VaultError if it was changed."""
        try:
            data = b64decode(sealed, validate=True)
            return self._aead.decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], place.encode()).decode()
        except (InvalidTag, ValueError) as error:
            raise VaultError(f"the content at {place} was changed") from error

    def salt(self, place: str) -> bytes:
        """Return the salt of the commitment at a place."""
        return _mac_with(self._salts, place.encode())

    def commitment(self, place: str, text: str) -> str:
        """Return the commitment of a leaf to its content."""
        return _mac(self.salt(place), text.encode()).hex()

    def seal_with_commitment(self, place: str, text: str) -> tuple[str, str]:
        """Return the commitment of a leaf to its content, and the sealed content."""
        at, content = place.encode(), text.encode()
        salt = self._salts.copy()
        salt.update(at)
        # `hmac.digest` would release the interpreter lock, which a busy writer is slow to give back.
        commitment = hmac.new(salt.digest(), content, sha256).hexdigest()
        nonce = random_bytes()[:_NONCE_BYTES]
        sealed = b2a_base64(nonce + self._aead.encrypt(nonce, content, at), newline=False)
        return commitment, sealed.decode()

    def _sealed(self, place: bytes, content: bytes) -> str:
        nonce = random_bytes()[:_NONCE_BYTES]
        return b2a_base64(nonce + self._aead.encrypt(nonce, content, place), newline=False).decode()


class MasterKey:
    """Key of the node that wraps the subject keys: the database alone opens nothing."""

    def __init__(self, key: bytes) -> None:
        self._aead = AESGCM(_mac(key, b"wrap"))
        self._names = hmac.new(_mac(key, b"name"), digestmod=sha256)
        self._fingerprints = hmac.new(_mac(key, b"fingerprint"), digestmod=sha256)

    def name(self, organisation_id: str, subject: str) -> str:
        """Return the keyed name of a subject: stable, and without information about them."""
        return _mac_with(self._names, f"{organisation_id}\x00{subject}".encode("utf-8", "surrogatepass")).hex()

    def fingerprint(self, text: str) -> str:
        """Return a keyed hash of the text, to compare with later ones."""
        return _mac_with(self._fingerprints, text.encode("utf-8", "surrogatepass")).hex()

    def make(self, subject_id: str) -> tuple[SubjectKey, bytes]:
        """Create a subject key; return it and its wrapped form."""
        key, nonce = os.urandom(_KEY_BYTES), os.urandom(_NONCE_BYTES)
        return SubjectKey(subject_id, key), nonce + self._aead.encrypt(nonce, key, subject_id.encode())

    def unwrap(self, subject_id: str, wrapped: bytes) -> SubjectKey:
        """Unwrap a subject key; raise VaultError if it is not one of ours."""
        try:
            return SubjectKey(
                subject_id, self._aead.decrypt(wrapped[:_NONCE_BYTES], wrapped[_NONCE_BYTES:], subject_id.encode())
            )
        except (InvalidTag, ValueError) as error:
            raise VaultError(f"the key of {subject_id} was changed, or {MASTER_FILE} is of another node") from error


def fresh_master() -> MasterKey:
    """Return a master key that is not stored."""
    return MasterKey(os.urandom(_KEY_BYTES))


def master_from(file: Path) -> MasterKey:
    """Return the master key in `file`, created with mode 0600 on the first start."""
    try:
        return existing_master(file)
    except FileNotFoundError:
        write_private(file, os.urandom(_KEY_BYTES).hex().encode() + b"\n")
        return existing_master(file)


def existing_master(file: Path) -> MasterKey:
    """Return the master key in `file`; raise FileNotFoundError if it does not exist."""
    try:
        key = bytes.fromhex(read_private(file).decode("ascii").strip())
    except (UnicodeDecodeError, ValueError):
        key = b""
    if len(key) != _KEY_BYTES:
        raise ValueError(f"{file} does not hold a key of {2 * _KEY_BYTES} hex digits")
    return MasterKey(key)
