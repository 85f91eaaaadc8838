"""Verdicts that are remembered: those that depend on their input alone, and are small."""

import pytest

from qwed.engines.pool import EnginePool
from qwed.engines.protocol import EngineRequest
from qwed.engines.table import ENGINES
from qwed.engines.verdicts import Question, Verdicts
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
