"""Spec 8.3 under concurrency: changes during a decision, and state after a restart."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.conftest import AgentConversation
from tests.spec.conftest import Keyholders, SpecServer, keyholders_of, start_spec_server
from tests.spec.requests import EMAIL, FALSE, SUM, Json, action_of, changes_of, claims_of, said, settle, trust_of
from tests.spec.sections import spec
from tests.support.metrics_scrape import Scrape
from tests.support.server import Server

PATIENCE = 60


def _hard(tag: str) -> Json:
    """Return a pigeonhole claim (eleven pigeons, ten holes): short, false and too hard for the solver."""
    pigeons, holes = "abcdefghijk", "abcdefghij"
    sits = [f"(OR {' '.join(f'{tag}{one}{hole}' for hole in holes)})" for one in pigeons]
    pairs = [(one, other) for one in pigeons for other in pigeons if other < one]
    alone = [f"(OR (NOT {tag}{one}{hole}) (NOT {tag}{other}{hole}))" for hole in holes for one, other in pairs]
    return {"type": "verify_logic", "query": f"(AND {' '.join(sits + alone)})"}


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SpecServer]:
    """Create a gate whose solver gives up after a second or two."""
    with start_spec_server(Path(tmp_path_factory.mktemp("slow")) / "data", QWED_ENGINE_SECONDS="2") as found:
        yield found


@pytest.fixture(scope="module")
def crew(slow: SpecServer) -> Iterator[Keyholders]:
    with keyholders_of(slow) as found:
        # The first request waits for the workers to start.
        found.create_agent()({"type": "verify_logic", "query": "x > 1"}, 1)
        yield found


def _decided_while(
    slow: SpecServer, ask: AgentConversation, action: Json, change: Callable[[], httpx.Response]
) -> httpx.Response:
    scrape = Scrape(slow.base_url, slow.keys["owner"])
    body = {"action": action, "context": {"conversation_id": "c", "step_number": 1}}
    with ThreadPoolExecutor(1) as pool:
        deciding = pool.submit(ask.send, body)
        scrape.wait_until("qwed_requests_in_flight", 1)
        assert change().status_code == 200
        return deciding.result(PATIENCE)


def _trust(keyholders: Keyholders, ask: AgentConversation, to_level: int) -> httpx.Response:
    return keyholders.owner.post(
        f"/agents/{ask.agent_id}/trust", json={"request": "trust_reduction", "to_level": to_level}
    )


@spec("8.3", "9.4")
def test_a_decision_made_under_the_old_level_is_not_kept(slow: SpecServer, crew: Keyholders) -> None:
    ask, low = crew.create_agent(trust_level=3), crew.create_agent(trust_level=0)
    response = _decided_while(slow, ask, _hard("m"), lambda: _trust(crew, ask, 0))
    # It is decided again, as it is for an agent that has had the present level all along.
    answer, expected = response.json(), low(_hard("m"), 1, conversation="c")
    assert (response.status_code, said(answer)) == (200, said(expected))
    assert answer["decision"] not in ("APPROVED", "CORRECTED")
    assert ask.budget()["cost"]["current_daily_usd"] == 0


@spec("8.3", "9.4")
@pytest.mark.parametrize("how", ["suspend", "complaint", "all"])
def test_a_decision_about_an_agent_that_was_stopped_meanwhile_is_not_kept(
    slow: SpecServer, crew: Keyholders, how: str
) -> None:
    ask = crew.create_agent(trust_level=3)
    path = "/suspend-all" if how == "all" else f"/agents/{ask.agent_id}/{how}"
    try:
        response = _decided_while(slow, ask, _hard(how[0]), lambda: crew.member.post(path, json={"reason": "odd"}))
    finally:
        crew.owner.post("/reactivate-all", json={"reason": "on we go"})
    assert (response.status_code, said(response.json())) == (403, ("DENIED", "QWED-AGENT-003"))
    crew.owner.post(f"/agents/{ask.agent_id}/reactivate", json={"reason": "on we go"})
    assert said(ask(SUM, 1, conversation="c")) == ("APPROVED", None)


@spec("8.3")
def test_a_restart_forgets_neither_denials_nor_what_waits(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    headers = {"X-API-Key": server.owner_key}
    with httpx.Client(base_url=server.base_url, headers=headers, timeout=30) as owner:
        body = {"name": "a", "principal_id": "u", "trust_level": 2, "budget": {"max_daily_cost_usd": 1}}
        agent = owner.post("/agents/register", json=body).json()
        ask = AgentConversation(owner, agent)
        waiting = ask({**EMAIL, "cost": {"usd": 0.5}}, 1, options={"risk_threshold": "low"})
        for _ in range(18):
            assert ask(FALSE, 2)["decision"] == "DENIED"
        assert trust_of(ask) == 2
    server.kill()
    again = Server(tmp_path / "data")
    with httpx.Client(base_url=again.base_url, headers=headers, timeout=30) as owner:
        ask = AgentConversation(owner, agent)
        assert ask.budget()["cost"]["held_usd"] == 0.5
        assert ask(FALSE, 2)["decision"] == "DENIED"
        assert trust_of(ask) == 1
        assert [each["change"]["reason"] for each in changes_of(ask, "trust_degraded")] == ["repeated_denials"]
        settled = settle(owner, waiting["approval_id"])
        assert (settled.status_code, settled.json()["resolution"]["self_approved"]) == (200, True)
        action = action_of(ask, waiting["action_id"])
        assert claims_of(action["attestation"])["qwed"]["activity_id"] == waiting["action_id"]
        assert ask.budget()["cost"]["current_daily_usd"] == 0.5
    assert again.stop() == 0
