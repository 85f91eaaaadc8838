"""What a settlement or a change looks like to the writer."""

from typing import Any

from qwed.store import rows
from qwed.store.changes import notice_statements, statements_of
from qwed.store.conversation import Past
from qwed.store.protocol import Activity, Change, Settled, Settlement
from qwed.store.writer import Write
from qwed.words import Decision
from qwed.words.clock import DAY

Row = tuple[Any, ...]


def write_of(settlement: Settlement, settled: Settled, past: Past | None) -> Write:
    """The rows of one decision, its counters apart."""
    agent, activity, reservation = settlement.agent, settlement.activity, settlement.reservation
    statements: tuple[tuple[str, Row], ...] = ()
    if settlement.approval is not None:
        asked = rows.of_approval(agent.organisation_id, agent.agent_id, activity.activity_id, settlement.approval)
        statements = ((rows.INSERT_APPROVAL, asked),)
    if settlement.memory is not None:
        statements += (
            (rows.DELETE_EXPIRED_MEMORIES, (activity.at,)),
            (rows.INSERT_MEMORY, rows.of_memory(settlement, settlement.memory, settled)),
        )
    if settlement.link is not None:
        chain_id, links, _previous, attestation_id = settlement.link
        statements += ((rows.PUT_CHAIN, (agent.organisation_id, chain_id, links + 1, attestation_id)),)
    if settlement.notices:
        statements += notice_statements(agent.organisation_id, settlement.notices, activity.at)
    return Write(
        result=settled,
        statements=statements,
        activities=(_activity_row(agent.organisation_id, agent.agent_id, activity, settled.log_index),),
        conversation=None if past is None or reservation is None else (*reservation.place[:2], *past),
        tally=tally_row(agent.agent_id, settlement.decision, activity, actions=1),
        tells=bool(settlement.notices),
    )


def add_change(write: Write, change: Change, index: int) -> None:
    """Let the write carry a change as well, at this place of the log."""
    organisation_id, activity = change.organisation_id, change.activity
    write.activities += (_activity_row(organisation_id, change.agent_id or organisation_id, activity, index),)
    write.statements += statements_of(change.parts)
    write.statements += notice_statements(organisation_id, change.notices, activity.at)
    write.tells = write.tells or bool(change.notices)


def tally_row(
    agent_id: str, decision: Decision, activity: Activity, *, actions: int
) -> tuple[str, int, str, int, int, int]:
    """What an activity adds to the running sums of its day."""
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
