"""P2, P3 and P5 while the clock is set: back and forth over midnight, the ends of hours, months and years, and far.

Days and hours of a budget only move forward, so a clock that goes back opens no window twice. Leases use the monotonic
clock; approvals and attestations expire by the wall clock.
"""

import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from qwed.gate import Gate, GateError
from qwed.kernel.bootstrap import open_services
from qwed.ledger.attestation_verifier import check_attestation
from qwed.model.clock import DAY, HOUR
from qwed.settings import Settings
from tests.faults.clocked_server import ClockedServer
from tests.support.agent_names import unique_name
from tests.support.campaign_table import Figure, campaign
from tests.support.data_directory_check import COMMITTED, DataDirectoryCheck
from tests.support.manual_clock import ManualClock
from tests.support.raw_http import message, send_concurrently


def _at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


TURNS = {
    "midnight": _at("2026-11-16T00:00:00"),
    "an hour": _at("2026-11-16T13:00:00"),
    "a month": _at("2026-12-01T00:00:00"),
    "a year": _at("2027-01-01T00:00:00"),
    "a leap day begins": _at("2028-02-29T00:00:00"),
    "a leap day ends": _at("2028-03-01T00:00:00"),
    "a century without a leap day": _at("2100-03-01T00:00:00"),
    "31 bits": float(2**31),
    "32 bits": float(2**32),
}
STEPS = (0.001, 0.5, 1, 59, HOUR, DAY, 30 * DAY, 366 * DAY, 10 * 366 * DAY)
CENTS = 12
LIMITS = {"max_daily_cost_usd": CENTS / 100, "max_requests_per_hour": 40, "max_tokens_per_day": 900}
MAIL = {"type": "send_email", "target": "operations", "parameters": {"body": "hello"}, "cost": {"usd": 0.03}}


