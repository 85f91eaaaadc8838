"""Offline verifier of an exported log, in one file: `python verifier.py --help`.

It needs the standard library and `cryptography`, and trusts nothing but the public keys it is given. With one saved
signed head of a log it finds every edit, deletion, reordering, truncation or fork of the entries that the head covers.
"""

import argparse
import base64
import hashlib
import hmac
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, reduce
from pathlib import Path
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

Keys = Mapping[str, ec.EllipticCurvePublicKey]
Lines = Iterable[str | bytes]
Progress = Callable[[int], None] | None
EMPTY_ROOT = hashlib.sha256(b"").digest()
HEAD = "qwed-head+jwt"
MAX_LINE, MAX_TOKEN, MAX_KEYS, MAX_FINDINGS, MAX_SIGNATURES = 1 << 24, 1 << 13, 1000, 100, 10_000
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551

_HEAD = re.compile(
    r'{"log_id":"[^"\\]+","root":"[0-9a-f]{64}","size":(0|[1-9][0-9]{0,15}),'
    r'"time":"[0-9-]{10}T[0-9:]{8}([.][0-9]{1,9})?Z"}'
)
# Fast check: a leaf without escapes and inner objects is canonical if its members are in order.
_MEMBER = r'"[a-z_]++":(?:"[^"\\\x00-\x1f\ud800-\udfff]*+"|0|-?[1-9][0-9]{0,17}+|true|false|null)'
_PLAIN = re.compile(rf"{{{_MEMBER}(?:,{_MEMBER})*+}}")
_ENTRY = frozenset({"index", "leaf", "leaf_hash", "payload", "salt", "erased"})


def leaf_hash(data: bytes) -> bytes:
    """Return the RFC 6962 hash of a leaf, which cannot collide with that of a node."""
    return hashlib.sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the RFC 6962 hash of two subtrees."""
    return hashlib.sha256(b"\x01" + left + right).digest()


class Tree:
    """Append-only tree that keeps only the roots of its complete subtrees, one per bit of its size."""

    def __init__(self) -> None:
        self.size = 0
        self._peaks: list[bytes] = []

    def add(self, leaf_hash: bytes) -> None:
        """Append one leaf."""
        position = self.size
        while position & 1:
            leaf_hash = node_hash(self._peaks.pop(), leaf_hash)
            position >>= 1
        self._peaks.append(leaf_hash)
        self.size += 1

    def root(self) -> bytes:
        """Return the root of all leaves so far."""
        return reduce(lambda right, left: node_hash(left, right), reversed(self._peaks)) if self.size else EMPTY_ROOT


def _roots_of_path(node: int, last: int, roots: list[bytes], path: Sequence[bytes]) -> list[bytes]:
    """Return the roots that a path leads to, that of the larger tree last (RFC 9162, 2.1.3.2 and 2.1.4.2); none if it
    is invalid."""
    for sibling in path:
        if last == 0 or len(sibling) != 32:
            return []
        if node & 1 or node == last:
            roots = [node_hash(sibling, root) for root in roots]
            while node and not node & 1:
                node, last = node >> 1, last >> 1
        else:
            roots = [*roots[:-1], node_hash(roots[-1], sibling)]
        node, last = node >> 1, last >> 1
    return roots if last == 0 else []


def verify_inclusion(leaf_hash: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Return True if the path proves the leaf to be at `index` of the tree with this size and root."""
    return 0 <= index < size and _roots_of_path(index, size - 1, [leaf_hash], path) == [root]


def verify_consistency(first: int, second: int, path: Sequence[bytes], first_root: bytes, second_root: bytes) -> bool:
    """Return True if the path proves the first tree to be a prefix of the second."""
    if not 0 < first < second:
        expected = [second_root] if first == second > 0 else [EMPTY_ROOT] if first == 0 <= second else []
        return not path and [first_root] == expected and (second > 0 or second_root == EMPTY_ROOT)
    node, last = first - 1, second - 1
    while node & 1:
        node, last = node >> 1, last >> 1
    # If the first tree is one complete subtree, its root is known and the path begins above it.
    start, *rest = [*path] if first & (first - 1) else [first_root, *path]
    return _roots_of_path(node, last, [start, start], rest) == [first_root, second_root]


