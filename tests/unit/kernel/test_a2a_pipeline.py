"""Checks, results and records of messages between agents (ruling 4.14)."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from qwed.domain.snapshot import Snapshot, SnapshotKeys
from qwed.futures import run_in_thread
from qwed.gate import Gate, open_gate
from qwed.kernel.a2a.message import EngineName, MessageResult, MessageVerdict
from qwed.kernel.a2a.refusal_coalescing import RefusalCoalescer
from qwed.kernel.admin.webhook import WebhookRequest, set_webhook
from qwed.kernel.answer import Problem
from qwed.kernel.audit_change import Actor
from qwed.kernel.bootstrap import close_services, open_services
from qwed.kernel.tools import A2A_MESSAGE
from qwed.model.clock import DAY
from qwed.settings import Settings
from qwed.store.protocol import LogEntry
from tests.support.agent_names import unique_name
from tests.support.kernel_messages import FINE, TRACE, MessageSender
from tests.support.manual_clock import ManualClock

SUSPENDED, LIMIT, REPLAY = "QWED-AGENT-003", "QWED-AGENT-LOOP-001", "QWED-AGENT-LOOP-002"
LOOP, RATE, BLOCKED = "QWED-AGENT-LOOP-004", "QWED-AGENT-BUDGET-002", "QWED-AGENT-005"
SECRET = "sk-proj-" + "a1B2" * 12


@pytest.fixture
def manual_clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def post(tmp_path: Path, manual_clock: ManualClock) -> Iterator[MessageSender]:
    opened = open_services(Settings(data_dir=tmp_path), in_memory=True, clock=manual_clock.clock())
    yield MessageSender(Gate(opened), opened.services)
    close_services(opened.services)


@pytest.fixture
def agent(post: MessageSender) -> Callable[..., str]:
    """Function that registers one more agent and returns its id."""

    def register(**fields: Any) -> str:
        registered = post.gate.register_agent(
            **{"name": unique_name(), "principal_id": "p", "trust_level": 3, **fields}
        )
        return str(registered["agent_id"])

    return register


def _code(result: MessageResult) -> Any:
    assert not result.verdict.forwarded
    return result.verdict.details.get("code")


def _leaf(post: MessageSender, result: MessageResult) -> dict[str, Any]:
    (entry,) = post.services.store.entries(post.gate.organisation_id, result.log_index, 1)
    assert isinstance(entry, LogEntry)
    members: dict[str, Any] = msgspec.json.decode(entry.leaf)
    return members


def _newest(post: MessageSender, agent_id: str) -> Any:
    return post.gate.get_agent_activity(agent_id, limit=1)[0]


# Records


def test_a_message_of_a_registered_agent_is_a_decision_with_its_engine_and_its_trace(
    post: MessageSender, agent: Callable[..., str]
) -> None:
    ann, bob = agent(), agent()
    result = post.send(
        ann, bob, {"total": 3}, kind="financial_transaction", judge=MessageVerdict(True, EngineName.FINANCE_GUARD, "ok")
    )
    logged = _leaf(post, result)
    assert (result.verdict.forwarded, logged["decision"], logged["engine"]) == (True, "APPROVED", "finance_guard")
    assert (logged["about"], logged["action_type"], logged["status"]) == (TRACE, "a2a_message", "VERIFIED")
    assert "risk_level" not in logged
    activity = _newest(post, ann)
    assert activity.activity_id == result.activity_id
    assert activity.action["target"] == bob
    assert activity.action["parameters"] == {
        "payload": {"total": 3},
        "payload_type": "financial_transaction",
        "trace_id": TRACE,
    }


def test_a_message_of_an_unregistered_sender_is_a_leaf_of_the_organisation(post: MessageSender) -> None:
    result = post.send("crm", "billing", "hello", conversation_id="c1")
    logged = _leaf(post, result)
    assert (logged["event"], logged["about"], logged["engine"]) == ("message_forwarded", TRACE, "passthrough")
    assert logged.keys() & {"agent_id", "decision", "error"} == set()
    (change,) = post.gate.list_changes(limit=1)
    assert change.change == {"about": TRACE, "sender": "crm"}
    assert (change.action["target"], change.conversation_id) == ("billing", "c1")
    refused = post.send(
        "crm", "billing", judge=MessageVerdict(False, EngineName.CODE_GUARD, "`eval` is dangerous", violation=True)
    )
    assert (_leaf(post, refused)["event"], _leaf(post, refused)["error"]) == ("message_blocked", BLOCKED)


def test_an_uninspected_message_is_stored_without_its_payload(post: MessageSender, agent: Callable[..., str]) -> None:
    ann, bob = agent(), agent()
    post.gate.block_agent(bob)
    refused = post.send(ann, bob, "a great many words")
    assert refused.verdict == MessageVerdict(False, EngineName.TRUST_BOUNDARY, "the receiver is blocked")
    activity = _newest(post, ann)
    assert activity.action["parameters"] == {"payload_type": "general", "trace_id": TRACE}
    assert (activity.decision, activity.error["code"], activity.verification["status"]) == (
        "DENIED",
        BLOCKED,
        "BLOCKED",
    )


@pytest.mark.parametrize("registered", [True, False])
@pytest.mark.parametrize("forwarded", [True, False])
def test_of_a_secret_in_a_payload_neither_it_nor_its_hash_is_kept(
    post: MessageSender, agent: Callable[..., str], registered: bool, forwarded: bool
) -> None:
    sender = agent() if registered else "crm"
    judge = MessageVerdict(forwarded, EngineName.CODE_GUARD, f"found {SECRET}", {"near": SECRET})
    result = post.send(sender, "bob", {"code": f"key = '{SECRET}'", "api_key": "hunter2hunter2"}, judge=judge)
    organisation_id = post.gate.organisation_id
    (entry,) = post.services.store.entries(organisation_id, result.log_index, 1)
    record = post.services.store.find_activity(sender if registered else organisation_id, result.activity_id)
    assert record is not None
    text = entry.leaf + post.services.vault.content(record, result.activity_id).text
    assert "a1B2a1B2" not in text
    assert "hunter2" not in text
    assert "[secret:" in text
    assert "action_hash" not in text
    assert '"sub"' not in text


def test_who_is_erased_takes_the_content_of_their_messages_along(
    post: MessageSender, agent: Callable[..., str]
) -> None:
    ann = agent(principal_id="Ann Smith")
    post.send(ann, "bob", "from ann")
    post.send("crm of Carl", "bob", "from carl")
    post.gate.erase("Ann Smith")
    assert (_newest(post, ann).content, _newest(post, ann).action) == ("erased", None)
    post.gate.erase("crm of Carl")
    (forwarded,) = [change for change in post.gate.list_changes() if change.event == "message_forwarded"]
    assert (forwarded.content, forwarded.action, forwarded.change) == ("erased", None, {"about": TRACE})


def test_the_report_of_an_agent_counts_its_messages(post: MessageSender, agent: Callable[..., str]) -> None:
    ann = agent()
    post.send(ann, "bob")
    post.send(ann, "bob", judge=MessageVerdict(False, EngineName.LOGIC_GUARD, "they contradict one another"))
    report = msgspec.json.decode(post.gate.compliance_report(ann, format="json"))
    (row,) = report["decisions"]["by_action_type"]
    assert (row["name"], row["approved"], row["denied"]) == (A2A_MESSAGE, 1, 1)
    assert {row["name"] for row in report["decisions"]["by_engine"]} == {"passthrough", "logic_guard"}
    assert A2A_MESSAGE.encode() in post.gate.compliance_report(ann, format="csv")


@pytest.mark.parametrize("trace_id", ["", "a b", "Ann Smith", "x" * 65, "a\nb", "\u00e4"])
def test_what_is_no_id_does_not_get_into_the_log(post: MessageSender, trace_id: str) -> None:
    size = post.services.store.log_size(post.gate.organisation_id)
    refused = post.try_send("crm", "bob", trace_id=trace_id)
    assert isinstance(refused, Problem)
    assert refused.code == "QWED-REQ-001"
    assert post.services.store.log_size(post.gate.organisation_id) == size


# Suspension, budget, trust


def test_a_suspended_agent_sends_nothing_and_neither_does_anybody_once_all_are_stopped(
    post: MessageSender, agent: Callable[..., str]
) -> None:
    ann = agent()
    post.gate.suspend_agent(ann, reason="odd")
    refused = post.send(ann, "bob", judge=FINE)
    assert (_code(refused), refused.verdict.engine) == (SUSPENDED, EngineName.TRUST_BOUNDARY)
    assert post.send("crm", "bob").verdict.forwarded
    post.gate.suspend_all(reason="odd")
    assert _code(post.send("crm", "bob")) == SUSPENDED


@pytest.mark.parametrize("registered", [True, False])
@pytest.mark.parametrize("meanwhile", ["suspend_all", "block_agent", "block_pair"])
def test_what_is_stopped_or_blocked_while_it_is_judged_is_not_forwarded(
    post: MessageSender, agent: Callable[..., str], registered: bool, meanwhile: str
) -> None:
    sender = agent() if registered else "crm"
    arguments = {"suspend_all": ["odd"], "block_agent": [sender], "block_pair": [sender, "bob"]}[meanwhile]

    def judge() -> MessageVerdict:
        getattr(post.gate, meanwhile)(*arguments)
        return FINE

    refused = post.send(sender, "bob", judge=judge)
    assert _code(refused) == (SUSPENDED if meanwhile == "suspend_all" else BLOCKED)
    assert _leaf(post, refused).get("event", "message_blocked") == "message_blocked"


def test_a_message_is_decided_on_the_agent_as_it_is_once_the_message_is_judged(
    post: MessageSender, agent: Callable[..., str]
) -> None:
    ann = agent()

    def judge_and_reduce() -> MessageVerdict:
        post.gate.reduce_trust(ann, to_level=1)
        return FINE

    def judge_and_suspend() -> MessageVerdict:
        post.gate.suspend_agent(ann, "now")
        return FINE

    assert post.send(ann, "bob", judge=judge_and_reduce).verdict.forwarded
    assert _code(post.send(ann, "bob", judge=judge_and_suspend)) == SUSPENDED


def test_a_message_is_one_request_and_costs_nothing(
    post: MessageSender, agent: Callable[..., str], manual_clock: ManualClock
) -> None:
    ann = agent(budget={"max_requests_per_hour": 3, "max_daily_cost_usd": 0, "max_tool_calls_per_hour": 0})
    verdicts = [post.send(ann, "bob", f"{n}", judge=FINE) for n in range(4)]
    assert [sent.verdict.forwarded for sent in verdicts] == [True, True, True, False]
    refused = verdicts[-1].verdict
    assert (refused.details["code"], refused.engine) == (RATE, EngineName.TRUST_BOUNDARY)
    assert refused.details["retry_after"] > 0
    assert _leaf(post, verdicts[-1])["decision"] == "BUDGET_EXCEEDED"
    spent = post.services.store.usage_counters(ann, manual_clock.now)
    assert (spent.requests_hour, spent.cost_day, spent.tool_calls_hour) == (3, 0, 0)


def test_a_message_that_a_guard_refused_is_a_request_too(
    post: MessageSender, agent: Callable[..., str], manual_clock: ManualClock
) -> None:
    ann = agent()
    post.send(ann, "bob", judge=MessageVerdict(False, EngineName.FINANCE_GUARD, "the total is wrong"))
    assert post.services.store.usage_counters(ann, manual_clock.now).requests_hour == 1


@pytest.mark.parametrize(
    ("verdict", "trust"),
    [
        (MessageVerdict(False, EngineName.CODE_GUARD, "dangerous", violation=True), 1),
        (MessageVerdict(False, EngineName.FINANCE_GUARD, "the total is wrong"), 3),
        (MessageVerdict(False, EngineName.ERROR_HANDLER, "the guard failed"), 3),
        (MessageVerdict(False, EngineName.TRUST_BOUNDARY, "blocked"), 3),
        (FINE, 3),
    ],
)
def test_what_breaks_a_rule_of_security_costs_trust_and_nothing_else_does(
    post: MessageSender, agent: Callable[..., str], verdict: MessageVerdict, trust: int
) -> None:
    ann = agent()
    post.send(ann, "bob", judge=verdict)
    assert post.gate.get_agent(ann).trust_level == trust


def test_a_judge_that_failed_says_nothing_about_the_agent(post: MessageSender, agent: Callable[..., str]) -> None:
    ann = agent()
    for number in range(25):
        post.send(ann, "bob", f"{number}", judge=MessageVerdict(False, EngineName.ERROR_HANDLER, "the guard failed"))
    assert post.gate.get_agent(ann).trust_level == 3


@pytest.mark.parametrize(
    ("verdict", "events"),
    [
        (MessageVerdict(False, EngineName.CODE_GUARD, "dangerous", violation=True), ["failed", "degraded"]),
        (MessageVerdict(False, EngineName.FINANCE_GUARD, "the total is wrong"), ["failed"]),
        (MessageVerdict(False, EngineName.ERROR_HANDLER, "the guard failed"), []),
        (FINE, []),
    ],
)
def test_the_webhook_is_told_of_messages_that_failed(
    post: MessageSender,
    agent: Callable[..., str],
    manual_clock: ManualClock,
    verdict: MessageVerdict,
    events: list[str],
) -> None:
    owner = Actor("gate", post.gate.organisation_id, "owner")
    request = WebhookRequest(url="https://example.com/hook", events=["pending", "failed", "degraded", "suspended"])
    run_in_thread(set_webhook(request, owner, post.services), 30)
    ann = agent()
    result = post.send(ann, "bob", "the words", judge=verdict)
    waiting = post.services.store.due_deliveries(manual_clock.now, 10)
    # Created at the same time: in any order.
    bodies = {delivery.event: delivery.body for delivery in waiting}
    assert sorted(bodies) == sorted(events)
    assert len(waiting) == len(events)
    assert not events or result.activity_id in bodies["failed"]
    assert all("the words" not in delivery for delivery in bodies.values())


# Conversations


def test_steps_are_allotted_where_none_is_named(post: MessageSender, agent: Callable[..., str]) -> None:
    ann = agent()
    steps = [_leaf(post, post.send(ann, "bob", f"{n}", conversation_id="c"))["step_number"] for n in range(3)]
    assert steps == [1, 2, 3]
    assert _leaf(post, post.send(ann, "bob", "seven", conversation_id="c", step_number=7))["step_number"] == 7
    assert _code(post.send(ann, "bob", "six", conversation_id="c", step_number=6)) == REPLAY
    assert _leaf(post, post.send(ann, "bob", "next", conversation_id="c"))["step_number"] == 8


def test_two_messages_of_one_conversation_that_overtake_one_another_are_both_forwarded(
    post: MessageSender, agent: Callable[..., str]
) -> None:
    ann = agent()

    def judge() -> MessageVerdict:
        assert post.send(ann, "bob", "inner", conversation_id="c").verdict.forwarded
        return FINE

    assert post.send(ann, "bob", "outer", conversation_id="c", judge=judge).verdict.forwarded
    activities = post.gate.get_agent_activity(ann, limit=2)
    assert [activity.step_number for activity in activities] == [2, 1]


def test_without_a_conversation_nothing_is_a_loop(post: MessageSender, agent: Callable[..., str]) -> None:
    ann = agent()
    assert all(post.send(ann, "bob", "again").verdict.forwarded for _ in range(6))


def test_without_a_conversation_none_is_remembered(post: MessageSender, agent: Callable[..., str]) -> None:
    ann, store = agent(), post.services.store
    post.send(ann, "bob", conversation_id="c")
    for number in range(5):
        post.send(ann, "bob", f"{number}")
    post.send(ann, "bob", "no step is taken", conversation_id="c")
    name = post.services.vault.fingerprint
    snapshot = store.load(SnapshotKeys(ann, conversation_id=name("c")))
    assert isinstance(snapshot, Snapshot)
    assert snapshot.history.last_step == 2


def test_the_same_message_on_an_unchanged_answer_is_refused_the_third_time(
    post: MessageSender, agent: Callable[..., str]
) -> None:
    ann, bob = agent(), agent()
    post.send(bob, ann, "I do not know", conversation_id="c")
    spellings = ["Are we there?", "are we THERE?", " are we\nthere ?"]
    results = [post.send(ann, bob, text, conversation_id="c") for text in spellings]
    assert [result.verdict.forwarded for result in results] == [True, True, False]
    assert _code(results[-1]) == LOOP
    assert "the same message on an unchanged answer" in results[-1].verdict.reason
    post.send(bob, ann, "i do not KNOW", conversation_id="c")
    assert _code(post.send(ann, bob, spellings[0], conversation_id="c")) == LOOP
    post.send(bob, ann, "Yes, we are", conversation_id="c")
    assert post.send(ann, bob, spellings[0], conversation_id="c").verdict.forwarded


@pytest.mark.parametrize(
    "spelt",
    [
        "go on\u200b",
        "go\x0bon",
        "go on\x00",
        "go\u00a0on",
        "g\ufe0fo on",
        "go\u2028on",
        "GO\x1cON\x7f",
        "go\u034f on",
    ],
)
def test_invisible_characters_do_not_make_another_message(
    post: MessageSender, agent: Callable[..., str], spelt: str
) -> None:
    ann, bob = agent(), agent()
    messages = [("go on", bob), (spelt, bob.upper()), (spelt, f"{bob} "), ("go on", bob)]
    forwarded = [post.send(ann, receiver, text, conversation_id="c").verdict.forwarded for text, receiver in messages]
    assert forwarded == [True, True, False, False]
    post.send(bob, ann, "I am going", conversation_id="c")
    assert post.send(ann, bob.upper(), spelt, conversation_id="c").verdict.forwarded


@pytest.mark.parametrize("other", ["go no", "go on!", "go\\non", "go \\u0000on", "gone", "go\u0300 on"])
def test_visible_differences_make_another_message(post: MessageSender, agent: Callable[..., str], other: str) -> None:
    ann, bob = agent(), agent()
    results = [post.send(ann, bob, text, conversation_id="c") for text in ("go on", "go on", other)]
    assert all(result.verdict.forwarded for result in results)


def test_a_new_answer_each_time_allows_the_same_question(post: MessageSender, agent: Callable[..., str]) -> None:
    ann, bob = agent(), agent()
    for number in range(12):
        assert post.send(ann, bob, "and now?", conversation_id="c").verdict.forwarded
        assert post.send(bob, ann, f"{number} done", conversation_id="c").verdict.forwarded


def test_a_ping_pong_without_progress_comes_to_its_end(post: MessageSender, agent: Callable[..., str]) -> None:
    ann, bob = agent(), agent()
    seen = []
    for _ in range(10):
        seen.append(post.send(ann, bob, "ping", conversation_id="c"))
        seen.append(post.send(bob, ann, "pong", conversation_id="c"))
    forwarded = [result.verdict.forwarded for result in seen]
    assert forwarded == [True] * 5 + [False] * 15
    assert {_code(result) for result in seen[5:]} == {LOOP}


def test_of_a_receiver_that_is_not_registered_no_answer_is_known(
    post: MessageSender, agent: Callable[..., str]
) -> None:
    ann = agent()
    sent = [post.send(ann, "far away", "hello?", conversation_id="c").verdict.forwarded for _ in range(3)]
    assert sent == [True, True, False]
    assert post.send(ann, "another", "hello?", conversation_id="c").verdict.forwarded


def test_a_conversation_has_as_many_steps_as_any(post: MessageSender, agent: Callable[..., str]) -> None:
    ann = agent()
    sent = [post.send(ann, "bob", f"{n}", conversation_id="c", judge=FINE) for n in range(51)]
    assert [result.verdict.forwarded for result in sent] == [True] * 50 + [False]
    assert _code(sent[-1]) == LIMIT


@pytest.mark.parametrize(
    ("place", "code"),
    [
        ({"conversation_id": ""}, "QWED-AGENT-CTX-001"),
        ({"conversation_id": "x" * 257}, "QWED-AGENT-CTX-001"),
        ({"conversation_id": "a\x00b"}, "QWED-AGENT-CTX-001"),
        ({"conversation_id": "c", "step_number": 0}, "QWED-AGENT-CTX-002"),
        ({"conversation_id": "c", "step_number": True}, "QWED-AGENT-CTX-002"),
    ],
)
def test_a_place_that_is_none_is_refused(
    post: MessageSender, agent: Callable[..., str], place: dict[str, Any], code: str
) -> None:
    assert _code(post.send(agent(), "bob", **place)) == code


# Floods


@pytest.mark.parametrize("registered", [True, False])
def test_a_flood_is_one_leaf_a_minute_and_the_next_one_tells_how_many_there_were(
    post: MessageSender, agent: Callable[..., str], manual_clock: ManualClock, registered: bool
) -> None:
    sender = agent() if registered else "crm"
    assert all(post.send(sender, "bob", f"{n}").verdict.forwarded for n in range(60))
    size = post.services.store.log_size(post.gate.organisation_id)
    flood = [post.send(sender, "bob", "more") for _ in range(100)]
    assert {(result.activity_id, result.log_index) for result in flood} == {(flood[0].activity_id, size)}
    assert not any(result.verdict.forwarded for result in flood)
    assert _leaf(post, flood[0])["error"] == "QWED-SYS-001"
    assert "repeats" not in _leaf(post, flood[0])
    assert post.services.store.log_size(post.gate.organisation_id) == size + 1
    manual_clock.advance(1)
    passed = post.send(sender, "bob", "at last")
    assert (passed.verdict.forwarded, _leaf(post, passed)["repeats"]) == (True, 99)
    again = [post.send(sender, "bob", "more") for _ in range(10)]
    assert {result.activity_id for result in again} == {flood[0].activity_id}
    manual_clock.advance(60.5)
    drained = [post.send(sender, "bob", f"{n}") for n in range(62)]
    assert _leaf(post, drained[0])["repeats"] == 10
    assert drained[-1].activity_id == drained[-2].activity_id != flood[0].activity_id


def test_a_flood_is_charged_once_a_minute_and_holds_no_step(
    post: MessageSender, agent: Callable[..., str], manual_clock: ManualClock
) -> None:
    ann = agent()
    for number in range(60):
        post.send(ann, "bob", f"{number}")
    for _ in range(40):
        post.send(ann, "bob", "more", conversation_id="c")
    assert post.services.store.usage_counters(ann, manual_clock.now).requests_hour == 61
    manual_clock.advance(1)
    assert _leaf(post, post.send(ann, "bob", "more", conversation_id="c"))["step_number"] == 1


def test_floods_of_very_many_pairs_take_bounded_memory(post: MessageSender, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qwed.kernel.a2a.refusal_coalescing.MAX_PAIRS", 3)
    few = replace(post.services, refusal_coalescer=RefusalCoalescer())
    too_many = MessageVerdict(False, EngineName.TRUST_BOUNDARY, "too many", over_rate=True)
    leaves = {}
    for number in range(10):
        first, second = (post.send(f"agent {number}", "bob", judge=too_many, services=few).log_index for _ in range(2))
        assert first == second
        leaves[number] = first
    again = {
        number: post.send(f"agent {number}", "bob", judge=too_many, services=few).log_index for number in (9, 8, 7, 0)
    }
    assert [again[number] == leaves[number] for number in (9, 8, 7, 0)] == [True, True, True, False]


@pytest.mark.parametrize("registered", [True, False])
@pytest.mark.parametrize("stop", ["block_agent", "suspend_all", "a loop"])
def test_whatever_refuses_a_message_unseen_a_flood_of_it_is_one_leaf_a_minute(
    post: MessageSender, agent: Callable[..., str], registered: bool, stop: str
) -> None:
    sender = agent() if registered else "crm"
    if stop != "a loop":
        getattr(post.gate, stop)(sender)
    sent = [post.send(sender, "bob", "again", conversation_id="c") for _ in range(100)]
    leaves = len({result.log_index for result in sent})
    assert leaves == 61
    reasons = {result.verdict.reason for result in sent[70:]}
    assert len(reasons) == 1
    if stop == "block_agent":
        assert (reasons, sent[-1].verdict.problem) == ({"the sender is blocked"}, None)
        assert _leaf(post, sent[-1])["error"] == BLOCKED
    assert not any(result.verdict.forwarded for result in sent[60:])


def test_a_flood_of_what_a_guard_refused_is_a_leaf_each(post: MessageSender, agent: Callable[..., str]) -> None:
    ann, wrong = agent(), MessageVerdict(False, EngineName.FINANCE_GUARD, "the total is wrong")
    unlimited = replace(post.services, settings=replace(post.services.settings, a2a_messages_per_minute=0))
    sent = [post.send(ann, "bob", judge=wrong, services=unlimited) for _ in range(100)]
    assert len({result.log_index for result in sent}) == 100


# After a restart


def test_lists_and_buckets_are_what_they_were_after_a_restart(tmp_path: Path, manual_clock: ManualClock) -> None:
    with open_gate(tmp_path, clock=manual_clock.clock()) as gate:
        post = MessageSender(gate, gate.services)
        gate.block_agent("eve")
        gate.trust_agent("ann")
        assert all(post.send("crm", "bob", f"{n}").verdict.forwarded for n in range(60))
    with open_gate(tmp_path, clock=manual_clock.clock()) as gate:
        post = MessageSender(gate, gate.services)
        assert gate.a2a_lists() == {"blocks": ["eve"], "pairs": [], "trusted": ["ann"]}
        assert post.send("crm", "bob").verdict.over_rate
        assert not post.send("EVE", "bob").verdict.forwarded
        manual_clock.advance(DAY)
        assert post.send("crm", "bob").verdict.forwarded
