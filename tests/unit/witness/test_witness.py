"""Witness of a real log: what it publishes and when, and how it detects a changed log."""

import json
import logging
import os
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

import qwed
from qwed.futures import run_in_thread
from qwed.gate import Gate
from qwed.kernel.admin.organisations import add_organisation
from qwed.kernel.audit_change import GATE, Actor
from qwed.ledger.sequencer import Head
from qwed.settings import SettingsError
from qwed.store.migrate import migrate
from qwed.store.protocol import StoreError
from qwed.witness.publishers import FilePublisher, Publisher, PublishResult, StdoutPublisher
from qwed.witness.witness import Witness
from tests.support.agent_names import unique_name
from tests.support.fault_injection import FailingProxy
from tests.support.loop_threads import thread_of
from tests.support.polling import until
from tests.support.server import SERVE, Server
from tests.support.webhook_receivers import PATIENCE, WebhookReceiver, answering, unused_port

QUICK = 0.01
OFTEN = 3600.0
"""Longer than a test takes, so that only start and end publish."""


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    with qwed.open(tmp_path / "data") as opened:
        yield opened


def agent_of(gate: Gate) -> str:
    return str(gate.register_agent(name=unique_name("witnessed"), principal_id="ops").agent_id)


def heads_in(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def sizes_in(file: Path) -> list[int]:
    return [head["size"] for head in heads_in(file)]


class Pipe:
    """Standard output that is read line by line, which waits for a publication."""

    def __init__(self) -> None:
        reading, self._writing = os.pipe()
        self._reader = os.fdopen(reading)
        self.publisher = StdoutPublisher(self._writing)

    def next(self) -> dict[str, Any]:
        head: dict[str, Any] = json.loads(self._reader.readline())["qwed_head"]
        return head

    def close(self) -> None:
        os.close(self._writing)
        self._reader.close()


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    opened = Pipe()
    yield opened
    opened.close()


@pytest.fixture
def witness(gate: Gate) -> Iterator[Callable[..., Witness]]:
    """Start witnesses next to the gate, and close them before it."""
    started: list[Witness] = []

    def start(*publishers: Publisher, log: Any = None, seconds: float = QUICK) -> Witness:
        services = gate.services
        created = Witness(log or services.store, services.signer.keyring, publishers, seconds)
        started.append(created)
        created.start()
        return created

    yield start
    for one in started:
        one.close()


class ScriptedPublisher:
    """Publisher with scripted outcomes; `turns` counts its calls."""

    kind = "file"
    name = "file:troubled"

    def __init__(self, *outcomes: str | BaseException | None) -> None:
        self._outcomes = list(outcomes)
        self.published: list[Head] = []
        self.turns = threading.Semaphore(0)

    async def publish(self, heads: Sequence[Head]) -> PublishResult:
        outcome = self._outcomes.pop(0) if self._outcomes else None
        self.turns.release()
        if isinstance(outcome, BaseException):
            raise outcome
        if outcome is not None:
            return PublishResult(0, outcome)
        self.published.extend(heads)
        return PublishResult(len(heads))

    def wait(self, turns: int) -> None:
        for _ in range(turns):
            assert self.turns.acquire(timeout=PATIENCE)


# Timing


def test_the_newest_head_is_published_at_the_start_and_at_the_end(gate: Gate, witness: Any, tmp_path: Path) -> None:
    agent_of(gate)
    pipe, file = Pipe(), FilePublisher(tmp_path / "heads")
    started = witness(file, pipe.publisher, seconds=OFTEN)
    assert pipe.next()["size"] == 1
    agent_of(gate)
    agent_of(gate)
    started.close()
    assert pipe.next()["size"] == 3
    pipe.close()
    assert sizes_in(file.file) == [1, 3]
    assert heads_in(file.file)[-1]["signature"] == gate.services.store.latest_head(gate.organisation_id)


def test_what_has_grown_is_published_at_the_next_turn_and_nothing_twice(gate: Gate, witness: Any, pipe: Pipe) -> None:
    started = witness(pipe.publisher)
    for size in range(1, 4):
        agent_of(gate)
        assert pipe.next()["size"] == size
    started.close()
    assert (started.published["stdout"], started.state) == (3, "ready")


def test_every_organisation_has_its_heads(gate: Gate, witness: Any, pipe: Pipe) -> None:
    agent_of(gate)
    started = witness(pipe.publisher)
    assert pipe.next()["log_id"] == gate.organisation_id
    created = run_in_thread(add_organisation("second", Actor(GATE, gate.organisation_id, "owner"), gate.services), 30)
    witness_after = {(head["log_id"], head["size"]) for head in (pipe.next(), pipe.next())}
    assert witness_after == {(gate.organisation_id, 2), (created.organisation_id, 1)}
    started.close()
    assert started.published["stdout"] == 3


def test_an_empty_log_has_nothing_to_publish(witness: Any, tmp_path: Path) -> None:
    witness(FilePublisher(tmp_path / "heads")).close()
    assert not (tmp_path / "heads").exists()


def test_without_a_place_there_is_no_thread(gate: Gate, witness: Any) -> None:
    before = threading.active_count()
    started = witness()
    assert (started.state, threading.active_count()) == ("none", before)


def test_after_a_restart_what_the_file_has_is_not_written_again(tmp_path: Path) -> None:
    file, publisher = tmp_path / "heads", tmp_path / "data"
    for _ in range(3):
        with qwed.open(publisher, witness=(f"file:{file}",)):
            pass
    assert sizes_in(file) == []
    for _ in range(3):
        with qwed.open(publisher, witness=(f"file:{file}",)) as gate:
            if not sizes_in(file):
                agent_of(gate)
    assert sizes_in(file) == [1]


def test_a_place_that_cannot_be_used_stops_the_opening_and_leaves_nothing_open(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="QWED_WITNESS"):
        qwed.open(tmp_path / "data", witness=("https://localhost/",))
    with qwed.open(tmp_path / "data"):
        pass


# Failures


def test_a_witness_that_fails_is_said_once_for_each_change_and_tried_again(
    gate: Gate, witness: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "qwed.witness")
    agent_of(gate)
    publisher = ScriptedPublisher("a full disk", "a full disk", "another trouble", None, OSError("unexpected"), None)
    started = witness(publisher)
    publisher.wait(4)
    agent_of(gate)
    publisher.wait(2)
    started.close()
    records = [(record.getMessage(), getattr(record, "error", None)) for record in caplog.records]
    again = ("witness publishing restored", None)
    assert records == [
        ("witness publishing failed", "a full disk"),
        again,
        ("witness publishing failed", "OSError: unexpected"),
        again,
    ]
    assert [head.size for head in publisher.published] == [1, 2]
    assert (started.failed["file"], started.published["file"], started.state) == (4, 2, "ready")


def test_a_place_that_fails_holds_up_no_other_and_no_decision(gate: Gate, witness: Any, pipe: Pipe) -> None:
    publisher = ScriptedPublisher(*["never works"] * 10_000)
    started = witness(publisher, pipe.publisher)
    agent_of(gate)
    assert pipe.next()["size"] == 1
    publisher.wait(3)
    started.close()
    assert started.state == "failing"


def test_a_store_that_cannot_be_read_for_a_moment_is_a_failing_turn(gate: Gate, witness: Any, pipe: Pipe) -> None:
    agent_of(gate)
    log = FailingProxy(gate.services.store, "latest_heads", StoreError("could not read"), once=True)
    started = witness(pipe.publisher, log=log)
    assert pipe.next()["size"] == 1
    started.close()
    assert started.failed["stdout"] == 1


def test_closing_does_not_wait_for_a_receiver_that_is_gone(gate: Gate, tmp_path: Path) -> None:
    agent_of(gate)
    url = f"http://127.0.0.1:{unused_port()}/"
    gate.close()
    with qwed.open(tmp_path / "data", witness=(url,), webhook_allow_private=True) as again:
        agent_of(again)
    assert not thread_of(again.witness).is_alive()
    assert again.witness.state == "failing"


def test_a_receiver_hears_of_the_start_and_of_the_end(tmp_path: Path) -> None:
    there = WebhookReceiver(answering(200))
    url = there.url(scheme="http")
    with qwed.open(tmp_path / "data", witness=(url,), webhook_allow_private=True) as gate:
        agent_of(gate)
    assert json.loads(there.next().body)["size"] == 1
    there.close()


# Contradictions


def copied(data: Path, to: Path) -> Path:
    """Copy the data directory of a closed gate."""
    shutil.copytree(data, to)
    return to


def grown(data: Path, file: Path, times: int) -> Witness:
    """Add so many leaves to the log in `data`, run its witness once, and return it."""
    with qwed.open(data) as gate:
        for _ in range(times):
            agent_of(gate)
    with qwed.open(data, witness=(f"file:{file}",)) as gate:
        return gate.witness


def test_an_older_copy_of_the_database_is_noticed_and_stays_noticed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data, file = tmp_path / "data", tmp_path / "heads"
    grown(data, file, 2)
    older = copied(data, tmp_path / "older")
    grown(data, file, 3)
    assert sizes_in(file) == [2, 5]
    witness_after = grown(older, file, 0)
    assert witness_after.state == "contradicted"
    (contradiction,) = witness_after.contradicted.values()
    assert (contradiction.size, contradiction.reason) == (5, "the log has only 2 entries: an older copy was restored")
    record = next(record for record in caplog.records if record.levelname == "ERROR")
    assert record.getMessage() == "audit log contradicts a published head"
    assert vars(record)["log_id"] == contradiction.log_id
    # The log grows past the head it contradicts; the contradiction is still detected.
    assert grown(older, file, 4).state == "contradicted"
    assert sizes_in(file) == [2, 5, 6]
    last = grown(older, file, 0)
    (contradiction,) = last.contradicted.values()
    assert (contradiction.size, contradiction.reason) == (
        5,
        "the log has another root at that size: its entries were changed",
    )


def test_the_right_database_put_back_ends_the_alarm(tmp_path: Path) -> None:
    data, file = tmp_path / "data", tmp_path / "heads"
    grown(data, file, 2)
    older = copied(data, tmp_path / "older")
    grown(data, file, 1)
    assert grown(older, file, 0).state == "contradicted"
    assert grown(data, file, 0).state == "ready"


def test_a_log_that_is_gone_is_noticed_by_our_own_signature_and_another_nodes_is_none_of_ours(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data, file = tmp_path / "data", tmp_path / "heads"
    grown(data, file, 2)
    assert grown(tmp_path / "other", file, 1).state == "ready"
    unrelated = [vars(record) for record in caplog.records if record.name == "qwed.witness"]
    assert [(record["kind"], record["count"]) for record in unrelated] == [("heads of other logs", 1)]
    (data / "qwed.db").unlink()
    # An empty database, as the first start creates it.
    with closing(sqlite3.connect(data / "qwed.db", isolation_level=None)) as connection:
        migrate(connection)
    witness_after = grown(data, file, 0)
    assert (witness_after.state, [item.size for item in witness_after.contradicted.values()]) == ("contradicted", [2])


@pytest.mark.parametrize("nodes", ["substr(nodes, 2) || substr(nodes, 1, 1)", "''"])
def test_a_tree_that_was_changed_under_its_heads_is_noticed(
    gate: Gate, witness: Any, tmp_path: Path, nodes: str
) -> None:
    publisher = FilePublisher(tmp_path / "heads")
    agent_of(gate)
    agent_of(gate)
    witness(publisher).close()
    with closing(sqlite3.connect(tmp_path / "data" / "qwed.db")) as connection, connection:
        connection.execute(f"UPDATE activities SET nodes = {nodes} WHERE log_index = 1")
    started = witness(publisher)
    started.close()
    assert started.state == "contradicted"


def test_lines_that_are_no_heads_are_told_and_are_no_alarm(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data, file = tmp_path / "data", tmp_path / "heads"
    grown(data, file, 2)
    head = heads_in(file)[0]
    odd = [{**head, "size": -(10**30)}, {**head, "size": 10**30}, {**head, "log_id": "\ud800"}, {**head, "root": 3}]
    with file.open("a") as lines:
        lines.writelines(f"{json.dumps(item)}\n" for item in odd)
        lines.write('{"log_id": 3, "signature": ""}\nnothing\n\n{"log_id": "or')
    assert grown(data, file, 1).state == "ready"
    details = next(vars(record) for record in caplog.records if record.name == "qwed.witness")
    assert (details["kind"], details["count"]) == ("lines without a head", 7)
    assert json.loads(file.read_text().splitlines()[-1])["size"] == 3


def test_a_head_of_our_log_that_we_never_signed_is_an_alarm_too(tmp_path: Path) -> None:
    data, file = tmp_path / "data", tmp_path / "heads"
    grown(data, file, 2)
    head = heads_in(file)[0]
    for odd in ({**head, "size": 7}, {**head, "root": "00" * 32}, {**head, "size": 1}, {**head, "size": 0}):
        file.write_text(json.dumps(odd))
        assert grown(data, file, 0).state == "contradicted"


# The server


def test_a_server_says_that_its_log_was_contradicted_and_goes_on_deciding(tmp_path: Path) -> None:
    data, file = tmp_path / "data", tmp_path / "heads"
    grown(data, file, 1)
    older = copied(data, tmp_path / "older")
    grown(data, file, 1)
    server = Server(older, QWED_WITNESS=f"stdout,file:{file}")
    try:
        with httpx.Client(base_url=server.base_url, headers={"X-API-Key": server.owner_key}, timeout=30) as client:
            until(lambda: "starting" not in client.get("/ready").json()["parts"].values())
            ready = client.get("/ready")
            assert (ready.status_code, ready.json()["ready"]) == (503, False)
            assert ready.json()["parts"]["witness"] == "contradicted"
            body = {"name": unique_name("still"), "principal_id": "ops"}
            assert client.post("/agents/register", json=body).status_code == 201
            metrics = client.get("/metrics").text.splitlines()
    finally:
        assert server.stop() == 0
    assert "qwed_witness_contradictions 1.0" in metrics
    assert any(
        line.startswith('qwed_witness_publications_total{outcome="published",publisher="stdout"}') for line in metrics
    )
    assert '"event": "audit log contradicts a published head"' in server.log.read_text()
    assert sizes_in(file) == [1, 2, 2]


def test_a_server_with_a_place_that_cannot_be_used_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"QWED_WITNESS: `https://10\.0\.0\.1/` cannot be used: "):
        Server(tmp_path / "data", SERVE, QWED_WITNESS="https://10.0.0.1/")
    with pytest.raises(RuntimeError, match="QWED_WITNESS: `syslog` cannot be used: "):
        Server(tmp_path / "data", SERVE, QWED_WITNESS="syslog")
    assert not (tmp_path / "data").exists()
