"""Runner of the demo: verifies each step, executes what is permitted and compares the outcome with the scenario."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from qwed.cli.demo.sample_db import SCHEMA, Shop
from qwed.cli.demo.scenario import (
    AGENT,
    DAILY_LIMIT_USD,
    OWNER,
    PERSON,
    Action,
    ScenarioAnswer,
    Scene,
    ShopFacts,
    rejected_variant,
)

if TYPE_CHECKING:
    from qwed.cli.demo.render import DemoRenderer
    from qwed_sdk import QWEDAgentClient, QWEDClient
    from qwed_sdk.models import Answer

_PERMITTED = frozenset({"APPROVED", "CORRECTED"})
_WAIT_SECONDS = 30.0


class PersonDecision(NamedTuple):
    """Decision of a person on a pending action."""

    by: str
    approves: bool
    reason: str


Approver = Callable[[Action], PersonDecision]


class DemoStep(NamedTuple):
    """Action, the decision on it and its result."""

    action: Action
    answer: "Answer"
    ms: float
    ruling: PersonDecision | None = None
    """Set if the answer follows the decision of a person."""
    done: str | None = None
    """Result of the execution; None if nothing was executed."""

    @property
    def outcome(self) -> ScenarioAnswer:
        """Decision and error code."""
        return ScenarioAnswer(self.answer.decision, (self.answer.error or {}).get("code"))


@dataclass(frozen=True, kw_only=True, slots=True)
class SceneOutcome:
    """Result of a scene; `scene` is the variant for a rejection if the person rejected the action."""

    scene: Scene
    steps: tuple[DemoStep, ...]
    facts: ShopFacts
    trust: int
    spent_usd: float
    deviations: tuple[str, ...]

    @property
    def moral(self) -> str:
        """Closing sentence of the scene; empty if there are deviations."""
        if self.deviations:
            return ""
        values = {"trust": self.trust, "spent_usd": self.spent_usd, "limit_usd": DAILY_LIMIT_USD}
        return self.scene.moral.format(**self.facts._asdict(), **values)


class Participants(NamedTuple):
    """Clients, database and approver of a demo."""

    owner: "QWEDClient"
    agent: "QWEDAgentClient"
    approver: "QWEDClient"
    shop: Shop
    person: Approver


def register_participants(owner: "QWEDClient", base_url: str, shop: Shop, person: Approver) -> Participants:
    """Register the agent and create an API key for the approver."""
    from qwed_sdk import QWEDAgentClient, QWEDClient

    agent = QWEDAgentClient.register(
        AGENT,
        OWNER,
        client=owner,
        permissions={"schema_ddl": SCHEMA},
        budget={"max_daily_cost_usd": DAILY_LIMIT_USD},
    )
    key = owner.create_key(PERSON, "approver")["key"]
    return Participants(owner, agent, QWEDClient(key, base_url), shop, person)


def run_scene(scene: Scene, participants: Participants, renderer: "DemoRenderer") -> SceneOutcome:
    """Run one scene and return its outcome."""
    from qwed_sdk import QWEDError

    renderer.show_scene(scene)
    before = participants.shop.facts()
    steps: list[DemoStep] = []
    error_text = ""
    try:
        participants.agent.new_conversation(scene.name)
        for step in _steps(scene, participants, renderer):
            steps.append(step)
            renderer.show_step(step)
    except QWEDError as error:
        error_text = f"the agent's request failed: {error}"
    outcome = _outcome(scene, participants, tuple(steps), before, error_text)
    renderer.show_outcome(outcome)
    return outcome


def _steps(scene: Scene, participants: Participants, renderer: "DemoRenderer") -> Iterator[DemoStep]:
    for action in scene.steps:
        renderer.show_action(action)
        start = time.perf_counter()
        answer = participants.agent.verify_action(action)
        step = DemoStep(action, answer, (time.perf_counter() - start) * 1000)
        yield _execute_permitted(step, participants)
        if step.outcome.decision == "PENDING":
            yield _execute_permitted(_resolve_pending(step, participants), participants)


def _resolve_pending(step: DemoStep, participants: Participants) -> DemoStep:
    """Return the step with the answer after the person has decided."""
    decision = participants.person(step.action)
    resolve = participants.approver.approve if decision.approves else participants.approver.reject
    resolve(str(step.answer.approval_id), decision.reason)
    answer = participants.agent.wait_for_decision(str(step.answer.action_id), _WAIT_SECONDS)
    return step._replace(answer=answer, ruling=decision)


def _execute_permitted(step: DemoStep, participants: Participants) -> DemoStep:
    """Execute exactly what was permitted and report it."""
    if step.outcome.decision not in _PERMITTED:
        return step
    permitted = {**step.action, **(step.answer.corrected or {})}
    result = participants.shop.execute(permitted)
    participants.agent.log_execution(str(step.answer.action_id), True, step.answer.attestation, {"done": result})
    return step._replace(done=result)


def _outcome(
    scene: Scene, participants: Participants, steps: tuple[DemoStep, ...], before: ShopFacts, error_text: str
) -> SceneOutcome:
    from qwed_sdk import QWEDError

    trust, spent = -1, 0.0
    try:
        trust = int(participants.owner.get_agent(participants.agent.agent_id).trust_level)
        spent = float(participants.owner.get_agent_budget(participants.agent.agent_id)["cost"]["current_daily_usd"])
    except QWEDError as error:
        error_text = error_text or f"the server request failed: {error}"
    expected, facts = _expected_scene(scene, steps), participants.shop.facts()
    change = ShopFacts(*(now - then for now, then in zip(facts, before, strict=True)))
    deviations = (*([error_text] if error_text else []), *_deviations(expected, steps, change, trust))
    return SceneOutcome(scene=expected, steps=steps, facts=facts, trust=trust, spent_usd=spent, deviations=deviations)


def _expected_scene(scene: Scene, steps: tuple[DemoStep, ...]) -> Scene:
    """Return the scene, or its rejection variant if the person rejected the action."""
    rejected = any(step.ruling is not None and not step.ruling.approves for step in steps)
    return rejected_variant(scene) if rejected else scene


def _deviations(scene: Scene, steps: tuple[DemoStep, ...], change: ShopFacts, trust: int) -> Iterator[str]:
    answers = tuple(step.outcome for step in steps)
    done = sum(step.done is not None for step in steps)
    pairs = (
        ("answers", _join_answers(scene.answers), _join_answers(answers)),
        ("actions done", scene.done, done),
        ("trust level", scene.trust, trust),
        *(
            (f"change of {name}", *pair)
            for name, pair in zip(ShopFacts._fields, zip(scene.change, change, strict=True), strict=True)
        ),
    )
    for what, expected, actual in pairs:
        if expected != actual:
            yield f"{what}: expected {expected}, got {actual}"


def _join_answers(answers: tuple[ScenarioAnswer, ...]) -> str:
    return ", ".join(" ".join(filter(None, answer)) for answer in answers) or "none"
