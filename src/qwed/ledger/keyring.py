"""DESIGN 7: the keys this node signs with. They rotate; the public half of each that ever signed stays for ever.

Two files: `signing.key` is the private half of the current key, `signing.jwks` has the issuer and every public half.
The public half is always written first, so that whatever a crash leaves behind, nothing is signed with a key nobody
can look up.
"""

import base64
import fcntl
import hashlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from qwed.ledger.files import read_private, write_private
from qwed.words import canonical

KEY_FILE = "signing.key"
JWKS_FILE = "signing.jwks"
MOST_KEYS = 1_000
"""As many as `verifier.py` reads."""
_CURVE = ec.SECP256R1()
# Deterministic (RFC 6979): what is issued again from the log with the same key is the same, byte for byte.
_ES256 = ec.ECDSA(hashes.SHA256(), deterministic_signing=True)

Jwk = dict[str, str]
Private = ec.EllipticCurvePrivateKey


class KeyringError(ValueError):
    """The keys cannot be used as they are; the message names the file and what to do."""


class KeyLost(KeyringError):
    """This node has signed before, and the private key it signed with is not there."""


class SigningKey:
    """One private key and what the world knows of it."""

    def __init__(self, private: Private) -> None:
        self.private = private
        self.jwk = jwk_of(private.public_key())
        self.kid = self.jwk["kid"]
        self._headers: dict[tuple[str, str | None], bytes] = {}

    def sign(self, typ: str, payload: bytes, jku: str | None = None) -> str:
        """`payload` as a compact JWS whose header says `typ`, and where this key is published if that is to be said."""
        signing_input = self._header(typ, jku) + b"." + _b64(payload)
        r, s = decode_dss_signature(self.private.sign(signing_input, _ES256))
        return (signing_input + b"." + _b64(r.to_bytes(32, "big") + s.to_bytes(32, "big"))).decode()

    def _header(self, typ: str, jku: str | None) -> bytes:
        header = self._headers.get((typ, jku))
        if header is None:
            said = {"alg": "ES256", "kid": self.kid, "typ": typ} | ({} if jku is None else {"jku": jku})
            header = self._headers[typ, jku] = _b64(canonical(said))
        return header


class Keyring:
    """The key that signs now, every public half there ever was, and the one name for all of them. Thread-safe."""

    def __init__(
        self, issuer: str, current: SigningKey, known: Sequence[Jwk], keep: "Keep", shelf: "Shelf | None" = None
    ) -> None:
        self.issuer = issuer
        self._keep = keep
        self._shelf = shelf
        self._rotating = threading.Lock()
        self._state = _state(current, known)
        self._seen = None if shelf is None else shelf.seen()

    @property
    def current(self) -> SigningKey:
        """The key that signs from now on."""
        return self._state.current

    def public_jwks(self) -> list[Jwk]:
        """Every public key, the current one first and then the retired, newest first."""
        return [dict(jwk) for jwk in self._newest().jwks]

    def public_keys(self) -> Mapping[str, ec.EllipticCurvePublicKey]:
        """Every public key under its kid."""
        return self._newest().keys

    def _newest(self) -> "_State":
        """With a key that another process has made just now; where that cannot be read, what is in mind still holds."""
        with suppress(OSError, KeyringError):
            self.refresh()
        return self._state

    def rotate(self) -> SigningKey:
        """A new current key; the public half of the old one is kept. A crash on the way leaves the old or the new."""
        with self._rotating, nullcontext() if self._shelf is None else alone_in(self._shelf.directory):
            # Another process may have rotated meanwhile: what its key has signed must stay verifiable.
            self._look()
            if len(self._state.jwks) >= MOST_KEYS:
                raise KeyringError(f"this node has had {MOST_KEYS} keys, which is as many as a JWKS may hold")
            new = SigningKey(fresh_key())
            state = _state(new, self._state.jwks)
            self._keep(self.issuer, state.jwks, new.private)
            self._state = state
            self._seen = None if self._shelf is None else self._shelf.seen()
            return new

    def refresh(self) -> bool:
        """Whether another process of this machine has rotated the key; then this one signs with the new one, too."""
        if self._shelf is None or self._shelf.seen() == self._seen:
            return False
        with self._rotating, alone_in(self._shelf.directory):
            return self._look()

    def _look(self) -> bool:
        if self._shelf is None or self._shelf.seen() == self._seen:
            return False
        # Nobody writes them now: what was seen is what is read.
        self._seen, found = self._shelf.seen(), read_keyring(*self._shelf)
        before, self._state = self._state, found._state
        return before.jwks != self._state.jwks


