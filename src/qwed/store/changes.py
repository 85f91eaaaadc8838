"""How each part of a change is checked, written and taken over: one row per kind of part."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from qwed.store import parts, rows
from qwed.store.boundary import MOST_LISTED
from qwed.store.columns import insert, put
from qwed.store.known import Known, ReadOne, Row
from qwed.store.parts import Conflict
from qwed.store.protocol import Notice

Statement = tuple[str, Row]
MOST_UNDELIVERED = 10_000
"""Notices that wait for one webhook; what comes after them is not kept."""


class Desk(NamedTuple):
    """What a check or a take-over may look at."""

    known: Known
    one: ReadOne
    write: int
    """The number of the write that carries this change."""
    durable: int
    """The last write that is on disk."""


class _Handling(NamedTuple):
    refuses: Callable[[Any, Desk], Conflict | None]
    statements: Callable[[Any], tuple[Statement, ...]]
    accept: Callable[[Any, Desk], None]


def _never(_part: Any, _desk: Desk) -> None:
    return None


def _refuse_agent(part: parts.AgentChanged, desk: Desk) -> Conflict | None:
    current = desk.known.agent(part.before.agent_id)
    return None if current is part.before or current == part.before else Conflict.STALE


def _refuse_standing(part: parts.AgentStands, desk: Desk) -> Conflict | None:
    current = desk.known.agent(part.agent.agent_id)
    stands = current == part.agent and desk.known.is_active(part.agent)
    return None if stands else Conflict.STALE


def _refuse_elevation(part: parts.ElevationRequested, desk: Desk) -> Conflict | None:
    return Conflict.REQUESTED if desk.known.elevating(part.agent_id) else None


def _refuse_resolution(part: parts.ApprovalResolved, desk: Desk) -> Conflict | None:
    row = desk.one("SELECT state FROM approvals WHERE approval_id = ?", (part.approval_id,))
    settled = row is None or row[0] != "pending" or desk.known.taken(part.approval_id)
    return Conflict.RESOLVED if settled else None


def _accept_resolution(part: parts.ApprovalResolved, desk: Desk) -> None:
    desk.known.take(part.approval_id, desk.write, desk.durable)
    if part.kind != "action":
        desk.known.put_elevating(part.agent_id, False)


def _refuse_execution(part: parts.Executed, desk: Desk) -> Conflict | None:
    row = desk.one("SELECT 1 FROM executions WHERE activity_id = ?", (part.activity_id,))
    return Conflict.EXECUTED if row is not None or desk.known.taken(part.activity_id) else None


def _refuse_revocation(part: parts.KeyRevoked, desk: Desk) -> Conflict | None:
    active = [key for key in desk.known.keys(part.key.organisation_id) if key.revoked_at is None]
    if part.key.key_id not in {key.key_id for key in active}:
        return Conflict.REVOKED
    others = [key for key in active if key.role == "owner" and key.key_id != part.key.key_id]
    return Conflict.LAST_OWNER if part.key.role == "owner" and not others else None


def _refuse_second(part: parts.AttestationRevoked, desk: Desk) -> Conflict | None:
    row = desk.one("SELECT 1 FROM revocations WHERE attestation_id = ?", (part.attestation_id,))
    return Conflict.REVOKED if row is not None or desk.known.taken(part.attestation_id) else None


def _refuse_halted(part: parts.OrganisationStands, desk: Desk) -> Conflict | None:
    if desk.known.halted(part.organisation_id):
        return Conflict.HALTED
    boundary = desk.known.boundary(part.organisation_id)
    return Conflict.BLOCKED if boundary.refuses(part.sender, part.receiver) else None


def _refuse_entry(part: parts.ListChanged, desk: Desk) -> Conflict | None:
    boundary = desk.known.boundary(part.organisation_id)
    if (part.entry in boundary.entries) is part.there:
        return Conflict.STALE
    full = part.there and boundary.size(part.entry.list) >= MOST_LISTED
    return Conflict.FULL if full else None


def _entry_statements(part: parts.ListChanged) -> tuple[Statement, ...]:
    row = (part.organisation_id, *part.entry)
    return ((insert("message_lists") if part.there else rows.DELETE_ENTRY, row),)


def _accept_entry(part: parts.ListChanged, desk: Desk) -> None:
    changed = desk.known.boundary(part.organisation_id).changed(part.entry, there=part.there)
    desk.known.put_boundary(part.organisation_id, changed)


def _webhook_statements(part: parts.WebhookChanged) -> tuple[Statement, ...]:
    if part.webhook is not None:
        return ((rows.PUT_WEBHOOK, rows.of_webhook(part.webhook)),)
    place = (part.organisation_id,)
    return (
        # The webhook before its notices, as whoever delivers them takes them.
        ("DELETE FROM webhooks WHERE organisation_id = ?", place),
        ("DELETE FROM outbox WHERE organisation_id = ?", place),
    )


_OF_SUBJECT = "IN (SELECT subject_id FROM subjects WHERE organisation_id = ? AND name = ? AND key IS NOT NULL)"
ERASE = (
    # As many as take no time: the others open no more either, and go when their day is over.
    "DELETE FROM memories WHERE (agent_id, key) IN "  # noqa: S608 - constants
    f"(SELECT agent_id, key FROM memories WHERE subject_id {_OF_SUBJECT} LIMIT 10000)",
    f"DELETE FROM job_items WHERE job_id IN (SELECT job_id FROM jobs WHERE subject_id {_OF_SUBJECT})",  # noqa: S608
    f"DELETE FROM jobs WHERE subject_id {_OF_SUBJECT}",  # noqa: S608 - constants
)


def _erasure_statements(part: parts.SubjectErased) -> tuple[Statement, ...]:
    who = (part.organisation_id, part.name)
    notices = "organisation_id = ? AND body ->> 'principal_id' = ?"
    return (
        *((statement, who) for statement in ERASE),
        (
            "UPDATE webhooks SET waiting = waiting - (SELECT count(*) FROM outbox WHERE "  # noqa: S608 - constants
            f"{notices}) WHERE organisation_id = ?",
            (part.organisation_id, part.stated, part.organisation_id),
        ),
        (f"DELETE FROM outbox WHERE {notices}", (part.organisation_id, part.stated)),  # noqa: S608 - constants
        (
            "UPDATE subjects SET key = NULL, erased_at = ? WHERE organisation_id = ? AND name = ? AND key IS NOT NULL",
            (part.at, *who),
        ),
    )


HANDLING: dict[type, _Handling] = {
    parts.OrganisationAdded: _Handling(_never, lambda part: ((rows.INSERT_ORGANISATION, tuple(part)),), _never),
    parts.AgentAdded: _Handling(
        _never,
        lambda part: ((rows.INSERT_AGENT, rows.of_agent(part.agent)),),
        lambda part, desk: desk.known.put_agent(part.agent),
    ),
    parts.AgentChanged: _Handling(
        _refuse_agent,
        lambda part: ((rows.UPDATE_AGENT, rows.of_changed_agent(part.after)),),
        lambda part, desk: desk.known.put_agent(part.after),
    ),
    parts.AgentStands: _Handling(_refuse_standing, lambda _part: (), _never),
    parts.ElevationRequested: _Handling(
        _refuse_elevation,
        lambda part: ((rows.INSERT_APPROVAL, rows.of_approval(*part)),),
        lambda part, desk: desk.known.put_elevating(part.agent_id, True),
    ),
    parts.ApprovalResolved: _Handling(
        _refuse_resolution,
        lambda part: ((rows.RESOLVE_APPROVAL, (part.state, part.resolution, part.resolved_in, part.approval_id)),),
        _accept_resolution,
    ),
    parts.Executed: _Handling(
        _refuse_execution,
        lambda part: ((insert("executions"), tuple(part)),),
        lambda part, desk: desk.known.take(part.activity_id, desk.write, desk.durable),
    ),
    parts.KeyAdded: _Handling(_never, lambda part: ((rows.INSERT_KEY, rows.of_key(part.key)),), _never),
    parts.KeyRevoked: _Handling(
        _refuse_revocation,
        lambda part: (("UPDATE keys SET revoked_at = ? WHERE key_id = ?", (part.at, part.key.key_id)),),
        lambda part, desk: desk.known.put_key(replace(part.key, revoked_at=part.at)),
    ),
    parts.OrganisationHalted: _Handling(
        _never,
        lambda part: (
            ("UPDATE organisations SET halted_at = ? WHERE organisation_id = ?", (part.at, part.organisation_id)),
        ),
        lambda part, desk: desk.known.put_halted(part.organisation_id, part.at is not None),
    ),
    parts.OrganisationStands: _Handling(_refuse_halted, lambda _part: (), _never),
    parts.ListChanged: _Handling(_refuse_entry, _entry_statements, _accept_entry),
    parts.ToolChanged: _Handling(
        _never,
        lambda part: ((put("tools"), tuple(part)),),
        lambda part, desk: desk.known.put_tool(*part),
    ),
    parts.AttestationRevoked: _Handling(
        _refuse_second,
        lambda part: ((insert("revocations"), tuple(part)),),
        lambda part, desk: desk.known.take(part.attestation_id, desk.write, desk.durable),
    ),
    parts.SubjectErased: _Handling(_never, _erasure_statements, _never),
    parts.WebhookChanged: _Handling(
        _never, _webhook_statements, lambda part, desk: desk.known.put_webhook(part.organisation_id, part.webhook)
    ),
}


def refuse(wanted: tuple[parts.Part, ...], desk: Desk) -> Conflict | None:
    """Why the parts cannot be made true together, if they cannot."""
    found = (HANDLING[type(part)].refuses(part, desk) for part in wanted)
    return next((conflict for conflict in found if conflict is not None), None)


def statements_of(wanted: tuple[parts.Part, ...]) -> tuple[Statement, ...]:
    """The rows the parts write."""
    return tuple(statement for part in wanted for statement in HANDLING[type(part)].statements(part))


def accept(wanted: tuple[parts.Part, ...], desk: Desk) -> None:
    """Take over what was submitted."""
    for part in wanted:
        HANDLING[type(part)].accept(part, desk)


def notice_statements(organisation_id: str, notices: tuple[Notice, ...], now: float) -> tuple[Statement, ...]:
    """The outbox rows of what is to be told."""
    found: list[Statement] = []
    for notice in notices:
        row = (notice.notice_id, notice.event, notice.body, now, now, organisation_id, MOST_UNDELIVERED)
        found += ((rows.INSERT_NOTICE, row), (rows.COUNT_NOTICE, (organisation_id, notice.notice_id)))
    return tuple(found)
