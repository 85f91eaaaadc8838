"""Spec 8.2 and 8.3, ruling 4.2: trust is raised by a person on evidence from our own log, and lost by itself."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec

from qwed.guards.secrets import mask
from qwed.guards.text import has_unseen
from qwed.kernel.answer import Problem, problem
from qwed.kernel.bodies import LONGEST_TEXT, refuse_body
from qwed.kernel.change import Actor, change_of, keep_agent, notices_of
from qwed.kernel.services import Services
from qwed.kernel.views.record import HOUSE
from qwed.store.agent import Agent
from qwed.store.conduct import Offence
from qwed.store.parts import AgentChanged
from qwed.store.protocol import Change
from qwed.words import ErrorCode, Event, Trust
from qwed.words.clock import DAY
from qwed.words.ids import timed_id

ELEVATION, REDUCTION = "trust_elevation", "trust_reduction"
_FIELDS = ("agent_id", "request", "from_level", "to_level", "justification", "evidence")


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Spec 8.2, computed; what a request claims about itself is not read."""

    days_active: int
    total_actions: int
    denied_actions: int
    denial_rate: float
    attestations: int


class Wanted(NamedTuple):
    """A change of trust that is asked for."""

    kind: str
    to: Trust
    justification: str


def evidence_of(agent: Agent, services: Services) -> Evidence:
    """How the agent has done at its present level, from running counters: an old record does not earn twice."""
    merit = services.store.merit(agent.agent_id)
    days = int((services.clock.now() - max(agent.created_at, merit.since)) // DAY)
    rate = merit.denied / merit.actions if merit.actions else 0.0
    return Evidence(
        days_active=max(days, 0),
        total_actions=merit.actions,
        denied_actions=merit.denied,
        denial_rate=round(rate, 6),
        attestations=merit.attestations,
    )


def refuse_evidence(evidence: Evidence, services: Services) -> Problem | None:
    """Why this is not enough, if it is not."""
    settings = services.settings
    short = [
        text
        for text, enough in (
            (f"{settings.trust_min_days} days active", evidence.days_active >= settings.trust_min_days),
            (f"{settings.trust_min_actions} actions", evidence.total_actions >= settings.trust_min_actions),
            (
                f"a denial rate of at most {settings.trust_max_denial_rate}",
                # Not the rate as it is shown, which is rounded.
                evidence.denied_actions <= settings.trust_max_denial_rate * evidence.total_actions,
            ),
        )
        if not enough
    ]
    if not short:
        return None
    return problem(
        ErrorCode.CONFLICT,
        f"not enough evidence: more trust needs {', '.join(short)}",
        final=False,
        check="evidence_sufficient",
        details={"evidence": msgspec.to_builtins(evidence)},
    )


def read_request(raw: Any, agent: Agent) -> Wanted | Problem:
    """The change that is asked for, or what is wrong with the request."""
    wrong = refuse_body(raw, _FIELDS)
    if wrong is not None:
        return wrong
    if raw.get("agent_id") not in (None, agent.agent_id):
        return problem(ErrorCode.MALFORMED, "`agent_id` in the body is not the agent in the path")
    justification = raw.get("justification") or ""
    if not isinstance(justification, str) or len(justification) > LONGEST_TEXT or has_unseen(justification):
        return problem(ErrorCode.MALFORMED, f"`justification` must be a readable text, {LONGEST_TEXT} at most")
    if not isinstance(raw.get("evidence"), Mapping | None):
        return problem(ErrorCode.MALFORMED, "`evidence` must be an object; it is not believed in any case")
    return _read_levels(raw, agent, mask(justification))


def _read_levels(raw: Mapping[str, Any], agent: Agent, justification: str) -> Wanted | Problem:
    kind = raw.get("request", ELEVATION)
    if kind not in (ELEVATION, REDUCTION):
        return problem(ErrorCode.BAD_OPTION, f"`request` must be {ELEVATION} or {REDUCTION}")
    to = raw.get("to_level")
    # `type`, because True == 1 and 1.0 == 1
    if type(to) is not int or to not in (0, 1, 2, 3):
        return problem(ErrorCode.BAD_OPTION, "`to_level` must be a whole number from 0 to 3")
    stated = raw.get("from_level")
    if stated is not None and (type(stated) is not int or stated != agent.trust):
        return problem(ErrorCode.CONFLICT, f"`from_level` is not the agent's level, which is {int(agent.trust)}")
    if kind == ELEVATION and to != agent.trust + 1:
        message = f"trust is raised one level at a time, and this agent has level {int(agent.trust)}"
        advice = f"send to_level {int(agent.trust) + 1}; to lower it send `request`: `{REDUCTION}`"
        return problem(ErrorCode.BAD_OPTION, message, suggestion=advice)
    if kind == REDUCTION and to >= agent.trust:
        return problem(ErrorCode.BAD_OPTION, f"`to_level` must be below the agent's level, {int(agent.trust)}")
    return Wanted(kind, Trust(to), justification)


async def reduce_trust(agent: Agent, wanted: Wanted, actor: Actor, services: Services) -> Agent | Problem:
    """Lower an agent's trust at once."""
    change = AgentChanged(agent, replace(agent, trust=wanted.to))
    levels = {"level_before": int(agent.trust), "level_after": int(wanted.to)}
    return await keep_agent(Event.TRUST_LOWERED, change, wanted.justification or None, actor, services, **levels)


def degraded(before: Agent, after: Agent, offence: Offence, services: Services, now: float, about: str) -> Change:
    """Spec 8.3: a loss of trust, logged beside the decision that brought it about."""
    activity_id = timed_id("act", now)
    return change_of(
        Event.TRUST_DEGRADED,
        HOUSE,
        before.organisation_id,
        now,
        services,
        key=services.vault.key_of_agent(before),
        activity_id=activity_id,
        agent_id=before.agent_id,
        about=about,
        error=str(offence),
        level_before=int(before.trust),
        level_after=int(after.trust),
        said={"reason": str(offence)},
        parts=(AgentChanged(before, after),),
        notices=notices_of(
            "degraded", before, activity_id, services, now, trust_level=int(after.trust), reason=str(offence)
        ),
    )
