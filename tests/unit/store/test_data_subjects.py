"""A missing key stores nothing, and content erased with its key does not come back."""

import threading
from pathlib import Path
from typing import Any

import pytest

from qwed.domain.change_parts import SubjectErased, Webhook, WebhookChanged
from qwed.domain.write_set import IdempotentAnswer, Notice
from qwed.model import Decision
from qwed.model.clock import DAY
from qwed.store.batch_job import BatchJob, JobItem
from qwed.store.protocol import ActivityQuery, DataSubject, StoreError
from tests.support.stores import ORGANISATION, StoreFixture, owner_key

ANN = DataSubject("sub_ann", ORGANISATION, "name of ann", b"the wrapped key of ann", 1.0)
BOB = DataSubject("sub_bob", ORGANISATION, "name of bob", b"the wrapped key of bob", 1.0)
HOOK = Webhook(ORGANISATION, "https://example.com/", ("pending",), "s", 1.0)


def _agent(store_fixture: StoreFixture) -> Any:
    return store_fixture.store.find_agent("agent_1")


def _know(store_fixture: StoreFixture, *subjects: DataSubject) -> None:
    for subject in subjects:
        store_fixture.store.add_subject(subject).wait_result(30)


def _decide(store_fixture: StoreFixture, subject: DataSubject | None, payload: str = "sealed", **more: Any) -> str:
    """Commit a decision with content about a subject; return its id."""
    subject_id = None if subject is None else subject.subject_id
    before = store_fixture.next_index(ORGANISATION)
    name = f"act_about_{before}"
    store_fixture.settle(
        _agent(store_fixture), None, Decision.DENIED, activity_id=name, subject_id=subject_id, payload=payload, **more
    )
    return name


def _erase(store_fixture: StoreFixture, subject: DataSubject, organisation_id: str = ORGANISATION) -> None:
    store_fixture.change(SubjectErased(organisation_id, subject.name, 9.0, "user_1"))


def _payloads(store_fixture: StoreFixture) -> list[str]:
    return [row[0] for row in store_fixture.rows("SELECT payload FROM activities ORDER BY sequence")]


# Their keys


def test_a_subject_is_found_by_name_and_by_id(store_fixture: StoreFixture) -> None:
    assert (store_fixture.store.find_subject(ORGANISATION, ANN.name), store_fixture.store.subject("sub_ann")) == (
        None,
        None,
    )
    _know(store_fixture, ANN, BOB)
    assert store_fixture.store.find_subject(ORGANISATION, ANN.name) == store_fixture.store.subject("sub_ann") == ANN
    assert store_fixture.store.find_subject("org_2", ANN.name) is None


def test_a_subject_is_there_after_a_restart(disk: StoreFixture) -> None:
    _know(disk, ANN)
    assert disk.reopened().store.find_subject(ORGANISATION, ANN.name) == ANN


def test_whoever_is_erased_is_found_by_id_alone_and_has_no_key(disk: StoreFixture) -> None:
    _know(disk, ANN, BOB)
    _erase(disk, ANN)
    for _ in range(2):
        assert disk.store.find_subject(ORGANISATION, ANN.name) is None
        assert disk.store.subject("sub_ann") == ANN._replace(key=None, erased_at=9.0)
        assert disk.store.find_subject(ORGANISATION, BOB.name) == BOB
        disk.reopened()


def test_whoever_comes_again_gets_a_new_key_beside_the_destroyed_one(store_fixture: StoreFixture) -> None:
    _know(store_fixture, ANN)
    _erase(store_fixture, ANN)
    again = ANN._replace(subject_id="sub_again", key=b"another key")
    _know(store_fixture, again)
    assert store_fixture.store.find_subject(ORGANISATION, ANN.name) == again
    assert store_fixture.store.subject("sub_ann").key is None


def test_of_two_keys_of_one_name_one_is_used_and_both_are_destroyed(store_fixture: StoreFixture) -> None:
    """Two requests for a new subject at once may both make a key."""
    _know(store_fixture, ANN, ANN._replace(subject_id="sub_ann_2", key=b"second"), BOB)
    assert {store_fixture.store.find_subject(ORGANISATION, ANN.name).subject_id for _ in range(5)} == {"sub_ann"}
    _erase(store_fixture, ANN)
    assert [store_fixture.store.subject(name).key for name in ("sub_ann", "sub_ann_2", "sub_bob")] == [
        None,
        None,
        BOB.key,
    ]


