"""Signing keys rotate and old ones stay; after a crash at any step the keyring opens with every key (DESIGN 7)."""

import base64
import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from joserfc import jws
from joserfc.jwk import ECKey, KeySet

from qwed.ledger import verifier
from qwed.ledger.keyring import (
    JWKS_FILE,
    KEY_FILE,
    MAX_KEYS,
    KeyLostError,
    Keyring,
    KeyringError,
    fresh_key,
    fresh_keyring,
    issuer_of,
    jwk_of,
    open_keyring,
    read_keyring,
    replace_lost_key,
)
from qwed.ledger.verifier import public_keys


def _kids(keyring: Keyring) -> list[str]:
    return [jwk["kid"] for jwk in keyring.public_jwks()]


def _key_set(keyring: Keyring) -> KeySet:
    keys: Any = keyring.public_jwks()
    return KeySet.import_key_set({"keys": keys})


def _pem(key: Any, password: bytes | None = None) -> bytes:
    hidden = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    pem: bytes = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, hidden)
    return pem


def _put(file: Path, data: bytes) -> Path:
    file.write_bytes(data)
    file.chmod(0o600)
    return file


# One key


def test_what_is_signed_is_read_by_a_library_that_is_not_ours() -> None:
    keyring = fresh_keyring()
    token = keyring.current.sign("qwed-head+jwt", b'{"size":1}')
    signed = jws.deserialize_compact(token, _key_set(keyring), ["ES256"])
    assert signed.headers() == {"alg": "ES256", "kid": keyring.current.kid, "typ": "qwed-head+jwt"}
    assert signed.payload == b'{"size":1}'


def test_the_header_is_canonical_and_the_signature_the_same_every_time() -> None:
    key = fresh_keyring().current
    (token,) = {key.sign("t", b"{}") for _ in range(5)}
    header = base64.urlsafe_b64decode(token.split(".")[0] + "==").decode()
    assert header == f'{{"alg":"ES256","kid":"{key.kid}","typ":"t"}}'
    assert key.sign("u", b"{}") != token


def test_the_kid_is_the_thumbprint_and_the_jwk_shows_no_private_half() -> None:
    for key in (fresh_keyring().current for _ in range(50)):
        assert set(key.jwk) == {"crv", "kty", "x", "y", "alg", "use", "kid"}
        bare: Any = {name: key.jwk[name] for name in ("crv", "kty", "x", "y")}
        assert key.kid == ECKey.import_key(bare).thumbprint()
        assert len(key.jwk["x"]) == len(key.jwk["y"]) == 43, "leading zeros are kept"


# Rotation


def test_a_fresh_keyring_rotates_in_memory_and_keeps_its_name() -> None:
    keyring = fresh_keyring()
    issuer, first = keyring.issuer, keyring.current
    token = first.sign("t", b"{}")
    second = keyring.rotate()
    assert keyring.current is second
    assert keyring.issuer == issuer == issuer_of(first.kid)
    assert _kids(keyring) == [second.kid, first.kid]
    for jws_ in (token, second.sign("t", b"{}")):
        assert jws.deserialize_compact(jws_, _key_set(keyring), ["ES256"]).payload == b"{}"


def test_keys_are_made_on_the_first_start_and_kept(tmp_path: Path) -> None:
    directory = tmp_path / "deep" / "data"
    first, second = open_keyring(directory), open_keyring(directory)
    assert (first.issuer, _kids(first)) == (second.issuer, _kids(second))
    assert {file.name: file.stat().st_mode & 0o777 for file in directory.iterdir()} == {
        KEY_FILE: 0o600,
        JWKS_FILE: 0o600,
    }


def test_a_rotated_keyring_opens_with_every_key_newest_first(tmp_path: Path) -> None:
    keyring = open_keyring(tmp_path)
    issuer, kids = keyring.issuer, [keyring.current.kid]
    kids += [keyring.rotate().kid for _ in range(4)]
    again = open_keyring(tmp_path)
    assert again.issuer == issuer
    assert again.current.kid == kids[-1]
    assert _kids(again) == _kids(keyring) == kids[::-1]
    assert set(again.public_keys()) == set(kids)
    assert sorted(file.name for file in tmp_path.iterdir()) == [JWKS_FILE, KEY_FILE]


