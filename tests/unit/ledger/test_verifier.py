"""The single-file verifier reports what is wrong with any exported log, and where (DESIGN 7)."""

import hashlib
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from qwed.ledger import verifier
from qwed.ledger.attestation_verifier import check_receipt
from qwed.ledger.verifier import (
    EMPTY_ROOT,
    InvalidEvidenceError,
    LogFinding,
    LogReport,
    check_log,
    leaf_hash,
    main,
    public_keys,
    read_head,
)
from tests.support import rfc6962
from tests.support.log_builder import (
    LOG_ID,
    NODE,
    Line,
    LogSigner,
    SignedLog,
    b64,
    build_log,
    commitment,
    encode_lines,
    entry,
    leaf,
    log_of,
    roots,
    text,
    unb64,
)

COUNT = 40
LOG = log_of(COUNT)
"""Heads of sizes 1, 3, 6, 10, 15, 21, 28, 29, 31, 34, 38 and 40."""
LINES = list(LOG.lines())
OTHER = LogSigner(2)


def wrong(lines: Sequence[Line | bytes], **options: Any) -> list[tuple[str, str]]:
    """Return the findings of an export, by default with the keys of the node."""
    raw = [line if isinstance(line, bytes) else encode_lines([line])[0] for line in lines]
    report = check_log(raw, **{"keys": NODE.keys, **options})
    assert all(text.isprintable() and len(text) < 512 for finding in report.findings for text in finding)
    return [(finding.where, finding.what) for finding in report.findings]


def place(index: int) -> int:
    """Return the line number of an entry, from 0."""
    return next(number for number, line in enumerate(LINES) if line.get("entry", {}).get("index") == index)


def head_place(size: int) -> int:
    return next(number for number, line in enumerate(LINES) if line.get("head", {}).get("size") == size)


def with_entry(index: int, /, **members: Any) -> list[Line]:
    """Return the export with members of one entry replaced, or removed with `...`."""
    changed = {**LINES[place(index)]["entry"], **members}
    changed = {name: value for name, value in changed.items() if value is not ...}
    return [*LINES[: place(index)], {"entry": changed}, *LINES[place(index) + 1 :]]


def with_head(size: int, head: Any) -> list[Line]:
    return [*LINES[: head_place(size)], {"head": head}, *LINES[head_place(size) + 1 :]]


def without(*numbers: int) -> list[Line]:
    return [line for number, line in enumerate(LINES) if number not in numbers]


def test_an_honest_log_is_reported_as_it_is() -> None:
    report = check_log(LOG.export(), keys=NODE.keys, head=LOG.heads[15])
    assert report == LogReport(LOG_ID, COUNT, roots(LOG.leaves)[-1].hex(), len(LOG.heads), ())


@pytest.mark.parametrize(
    "members",
    [
        {"conversation_id": 'say "x", {"y": 1}'},
        {"conversation_id": "back\\slash\n\t\x00\x7f\u2028ä😀"},
        {"conversation_id": "a,", "decision": ","},
        {"cost_micros": 2**70, "tokens": -1, "latency_us": 0, "success": True, "about": None},
        {"nested": {"b": [1, {"a": 2}], "a": []}},
        {"conversation_id": ""},
    ],
)
def test_whatever_an_honest_leaf_says_it_is_canonical(members: dict[str, Any]) -> None:
    assert wrong(list(build_log([leaf(0, **members)], [1]).lines())) == []


def test_every_head_of_an_honest_log_agrees_with_it_as_text_and_as_bytes() -> None:
    for head in LOG.heads.values():
        assert wrong(LINES, head=head) == []
    assert check_log([line.decode() for line in LOG.export()], keys=NODE.keys).findings == ()


def test_without_a_jwks_the_keys_of_the_export_are_used_and_that_is_said() -> None:
    assert wrong(LINES, keys=None) == []
    [note] = check_log(LOG.export()).notes
    assert "keys were taken from the export itself" in note
    rewritten = build_log(LOG.leaves, list(LOG.heads), OTHER)
    assert check_log(rewritten.export()).findings == ()
    assert check_log(rewritten.export(), keys=NODE.keys).findings != ()


def test_keys_that_are_given_are_the_only_ones_that_count() -> None:
    assert wrong(LINES, keys=OTHER.keys)[0] == ("head of size 1", f"no known key has its kid '{NODE.kid}'")
    assert wrong(LINES, keys={}) != []