def test_the_same_name_in_another_organisation_is_somebody_else(store_fixture: StoreFixture) -> None:
    store_fixture.store.add_organisation(
        "org_2", "second", 1.0, owner_key("key_2", "org_2", "qwed_live_b")
    ).wait_result(30)
    _know(store_fixture, ANN, ANN._replace(subject_id="sub_other", organisation_id="org_2"))
    _erase(store_fixture, ANN)
    assert store_fixture.store.find_subject("org_2", ANN.name).subject_id == "sub_other"


def test_who_was_erased_first_keeps_the_time_of_that(store_fixture: StoreFixture) -> None:
    _know(store_fixture, ANN)
    _erase(store_fixture, ANN)
    store_fixture.change(SubjectErased(ORGANISATION, ANN.name, 20.0, "user_1"))
    assert store_fixture.store.subject("sub_ann").erased_at == 9.0


# Nothing is stored under a missing key


def test_nothing_is_kept_about_somebody_whose_key_is_not(disk: StoreFixture) -> None:
    with pytest.raises(StoreError, match=r"(?i)foreign key"):
        _decide(disk, ANN)
    assert _payloads(disk) == []
    assert disk.store.log_size(ORGANISATION) == 0
    _know(disk, ANN)
    _decide(disk, ANN)
    assert _payloads(disk) == ["sealed"]


def test_no_answer_and_no_batch_is_kept_about_somebody_whose_key_is_not(disk: StoreFixture) -> None:
    answer = IdempotentAnswer("k", "hash", lambda _settled: b"sealed", disk.manual_clock.now + 60, "sub_nobody")
    with pytest.raises(StoreError, match=r"(?i)foreign key"):
        _decide(disk, None, memory=answer)
    job = BatchJob("job_1", ORGANISATION, "key_1", "owner", 1, False, 1, 1.0, 2.0, None, "sub_nobody")
    with pytest.raises(StoreError, match=r"(?i)foreign key"):
        disk.store.add_job(job, [JobItem("job_1", 0, "sealed", None, None)]).wait_result(30)
    assert [disk.rows(f"SELECT * FROM {table}") for table in ("idempotency_keys", "jobs", "job_items")] == [
        [],
        [],
        [],
    ]


def test_a_key_that_waits_to_be_written_is_on_disk_no_later_than_what_it_seals(disk: StoreFixture) -> None:
    with disk.stopped():
        added = disk.store.add_subject(ANN)
        request = disk.write_set(_agent(disk), None, Decision.DENIED, subject_id="sub_ann", payload="sealed")
        ticket = disk.store.commit(request)
        assert disk.store.subject("sub_ann") is None
    added.wait_result(30)
    assert ticket.wait_result(30).log_index == 0


def test_a_key_that_could_not_be_written_takes_along_what_was_sealed_with_it(disk: StoreFixture) -> None:
    request = disk.write_set(_agent(disk), None, Decision.DENIED, subject_id="sub_ann", payload="sealed")
    with disk.broken():
        with disk.held():
            tickets = [disk.store.add_subject(ANN), disk.store.commit(request)]
        for ticket in tickets:
            with pytest.raises(StoreError):
                ticket.wait_result(30)
    with pytest.raises(StoreError, match=r"(?i)foreign key"):
        _decide(disk, ANN)
    _know(disk, ANN)
    _decide(disk, ANN)
    assert (_payloads(disk), disk.store.log_size(ORGANISATION)) == (["sealed"], 1)


def test_whoever_holds_keys_in_mind_is_told_when_a_write_failed(disk: StoreFixture) -> None:
    calls: list[str] = []
    disk.store.on_write_failure = lambda: calls.append("distrust")
    _know(disk, ANN)
    assert calls == []
    with disk.broken(), pytest.raises(StoreError):
        _know(disk, BOB)
    assert calls == ["distrust"]