def test_a_directory_from_before_there_was_a_jwks_keeps_its_issuer(tmp_path: Path) -> None:
    private = fresh_key()
    _put(tmp_path / KEY_FILE, _pem(private))
    kid = jwk_of(private.public_key())["kid"]
    keyring = open_keyring(tmp_path)
    assert keyring.issuer == f"did:qwed:node:{hashlib.sha256(kid.encode()).hexdigest()[:32]}"
    keyring.rotate()
    assert open_keyring(tmp_path).issuer == keyring.issuer
    assert _kids(open_keyring(tmp_path))[1] == kid


def test_threads_that_rotate_and_sign_at_once_lose_no_key(tmp_path: Path) -> None:
    keyring = open_keyring(tmp_path)

    def work(number: int) -> str:
        return keyring.rotate().kid if number % 4 == 0 else keyring.current.sign("t", b"{}")

    with ThreadPoolExecutor(8) as threads:
        done = list(threads.map(work, range(40)))
    rotated = {kid for number, kid in enumerate(done) if number % 4 == 0}
    assert len(rotated) == 10
    assert rotated < set(_kids(keyring))
    assert _kids(open_keyring(tmp_path)) == _kids(keyring)
    for token in (result for number, result in enumerate(done) if number % 4):
        jws.deserialize_compact(token, _key_set(keyring), ["ES256"])


def test_starts_at_the_same_moment_share_one_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        opened = list(threads.map(lambda _: open_keyring(tmp_path / "data"), range(16)))
    assert len({keyring.current.kid for keyring in opened}) == 1
    assert _kids(open_keyring(tmp_path / "data")) == [opened[0].current.kid]


def test_a_node_has_no_more_keys_than_a_jwks_may_hold() -> None:
    first = fresh_keyring()
    jwks = [_jwk() for _ in range(MAX_KEYS - 2)]
    keyring = Keyring(first.issuer, first.current, jwks, lambda _issuer, _jwks, _private: None)
    last = keyring.rotate()
    assert len(public_keys({"keys": keyring.public_jwks()})) == MAX_KEYS == verifier.MAX_KEYS
    with pytest.raises(KeyringError, match="1000 keys"):
        keyring.rotate()
    assert keyring.current is last


def test_what_is_handed_out_cannot_change_the_keyring() -> None:
    keyring = fresh_keyring()
    keyring.public_jwks()[0]["kid"] = "another"
    keyring.public_jwks().clear()
    assert _kids(keyring) == [keyring.current.kid]
    with pytest.raises(TypeError):
        keyring.public_keys()["another"] = keyring.current.private.public_key()  # type: ignore[index]


# Crashes

_KILLED = """
import os, shutil, sys
from pathlib import Path
from qwed.ledger.keyring import open_keyring

original, place, doing = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]

def ended_before(step, half, directory):
    keyring = open_keyring(directory) if doing == "rotate" else None
    left = [step]

    def hook(event, arguments):
        if event not in ("open", "os.rename", "os.remove", "os.mkdir") or str(directory) not in str(arguments[0]):
            return
        if left[0] == 0:
            for unfinished in directory.glob("*.new") if half else ():
                os.truncate(unfinished, unfinished.stat().st_size // 2)
            os._exit(9)
        left[0] -= 1

    sys.addaudithook(hook)
    keyring.rotate() if keyring else open_keyring(directory)
    os._exit(0)

for half in (False, True):
    for step in range(40):
        directory = place / f"{step} {half}"
        if doing == "rotate":
            shutil.copytree(original, directory)
        child = os.fork()
        if child == 0:
            ended_before(step, half, directory)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(code, directory)
        if code != 9:
            break
"""
"""Kills one process after another, each right before its n-th file system call, until one finishes."""