@pytest.mark.parametrize("heads", [{}, {0: NODE.head(0, EMPTY_ROOT)}], ids=["no head", "a head"])
def test_a_log_without_entries_is_a_log(heads: dict[int, Any]) -> None:
    lines = list(SignedLog([], heads).lines())
    assert wrong(lines) == []
    assert wrong(lines, head=NODE.head(0, EMPTY_ROOT)) == []
    assert wrong(lines, head=LOG.heads[1]) == [
        ("the given head", "it covers 1 entries, of which only 0 are there: cut off, or an older copy")
    ]


def test_keys_rotate_and_old_heads_stay_good() -> None:
    later = build_log(LOG.leaves, list(LOG.heads), OTHER).heads
    heads = {size: head if size < 20 else later[size] for size, head in LOG.heads.items()}
    rotated = SignedLog(LOG.leaves, heads, keys=[OTHER.jwk, NODE.jwk])
    assert wrong(list(rotated.lines()), keys=None, head=LOG.heads[15]) == []
    assert wrong(list(rotated.lines())) == [("head of size 21", f"no known key has its kid '{OTHER.kid}'")]


GAP = "entries {} to {} are missing before it"
AGAIN = "it stands there again or out of order"
NOT_ENTRY = "it is not an entry with `index`, `leaf` and `leaf_hash`"
AGREE = "; the first {} entries agree with their heads"
ROOT = "its root is not that of the entries before it" + AGREE
AFTER = "it stands after {} entries" + AGREE
NOT_JSON = "it is not valid JSON"
NO_NAME = ("the log", "it does not begin with its `qwed_log` line")
NOTHING_LIKE_IT = "it is nothing that belongs there"
CUT_OFF = ("the log", "its last line, the keys, is missing: the export was cut off")

