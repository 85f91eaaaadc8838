"""Spec 7: the audit log over HTTP; every root and path is recomputed from RFC 6962."""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from qwed.gate import GateError
from qwed.kernel.audit.audit_log import ConsistencyProof, InclusionProof
from qwed.ledger import merkle
from tests.spec.conftest import Keyholders, SpecServer
from tests.spec.requests import Json, refusal_of
from tests.spec.sections import spec
from tests.support.gate_factory import open_gate
from tests.support.rfc6962 import mth, path, proof
from tests.support.server import Server
from tests.support.stored_rows import StoredRows

EMPTY = hashlib.sha256(b"").hexdigest()
VIOLATION = {"type": "execute_code", "code": "import os\nos.system('rm -rf /')"}
"""Denied and degraded: two leaves in one batch."""


class Auditor:
    """Reads the log with a key of the organisation and trusts only the JWKS."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client
        self.keys = {jwk["kid"]: jwk for jwk in client.get("/.well-known/jwks.json").json()["keys"]}

    def ask(self, where: str, **query: Any) -> Json:
        answer = self.client.get(f"/audit/{where}", params={name.rstrip("_"): value for name, value in query.items()})
        assert answer.status_code == 200, answer.text
        read: Json = answer.json()
        return read

    def leaves(self, limit: int = 1000) -> list[bytes]:
        """Return every leaf, page by page, after checking its RFC 6962 hash."""
        found: list[bytes] = []
        while True:
            page = self.ask("entries", from_index=len(found), limit=limit)
            for place, entry in enumerate(page["entries"], len(found)):
                assert set(entry) == {"index", "leaf_hash", "leaf"}
                assert entry["index"] == place
                assert entry["leaf_hash"] == hashlib.sha256(b"\0" + entry["leaf"].encode()).hexdigest()
            found += [entry["leaf"].encode() for entry in page["entries"]]
            assert page["next_index"] == len(found)
            if not page["entries"]:
                return found

    def head(self) -> Json:
        """Return the newest head after checking its signature."""
        head = self.ask("head")
        self.require_signed(head)
        return head

    def require_signed(self, head: Json) -> None:
        """Check that the signature is a compact JWS over the fields of the head, made with a published key."""
        header, payload, signature = head["signature"].split(".")
        kid = json.loads(unpacked(header))["kid"]
        assert json.loads(unpacked(header)) == {"alg": "ES256", "kid": kid, "typ": "qwed-head+jwt"}
        said = {name: head[name] for name in ("log_id", "root", "size", "time")}
        assert unpacked(payload) == json.dumps(said, separators=(",", ":")).encode()
        require_signature(self.keys[kid], f"{header}.{payload}".encode(), unpacked(signature))

    def require_true(self, leaves: list[bytes], head: Json) -> None:
        """Assert that the head covers these leaves."""
        assert (head["size"], head["root"]) == (len(leaves), mth(leaves).hex())


def unpacked(segment: str) -> bytes:
    return base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4))


def require_signature(jwk: Json, signed: bytes, signature: bytes) -> None:
    x, y = (int.from_bytes(unpacked(jwk[name])) for name in ("x", "y"))
    key = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    r, s = int.from_bytes(signature[:32]), int.from_bytes(signature[32:])
    key.verify(encode_dss_signature(r, s), signed, ec.ECDSA(SHA256()))


def hexed(hashes: list[bytes]) -> list[str]:
    return [each.hex() for each in hashes]


def act(keyholders: Keyholders, count: int) -> list[str]:
    """Make some decisions and return their ids."""
    ask = keyholders.create_agent()
    return [ask({"type": "calculate", "query": f"{step} + 1"}, step)["action_id"] for step in range(1, count + 1)]


@pytest.fixture
def auditor(new_keyholders: Keyholders) -> Auditor:
    """Auditor of an organisation that no other test uses, with a member key."""
    return Auditor(new_keyholders.member)


@spec("7.1")
def test_the_head_follows_every_decision_and_every_change(new_keyholders: Keyholders, auditor: Auditor) -> None:
    sizes = [auditor.head()["size"]]
    ask = new_keyholders.create_agent()
    for step in range(1, 6):
        ask({"type": "calculate", "query": f"{step} + 2"}, step)
        head = auditor.head()
        auditor.require_true(auditor.leaves(), head)
        sizes.append(head["size"])
    new_keyholders.owner.post(f"/agents/{ask.agent_id}/suspend", json={"reason": "enough"})
    auditor.require_true(auditor.leaves(), auditor.head())
    assert sizes == [sizes[0], *range(sizes[0] + 2, sizes[0] + 7)]


@spec("7.1")
def test_every_path_of_a_growing_log_is_the_one_that_rfc_6962_defines(
    new_keyholders: Keyholders, auditor: Auditor
) -> None:
    act(new_keyholders, 17)
    leaves = auditor.leaves()
    assert len(leaves) > 18
    for size in range(1, len(leaves) + 1):
        for index in {0, 1, size // 2, size - 2, size - 1} & set(range(size)):
            found = auditor.ask("proof/inclusion", index=index, size=size)
            assert set(found) == {"index", "size", "leaf_hash", "path", "head"}
            assert (found["index"], found["size"]) == (index, size)
            assert found["leaf_hash"] == mth(leaves[index : index + 1]).hex()
            assert found["path"] == hexed(path(index, leaves[:size]))
        for earlier in {0, 1, 2, size // 2, size - 1, size}:
            shown = auditor.ask("proof/consistency", from_=min(earlier, size), to=size)
            assert set(shown) == {"from", "to", "path"}
            assert shown["path"] == hexed(proof(min(earlier, size), leaves[:size]))


@spec("7.1")
def test_without_a_size_the_proof_is_under_the_newest_head(new_keyholders: Keyholders, auditor: Auditor) -> None:
    *_, asked = act(new_keyholders, 4)
    before = auditor.head()
    found = auditor.ask("proof/inclusion", activity_id=asked)
    assert (found["index"], found["size"], found["head"]) == (before["size"] - 1, before["size"], before)
    act(new_keyholders, 2)
    leaves = auditor.leaves()
    again = auditor.ask("proof/inclusion", activity_id=asked)
    assert (again["index"], again["size"], again["leaf_hash"]) == (found["index"], len(leaves), found["leaf_hash"])
    assert again["path"] == hexed(path(found["index"], leaves))
    auditor.require_true(leaves, again["head"])
    shown = auditor.ask("proof/consistency", from_=before["size"])
    assert (shown["to"], shown["path"]) == (len(leaves), hexed(proof(before["size"], leaves)))


@spec("7.1")
def test_the_head_of_an_earlier_size_is_the_one_that_was_signed_then(
    new_keyholders: Keyholders, auditor: Auditor
) -> None:
    heads = []
    for _ in range(3):
        act(new_keyholders, 1)
        heads.append(auditor.head())
    for head in heads:
        assert auditor.ask("proof/inclusion", index=0, size=head["size"])["head"] == head


@spec("7.1")
def test_a_size_that_no_batch_ended_in_has_no_head_but_a_proof(new_keyholders: Keyholders, auditor: Auditor) -> None:
    ask = new_keyholders.create_agent(trust_level=2)
    before = auditor.head()["size"]
    assert ask(VIOLATION, 1)["decision"] == "DENIED"
    leaves = auditor.leaves()
    assert len(leaves) == before + 2
    between = auditor.ask("proof/inclusion", index=before, size=before + 1)
    assert (between["head"], between["path"]) == (None, hexed(path(before, leaves[:-1])))
    auditor.require_true(leaves, auditor.ask("proof/inclusion", index=before, size=before + 2)["head"])


@spec("7.1")
@pytest.mark.parametrize("limit", [1, 3, 100])
def test_pages_of_any_length_are_the_same_log(new_keyholders: Keyholders, auditor: Auditor, limit: int) -> None:
    act(new_keyholders, 5)
    assert auditor.leaves(limit) == auditor.leaves()


@spec("7.1")
def test_a_page_from_the_end_of_the_log_is_empty_and_says_where_it_will_grow(
    new_keyholders: Keyholders, auditor: Auditor
) -> None:
    act(new_keyholders, 1)
    size = auditor.head()["size"]
    assert auditor.ask("entries", from_index=size) == {"entries": [], "next_index": size}
    act(new_keyholders, 1)
    assert [entry["index"] for entry in auditor.ask("entries", from_index=size)["entries"]] == [size, size + 1]


@spec("7.1")
def test_a_page_has_a_hundred_entries_unless_more_are_asked_for(new_keyholders: Keyholders, auditor: Auditor) -> None:
    for _ in range(3):
        act(new_keyholders, 40)
    assert len(auditor.ask("entries")["entries"]) == 100
    assert len(auditor.ask("entries", limit=110)["entries"]) == 110


@spec("7.1")
@pytest.mark.parametrize("size", [999_999, 1_000_000, 1 << 20])
def test_a_proof_among_a_million_leaves_is_under_two_kilobytes(size: int) -> None:
    spots = {*range(0, size, 9_973), 1, 2, 3, size // 2, size - 2, size - 1}
    inclusion = max(len(merkle.inclusion_path(index, size)) for index in spots)
    consistency = max(len(merkle.consistency_path(first, size)) for first in spots)
    assert inclusion <= 20
    assert consistency <= 21
    shown = InclusionProof(index=size, size=size, leaf_hash="f" * 64, path=["f" * 64] * inclusion, head=None)
    grown = ConsistencyProof(first=size, second=size, path=["f" * 64] * consistency)
    assert max(len(msgspec.json.encode(each)) for each in (shown, grown)) < 2048


BAD: list[tuple[str, Json, str]] = [
    ("entries", {"from_index": "-1"}, "`from_index` must be a whole number"),
    ("entries", {"from_index": "1.0"}, "`from_index` must be a whole number"),
    ("entries", {"from_index": ""}, "`from_index` must be a whole number"),
    ("entries", {"from_index": "٣"}, "`from_index` must be a whole number"),
    ("entries", {"from_index": "9" * 19}, "`from_index` must be a whole number"),
    ("entries", {"from_index": "9" * 18}, "`from_index` must be from 0 to "),
    ("entries", {"limit": "0"}, "`limit` must be a whole number from 1 to 1000"),
    ("entries", {"limit": "1001"}, "`limit` must be a whole number from 1 to 1000"),
    ("entries", {"limit": "all"}, "`limit` must be a whole number from 1 to 1000"),
    ("proof/inclusion", {}, "give `index` or `activity_id`, one of the two"),
    ("proof/inclusion", {"size": "1"}, "give `index` or `activity_id`, one of the two"),
    ("proof/inclusion", {"index": "0", "activity_id": "act_1"}, "give `index` or `activity_id`, one of the two"),
    ("proof/inclusion", {"index": "first"}, "`index` must be a whole number"),
    ("proof/inclusion", {"index": "0", "size": "-1"}, "`size` must be a whole number"),
    ("proof/inclusion", {"index": "0", "size": "0"}, "a log of 0 entries has none at index 0"),
    ("proof/inclusion", {"index": "1", "size": "1"}, "a log of 1 entries has none at index 1"),
    ("proof/inclusion", {"index": "999999"}, "has none at index 999999"),
    ("proof/inclusion", {"index": "0", "size": "999999"}, "`size` must be from 0 to "),
    ("proof/consistency", {"from": "2", "to": "1"}, "`from` must be from 0 to 1"),
    ("proof/consistency", {"from": "1", "to": "999999"}, "`to` must be from 0 to "),
    ("proof/consistency", {"from": "999999"}, "`from` must be from 0 to "),
    ("proof/consistency", {"from": "one"}, "`from` must be a whole number"),
    ("proof/consistency", {"from": "1", "to": "1e1"}, "`to` must be a whole number"),
]


@spec("7.1")
@pytest.mark.parametrize(("where", "query", "message"), BAD)
def test_what_cannot_be_proven_is_refused_by_name(
    keyholders: Keyholders, where: str, query: Json, message: str
) -> None:
    refused = keyholders.member.get(f"/audit/{where}", params=query)
    assert refusal_of(refused) == (400, "QWED-REQ-005")
    assert message in refused.json()["error"]["message"]


@spec("7.1")
def test_a_consistency_proof_needs_to_know_since_when(keyholders: Keyholders) -> None:
    refused = keyholders.member.get("/audit/proof/consistency", params={"to": 1})
    assert refusal_of(refused) == (400, "QWED-REQ-004")
    assert "`from` is required" in refused.json()["error"]["message"]


@spec("7.1", "9.8")
def test_another_organisations_activity_is_as_one_that_does_not_exist(
    spec_server: SpecServer, new_keyholders: Keyholders
) -> None:
    (theirs,) = act(new_keyholders, 1)
    with spec_server.client("foreign") as foreign:
        told = [foreign.get("/audit/proof/inclusion", params={"activity_id": name}) for name in (theirs, "act_none")]
    assert [refusal_of(each) for each in told] == [(404, "QWED-REQ-007")] * 2
    assert told[0].content == told[1].content


@spec("7.1", "9.8")
def test_each_organisation_has_a_log_of_its_own(
    spec_server: SpecServer, keyholders: Keyholders, new_keyholders: Keyholders
) -> None:
    ours, theirs = Auditor(keyholders.member), Auditor(new_keyholders.member)
    before = ours.head()
    mine = act(new_keyholders, 3)
    assert ours.head()["size"] == before["size"]
    assert theirs.head()["log_id"] != before["log_id"]
    named = {json.loads(leaf)["activity_id"] for leaf in theirs.leaves()}
    assert set(mine) < named
    assert named.isdisjoint(json.loads(leaf)["activity_id"] for leaf in ours.leaves())


@spec("7.1")
def test_a_changed_leaf_or_head_does_not_pass(new_keyholders: Keyholders, auditor: Auditor) -> None:
    act(new_keyholders, 3)
    leaves, head = auditor.leaves(), auditor.head()
    changed = [*leaves[:-1], leaves[-1].replace(b"APPROVED", b"DENIED")]
    assert mth(changed).hex() != head["root"]
    assert mth(leaves[:-1]).hex() != head["root"]
    assert mth([leaves[1], leaves[0], *leaves[2:]]).hex() != head["root"]
    header, _payload, signature = head["signature"].split(".")
    said = {**{name: head[name] for name in ("log_id", "root", "size", "time")}, "size": head["size"] - 1}
    forged = base64.urlsafe_b64encode(json.dumps(said, separators=(",", ":")).encode()).rstrip(b"=").decode()
    kid = json.loads(unpacked(header))["kid"]
    with pytest.raises(InvalidSignature):
        require_signature(auditor.keys[kid], f"{header}.{forged}".encode(), unpacked(signature))


# Tests with a server of their own


def _owner(server: Server) -> httpx.Client:
    return httpx.Client(base_url=server.base_url, headers={"X-API-Key": server.owner_key}, timeout=30)


@spec("7.1")
def test_whoever_kept_a_head_proves_after_any_end_that_the_log_has_only_grown(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    with _owner(server) as owner:
        empty = Auditor(owner).head()
        acted = act(Keyholders(owner, owner, owner), 5)
        kept, before = Auditor(owner).head(), Auditor(owner).leaves()
    server.kill()
    with open_gate(tmp_path / "data") as gate:
        agent = gate.register_agent(name="in process", principal_id="p")["agent_id"]
        context = {"conversation_id": "c", "step_number": 1}
        acted.append(gate.verify_action(agent, {"type": "calculate", "query": "1+1"}, context).action_id)
        assert gate.audit_head()["size"] == kept["size"] + 2
    server = Server(tmp_path / "data")
    with _owner(server) as owner:
        acted += act(Keyholders(owner, owner, owner), 4)
        auditor = Auditor(owner)
        leaves, head = auditor.leaves(), auditor.head()
        auditor.require_true(leaves, head)
        auditor.require_true(before, kept)
        auditor.require_signed(kept)
        assert leaves[: len(before)] == before
        assert auditor.ask("proof/consistency", from_=kept["size"])["path"] == hexed(proof(kept["size"], leaves))
        assert auditor.ask("proof/inclusion", index=0, size=kept["size"])["head"] == kept
        for action_id in acted:
            found = auditor.ask("proof/inclusion", activity_id=action_id)
            assert found["path"] == hexed(path(found["index"], leaves))
    server.kill()
    auditor.require_signed(empty)
    assert (empty["log_id"], empty["size"], empty["root"]) == (head["log_id"], 0, EMPTY)
    assert set(empty) == {"log_id", "size", "root", "time", "signature"}


# In process


@spec("7.1")
def test_a_gate_shows_and_proves_its_log_as_the_server_does() -> None:
    with open_gate() as gate:
        assert (gate.audit_head()["size"], gate.audit_head()["root"]) == (0, EMPTY)
        agent = gate.register_agent(name="a", principal_id="p")["agent_id"]
        context = {"conversation_id": "c", "step_number": 1}
        action = gate.verify_action(agent, {"type": "calculate", "query": "1+1"}, context).action_id
        leaves = [entry["leaf"].encode() for entry in gate.audit_entries()["entries"]]
        assert gate.audit_head()["root"] == mth(leaves).hex()
        found = gate.audit_inclusion(activity_id=action)
        assert (found["index"], found["path"]) == (1, hexed(path(1, leaves)))
        assert found == gate.audit_inclusion(1)
        assert gate.audit_consistency(1)["path"] == hexed(proof(1, leaves))


@spec("7.1")
@pytest.mark.parametrize(
    ("verb", "given"),
    [
        ("audit_inclusion", {}),
        ("audit_inclusion", {"index": 0, "activity_id": "act_1"}),
        ("audit_inclusion", {"index": -1}),
        ("audit_inclusion", {"index": 0, "size": -1}),
        ("audit_entries", {"from_index": -1}),
        ("audit_entries", {"limit": 1001}),
        ("audit_consistency", {"from_size": 2, "to_size": 1}),
        ("audit_consistency", {"from_size": -1}),
    ],
)
def test_a_gate_refuses_by_name_too(verb: str, given: Json) -> None:
    with open_gate() as gate:
        gate.register_agent(name="a", principal_id="p")
        with pytest.raises(GateError) as refused:
            getattr(gate, verb)(**given)
    assert refused.value.code == "QWED-REQ-005"


TAMPERED: dict[str, tuple[str, str, Json]] = {
    "a leaf was changed": ("UPDATE activities SET leaf = replace(leaf, 'act', 'cat')", "audit_inclusion", {"index": 0}),
    "a hash is gone": ("UPDATE activities SET nodes = ''", "audit_inclusion", {"index": 1}),
    "hashes are gone": ("UPDATE activities SET nodes = ''", "audit_consistency", {"from_size": 3}),
    "a leaf is gone": ("DELETE FROM activities", "audit_entries", {}),
    "its leaf is gone": ("DELETE FROM activities", "audit_inclusion", {"index": 0}),
}


@spec("7.1")
@pytest.mark.parametrize("how", TAMPERED)
def test_a_log_that_was_tampered_with_is_said_to_be_so(tmp_path: Path, how: str) -> None:
    statement, verb, given = TAMPERED[how]
    with open_gate(tmp_path) as gate:
        for name in "abcd":
            gate.register_agent(name=name, principal_id="p")
        StoredRows(tmp_path).change(f"{statement} WHERE log_index IN (0, 2)")
        with pytest.raises(GateError) as refused:
            getattr(gate, verb)(**given)
    assert (refused.value.code, refused.value.message) == (
        "QWED-SEC-003",
        "the stored log is not what was signed",
    )
