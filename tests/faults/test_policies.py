"""DESIGN 11, "In force": once a change of the policies is acknowledged, no process commits under the old set."""

import json
import shutil
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

import qwed
from qwed.gate import GateError
from qwed.store.data_directory import FILE_NAME
from tests.faults.crashing_server import AFTER_COMMIT, AFTER_LEAF, BEFORE_COMMIT
from tests.faults.scenario import CRASHING
from tests.support.campaign_table import campaign
from tests.support.data_directory_check import DataDirectoryCheck
from tests.support.server import Server
from tests.support.server_cluster import ServerCluster

Json = dict[str, Any]
ROUNDS, ROUNDS_AT_LENGTH = 200, 1_000
_AT_LENGTH = [pytest.mark.drill, campaign("P4", "changes of policies while decisions run")]
rounds = pytest.mark.parametrize("count", [ROUNDS, pytest.param(ROUNDS_AT_LENGTH, marks=_AT_LENGTH)])
ASKING_THREADS = 4
STEPS = 40
ALLOW, DENY = "allow", "deny"


def policy_of(then: str, note: str = "") -> str:
    return (
        f"policy: sums\nfacts: 1\ndescription: Sums. {note}\n"
        f'rules:\n  - id: all\n    when: action.type == "calculate"\n    then: {then}\n'
    )


class Places(NamedTuple):
    """Clients of one organisation's owner at every server of one store."""

    clients: list[httpx.Client]

    def change(self, number: int, text: str, version: str = "*") -> httpx.Response:
        """Apply a set with one policy at one of the servers."""
        client = self.clients[number % len(self.clients)]
        return client.put("/policies", json={"documents": [{"text": text}]}, headers={"If-Match": version})

    def register(self, number: int) -> str:
        client = self.clients[number % len(self.clients)]
        registered = client.post("/agents/register", json={"name": f"agent {number}", "principal_id": "p"})
        assert registered.status_code == 201, registered.text
        return str(registered.json()["agent_id"])

    def decide(self, number: int, agent_id: str, step: int) -> Json:
        client = self.clients[number % len(self.clients)]
        context = {"conversation_id": f"c{step // STEPS}", "step_number": step % STEPS + 1}
        body = {"action": {"type": "calculate", "query": f"{step} + 1"}, "context": context}
        answer: Json = client.post(f"/agents/{agent_id}/verify", json=body).json()
        return answer

    def leaves(self) -> list[Json]:
        """Return the whole log of the organisation."""
        found: list[Json] = []
        while page := self.clients[0].get(f"/audit/entries?from_index={len(found)}&limit=1000").json()["entries"]:
            found += [entry["leaf"] if isinstance(entry["leaf"], dict) else json.loads(entry["leaf"]) for entry in page]
        return found


def _organisation(base_url: str, owner_key: str) -> str:
    with httpx.Client(base_url=base_url, headers={"X-API-Key": owner_key}, timeout=60) as operator:
        return str(operator.post("/organisations", json={"name": "races"}).json()["owner_key"])


@pytest.fixture(params=["sqlite", "postgres"])
def places(request: pytest.FixtureRequest) -> Iterator[Places]:
    """One server on SQLite, and two on PostgreSQL."""
    if request.param == "sqlite":
        server: Server = request.getfixturevalue("server")
        urls, owner_key = [server.base_url], server.owner_key
    else:
        pair: ServerCluster = request.getfixturevalue("pair")
        urls, owner_key = pair.urls, pair.owner_key
    key = _organisation(urls[0], owner_key)
    with ExitStack() as clients:
        yield Places(
            [clients.enter_context(httpx.Client(base_url=url, headers={"X-API-Key": key}, timeout=60)) for url in urls]
        )


@rounds
def test_no_decision_is_committed_under_a_set_that_a_change_has_replaced(places: Places, count: int) -> None:
    assert places.change(0, policy_of(ALLOW)).status_code == 200
    agents = [places.register(number) for number in range(ASKING_THREADS + 1)]
    is_over = threading.Event()

    def ask(number: int) -> int:
        step = 0
        while not is_over.is_set():
            answer = places.decide(number, agents[number], step)
            assert answer["policy"]["then"] == (ALLOW if answer["decision"] == "APPROVED" else DENY), answer
            step += 1
        return step

    with ThreadPoolExecutor(ASKING_THREADS) as pool:
        asking = [pool.submit(ask, number) for number in range(ASKING_THREADS)]
        try:
            for number in range(count):
                changed = places.change(number, policy_of(DENY if number % 2 == 0 else ALLOW))
                assert changed.status_code == 200, changed.text
                # The next request at another server is decided under the set that was just acknowledged.
                answer = places.decide(number + 1, agents[-1], number)
                assert answer["policy"]["version"] == changed.json()["version"] == number + 2
        finally:
            is_over.set()
        decided = sum(future.result() for future in asking)
    under = _require_order(places.leaves())
    assert under == decided + count
    assert decided >= count // 10, "the decisions did not overlap with the changes"


def _require_order(leaves: list[Json]) -> int:
    """Require that each decision in the log names the set that was in force, and return how many there are."""
    version, decisions = 0, 0
    for leaf in leaves:
        if leaf.get("event") == "policies_changed":
            assert leaf["policy_version"] == version + 1, leaf
            version = leaf["policy_version"]
        elif leaf.get("event") is None:
            assert leaf["policy_version"] == version, leaf
            decisions += 1
    return decisions