def _ended_at_every_step(original: Path, place: Path, doing: str) -> list[Path]:
    """Return the directories that are left; the file being written is complete in one half of them, truncated in the
    other."""
    command = [sys.executable, "-c", _KILLED, str(original), str(place), doing]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    lines = [line.split(" ", 1) for line in ran.stdout.splitlines()]
    assert [code for code, _directory in lines].count("0") == 2, ran.stderr
    assert {code for code, _directory in lines} == {"0", "9"}, ran.stderr
    return [Path(directory) for _code, directory in lines]


def test_a_rotation_that_is_ended_at_any_step_leaves_a_keyring_with_every_key_that_ever_signed(tmp_path: Path) -> None:
    original = tmp_path / "original"
    keyring = open_keyring(original)
    keyring.rotate()
    left = _ended_at_every_step(original, tmp_path / "left", "rotate")
    assert len(left) > 16
    currents = set()
    for directory in left:
        reopened = open_keyring(directory)
        assert reopened.issuer == keyring.issuer
        assert set(_kids(keyring)) <= set(_kids(reopened))
        assert _kids(reopened)[0] == reopened.current.kid
        currents.add(reopened.current.kid == keyring.current.kid)
        later = reopened.rotate()
        assert set(_kids(open_keyring(directory))) >= {later.kid, reopened.current.kid, *_kids(keyring)}
        assert not list(directory.glob("*.new"))
    assert currents == {True, False}, "some ended before the new key took over, some after"


def test_a_first_start_that_is_ended_at_any_step_leaves_a_directory_that_opens(tmp_path: Path) -> None:
    left = _ended_at_every_step(tmp_path, tmp_path, "open")
    assert len(left) > 16
    for directory in left:
        keyring = open_keyring(directory)
        assert keyring.issuer == issuer_of(keyring.current.kid)
        assert _kids(keyring) == [keyring.current.kid]


def test_a_key_that_one_process_has_made_is_published_by_every_other_at_once(tmp_path: Path) -> None:
    here, there = open_keyring(tmp_path), open_keyring(tmp_path)
    new = here.rotate()
    assert new.kid in there.public_keys()
    assert _kids(there) == _kids(here)
    assert there.current.kid == new.kid


def test_a_rotation_that_cannot_be_written_changes_nothing(tmp_path: Path) -> None:
    keyring = open_keyring(tmp_path)
    before = keyring.current
    # A directory with the name of the file that is written first: a rename over it fails.
    (tmp_path / JWKS_FILE).unlink()
    (tmp_path / JWKS_FILE).mkdir()
    with pytest.raises(OSError, match=JWKS_FILE):
        keyring.rotate()
    assert keyring.current is before
    assert _kids(keyring) == [before.kid]


@pytest.mark.parametrize("leads_elsewhere", [False, True])
def test_what_lies_in_the_way_of_a_new_key_neither_opens_it_to_others_nor_leads_it_elsewhere(
    tmp_path: Path, leads_elsewhere: bool
) -> None:
    data, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    keyring = open_keyring(data)
    for name in (KEY_FILE, JWKS_FILE):
        left = data / f"{name}.new"
        if leads_elsewhere:
            left.symlink_to(elsewhere)
        else:
            left.write_text("half a")
            left.chmod(0o666)
    keyring.rotate()
    assert {file.stat().st_mode & 0o777 for file in data.iterdir()} == {0o600}
    assert not elsewhere.exists()
    assert _kids(open_keyring(data)) == _kids(keyring)


# The operator's own key


def test_the_operators_key_signs_and_the_one_it_replaces_stays(tmp_path: Path) -> None:
    own, data = tmp_path / "own.pem", tmp_path / "data"
    _put(own, _pem(fresh_key()))
    first = open_keyring(data, own)
    _put(own, _pem(fresh_key()))
    second = open_keyring(data, own)
    assert second.issuer == first.issuer
    assert _kids(second) == [second.current.kid, first.current.kid]
    assert second.current.kid != first.current.kid
    assert _kids(open_keyring(data, own)) == _kids(second)
    assert not (data / KEY_FILE).exists()


