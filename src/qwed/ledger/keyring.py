"""Signing keys of this node (DESIGN 7). They rotate; every public key that ever signed is kept.

Two files: `signing.key` is the current private key, `signing.jwks` has the issuer and every public key. The public key
is always written first, so that after a crash nothing is signed with a key that is not published.
"""

import base64
import fcntl
import hashlib
import os
import threading
from base64 import urlsafe_b64encode
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

from qwed.model import canonical
from qwed.model.private_files import read_private, write_private

KEY_FILE = "signing.key"
JWKS_FILE = "signing.jwks"
MAX_KEYS = 1_000
"""Limit of `verifier.py`."""
_CURVE = ec.SECP256R1()
# Deterministic (RFC 6979): an attestation issued again from the log with the same key is the same, byte for byte.
_ES256 = ec.ECDSA(hashes.SHA256(), deterministic_signing=True)

Jwk = dict[str, str]
Private = ec.EllipticCurvePrivateKey


class KeyringError(ValueError):
    """The keys cannot be used; the message names the file and what to do."""


class KeyLostError(KeyringError):
    """This node has signed before, and its private key is missing."""


class SigningKey:
    """Private key with its public JWK."""

    def __init__(self, private: Private) -> None:
        self.private = private
        self.jwk = jwk_of(private.public_key())
        self.kid = self.jwk["kid"]
        self._headers: dict[tuple[str, str | None], bytes] = {}

    def sign(self, typ: str, payload: bytes, jku: str | None = None) -> str:
        """Sign `payload` as a compact JWS with this `typ`, and with `jku` if given."""
        header = self._headers.get((typ, jku)) or self._header(typ, jku)
        signing_input = header + b"." + urlsafe_b64encode(payload).rstrip(b"=")
        r, s = decode_dss_signature(self.private.sign(signing_input, _ES256))
        signature = urlsafe_b64encode(r.to_bytes(32, "big") + s.to_bytes(32, "big")).rstrip(b"=")
        return (signing_input + b"." + signature).decode()

    def _header(self, typ: str, jku: str | None) -> bytes:
        fields = {"alg": "ES256", "kid": self.kid, "typ": typ} | ({} if jku is None else {"jku": jku})
        header = self._headers[typ, jku] = _b64(canonical(fields))
        return header


class Keyring:
    """Current key, every public key, and the issuer. Thread-safe."""

    def __init__(
        self,
        issuer: str,
        current: SigningKey,
        jwks: Sequence[Jwk],
        save: "SaveRotation",
        directory: "KeyDirectory | None" = None,
    ) -> None:
        self.issuer = issuer
        self._save = save
        self._directory = directory
        self._rotating = threading.Lock()
        self._state = _state(current, jwks)
        self._file_state = None if directory is None else directory.file_state()

    @property
    def current(self) -> SigningKey:
        """Key that signs from now on."""
        return self._state.current

    def public_jwks(self) -> list[Jwk]:
        """Return every public key, the current one first and then the retired, newest first."""
        return [dict(jwk) for jwk in self._latest_state().jwks]

    def public_keys(self) -> Mapping[str, ec.EllipticCurvePublicKey]:
        """Return every public key by its kid."""
        return self._latest_state().keys

    def _latest_state(self) -> "_State":
        """Return the state including a key that another process has just made; if that cannot be read, the cached
        state."""
        with suppress(OSError, KeyringError):
            self.refresh()
        return self._state

    def rotate(self) -> SigningKey:
        """Make a new current key and keep the old public key. A crash leaves the old or the new state."""
        with (
            self._rotating,
            nullcontext() if self._directory is None else lock_key_directory(self._directory.directory),
        ):
            # Another process may have rotated meanwhile: signatures of its key must stay verifiable.
            self._reload()
            if len(self._state.jwks) >= MAX_KEYS:
                raise KeyringError(f"this node has had {MAX_KEYS} keys, which is as many as a JWKS may hold")
            new = SigningKey(fresh_key())
            state = _state(new, self._state.jwks)
            self._save(self.issuer, state.jwks, new.private)
            self._state = state
            self._file_state = None if self._directory is None else self._directory.file_state()
            return new

    def refresh(self) -> bool:
        """Load a key that another process of this machine has rotated to; return True if there was one."""
        if self._directory is None or self._directory.file_state() == self._file_state:
            return False
        with self._rotating, lock_key_directory(self._directory.directory):
            return self._reload()

    def _reload(self) -> bool:
        if self._directory is None or self._directory.file_state() == self._file_state:
            return False
        # Under the lock no process writes the files: their state is that of what is read.
        self._file_state, keyring = self._directory.file_state(), read_keyring(*self._directory)
        before, self._state = self._state, keyring._state
        return before.jwks != self._state.jwks


class _State(NamedTuple):
    """Replaced as a whole, so that a reader never sees half of a rotation."""

    current: SigningKey
    jwks: tuple[Jwk, ...]
    keys: Mapping[str, ec.EllipticCurvePublicKey]


class KeyDirectory(NamedTuple):
    """Directory of the key files, shared with other processes."""

    directory: Path
    key_file: Path | None = None

    def file_state(self) -> tuple[int, int] | None:
        """Return a value that changes when the JWKS file does, or None without a file."""
        try:
            status = (self.directory / JWKS_FILE).stat()
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_mtime_ns


SaveRotation = Callable[[str, Sequence[Jwk], Private], None]
"""Makes a rotation durable, or refuses it."""


