"""Ids, clock, records, effects, decisions, verdicts and codes."""

import re
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, dataclass
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwed.model import (
    RISK_OF,
    Decision,
    Effect,
    EffectKind,
    ErrorCode,
    Record,
    Risk,
    Status,
    Trust,
    Verdict,
    canonical,
    risk_of,
)
from qwed.model.clock import Clock, rfc3339
from qwed.model.ids import new_id, timed_id

steady = settings(derandomize=True, database=None, deadline=None, max_examples=200)


def test_ids_say_what_they_name_and_repeat_never() -> None:
    ids = {new_id("agent") for _ in range(10_000)}
    assert len(ids) == 10_000
    assert all(re.fullmatch(r"agent_[0-9a-f]{24}", one) for one in ids)


def test_timed_ids_sort_by_time_and_repeat_never_within_a_moment() -> None:
    now = 1_790_000_000.0
    same = {timed_id("act", now) for _ in range(10_000)}
    assert len(same) == 10_000
    assert all(re.fullmatch(r"act_[0-9a-f]{26,}", one) for one in same)
    later = [timed_id("act", now + step / 1000) for step in range(100)]
    assert later == sorted(later)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (0.5, "1970-01-01T00:00:00.500Z"),
        (1_766_530_740.123, "2025-12-23T22:59:00.123Z"),
        (1_798_761_599, "2026-12-31T23:59:59Z"),
    ],
)
def test_times_are_utc_with_z(seconds: float, text: str) -> None:
    assert rfc3339(seconds) == text


@steady
@given(st.integers(0, 4_000_000_000_000))
def test_a_time_reads_back_to_the_millisecond(milliseconds: int) -> None:
    read = datetime.fromisoformat(rfc3339(milliseconds / 1000))
    assert read.tzinfo == UTC
    assert abs(read.timestamp() * 1000 - milliseconds) < 1


def test_a_clock_ticks_by_itself_and_can_be_held() -> None:
    assert Clock().now() > 1_700_000_000
    first = Clock().monotonic()
    assert Clock().monotonic() >= first
    assert Clock(now=lambda: 7.0).now() == 7.0


@dataclass(frozen=True)
class Found(Record):
    verified: bool
    message: str = ""


def test_a_record_reads_both_ways() -> None:
    found = Found(verified=True, message="fine")
    assert (found["verified"], found.verified) == (True, True)
    assert dict(found) == {"verified": True, "message": "fine"}
    assert (len(found), list(found), "message" in found, found.get("absent")) == (
        2,
        ["verified", "message"],
        True,
        None,
    )
    assert isinstance(found, Mapping)


@pytest.mark.parametrize("name", ["absent", "__class__", "keys", "__dataclass_fields__", "get"])
def test_a_record_has_no_members_but_its_fields(name: str) -> None:
    with pytest.raises(KeyError, match=name):
        Found(verified=True)[name]


def test_a_record_cannot_be_changed() -> None:
    found = Found(verified=False)
    with pytest.raises(FrozenInstanceError):
        found.verified = True  # type: ignore[misc]
    with pytest.raises(TypeError):
        found["verified"] = True  # type: ignore[index]


def test_a_record_is_a_json_object() -> None:
    assert canonical(Found(verified=True)) == b'{"message":"","verified":true}'


def test_every_effect_has_a_risk() -> None:
    assert set(RISK_OF) == set(EffectKind)
    levels = {kind.value: RISK_OF[kind].word for kind in EffectKind}
    assert levels == {
        "READ": "low",
        "WRITE": "high",
        "DELETE": "critical",
        "EXECUTE": "critical",
        "NETWORK": "medium",
        "COMMUNICATE": "medium",
        "SPEND": "critical",
        "ADMIN": "critical",
        "SECRET": "critical",
        "UNRESOLVED": "critical",
    }


def test_the_gravest_effect_sets_the_risk() -> None:
    assert risk_of(()) is Risk.LOW
    assert risk_of([Effect(EffectKind.READ), Effect(EffectKind.WRITE), Effect(EffectKind.NETWORK)]) is Risk.HIGH
    assert risk_of([Effect(EffectKind.WRITE, "users", unbounded=True)]) is Risk.CRITICAL


@steady
@given(st.lists(st.sampled_from(EffectKind)), st.lists(st.sampled_from(EffectKind)))
def test_more_effects_never_mean_less_risk(some: list[EffectKind], more: list[EffectKind]) -> None:
    few = [Effect(kind) for kind in some]
    assert risk_of([*few, *(Effect(kind) for kind in more)]) >= risk_of(few)


def test_which_decisions_permit_and_which_commit() -> None:
    assert {decision for decision in Decision if decision.permits} == {Decision.APPROVED, Decision.CORRECTED}
    assert {decision for decision in Decision if decision.commits} == {
        Decision.APPROVED,
        Decision.CORRECTED,
        Decision.PENDING,
    }


def test_the_statuses_are_these_and_uncertain_is_a_word_for_agents() -> None:
    of_engines = ["VERIFIED", "FAILED", "CORRECTED", "INCONCLUSIVE", "BLOCKED", "UNKNOWN", "ERROR", "SIMPLIFIED"]
    assert {str(status) for status in Status} == {*of_engines, "UNCERTAIN"}
    # Nothing reads UNCERTAIN but what an engine left open, and it reads as nothing else.
    assert {str(status) for status in Status if status.on_agent_wire is Status.UNCERTAIN} == {
        "INCONCLUSIVE",
        "UNKNOWN",
        "UNCERTAIN",
    }


def test_only_verified_is_verified() -> None:
    verified = [status for status in Status if Verdict(status=status, engine="math").verified]
    assert verified == [Status.VERIFIED]


def test_what_could_not_be_decided_reads_uncertain_to_an_agent() -> None:
    wire = {status: status.on_agent_wire for status in Status if status.on_agent_wire is not status}
    assert wire == {
        Status.INCONCLUSIVE: Status.UNCERTAIN,
        Status.UNKNOWN: Status.UNCERTAIN,
        Status.SIMPLIFIED: Status.VERIFIED,
    }


def test_risks_are_ordered_named_and_end_at_critical() -> None:
    assert [risk.word for risk in sorted(Risk)] == ["low", "medium", "high", "critical"]
    assert [Risk.of(risk.word) for risk in Risk] == list(Risk)
    assert [risk.raised() for risk in Risk] == [Risk.MEDIUM, Risk.HIGH, Risk.CRITICAL, Risk.CRITICAL]
    with pytest.raises(KeyError):
        Risk.of("LOW")
    assert [trust.word for trust in Trust] == ["untrusted", "supervised", "autonomous", "trusted"]


def test_codes_that_share_a_number_share_their_status() -> None:
    by_code: dict[str, set[int]] = {}
    for row in ErrorCode:
        by_code.setdefault(row.code, set()).add(row.http)
    assert {code: statuses for code, statuses in by_code.items() if len(statuses) > 1} == {}


@pytest.mark.parametrize("row", list(ErrorCode), ids=lambda row: row.name)
def test_a_code_is_well_formed_and_says_what_it_means(row: ErrorCode) -> None:
    assert re.fullmatch(r"QWED(-[A-Z]+)+-\d{3}", row.code)
    assert row.http in (200, 400, 401, 403, 404, 405, 409, 412, 413, 429, 500, 503)
    assert row.meaning
    assert row.meaning[0].islower() or row.meaning.startswith("pre_action")
    assert not row.meaning.endswith(".")
