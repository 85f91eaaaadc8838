"""P1-P3 across a power cut during a change by a person, an agent or an owner.

After the next start an approval is open and reserves its cost, or resolved with its leaf: never both, never charged
twice. What was reported is stored; what was not may be requested again.
"""

import shutil
import signal
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Self

import httpx
import msgspec
import pytest

import qwed
from qwed.domain.change_parts import Webhook
from qwed.futures import run_in_thread
from qwed.gate import Gate, GateError
from qwed.kernel.admin import webhook
from qwed.kernel.audit_change import GATE, Actor
from tests.faults.crashing_server import AFTER_COMMIT, AFTER_LEAF, BEFORE_COMMIT
from tests.faults.scenario import CRASHING
from tests.support.campaign_table import campaign
from tests.support.data_directory_check import DataDirectoryCheck
from tests.support.server import Server

BEFORE = ["change", BEFORE_COMMIT, AFTER_LEAF]
AFTER = [AFTER_COMMIT, "changed"]
_AT_LENGTH = [pytest.mark.drill, campaign("P1 P3", "kills at a named place of a change")]
places = pytest.mark.parametrize(
    "place",
    [
        BEFORE_COMMIT,
        AFTER_COMMIT,
        *(pytest.param(place, marks=_AT_LENGTH) for place in ("change", AFTER_LEAF, "changed")),
    ],
)
SUM = {"type": "calculate", "query": "2+2"}
EMAIL = {"type": "send_email", "target": "operations", "parameters": {"body": "hello"}, "cost": {"usd": 0.25}}
ATTACK = {"type": "execute_sql", "query": "SELECT * FROM users WHERE id = 1 OR 1=1; DROP TABLE users --"}
HELD = 250_000
REASON = {"reason": "because"}