class _State(NamedTuple):
    """Replaced as a whole, so that a reader never sees half of a rotation."""

    current: SigningKey
    jwks: tuple[Jwk, ...]
    keys: Mapping[str, ec.EllipticCurvePublicKey]


class Shelf(NamedTuple):
    """Where the keys lie, beside whoever else uses them."""

    directory: Path
    key_file: Path | None = None

    def seen(self) -> tuple[int, int] | None:
        """Tells one state of what is published from another."""
        try:
            found = (self.directory / JWKS_FILE).stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns


Keep = Callable[[str, Sequence[Jwk], Private], None]
"""Makes a rotation durable, or refuses it."""


def _state(current: SigningKey, known: Sequence[Jwk]) -> _State:
    jwks = (current.jwk, *(jwk for jwk in known if jwk["kid"] != current.kid))
    return _State(current, jwks, MappingProxyType({jwk["kid"]: _public_key(jwk) for jwk in jwks}))


def fresh_keyring() -> Keyring:
    """A keyring that lives in memory and dies with the process."""
    key = SigningKey(fresh_key())
    return Keyring(issuer_of(key.kid), key, (), lambda _issuer, _jwks, _private: None)


def open_keyring(directory: Path, key_file: Path | None = None) -> Keyring:
    """The keys in `directory`, made on the first start; the operator's `key_file` signs where one is given."""
    private, jwks = key_file or directory / KEY_FILE, directory / JWKS_FILE
    with alone_in(directory):
        if not private.exists() and not jwks.exists():
            write_private(private, _pem(fresh_key()))
        keyring = read_keyring(directory, key_file)
        # The first start, or the operator put another key in the place of the last one.
        if not jwks.exists() or keyring.current.kid not in {jwk["kid"] for jwk in _published(jwks).keys}:
            write_private(jwks, _jwks_text(keyring.issuer, keyring.public_jwks()))
    return keyring


