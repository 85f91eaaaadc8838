"""What must be true of a fleet, whichever of its servers was asked and whatever happened to them meanwhile."""

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from typing import Any

from joserfc.jwk import KeySet

from qwed.ledger import verifier
from qwed.ledger.tokens import check_attestation
from tests.support.books import Books, said_by
from tests.support.fleet import Fleet
from tests.support.load import Load
from tests.support.receipts import require_receipt

Json = dict[str, Any]

_VERIFY = (sys.executable, "-m", "qwed.cli", "audit", "verify", "--json")


def require_one_truth(fleet: Fleet, told: Mapping[str, str]) -> Books:
    """Everything told is kept, once; the books are one story; the audit finds nothing, from the first head on."""
    require_grown(fleet)
    books = Books(fleet.data_dir, fleet.database_url)
    books.require_one_story()
    kept = {one.activity_id: one.decision for one in books.activities}
    assert len(kept) == len(books.activities), "an activity is there twice"
    assert told == {action_id: kept.get(action_id) for action_id in told}
    require_verified(fleet)
    return books


def require_kept(fleet: Fleet, load: Load) -> None:
    """After whatever happened under load: nothing of it is lost or doubled, and all that was permitted is proven."""
    books = require_one_truth(fleet, load.told)
    load.require_kept(books)
    require_proven(fleet, load.permitted, books)


def require_grown(fleet: Fleet) -> None:
    """P5: the log goes on from every head that was kept, whoever is asked."""
    last, keys = fleet.keep_head(), verifier.public_keys(_jwks(fleet))
    root = verifier.read_head(last, keys).root
    for number, kept in enumerate(fleet.heads):
        asked = {"from": kept["size"], "to": last["size"]}
        shown = fleet.client(number % len(fleet.servers)).get("/audit/proof/consistency", params=asked).json()
        path = [bytes.fromhex(each) for each in shown["path"]]
        first = verifier.read_head(kept, keys).root
        assert verifier.verify_consistency(kept["size"], last["size"], path, first, root)


def require_verified(fleet: Fleet) -> None:
    """`qwed audit verify` on the database and its keys, against every head that was kept."""
    heads = fleet.data_dir.parent / "heads.jsonl"
    heads.write_text("".join(json.dumps(head) + "\n" for head in fleet.heads))
    asked = ("--data-dir", str(fleet.data_dir), "--database", fleet.database_url, "--head", str(heads))
    done = subprocess.run([*_VERIFY, *asked], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def require_proven(fleet: Fleet, answers: Iterable[Json], books: Books) -> None:
    """Each permitted answer proves its place in the log, under a head that the log has."""
    proofs = Proofs(_jwks(fleet), books)
    for answer in answers:
        if isinstance(answer["attestation"], str):
            proofs.require_token(answer["attestation"], answer["action_id"])
        else:
            proofs.require_receipt(answer["attestation"], answer["action_id"])


class Proofs:
    """The log of the only organisation, for whoever was given a proof of a part of it."""

    def __init__(self, jwks: Any, books: Books) -> None:
        self._set, self._keys = KeySet.import_key_set(jwks), verifier.public_keys(jwks)
        self._heads = {row["size"]: row["signature"] for row in books.heads}
        self._leaves = [leaf for _organisation_id, leaf, _nodes in books.leaves]
        self._now = time.time()

    def require_receipt(self, receipt: Json, action_id: str) -> None:
        """A receipt holds by itself, and what it says is what the log says."""
        require_receipt(receipt, self._set, action_id)
        assert self._heads[receipt["head"]["size"]] == receipt["head"]["signature"]
        assert self._leaves[receipt["index"]] == receipt["leaf"]

    def require_token(self, jwt: str, action_id: str) -> None:
        """A token holds to whoever has the keys, and what it says is what the log says."""
        checked = check_attestation(jwt, self._keys, now=self._now)
        assert checked.valid, checked
        assert checked.claims is not None
        claims = checked.claims["qwed"]
        head = verifier.read_head(said_by(self._heads[claims["log"]["size"]]), self._keys)
        assert (claims["activity_id"], claims["log"]["root"]) == (action_id, head.root.hex())
        assert json.loads(self._leaves[claims["log"]["index"]])["activity_id"] == action_id


def _jwks(fleet: Fleet) -> Any:
    return fleet.client(-1).get("/.well-known/jwks.json").json()
