"""Rules that count calls, under races and kills: ten is exactly ten, and no call is lost or counted twice."""

import signal
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest

import qwed
from qwed.domain.usage_window import UsageKey
from qwed.kernel.bootstrap import close_services, open_services
from qwed.settings import settings_from
from tests.faults.crashing_server import AFTER_COMMIT, AFTER_LEAF, BEFORE_COMMIT
from tests.faults.scenario import CRASHING
from tests.support.campaign_table import Figure, campaign
from tests.support.data_directory_check import DataDirectoryCheck
from tests.support.raw_http import RawResponse, message, send_concurrently
from tests.support.server import Server
from tests.support.server_cluster import ServerCluster

LIMIT = 10
LINES = 32
MAILS = """\
policy: mails
facts: 1
applies_to:
  tools: [send_email]
rules:
  - id: few
    when: {usage}("send_email", duration("24h")) < {limit}
    then: {answer}
  - id: many
    when: {usage}("send_email", duration("24h")) >= {limit}
    then: deny
"""
SCOPES = {"agent": "usage.count", "organisation": "usage.org.count"}


def _policy(scope: str, limit: int = LIMIT, answer: str = "allow") -> str:
    return MAILS.format(usage=SCOPES[scope], limit=limit, answer=answer)


def _apply(client: httpx.Client, text: str) -> None:
    response = client.put("/policies", json={"documents": [{"text": text}]}, headers={"If-Match": "*"})
    assert response.status_code == 200, response.text


def _mail(agent_id: str, number: int, key: str) -> bytes:
    action = {"type": "send_email", "target": "operations", "parameters": {"body": f"It is {number}"}}
    body = {"action": action, "context": {"conversation_id": f"conversation {number}", "step_number": 1}}
    return message(f"/agents/{agent_id}/verify", body, {"X-API-Key": key})


def _decisions(heard: list[RawResponse | None]) -> Counter[str]:
    return Counter(answer.json["decision"] for answer in heard if answer is not None)


def _race_over_postgres(cluster: ServerCluster, scope: str, calls: int) -> None:
    _apply(cluster.client(), _policy(scope))
    agents = [cluster.register(trust_level=3)["agent_id"] for _ in range(1 if scope == "agent" else 3)]
    messages = [_mail(agents[number % len(agents)], number, cluster.owner_key) for number in range(calls)]
    heard = send_concurrently(cluster.urls, messages, LINES)
    assert _decisions(heard) == {"APPROVED": LIMIT, "DENIED": calls - LIMIT}, scope


@pytest.mark.parametrize("scope", SCOPES)
def test_of_three_hundred_calls_at_two_servers_exactly_ten_pass(pair: ServerCluster, scope: str) -> None:
    pair.keep_head()
    try:
        _race_over_postgres(pair, scope, 300)
    finally:
        pair.client().put("/policies", json={"documents": []}, headers={"If-Match": "*"})


@pytest.mark.drill
@pytest.mark.parametrize("scope", SCOPES)
@campaign("P3", "a race for the uses of a rule, over PostgreSQL")
def test_of_two_thousand_calls_at_two_processes_exactly_ten_pass(
    cluster: ServerCluster, scope: str, figure: Figure
) -> None:
    _race_over_postgres(cluster, scope, 2_000)
    figure("calls", 2_000)
    figure("above or below the limit", 0)


def _race_over_sqlite(directory: Path, scope: str, calls: int) -> None:
    server = Server(directory, QWED_RATE_LIMIT_PER_KEY="0")
    with httpx.Client(base_url=server.base_url, headers={"X-API-Key": server.owner_key}, timeout=60) as client:
        _apply(client, _policy(scope))
        body = {"name": "a", "principal_id": "p", "trust_level": 3}
        agent_id = client.post("/agents/register", json=body).json()["agent_id"]
        heard = send_concurrently(
            server.base_url, [_mail(agent_id, number, server.owner_key) for number in range(calls)], LINES
        )
    server.stop()
    assert _decisions(heard) == {"APPROVED": LIMIT, "DENIED": calls - LIMIT}
    assert len(list(DataDirectoryCheck(directory).committed())) == LIMIT


@pytest.mark.parametrize("scope", SCOPES)
def test_of_three_hundred_calls_at_one_server_exactly_ten_pass(memory_path: Path, scope: str) -> None:
    _race_over_sqlite(memory_path / "data", scope, 300)


@pytest.mark.drill
@pytest.mark.parametrize("scope", SCOPES)
@campaign("P3", "a race for the uses of a rule")
def test_of_two_thousand_calls_at_one_server_exactly_ten_pass(memory_path: Path, scope: str, figure: Figure) -> None:
    _race_over_sqlite(memory_path / "data", scope, 2_000)
    figure("calls", 2_000)
    figure("above or below the limit", 0)


KEY = UsageKey("agent", "count", "send_email", "", 86_400)


def _counted(directory: Path, agent_id: str) -> tuple[Any, int]:
    """Return the stored count of mails, and the number of mails in the log that count."""
    services = open_services(settings_from({}, data_dir=directory)).services
    try:
        agent = services.store.find_agent(agent_id)
        assert agent is not None
        now = services.clock.now()
        value = services.store.usage_values(agent_id, agent.organisation_id, [KEY], now)[KEY]
    finally:
        close_services(services)
    check = DataDirectoryCheck(directory)
    check.require_consistent()
    return value, sum(one.agent_id == agent_id for one in check.committed())


PLACES: dict[str, tuple[str, int]] = {
    "between decision and commit": ("commit", 4),
    "before the commit of the batch": (BEFORE_COMMIT, 4),
    "behind the leaf": (AFTER_LEAF, 4),
    "after the commit, before the answer": (AFTER_COMMIT, 4),
}


@pytest.mark.parametrize("answer", ["allow", "ask"])
@pytest.mark.parametrize("place", PLACES)
def test_a_kill_leaves_every_committed_call_counted_and_no_other(memory_path: Path, place: str, answer: str) -> None:
    directory = memory_path / "data"
    with qwed.open(directory) as gate:
        gate.apply_policies({"mails.yaml": _policy("agent", 1_000, answer)})
        agent_id = gate.register_agent(name="clerk", principal_id="ops", trust_level=3).agent_id
    name, times = PLACES[place]
    server = Server(directory, (*CRASHING, "--place", name, "--times", str(times)))
    heard = [_try(server, agent_id, number) for number in range(times + 1)]
    assert server.wait() == -signal.SIGKILL
    told = sum(decision in ("APPROVED", "PENDING") for decision in heard)
    counted, committed = _counted(directory, agent_id)
    assert counted == committed
    assert counted == (times if place == "after the commit, before the answer" else times - 1) >= told > 0


def _try(server: Server, agent_id: str, number: int) -> str:
    """Return the decision about a mail, or an empty string if the server is gone."""
    action = {"type": "send_email", "target": "operations", "parameters": {"body": f"It is {number}"}}
    body = {"action": action, "context": {"conversation_id": f"conversation {number}", "step_number": 1}}
    headers = {"X-API-Key": server.owner_key}
    try:
        answer = httpx.post(f"{server.base_url}/agents/{agent_id}/verify", json=body, headers=headers, timeout=60)
    except httpx.TransportError:
        return ""
    decision: str = answer.json()["decision"]
    return decision