class InvalidEvidenceError(ValueError):
    """Evidence failed its check; `code` is one of QWED-ATT-001 to 008."""

    def __init__(self, number: str, message: str) -> None:
        super().__init__(message)
        self.code = f"QWED-ATT-{number}"


def require(condition: object, number: str, message: str) -> None:
    """Raise InvalidEvidenceError unless the condition holds."""
    if not condition:
        raise InvalidEvidenceError(number, message)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    require(len(members := dict(pairs)) == len(pairs), "001", "a member is given twice")
    return members


def _no_number(text: str) -> Any:
    raise InvalidEvidenceError("001", f"{text[:20]} is not a number that may stand there")


_whole_numbers = json.JSONDecoder(object_pairs_hook=_members, parse_float=_no_number, parse_constant=_no_number)
any_numbers = json.JSONDecoder(object_pairs_hook=_members, parse_constant=_no_number)
# RFC 8785 for what leaves and heads hold: members with ASCII names, whole numbers.
canonical = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=dict).encode


def read_object(data: str | bytes, decoder: json.JSONDecoder = _whole_numbers) -> dict[str, Any]:
    """Parse the JSON object in `data`, or raise InvalidEvidenceError."""
    try:
        text = (data.encode() if isinstance(data, str) else data).decode().strip(" \t\r\n")
        value, end = decoder.raw_decode(text)
        if "\\u" in text:
            canonical(value).encode()  # raises for half of a surrogate pair, which could not be printed
        require(end == len(text), "001", "something follows it")
    except (ValueError, RecursionError) as error:
        raise InvalidEvidenceError("001", f"it is not valid JSON: {str(error)[:80].lower()}") from None
    if not isinstance(value, dict):
        raise InvalidEvidenceError("001", "it is not a JSON object")
    return value


def _bytes(segment: str) -> bytes:
    data = base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4))
    if base64.urlsafe_b64encode(data).rstrip(b"=") != segment.encode():
        raise ValueError("a segment is not canonical base64url")
    return data


def public_keys(jwks: Mapping[str, Any]) -> dict[str, ec.EllipticCurvePublicKey]:
    """Return the keys of a JWKS by kid; raise InvalidEvidenceError unless each is an ES256 key with its RFC 7638
    thumbprint as kid."""
    listed = jwks.get("keys") if isinstance(jwks, Mapping) else None
    if not isinstance(listed, list) or len(listed) > MAX_KEYS:
        raise InvalidEvidenceError("003", f"a JWKS has `keys`, a list of at most {MAX_KEYS}")
    keys: dict[str, ec.EllipticCurvePublicKey] = {}
    for jwk in listed:
        try:
            values = [{"alg": "ES256", "use": "sig", **jwk}.get(name) for name in ("kty", "crv", "alg", "use")]
            require(values == ["EC", "P-256", "ES256", "sig"], "003", "it is not for ES256")
            thumbprint = hashlib.sha256(
                canonical({name: jwk[name] for name in ("crv", "kty", "x", "y")}).encode()
            ).digest()
            require(_bytes(jwk["kid"]) == thumbprint, "003", "its kid is not its RFC 7638 thumbprint")
            x, y = (int.from_bytes(_bytes(jwk[name]), "big") for name in ("x", "y"))
            keys[jwk["kid"]] = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise InvalidEvidenceError("003", f"a key cannot be used: {error}") from None
    return keys


@lru_cache(maxsize=64)
def _kid(segment: str, typ: str) -> str:
    header = read_object(_bytes(segment))
    kid = header.pop("kid", None)
    if header != {"alg": "ES256", "typ": typ} or not isinstance(kid, str):
        raise ValueError(f"its header is not that of a {typ}")
    return kid