def test_a_key_that_comes_back_signs_again_and_stands_once(tmp_path: Path) -> None:
    own, data, old = tmp_path / "own.pem", tmp_path / "data", _pem(fresh_key())
    first = open_keyring(data, _put(own, old))
    second = open_keyring(data, _put(own, _pem(fresh_key())))
    third = open_keyring(data, _put(own, old))
    assert _kids(third) == [first.current.kid, second.current.kid]


def test_the_operators_key_is_rotated_by_the_operator(tmp_path: Path) -> None:
    own = tmp_path / "own.pem"
    keyring = open_keyring(tmp_path / "data", own)
    assert own.stat().st_mode & 0o777 == 0o600
    before = (own.read_bytes(), (tmp_path / "data" / JWKS_FILE).read_bytes())
    with pytest.raises(ValueError, match=r"own\.pem \(QWED_SIGNING_KEY_FILE\): put another P-256 key there"):
        keyring.rotate()
    assert (own.read_bytes(), (tmp_path / "data" / JWKS_FILE).read_bytes()) == before


# Refused files


@pytest.mark.parametrize("name", [KEY_FILE, JWKS_FILE])
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666, 0o601])
def test_a_file_that_others_can_reach_is_refused_with_the_command_that_helps(
    tmp_path: Path, name: str, mode: int
) -> None:
    open_keyring(tmp_path)
    (tmp_path / name).chmod(mode)
    with pytest.raises(PermissionError, match=rf"{name}.* \(mode {mode:o}\): run chmod 600 on it"):
        open_keyring(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"half a",
        b"\x00\xff" * 100,
        _pem(fresh_key())[:100],
        _pem(fresh_key(), b"secret"),
        _pem(ec.generate_private_key(ec.SECP384R1())),
        _pem(ed25519.Ed25519PrivateKey.generate()),
        fresh_key()
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo),
    ],
    ids=["empty", "half", "bytes", "cut", "password", "another curve", "another kind", "public"],
)
def test_a_file_that_holds_no_p256_key_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    file = _put(tmp_path / KEY_FILE, content)
    with pytest.raises(KeyringError, match=r"signing\.key does not hold a P-256 private key"):
        open_keyring(tmp_path)
    assert file.read_bytes() == content
    assert [entry.name for entry in tmp_path.iterdir()] == [KEY_FILE]


def _jwk() -> dict[str, str]:
    return jwk_of(fresh_key().public_key())


def _negative(text: str) -> str:
    """Return the same number with a leading byte."""
    return base64.urlsafe_b64encode(b"\x00" + base64.urlsafe_b64decode(text + "=")).rstrip(b"=").decode()


TAMPERED: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "no object": (lambda _published: [], "Expected `object`"),
    "no issuer": (lambda published: {"keys": published["keys"]}, "`issuer`"),
    "no keys": (lambda published: {"issuer": published["issuer"]}, "`keys`"),
    "something more": (lambda published: published | {"more": 1}, "`more`"),
    "no key left": (lambda published: published | {"keys": []}, "the issuer is not derived from any of its keys"),
    "the first key removed": (
        lambda published: published | {"keys": published["keys"][:1]},
        "the issuer is not derived",
    ),
    "another issuer": (lambda published: published | {"issuer": issuer_of("another")}, "the issuer is not derived"),
    "a key twice": (
        lambda published: published | {"keys": [*published["keys"], published["keys"][0]]},
        "it has a duplicate key",
    ),
    "another kid": (
        lambda published: published | {"keys": [_jwk() | {"kid": "k"}, *published["keys"]]},
        "`k` is not the thumbprint",
    ),
    "no kid": (
        lambda published: published | {"keys": [{name: value for name, value in _jwk().items() if name != "kid"}]},
        "`None` is not the thumbprint",
    ),
    "another point under a kid": (
        lambda published: published | {"keys": [published["keys"][0], published["keys"][1] | {"x": _jwk()["x"]}]},
        "not a point on the curve",
    ),
    "another key under a kid": (
        lambda published: published | {"keys": [published["keys"][0], _jwk() | {"kid": published["keys"][1]["kid"]}]},
        "is not the thumbprint of its key",
    ),
    "another curve": (
        lambda published: published | {"keys": [_jwk() | {"crv": "P-384"}, *published["keys"]]},
        "not on the curve",
    ),
    "another kind": (
        lambda published: published | {"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "s"}, *published["keys"]]},
        "not on the curve P-256",
    ),
    "no point": (
        lambda published: published | {"keys": [{"kty": "EC", "crv": "P-256", "kid": "s"}]},
        "not a point on the curve",
    ),
    "a private half": (
        lambda published: published | {"keys": [_jwk() | {"d": "AQ"}, *published["keys"]]},
        "not exactly a public ES256",
    ),
    "another use": (
        lambda published: published | {"keys": [_jwk() | {"use": "enc"}, *published["keys"]]},
        "not exactly a public ES256",
    ),
    "another algorithm": (
        lambda published: published | {"keys": [_jwk() | {"alg": "none"}, *published["keys"]]},
        "not exactly a public ES256",
    ),
    "a point in other words": (
        lambda published: (
            published
            | {"keys": [published["keys"][0] | {"x": _negative(published["keys"][0]["x"])}, published["keys"][1]]}
        ),
        "not a point on the curve|not exactly a public ES256",
    ),
    "a number for a name": (lambda published: published | {"keys": [{"kty": 1}]}, "Expected `str`"),
}