def test_of_two_owners_who_apply_different_sets_at_once_one_wins(places: Places) -> None:
    with ThreadPoolExecutor(2) as pool:
        for number in range(40):
            start = threading.Barrier(2)

            def apply(side: int, version: int = number, start: threading.Barrier = start) -> httpx.Response:
                start.wait()
                return places.change(side, policy_of(ALLOW, f"{version} {side}"), f'"{version}"')

            answers = list(pool.map(apply, range(2)))
            statuses = sorted(answer.status_code for answer in answers)
            assert statuses == [200, 412], [answer.text for answer in answers]
            refused = next(answer for answer in answers if answer.status_code == 412)
            assert refused.json()["error"]["details"]["version"] == number + 1
    assert len(places.clients[0].get("/policies/versions").json()["versions"]) == 40


# A process that ends


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Data directory with one policy in force, and an agent."""
    with qwed.open(tmp_path / "data") as gate:
        gate.register_agent(name="a", principal_id="p")
        gate.apply_policies({"sums.yaml": policy_of(ALLOW)})
    return tmp_path / "data"


@pytest.mark.parametrize("place", ["change", BEFORE_COMMIT, AFTER_LEAF, AFTER_COMMIT, "changed"])
def test_a_change_cut_short_is_in_force_whole_or_not_at_all(directory: Path, place: str) -> None:
    owner_key = (directory / "owner.key").read_text().strip()
    server = Server(directory, (*CRASHING, "--place", place, "--times", "1"))
    body, headers = {"documents": [{"text": policy_of(DENY)}]}, {"X-API-Key": owner_key, "If-Match": '"1"'}
    with (
        httpx.Client(base_url=server.base_url, headers=headers, timeout=60) as api,
        pytest.raises(httpx.TransportError),
    ):
        api.put("/policies", json=body)
    assert server.wait() == -signal.SIGKILL
    DataDirectoryCheck(directory).require_consistent()
    is_kept = place in (AFTER_COMMIT, "changed")
    with qwed.open(directory) as gate:
        assert gate.get_policies().version == (2 if is_kept else 1)
        agent_id = gate.list_agents()[0].agent_id
        answer = gate.verify_action(
            agent_id, {"type": "calculate", "query": "1 + 1"}, {"conversation_id": "c", "step_number": 1}
        )
        assert answer.decision == ("DENIED" if is_kept else "APPROVED")
        again = gate.apply_policies({"sums.yaml": policy_of(DENY)})
        assert (again.version, again.changed) == (2, not is_kept)


# A set that cannot be read


DAMAGE: dict[str, Callable[[sqlite3.Connection], Any]] = {
    "no JSON": lambda database: database.execute("UPDATE policy_sets SET documents = 'x'"),
    "another text": lambda database: database.execute(
        "UPDATE policy_sets SET documents = replace(documents, 'allow', 'deny')"
    ),
    "another digest": lambda database: database.execute("UPDATE policy_sets SET digest = 'x'"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_under_a_damaged_set_nothing_is_decided_and_the_log_of_the_server_says_why(
    directory: Path, tmp_path: Path, kind: str
) -> None:
    damaged = Path(shutil.copytree(directory, tmp_path / "damaged"))
    with closing(sqlite3.connect(damaged / FILE_NAME)) as database, database:
        DAMAGE[kind](database)
    owner_key = (damaged / "owner.key").read_text().strip()
    server = Server(damaged)
    with httpx.Client(base_url=server.base_url, headers={"X-API-Key": owner_key}, timeout=60) as api:
        agent_id = api.get("/agents").json()["agents"][0]["agent_id"]
        context = {"conversation_id": "c", "step_number": 1}
        body = {"action": {"type": "calculate", "query": "1 + 1"}, "context": context}
        size = api.get("/audit/head").json()["size"]
        for _ in range(2):
            refused = api.post(f"/agents/{agent_id}/verify", json=body)
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "QWED-SYS-003")
        shown = api.get("/policies")
        assert (shown.status_code, shown.json()["error"]["details"]["version"]) == (503, 1)
        assert api.get("/audit/head").json()["size"] == size, "no leaf, because nothing was decided"
        replaced = api.put("/policies", json={"documents": [{"text": policy_of(DENY)}]}, headers={"If-Match": '"1"'})
        assert replaced.json()["version"] == 2
        assert api.post(f"/agents/{agent_id}/verify", json=body).json()["decision"] == "DENIED"
    assert server.stop() == 0
    assert "policies unreadable; no decision given: version 1 is damaged" in server.log.read_text()


def test_a_damaged_version_cannot_be_rolled_back_to(directory: Path) -> None:
    with qwed.open(directory) as gate:
        gate.apply_policies({"sums.yaml": policy_of(DENY)})
    with closing(sqlite3.connect(directory / FILE_NAME)) as database, database:
        database.execute("UPDATE policy_sets SET documents = '[]' WHERE version = 1")
    with qwed.open(directory) as gate, pytest.raises(GateError, match="version 1 is damaged"):
        gate.roll_back_policies(1)