def open_jws(token: Any, typ: str, keys: Keys | None, decoder: json.JSONDecoder = _whole_numbers) -> tuple[str, Any]:
    """Return kid and claims of a compact JWS, or raise InvalidEvidenceError; without keys no signature is checked."""
    parts = token.split(".", 3) if isinstance(token, str) and len(token) <= MAX_TOKEN else []
    require(len(parts) == 3, "001", f"it does not have three segments and at most {MAX_TOKEN} characters")
    try:
        kid, claims, signature = _kid(parts[0], typ), read_object(_bytes(parts[1]), decoder), _bytes(parts[2])
    except ValueError as error:
        raise InvalidEvidenceError("001", f"it is not well formed: {error}") from None
    if keys is None:
        return kid, claims
    # RFC 7518 allows both s and n - s: a token is identified by its `jti`, never by its text.
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
    require(kid in keys, "003", f"no known key has its kid {ascii(kid)[:60]}")
    require(len(signature) == 64 and 0 < r < _ORDER and 0 < s < _ORDER, "003", "its signature is not one of ES256")
    try:
        keys[kid].verify(encode_dss_signature(r, s), f"{parts[0]}.{parts[1]}".encode(), ec.ECDSA(SHA256()))
    except InvalidSignature:
        raise InvalidEvidenceError("003", "its signature is wrong") from None
    return kid, claims


class HeadClaims(NamedTuple):
    """Claims of a head, and the kid of its key."""

    log_id: str
    size: int
    root: bytes
    time: str
    kid: str


def read_head(head: Mapping[str, Any], keys: Keys | None) -> HeadClaims:
    """Return the claims of a head; raise InvalidEvidenceError unless one of the keys signed it (None: not checked)."""
    kid, claims = open_jws(head.get("signature") if isinstance(head, Mapping) else None, HEAD, keys)
    require(_HEAD.fullmatch(canonical(claims)), "007", "it is not a head: `log_id`, `root`, `size`, `time`")
    require({**claims, "signature": head["signature"]} == dict(head), "003", "it does not say what was signed")
    return HeadClaims(claims["log_id"], claims["size"], bytes.fromhex(claims["root"]), claims["time"], kid)


def read_leaf(text: str) -> dict[str, Any]:
    """Parse a leaf, or raise InvalidEvidenceError unless it is canonical."""
    plain = _PLAIN.fullmatch(text) is not None
    members = json.loads(text) if plain else read_object(text)
    in_order = list(members) == sorted(members) and len(members) == text.count('":') if plain else False
    require(in_order or canonical(members) == text, "001", "its leaf is not canonical JSON")
    require(isinstance(members.get("activity_id"), str), "001", "its leaf names no activity")
    return members


def _commits(leaf: dict[str, Any], payload: Any, salt: Any) -> bool:
    """Return True if the payload matches the commitment of the leaf; a leaf of version 1 has none."""
    if "commitment" not in leaf and leaf.get("v") == 1:
        return True
    fits = isinstance(payload, str) and isinstance(salt, str) and re.fullmatch("[0-9a-f]{64}", salt) is not None
    return fits and hmac.new(bytes.fromhex(salt), payload.encode(), "sha256").hexdigest() == leaf.get("commitment")


class LogFinding(NamedTuple):
    """Defect of a log, and its location."""

    where: str
    what: str


class LogReport(NamedTuple):
    """Content and defects of a log; the notes say how far the check went."""

    log_id: str
    size: int
    root: str
    heads: int
    findings: tuple[LogFinding, ...]
    notes: tuple[str, ...] = ()


