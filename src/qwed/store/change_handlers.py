"""Handlers of the parts of a change: conflict check, statements, cache update; one row per kind of part."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from qwed.domain import change_parts
from qwed.domain.access_lists import MAX_LIST_ENTRIES
from qwed.domain.agent import Agent
from qwed.domain.change_parts import Conflict
from qwed.domain.write_set import Notice
from qwed.guards.tool_approval import case_key
from qwed.store import sql
from qwed.store.columns import insert, upsert
from qwed.store.entity_cache import EntityCache, ReadOne, Row
from qwed.store.policy_set_rows import policy_set_row

Statement = tuple[str, Row]
MAX_UNDELIVERED = 10_000
"""Queued notices of one webhook; further ones are dropped."""


class ChangeContext(NamedTuple):
    """State that a handler may read or update."""

    entities: EntityCache
    one: ReadOne
    write: int
    """Number of the write that carries this change."""
    durable: int
    """Number of the last durable write."""


class _PartHandler(NamedTuple):
    conflict: Callable[[Any, ChangeContext], Conflict | None]
    statements: Callable[[Any], tuple[Statement, ...]]
    apply: Callable[[Any, ChangeContext], None]


def _never(_part: Any, _desk: ChangeContext) -> None:
    return None


def _claim_of_name(agent: Agent) -> str:
    return f"{agent.organisation_id} {agent.name_key}"


def _refuse_name(agent: Agent, context: ChangeContext) -> Conflict | None:
    """Return the conflict with another agent of this name, stored or about to be."""
    row = context.one(sql.SELECT_OTHER_NAMED, (agent.organisation_id, agent.name_key, agent.agent_id))
    taken = row is not None or context.entities.is_claimed(_claim_of_name(agent))
    return Conflict.NAME_IN_USE if taken else None


def _put_named_agent(agent: Agent, context: ChangeContext) -> None:
    context.entities.put_agent(agent)
    context.entities.claim(_claim_of_name(agent), context.write, context.durable)


def _refuse_agent(part: change_parts.AgentChanged, context: ChangeContext) -> Conflict | None:
    current = context.entities.agent(part.before.agent_id)
    if current is not part.before and current != part.before:
        return Conflict.STALE
    return _refuse_name(part.after, context) if part.is_renamed else None


def _apply_agent(part: change_parts.AgentChanged, context: ChangeContext) -> None:
    (_put_named_agent if part.is_renamed else _put_agent)(part.after, context)


def _put_agent(agent: Agent, context: ChangeContext) -> None:
    context.entities.put_agent(agent)


def _refuse_standing(part: change_parts.AgentUnchanged, context: ChangeContext) -> Conflict | None:
    current = context.entities.agent(part.agent.agent_id)
    stands = current == part.agent and context.entities.is_active(part.agent)
    return None if stands else Conflict.STALE


def _refuse_elevation(part: change_parts.ElevationRequested, context: ChangeContext) -> Conflict | None:
    return Conflict.REQUESTED if context.entities.has_open_elevation(part.agent_id) else None


def _refuse_resolution(part: change_parts.ApprovalResolved, context: ChangeContext) -> Conflict | None:
    row = context.one("SELECT state FROM approvals WHERE approval_id = ?", (part.approval_id,))
    settled = row is None or row[0] != "pending" or context.entities.is_claimed(part.approval_id)
    return Conflict.RESOLVED if settled else None


def _apply_resolution(part: change_parts.ApprovalResolved, context: ChangeContext) -> None:
    context.entities.claim(part.approval_id, context.write, context.durable)
    if part.kind != "action":
        context.entities.put_open_elevation(part.agent_id, False)


def _refuse_group(part: change_parts.GroupApproved, context: ChangeContext) -> Conflict | None:
    row = context.one("SELECT state, group_approvals FROM approvals WHERE approval_id = ?", (part.approval_id,))
    if row is None or row[0] != "pending" or context.entities.is_claimed(part.approval_id):
        return Conflict.RESOLVED
    before = sql.group_approvals_text(part.before) if part.before else None
    return Conflict.STALE if row[1] != before or context.entities.is_claimed(_claim_of(part)) else None


def _claim_of(part: change_parts.GroupApproved) -> str:
    return f"{part.approval_id} {len(part.before)}"


def _refuse_execution(part: change_parts.ExecutionLogged, context: ChangeContext) -> Conflict | None:
    row = context.one("SELECT 1 FROM executions WHERE activity_id = ?", (part.activity_id,))
    return Conflict.EXECUTED if row is not None or context.entities.is_claimed(part.activity_id) else None


def _refuse_revocation(part: change_parts.KeyRevoked, context: ChangeContext) -> Conflict | None:
    active = [key for key in context.entities.keys(part.key.organisation_id) if key.revoked_at is None]
    if part.key.key_id not in {key.key_id for key in active}:
        return Conflict.REVOKED
    others = [key for key in active if key.role == "owner" and key.key_id != part.key.key_id]
    return Conflict.LAST_OWNER if part.key.role == "owner" and not others else None


def _refuse_key(part: change_parts.KeyChanged, context: ChangeContext) -> Conflict | None:
    current = next((key for key in context.entities.keys(part.before.organisation_id) if key == part.before), None)
    return Conflict.STALE if current is None else None


def _refuse_second(part: change_parts.AttestationRevoked, context: ChangeContext) -> Conflict | None:
    row = context.one("SELECT 1 FROM revocations WHERE attestation_id = ?", (part.attestation_id,))
    return Conflict.REVOKED if row is not None or context.entities.is_claimed(part.attestation_id) else None


def _refuse_halted(part: change_parts.OrganisationActive, context: ChangeContext) -> Conflict | None:
    if context.entities.halted(part.organisation_id):
        return Conflict.HALTED
    boundary = context.entities.access_lists(part.organisation_id)
    return Conflict.BLOCKED if boundary.refuses(part.sender, part.receiver) else None


def _refuse_entry(part: change_parts.ListChanged, context: ChangeContext) -> Conflict | None:
    boundary = context.entities.access_lists(part.organisation_id)
    if (part.entry in boundary.entries) is part.present:
        return Conflict.STALE
    full = part.present and boundary.size(part.entry.list) >= MAX_LIST_ENTRIES
    return Conflict.FULL if full else None


def _entry_statements(part: change_parts.ListChanged) -> tuple[Statement, ...]:
    row = (part.organisation_id, *part.entry)
    return ((insert("message_lists") if part.present else sql.DELETE_ENTRY, row),)


def _apply_entry(part: change_parts.ListChanged, context: ChangeContext) -> None:
    lists = context.entities.access_lists(part.organisation_id).with_change(part.entry, present=part.present)
    context.entities.put_access_lists(part.organisation_id, lists)


def _refuse_other_policies(part: change_parts.PolicySetChanged, context: ChangeContext) -> Conflict | None:
    current = context.entities.policies(part.organisation_id)
    return None if part.before.is_same_version(current) else Conflict.STALE


def _refuse_changed_policies(part: change_parts.PolicySetUnchanged, context: ChangeContext) -> Conflict | None:
    current = context.entities.policies(part.organisation_id)
    return None if part.policies.is_same_version(current) else Conflict.STALE


def _webhook_statements(part: change_parts.WebhookChanged) -> tuple[Statement, ...]:
    if part.webhook is not None:
        return ((sql.PUT_WEBHOOK, sql.webhook_row(part.webhook)),)
    values = (part.organisation_id,)
    return (
        # The webhook before its notices, in the lock order of the delivery.
        ("DELETE FROM webhooks WHERE organisation_id = ?", values),
        ("DELETE FROM outbox WHERE organisation_id = ?", values),
    )


_OF_SUBJECT = "IN (SELECT subject_id FROM subjects WHERE organisation_id = ? AND name = ? AND key IS NOT NULL)"
ERASE_SUBJECT = (
    # Limited, to keep the transaction short: the other answers cannot be decrypted any more and expire within a day.
    "DELETE FROM idempotency_keys WHERE (agent_id, key) IN "  # noqa: S608 - constants
    f"(SELECT agent_id, key FROM idempotency_keys WHERE subject_id {_OF_SUBJECT} LIMIT 10000)",
    f"DELETE FROM job_items WHERE job_id IN (SELECT job_id FROM jobs WHERE subject_id {_OF_SUBJECT})",  # noqa: S608
    f"DELETE FROM jobs WHERE subject_id {_OF_SUBJECT}",  # noqa: S608 - constants
)


def _erasure_statements(part: change_parts.SubjectErased) -> tuple[Statement, ...]:
    subject = (part.organisation_id, part.name)
    notices = "organisation_id = ? AND body ->> 'principal_id' = ?"
    return (
        *((statement, subject) for statement in ERASE_SUBJECT),
        (
            "UPDATE webhooks SET waiting = waiting - (SELECT count(*) FROM outbox WHERE "  # noqa: S608 - constants
            f"{notices}) WHERE organisation_id = ?",
            (part.organisation_id, part.stated_name, part.organisation_id),
        ),
        (f"DELETE FROM outbox WHERE {notices}", (part.organisation_id, part.stated_name)),  # noqa: S608 - constants
        (
            "UPDATE subjects SET key = NULL, erased_at = ? WHERE organisation_id = ? AND name = ? AND key IS NOT NULL",
            (part.at, *subject),
        ),
    )


def _refuse_spelling(part: change_parts.ToolChanged, context: ChangeContext) -> Conflict | None:
    """Return the conflict with a tool whose name differs only by case."""
    others = (name for name in context.entities.tools(part.organisation_id) if name != part.name)
    key = case_key(part.name)
    return Conflict.SPELLING_IN_USE if any(case_key(name) == key for name in others) else None


def _refuse_removal(part: change_parts.ToolRemoved, context: ChangeContext) -> Conflict | None:
    return None if part.name in context.entities.tools(part.organisation_id) else Conflict.STALE


PART_HANDLERS: dict[type, _PartHandler] = {
    change_parts.OrganisationAdded: _PartHandler(
        _never, lambda part: ((sql.INSERT_ORGANISATION, tuple(part)),), _never
    ),
    change_parts.AgentAdded: _PartHandler(
        lambda part, desk: _refuse_name(part.agent, desk),
        lambda part: ((sql.INSERT_AGENT, sql.agent_row(part.agent)),),
        lambda part, desk: _put_named_agent(part.agent, desk),
    ),
    change_parts.AgentChanged: _PartHandler(
        _refuse_agent,
        lambda part: ((sql.UPDATE_AGENT, sql.changed_agent_row(part.after)),),
        _apply_agent,
    ),
    change_parts.AgentUnchanged: _PartHandler(_refuse_standing, lambda _part: (), _never),
    change_parts.ElevationRequested: _PartHandler(
        _refuse_elevation,
        lambda part: ((sql.INSERT_APPROVAL, sql.approval_row(*part)),),
        lambda part, desk: desk.entities.put_open_elevation(part.agent_id, True),
    ),
    change_parts.ApprovalResolved: _PartHandler(
        _refuse_resolution,
        lambda part: ((sql.RESOLVE_APPROVAL, (part.state, part.resolution, part.resolved_in, part.approval_id)),),
        _apply_resolution,
    ),
    change_parts.GroupApproved: _PartHandler(
        _refuse_group,
        lambda part: (
            (sql.PUT_GROUP_APPROVALS, (sql.group_approvals_text((*part.before, part.approval)), part.approval_id)),
        ),
        lambda part, desk: desk.entities.claim(_claim_of(part), desk.write, desk.durable),
    ),
    change_parts.ExecutionLogged: _PartHandler(
        _refuse_execution,
        lambda part: ((insert("executions"), tuple(part)),),
        lambda part, desk: desk.entities.claim(part.activity_id, desk.write, desk.durable),
    ),
    change_parts.KeyAdded: _PartHandler(_never, lambda part: ((sql.INSERT_KEY, sql.key_row(part.key)),), _never),
    change_parts.KeyRevoked: _PartHandler(
        _refuse_revocation,
        lambda part: (("UPDATE keys SET revoked_at = ? WHERE key_id = ?", (part.at, part.key.key_id)),),
        lambda part, desk: desk.entities.put_key(replace(part.key, revoked_at=part.at)),
    ),
    change_parts.KeyChanged: _PartHandler(
        _refuse_key,
        lambda part: ((sql.UPDATE_KEY, sql.changed_key_row(part.after)),),
        lambda part, desk: desk.entities.put_key(part.after),
    ),
    change_parts.OrganisationHalted: _PartHandler(
        _never,
        lambda part: (
            ("UPDATE organisations SET halted_at = ? WHERE organisation_id = ?", (part.at, part.organisation_id)),
        ),
        lambda part, desk: desk.entities.put_halted(part.organisation_id, part.at is not None),
    ),
    change_parts.OrganisationActive: _PartHandler(_refuse_halted, lambda _part: (), _never),
    change_parts.ListChanged: _PartHandler(_refuse_entry, _entry_statements, _apply_entry),
    change_parts.ToolChanged: _PartHandler(
        _refuse_spelling,
        lambda part: ((upsert("tools"), tuple(part)),),
        lambda part, desk: desk.entities.put_tool(*part),
    ),
    change_parts.PolicySetChanged: _PartHandler(
        _refuse_other_policies,
        lambda part: ((sql.INSERT_POLICY_SET, policy_set_row(part)),),
        lambda part, desk: desk.entities.put_policies(part.organisation_id, part.after),
    ),
    change_parts.PolicySetUnchanged: _PartHandler(_refuse_changed_policies, lambda _part: (), _never),
    change_parts.ToolRemoved: _PartHandler(
        _refuse_removal,
        lambda part: (("DELETE FROM tools WHERE organisation_id = ? AND name = ?", tuple(part)),),
        lambda part, desk: desk.entities.remove_tool(*part),
    ),
    change_parts.AttestationRevoked: _PartHandler(
        _refuse_second,
        lambda part: ((insert("revocations"), tuple(part)),),
        lambda part, desk: desk.entities.claim(part.attestation_id, desk.write, desk.durable),
    ),
    change_parts.SubjectErased: _PartHandler(_never, _erasure_statements, _never),
    change_parts.WebhookChanged: _PartHandler(
        _never, _webhook_statements, lambda part, desk: desk.entities.put_webhook(part.organisation_id, part.webhook)
    ),
}


def find_conflict(parts: tuple[change_parts.ChangePart, ...], context: ChangeContext) -> Conflict | None:
    """Return the first conflict of the parts with the current state, or None."""
    conflicts = (PART_HANDLERS[type(part)].conflict(part, context) for part in parts)
    return next((conflict for conflict in conflicts if conflict is not None), None)


def statements_of(parts: tuple[change_parts.ChangePart, ...]) -> tuple[Statement, ...]:
    """Return the statements that the parts write."""
    return tuple(statement for part in parts for statement in PART_HANDLERS[type(part)].statements(part))


def apply_parts(parts: tuple[change_parts.ChangePart, ...], context: ChangeContext) -> None:
    """Apply submitted parts to the cache."""
    for part in parts:
        PART_HANDLERS[type(part)].apply(part, context)


def notice_statements(organisation_id: str, notices: tuple[Notice, ...], now: float) -> tuple[Statement, ...]:
    """Return the statements that put notices into the outbox."""
    statements: list[Statement] = []
    for notice in notices:
        row = (notice.notice_id, notice.event, notice.body, now, now, organisation_id, MAX_UNDELIVERED)
        statements += ((sql.INSERT_NOTICE, row), (sql.COUNT_NOTICE, (organisation_id, notice.notice_id)))
    return tuple(statements)
