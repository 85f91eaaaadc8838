"""Spec 8.2 and 8.3, ruling 4.2: trust is raised by a person on evidence from our own log, and lost by itself."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec

from qwed.guards.secrets import mask
from qwed.kernel.answer import Problem, problem
from qwed.kernel.change import LONGEST_TEXT, Actor, change_of, keep, notices_of, refuse_body
from qwed.kernel.record_views import HOUSE
from qwed.kernel.services import Services
from qwed.store.agent import Agent, AgentStatus
from qwed.store.conduct import Offence
from qwed.store.parts import AgentChanged, Approval, ElevationRequested
from qwed.store.protocol import Change
from qwed.words import ErrorCode, Event, Trust
from qwed.words.clock import DAY, rfc3339
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


class Requested(msgspec.Struct, frozen=True, kw_only=True):
    """What a request for more trust gets: the approval to wait for, and the evidence a person will see."""

    approval_id: str
    evidence: Evidence
    expires_at: str


def evidence_of(agent: Agent, services: Services) -> Evidence:
    """How the agent has done since it was registered, from the running sums."""
    tally = services.store.tally(agent.agent_id, None, None)
    days = int((services.clock.now() - agent.created_at) // DAY)
    rate = tally.denied / tally.total_actions if tally.total_actions else 0.0
    return Evidence(
        days_active=max(days, 0),
        total_actions=tally.total_actions,
        denied_actions=tally.denied,
        denial_rate=round(rate, 6),
        attestations=tally.attestations,
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
    if not isinstance(justification, str) or len(justification) > LONGEST_TEXT or "\x00" in justification:
        return problem(ErrorCode.MALFORMED, f"`justification` must be a text of at most {LONGEST_TEXT} characters")
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
        return problem(ErrorCode.BAD_OPTION, f"trust is raised one level at a time: from {int(agent.trust)}")
    if kind == REDUCTION and to >= agent.trust:
        return problem(ErrorCode.BAD_OPTION, f"`to_level` must be below the agent's level, {int(agent.trust)}")
    return Wanted(kind, Trust(to), justification)


async def request_elevation(agent: Agent, wanted: Wanted, by: str, services: Services) -> Requested | Problem:
    """Ask a person for one level more; refused where the log does not speak for the agent."""
    if agent.status is AgentStatus.SUSPENDED or services.store.halted(agent.organisation_id):
        return problem(ErrorCode.AGENT_SUSPENDED)
    evidence = evidence_of(agent, services)
    refusal = refuse_evidence(evidence, services)
    if refusal is not None:
        return refusal
    now = services.clock.now()
    request = {
        "from_level": int(agent.trust),
        "to_level": int(wanted.to),
        "justification": wanted.justification,
        "evidence": msgspec.to_builtins(evidence),
    }
    approval = Approval(
        approval_id=timed_id("apr", now),
        action_hash="",
        cost=0,
        tokens=0,
        high_risk_calls=0,
        created_at=now,
        expires_at=now + services.settings.approval_ttl_seconds,
        requested_by=by,
        kind=ELEVATION,
        request=msgspec.json.encode(request).decode(),
    )
    activity_id = timed_id("act", now)
    change = change_of(
        Event.TRUST_REQUESTED,
        by,
        agent.organisation_id,
        now,
        activity_id=activity_id,
        agent_id=agent.agent_id,
        level_before=int(agent.trust),
        level_after=int(wanted.to),
        said=request,
        parts=(ElevationRequested(agent.organisation_id, agent.agent_id, activity_id, approval),),
        notices=notices_of("pending", agent, activity_id, services, now, approval_id=approval.approval_id),
    )
    kept = await keep(change, services)
    if isinstance(kept, Problem):
        return kept
    return Requested(approval_id=approval.approval_id, evidence=evidence, expires_at=rfc3339(approval.expires_at))


async def reduce_trust(agent: Agent, wanted: Wanted, actor: Actor, services: Services) -> Agent | Problem:
    """Lower an agent's trust at once."""
    after = replace(agent, trust=wanted.to)
    change = change_of(
        Event.TRUST_LOWERED,
        actor.by,
        agent.organisation_id,
        services.clock.now(),
        agent_id=agent.agent_id,
        level_before=int(agent.trust),
        level_after=int(after.trust),
        said={"reason": wanted.justification or None},
        parts=(AgentChanged(agent, after),),
    )
    kept = await keep(change, services)
    return kept if isinstance(kept, Problem) else after


def degraded(before: Agent, after: Agent, offence: Offence, services: Services, now: float, about: str) -> Change:
    """Spec 8.3: a loss of trust, logged beside the decision that brought it about."""
    activity_id = timed_id("act", now)
    return change_of(
        Event.TRUST_DEGRADED,
        HOUSE,
        before.organisation_id,
        now,
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