class _LogCheck:
    """One pass over an export; of an entry it keeps only a hash of its activity id."""

    def __init__(self, head: Any) -> None:
        self.tree, self.seen, self.findings, self.where = Tree(), dict[int, int](), list[LogFinding](), ""
        self.log_id, self.next, self.agreed, self.covered, self.differs = "", 0, 0, 0, False
        self.published: Keys | None = None
        self.handlers = {"entry": self.entry, "head": self.head, "qwed_log": self.begin, "keys": self.end}
        self.given_size, self.root_at_given_size = head.get("size") if isinstance(head, Mapping) else None, EMPTY_ROOT
        # The heads whose signatures are checked at the end, when the keys are known, and the keys they name.
        self.heads, self.tokens, self.kids, self.last = 0, list[str](), dict[str, str](), ""

    def attempt(self, where: str, check: Callable[..., object], *values: Any) -> None:
        """Run a check and record its failure; the check may refine the location."""
        self.where = where
        try:
            check(*values)
        except InvalidEvidenceError as wrong:
            if len(self.findings) < MAX_FINDINGS:
                self.findings.append(LogFinding(self.where, str(wrong)))

    def line(self, line: str | bytes) -> None:
        require(len(line) <= MAX_LINE, "001", "it is longer than 16 MiB")
        item = read_object(line)
        kind = next(iter(item), "")
        belongs = kind in self.handlers and self.published is None and len(item) == (3 if kind == "qwed_log" else 1)
        require(belongs, "001", "it is nothing that belongs there")
        self.handlers[kind](item)

    def begin(self, item: dict[str, Any]) -> None:
        names = [item[name] for name in ("log_id", "issuer") if isinstance(item.get(name), str) and item[name]]
        fits = canonical(item["qwed_log"]) == "1" and len(names) == 2 and not self.log_id
        require(fits, "001", "it is not the first line of an export in version 1")
        self.log_id = item["log_id"]

    def end(self, item: dict[str, Any]) -> None:
        self.published = {}
        self.published = public_keys(item)

    def entry(self, item: dict[str, Any]) -> None:
        entry, expected = item["entry"], self.next
        index, leaf = (entry.get("index"), entry.get("leaf")) if isinstance(entry, dict) else (None, None)
        if type(index) is not int or index >> 53 or not isinstance(leaf, str) or not entry.keys() <= _ENTRY:
            raise InvalidEvidenceError("001", "it is not an entry with `index`, `leaf` and `leaf_hash`")
        hashed, self.where, self.next = leaf_hash(leaf.encode()), f"entry {index}", max(expected, index + 1)
        self.tree.add(hashed)
        if self.tree.size == self.given_size:
            self.root_at_given_size = self.tree.root()
        if index != expected:
            gap = f"entries {expected} to {index - 1} are missing before it"
            raise InvalidEvidenceError("001", gap if index > expected else "it stands there again or out of order")
        require(entry.get("leaf_hash") == hashed.hex(), "001", "its leaf_hash is not the hash of its leaf")
        members = read_leaf(leaf)
        first = self.seen.setdefault(hash(members["activity_id"]), index)
        require(first == index, "001", f"its activity is that of entry {first} too")
        fits = "payload" not in entry or _commits(members, entry["payload"], entry.get("salt"))
        require(fits, "001", "its payload is not the one its leaf commits to")

    def head(self, item: dict[str, Any]) -> None:
        claims, size = read_head(item["head"], None), self.tree.size
        self.where, self.covered = f"head of size {claims.size}", size
        self.remember(item["head"]["signature"], claims.kid)
        require(claims.log_id == self.log_id, "001", f"it is of another log, {ascii(claims.log_id)[:80]}")
        differed, self.differs = self.differs, claims.size != size or claims.root != self.tree.root()
        if not self.differs:
            self.agreed = size
        elif not differed:  # one finding, not one per head that follows
            what = "its root is not that of the entries before it"
            what = what if claims.size == size else f"it stands after {size} entries"
            raise InvalidEvidenceError("001", f"{what}; the first {self.agreed} entries agree with their heads")

    def remember(self, token: str, kid: str) -> None:
        self.heads, self.last = self.heads + 1, token
        if self.heads <= MAX_SIGNATURES or (kid not in self.kids and len(self.kids) <= MAX_KEYS):
            self.tokens.append(token)
            self.kids.setdefault(kid, token)

    def close(self, keys: Keys, head: Any) -> None:
        """Run the checks that need the whole export."""
        if head is not None:
            self.attempt("the given head", self.compare, head, keys)
        rules = {
            "it does not begin with its `qwed_log` line": self.log_id,
            "its last line, the keys, is missing: the export was cut off": self.published is not None,
            f"no head covers its entries from {self.covered} on": self.covered == self.tree.size,
        }
        for what, holds in rules.items():
            self.attempt("the log", require, holds, "001", what)
        for token in dict.fromkeys([*self.tokens, self.last] if self.heads else ()):
            self.attempt("", self.check_signature, token, keys)

    def compare(self, saved: Mapping[str, Any], keys: Keys) -> None:
        head, size = read_head(saved, keys), self.tree.size
        require(head.log_id == self.log_id, "001", f"it is of another log, {ascii(head.log_id)[:80]}")
        fewer = f"it covers {head.size} entries, of which only {size} are there: cut off, or an older copy"
        require(head.size <= size, "001", fewer)
        require(
            head.root == self.root_at_given_size,
            "001",
            f"the first {head.size} entries are not those it was signed for",
        )

    def check_signature(self, token: str, keys: Keys) -> None:
        kid, claims = open_jws(token, HEAD, None)
        self.where = f"head of size {claims['size']}"
        if kid in keys or self.kids.get(kid) == token:  # one finding per unknown key
            open_jws(token, HEAD, keys)