@pytest.mark.parametrize("case", TAMPERED, ids=lambda case: case)
def test_a_jwks_that_was_tampered_with_is_refused_and_left_alone(tmp_path: Path, case: str) -> None:
    open_keyring(tmp_path).rotate()
    file, (change, message) = tmp_path / JWKS_FILE, TAMPERED[case]
    changed = json.dumps(change(json.loads(file.read_bytes()))).encode()
    _put(file, changed)
    with pytest.raises(KeyringError, match=rf"signing\.jwks was changed or damaged: .*({message}).*; restore it from"):
        open_keyring(tmp_path)
    assert file.read_bytes() == changed


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b'{"keys":' + b"[" * 5000, b"null"], ids=repr)
def test_a_jwks_that_is_no_json_is_refused(tmp_path: Path, content: bytes) -> None:
    open_keyring(tmp_path)
    _put(tmp_path / JWKS_FILE, content)
    with pytest.raises(KeyringError, match=r"signing\.jwks was changed or damaged"):
        open_keyring(tmp_path)


# A lost key


def test_a_key_that_is_gone_is_not_quietly_replaced(tmp_path: Path) -> None:
    open_keyring(tmp_path)
    (tmp_path / KEY_FILE).unlink()
    with pytest.raises(
        KeyLostError, match=r"signing\.key is missing, .*restore it from a backup, .*`qwed keys rotate`"
    ):
        open_keyring(tmp_path)
    assert not (tmp_path / KEY_FILE).exists()


def test_an_operators_key_that_is_gone_is_not_quietly_replaced(tmp_path: Path) -> None:
    own = tmp_path / "own.pem"
    open_keyring(tmp_path / "data", own)
    own.unlink()
    with pytest.raises(KeyLostError, match=r"own\.pem is missing, .* put another P-256 key there$"):
        open_keyring(tmp_path / "data", own)
    assert not own.exists()


def test_a_lost_key_is_replaced_on_request_under_the_old_name(tmp_path: Path) -> None:
    before = open_keyring(tmp_path)
    before.rotate()
    kids = _kids(before)
    (tmp_path / KEY_FILE).unlink()
    after = replace_lost_key(tmp_path)
    assert after.issuer == before.issuer
    assert _kids(after) == [after.current.kid, *kids]
    assert _kids(open_keyring(tmp_path)) == _kids(after)


def test_reading_a_keyring_writes_nothing(tmp_path: Path) -> None:
    _put(tmp_path / KEY_FILE, _pem(fresh_key()))
    assert len(_kids(read_keyring(tmp_path))) == 1
    assert [file.name for file in tmp_path.iterdir()] == [KEY_FILE]
    with pytest.raises(FileNotFoundError):
        read_keyring(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()