def test_many_keys_that_are_made_at_once_are_all_kept(disk: StoreFixture) -> None:
    def make(number: int) -> None:
        disk.store.add_subject(ANN._replace(subject_id=f"sub_{number}", name=f"n{number}")).wait_result(30)

    threads = [threading.Thread(target=make, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert all(disk.store.find_subject(ORGANISATION, f"n{number}") for number in range(20))


# Erasure


def _remembered(store_fixture: StoreFixture, name: str) -> Any:
    return store_fixture.load(idempotency_key=name).stored_answer


def test_stored_answers_and_batches_go_with_the_key_and_those_of_others_stay(disk: StoreFixture) -> None:
    _know(disk, ANN, BOB)
    for subject in (ANN, BOB):
        answer = IdempotentAnswer(
            subject.name, "hash", lambda _s: b"sealed", disk.manual_clock.now + 60, subject.subject_id
        )
        _decide(disk, subject, memory=answer)
        job_id = f"job_{subject.subject_id}"
        job = BatchJob(
            job_id, ORGANISATION, "k", "owner", 1, False, 1, 1.0, disk.manual_clock.now, None, subject.subject_id
        )
        disk.store.add_job(job, [JobItem(job_id, 0, "sealed", None, None)]).wait_result(30)
    _erase(disk, ANN)
    assert _remembered(disk, ANN.name) is None
    assert _remembered(disk, BOB.name) is not None
    assert [job.job_id for job in disk.store.open_jobs()] == ["job_sub_bob"]
    assert (disk.store.job_items("job_sub_ann"), len(disk.store.job_items("job_sub_bob"))) == ([], 1)
    if disk.kind == "file":
        assert disk.rows("PRAGMA foreign_key_check") == []


def test_notices_that_name_them_are_not_sent_any_more(store_fixture: StoreFixture) -> None:
    bodies = ['{"principal_id":"user_1"}', '{"principal_id":"user_2"}', "{}"]
    store_fixture.change(WebhookChanged(ORGANISATION, HOOK))
    store_fixture.change(notices=tuple(Notice(f"ntc_{number}", "pending", body) for number, body in enumerate(bodies)))
    _know(store_fixture, ANN)
    _erase(store_fixture, ANN)
    due = store_fixture.store.due_deliveries(store_fixture.manual_clock.now, 10)
    assert sorted(delivery.body for delivery in due) == sorted(bodies[1:])
    assert store_fixture.store.webhook_record(ORGANISATION).waiting == 2


def test_an_erasure_that_could_not_be_kept_erased_nothing(disk: StoreFixture) -> None:
    _know(disk, ANN)
    answer = IdempotentAnswer("k", "hash", lambda _settled: b"sealed", disk.manual_clock.now + 60, "sub_ann")
    _decide(disk, ANN, memory=answer)
    with disk.broken(), pytest.raises(StoreError):
        _erase(disk, ANN)
    assert disk.store.find_subject(ORGANISATION, ANN.name) == ANN
    assert _remembered(disk, "k") is not None


def _bytes(directory: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(directory.iterdir()) if file.name.startswith("qwed.db"))


@pytest.mark.parametrize("restart", [False, True], ids=["while it runs", "after a restart"])
def test_a_key_that_was_destroyed_lies_nowhere_in_the_files(file: StoreFixture, restart: bool) -> None:
    many = [
        ANN._replace(subject_id=f"sub_{number}", name=f"n{number}", key=b"KEY%04d" % number) for number in range(80)
    ]
    for subject in many:
        file.store.add_subject(subject)
    file.store.durable().wait_result(30)
    assert b"KEY0007" in _bytes(file.directory)
    if restart:
        file.reopened()
    _erase(file, many[7])
    file.store.purge_deleted()
    assert b"KEY0007" not in _bytes(file.directory)
    assert b"KEY0008" in _bytes(file.directory)


# Expired content


def _old(store_fixture: StoreFixture, count: int, payload: str = "sealed") -> None:
    for _ in range(count):
        _decide(store_fixture, ANN, payload)
        store_fixture.manual_clock.advance(DAY)


def _sweep(store_fixture: StoreFixture, before: float, limit: int) -> int:
    steps = 0
    while (ticket := store_fixture.store.drop_content(before, limit)) is not None:
        ticket.wait_result(30)
        steps += 1
    return steps


@pytest.mark.parametrize("limit", [1, 2, 4, 5, 1_000])
def test_only_content_that_is_old_is_dropped(store_fixture: StoreFixture, limit: int) -> None:
    _know(store_fixture, ANN)
    begin = store_fixture.manual_clock.now
    _old(store_fixture, 6)
    assert _sweep(store_fixture, begin + 4 * DAY, limit) == -(-4 // limit)
    assert _payloads(store_fixture) == [""] * 4 + ["sealed"] * 2
    assert store_fixture.store.drop_content(begin + 4 * DAY, limit) is None


def test_what_is_exactly_as_old_as_it_may_be_stays(store_fixture: StoreFixture) -> None:
    _know(store_fixture, ANN)
    begin = store_fixture.manual_clock.now
    _decide(store_fixture, ANN)
    assert store_fixture.store.drop_content(begin, 10) is None
    assert store_fixture.store.drop_content(begin + 0.001, 10) is not None


def test_leaves_hashes_heads_and_subjects_stay_as_they_are(disk: StoreFixture) -> None:
    _know(disk, ANN)
    _old(disk, 5)
    looks = (
        "SELECT sequence, organisation_id, log_index, activity_id, agent_id, at, decision, leaf, event, subject_id, "
        "attestation_id, nodes FROM activities ORDER BY sequence",
        "SELECT * FROM heads ORDER BY size",
        "SELECT * FROM subjects ORDER BY subject_id",
        "SELECT * FROM daily_totals ORDER BY day",
    )
    before = [disk.rows(look) for look in looks]
    _sweep(disk, disk.manual_clock.now, 2)
    assert [disk.rows(look) for look in looks] == before
    assert _payloads(disk) == [""] * 5


def test_after_a_restart_it_goes_on_where_it_was_and_drops_nothing_twice(disk: StoreFixture) -> None:
    _know(disk, ANN)
    begin = disk.manual_clock.now
    _old(disk, 6)
    disk.store.drop_content(begin + 4 * DAY, 3).wait_result(30)
    disk.reopened()
    assert _payloads(disk) == [""] * 3 + ["sealed"] * 3
    assert _sweep(disk, begin + 4 * DAY, 3) == 1
    disk.reopened()
    assert disk.store.drop_content(begin + 4 * DAY, 3) is None
    assert _payloads(disk) == [""] * 4 + ["sealed"] * 2
    assert disk.rows("SELECT value FROM meta WHERE name = 'content_dropped'")[0] == ("4",)


def test_a_step_that_failed_is_taken_again(disk: StoreFixture) -> None:
    _know(disk, ANN)
    _old(disk, 3)
    with disk.broken(), pytest.raises(StoreError):
        disk.store.drop_content(disk.manual_clock.now, 10).wait_result(30)
    assert _payloads(disk) == ["sealed"] * 3
    assert _sweep(disk, disk.manual_clock.now, 10) == 1
    assert _payloads(disk) == [""] * 3


def test_what_is_written_meanwhile_stays(disk: StoreFixture) -> None:
    _know(disk, ANN)
    begin = disk.manual_clock.now
    _old(disk, 3)
    with disk.stopped():
        dropping = disk.store.drop_content(begin + 2 * DAY, 10)
        ticket = disk.store.commit(
            disk.write_set(_agent(disk), None, Decision.DENIED, subject_id="sub_ann", payload="new")
        )
    dropping.wait_result(30)
    ticket.wait_result(30)
    assert _payloads(disk) == ["", "", "sealed", "new"]


def test_dropped_content_lies_nowhere_in_the_files(file: StoreFixture) -> None:
    _know(file, ANN)
    _old(file, 1, "CANARY" * 2_000)
    _old(file, 1, "KEPT")
    _sweep(file, file.manual_clock.now - DAY, 10)
    file.store.purge_deleted()
    assert b"CANARY" not in _bytes(file.directory)
    assert b"KEPT" in _bytes(file.directory)


def test_a_list_shows_what_was_dropped_without_its_content(store_fixture: StoreFixture) -> None:
    _know(store_fixture, ANN)
    _old(store_fixture, 2)
    _sweep(store_fixture, store_fixture.manual_clock.now, 1)
    records = store_fixture.store.activities(ActivityQuery("agent_1", 10))
    assert [(entry.payload, entry.subject_id) for entry in records] == [("", "sub_ann")] * 2


# Conversations from before keyed names


def _put(store_fixture: StoreFixture, *names: str) -> None:
    for name in names:
        store_fixture.write("INSERT INTO conversations VALUES ('agent_1', ?, 3, 3, '', 0, '')", name)
    store_fixture.write("DELETE FROM meta WHERE name = 'conversations_renamed'")


def _names(store_fixture: StoreFixture) -> list[str]:
    return [row[0] for row in store_fixture.rows("SELECT conversation_id FROM conversations ORDER BY 1")]


def test_conversations_are_renamed_once_whatever_they_are_called(disk: StoreFixture) -> None:
    names = ("a", *(("a\0", "\0") if disk.kind == "file" else ()), "é", "x" * 300)
    _put(disk, *names)
    renaming = disk.store.rename_conversations(lambda name: f"keyed {name}")
    renaming.wait_result(30)
    assert _names(disk) == sorted(f"keyed {name}" for name in names)
    assert disk.store.rename_conversations(str.upper) is None
    assert disk.reopened().store.rename_conversations(str.upper) is None
    assert _names(disk) == sorted(f"keyed {name}" for name in names)


def test_a_renaming_that_failed_is_made_again(disk: StoreFixture) -> None:
    _put(disk, "a", "b")
    with disk.broken(), pytest.raises(StoreError):
        disk.store.rename_conversations(str.upper).wait_result(30)
    assert _names(disk) == ["a", "b"]
    disk.store.rename_conversations(str.upper).wait_result(30)
    assert _names(disk) == ["A", "B"]


def test_a_new_store_has_nothing_to_rename(store_fixture: StoreFixture) -> None:
    assert store_fixture.store.rename_conversations(str.upper) is None
