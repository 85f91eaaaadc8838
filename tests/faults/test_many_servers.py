"""DESIGN 6: several servers on one PostgreSQL. Singleton work is done by one of them, and survives its death."""

import asyncio
import base64
import itertools
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import psycopg
import pytest

from qwed.webhooks.dispatcher import POLL_SECONDS
from tests.support import temp_directories
from tests.support.agent_names import unique_name
from tests.support.postgres_server import Databases
from tests.support.server import SERVE, Server
from tests.support.webhook_receivers import Behaviour, ReceiverConnection, WebhookReceiver, answering

PATIENCE = 60.0
EMAIL = {"type": "send_email", "target": "somebody@example.com", "parameters": {"body": "hello"}}
SUM = {"type": "calculate", "query": "2+2"}
REASON = {"reason": "it is time"}
_numbers = itertools.count(1)


def wait_until_true(so: Callable[[], Any]) -> None:
    """Poll until the condition holds."""
    ends, tick = time.monotonic() + PATIENCE, threading.Event()
    while not so():
        assert time.monotonic() < ends
        tick.wait(0.05)


class ServerWithClient(NamedTuple):
    """Server, and its owner's client."""

    server: Server
    api: httpx.Client

    def register(self, **fields: Any) -> str:
        answer = self.api.post(
            "/agents/register", json={"name": unique_name("one"), "principal_id": "user_7", **fields}
        )
        assert answer.status_code == 201, answer.text
        agent_id: str = answer.json()["agent_id"]
        return agent_id

    def ask(self, agent_id: str, action: dict[str, Any], headers: dict[str, str] | None = None, **context: Any) -> Any:
        at = {"conversation_id": f"c{next(_numbers)}", "step_number": 1, **context}
        body = {"action": action, "context": at}
        return self.api.post(f"/agents/{agent_id}/verify", json=body, headers=headers).json()

    @contextmanager
    def sends(self, path: str, body: Any) -> Iterator[None]:
        """Send a request without waiting for its answer."""
        text = json.dumps(body)
        head = f"POST {path} HTTP/1.1\r\nhost: here\r\nx-api-key: {self.server.owner_key}\r\n"
        where = httpx.URL(self.server.base_url)
        with socket.create_connection((where.host, where.port or 80), PATIENCE) as connection:
            connection.sendall(f"{head}content-length: {len(text)}\r\n\r\n{text}".encode())
            yield

    def job(self, job_id: str) -> Any:
        return self.api.get(f"/verify/batch/{job_id}").json()


class ServerPair(NamedTuple):
    """Two servers on one database. The first one is the leader, because it was alone."""

    leads: ServerWithClient
    follows: ServerWithClient
    url: str

    def rows(self, query: str) -> list[Any]:
        with psycopg.connect(self.url) as connection:
            return connection.execute(query.encode()).fetchall()


def start(url: str, data: Path, stack: ExitStack, *options: str, **settings: str) -> ServerWithClient:
    environment = {"QWED_DATABASE_URL": url, "QWED_WEBHOOK_ALLOW_PRIVATE": "true", **settings}
    server = Server(data, [*SERVE, *options], **environment)
    stack.callback(server.kill)
    client = httpx.Client(base_url=server.base_url, headers={"X-API-Key": server.owner_key}, timeout=PATIENCE)
    return ServerWithClient(server, stack.enter_context(client))


def start_two(postgres: Databases, place: Path, stack: ExitStack) -> ServerPair:
    url = postgres.database()
    stack.callback(postgres.drop, url)
    environment = {
        "QWED_WITNESS": f"file:{place / 'heads'}",
        "QWED_WITNESS_SECONDS": "1",
        "QWED_APPROVAL_TTL_SECONDS": "2",
    }
    return ServerPair(*(start(url, place / "data", stack, **environment) for _ in range(2)), url)


@pytest.fixture(scope="module")
def two(postgres: Databases, memory: Path) -> Iterator[ServerPair]:
    """Two servers, for tests that stop neither."""
    with ExitStack() as stack:
        found = start_two(postgres, temp_directories.make_directory_in(memory), stack)
        yield found
        assert [each.server.stop() for each in (found.follows, found.leads)] == [0, 0]


def receiving(behaviour: Behaviour) -> Iterator[WebhookReceiver]:
    made = WebhookReceiver(behaviour)
    yield made
    made.close()


@pytest.fixture
def receiver() -> Iterator[WebhookReceiver]:
    yield from receiving(answering(200))