def _state(current: SigningKey, earlier: Sequence[Jwk]) -> _State:
    jwks = (current.jwk, *(jwk for jwk in earlier if jwk["kid"] != current.kid))
    return _State(current, jwks, MappingProxyType({jwk["kid"]: _public_key(jwk) for jwk in jwks}))


def fresh_keyring() -> Keyring:
    """Return a keyring in memory."""
    key = SigningKey(fresh_key())
    return Keyring(issuer_of(key.kid), key, (), lambda _issuer, _jwks, _private: None)


def open_keyring(directory: Path, key_file: Path | None = None) -> Keyring:
    """Open the keys in `directory`, made on the first start; the operator's `key_file` signs if given."""
    private, jwks = key_file or directory / KEY_FILE, directory / JWKS_FILE
    with lock_key_directory(directory):
        if not private.exists() and not jwks.exists():
            write_private(private, _pem(fresh_key()))
        keyring = read_keyring(directory, key_file)
        # The first start, or the operator replaced the key.
        if not jwks.exists() or keyring.current.kid not in {jwk["kid"] for jwk in _published(jwks).keys}:
            write_private(jwks, _jwks_text(keyring.issuer, keyring.public_jwks()))
    return keyring


@contextmanager
def lock_key_directory(directory: Path) -> Iterator[None]:
    """Lock the directory: two first starts at once must not each make a key."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def read_keyring(directory: Path, key_file: Path | None = None) -> Keyring:
    """Read the keys in `directory`; nothing is written before a rotation."""
    jwks = directory / JWKS_FILE
    published = _published(jwks) if jwks.exists() else None
    private = _load(key_file or directory / KEY_FILE, lost=published is not None, own=key_file is None)
    current = SigningKey(private)
    save = _refuse_rotation(key_file) if key_file else _save_in(directory)
    if published is None:
        # The issuer is derived from the first key: it cannot be claimed without having held that key.
        return Keyring(issuer_of(current.kid), current, (), save, KeyDirectory(directory, key_file))
    return Keyring(published.issuer, current, published.keys, save, KeyDirectory(directory, key_file))


def replace_lost_key(directory: Path) -> Keyring:
    """Make a new key under the old issuer, for a node whose private key is lost."""
    published, new = _published(directory / JWKS_FILE), SigningKey(fresh_key())
    _save_in(directory)(published.issuer, (new.jwk, *published.keys), new.private)
    return read_keyring(directory)


def _save_in(directory: Path) -> SaveRotation:
    def keep(issuer: str, jwks: Sequence[Jwk], private: Private) -> None:
        # In this order: a crash between the two leaves a public key that never signed, which does no harm.
        write_private(directory / JWKS_FILE, _jwks_text(issuer, jwks))
        write_private(directory / KEY_FILE, _pem(private))

    return keep


def _refuse_rotation(key_file: Path) -> SaveRotation:
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
        raise ValueError("it has a duplicate key")
    if issuer not in {issuer_of(kid) for kid in kids}:
        raise ValueError("the issuer is not derived from any of its keys")


def _public_kid(jwk: Jwk) -> str:
    """Return the kid of a public JWK; raise ValueError unless every member is as we write it."""
    expected = jwk_of(_public_key(jwk))
    if jwk.get("kid") != expected["kid"]:
        raise ValueError(f"the kid `{jwk.get('kid')}` is not the thumbprint of its key")
    if jwk != expected:
        raise ValueError(f"the key `{expected['kid']}` is not exactly a public ES256 signing key")
    return expected["kid"]


def _public_key(jwk: Jwk) -> ec.EllipticCurvePublicKey:
    if (jwk.get("kty"), jwk.get("crv")) != ("EC", "P-256"):
        raise ValueError(f"the key `{jwk.get('kid')}` is not on the curve P-256")
    try:
        x, y = (int.from_bytes(base64.urlsafe_b64decode(jwk[name] + "=")) for name in ("x", "y"))
        return ec.EllipticCurvePublicNumbers(x, y, _CURVE).public_key()
    except (KeyError, ValueError):
        raise ValueError(f"the key `{jwk.get('kid')}` is not a point on the curve P-256") from None


def jwk_of(key: ec.EllipticCurvePublicKey) -> Jwk:
    """Return the public key as a JWK; `kid` is its RFC 7638 thumbprint."""
    numbers = key.public_numbers()
    point = {name: _b64(value.to_bytes(32, "big")).decode() for name, value in (("x", numbers.x), ("y", numbers.y))}
    members = {"crv": "P-256", "kty": "EC", **point}
    thumbprint = _b64(hashlib.sha256(canonical(members)).digest()).decode()
    return {**members, "alg": "ES256", "use": "sig", "kid": thumbprint}


def issuer_of(kid: str) -> str:
    """Return the issuer name of the node whose first key has that kid."""
    return f"did:qwed:node:{hashlib.sha256(kid.encode()).hexdigest()[:32]}"


def fresh_key() -> Private:
    """Generate a P-256 key."""
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
        raise KeyLostError(
            f"{file} is missing, and this node has signed with it: restore it from a backup, or where it is lost for "
            f"good {_REMEDY if own else 'put another P-256 key there'}"
        ) from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise KeyringError(f"{file} does not hold a P-256 private key in PEM, without a password") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise KeyringError(f"{file} does not hold a P-256 private key")
    return key
