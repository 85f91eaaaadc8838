"""Invariants of a server cluster, whichever server answers and whatever failed meanwhile."""

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from typing import Any

from joserfc.jwk import KeySet

from qwed.ledger import verifier
from qwed.ledger.attestation_verifier import check_attestation
from tests.support.data_directory_check import DataDirectoryCheck, decode_head
from tests.support.load_callers import LoadGenerator
from tests.support.receipt_check import require_receipt
from tests.support.server_cluster import ServerCluster

Json = dict[str, Any]

_VERIFY = (sys.executable, "-m", "qwed.cli", "audit", "verify", "--json")


def require_consistent_log(cluster: ServerCluster, told: Mapping[str, str]) -> DataDirectoryCheck:
    """Require that every reported decision is stored once, and that log and audit agree from the first head on."""
    require_append_only(cluster)
    books = DataDirectoryCheck(cluster.data_dir, cluster.database_url)
    books.require_consistent()
    kept = {one.activity_id: one.decision for one in books.activities}
    assert len(kept) == len(books.activities), "an activity is there twice"
    assert told == {action_id: kept.get(action_id) for action_id in told}
    require_audit_verifies(cluster)
    return books


def require_nothing_lost(cluster: ServerCluster, load: LoadGenerator) -> None:
    """Require that nothing is lost or duplicated after a load, and that every permitted action has a proof."""
    books = require_consistent_log(cluster, load.told)
    load.require_kept(books)
    require_proofs(cluster, load.permitted, books)


def require_append_only(cluster: ServerCluster) -> None:
    """Require that the log extends every head that was kept, on every server (P5)."""
    last, keys = cluster.keep_head(), verifier.public_keys(_jwks(cluster))
    root = verifier.read_head(last, keys).root
    for number, kept in enumerate(cluster.heads):
        asked = {"from": kept["size"], "to": last["size"]}
        shown = cluster.client(number % len(cluster.servers)).get("/audit/proof/consistency", params=asked).json()
        path = [bytes.fromhex(each) for each in shown["path"]]
        first = verifier.read_head(kept, keys).root
        assert verifier.verify_consistency(kept["size"], last["size"], path, first, root)


def require_audit_verifies(cluster: ServerCluster) -> None:
    """Run `qwed audit verify` on the database and its keys against every head that was kept."""
    heads = cluster.data_dir.parent / "heads.jsonl"
    heads.write_text("".join(json.dumps(head) + "\n" for head in cluster.heads))
    asked = ("--data-dir", str(cluster.data_dir), "--database", cluster.database_url, "--head", str(heads))
    done = subprocess.run([*_VERIFY, *asked], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def require_proofs(cluster: ServerCluster, answers: Iterable[Json], books: DataDirectoryCheck) -> None:
    """Require that each permitted answer proves its position in the log under a head of the log."""
    proofs = ProofCheck(_jwks(cluster), books)
    for answer in answers:
        if isinstance(answer["attestation"], str):
            proofs.require_token(answer["attestation"], answer["action_id"])
        else:
            proofs.require_receipt(answer["attestation"], answer["action_id"])


class ProofCheck:
    """Verifier of receipts and tokens against the log of the only organisation."""

    def __init__(self, jwks: Any, books: DataDirectoryCheck) -> None:
        self._set, self._keys = KeySet.import_key_set(jwks), verifier.public_keys(jwks)
        self._heads = {row["size"]: row["signature"] for row in books.heads}
        self._leaves = [leaf for _organisation_id, leaf, _nodes in books.leaves]
        self._now = time.time()

    def require_receipt(self, receipt: Json, action_id: str) -> None:
        """Require that a receipt verifies on its own and agrees with the log."""
        require_receipt(receipt, self._set, action_id)
        assert self._heads[receipt["head"]["size"]] == receipt["head"]["signature"]
        assert self._leaves[receipt["index"]] == receipt["leaf"]

    def require_token(self, jwt: str, action_id: str) -> None:
        """Require that a token verifies with the public keys and agrees with the log."""
        checked = check_attestation(jwt, self._keys, now=self._now)
        assert checked.valid, checked
        assert checked.claims is not None
        claims = checked.claims["qwed"]
        head = verifier.read_head(decode_head(self._heads[claims["log"]["size"]]), self._keys)
        assert (claims["activity_id"], claims["log"]["root"]) == (action_id, head.root.hex())
        assert json.loads(self._leaves[claims["log"]["index"]])["activity_id"] == action_id


def _jwks(cluster: ServerCluster) -> Any:
    return cluster.client(-1).get("/.well-known/jwks.json").json()