@contextmanager
def alone_in(directory: Path) -> Iterator[None]:
    """Two first starts at once must not each make a key of their own."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def read_keyring(directory: Path, key_file: Path | None = None) -> Keyring:
    """The keys in `directory` as they are; nothing is written before a rotation."""
    jwks = directory / JWKS_FILE
    published = _published(jwks) if jwks.exists() else None
    private = _load(key_file or directory / KEY_FILE, lost=published is not None, own=key_file is None)
    current = SigningKey(private)
    keep = _kept_by_operator(key_file) if key_file else _kept_in(directory)
    if published is None:
        # The node is its first key: nobody can claim an issuer without having held what it signs with.
        return Keyring(issuer_of(current.kid), current, (), keep, Shelf(directory, key_file))
    return Keyring(published.issuer, current, published.keys, keep, Shelf(directory, key_file))


def replace_lost_key(directory: Path) -> Keyring:
    """The keyring of a node whose private key is gone for good: a new key under the old name."""
    published, new = _published(directory / JWKS_FILE), SigningKey(fresh_key())
    _kept_in(directory)(published.issuer, (new.jwk, *published.keys), new.private)
    return read_keyring(directory)


def _kept_in(directory: Path) -> Keep:
    def keep(issuer: str, jwks: Sequence[Jwk], private: Private) -> None:
        # In this order: a crash between the two leaves a public key that never signed, which harms nobody.
        write_private(directory / JWKS_FILE, _jwks_text(issuer, jwks))
        write_private(directory / KEY_FILE, _pem(private))

    return keep


def _kept_by_operator(key_file: Path) -> Keep:
    def refuse(_issuer: str, _jwks: Sequence[Jwk], _private: Private) -> None:
        raise KeyringError(
            f"the signing key is kept in {key_file} (QWED_SIGNING_KEY_FILE): put another P-256 key there and start "
            "again; the old public key stays in the JWKS"
        )

    return refuse


class _Published(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    issuer: str
    keys: list[Jwk]


def _jwks_text(issuer: str, jwks: Sequence[Jwk]) -> bytes:
    return canonical({"issuer": issuer, "keys": list(jwks)})


def _published(file: Path) -> _Published:
    try:
        published = msgspec.json.decode(read_private(file), type=_Published)
        kids = [_public_kid(jwk) for jwk in published.keys]
        _require_consistent(published.issuer, kids)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise KeyringError(f"{file} was changed or damaged: {error}; restore it from a backup") from None
    return published


def _require_consistent(issuer: str, kids: Sequence[str]) -> None:
    if len(set(kids)) != len(kids):
        raise ValueError("a key is there twice")
    if issuer not in {issuer_of(kid) for kid in kids}:
        raise ValueError("none of its keys is the one that the issuer is named after")


def _public_kid(jwk: Jwk) -> str:
    """The kid of a public key that is in every member what we would have written."""
    expected = jwk_of(_public_key(jwk))
    if jwk.get("kid") != expected["kid"]:
        raise ValueError(f"the kid `{jwk.get('kid')}` is not the thumbprint of its key")
    if jwk != expected:
        raise ValueError(f"the key `{expected['kid']}` is no public ES256 signing key and nothing else")
    return expected["kid"]


def _public_key(jwk: Jwk) -> ec.EllipticCurvePublicKey:
    if (jwk.get("kty"), jwk.get("crv")) != ("EC", "P-256"):
        raise ValueError(f"the key `{jwk.get('kid')}` is not on the curve P-256")
    try:
        x, y = (int.from_bytes(base64.urlsafe_b64decode(jwk[name] + "=")) for name in ("x", "y"))
        return ec.EllipticCurvePublicNumbers(x, y, _CURVE).public_key()
    except (KeyError, ValueError):
        raise ValueError(f"the key `{jwk.get('kid')}` is no point of the curve P-256") from None


def jwk_of(key: ec.EllipticCurvePublicKey) -> Jwk:
    """The public key as the JWKS shows it; `kid` is its RFC 7638 thumbprint."""
    numbers = key.public_numbers()
    point = {name: _b64(value.to_bytes(32, "big")).decode() for name, value in (("x", numbers.x), ("y", numbers.y))}
    members = {"crv": "P-256", "kty": "EC", **point}
    thumbprint = _b64(hashlib.sha256(canonical(members)).digest()).decode()
    return {**members, "alg": "ES256", "use": "sig", "kid": thumbprint}


def issuer_of(kid: str) -> str:
    """The name of the node whose first key has that kid."""
    return f"did:qwed:node:{hashlib.sha256(kid.encode()).hexdigest()[:32]}"


def fresh_key() -> Private:
    """A new P-256 key."""
    return ec.generate_private_key(_CURVE)


def _b64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _pem(key: Private) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


_REMEDY = "run `qwed keys rotate`, which makes a new one and keeps the old public keys"


def _load(file: Path, *, lost: bool, own: bool) -> Private:
    try:
        key = serialization.load_pem_private_key(read_private(file), password=None)
    except FileNotFoundError:
        if not lost:
            raise
        raise KeyLost(
            f"{file} is missing, and this node has signed with it: restore it from a backup, or where it is lost for "
            f"good {_REMEDY if own else 'put another P-256 key there'}"
        ) from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise KeyringError(f"{file} does not hold a P-256 private key in PEM, without a password") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise KeyringError(f"{file} does not hold a P-256 private key")
    return key