CASES: dict[str, tuple[list[Any], list[tuple[str, str]]]] = {
    "a leaf_hash that is not the hash of its leaf": (
        with_entry(17, leaf_hash="0" * 64),
        [("entry 17", "its leaf_hash is not the hash of its leaf")],
    ),
    "a leaf changed under its old hash": (
        with_entry(17, leaf=leaf(17, decision="DENIED")),
        [("entry 17", "its leaf_hash is not the hash of its leaf"), ("head of size 21", ROOT.format(15))],
    ),
    "a leaf changed with its hash": (
        with_entry(17, **entry(17, leaf(17, decision="DENIED"))),
        [("head of size 21", ROOT.format(15))],
    ),
    "an entry that is gone": (
        without(place(17)),
        [("entry 18", GAP.format(17, 17)), ("head of size 21", AFTER.format(20, 15))],
    ),
    "entries that are gone with the head over them": (
        without(*range(place(15), head_place(21) + 1)),
        [("entry 21", GAP.format(15, 20)), ("head of size 28", AFTER.format(22, 15))],
    ),
    "an entry twice": (
        [*LINES[: place(17)], LINES[place(17)], *LINES[place(17) :]],
        [("entry 17", AGAIN), ("head of size 21", AFTER.format(22, 15))],
    ),
    "entries in another order": (
        [*LINES[: place(17)], LINES[place(18)], LINES[place(17)], *LINES[place(19) :]],
        [("entry 18", GAP.format(17, 17)), ("entry 17", AGAIN), ("head of size 21", ROOT.format(15))],
    ),
    "a leaf that is not canonical": (
        list(
            build_log([*LOG.leaves[:17], json.dumps(json.loads(leaf(17))), *LOG.leaves[18:]], list(LOG.heads)).lines()
        ),
        [("entry 17", "its leaf is not canonical JSON")],
    ),
    "a leaf with a member twice": (
        list(build_log(['{"activity_id":"act_1","activity_id":"act_1"}'], [1]).lines()),
        [("entry 0", "its leaf is not canonical JSON")],
    ),
    "a leaf with a member twice and an escape": (
        list(build_log(['{"activity_id":"act_1","by":"\\n","by":"\\n"}'], [1]).lines()),
        [("entry 0", "it is not valid JSON: a member is given twice")],
    ),
    "a leaf with members out of order": (
        list(build_log(['{"v":2,"activity_id":"act_1"}'], [1]).lines()),
        [("entry 0", "its leaf is not canonical JSON")],
    ),
    "a leaf with a fraction": (
        list(build_log(['{"activity_id":"act_1","cost_micros":1.0}'], [1]).lines()),
        [("entry 0", "it is not valid JSON: 1.0 is not a number that may stand there")],
    ),
    "a leaf that is no object": (list(build_log(["[]"], [1]).lines()), [("entry 0", "it is not a JSON object")]),
    "a leaf about nothing": (list(build_log(['{"v":2}'], [1]).lines()), [("entry 0", "its leaf names no activity")]),
    "an activity twice": (
        list(build_log([*LOG.leaves[:20], leaf(7, step_number=9)], [21]).lines()),
        [("entry 20", "its activity is that of entry 7 too")],
    ),
    "a head whose root is not that of the entries": (
        with_head(21, NODE.head(21, roots(LOG.leaves)[20])),
        [("head of size 21", ROOT.format(15))],
    ),
    "a head over other entries": (
        with_head(21, LOG.heads[15]),
        [("head of size 15", AFTER.format(21, 15))],
    ),
    "a head signed by a stranger": (
        with_head(21, OTHER.head(21, roots(LOG.leaves)[21])),
        [("head of size 21", f"no known key has its kid '{OTHER.kid}'")],
    ),
    "a head with the signature of another": (
        with_head(21, {**LOG.heads[21], "signature": LOG.heads[15]["signature"]}),
        [(f"line {head_place(21) + 1}", "it does not say what was signed")],
    ),
    "a head with another time beside its signature": (
        with_head(21, {**LOG.heads[21], "time": "2026-01-01T00:00:00Z"}),
        [(f"line {head_place(21) + 1}", "it does not say what was signed")],
    ),
    "a head that says more than was signed": (
        with_head(21, {**LOG.heads[21], "note": "x"}),
        [(f"line {head_place(21) + 1}", "it does not say what was signed")],
    ),
    "a head with a broken signature": (
        with_head(21, {**LOG.heads[21], "signature": LOG.heads[21]["signature"][:-8] + "AAAAAAAA"}),
        [("head of size 21", "its signature is wrong")],
    ),
    "a head of another log": (
        with_head(21, NODE.head(21, roots(LOG.leaves)[21], log_id="org_2")),
        [("head of size 21", "it is of another log, 'org_2'")],
    ),
    "no head at all": (
        list(SignedLog(LOG.leaves).lines()),
        [("the log", "no head covers its entries from 0 on")],
    ),
    "entries after the last head": (
        [*LINES[: head_place(40)], LINES[-1]],
        [("the log", "no head covers its entries from 38 on")],
    ),
    "a last line that is missing": (LINES[:-1], [CUT_OFF]),
    "a log that was cut in the middle": (
        LINES[: place(17) + 1],
        [CUT_OFF, ("the log", "no head covers its entries from 15 on")],
    ),
    "a line that was cut in the middle": (
        [*encode_lines(LINES[: place(18)])[:-1], encode_lines([LINES[place(17)]])[0][:100]],
        [
            (f"line {place(17) + 1}", f"{NOT_JSON}: unterminated string starting at: line 1 column 29 (char 28)"),
            CUT_OFF,
            ("the log", "no head covers its entries from 15 on"),
        ],
    ),
    "nothing": ([], [NO_NAME, CUT_OFF]),
    "a log without its name": (
        LINES[1:3] + LINES[-1:],
        [("head of size 1", f"it is of another log, '{LOG_ID}'"), NO_NAME],
    ),
    "a log with two names": (
        [LINES[0], *LINES],
        [("line 2", "it is not the first line of an export in version 1")],
    ),
    "a log of the next version": (
        [{**LINES[0], "qwed_log": 2}, LINES[-1]],
        [
            ("line 1", "it is not the first line of an export in version 1"),
            NO_NAME,
        ],
    ),
    "something after the keys": ([*LINES, LINES[1]], [(f"line {len(LINES) + 1}", NOTHING_LIKE_IT)]),
    "something else": ([*LINES[:5], {"note": "x"}, *LINES[5:]], [("line 6", NOTHING_LIKE_IT)]),
    "two things on one line": (
        [*LINES[:2], {**LINES[2], "entry": LINES[1]["entry"]}, *LINES[3:]],
        [("line 3", NOTHING_LIKE_IT)],
    ),
    "a name with something more": ([{**LINES[0], "note": "x"}, LINES[-1]], [("line 1", NOTHING_LIKE_IT), NO_NAME]),
    "an empty object": ([*LINES[:5], {}, *LINES[5:]], [("line 6", NOTHING_LIKE_IT)]),
    "keys that are none": (
        [*LINES[:-1], {"keys": [{"kty": "EC"}]}],
        [(f"line {len(LINES)}", "a key cannot be used: it is not for ES256")],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong_is_told_with_its_place(case: str) -> None:
    lines, findings = CASES[case]
    assert wrong(lines) == findings


GIVEN: dict[str, tuple[Any, str]] = {
    "larger than the log": (
        NODE.head(41, roots([*LOG.leaves, leaf(40)])[41]),
        "it covers 41 entries, of which only 40 are there: cut off, or an older copy",
    ),
    "with another root": (
        NODE.head(21, roots(LOG.leaves)[20]),
        "the first 21 entries are not those it was signed for",
    ),
    "of another log": (NODE.head(21, roots(LOG.leaves)[21], log_id="org_2"), "it is of another log, 'org_2'"),
    "of a stranger": (OTHER.head(21, roots(LOG.leaves)[21]), f"no known key has its kid '{OTHER.kid}'"),
    "with another signature": (
        {**LOG.heads[21], "signature": LOG.heads[21]["signature"][:-8] + "AAAAAAAA"},
        "its signature is wrong",
    ),
    "that says what was not signed": ({**LOG.heads[21], "size": 28}, "it does not say what was signed"),
    "that is an attestation": (
        {**LOG.heads[21], "signature": NODE.attest({"log_id": LOG_ID})},
        "it is not well formed: its header is not that of a qwed-head+jwt",
    ),
    "that is empty": ({}, "it does not have three segments and at most 8192 characters"),
    "that is no object": ([1], "it does not have three segments and at most 8192 characters"),
}


@pytest.mark.parametrize("case", GIVEN)
def test_a_head_that_was_saved_is_itself_looked_at(case: str) -> None:
    head, what = GIVEN[case]
    assert wrong(LINES, head=head) == [("the given head", what)]


PAYLOAD, SALT = '{"action":{"type":"calculate","query":"2+2"}}', bytes(range(32))
COMMITTED = leaf(3, commitment=commitment(SALT, PAYLOAD))
FORMER = leaf(3, v=1, commitment=...)


@pytest.mark.parametrize(
    ("leaf_text", "beside", "found"),
    [
        (COMMITTED, {"payload": PAYLOAD, "salt": SALT.hex()}, 0),
        (COMMITTED, {"erased": True}, 0),
        (COMMITTED, {}, 0),
        (FORMER, {"payload": PAYLOAD}, 0),
        (COMMITTED, {"payload": PAYLOAD + " ", "salt": SALT.hex()}, 1),
        (COMMITTED, {"payload": PAYLOAD, "salt": "0" * 64}, 1),
        (COMMITTED, {"payload": PAYLOAD}, 1),
        (COMMITTED, {"payload": PAYLOAD, "salt": SALT.hex().upper()}, 1),
        (COMMITTED, {"payload": PAYLOAD, "salt": 7}, 1),
        (COMMITTED, {"payload": {"action": 1}, "salt": SALT.hex()}, 1),
        (leaf(3, commitment=None), {"payload": PAYLOAD, "salt": SALT.hex()}, 1),
        (leaf(3, commitment=...), {"payload": PAYLOAD, "salt": SALT.hex()}, 1),
        (leaf(3, commitment=...), {"payload": PAYLOAD}, 1),
    ],
)
def test_a_payload_is_held_against_its_commitment(leaf_text: str, beside: dict[str, Any], found: int) -> None:
    lines = list(build_log([leaf_text], [1]).lines())
    lines[1]["entry"] |= beside
    expected = [("entry 0", "its payload is not the one its leaf commits to")]
    assert wrong(lines) == expected[:found]


GARBAGE: list[bytes] = [
    b"",
    b"\n",
    b"\xff\xfe\x00",
    b'"\xed\xa0\x80"',
    b"\xef\xbb\xbf{}",
    b"null",
    b"[]",
    b"1e999",
    b"NaN",
    b'{"entry":' * 200_000,
    b"[" * 100_000,
    b'{"entry":{"index":' + b"9" * 5000 + b"}}",
    b'{"entry":{"index":' + b"9" * 4000 + b',"leaf":"{}","leaf_hash":""}}',
    b'{"entry":{"index":-1,"leaf":"{}","leaf_hash":""}}',
    b'{"entry":{"index":true,"leaf":"{}","leaf_hash":""}}',
    b'{"entry":{"index":0.0,"leaf":"{}","leaf_hash":""}}',
    b'{"entry":{"index":0,"leaf":"{\\"activity_id\\":\\"x\\",\\"v\\":' + b"9" * 5000 + b'}","leaf_hash":""}}',
    b'{"entry":{"index":0,"leaf":"' + b"[" * 50_000 + b'","leaf_hash":""}}',
    b'{"entry":{"index":0,"leaf":{"activity_id":"x"},"leaf_hash":""}}',
    b'{"entry":{"index":0,"leaf":"\\ud800","leaf_hash":""}}',
    b'{"entry":{"index":0,"leaf":"{\\"activity_id\\":\\"\\\\ud800\\"}","leaf_hash":""}}',
    b'{"entry":{"index":0},"entry":{"index":0}}',
    b'{"entry":[]}',
    b'{"entry":null}',
    b'{"head":null}',
    b'{"head":{"signature":null}}',
    b'{"head":{"signature":"a.b.c"}}',
    b'{"head":{"signature":"..","log_id":"\\ud800"}}',
    b'{"head":[["signature","x"]]}',
    b'{"keys":null}',
    b'{"keys":{"kty":"EC"}}',
    b'{"keys":[[]]}',
    b'{"keys":[' + b",".join([b"{}"] * 2000) + b"]}",
    b'{"qwed_log":true,"log_id":"x","issuer":"y"}',
    b'{"qwed_log":1,"log_id":["x"],"issuer":"y"}',
    b'{"qwed_log":1}',
    b'{"' + b"x" * 1_000_000 + b'":1}',
    b'{"entry":{"index":99,"leaf":"\x00","leaf_hash":""}}',
    b'{"head":{"size":' + b"1" * 4400 + b"}}",
    bytes(range(256)),
]


@pytest.mark.parametrize("line", GARBAGE, ids=lambda line: repr(line[:50]))
@pytest.mark.parametrize("alone", [True, False], ids=["alone", "in a log"])
def test_garbage_is_a_finding_and_never_a_surprise(line: bytes, alone: bool) -> None:
    assert wrong([line] if alone else [*LINES[:7], line, *LINES[7:]]) != []
    assert check_log([line, *LOG.export()], keys=NODE.keys, head=LOG.heads[40]).findings != ()


def test_any_text_in_place_of_any_line_is_a_finding_and_never_a_surprise() -> None:
    chance, export = random.Random(6), LOG.export()
    for _ in range(150):
        number = chance.randrange(len(export))
        changed = bytearray(export[number])
        for _ in range(chance.randint(1, 4)):
            changed[chance.randrange(len(changed) - 1)] = chance.randrange(256)
        if bytes(changed) != export[number] and b"issuer" not in export[number]:
            assert wrong([*export[:number], bytes(changed), *export[number + 1 :]]) != [], changed


def test_a_line_longer_than_sixteen_mebibytes_is_a_finding() -> None:
    long = b'{"entry":"' + b"x" * verifier.MAX_LINE + b'"}'
    assert wrong([*encode_lines(LINES[:-1]), long, *encode_lines(LINES[-1:])]) == [
        (f"line {len(LINES)}", "it is longer than 16 MiB")
    ]


def test_of_very_many_findings_the_first_are_listed_and_the_report_says_so() -> None:
    report = check_log([b"x"] * 1000 + LOG.export(), keys=NODE.keys)
    assert len(report.findings) == verifier.MAX_FINDINGS
    assert report.findings[0].where == "line 1"
    assert report.notes == ("only the first 100 findings are listed",)


class Counted:
    """Public key that records its calls."""

    def __init__(self, node: LogSigner) -> None:
        self.node = node
        self.sizes: list[int] = []

    def verify(self, signature: bytes, signed: bytes, algorithm: Any) -> None:
        self.sizes.append(json.loads(unb64(signed.decode().split(".")[1]))["size"])
        self.node.key.public_key().verify(signature, signed, algorithm)


HUNDRED = build_log([leaf(number) for number in range(100)], range(1, 101))


def test_of_very_many_heads_the_first_and_the_last_are_checked_and_the_report_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(verifier, "MAX_SIGNATURES", 8)
    key: Any = Counted(NODE)
    report = check_log(HUNDRED.export(), keys={NODE.kid: key}, head=HUNDRED.heads[50])
    assert (report.heads, report.findings) == (100, ())
    assert key.sizes == [50, *range(1, 9), 100]
    assert ["the signatures of the first 8" in note for note in report.notes] == [True]


def test_the_first_head_of_each_key_and_the_last_of_all_are_always_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifier, "MAX_SIGNATURES", 8)
    last = {**HUNDRED.heads[100], "signature": HUNDRED.heads[100]["signature"][:-8] + "AAAAAAAA"}
    broken = SignedLog(HUNDRED.leaves, {**HUNDRED.heads, 100: last})
    assert wrong(list(broken.lines())) == [("head of size 100", "its signature is wrong")]
    strange = SignedLog(HUNDRED.leaves, {**HUNDRED.heads, 40: OTHER.head(40, roots(HUNDRED.leaves)[40])})
    assert wrong(list(strange.lines())) == [("head of size 40", f"no known key has its kid '{OTHER.kid}'")]


def test_progress_is_told_now_and_then() -> None:
    calls: list[int] = []
    lines = encode_lines([LINES[0], *[{"entry": entry(0, "{}")}] * 25_000])
    check_log(lines, progress=calls.append)
    assert calls == [9_999, 19_999]


# Keys


def jwk(**members: Any) -> dict[str, Any]:
    changed = {**NODE.jwk, **members}
    return {name: value for name, value in changed.items() if value is not ...}


def test_the_keys_of_a_jwks_are_found_by_their_thumbprints() -> None:
    keys = public_keys({"keys": [NODE.jwk, jwk(alg=..., use=...), {**OTHER.jwk, "x5t": "ignored"}]})
    assert list(keys) == [NODE.kid, OTHER.kid]
    assert keys[NODE.kid].public_numbers() == NODE.key.public_key().public_numbers()


@pytest.mark.parametrize(
    "jwks",
    [
        None,
        [],
        {},
        {"keys": None},
        {"keys": {}},
        {"keys": "x"},
        {"keys": [None]},
        {"keys": [NODE.jwk] * 1001},
        {"keys": [jwk(kid="another")]},
        {"keys": [jwk(kid=OTHER.kid)]},
        {"keys": [jwk(kid=...)]},
        {"keys": [jwk(kid=NODE.kid + "=")]},
        {"keys": [jwk(kty="RSA")]},
        {"keys": [jwk(crv="P-384")]},
        {"keys": [jwk(crv="secp256k1")]},
        {"keys": [jwk(alg="HS256")]},
        {"keys": [jwk(use="enc")]},
        {"keys": [jwk(x=b64(bytes(32)))]},
        {"keys": [jwk(y=...)]},
        {"keys": [jwk(x=NODE.jwk["y"], y=NODE.jwk["x"])]},
        {"keys": [jwk(x=NODE.jwk["x"][:-1])]},
        {"keys": [jwk(x=NODE.jwk["x"][:-1] + "_")]},
        {"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "x"}]},
    ],
    ids=lambda jwks: text(jwks)[:70],
)
def test_a_jwks_with_anything_but_named_p256_keys_is_refused(jwks: Any) -> None:
    with pytest.raises(InvalidEvidenceError):
        public_keys(jwks)


def test_a_point_beside_the_curve_is_refused_even_under_its_own_thumbprint() -> None:
    members = {"crv": "P-256", "kty": "EC", "x": b64(bytes(31) + b"\x01"), "y": b64(bytes(31) + b"\x01")}
    kid = b64(hashlib.sha256(text(members).encode()).digest())
    with pytest.raises(InvalidEvidenceError, match="cannot be used"):
        public_keys({"keys": [{**members, "kid": kid}]})


# Heads


def test_a_head_is_read_as_it_was_signed() -> None:
    head = read_head(LOG.heads[21], NODE.keys)
    assert head == (LOG_ID, 21, roots(LOG.leaves)[21], LOG.heads[21]["time"], NODE.kid)
    assert read_head(NODE.head(1, EMPTY_ROOT, time="2026-01-02T03:04:05.678Z"), NODE.keys).size == 1


@pytest.mark.parametrize(
    "said",
    [
        {"log_id": ""},
        {"log_id": 7},
        {"root": "0" * 63},
        {"root": "0" * 63 + "G"},
        {"root": "A" * 64},
        {"size": -1},
        {"size": True},
        {"size": "21"},
        {"size": 10**17},
        {"time": "yesterday"},
        {"time": "2026-01-01 00:00:00Z"},
        {"time": "2026-01-01T00:00:00+00:00"},
        {"time": 1_790_000_000},
        {"more": 1},
    ],
    ids=text,
)
def test_a_signed_head_that_is_none_is_refused(said: dict[str, Any]) -> None:
    claims = {"log_id": LOG_ID, "root": "0" * 64, "size": 21, "time": "2026-01-01T00:00:00Z", **said}
    token = NODE.sign("qwed-head+jwt", text(claims).encode())
    with pytest.raises(InvalidEvidenceError) as refused:
        read_head({**claims, "signature": token}, NODE.keys)
    assert refused.value.code == "QWED-ATT-007"


# Receipts


def receipt_of(index: int, size: int) -> dict[str, Any]:
    path = [item.hex() for item in rfc6962.path(index, [item.encode() for item in LOG.leaves[:size]])]
    return {"index": index, "leaf": LOG.leaves[index], "path": path, "head": LOG.heads[size]}


def test_a_receipt_proves_its_leaf() -> None:
    for size in LOG.heads:
        for index in range(size):
            checked = check_receipt(receipt_of(index, size), NODE.keys)
            assert (checked.valid, checked.code) == (True, None)
            assert checked.claims == json.loads(LOG.leaves[index])


RECEIPT = receipt_of(17, 40)
RECEIPTS: dict[str, tuple[Any, str]] = {
    "another leaf": ({**RECEIPT, "leaf": LOG.leaves[18]}, "003"),
    "a changed leaf": ({**RECEIPT, "leaf": leaf(17, decision="DENIED")}, "003"),
    "another place": ({**RECEIPT, "index": 16}, "003"),
    "a place behind the end": ({**RECEIPT, "index": 40}, "003"),
    "a shorter path": ({**RECEIPT, "path": RECEIPT["path"][:-1]}, "003"),
    "a longer path": ({**RECEIPT, "path": [*RECEIPT["path"], "0" * 64]}, "003"),
    "a path in another order": ({**RECEIPT, "path": RECEIPT["path"][::-1]}, "003"),
    "an endless path": ({**RECEIPT, "path": ["0" * 64] * 100_000}, "003"),
    "the head of another size": ({**RECEIPT, "head": LOG.heads[38]}, "003"),
    "the head of a stranger": ({**RECEIPT, "head": OTHER.head(40, roots(LOG.leaves)[40])}, "003"),
    "a head that was changed": ({**RECEIPT, "head": {**LOG.heads[40], "size": 38}}, "003"),
    "an attestation as head": ({**RECEIPT, "head": {"signature": NODE.attest({})}}, "001"),
    "no head": ({**RECEIPT, "head": None}, "001"),
    "a path that is no hex": ({**RECEIPT, "path": ["g" * 64]}, "001"),
    "a path in capitals": ({**RECEIPT, "path": [each.upper() for each in RECEIPT["path"]]}, "001"),
    "a path of numbers": ({**RECEIPT, "path": [1]}, "001"),
    "no path": ({**RECEIPT, "path": None}, "001"),
    "a negative index": ({**RECEIPT, "index": -1}, "001"),
    "an index that is true": ({**RECEIPT, "index": True}, "001"),
    "an enormous index": ({**RECEIPT, "index": 10**4000}, "001"),
    "a leaf that is no text": ({**RECEIPT, "leaf": json.loads(LOG.leaves[17])}, "001"),
    "half a character": ({**RECEIPT, "leaf": "\ud800"}, "001"),
    "something missing": ({name: RECEIPT[name] for name in ("leaf", "path", "head")}, "001"),
    "nothing": ({}, "001"),
    "no object": ("receipt", "001"),
    "a token": (NODE.attest({}), "001"),
    "bytes": ({**RECEIPT, "leaf": LOG.leaves[17].encode()}, "001"),
    "a set": ({**RECEIPT, "path": {1}}, "001"),
    "half a character beside it": ({**RECEIPT, "head": {**RECEIPT["head"], "time": "\ud800"}}, "003"),
    "depth without end": (json.loads('{"head":' * 500 + "1" + "}" * 500), "001"),
}


@pytest.mark.parametrize("case", RECEIPTS)
def test_a_receipt_for_anything_else_is_refused(case: str) -> None:
    receipt, code = RECEIPTS[case]
    checked = check_receipt(receipt, NODE.keys)
    assert (checked.valid, checked.claims, checked.code) == (False, None, f"QWED-ATT-{code}")
    assert checked.message.isprintable()


def test_a_receipt_may_be_any_mapping() -> None:
    proxied = MappingProxyType({**RECEIPT, "head": MappingProxyType(RECEIPT["head"]), "path": tuple(RECEIPT["path"])})
    assert check_receipt(proxied, NODE.keys).valid


def test_what_is_said_beside_a_receipt_is_no_part_of_what_it_proves() -> None:
    checked = check_receipt({**RECEIPT, "size": 1, "leaf_hash": "0" * 64, "note": "x"}, NODE.keys)
    assert (checked.valid, checked.claims) == (True, json.loads(LOG.leaves[17]))


def test_a_signed_leaf_that_is_not_canonical_is_no_receipt() -> None:
    log = build_log(['{"activity_id": "act_1"}'], [1])
    receipt = {"index": 0, "leaf": log.leaves[0], "path": [], "head": log.heads[1]}
    assert check_receipt(receipt, NODE.keys).message == "its leaf is not canonical JSON"


# The file as a command

SOURCE = Path(verifier.__file__)


@pytest.fixture
def audit(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a copy of the file alone, without qwed, over files with these contents."""
    shutil.copy(SOURCE, tmp_path / "verifier.py")

    def call(export: list[bytes] | None, *options: str, **files: Any) -> subprocess.CompletedProcess[str]:
        if export is not None:
            (tmp_path / "export.jsonl").write_bytes(b"".join(export))
        for name, content in files.items():
            (tmp_path / f"{name}.json").write_text(content if isinstance(content, str) else json.dumps(content))
        command = [sys.executable, "-I", "-W", "error", "verifier.py", "export.jsonl", *options]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)

    return call


def test_an_auditor_needs_this_one_file(audit: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = audit(LOG.export(), "--head", "head.json", "--jwks", "jwks.json", head=LOG.heads[21], jwks=NODE.jwks)
    root = roots(LOG.leaves)[-1].hex()
    assert done.stdout == f"log {LOG_ID}: 40 entries, 12 heads, root {root}\nnothing is wrong\n"
    assert (done.returncode, done.stderr) == (0, "")


def test_an_auditor_is_told_where_to_look(audit: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    changed = encode_lines(with_entry(17, **entry(17, leaf(17, decision="DENIED"))))
    done = audit(changed, "--head", "head.json", head=LOG.heads[21])
    assert done.returncode == 1
    assert done.stdout.splitlines()[1:] == [
        "keys were taken from the export itself: give a JWKS that you trust to know who signed",
        f"head of size 21: {ROOT.format(15)}",
        "the given head: the first 21 entries are not those it was signed for",
        "SOMETHING IS WRONG",
    ]


@pytest.mark.parametrize(
    ("export", "options", "files"),
    [
        (None, [], {}),
        (LOG.export(), ["--jwks", "missing.json"], {}),
        (LOG.export(), ["--jwks", "jwks.json"], {"jwks": "{"}),
        (LOG.export(), ["--jwks", "jwks.json"], {"jwks": {"keys": [{}]}}),
        (LOG.export(), ["--head", "head.json"], {"head": "x"}),
        (LOG.export(), ["--unknown"], {}),
    ],
    ids=["no export", "no jwks", "a broken jwks", "a wrong jwks", "a broken head", "an unknown option"],
)
def test_what_cannot_be_read_is_neither_right_nor_wrong(
    export: list[bytes] | None,
    options: list[str],
    files: dict[str, Any],
    audit: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = audit(export, *options, **files)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert done.stderr


def test_the_same_is_said_in_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export = tmp_path / "export.jsonl"
    export.write_bytes(b"".join(LOG.export()) + b'{"head":"\\ud800"}\xff')
    assert main([str(export)]) == 1
    assert f"line {len(LINES) + 1}: it is not valid JSON" in capsys.readouterr().out


def test_a_log_id_that_cannot_be_printed_is_printed_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export = tmp_path / "export.jsonl"
    export.write_bytes(b"".join(build_log([leaf(1)], [1], log_id="org \u202e\u0085").export()))
    assert main([str(export)]) == 0
    assert capsys.readouterr().out.startswith("log org \\u202e\\x85: 1 entries")


def test_the_file_imports_nothing_of_qwed_and_little_else() -> None:
    lines = SOURCE.read_text().splitlines()
    imported = {line.split()[1].split(".")[0] for line in lines if line.startswith(("import ", "from "))}
    assert imported - sys.stdlib_module_names == {"cryptography"}


def test_a_leaf_hash_is_not_a_finding_twice() -> None:
    finding = LogFinding("entry 17", "its leaf_hash is not the hash of its leaf")
    report = check_log(encode_lines(with_entry(17, leaf_hash=leaf_hash(b"").hex())), keys=NODE.keys)
    assert report.findings == (finding,)