class CrashFixture:
    """Data directory with an agent, a pending action and a permitted one."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        with qwed.open(directory) as gate:
            registered = gate.register_agent(name="a", principal_id="p")
            self.agent_id: str = registered["agent_id"]
            self.token: str = registered["agent_token"]
            assert gate.owner_key is not None
            self.owner_key: str = gate.owner_key
            self._tell_a_webhook(gate)
            waits = self._ask(gate, EMAIL, 1)
            self.approval_id, self.waiting_id = waits.approval_id, waits.action_id
            self.permitted_id: str = self._ask(gate, SUM, 2).action_id
        self.before = DataDirectoryCheck(directory)

    def _ask(self, gate: Gate, action: Any, step: int) -> Any:
        return gate.verify_action(self.agent_id, action, {"conversation_id": "c", "step_number": step})

    def _tell_a_webhook(self, gate: Gate) -> None:
        wish = webhook.WebhookRequest("https://203.0.113.9/", ("pending", "failed", "degraded", "suspended"))
        kept = run_in_thread(webhook.set_webhook(wish, Actor(GATE, gate.organisation_id, "owner"), gate.services), 30)
        assert isinstance(kept, Webhook)

    def end(self, place: str, path: str, body: Any, times: int = 1) -> None:
        """Request a change from a server that kills itself at the place."""
        command = (*CRASHING, "--place", place, "--times", str(times))
        server = Server(self.directory, command)
        headers = {"X-API-Key": self.owner_key}
        with (
            httpx.Client(base_url=server.base_url, headers=headers, timeout=60) as api,
            pytest.raises(httpx.TransportError),
        ):
            api.post(path, json=body)
        assert server.wait() == -signal.SIGKILL

    def copied(self, directory: Path) -> Self:
        """Return the same state in another directory."""
        other = copy(self)
        other.directory = Path(shutil.copytree(self.directory, directory))
        return other

    def books(self) -> DataDirectoryCheck:
        kept = DataDirectoryCheck(self.directory)
        kept.require_consistent()
        return kept

    def new_events(self, check: DataDirectoryCheck) -> list[str]:
        """Return the events that the log gained."""
        return [event for _organisation, _index, event in check.log[len(self.before.log) :]]


class ChangeRequest(NamedTuple):
    path: str
    body: Any
    event: str
    again: Callable[[Gate, CrashFixture], Any]
    twice: str | None
    """Error of a repeated request; None if repeating it is allowed."""


VERBS = {
    "approve": ChangeRequest(
        "/approvals/{approval_id}/approve",
        REASON,
        "approved",
        lambda gate, cut: gate.approve(cut.approval_id, "again"),
        "it is already approved",
    ),
    "reject": ChangeRequest(
        "/approvals/{approval_id}/reject",
        REASON,
        "rejected",
        lambda gate, cut: gate.reject(cut.approval_id, "again"),
        "it is already rejected",
    ),
    "suspend": ChangeRequest(
        "/agents/{agent_id}/suspend",
        REASON,
        "suspended",
        lambda gate, cut: gate.suspend_agent(cut.agent_id, "again"),
        None,
    ),
    "rotate": ChangeRequest(
        "/agents/{agent_id}/rotate-token",
        None,
        "token_rotated",
        lambda gate, cut: gate.rotate_token(cut.agent_id),
        None,
    ),
    "execution": ChangeRequest(
        "/agents/{agent_id}/actions/{permitted_id}/execution",
        {"success": True},
        "executed",
        lambda gate, cut: gate.log_execution(cut.agent_id, cut.permitted_id, True),
        "its execution was already logged",
    ),
    "lower": ChangeRequest(
        "/agents/{agent_id}/trust",
        {"request": "trust_reduction", "to_level": 0},
        "trust_lowered",
        lambda gate, cut: gate.reduce_trust(cut.agent_id, 0),
        "`to_level` must be below",
    ),
    "erase": ChangeRequest("/audit/erase", {"subject": "p"}, "erased", lambda gate, _cut: gate.erase("p"), None),
    "halt": ChangeRequest("/suspend-all", REASON, "halted", lambda gate, _cut: gate.suspend_all("again"), None),
}


@pytest.fixture
def cut(tmp_path: Path) -> CrashFixture:
    return CrashFixture(tmp_path / "data")


def _path(verb: ChangeRequest, cut: CrashFixture) -> str:
    return verb.path.format(agent_id=cut.agent_id, approval_id=cut.approval_id, permitted_id=cut.permitted_id)


Ended = Callable[[str, str], CrashFixture]


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """State after a change that was cut at a place: created once, and copied for each test."""

    @cache
    def once(name: str, place: str) -> CrashFixture:
        cut = CrashFixture(tmp_path_factory.mktemp("cut") / "data")
        cut.end(place, _path(VERBS[name], cut), VERBS[name].body)
        return cut

    return lambda name, place: once(name, place).copied(tmp_path_factory.mktemp("copy") / "data")


@places
@pytest.mark.parametrize("name", VERBS)
def test_a_change_cut_short_is_kept_whole_or_not_at_all(ended: Ended, name: str, place: str) -> None:
    verb, cut = VERBS[name], ended(name, place)
    kept = cut.books()
    assert cut.new_events(kept) == ([verb.event] if place in AFTER else [])
    with qwed.open(cut.directory) as gate:
        if place in AFTER and verb.twice is not None:
            with pytest.raises(GateError, match=verb.twice):
                verb.again(gate, cut)
        else:
            verb.again(gate, cut)
    again = [verb.event] * (2 if verb.event == "token_rotated" and place in AFTER else 1)
    assert cut.new_events(cut.books()) == again


@places
@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_an_approval_is_open_and_held_or_settled_and_charged_once_after_a_cut(
    ended: Ended, verb: str, place: str
) -> None:
    cut = ended(verb, place)
    kept = cut.books()
    state = kept.approval(cut.approval_id)["state"]
    usage = kept.usage[cut.agent_id]
    used = 10_000 + (HELD if verb == "approve" else 0)
    if place in AFTER:
        assert (state, usage["pending_cost"], usage["cost_day"]) == (VERBS[verb].event, 0, used)
    else:
        assert (state, usage["pending_cost"], usage["cost_day"]) == ("pending", HELD, 10_000)
    with qwed.open(cut.directory) as gate:
        if place not in AFTER:
            VERBS[verb].again(gate, cut)
        action = gate.get_action(cut.agent_id, cut.waiting_id)
        assert action.decision == ("APPROVED" if verb == "approve" else "DENIED")
        assert (action.attestation is not None) == (verb == "approve")
        cost = gate.get_agent_budget(cut.agent_id)["cost"]
        assert (cost["current_daily_usd"], cost["held_usd"]) == (used / 1_000_000, 0)
    assert len(cut.books().events("approved", "rejected")) == 1


@pytest.mark.parametrize("place", [BEFORE_COMMIT, AFTER_LEAF, AFTER_COMMIT])
def test_an_approval_that_ran_out_is_settled_once_whenever_the_process_ends(cut: CrashFixture, place: str) -> None:
    with qwed.open(cut.directory, approval_ttl_seconds=0) as gate:
        late = gate.verify_action(cut.agent_id, EMAIL, {"conversation_id": "late", "step_number": 1})
        assert late.decision == "PENDING"
    before = len(DataDirectoryCheck(cut.directory).log)
    # The lookup writes the expiry without waiting for it, so the kill may come before or after the answer.
    command = (*CRASHING, "--place", place, "--times", "1")
    server = Server(cut.directory, command)
    headers = {"X-API-Key": cut.owner_key}
    with (
        httpx.Client(base_url=server.base_url, headers=headers, timeout=60) as api,
        suppress(httpx.TransportError),
    ):
        assert api.get(f"/agents/{cut.agent_id}/budget").status_code == 200
    assert server.wait() == -signal.SIGKILL
    kept = cut.books()
    assert len(kept.log) - before == (place == AFTER_COMMIT)
    with qwed.open(cut.directory) as gate:
        assert gate.get_agent_budget(cut.agent_id)["cost"]["held_usd"] == HELD / 1_000_000
    assert [change.about for change in cut.books().events("expired")] == [late.action_id]


@places
def test_a_token_is_the_old_one_or_the_new_one_after_a_cut(ended: Ended, place: str) -> None:
    cut = ended("rotate", place)
    with qwed.open(cut.directory) as gate:
        context = {"conversation_id": "new", "step_number": 1}
        answer = gate.verify_action(cut.agent_id, SUM, context, agent_token=cut.token)
        assert answer.decision == ("DENIED" if place in AFTER else "APPROVED")


@places
def test_content_is_kept_whole_or_erased_whole_after_a_cut(cut: CrashFixture, place: str) -> None:
    cut.end(place, "/audit/erase", {"subject": "p"})
    with qwed.open(cut.directory) as gate:
        shown = [*gate.get_agent_activity(cut.agent_id), *gate.list_approvals()]
        assert {each.content for each in shown} == {"erased" if place in AFTER else "kept"}
        held = gate.get_agent_budget(cut.agent_id)["cost"]["held_usd"]
        assert held == HELD / 1_000_000
    assert [row["event"] for row in cut.books().outbox] == ([] if place in AFTER else ["pending"])


@pytest.mark.parametrize(
    "place",
    [
        BEFORE_COMMIT,
        AFTER_COMMIT,
        *(pytest.param(place, marks=_AT_LENGTH) for place in ("commit", AFTER_LEAF, "answer")),
    ],
)
@pytest.mark.parametrize("event", ["pending", "failed"])
def test_a_notice_is_in_the_outbox_exactly_when_its_decision_is_in_the_log(
    cut: CrashFixture, place: str, event: str
) -> None:
    body = {"action": EMAIL if event == "pending" else ATTACK, "context": {"conversation_id": "told", "step_number": 1}}
    cut.end(place, f"/agents/{cut.agent_id}/verify", body)
    kept = cut.books()
    new = kept.activities[len(cut.before.activities) :]
    told = [msgspec.json.decode(row["body"])["activity_id"] for row in kept.outbox if row["event"] == event]
    earlier = [msgspec.json.decode(row["body"])["activity_id"] for row in cut.before.outbox if row["event"] == event]
    assert [name for name in told if name not in earlier] == [activity.activity_id for activity in new]
    assert len(new) == (place in (AFTER_COMMIT, "answer"))


@places
def test_a_suspension_and_its_notice_come_together(ended: Ended, place: str) -> None:
    kept = ended("suspend", place).books()
    assert [row["event"] for row in kept.outbox] == ["pending", *(["suspended"] if place in AFTER else [])]


@pytest.mark.parametrize("place", [BEFORE_COMMIT, AFTER_LEAF, AFTER_COMMIT])
def test_a_loss_of_trust_comes_with_the_decision_that_brought_it_about(cut: CrashFixture, place: str) -> None:
    body = {"action": ATTACK, "context": {"conversation_id": "attack", "step_number": 1}}
    cut.end(place, f"/agents/{cut.agent_id}/verify", body)
    kept = cut.books()
    assert cut.new_events(kept) == (["", "trust_degraded"] if place == AFTER_COMMIT else [])
    assert kept.agents[cut.agent_id]["trust"] == (0 if place == AFTER_COMMIT else 1)
    degraded = [row for row in kept.outbox if row["event"] == "degraded"]
    assert len(degraded) == (place == AFTER_COMMIT)
