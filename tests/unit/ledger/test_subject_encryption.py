"""Sealed content opens with its own key, at its own place, unchanged, or not at all (DESIGN 7)."""

import hashlib
import hmac
import os
from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwed.ledger.subject_encryption import (
    MASTER_FILE,
    MasterKey,
    SubjectKey,
    VaultError,
    existing_master,
    fresh_master,
    master_from,
)

steady = settings(derandomize=True, database=None, deadline=None, max_examples=100)

KEY = SubjectKey("sub_1", b"k" * 32)
PLACE, TEXT = "act_1", '{"action":{"type":"send_email","target":"ann@example.com"}}'
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


# Sealing


@steady
@given(texts, texts)
def test_what_was_sealed_opens_at_its_place(place: str, text: str) -> None:
    assert KEY.open(place, KEY.seal(place, text)) == text


def test_a_large_text_is_sealed_whole() -> None:
    text = "é" * (1 << 20)
    assert KEY.open(PLACE, KEY.seal(PLACE, text)) == text


def test_the_same_text_never_looks_the_same() -> None:
    assert len({KEY.seal(PLACE, TEXT) for _ in range(100)}) == 100


def test_nothing_of_the_text_is_to_be_seen() -> None:
    sealed = KEY.seal(PLACE, TEXT)
    assert sealed.isascii()
    assert b"ann" not in b64decode(sealed)
    assert len(b64decode(sealed)) == 12 + len(TEXT) + 16