class ClockScenario:
    """Gate whose clock is set at random, and the answers it gave."""

    def __init__(self, directory: Path, turn: float, seed: int) -> None:
        self.directory = directory
        self.turn = turn
        self.chance = random.Random(seed)
        self.manual_clock = ManualClock(turn - 1)
        self.gate = self._open()
        self.every: list[str] = []
        self.agents = [self._agent() for _ in range(3)]
        self.told: dict[str, str] = {}
        self.places: Counter[tuple[str, str, int]] = Counter()
        self.settled: dict[str, str] = {}
        self.waiting: dict[str, float] = {}
        self.tokens: list[str] = []
        self.heads = [dict(self.gate.audit_head())]
        self.counts: Counter[str] = Counter()
        self._steps = 0

    def _open(self) -> Gate:
        return Gate(open_services(Settings(data_dir=self.directory), clock=self.manual_clock.clock()))

    def _agent(self) -> str:
        agent_id: str = self.gate.register_agent(name=unique_name(), principal_id="p", budget=LIMITS)["agent_id"]
        self.every.append(agent_id)
        return agent_id

    def replace_one(self) -> None:
        """Replace an agent: exceeding budgets costs trust, after which everything needs an approval."""
        self.agents[self.chance.randrange(len(self.agents))] = self._agent()

    def set_clock(self) -> None:
        """Set the clock just before or after the turn, or a step back or forth."""
        step = self.chance.choice(STEPS) * self.chance.choice((-1, 1))
        near = self.turn + self.chance.choice((-1, -0.001, 0, 0.001, 1))
        wanted = self.chance.choice((near, near, self.manual_clock.now + step))
        # No day exists before the first one, and no date past the year 9999 can be formatted.
        self.manual_clock.now = min(max(wanted, DAY), _at("9999-01-01T00:00:00"))
        self.manual_clock.monotonic += self.chance.choice((0, 0.1, 40))
        self.counts["times the clock was set"] += 1

    def ask(self) -> None:
        agent_id = self.chance.choice(self.agents)
        if self.places and self.chance.random() < 0.2:
            agent_id, conversation, step = self.chance.choice([*self.places])
        else:
            self._steps += 1
            conversation, step = f"conversation {self._steps}", 1
        action = self.chance.choice((MAIL, self._sum()))
        place = {"conversation_id": conversation, "step_number": step}
        options = {"require_attestation": self.chance.random() < 0.3}
        answer = self.gate.verify_action(agent_id, action, place, options)
        self.counts["decisions"] += 1
        self.counts[answer.decision] += 1
        if answer.decision in COMMITTED:
            self.told[answer.action_id] = answer.decision
            self.places[agent_id, conversation, step] += 1
        if answer.decision == "PENDING":
            self.waiting[answer.approval_id] = self.manual_clock.now + DAY
        if isinstance(answer.attestation, str):
            self.tokens.append(answer.attestation)

    def _sum(self) -> dict[str, Any]:
        number = self.chance.randrange(1, 100)
        return {"type": "calculate", "query": f"{number}+1", "cost": {"usd": 0.01, "tokens": number}}

    def settle(self) -> None:
        """Resolve an approval: in time as the person decides, and too late as expired for good."""
        if not self.waiting:
            return
        approval_id = self.chance.choice([*self.waiting])
        verb = self.chance.choice((self.gate.approve, self.gate.reject))
        ends = self.waiting.pop(approval_id)
        try:
            state = verb(approval_id, "because")["state"]
        except GateError as refused:
            # An agent that exceeded its budget too often has lost the trust it had at its request.
            state = "expired" if "already expired" in str(refused) else "refused today"
        self.counts["settled by a person or by time"] += 1
        self.settled[approval_id] = {"refused today": "pending"}.get(state, state)
        # It may have expired earlier, when the clock was ahead; it is never approved after its expiry.
        assert state == "expired" or self.manual_clock.now < ends

    def look(self) -> None:
        """Require that everything can be read and is unchanged, whatever the clock says."""
        agent_id = self.chance.choice(self.agents)
        budget = self.gate.get_agent_budget(agent_id)
        assert budget["cost"]["current_daily_usd"] + budget["cost"]["held_usd"] <= CENTS / 100 + 1e-9
        self.gate.get_agent_activity(agent_id)
        self.gate.list_approvals()
        self.heads.append(dict(self.gate.audit_head()))

    def verify(self) -> None:
        """Require that an attestation is valid from its issue to its expiry, whatever the clock did in between."""
        if not self.tokens:
            return
        token = self.chance.choice(self.tokens)
        keys = self.gate.services.signer.keyring.public_keys()
        claims = check_attestation(token, keys, now=self.manual_clock.now).claims or {}
        within = claims["iat"] <= self.manual_clock.now < claims["exp"]
        assert self.gate.verify_attestation(token)["valid"] == within
        assert check_attestation(token, keys, now=claims["iat"]).valid
        self.counts["attestations verified"] += within

    def restart(self) -> None:
        self.gate.close()
        self.gate = self._open()
        self.counts["restarts"] += 1

    def require_consistent(self) -> None:
        for kept in self.heads:
            self.gate.audit_consistency(kept["size"], dict(self.gate.audit_head())["size"])
        self.gate.close()
        books = DataDirectoryCheck(self.directory)
        books.require_consistent()
        states = {row["approval_id"]: row["state"] for row in books.approvals}
        changed = {name: state for name, state in self.settled.items() if states[name] != state}
        assert {states[name] for name, state in changed.items() if state != "pending"} == set()
        kept = {one.activity_id: one.decision for one in books.activities}
        assert self.told == {action_id: kept.get(action_id) for action_id in self.told}
        assert set(self.places.values()) <= {1}
        for agent_id in self.every:
            assert max(books.costs_by_day(agent_id).values(), default=0) <= CENTS * 10_000
            self.counts["days of a budget"] += len(books.costs_by_day(agent_id))


def _live(day: ClockScenario, rounds: int) -> Counter[str]:
    for _ in range(rounds):
        day.set_clock()
        for _ in range(day.chance.randrange(1, 8)):
            day.ask()
        for deed in (day.settle, day.look, day.verify):
            deed()
        if day.chance.random() < 0.1:
            day.restart()
        if day.chance.random() < 0.3:
            day.replace_one()
    day.require_consistent()
    return day.counts


def test_a_clock_that_is_set_passes_no_budget_and_repeats_no_step(tmp_path: Path) -> None:
    counts = _live(ClockScenario(tmp_path / "data", TURNS["midnight"], 1), 40)
    assert counts["APPROVED"] > 20
    assert counts["BUDGET_EXCEEDED"] > 5
    assert counts["attestations verified"] > 0


