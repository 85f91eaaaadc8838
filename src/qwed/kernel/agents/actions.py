"""INTERFACES 1: one action as it stands now, which is what an agent that waits for a person looks at."""

from typing import Any, NamedTuple

import msgspec

from qwed.kernel.answer import Answer, Problem, problem
from qwed.kernel.people.approvals import REJECTED, expire
from qwed.kernel.proving.proof import attestation_of, stated_in
from qwed.kernel.request import read_action
from qwed.kernel.services import Services
from qwed.kernel.stages.authenticate import inactive
from qwed.kernel.tools import text_of
from qwed.kernel.views.record import ActivityView, Resolution, activity_fields, cost_of
from qwed.ledger import leaf
from qwed.ledger.attest import Stated
from qwed.store.agent import Agent
from qwed.store.protocol import Entry
from qwed.words import Decision, ErrorCode


class ActionView(ActivityView, frozen=True, kw_only=True):
    """An activity with its present decision, and what the agent needs to act on it."""

    first_decision: str | None
    verified_query: str | None
    attestation: str | None


def action_view(agent: Agent, action_id: str, services: Services) -> ActionView | Problem:
    """The action as it stands, or that there is none of this name; a stopped agent is permitted nothing."""
    found = permitted_view(agent, action_id, services)
    if isinstance(found, Problem) or found.decision not in _PERMITTED or not services.stopped(agent):
        return found
    # Whoever polls acts on the decision alone: it must not read as it did before the agent was stopped.
    return msgspec.structs.replace(
        found,
        decision=Decision.DENIED,
        error=msgspec.to_builtins(inactive(agent, services)),
        attestation=None,
        verified_query=None,
    )


def permitted_view(agent: Agent, action_id: str, services: Services) -> ActionView | Problem:
    """The action with whatever was permitted, whether or not the agent may act now."""
    expire(services, services.clock.now())
    entry = services.store.find_activity(agent.agent_id, action_id)
    if entry is None:
        return problem(ErrorCode.NOT_FOUND, "no such action of this agent")
    kept = leaf.decode(entry.leaf)
    if kept.event is not None:
        return problem(ErrorCode.NOT_FOUND, "no such action of this agent")
    fields = activity_fields(entry, services)
    decision = _decision_now(fields, kept)
    permitting = _permitting(agent, entry, kept, services) if decision in _PERMITTED else None
    fields |= {"decision": decision, "first_decision": kept.decision, "verified_query": None, "attestation": None}
    if permitting is not None:
        return ActionView(**fields | _permission(fields, permitting, services))
    if decision != kept.decision:
        fields["error"] = _refusal(fields["resolution"])
    return ActionView(**fields)


def _refusal(settled: Resolution) -> dict[str, Any]:
    """What a waiting action shows once it was refused: no more word of waiting."""
    refused = f"a person refused this: {settled.reason}" if settled.state == REJECTED else settled.reason
    found = problem(
        ErrorCode.NEEDS_APPROVAL,
        refused,
        final=True,
        suggestion="do not act: ask about another action at the next step",
    )
    shown: dict[str, Any] = msgspec.to_builtins(found)
    return shown


def _permission(fields: dict[str, Any], permitting: "_Permitting", services: Services) -> dict[str, Any]:
    """What a permitted action shows: no error of its past, what it cost, and what may be executed."""
    return {
        "error": None,
        "cost": cost_of(permitting.leaf),
        "attestation_id": permitting.leaf.attestation_id,
        **_to_act_on(fields, permitting, services),
    }


_PERMITTED = frozenset(decision for decision in Decision if decision.permits)


class _Permitting(NamedTuple):
    """The leaf that permits the action: the decision's own, or that of the approval which settled it."""

    leaf: leaf.Leaf
    entry: Entry
    stated: Stated


def waits(action: ActionView) -> bool:
    """Whether a person has yet to decide."""
    return action.decision == Decision.PENDING


def _decision_now(fields: dict[str, Any], kept: leaf.Leaf) -> str | None:
    resolution: Resolution | None = fields["resolution"]
    return kept.decision if resolution is None else resolution.decision


def _permitting(agent: Agent, entry: Entry, kept: leaf.Leaf, services: Services) -> _Permitting | None:
    if entry.resolved_in is not None:
        settled = services.store.find_activity(agent.agent_id, entry.resolved_in)
        if settled is None:
            return None
        entry, kept = settled, leaf.decode(settled.leaf)
    content = services.vault.content(entry, kept.activity_id)
    return _Permitting(kept, entry, stated_in(kept, msgspec.json.decode(content.text)))


def _verified_query(fields: dict[str, Any], stated: Stated) -> str | None:
    """The text that may be executed; not where a secret was masked in it, because then it is another text."""
    action = read_action(fields["corrected"] or fields["action"])
    if isinstance(action, Answer) or stated.sub != f"sha256:{action.hash}":
        return None
    return text_of(action, "query") or None


def _to_act_on(fields: dict[str, Any], permitting: _Permitting, services: Services) -> dict[str, Any]:
    """The text and the token; neither once the attestation was revoked."""
    name = permitting.leaf.attestation_id
    if name is not None and services.store.revoked(name) is not None:
        return {}
    return {
        "verified_query": _verified_query(fields, permitting.stated),
        "attestation": _attestation(permitting, services),
    }


def _attestation(permitting: _Permitting, services: Services) -> str | None:
    """Issued again from the log."""
    if permitting.leaf.attestation_id is None or permitting.stated.sub is None:
        return None
    entry = permitting.entry
    return attestation_of(permitting.leaf, permitting.stated, entry.organisation_id, entry.log_index, services)