OTHERS: dict[str, Callable[[str], tuple[SubjectKey, str, str]]] = {
    "another place": lambda sealed: (KEY, "act_2", sealed),
    "a place that begins like it": lambda sealed: (KEY, f"{PLACE} ", sealed),
    "no place": lambda sealed: (KEY, "", sealed),
    "another key": lambda sealed: (SubjectKey("sub_1", b"l" * 32), PLACE, sealed),
    "the key of another": lambda sealed: (fresh_master().make("sub_1")[0], PLACE, sealed),
    "nothing": lambda _sealed: (KEY, PLACE, ""),
    "half of it": lambda sealed: (KEY, PLACE, sealed[: len(sealed) // 2 // 4 * 4]),
    "less than a nonce": lambda sealed: (KEY, PLACE, sealed[:12]),
    "a nonce alone": lambda sealed: (KEY, PLACE, sealed[:16]),
    "no tag": lambda sealed: (KEY, PLACE, b64encode(b64decode(sealed)[:-16]).decode()),
    "more": lambda sealed: (KEY, PLACE, b64encode(b64decode(sealed) + b"\0").decode()),
    "twice": lambda sealed: (KEY, PLACE, sealed + sealed),
    "no base64": lambda sealed: (KEY, PLACE, f"{sealed[:-1]}!"),
    "a space": lambda sealed: (KEY, PLACE, f"{sealed} "),
    "a line": lambda sealed: (KEY, PLACE, f"{sealed}\n"),
    "not even ASCII": lambda _sealed: (KEY, PLACE, "é"),
    "the text itself": lambda _sealed: (KEY, PLACE, TEXT),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_with_anything_else_it_does_not_open(other: Callable[[str], tuple[SubjectKey, str, str]]) -> None:
    key, place, sealed = other(KEY.seal(PLACE, TEXT))
    with pytest.raises(VaultError, match="was changed"):
        key.open(place, sealed)


def test_no_byte_of_it_can_be_changed() -> None:
    sealed = b64decode(KEY.seal(PLACE, "short"))
    for at in range(len(sealed)):
        changed = bytearray(sealed)
        changed[at] ^= 1
        with pytest.raises(VaultError):
            KEY.open(PLACE, b64encode(changed).decode())


# Commitments


@steady
@given(texts, texts)
def test_a_commitment_can_be_checked_by_whoever_is_given_salt_and_content(place: str, text: str) -> None:
    stated = hmac.new(KEY.salt(place), text.encode(), hashlib.sha256).hexdigest()
    assert KEY.commitment(place, text) == stated


def test_a_commitment_is_of_one_text_at_one_place_under_one_key() -> None:
    others = [
        KEY.commitment("act_2", TEXT),
        KEY.commitment(PLACE, f"{TEXT} "),
        SubjectKey("sub_1", b"l" * 32).commitment(PLACE, TEXT),
        hashlib.sha256(TEXT.encode()).hexdigest(),
        hmac.new(PLACE.encode(), TEXT.encode(), "sha256").hexdigest(),
    ]
    assert len({KEY.commitment(PLACE, TEXT), *others}) == len(others) + 1
    assert KEY.commitment(PLACE, TEXT) == SubjectKey("sub_9", b"k" * 32).commitment(PLACE, TEXT)


def test_whoever_is_given_one_salt_has_neither_another_one_nor_the_key() -> None:
    """A salt is published with its content; other content must stay sealed."""
    salt = KEY.salt(PLACE)
    assert len(salt) == 32
    for guess in (salt, hmac.digest(salt, b"seal", "sha256"), hmac.digest(salt, b"act_2", "sha256")):
        assert SubjectKey("sub_1", guess).salt("act_2") != KEY.salt("act_2")
        with pytest.raises(VaultError):
            SubjectKey("sub_1", guess).open(PLACE, KEY.seal(PLACE, TEXT))


# Wrapped subject keys


def test_a_key_is_kept_wrapped_and_unwraps_to_itself() -> None:
    master = fresh_master()
    key, wrapped = master.make("sub_1")
    assert (key.subject_id, len(wrapped)) == ("sub_1", 12 + 32 + 16)
    assert master.unwrap("sub_1", wrapped).open(PLACE, key.seal(PLACE, TEXT)) == TEXT
    assert master.unwrap("sub_1", wrapped).commitment(PLACE, TEXT) == key.commitment(PLACE, TEXT)


def test_every_subject_has_a_key_of_its_own() -> None:
    master = fresh_master()
    assert len({master.make("sub_1")[0].commitment(PLACE, TEXT) for _ in range(20)}) == 20


def test_a_key_unwraps_for_its_subject_under_its_master_unchanged_or_not_at_all() -> None:
    master = fresh_master()
    _key, wrapped = master.make("sub_1")
    wrong = [
        ("sub_2", wrapped),
        ("", wrapped),
        ("sub_1", b""),
        ("sub_1", wrapped[:11]),
        ("sub_1", wrapped[:12]),
        ("sub_1", wrapped + b"x"),
    ]
    wrong += [("sub_1", wrapped[:at] + bytes([wrapped[at] ^ 1]) + wrapped[at + 1 :]) for at in range(len(wrapped))]
    for subject_id, stored in wrong:
        with pytest.raises(VaultError, match=f"the key of {subject_id}"):
            master.unwrap(subject_id, stored)
    with pytest.raises(VaultError, match=f"{MASTER_FILE} is of another node"):
        fresh_master().unwrap("sub_1", wrapped)


# Names and fingerprints


def test_names_and_fingerprints_are_the_same_every_time_and_of_this_node_alone() -> None:
    first, again, other = MasterKey(b"1" * 32), MasterKey(b"1" * 32), MasterKey(b"2" * 32)
    assert first.name("org_1", "ann") == again.name("org_1", "ann") != other.name("org_1", "ann")
    assert first.fingerprint("ann") == again.fingerprint("ann") != other.fingerprint("ann")
    assert len({first.name("org_1", "ann"), first.name("org_2", "ann"), first.fingerprint("ann")}) == 3


def test_a_name_cannot_be_guessed_without_the_key() -> None:
    name = MasterKey(b"1" * 32).name("org_1", "ann")
    guesses = [b"ann", b"org_1ann", b"org_1\0ann", b"org_1:ann"]
    assert name not in {hashlib.sha256(guess).hexdigest() for guess in guesses}
    assert name not in {hmac.new(b"org_1", guess, "sha256").hexdigest() for guess in guesses}


def test_no_subject_of_one_organisation_is_filed_under_that_of_another() -> None:
    master = MasterKey(b"1" * 32)
    subjects = [
        ("org_1", "ann"),
        ("org_1a", "nn"),
        ("org_", "1ann"),
        ("org_1", "Ann"),
        ("org_1", "ann "),
        ("org_1", ""),
    ]
    assert len({master.name(*subject) for subject in subjects}) == len(subjects)


@pytest.mark.parametrize("odd", ["", "\0", "é", "\U0001f600", "\ud800", "x" * 100_000], ids=lambda odd: ascii(odd)[:12])
def test_whatever_somebody_is_called_has_a_name_and_a_fingerprint(odd: str) -> None:
    master = MasterKey(b"1" * 32)
    assert len(bytes.fromhex(master.name("org_1", odd))) == len(bytes.fromhex(master.fingerprint(odd))) == 32


# The node's own key


def test_a_master_is_made_once_with_mode_0600_and_kept(tmp_path: Path) -> None:
    file = tmp_path / "deep" / MASTER_FILE
    first, second, third = master_from(file), master_from(file), existing_master(file)
    assert first.name("o", "s") == second.name("o", "s") == third.name("o", "s")
    assert file.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in file.parent.iterdir()] == [MASTER_FILE]
    assert len(bytes.fromhex(file.read_text())) == 32


def test_no_two_nodes_have_the_same_master(tmp_path: Path) -> None:
    masters = [master_from(tmp_path / str(number) / MASTER_FILE) for number in range(5)]
    assert len({master.fingerprint("x") for master in [*masters, fresh_master(), fresh_master()]}) == 7


def test_where_there_is_none_only_a_start_makes_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        existing_master(tmp_path / MASTER_FILE)
    assert list(tmp_path.iterdir()) == []


GARBAGE = {
    "empty": b"",
    "half": b"ab" * 16,
    "one digit short": b"a" * 63,
    "too long": b"ab" * 33,
    "no hex": b"xy" * 32,
    "bytes": bytes(range(128, 160)),
    "a key of another kind": b"-----BEGIN PRIVATE KEY-----\n",
}


@pytest.mark.parametrize("read", [master_from, existing_master])
@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE)
def test_a_file_that_holds_no_key_is_refused_and_left_alone(
    tmp_path: Path, data: bytes, read: Callable[[Path], MasterKey]
) -> None:
    file = tmp_path / MASTER_FILE
    file.write_bytes(data)
    file.chmod(0o600)
    with pytest.raises(ValueError, match="64 hex digits"):
        read(file)
    assert file.read_bytes() == data


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666, 0o620])
def test_a_master_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    file = tmp_path / MASTER_FILE
    master_from(file)
    file.chmod(mode)
    with pytest.raises(PermissionError, match=f"mode {mode:o}"):
        master_from(file)


def test_a_master_with_or_without_a_line_at_its_end_is_the_same(tmp_path: Path) -> None:
    names = []
    for end in (b"", b"\n", b"\r\n"):
        file = tmp_path / MASTER_FILE
        file.write_bytes(b"ab" * 32 + end)
        os.chmod(file, 0o600)
        names.append(existing_master(file).fingerprint("x"))
    assert names == [MasterKey(b"\xab" * 32).fingerprint("x")] * 3
