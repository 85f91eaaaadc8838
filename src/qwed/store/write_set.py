"""Rows that a commit or a change writes."""

from typing import Any

from qwed.model import Decision
from qwed.model.clock import DAY
from qwed.store import sql
from qwed.store.change_handlers import notice_statements, statements_of
from qwed.store.conversation import ConversationHistory
from qwed.store.group_commit import PendingWrite
from qwed.store.protocol import Activity, Change, CommitReceipt, CommitRequest

Row = tuple[Any, ...]


def commit_write(request: CommitRequest, receipt: CommitReceipt, history: ConversationHistory | None) -> PendingWrite:
    """Return the rows of one decision, without its counters."""
    agent, activity, reservation = request.agent, request.activity, request.reservation
    statements: tuple[tuple[str, Row], ...] = ()
    if request.approval is not None:
        approval = sql.approval_row(agent.organisation_id, agent.agent_id, activity.activity_id, request.approval)
        statements = ((sql.INSERT_APPROVAL, approval),)
    if request.answer_to_store is not None:
        statements += (
            (sql.DELETE_SOME_EXPIRED_ANSWERS, (activity.at,)),
            (sql.PUT_ANSWER, sql.answer_row(request, request.answer_to_store, receipt)),
        )
    if request.link is not None:
        chain_id, links, _previous, attestation_id = request.link
        statements += ((sql.PUT_CHAIN, (agent.organisation_id, chain_id, links + 1, attestation_id)),)
    if request.notices:
        statements += notice_statements(agent.organisation_id, request.notices, activity.at)
    return PendingWrite(
        result=receipt,
        statements=statements,
        activities=(_activity_row(agent.organisation_id, agent.agent_id, activity, receipt.log_index),),
        conversation=None if history is None or reservation is None else (*reservation.key[:2], *history),
        daily_total=daily_total_row(agent.agent_id, request.decision, activity, actions=1),
        has_notices=bool(request.notices),
    )


def add_change(write: PendingWrite, change: Change, index: int) -> None:
    """Add the rows of a change to a write, at this index of the log."""
    organisation_id, activity = change.organisation_id, change.activity
    write.activities += (_activity_row(organisation_id, change.agent_id or organisation_id, activity, index),)
    write.statements += statements_of(change.parts)
    write.statements += notice_statements(organisation_id, change.notices, activity.at)
    write.has_notices = write.has_notices or bool(change.notices)


def daily_total_row(
    agent_id: str, decision: Decision, activity: Activity, *, actions: int
) -> tuple[str, int, str, int, int, int]:
    """Return what an activity adds to the totals of its day."""
    return (agent_id, int(activity.at // DAY), decision, actions, activity.cost, int(activity.attested))


def _activity_row(organisation_id: str, agent_id: str, activity: Activity, index: int) -> Row:
    return (
        organisation_id,
        index,
        activity.activity_id,
        agent_id,
        activity.at,
        activity.decision or "",
        activity.leaf,
        activity.payload,
        activity.event,
        activity.subject_id,
        activity.attestation_id,
    )
