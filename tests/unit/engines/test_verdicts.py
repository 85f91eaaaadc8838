"""Verdicts that are remembered: those that depend on their input alone, and are small."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from qwed.engines.pool import EnginePool, Turn
from qwed.engines.protocol import EngineRequest, Policy
from qwed.engines.table import ENGINES
from qwed.engines.verdicts import OnBehalf, Question, Verdicts
from qwed.waiting import Ticket, done
from qwed.words import Status, Verdict


def verdict(status: Status = Status.VERIFIED, evidence: str = "so it is") -> Verdict:
    return Verdict(status=status, engine="fact", message="", result={"evidence": evidence})


@pytest.fixture
def verdicts() -> Verdicts:
    return Verdicts(EnginePool(ENGINES.values(), size=2), 1.0)


def question(organisation_id: str = "org_1", digest: str = "sha256:1", *, strict: bool = False) -> Question:
    return Question(organisation_id, "fact", digest, EngineRequest(query="it is so", strict=strict))


def test_a_verdict_is_remembered_for_the_same_question_alone(verdicts: Verdicts) -> None:
    verdicts.learn(question(), verdict())
    assert verdicts.ask(question()) == verdict()
    for other in (question("org_2"), question(digest="sha256:2"), question(strict=True)):
        verdicts.learn(other, verdict(Status.FAILED))
    assert verdicts.ask(question()) == verdict()


@pytest.mark.parametrize("found", [verdict(evidence="x" * 10_000), verdict(Status.INCONCLUSIVE), verdict(Status.ERROR)])
def test_what_is_large_or_not_settled_is_not(verdicts: Verdicts, found: Verdict) -> None:
    verdicts.learn(question(), found)
    assert not verdicts._known


@pytest.mark.parametrize("engine", [name for name, row in ENGINES.items() if not row.lasting])
def test_what_looks_at_the_calendar_is_asked_again(verdicts: Verdicts, engine: str) -> None:
    verdicts.learn(question()._replace(engine=engine), replace(verdict(), engine=engine))
    assert not verdicts._known


class Asked:
    """Workers that say of every question that nobody has asked it before."""

    def __init__(self) -> None:
        self.by: list[object] = []

    def start(self) -> None:
        """Nothing is started."""

    def submit(self, *_question: object, who: object = "", **_more: object) -> Ticket[Verdict]:
        self.by.append(who)
        return done(verdict(Status.INCONCLUSIVE))


def test_a_verdict_is_of_one_version_of_one_engine_under_one_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    pool: Any = Asked()
    verdicts, first = Verdicts(pool, 1.0), question()
    verdicts.learn(first, verdict())
    assert verdicts.ask(first) == verdict()
    under_another_policy = first._replace(request=replace(first.request, policy=Policy(allowed_tables=("a",))))
    for other in (under_another_policy, first._replace(engine="sql"), first._replace(organisation_id="org_2")):
        assert isinstance(verdicts.ask(other), Ticket)
    monkeypatch.setitem(ENGINES, "fact", replace(ENGINES["fact"], version=ENGINES["fact"].version + 1))
    assert isinstance(verdicts.ask(first), Ticket)


def test_who_asks_and_how_long_it_may_take_are_no_part_of_a_verdict(verdicts: Verdicts) -> None:
    verdicts.learn(question(), verdict())
    assert verdicts.ask(question()._replace(agent_id="agent_2", seconds=7.0)) == verdict()


def test_whoever_asks_on_behalf_of_somebody_has_their_turn() -> None:
    pool = Asked()
    engines = Verdicts(pool, 1.0)  # type: ignore[arg-type]  # all that is asked of it
    OnBehalf(engines, "agent_1").ask(question())
    engines.ask(question())
    assert pool.by == ["agent_1", ""]
    engines.learn(question(), verdict())
    assert OnBehalf(engines, "agent_2").ask(question()) == verdict()


SQL = Question("org_1", "sql", "sha256:1", EngineRequest(query="SELECT id FROM users"), "agent_1")
PATIENCE = 60.0


@pytest.fixture
def at_work() -> Iterator[Verdicts]:
    with closing(Verdicts(EnginePool(ENGINES.values(), size=2, queue_limit=4), PATIENCE)) as verdicts:
        yield verdicts


def test_who_asks_one_thing_many_times_at_once_fills_no_queue(at_work: Verdicts) -> None:
    tickets = [at_work.ask(SQL) for _ in range(300)]
    found = {each.block(PATIENCE).status for each in tickets if isinstance(each, Ticket)}
    assert found == {Status.VERIFIED}
    assert sum(isinstance(each, Turn) for each in tickets) == 1


def test_another_agent_another_question_and_what_may_take_longer_have_turns_of_their_own(at_work: Verdicts) -> None:
    others = (
        SQL._replace(agent_id="agent_2"),
        SQL._replace(organisation_id="org_2", agent_id="agent_3"),
        SQL._replace(action_hash="sha256:2", agent_id="agent_4"),
        SQL._replace(seconds=PATIENCE),
    )
    tickets = [at_work.ask(each) for each in (SQL, *others)]
    assert all(isinstance(each, Turn) for each in tickets)


def test_what_was_not_settled_is_asked_again(at_work: Verdicts) -> None:
    first = at_work.ask(SQL)
    assert isinstance(first, Turn)
    first.block(PATIENCE)
    # Nobody has learned what it came to.
    assert isinstance(at_work.ask(SQL), Turn)


def test_the_end_of_the_workers_is_told_to_everybody_who_waits() -> None:
    verdicts = Verdicts(EnginePool(ENGINES.values(), size=2), PATIENCE)
    tickets = [verdicts.ask(SQL) for _ in range(10)]
    verdicts.close()
    for ticket in tickets:
        assert isinstance(ticket, Ticket)
        assert ticket.block(PATIENCE).status in (Status.VERIFIED, Status.INCONCLUSIVE)
