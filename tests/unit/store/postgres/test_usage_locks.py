"""Locks for rolling usage: only where rules count for the whole organisation, shared where it is only read."""

from decimal import Decimal
from typing import Any

import pytest

from qwed.domain.change_parts import ApprovalResolved
from qwed.domain.usage_window import SeriesKey, UsageKey, Use
from qwed.domain.write_set import Activity, DecisionEffects, UsageEffects, WriteSet
from qwed.model import Decision
from qwed.store.postgres.lock_order import locks_for
from tests.support.stores import ORGANISATION, agent_of

OWN = UsageKey("agent", "count", "send_email", "", 60)
SHARED = UsageKey("organisation", "count", "send_email", "", 60)
OWN_USE, SHARED_USE = Use(SeriesKey("agent_1", "send_email"), Decimal(1)), Use(SeriesKey(ORGANISATION, "b"), Decimal(1))
RESOLVED = ApprovalResolved("apr_1", "agent_1", "action", "approved", "{}", "act_2", 0, 0, 0, 5.0)


def _write_set(usage: UsageEffects | None = None, decision: Decision = Decision.APPROVED, **more: Any) -> WriteSet:
    activity = Activity("act_1", decision, 5.0, 0, "{}", "{}")
    effects = None if more else DecisionEffects(agent=agent_of(), decision=decision, usage=usage)
    return WriteSet(organisation_id=ORGANISATION, agent_id="agent_1", activity=activity, effects=effects, **more)


CASES: dict[str, tuple[WriteSet, dict[str, bool]]] = {
    "no policy counts": (_write_set(), {}),
    "for its agent": (_write_set(UsageEffects(uses=(OWN_USE,), values={OWN: 1})), {}),
    "reads that of the organisation": (_write_set(UsageEffects(values={SHARED: 1})), {ORGANISATION: False}),
    "adds to that of the organisation": (_write_set(UsageEffects(uses=(SHARED_USE,))), {ORGANISATION: True}),
    "is denied": (_write_set(UsageEffects(uses=(SHARED_USE,), values={SHARED: 1}), Decision.DENIED), {}),
    "resolves an action": (_write_set(parts=(RESOLVED,)), {ORGANISATION: True}),
    "resolves a request for trust": (_write_set(parts=(RESOLVED._replace(kind="trust_elevation"),)), {}),
}


@pytest.mark.parametrize("name", CASES)
def test_usage_is_locked_only_where_an_organisation_counts_together(name: str) -> None:
    write_set, usage = CASES[name]
    assert locks_for([write_set]).usage == usage


def test_of_readers_and_writers_in_one_batch_the_lock_is_exclusive() -> None:
    reader, writer = CASES["reads that of the organisation"][0], CASES["adds to that of the organisation"][0]
    assert locks_for([reader, writer]).usage == locks_for([writer, reader]).usage == {ORGANISATION: True}


def test_the_lock_comes_after_those_of_organisations_and_chains() -> None:
    kinds, _names, exclusive = locks_for([CASES["adds to that of the organisation"][0]]).advisory_locks()
    assert (kinds, exclusive) == (sorted(kinds), [0, 1])
