"""Verdict cache: small verdicts that depend only on their input."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from qwed.engines.pool import EnginePool, PendingVerdict
from qwed.engines.protocol import DataPolicy, EngineRequest
from qwed.engines.registry import ENGINES
from qwed.engines.verdict_cache import OwnedVerdictSource, VerdictCache, VerdictRequest
from qwed.futures import Future, completed
from qwed.model import Status, Verdict


def verdict(status: Status = Status.VERIFIED, evidence: str = "so it is") -> Verdict:
    return Verdict(status=status, engine="fact", message="", result={"evidence": evidence})


@pytest.fixture
def verdicts() -> VerdictCache:
    return VerdictCache(EnginePool(ENGINES.values(), size=2), 1.0)


def question(organisation_id: str = "org_1", digest: str = "sha256:1", *, strict: bool = False) -> VerdictRequest:
    return VerdictRequest(organisation_id, "fact", digest, EngineRequest(query="it is so", strict=strict))


def test_a_verdict_is_remembered_for_the_same_question_alone(verdicts: VerdictCache) -> None:
    verdicts.learn(question(), verdict())
    assert verdicts.ask(question()) == verdict()
    for other in (question("org_2"), question(digest="sha256:2"), question(strict=True)):
        verdicts.learn(other, verdict(Status.FAILED))
    assert verdicts.ask(question()) == verdict()


@pytest.mark.parametrize(
    "uncacheable", [verdict(evidence="x" * 10_000), verdict(Status.INCONCLUSIVE), verdict(Status.ERROR)]
)
def test_what_is_large_or_not_settled_is_not(verdicts: VerdictCache, uncacheable: Verdict) -> None:
    verdicts.learn(question(), uncacheable)
    assert len(verdicts) == 0


@pytest.mark.parametrize("engine", [name for name, row in ENGINES.items() if not row.cacheable])
def test_what_looks_at_the_calendar_is_asked_again(verdicts: VerdictCache, engine: str) -> None:
    verdicts.learn(question()._replace(engine=engine), replace(verdict(), engine=engine))
    assert len(verdicts) == 0


class InconclusiveWorkers:
    """Stub pool that answers every request with INCONCLUSIVE."""

    def __init__(self) -> None:
        self.by: list[object] = []

    def start(self) -> None:
        """Do nothing."""

    def submit(self, *_question: object, who: object = "", **_more: object) -> Future[Verdict]:
        self.by.append(who)
        return completed(verdict(Status.INCONCLUSIVE))


def test_a_verdict_is_of_one_version_of_one_engine_under_one_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    pool: Any = InconclusiveWorkers()
    verdicts, first = VerdictCache(pool, 1.0), question()
    verdicts.learn(first, verdict())
    assert verdicts.ask(first) == verdict()
    under_another_policy = first._replace(request=replace(first.request, policy=DataPolicy(allowed_tables=("a",))))
    for other in (under_another_policy, first._replace(engine="sql"), first._replace(organisation_id="org_2")):
        assert isinstance(verdicts.ask(other), Future)
    monkeypatch.setitem(ENGINES, "fact", replace(ENGINES["fact"], version=ENGINES["fact"].version + 1))
    assert isinstance(verdicts.ask(first), Future)


def test_who_asks_and_how_long_it_may_take_are_no_part_of_a_verdict(verdicts: VerdictCache) -> None:
    verdicts.learn(question(), verdict())
    assert verdicts.ask(question()._replace(agent_id="agent_2", seconds=7.0)) == verdict()


def test_a_request_is_queued_for_the_owner_of_its_source() -> None:
    pool = InconclusiveWorkers()
    engines = VerdictCache(pool, 1.0)  # type: ignore[arg-type]  # all that is asked of it
    OwnedVerdictSource(engines, "agent_1").ask(question())
    engines.ask(question())
    assert pool.by == ["agent_1", ""]
    engines.learn(question(), verdict())
    assert OwnedVerdictSource(engines, "agent_2").ask(question()) == verdict()


SQL = VerdictRequest("org_1", "sql", "sha256:1", EngineRequest(query="SELECT id FROM users"), "agent_1")
TIMEOUT = 60.0


@pytest.fixture
def at_work() -> Iterator[VerdictCache]:
    with closing(VerdictCache(EnginePool(ENGINES.values(), size=2, queue_limit=4), TIMEOUT)) as verdicts:
        yield verdicts


def test_who_asks_one_thing_many_times_at_once_fills_no_queue(at_work: VerdictCache) -> None:
    answers = [at_work.ask(SQL) for _ in range(300)]
    statuses = {pending.wait_result(TIMEOUT).status for pending in answers if isinstance(pending, Future)}
    assert statuses == {Status.VERIFIED}
    assert sum(isinstance(pending, PendingVerdict) for pending in answers) == 1


def test_another_agent_another_question_and_what_may_take_longer_have_turns_of_their_own(at_work: VerdictCache) -> None:
    others = (
        SQL._replace(agent_id="agent_2"),
        SQL._replace(organisation_id="org_2", agent_id="agent_3"),
        SQL._replace(action_hash="sha256:2", agent_id="agent_4"),
        SQL._replace(seconds=TIMEOUT),
    )
    tickets = [at_work.ask(item) for item in (SQL, *others)]
    assert all(isinstance(item, PendingVerdict) for item in tickets)


def test_what_was_not_settled_is_asked_again(at_work: VerdictCache) -> None:
    first = at_work.ask(SQL)
    assert isinstance(first, PendingVerdict)
    first.wait_result(TIMEOUT)
    # The verdict was not stored with `learn`.
    assert isinstance(at_work.ask(SQL), PendingVerdict)


def test_closing_the_pool_completes_every_pending_request() -> None:
    verdicts = VerdictCache(EnginePool(ENGINES.values(), size=2), TIMEOUT)
    tickets = [verdicts.ask(SQL) for _ in range(10)]
    verdicts.close()
    for ticket in tickets:
        assert isinstance(ticket, Future)
        assert ticket.wait_result(TIMEOUT).status in (Status.VERIFIED, Status.INCONCLUSIVE)