@pytest.fixture
def slow_receiver() -> Iterator[WebhookReceiver]:
    """Receiver that answers later than the delivery interval, so that a second deliverer would deliver again."""

    async def slowly(line: ReceiverConnection) -> None:
        await asyncio.sleep(2 * POLL_SECONDS)
        await answering(200)(line)

    yield from receiving(slowly)


def test_a_notice_from_any_of_them_is_delivered_once(two: ServerPair, slow_receiver: WebhookReceiver) -> None:
    receiver = slow_receiver
    assert two.leads.api.put("/webhook", json={"url": receiver.url(scheme="http")}).status_code == 200
    agent = two.leads.register()
    asked = [each.ask(agent, EMAIL)["action_id"] for each in (two.leads, two.follows) for _ in range(3)]
    wait_until_true(
        lambda: two.follows.api.get("/webhook").json()["waiting"] == 0 and receiver.connections >= len(asked)
    )
    two.leads.api.delete("/webhook")
    bodies = [receiver.heard.get_nowait().body.decode() for _ in range(receiver.heard.qsize())]
    told = [action for action in asked for body in bodies if action in body and "expired" not in body]
    assert sorted(told) == sorted(asked)


def test_a_batch_that_any_of_them_was_sent_is_answered_and_seen_from_all(two: ServerPair) -> None:
    items = [{"query": f"{number} + 1 = {number + 1}", "type": "math"} for number in range(5)]
    with two.leads.sends("/verify/batch", {"items": items}), two.follows.sends("/verify/batch", {"items": items}):
        wait_until_true(lambda: two.rows("SELECT count(finished_at) FROM jobs") == [(2,)])
    for (job_id,) in two.rows("SELECT job_id FROM jobs"):
        assert two.leads.job(job_id) == two.follows.job(job_id)
        assert (two.follows.job(job_id)["status"], two.follows.job(job_id)["completed_items"]) == ("completed", 5)


def test_an_approval_that_nobody_came_for_runs_out_though_nobody_asks(two: ServerPair) -> None:
    agent = two.follows.register()
    assert two.follows.ask(agent, EMAIL)["decision"] == "PENDING"
    state = f"SELECT count(*) FROM approvals WHERE agent_id = '{agent}' AND state = 'expired'"
    wait_until_true(lambda: two.rows(state) == [(1,)])


def test_a_key_that_one_of_them_rotated_is_the_key_of_all(two: ServerPair) -> None:
    agent = two.follows.register()
    kid = two.leads.api.post("/signing-key/rotate", json=REASON).json()["kid"]
    jwks = "/.well-known/jwks.json"
    wait_until_true(lambda: kid in {key["kid"] for key in two.follows.api.get(jwks).json()["keys"]})
    assert two.follows.ask(agent, SUM)["decision"] == "APPROVED"
    signed = two.leads.api.get("/audit/head").json()["signature"].partition(".")[0]
    assert json.loads(base64.urlsafe_b64decode(signed + "=="))["kid"] == kid


def test_heads_are_published_by_one_of_them(two: ServerPair) -> None:
    agent = two.follows.register()
    assert two.follows.ask(agent, SUM)["decision"] == "APPROVED"
    heads = two.leads.server.data_dir.parent / "heads"
    size = two.leads.api.get("/audit/head").json()["size"]
    wait_until_true(lambda: heads.exists() and f'"size":{size}' in heads.read_text().replace(" ", ""))
    lines = heads.read_text().splitlines()
    assert len(lines) == len(set(lines))


def test_who_is_erased_at_one_of_them_is_forgotten_by_all(two: ServerPair) -> None:
    agent = two.leads.register()
    subject, secret = "leaves@example.com", "the very words of somebody who leaves"
    action = {"type": "calculate", "query": "2+2", "parameters": {"note": secret}}
    headers = {"Idempotency-Key": "once"}
    asked = {"headers": headers, "conversation_id": "erased", "subject": subject}
    first = two.follows.ask(agent, action, **asked)
    assert two.follows.ask(agent, action, **asked) == first
    path = f"/agents/{agent}/actions/{first['action_id']}"
    assert "2+2" in two.follows.api.get(path).text
    assert two.leads.api.post("/audit/erase", json={"subject": subject}).json()["erased"]
    assert "2+2" not in two.follows.api.get(path).text
    assert "2+2" not in two.follows.api.get(f"/agents/{agent}/activity").text
    assert two.follows.ask(agent, action, **asked) != first


# Kills