@pytest.mark.drill
@campaign("P2 P3 P5", "a clock that is set, step by step")
@pytest.mark.parametrize("seed", range(2, 4))
@pytest.mark.parametrize("turn", TURNS.values(), ids=TURNS)
def test_a_clock_that_is_set_again_and_again_passes_no_budget_and_repeats_no_step(
    tmp_path: Path, turn: float, seed: int, figure: Figure
) -> None:
    counts = _live(ClockScenario(tmp_path / "data", turn, seed), 300)
    for name in (
        "times the clock was set",
        "decisions",
        "settled by a person or by time",
        "attestations verified",
        "restarts",
        "days of a budget",
    ):
        figure(name, counts[name])


# While decisions run: the clock of a real server is set at any moment


class ClockedLoad:
    """Server under load whose clock is set every few answers."""

    def __init__(self, directory: Path, turn: float) -> None:
        self.server = ClockedServer(directory, turn - 1)
        self.turn = turn
        self.told: dict[str, str] = {}
        self.days: set[int] = set()
        self.set = 0

    def api(self) -> httpx.Client:
        return httpx.Client(base_url=self.server.base_url, headers={"X-API-Key": self.server.owner_key}, timeout=60)

    def send_load(self, agent_id: str, name: str, count: int, chance: random.Random) -> None:
        """Try every step three times, all on the same budget."""
        shown = {"X-API-Key": self.server.owner_key}
        messages = []
        for number in range(count):
            body = {
                "action": {"type": "calculate", "query": f"{number}+1"},
                "context": {"conversation_id": f"{name} {number // 3}", "step_number": 1},
            }
            messages.append(message(f"/agents/{agent_id}/verify", body, shown))

        def on_answer(_answers: int) -> None:
            near = self.turn + chance.choice((-1, -0.001, 0, 0.001, 1))
            far = self.turn + chance.choice(STEPS) * chance.choice((-1, 1))
            self.server.wall.now = max(chance.choice((near, near, near, far)), DAY)
            self.days.add(int(self.server.wall.now // DAY))
            self.set += 1

        for answer in send_concurrently(self.server.base_url, messages, 16, on_answer):
            assert answer is not None
            if answer.json["decision"] in COMMITTED:
                self.told[answer.json["action_id"]] = answer.json["decision"]


@pytest.fixture
def clocked_load(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[ClockedLoad]:
    running = ClockedLoad(tmp_path / "data", request.param)
    yield running
    running.server.kill()


@pytest.mark.drill
@campaign("P2 P3 P5", "a clock that is set while decisions run")
@pytest.mark.parametrize("clocked_load", TURNS.values(), ids=TURNS, indirect=True)
def test_a_clock_that_is_set_while_decisions_run_passes_no_budget_and_repeats_no_step(
    clocked_load: ClockedLoad, figure: Figure
) -> None:
    chance = random.Random(clocked_load.turn)
    with clocked_load.api() as api:
        said = {"principal_id": "p", "budget": {"max_daily_cost_usd": 0.4}}
        bodies = [{"name": unique_name(), **said} for _ in range(3)]
        agents = [api.post("/agents/register", json=body).json()["agent_id"] for body in bodies]
    for round_ in range(4):
        for agent_id in agents:
            clocked_load.send_load(agent_id, f"round {round_}", 120, chance)
        clocked_load.server.kill()
        clocked_load.server = clocked_load.server.again()
    with clocked_load.api() as api:
        budgets = [api.get(f"/agents/{agent_id}/budget").json() for agent_id in agents]
    clocked_load.server.kill()
    books = DataDirectoryCheck(clocked_load.server.data_dir)
    _require_sound(books, clocked_load)
    for budget in budgets:
        assert budget["cost"]["current_daily_usd"] + budget["cost"]["held_usd"] <= 0.4
    for agent_id in agents:
        charged = sum(books.costs_by_day(agent_id).values())
        assert charged <= 400_000 * len(clocked_load.days)
    figure("times the clock was set", clocked_load.set)
    figure("requests", 4 * 3 * 120)
    figure("committed", len(clocked_load.told))


def _require_sound(books: DataDirectoryCheck, clocked_load: ClockedLoad) -> None:
    """Check everything except the day of a decision: the clock may turn while it is made."""
    books.require_consistent_log()
    kept = {one.activity_id: one.decision for one in books.activities}
    assert clocked_load.told == {action_id: kept.get(action_id) for action_id in clocked_load.told}