def check_log(lines: Lines, *, keys: Keys | None = None, head: Any = None, progress: Progress = None) -> LogReport:
    """Check an exported log, also against a head of it that was saved earlier."""
    check = _LogCheck(head)
    for number, line in enumerate(lines, 1):
        check.attempt(f"line {number}", check.line, line)
        if progress is not None and number % 10_000 == 0:
            progress(check.tree.size)
    check.close((check.published or {}) if keys is None else keys, head)
    root, findings, few = check.tree.root().hex(), tuple(check.findings), len(check.tokens)
    notes = {
        "keys were taken from the export itself: give a JWKS that you trust to know who signed": keys is None,
        f"of the heads, the signatures of the first {few} and of the last were checked": check.heads > MAX_SIGNATURES,
        f"only the first {MAX_FINDINGS} findings are listed": len(findings) == MAX_FINDINGS,
    }
    applying = tuple(note for note, applies in notes.items() if applies)
    return LogReport(check.log_id, check.tree.size, root, check.heads, findings, applying)


def main(arguments: Sequence[str] | None = None) -> int:
    """Check an export: return 0 without defects, 1 with defects, 2 if a file cannot be read."""
    parser = argparse.ArgumentParser(description="Checks an exported log of qwed, offline.")
    parser.add_argument("export", type=Path, help="what `qwed audit export` wrote")
    parser.add_argument("--head", type=Path, help="a head of this log that was saved earlier")
    parser.add_argument("--jwks", type=Path, help="the public keys you trust; without it, those in the export")
    options = parser.parse_args(arguments)
    try:
        keys = public_keys(read_object(options.jwks.read_bytes())) if options.jwks else None
        head = read_object(options.head.read_bytes()) if options.head else None
        with options.export.open("rb") as file:
            report = check_log(iter(lambda: file.readline(MAX_LINE + 1), b""), keys=keys, head=head)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"cannot read: {error}\n")
        return 2
    lines = [f"log {ascii(report.log_id)[1:-1][:80]}: {report.size} entries, {report.heads} heads, root {report.root}"]
    lines += [*report.notes, *(f"{finding.where}: {finding.what}" for finding in report.findings)]
    sys.stdout.write("\n".join([*lines, "SOMETHING IS WRONG" if report.findings else "nothing is wrong"]) + "\n")
    return 1 if report.findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