def test_when_the_leader_is_killed_another_goes_on_with_everything(
    postgres: Databases, memory_path: Path, receiver: WebhookReceiver
) -> None:
    with ExitStack() as stack:
        two = start_two(postgres, memory_path, stack)
        agent = two.follows.register()
        assert two.follows.api.put("/webhook", json={"url": receiver.url(scheme="http")}).status_code == 200
        items = [
            {"query": f"(x+{n})^3 = x^3 + {3 * n}*x^2 + {3 * n * n}*x + {n**3}", "type": "math"} for n in range(60)
        ]
        with two.follows.sends("/verify/batch", {"items": items, "options": {"max_parallel": 1}}):
            wait_until_true(lambda: two.rows("SELECT 1 FROM job_items WHERE state = 'completed' LIMIT 1"))
        two.leads.server.kill()
        assert two.rows("SELECT 1 FROM job_items WHERE state = 'pending' LIMIT 1")
        assert two.follows.ask(agent, EMAIL)["decision"] == "PENDING"
        assert receiver.next().body
        [(job_id,)] = two.rows("SELECT job_id FROM jobs")
        wait_until_true(lambda: two.follows.job(job_id)["status"] == "completed")
        assert [item["status"] for item in two.follows.job(job_id)["items"]] == ["completed"] * 60
        assert two.follows.server.stop() == 0


def test_when_the_leader_stands_still_another_goes_on_and_it_follows_when_it_comes_back(
    postgres: Databases, memory_path: Path
) -> None:
    with ExitStack() as stack:
        two = start_two(postgres, memory_path, stack)
        agent = two.follows.register()
        two.leads.server.process.send_signal(signal.SIGSTOP)
        waiting = two.follows.ask(agent, EMAIL)["action_id"]
        # No request needs it: the leader expires it.
        wait_until_true(
            lambda: two.rows(f"SELECT 1 FROM approvals WHERE activity_id = '{waiting}' AND state = 'expired'")
        )
        two.leads.server.process.send_signal(signal.SIGCONT)
        assert two.leads.ask(agent, SUM)["decision"] == "APPROVED"
        assert [each.server.stop() for each in (two.leads, two.follows)] == [0, 0]


# Under one supervisor


@pytest.fixture(scope="module")
def several(postgres: Databases, memory: Path) -> Iterator[ServerWithClient]:
    """Two workers on one address."""
    with ExitStack() as stack:
        url = postgres.database()
        stack.callback(postgres.drop, url)
        found = start(url, temp_directories.make_directory_in(memory) / "data", stack, "--workers", "2")
        yield found
        assert found.server.stop() == 0


def workers_of(server: Server) -> list[int]:
    children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text()
    return [int(pid) for pid in children.split()]


def test_several_workers_are_told_of_and_counted_as_one(several: ServerWithClient) -> None:
    assert several.api.get("/ready").json()["parts"]["workers"] == "2 of 2"
    agent = several.register()
    for _ in range(20):
        with httpx.Client(base_url=several.server.base_url, headers=several.api.headers, timeout=PATIENCE) as client:
            assert client.get(f"/agents/{agent}").status_code == 200
    line = 'qwed_requests_total{method="GET",route="/agents/{agent_id}",status="200"} 20.0'
    wait_until_true(lambda: line in several.api.get("/metrics").text)


def test_a_killed_worker_loses_nothing_that_was_answered_and_is_replaced(several: ServerWithClient) -> None:
    agent = several.register(trust_level=2)
    answered: list[str] = []
    broken: list[Exception] = []
    go = threading.Event()

    def client(number: int) -> None:
        with httpx.Client(base_url=several.server.base_url, headers=several.api.headers, timeout=PATIENCE) as own:
            for step in range(1, 21):
                at = {"conversation_id": f"k{number}", "step_number": step}
                query = {"type": "calculate", "query": f"{number} + {step} = {number + step}"}
                try:
                    said = own.post(f"/agents/{agent}/verify", json={"action": query, "context": at}).json()
                    answered.append(said["action_id"])
                except httpx.TransportError as error:
                    broken.append(error)
                if step == 5:
                    go.set()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    assert go.wait(PATIENCE)
    before = workers_of(several.server)
    os.kill(before[0], signal.SIGKILL)
    for thread in threads:
        thread.join(PATIENCE)
    assert len(answered) + len(broken) == 160
    assert len(answered) >= 80
    for action_id in answered:
        assert several.api.get(f"/agents/{agent}/actions/{action_id}").status_code == 200
    wait_until_true(lambda: len(workers_of(several.server)) == 2 and before[0] not in workers_of(several.server))
    wait_until_true(lambda: several.api.get("/ready").json()["parts"]["workers"] == "2 of 2")
