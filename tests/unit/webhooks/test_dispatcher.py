"""Outbox dispatcher over real connections: every notice is delivered, whatever receivers and the store do."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from qwed.futures import Future, completed, notify
from qwed.http_client.dns import NameResolver
from qwed.store.protocol import Delivery, StoreError
from qwed.webhooks.dispatcher import (
    DELAYS,
    LARGEST_PAGE,
    MAX_CONCURRENT,
    MAX_CONCURRENT_PER_ORGANISATION,
    PAGE,
    OutboxDispatcher,
    delay_after,
    select_deliveries,
)
from qwed.webhooks.sender import Sender
from tests.support.fault_injection import FailingProxy
from tests.support.loop_threads import thread_of
from tests.support.manual_clock import ManualClock
from tests.support.webhook_receivers import (
    LOOPBACK,
    PATIENCE,
    Behaviour,
    LocalCertificateAuthority,
    ReceiverConnection,
    WebhookReceiver,
    answering,
    saying,
    silent,
    unaccepted_port,
    unused_port,
)

QUICK = 0.01
"""Poll interval: the clock is manual, so a poll is cheap."""


class MemoryOutbox:
    """Outbox in memory. `wait` blocks a test until a condition is true."""

    def __init__(self, manual_clock: ManualClock) -> None:
        self.manual_clock = manual_clock
        self.changed = threading.Condition()
        self.due: dict[str, tuple[float, Delivery]] = {}
        self.errors: dict[str, list[str]] = {}
        self.delivered_ids: list[str] = []
        self.lost: dict[str, str] = {}
        self.reads: list[int] = []

    def write(self, url: str, notice_id: str = "ntc_1", organisation_id: str = "org_1", attempts: int = 0) -> None:
        body = json.dumps({"id": notice_id, "event": "pending"})
        now = self.manual_clock.now
        delivery = Delivery(notice_id, organisation_id, url, "whsec_1", "pending", body, now, attempts)
        with self.changed:
            self.due[notice_id] = (now, delivery)

    def wait(self, until: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(until, PATIENCE), (self.due, self.errors)

    def due_at(self, notice_id: str = "ntc_1") -> float:
        return self.due[notice_id][0] - self.manual_clock.now

    def due_deliveries(self, now: float, limit: int) -> Sequence[Delivery]:
        with self.changed:
            self.reads.append(limit)
            self.changed.notify_all()
            waiting = sorted((row for row in self.due.values() if row[0] <= now), key=lambda row: row[0])
            return [delivery for _, delivery in waiting[:limit]]

    def delivered(self, notice_id: str, now: float) -> Future[None]:  # noqa: ARG002 - of the Protocol
        with self.changed:
            del self.due[notice_id]
            self.delivered_ids.append(notice_id)
            self.changed.notify_all()
        return _later()

    def postpone(self, notice_id: str, due_at: float, error: str) -> Future[None]:
        with self.changed:
            delivery = self.due[notice_id][1]
            self.due[notice_id] = (due_at, delivery._replace(attempts=delivery.attempts + 1))
            self.errors.setdefault(notice_id, []).append(error)
            self.changed.notify_all()
        return _later()

    def give_up(self, notice_id: str, error: str) -> Future[None]:
        with self.changed:
            del self.due[notice_id]
            self.lost[notice_id] = error
            self.changed.notify_all()
        return _later()


def _later() -> Future[None]:
    """Return a future that another thread completes, like a durable write."""
    future: Future[None] = Future()

    def commit() -> None:
        future.set_result(None)
        notify([future])

    threading.Thread(target=commit).start()
    return future


@pytest.fixture
def manual_clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def outbox(manual_clock: ManualClock) -> MemoryOutbox:
    return MemoryOutbox(manual_clock)


@pytest.fixture(scope="module")
def authority() -> LocalCertificateAuthority:
    return LocalCertificateAuthority()


@pytest.fixture(scope="module")
def serving(authority: LocalCertificateAuthority) -> ssl.SSLContext:
    return authority.server_context([LOOPBACK])


@pytest.fixture
def receiver(serving: ssl.SSLContext) -> Iterator[Callable[..., WebhookReceiver]]:
    opened: list[WebhookReceiver] = []

    def open_one(behaviour: Behaviour, **how: Any) -> WebhookReceiver:
        opened.append(WebhookReceiver(behaviour, serving, **how))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


@pytest.fixture
def dispatcher(
    outbox: MemoryOutbox, manual_clock: ManualClock, authority: LocalCertificateAuthority, receiver: object
) -> Iterator[Callable[..., OutboxDispatcher]]:
    """Starts one; it is closed before the receivers are."""
    started: list[OutboxDispatcher] = []

    def start(of: Any = outbox, *, poll_seconds: float = QUICK, **how: Any) -> OutboxDispatcher:
        sender = Sender(**{"allow_private": True, "context": authority.client_context(), **how})
        started.append(OutboxDispatcher(of, sender, manual_clock.clock(), poll_seconds=poll_seconds))
        started[-1].start()
        return started[-1]

    yield start
    for one in started:
        one.close()


def counts(dispatcher: OutboxDispatcher) -> tuple[int, int, int]:
    return dispatcher.delivered, dispatcher.failed, dispatcher.given_up


def test_what_waits_is_delivered_at_the_start(outbox, dispatcher, receiver):
    there = receiver(answering(200))
    outbox.write(there.url())
    started = dispatcher()
    assert json.loads(there.next().body) == {"id": "ntc_1", "event": "pending"}
    outbox.wait(lambda: outbox.delivered_ids == ["ntc_1"])
    assert counts(started) == (1, 0, 0)
    assert outbox.due == {}


def test_a_wake_is_enough_to_have_a_new_notice_delivered(outbox, dispatcher, receiver):
    there = receiver(answering(200))
    started = dispatcher(poll_seconds=PATIENCE * 10)
    outbox.wait(lambda: bool(outbox.reads))
    outbox.write(there.url())
    started.wake()
    outbox.wait(lambda: outbox.delivered_ids == ["ntc_1"])


def test_every_wake_counts_not_only_the_first(outbox, dispatcher, receiver):
    there = receiver(answering(200))
    started = dispatcher(poll_seconds=PATIENCE * 10)
    for number in range(3):
        reads = len(outbox.reads)
        outbox.write(there.url(), f"ntc_{number}")
        started.wake()
        outbox.wait(lambda number=number: len(outbox.delivered_ids) == number + 1)
        # One look for the wake and one for the line that is free again; after it nothing rings by itself.
        outbox.wait(lambda reads=reads: len(outbox.reads) >= reads + 2)
    assert outbox.delivered_ids == ["ntc_0", "ntc_1", "ntc_2"]


def test_without_a_wake_the_outbox_is_looked_at_anyway(outbox, dispatcher, receiver):
    there = receiver(answering(200))
    dispatcher()
    outbox.wait(lambda: bool(outbox.reads))
    outbox.write(there.url())
    outbox.wait(lambda: outbox.delivered_ids == ["ntc_1"])


def test_a_receiver_that_fails_twice_gets_the_notice_at_the_third_attempt(outbox, dispatcher, receiver, manual_clock):
    there = receiver(answering(500, 500, 200))
    outbox.write(there.url())
    started = dispatcher()
    for attempt in (1, 2):
        outbox.wait(lambda attempt=attempt: len(outbox.errors.get("ntc_1", [])) == attempt)
        assert outbox.due_at() == DELAYS[attempt - 1]
        manual_clock.advance(outbox.due_at())
    outbox.wait(lambda: outbox.delivered_ids == ["ntc_1"])
    assert outbox.errors == {"ntc_1": ["the receiver answered 500"] * 2}
    assert counts(started) == (1, 2, 0)
    assert [there.next().headers["qwed-notice"] for _ in range(3)] == ["ntc_1"] * 3


def test_a_notice_is_not_tried_again_before_its_time(outbox, dispatcher, receiver, manual_clock):
    there = receiver(answering(500))
    outbox.write(there.url())
    dispatcher()
    outbox.wait(lambda: "ntc_1" in outbox.errors)
    manual_clock.advance(outbox.due_at() - 0.001)
    reads = len(outbox.reads)
    outbox.wait(lambda: len(outbox.reads) > reads + 5)
    assert outbox.errors == {"ntc_1": ["the receiver answered 500"]}


def test_every_delay_of_the_table_is_used_and_then_the_notice_is_given_up(outbox, dispatcher, manual_clock):
    outbox.write(f"https://{LOOPBACK}:{unused_port()}/")
    started = dispatcher()
    delays: list[float] = []
    for attempt in range(1, len(DELAYS) + 1):
        outbox.wait(lambda attempt=attempt: len(outbox.errors.get("ntc_1", [])) == attempt)
        delays.append(round(outbox.due_at()))
        manual_clock.advance(outbox.due_at())
    outbox.wait(lambda: outbox.lost == {"ntc_1": "the connection was refused"})
    assert delays == list(DELAYS)
    assert counts(started) == (0, len(DELAYS) + 1, 1)
    assert outbox.due == {}


def test_the_table_covers_most_of_a_day_and_never_hurries():
    assert 23 * 3_600 < sum(DELAYS) < 24 * 3_600
    assert list(DELAYS) == sorted(DELAYS)
    assert [delay_after(attempts) for attempts in (0, 1, len(DELAYS) - 1)] == [1, 5, 3_600]
    assert [delay_after(attempts) for attempts in (len(DELAYS), 10**9)] == [None, None]


def test_a_receiver_that_never_answers_does_not_hold_up_the_others(outbox, dispatcher, receiver):
    with unaccepted_port() as port:
        for number in range(2 * MAX_CONCURRENT):
            outbox.write(f"https://{LOOPBACK}:{port}/", f"ntc_dead_{number}", "org_dead")
        outbox.write(receiver(answering(200)).url(), "ntc_alive", "org_alive")
        started = dispatcher(seconds=PATIENCE * 10)
        outbox.wait(lambda: outbox.delivered_ids == ["ntc_alive"])
        started.close()
    assert len(outbox.due) == 2 * MAX_CONCURRENT


def test_a_backlog_larger_than_a_page_does_not_hide_who_stands_behind_it(outbox, dispatcher, receiver, manual_clock):
    with unaccepted_port() as port:
        for number in range(PAGE + 50):
            outbox.write(f"https://{LOOPBACK}:{port}/", f"ntc_dead_{number}", "org_dead")
        manual_clock.advance(1)
        outbox.write(receiver(answering(200)).url(), "ntc_alive", "org_alive")
        started = dispatcher(seconds=PATIENCE * 10)
        outbox.wait(lambda: outbox.delivered_ids == ["ntc_alive"])
        started.close()
    assert LARGEST_PAGE in outbox.reads


def test_more_than_a_few_lines_to_one_organisation_are_never_open(outbox, dispatcher, receiver, manual_clock):
    open_now, most = 0, 0

    async def counting(line: ReceiverConnection) -> None:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        try:
            await answering(200)(line)
        finally:
            open_now -= 1

    there = receiver(counting)
    for number in range(40):
        outbox.write(there.url(), f"ntc_{number}")
    dispatcher()
    outbox.wait(lambda: len(outbox.delivered_ids) == 40)
    assert 1 <= most <= MAX_CONCURRENT_PER_ORGANISATION
    assert sorted(outbox.delivered_ids) == sorted(f"ntc_{number}" for number in range(40))


def delivery(notice_id: str, organisation_id: str) -> Delivery:
    return Delivery(notice_id, organisation_id, "https://example.com/", "s", "pending", "{}", 0.0, 0)


def test_who_has_the_fewest_lines_is_first():
    page = [delivery(f"a{number}", "a") for number in range(10)] + [delivery("b1", "b"), delivery("c1", "c")]
    names = [delivery.notice_id for delivery in select_deliveries(page, {"a0": "a", "c0": "c"})]
    assert names == ["b1", "a1", "c1", "a2", "a3"]


def test_what_is_under_way_is_not_begun_again():
    assert select_deliveries([delivery("a1", "a")], {"a1": "a"}) == []


def test_an_organisation_with_all_its_lines_taken_waits():
    running = {f"a{number}": "a" for number in range(MAX_CONCURRENT_PER_ORGANISATION)}
    assert select_deliveries([delivery("a9", "a"), delivery("b1", "b")], running) == [delivery("b1", "b")]


def test_no_more_than_the_free_lines_are_begun():
    page = [delivery(f"n{number}", f"org_{number}") for number in range(2 * MAX_CONCURRENT)]
    assert len(select_deliveries(page, {})) == MAX_CONCURRENT
    assert len(select_deliveries(page, {f"x{number}": f"y{number}" for number in range(MAX_CONCURRENT - 3)})) == 3
    assert select_deliveries(page, {f"x{number}": f"y{number}" for number in range(MAX_CONCURRENT)}) == []


def test_the_same_notice_is_never_sent_twice_at_the_same_time(outbox, dispatcher, receiver):
    there = receiver(silent)
    outbox.write(there.url())
    started = dispatcher(seconds=PATIENCE * 10)
    there.next()
    reads = len(outbox.reads)
    for _ in range(5):
        started.wake()
    outbox.wait(lambda: len(outbox.reads) > reads + 5)
    assert there.connections == 1


@pytest.mark.parametrize("failure", [StoreError("disk full"), OSError("gone"), KeyError("unexpected"), MemoryError()])
def test_an_outbox_that_cannot_be_read_is_read_again_later(outbox, dispatcher, receiver, failure, caplog):
    there = receiver(answering(200))
    outbox.write(there.url())
    started = dispatcher(FailingProxy(outbox, "due_deliveries", failure, once=True))
    outbox.wait(lambda: outbox.delivered_ids == ["ntc_1"])
    assert counts(started) == (1, 0, 0)
    assert "webhook outbox read failed" in caplog.text


@pytest.mark.parametrize("failure", [StoreError("disk full"), TimeoutError(), KeyError("unexpected")])
def test_an_outcome_that_cannot_be_kept_is_kept_later_and_the_notice_is_not_sent_again(
    outbox, dispatcher, receiver, failure, caplog
):
    there = receiver(answering(200))
    outbox.write(there.url())
    started = dispatcher(FailingProxy(outbox, "delivered", failure, once=True))
    outbox.wait(lambda: outbox.delivered_ids == ["ntc_1"])
    assert there.connections == 1
    assert counts(started) == (1, 0, 0)
    assert "webhook outcome write failed; retrying" in caplog.text


class Refusing(MemoryOutbox):
    """Accepts the outcome and fails to make it durable, so many times."""

    def __init__(self, manual_clock: ManualClock, times: int) -> None:
        super().__init__(manual_clock)
        self.times = times

    def delivered(self, notice_id: str, now: float) -> Future[None]:
        if self.times:
            self.times -= 1
            future: Future[None] = Future()
            future.set_exception(StoreError("could not write: disk full"))
            notify([future])
            return future
        return super().delivered(notice_id, now)


def test_an_outcome_that_was_not_made_durable_is_given_to_the_store_again(manual_clock, dispatcher, receiver):
    outbox = Refusing(manual_clock, times=3)
    there = receiver(answering(200))
    outbox.write(there.url())
    dispatcher(outbox)
    outbox.wait(lambda: outbox.delivered_ids == ["ntc_1"])
    assert there.connections == 1


def test_an_unexpected_error_in_one_delivery_fails_that_one_only(outbox, dispatcher, receiver, caplog):
    async def failing_lookup(host: str, port: int) -> Sequence[str]:
        raise ZeroDivisionError("nobody expected this")

    outbox.write("https://hooks.example.com/", "ntc_bad", "org_bad")
    outbox.write(receiver(answering(200)).url(), "ntc_good", "org_good")
    started = dispatcher(resolve_name=failing_lookup)
    outbox.wait(lambda: outbox.delivered_ids == ["ntc_good"] and "ntc_bad" in outbox.errors)
    assert outbox.errors == {"ntc_bad": ["internal error of the sender"]}
    assert counts(started) == (1, 1, 0)
    assert "nobody expected this" in caplog.text


def test_a_notice_that_cannot_be_put_into_bytes_is_a_failure_of_that_one_only(outbox, dispatcher, receiver):
    there = receiver(answering(200))
    outbox.write(there.url(), "ntc_good")
    delivery = outbox.due["ntc_good"][1]
    outbox.due["ntc_bad"] = (outbox.manual_clock.now, delivery._replace(notice_id="ntc_bad", body='"\ud800"'))
    dispatcher()
    outbox.wait(lambda: outbox.delivered_ids == ["ntc_good"] and "ntc_bad" in outbox.errors)


def test_no_log_line_holds_a_url_or_a_secret(outbox, dispatcher, caplog):
    outbox.write(f"https://{LOOPBACK}:{unused_port()}/services/T0/secret-path", attempts=len(DELAYS))
    dispatcher()
    outbox.wait(lambda: bool(outbox.lost))
    [line] = [record for record in caplog.records if record.name == "qwed.webhooks"]
    assert (line.getMessage(), line.notice, line.error) == (
        "webhook delivery given up",
        "ntc_1",
        "the connection was refused",
    )
    assert "secret" not in str(vars(line))


def test_closing_leaves_what_is_under_way_in_the_outbox(outbox, dispatcher, receiver, manual_clock):
    there = receiver(silent)
    outbox.write(there.url())
    started = dispatcher(seconds=PATIENCE * 10)
    there.next()
    started.close()
    assert not thread_of(started).is_alive()
    assert (list(outbox.due), outbox.errors, counts(started)) == (["ntc_1"], {}, (0, 0, 0))


def test_after_a_restart_a_notice_that_was_under_way_is_sent_again(outbox, dispatcher, receiver):
    async def silent_once(line: ReceiverConnection) -> None:
        await (silent if line.number == 0 else answering(200))(line)

    there = receiver(silent_once)
    outbox.write(there.url())
    started = dispatcher(seconds=PATIENCE * 10)
    there.next()
    started.close()
    dispatcher()
    outbox.wait(lambda: outbox.delivered_ids == ["ntc_1"])
    assert there.next().headers["qwed-notice"] == "ntc_1"


def test_closing_while_the_store_refuses_ends_too(manual_clock, dispatcher, receiver):
    outbox = Refusing(manual_clock, times=10**9)
    there = receiver(answering(200))
    outbox.write(there.url())
    started = dispatcher(outbox)
    there.next()
    reads = len(outbox.reads)
    outbox.wait(lambda: len(outbox.reads) > reads + 3)
    started.close()
    assert not thread_of(started).is_alive()
    assert list(outbox.due) == ["ntc_1"]


def test_closing_while_a_lookup_hangs_ends_too(outbox, dispatcher):
    started_lookup, answer = threading.Event(), threading.Event()

    def hanging(host: str, port: int) -> Sequence[str]:
        started_lookup.set()
        answer.wait(PATIENCE)
        return []

    outbox.write("https://hooks.example.com/")
    started = dispatcher(resolve_name=NameResolver(hanging), seconds=PATIENCE * 10)
    assert started_lookup.wait(PATIENCE)
    started.close()
    assert not thread_of(started).is_alive()
    answer.set()


def test_closing_does_not_wait_for_a_disk_that_hangs(manual_clock, dispatcher):
    reading, go_on = threading.Event(), threading.Event()

    class Hanging(MemoryOutbox):
        def due_deliveries(self, now: float, limit: int) -> Sequence[Delivery]:
            reading.set()
            assert go_on.wait(PATIENCE)
            return super().due_deliveries(now, limit)

    started = dispatcher(Hanging(manual_clock))
    assert reading.wait(PATIENCE)
    started.wake()
    started.close()
    assert thread_of(started).is_alive()
    assert thread_of(started).daemon
    go_on.set()
    thread_of(started).join(PATIENCE)
    assert not thread_of(started).is_alive()


def test_closing_twice_and_waking_what_is_closed_does_nothing(outbox, dispatcher):
    started = dispatcher()
    started.close()
    started.close()
    started.wake()
    reads = len(outbox.reads)
    started.wake()
    assert len(outbox.reads) == reads


def test_what_was_never_started_can_be_woken_and_closed(outbox):
    idle = OutboxDispatcher(outbox, Sender())
    idle.wake()
    idle.close()
    idle.wake()
    assert outbox.reads == []


def test_a_storm_of_wakes_from_many_threads_ends_with_everything_delivered(outbox, dispatcher, receiver):
    there = receiver(answering(200))
    started = dispatcher(poll_seconds=PATIENCE * 10)

    def write_some(name: str) -> None:
        for number in range(10):
            outbox.write(there.url(), f"ntc_{name}_{number}", f"org_{name}")
            started.wake()

    threads = [threading.Thread(target=write_some, args=(name,)) for name in "abcdefgh"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    outbox.wait(lambda: len(outbox.delivered_ids) == 80)
    assert len(set(outbox.delivered_ids)) == 80
    assert counts(started) == (80, 0, 0)


def test_a_receiver_that_hangs_up_is_tried_again(outbox, dispatcher, receiver):
    outbox.write(receiver(saying()).url())
    dispatcher()
    outbox.wait(lambda: outbox.errors == {"ntc_1": ["the connection failed"]})


def test_a_forbidden_address_is_never_connected_to_and_is_given_up_like_any_other(
    outbox, dispatcher, receiver, manual_clock
):
    there = receiver(answering(200))
    outbox.write(there.url(), attempts=len(DELAYS))
    dispatcher(allow_private=False)
    outbox.wait(lambda: list(outbox.lost) == ["ntc_1"])
    assert "is loopback" in outbox.lost["ntc_1"]
    assert there.connections == 0


def test_a_ticket_that_is_done_already_is_as_good(manual_clock, dispatcher, receiver):
    class Inline(MemoryOutbox):
        def delivered(self, notice_id: str, now: float) -> Future[None]:
            super().delivered(notice_id, now)
            return completed(None)

    outbox = Inline(manual_clock)
    outbox.write(receiver(answering(200)).url())
    started = dispatcher(outbox)
    outbox.wait(lambda: outbox.delivered_ids == ["ntc_1"])
    assert counts(started) == (1, 0, 0)
