"""Current state of one action, for an agent that waits for an approval (INTERFACES 1)."""

from typing import Any, NamedTuple

import msgspec

from qwed.domain.agent import Agent
from qwed.kernel.admin.approvals import REJECTED, expire
from qwed.kernel.admission import inactive_problem
from qwed.kernel.answer import Answer, Problem, problem
from qwed.kernel.audit.issue import attestation_of, extras_in
from qwed.kernel.request import read_action
from qwed.kernel.services import Services
from qwed.kernel.tools import text_of
from qwed.kernel.views.activity_views import ActivityView, Resolution, activity_fields, cost_of
from qwed.ledger import leaf
from qwed.ledger.attest import AttestationExtras
from qwed.model import Decision, ErrorCode
from qwed.store.protocol import ActivityRecord


class ActionView(ActivityView, frozen=True, kw_only=True):
    """An activity with its current decision, and the data the agent needs to execute it."""

    first_decision: str | None
    verified_query: str | None
    attestation: str | None


def action_view(agent: Agent, action_id: str, services: Services) -> ActionView | Problem:
    """Return the action with its current decision, or NOT_FOUND; a stopped agent is permitted nothing."""
    view = permitted_view(agent, action_id, services)
    if isinstance(view, Problem) or view.decision not in _PERMITTED or not services.stopped(agent):
        return view
    # A polling agent acts on the decision alone: after a stop it must not be permitted any more.
    return msgspec.structs.replace(
        view,
        decision=Decision.DENIED,
        error=msgspec.to_builtins(inactive_problem(agent, services.store.halted(agent.organisation_id))),
        attestation=None,
        verified_query=None,
    )


def permitted_view(agent: Agent, action_id: str, services: Services) -> ActionView | Problem:
    """Return the action with its permission, whether or not the agent is stopped."""
    expire(services, services.clock.now())
    entry = services.store.find_activity(agent.agent_id, action_id)
    if entry is None:
        return problem(ErrorCode.NOT_FOUND, "this agent has no such action")
    decision_leaf = leaf.decode(entry.leaf)
    if decision_leaf.event is not None:
        return problem(ErrorCode.NOT_FOUND, "this agent has no such action")
    fields = activity_fields(entry, services)
    decision = _decision_now(fields, decision_leaf)
    permitting = _permitting_leaf(agent, entry, decision_leaf, services) if decision in _PERMITTED else None
    fields |= {
        "decision": decision,
        "first_decision": decision_leaf.decision,
        "verified_query": None,
        "attestation": None,
    }
    if permitting is not None:
        return ActionView(**fields | _permitted_fields(fields, permitting, services))
    if decision != decision_leaf.decision:
        fields["error"] = _refusal_error(fields["resolution"])
    return ActionView(**fields)


def _refusal_error(resolution: Resolution) -> dict[str, Any]:
    """Return the error of a pending action that was rejected or has expired."""
    message = f"a person rejected this: {resolution.reason}" if resolution.state == REJECTED else resolution.reason
    error = problem(
        ErrorCode.NEEDS_APPROVAL,
        message,
        final=True,
        suggestion="do not execute it: request another action at the next step",
    )
    members: dict[str, Any] = msgspec.to_builtins(error)
    return members


def _permitted_fields(fields: dict[str, Any], permitting: "_PermittingLeaf", services: Services) -> dict[str, Any]:
    """Return the members of a permitted action: no earlier error, its cost, and the text to execute."""
    return {
        "error": None,
        "cost": cost_of(permitting.leaf),
        "attestation_id": permitting.leaf.attestation_id,
        **_executable_fields(fields, permitting, services),
    }


_PERMITTED = frozenset(decision for decision in Decision if decision.permits)


class _PermittingLeaf(NamedTuple):
    """The leaf that permits the action: that of the decision, or that of the approval."""

    leaf: leaf.Leaf
    entry: ActivityRecord
    stated: AttestationExtras


def is_pending(action: ActionView) -> bool:
    """Return True if a person has yet to decide."""
    return action.decision == Decision.PENDING


def _decision_now(fields: dict[str, Any], decision_leaf: leaf.Leaf) -> str | None:
    resolution: Resolution | None = fields["resolution"]
    return decision_leaf.decision if resolution is None else resolution.decision


def _permitting_leaf(
    agent: Agent, entry: ActivityRecord, permitting: leaf.Leaf, services: Services
) -> _PermittingLeaf | None:
    if entry.resolved_in is not None:
        resolving = services.store.find_activity(agent.agent_id, entry.resolved_in)
        if resolving is None:
            return None
        entry, permitting = resolving, leaf.decode(resolving.leaf)
    content = services.vault.content(entry, permitting.activity_id)
    return _PermittingLeaf(permitting, entry, extras_in(permitting, msgspec.json.decode(content.text)))


def _verified_query(fields: dict[str, Any], extras: AttestationExtras) -> str | None:
    """Return the text that may be executed; None if a secret was masked in it, because that is another text."""
    action = read_action(fields["corrected"] or fields["action"])
    if isinstance(action, Answer) or extras.sub != f"sha256:{action.hash}":
        return None
    return text_of(action, "query") or None


def _executable_fields(fields: dict[str, Any], permitting: _PermittingLeaf, services: Services) -> dict[str, Any]:
    """Return the text and the token; nothing after the attestation was revoked."""
    attestation_id = permitting.leaf.attestation_id
    if attestation_id is not None and services.store.revoked(attestation_id) is not None:
        return {}
    return {
        "verified_query": _verified_query(fields, permitting.stated),
        "attestation": _attestation(permitting, services),
    }


def _attestation(permitting: _PermittingLeaf, services: Services) -> str | None:
    """Issue the attestation again from the log."""
    if permitting.leaf.attestation_id is None or permitting.stated.sub is None:
        return None
    entry = permitting.entry
    return attestation_of(permitting.leaf, permitting.stated, entry.organisation_id, entry.log_index, services)
