"""Ruling 4.14: what a message of an agent is held against, what becomes of it, and what is kept of it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from qwed.gate import Gate, open_gate
from qwed.kernel.answer import Problem
from qwed.kernel.change import Actor
from qwed.kernel.messages.message import ERROR_HANDLER, TRUST_BOUNDARY, Carried, Message, Ruled, Sender
from qwed.kernel.people.webhook import Wish, set_webhook
from qwed.kernel.tools import A2A_MESSAGE
from qwed.kernel.wiring import close_services, open_services
from qwed.settings import Settings
from qwed.store.protocol import LogEntry
from qwed.store.sqlite import SqliteStore
from qwed.waiting import in_thread
from qwed.words.clock import DAY
from tests.support.clock import HandClock
from tests.support.post import FINE, TRACE, Post

SUSPENDED, LIMIT, REPLAY = "QWED-AGENT-003", "QWED-AGENT-LOOP-001", "QWED-AGENT-LOOP-002"
LOOP, RATE, BLOCKED = "QWED-AGENT-LOOP-004", "QWED-AGENT-BUDGET-002", "QWED-AGENT-005"
SECRET = "sk-proj-" + "a1B2" * 12


@pytest.fixture
def hands() -> HandClock:
    return HandClock()


@pytest.fixture
def post(tmp_path: Path, hands: HandClock) -> Iterator[Post]:
    opened = open_services(Settings(data_dir=tmp_path), in_memory=True, clock=hands.clock())
    yield Post(Gate(opened), opened.services)
    close_services(opened.services)


@pytest.fixture
def agent(post: Post) -> Callable[..., str]:
    """Registers one more agent and gives its id."""

    def register(**fields: Any) -> str:
        registered = post.gate.register_agent(**{"name": "a", "principal_id": "p", "trust_level": 3, **fields})
        return str(registered["agent_id"])

    return register


def _code(carried: Carried) -> Any:
    assert not carried.ruled.forwarded
    return carried.ruled.details.get("code")


def _leaf(post: Post, carried: Carried) -> dict[str, Any]:
    (entry,) = post.services.store.entries(post.gate.organisation_id, carried.log_index, 1)
    assert isinstance(entry, LogEntry)
    found: dict[str, Any] = msgspec.json.decode(entry.leaf)
    return found


def _newest(post: Post, agent_id: str) -> Any:
    return post.gate.get_agent_activity(agent_id, limit=1)[0]


# What is kept


def test_a_message_of_a_registered_agent_is_a_decision_with_its_engine_and_its_trace(
    post: Post, agent: Callable[..., str]
) -> None:
    ann, bob = agent(), agent()
    carried = post.send(ann, bob, {"total": 3}, kind="financial_transaction", judge=Ruled(True, "finance_guard", "ok"))
    kept = _leaf(post, carried)
    assert (carried.ruled.forwarded, kept["decision"], kept["engine"]) == (True, "APPROVED", "finance_guard")
    assert (kept["about"], kept["action_type"], kept["status"]) == (TRACE, "a2a_message", "VERIFIED")
    assert "risk_level" not in kept
    shown = _newest(post, ann)
    assert shown.activity_id == carried.activity_id
    assert shown.action["target"] == bob
    assert shown.action["parameters"] == {
        "payload": {"total": 3},
        "payload_type": "financial_transaction",
        "trace_id": TRACE,
    }


def test_a_message_of_nobody_is_a_leaf_of_the_organisation(post: Post) -> None:
    carried = post.send("crm", "billing", "hello", conversation_id="c1")
    kept = _leaf(post, carried)
    assert (kept["event"], kept["about"], kept["engine"]) == ("message_forwarded", TRACE, "passthrough")
    assert kept.keys() & {"agent_id", "decision", "error"} == set()
    (shown,) = post.gate.list_changes(limit=1)
    assert shown.change == {"about": TRACE, "sender": "crm"}
    assert (shown.action["target"], shown.conversation_id) == ("billing", "c1")
    refused = post.send("crm", "billing", judge=Ruled(False, "code_guard", "`eval` is dangerous", violation=True))
    assert (_leaf(post, refused)["event"], _leaf(post, refused)["error"]) == ("message_blocked", BLOCKED)


def test_a_message_that_nobody_looked_into_is_kept_without_what_it_says(post: Post, agent: Callable[..., str]) -> None:
    ann, bob = agent(), agent()
    post.gate.block_agent(bob)
    refused = post.send(ann, bob, "a great many words")
    assert refused.ruled == Ruled(False, TRUST_BOUNDARY, "the receiver is blocked")
    shown = _newest(post, ann)
    assert shown.action["parameters"] == {"payload_type": "general", "trace_id": TRACE}
    assert (shown.decision, shown.error["code"], shown.verification["status"]) == ("DENIED", BLOCKED, "BLOCKED")


@pytest.mark.parametrize("registered", [True, False])
@pytest.mark.parametrize("forwarded", [True, False])
def test_of_a_secret_in_a_payload_neither_it_nor_its_hash_is_kept(
    post: Post, agent: Callable[..., str], registered: bool, forwarded: bool
) -> None:
    sender = agent() if registered else "crm"
    judge = Ruled(forwarded, "code_guard", f"found {SECRET}", {"near": SECRET})
    carried = post.send(sender, "bob", {"code": f"key = '{SECRET}'", "api_key": "hunter2hunter2"}, judge=judge)
    house = post.gate.organisation_id
    (entry,) = post.services.store.entries(house, carried.log_index, 1)
    found = post.services.store.find_activity(sender if registered else house, carried.activity_id)
    assert found is not None
    text = entry.leaf + post.services.vault.content(found, carried.activity_id).text
    assert "a1B2a1B2" not in text
    assert "hunter2" not in text
    assert "[secret:" in text
    assert "action_hash" not in text
    assert '"sub"' not in text


def test_who_is_erased_takes_the_content_of_their_messages_along(post: Post, agent: Callable[..., str]) -> None:
    ann = agent(principal_id="Ann Smith")
    post.send(ann, "bob", "from ann")
    post.send("crm of Carl", "bob", "from carl")
    post.gate.erase("Ann Smith")
    assert (_newest(post, ann).content, _newest(post, ann).action) == ("erased", None)
    post.gate.erase("crm of Carl")
    (shown,) = [each for each in post.gate.list_changes() if each.event == "message_forwarded"]
    assert (shown.content, shown.action, shown.change) == ("erased", None, {"about": TRACE})


def test_the_report_of_an_agent_counts_its_messages(post: Post, agent: Callable[..., str]) -> None:
    ann = agent()
    post.send(ann, "bob")
    post.send(ann, "bob", judge=Ruled(False, "logic_guard", "they contradict one another"))
    report = msgspec.json.decode(post.gate.compliance_report(ann, format="json"))
    (row,) = report["decisions"]["by_action_type"]
    assert (row["name"], row["approved"], row["denied"]) == (A2A_MESSAGE, 1, 1)
    assert {row["name"] for row in report["decisions"]["by_engine"]} == {"passthrough", "logic_guard"}
    assert A2A_MESSAGE.encode() in post.gate.compliance_report(ann, format="csv")


@pytest.mark.parametrize("trace_id", ["", "a b", "Ann Smith", "x" * 65, "a\nb", "\u00e4"])
def test_what_is_no_id_does_not_get_into_the_log(post: Post, trace_id: str) -> None:
    size = post.services.store.log_size(post.gate.organisation_id)
    refused = post.tried("crm", "bob", trace_id=trace_id)
    assert isinstance(refused, Problem)
    assert refused.code == "QWED-REQ-001"
    assert post.services.store.log_size(post.gate.organisation_id) == size


# Suspension, budget, trust


def test_a_suspended_agent_sends_nothing_and_neither_does_anybody_once_all_are_stopped(
    post: Post, agent: Callable[..., str]
) -> None:
    ann = agent()
    post.gate.suspend_agent(ann, reason="odd")
    refused = post.send(ann, "bob", judge=FINE)
    assert (_code(refused), refused.ruled.engine) == (SUSPENDED, TRUST_BOUNDARY)
    assert post.send("crm", "bob").ruled.forwarded
    post.gate.suspend_all(reason="odd")
    assert _code(post.send("crm", "bob")) == SUSPENDED


@pytest.mark.parametrize("registered", [True, False])
@pytest.mark.parametrize("meanwhile", ["suspend_all", "block_agent", "block_pair"])
def test_what_is_stopped_or_blocked_while_it_is_judged_is_not_forwarded(
    post: Post, agent: Callable[..., str], registered: bool, meanwhile: str
) -> None:
    sender = agent() if registered else "crm"
    given = {"suspend_all": ["odd"], "block_agent": [sender], "block_pair": [sender, "bob"]}[meanwhile]

    async def judge(_message: Message, _sender: Sender) -> Ruled:
        getattr(post.gate, meanwhile)(*given)
        return FINE

    refused = post.send(sender, "bob", judge=judge)
    assert _code(refused) == (SUSPENDED if meanwhile == "suspend_all" else BLOCKED)
    assert _leaf(post, refused).get("event", "message_blocked") == "message_blocked"


def test_an_agent_that_is_changed_while_its_message_is_judged_sends_it_again(
    post: Post, agent: Callable[..., str]
) -> None:
    ann = agent()

    async def judge(_message: Message, _sender: Sender) -> Ruled:
        post.gate.reduce_trust(ann, to_level=1)
        return FINE

    assert _code(post.send(ann, "bob", judge=judge)) == "QWED-AGENT-005"
    assert post.send(ann, "bob").ruled.forwarded


def test_a_message_is_one_request_and_costs_nothing(post: Post, agent: Callable[..., str], hands: HandClock) -> None:
    ann = agent(budget={"max_requests_per_hour": 3, "max_daily_cost_usd": 0, "max_tool_calls_per_hour": 0})
    verdicts = [post.send(ann, "bob", f"{n}", judge=FINE) for n in range(4)]
    assert [each.ruled.forwarded for each in verdicts] == [True, True, True, False]
    refused = verdicts[-1].ruled
    assert (refused.details["code"], refused.engine) == (RATE, TRUST_BOUNDARY)
    assert refused.details["retry_after"] > 0
    assert _leaf(post, verdicts[-1])["decision"] == "BUDGET_EXCEEDED"
    spent = post.services.store.spent(ann, hands.now)
    assert (spent.requests_hour, spent.cost_day, spent.tool_calls_hour) == (3, 0, 0)


def test_a_message_that_a_guard_refused_is_a_request_too(
    post: Post, agent: Callable[..., str], hands: HandClock
) -> None:
    ann = agent()
    post.send(ann, "bob", judge=Ruled(False, "finance_guard", "the total is wrong"))
    assert post.services.store.spent(ann, hands.now).requests_hour == 1


@pytest.mark.parametrize(
    ("ruled", "trust"),
    [
        (Ruled(False, "code_guard", "dangerous", violation=True), 1),
        (Ruled(False, "finance_guard", "the total is wrong"), 3),
        (Ruled(False, ERROR_HANDLER, "the guard failed", failed=True), 3),
        (Ruled(False, TRUST_BOUNDARY, "blocked"), 3),
        (FINE, 3),
    ],
)
def test_what_breaks_a_rule_of_security_costs_trust_and_nothing_else_does(
    post: Post, agent: Callable[..., str], ruled: Ruled, trust: int
) -> None:
    ann = agent()
    post.send(ann, "bob", judge=ruled)
    assert post.gate.get_agent(ann).trust_level == trust


def test_a_judge_that_failed_says_nothing_about_the_agent(post: Post, agent: Callable[..., str]) -> None:
    ann = agent()
    for number in range(25):
        post.send(ann, "bob", f"{number}", judge=Ruled(False, ERROR_HANDLER, "the guard failed", failed=True))
    assert post.gate.get_agent(ann).trust_level == 3


@pytest.mark.parametrize(
    ("ruled", "told"),
    [
        (Ruled(False, "code_guard", "dangerous", violation=True), ["failed", "degraded"]),
        (Ruled(False, "finance_guard", "the total is wrong"), ["failed"]),
        (Ruled(False, ERROR_HANDLER, "the guard failed", failed=True), []),
        (FINE, []),
    ],
)
def test_the_webhook_is_told_of_messages_that_failed(
    post: Post, agent: Callable[..., str], hands: HandClock, ruled: Ruled, told: list[str]
) -> None:
    owner = Actor("gate", post.gate.organisation_id, "owner")
    wish = Wish("https://example.com/hook", ("pending", "failed", "degraded", "suspended"))
    in_thread(set_webhook(wish, owner, post.services), 30)
    ann = agent()
    carried = post.send(ann, "bob", "the words", judge=ruled)
    waiting = post.services.store.due_deliveries(hands.now, 10)
    # Of one moment: in any order.
    bodies = {each.event: each.body for each in waiting}
    assert sorted(bodies) == sorted(told)
    assert len(waiting) == len(told)
    assert not told or carried.activity_id in bodies["failed"]
    assert all("the words" not in each for each in bodies.values())


# Conversations


def test_steps_are_allotted_where_none_is_named(post: Post, agent: Callable[..., str]) -> None:
    ann = agent()
    steps = [_leaf(post, post.send(ann, "bob", f"{n}", conversation_id="c"))["step_number"] for n in range(3)]
    assert steps == [1, 2, 3]
    assert _leaf(post, post.send(ann, "bob", "seven", conversation_id="c", step_number=7))["step_number"] == 7
    assert _code(post.send(ann, "bob", "six", conversation_id="c", step_number=6)) == REPLAY
    assert _leaf(post, post.send(ann, "bob", "next", conversation_id="c"))["step_number"] == 8


def test_two_messages_of_one_conversation_that_overtake_one_another_are_both_forwarded(
    post: Post, agent: Callable[..., str]
) -> None:
    ann = agent()

    async def judge(_message: Message, _sender: Sender) -> Ruled:
        assert post.send(ann, "bob", "inner", conversation_id="c").ruled.forwarded
        return FINE

    assert post.send(ann, "bob", "outer", conversation_id="c", judge=judge).ruled.forwarded
    shown = post.gate.get_agent_activity(ann, limit=2)
    assert [each.step_number for each in shown] == [1, 2]


def test_without_a_conversation_nothing_is_a_loop(post: Post, agent: Callable[..., str]) -> None:
    ann = agent()
    assert all(post.send(ann, "bob", "again").ruled.forwarded for _ in range(6))


def test_without_a_conversation_none_is_remembered(post: Post, agent: Callable[..., str]) -> None:
    ann, store = agent(), post.services.store
    post.send(ann, "bob", conversation_id="c")
    for number in range(5):
        post.send(ann, "bob", f"{number}")
    assert isinstance(store, SqliteStore)
    assert len(store._live._conversations) == 1
    assert store._one("SELECT count(*) FROM conversations", ()) == (1,)


def test_the_same_message_on_an_unchanged_answer_is_refused_the_third_time(
    post: Post, agent: Callable[..., str]
) -> None:
    ann, bob = agent(), agent()
    post.send(bob, ann, "I do not know", conversation_id="c")
    spellings = ["Are we there?", "are we THERE?", " are we\nthere ?"]
    asked = [post.send(ann, bob, text, conversation_id="c") for text in spellings]
    assert [each.ruled.forwarded for each in asked] == [True, True, False]
    assert _code(asked[-1]) == LOOP
    assert "the same message on an unchanged answer" in asked[-1].ruled.reason
    post.send(bob, ann, "i do not KNOW", conversation_id="c")
    assert _code(post.send(ann, bob, spellings[0], conversation_id="c")) == LOOP
    post.send(bob, ann, "Yes, we are", conversation_id="c")
    assert post.send(ann, bob, spellings[0], conversation_id="c").ruled.forwarded


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
def test_what_nobody_sees_makes_no_other_message(post: Post, agent: Callable[..., str], spelt: str) -> None:
    ann, bob = agent(), agent()
    said = [("go on", bob), (spelt, bob.upper()), (spelt, f"{bob} "), ("go on", bob)]
    asked = [post.send(ann, receiver, text, conversation_id="c").ruled.forwarded for text, receiver in said]
    assert asked == [True, True, False, False]
    post.send(bob, ann, "I am going", conversation_id="c")
    assert post.send(ann, bob.upper(), spelt, conversation_id="c").ruled.forwarded


@pytest.mark.parametrize("other", ["go no", "go on!", "go\\non", "go \\u0000on", "gone", "go\u0300 on"])
def test_what_can_be_seen_makes_another_message(post: Post, agent: Callable[..., str], other: str) -> None:
    ann, bob = agent(), agent()
    asked = [post.send(ann, bob, text, conversation_id="c") for text in ("go on", "go on", other)]
    assert all(each.ruled.forwarded for each in asked)


def test_whoever_is_told_something_new_each_time_may_go_on_asking(post: Post, agent: Callable[..., str]) -> None:
    ann, bob = agent(), agent()
    for number in range(12):
        assert post.send(ann, bob, "and now?", conversation_id="c").ruled.forwarded
        assert post.send(bob, ann, f"{number} done", conversation_id="c").ruled.forwarded


def test_a_ping_pong_without_progress_comes_to_its_end(post: Post, agent: Callable[..., str]) -> None:
    ann, bob = agent(), agent()
    seen = []
    for _ in range(10):
        seen.append(post.send(ann, bob, "ping", conversation_id="c"))
        seen.append(post.send(bob, ann, "pong", conversation_id="c"))
    forwarded = [each.ruled.forwarded for each in seen]
    assert forwarded == [True] * 5 + [False] * 15
    assert {_code(each) for each in seen[5:]} == {LOOP}


def test_of_a_receiver_that_is_not_registered_no_answer_is_known(post: Post, agent: Callable[..., str]) -> None:
    ann = agent()
    sent = [post.send(ann, "far away", "hello?", conversation_id="c").ruled.forwarded for _ in range(3)]
    assert sent == [True, True, False]
    assert post.send(ann, "another", "hello?", conversation_id="c").ruled.forwarded


def test_a_conversation_has_as_many_steps_as_any(post: Post, agent: Callable[..., str]) -> None:
    ann = agent()
    sent = [post.send(ann, "bob", f"{n}", conversation_id="c", judge=FINE) for n in range(51)]
    assert [each.ruled.forwarded for each in sent] == [True] * 50 + [False]
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
    post: Post, agent: Callable[..., str], place: dict[str, Any], code: str
) -> None:
    assert _code(post.send(agent(), "bob", **place)) == code


# Floods


@pytest.mark.parametrize("registered", [True, False])
def test_a_flood_is_one_leaf_a_minute_and_the_next_one_tells_how_many_there_were(
    post: Post, agent: Callable[..., str], hands: HandClock, registered: bool
) -> None:
    sender = agent() if registered else "crm"
    assert all(post.send(sender, "bob", f"{n}").ruled.forwarded for n in range(60))
    size = post.services.store.log_size(post.gate.organisation_id)
    flood = [post.send(sender, "bob", "more") for _ in range(100)]
    assert {(each.activity_id, each.log_index) for each in flood} == {(flood[0].activity_id, size)}
    assert not any(each.ruled.forwarded for each in flood)
    assert _leaf(post, flood[0])["error"] == "QWED-SYS-001"
    assert "repeats" not in _leaf(post, flood[0])
    assert post.services.store.log_size(post.gate.organisation_id) == size + 1
    hands.turn(1)
    passed = post.send(sender, "bob", "at last")
    assert (passed.ruled.forwarded, _leaf(post, passed)["repeats"]) == (True, 99)
    again = [post.send(sender, "bob", "more") for _ in range(10)]
    assert {each.activity_id for each in again} == {flood[0].activity_id}
    hands.turn(60.5)
    drained = [post.send(sender, "bob", f"{n}") for n in range(62)]
    assert _leaf(post, drained[0])["repeats"] == 10
    assert drained[-1].activity_id == drained[-2].activity_id != flood[0].activity_id


def test_a_flood_is_charged_once_a_minute_and_holds_no_step(
    post: Post, agent: Callable[..., str], hands: HandClock
) -> None:
    ann = agent()
    for number in range(60):
        post.send(ann, "bob", f"{number}")
    for _ in range(40):
        post.send(ann, "bob", "more", conversation_id="c")
    assert post.services.store.spent(ann, hands.now).requests_hour == 61
    hands.turn(1)
    assert _leaf(post, post.send(ann, "bob", "more", conversation_id="c"))["step_number"] == 1


def test_floods_of_very_many_pairs_take_bounded_memory(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qwed.kernel.messages.floods.REMEMBERED", 3)
    for number in range(10):
        for _ in range(2):
            post.send(f"agent {number}", "bob", judge=Ruled(False, TRUST_BOUNDARY, "too many", flood=True))
    assert (len(post.services.floods._told), len(post.services.floods._unsaid)) == (3, 3)


@pytest.mark.parametrize("registered", [True, False])
@pytest.mark.parametrize("stop", ["block_agent", "suspend_all", "a loop"])
def test_whatever_refuses_a_message_unseen_a_flood_of_it_is_one_leaf_a_minute(
    post: Post, agent: Callable[..., str], registered: bool, stop: str
) -> None:
    sender = agent() if registered else "crm"
    if stop != "a loop":
        getattr(post.gate, stop)(sender)
    sent = [post.send(sender, "bob", "again", conversation_id="c") for _ in range(100)]
    leaves = len({each.log_index for each in sent})
    assert leaves == 61
    reasons = {each.ruled.reason for each in sent[70:]}
    assert len(reasons) == 1
    if stop == "block_agent":
        assert (reasons, sent[-1].ruled.wait) == ({"the sender is blocked"}, 0.0)
        assert _leaf(post, sent[-1])["error"] == BLOCKED
    assert not any(each.ruled.forwarded for each in sent[60:])


def test_a_flood_of_what_a_guard_refused_is_a_leaf_each(post: Post, agent: Callable[..., str]) -> None:
    ann, wrong = agent(), Ruled(False, "finance_guard", "the total is wrong")
    sent = [post.send(ann, "bob", judge=wrong) for _ in range(100)]
    assert len({each.log_index for each in sent}) == 100


# After a restart


def test_lists_and_buckets_are_what_they_were_after_a_restart(tmp_path: Path, hands: HandClock) -> None:
    with open_gate(tmp_path, clock=hands.clock()) as gate:
        post = Post(gate, gate.services)
        gate.block_agent("eve")
        gate.trust_agent("ann")
        assert all(post.send("crm", "bob", f"{n}").ruled.forwarded for n in range(60))
    with open_gate(tmp_path, clock=hands.clock()) as gate:
        post = Post(gate, gate.services)
        assert gate.a2a_lists() == {"blocks": ["eve"], "pairs": [], "trusted": ["ann"]}
        assert post.send("crm", "bob").ruled.flood
        assert not post.send("EVE", "bob").ruled.forwarded
        hands.turn(DAY)
        assert post.send("crm", "bob").ruled.forwarded
