"""The story, played: each step is asked, what is permitted is done, and the outcome is held against the promise."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from qwed.cli.demo.shop import SCHEMA, Shop
from qwed.cli.demo.story import AGENT, DAILY_LIMIT_USD, OWNER, PERSON, Action, Facts, Said, Scene, refused

if TYPE_CHECKING:
    from qwed.cli.demo.stage import Stage
    from qwed_sdk import QWEDAgentClient, QWEDClient
    from qwed_sdk.records import Answer

_PERMITTED = frozenset({"APPROVED", "CORRECTED"})
_PATIENCE = 30.0


class Ruling(NamedTuple):
    """What a person says about an action that waits."""

    by: str
    approves: bool
    reason: str


Person = Callable[[Action], Ruling]


class Asked(NamedTuple):
    """One step, what was answered, and what came of it."""

    action: Action
    answer: "Answer"
    ms: float
    ruling: Ruling | None = None
    """Set where this is the answer after a person has ruled."""
    done: str | None = None
    """What happened in the world; None where nothing did."""

    @property
    def said(self) -> Said:
        """The decision and its code."""
        return Said(self.answer.decision, (self.answer.error or {}).get("code"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """A scene that was played; where a person said no, it is the scene with that in it."""

    scene: Scene
    asked: tuple[Asked, ...]
    facts: Facts
    trust: int
    spent_usd: float
    deviations: tuple[str, ...]

    @property
    def moral(self) -> str:
        """What there is to say of the world now; nothing where it is not as promised."""
        if self.deviations:
            return ""
        known = {"trust": self.trust, "spent_usd": self.spent_usd, "limit_usd": DAILY_LIMIT_USD}
        return self.scene.moral.format(**self.facts._asdict(), **known)


class Cast(NamedTuple):
    """Who plays."""

    owner: "QWEDClient"
    agent: "QWEDAgentClient"
    approver: "QWEDClient"
    shop: Shop
    person: Person


def cast(owner: "QWEDClient", base_url: str, shop: Shop, person: Person) -> Cast:
    """Register the agent, and give the person a key of their own."""
    from qwed_sdk import QWEDAgentClient, QWEDClient

    agent = QWEDAgentClient.register(
        AGENT,
        OWNER,
        client=owner,
        permissions={"schema_ddl": SCHEMA},
        budget={"max_daily_cost_usd": DAILY_LIMIT_USD},
    )
    key = owner.create_key(PERSON, "approver")["key"]
    return Cast(owner, agent, QWEDClient(key, base_url), shop, person)


def play(scene: Scene, cast: Cast, stage: "Stage") -> Outcome:
    """Play one scene."""
    from qwed_sdk import QWEDError

    stage.opens(scene)
    before = cast.shop.facts()
    asked: list[Asked] = []
    trouble = ""
    try:
        cast.agent.new_conversation(scene.name)
        for each in _steps(scene, cast, stage):
            asked.append(each)
            stage.hears(each)
    except QWEDError as error:
        trouble = f"the agent could not ask: {error}"
    outcome = _outcome(scene, cast, tuple(asked), before, trouble)
    stage.closes(outcome)
    return outcome


def _steps(scene: Scene, cast: Cast, stage: "Stage") -> Iterator[Asked]:
    for action in scene.steps:
        stage.tries(action)
        began = time.perf_counter()
        answer = cast.agent.verify_action(action)
        asked = Asked(action, answer, (time.perf_counter() - began) * 1000)
        yield _acted(asked, cast)
        if asked.said.decision == "PENDING":
            yield _acted(_ruled(asked, cast), cast)


def _ruled(asked: Asked, cast: Cast) -> Asked:
    """The answer after a person has had a say."""
    ruling = cast.person(asked.action)
    settle = cast.approver.approve if ruling.approves else cast.approver.reject
    settle(str(asked.answer.approval_id), ruling.reason)
    answer = cast.agent.wait_for_decision(str(asked.answer.action_id), _PATIENCE)
    return asked._replace(answer=answer, ruling=ruling)


def _acted(asked: Asked, cast: Cast) -> Asked:
    """Do what was permitted, exactly, and report it."""
    if asked.said.decision not in _PERMITTED:
        return asked
    permitted = {**asked.action, **(asked.answer.corrected or {})}
    done = cast.shop.do(permitted)
    cast.agent.log_execution(str(asked.answer.action_id), True, asked.answer.attestation, {"done": done})
    return asked._replace(done=done)


def _outcome(scene: Scene, cast: Cast, asked: tuple[Asked, ...], before: Facts, trouble: str) -> Outcome:
    from qwed_sdk import QWEDError

    trust, spent = -1, 0.0
    try:
        trust = int(cast.owner.get_agent(cast.agent.agent_id).trust_level)
        spent = float(cast.owner.get_agent_budget(cast.agent.agent_id)["cost"]["current_daily_usd"])
    except QWEDError as error:
        trouble = trouble or f"the server could not be asked: {error}"
    promised, facts = _promised(scene, asked), cast.shop.facts()
    change = Facts(*(now - then for now, then in zip(facts, before, strict=True)))
    deviations = (*([trouble] if trouble else []), *_deviations(promised, asked, change, trust))
    return Outcome(scene=promised, asked=asked, facts=facts, trust=trust, spent_usd=spent, deviations=deviations)


def _promised(scene: Scene, asked: tuple[Asked, ...]) -> Scene:
    """A person may say no, and then that is what is promised."""
    said_no = any(each.ruling is not None and not each.ruling.approves for each in asked)
    return refused(scene) if said_no else scene


def _deviations(scene: Scene, asked: tuple[Asked, ...], change: Facts, trust: int) -> Iterator[str]:
    heard = tuple(each.said for each in asked)
    done = sum(each.done is not None for each in asked)
    pairs = (
        ("answers", _listed(scene.answers), _listed(heard)),
        ("actions done", scene.done, done),
        ("trust level", scene.trust, trust),
        *(
            (f"change of {name}", *pair)
            for name, pair in zip(Facts._fields, zip(scene.change, change, strict=True), strict=True)
        ),
    )
    for what, promised, found in pairs:
        if promised != found:
            yield f"{what}: promised was {promised}, and it is {found}"


def _listed(said: tuple[Said, ...]) -> str:
    return ", ".join(" ".join(filter(None, each)) for each in said) or "none"
