"""Rules that count and add up calls: what they see, what counts, and that no place is given twice."""

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import qwed
from qwed.gate import Gate
from qwed.model.clock import DAY, HOUR
from tests.support.manual_clock import NOON, ManualClock
from tests.support.postgres_server import Databases

MAILS = """\
policy: mails
facts: 1
applies_to:
  tools: [send_email]
rules:
  - id: few
    when: usage.count("send_email", duration("1h")) < 3
    then: allow
  - id: many
    when: usage.count("send_email", duration("1h")) >= 3
    then: deny
    message: three mails an hour
"""
REFUNDS = """\
policy: refunds
facts: 1
applies_to:
  tools: [refund]
args: {amount: number}
rules:
  - id: below
    when: usage.sum("refund", "amount", duration("24h")) + args.amount <= 1
    then: allow
  - id: above
    when: usage.sum("refund", "amount", duration("24h")) + args.amount > 1
    then: ask
    overrides: trust
"""
ALL_MAILS = MAILS.replace("usage.count", "usage.org.count")
SHADOW = REFUNDS.replace("args:", "mode: shadow\nargs:")


class House(NamedTuple):
    """Organisation in process."""

    gate: Gate
    manual_clock: ManualClock

    def agent(self, name: str = "clerk") -> str:
        agent_id: str = self.gate.register_agent(name=name, principal_id="ops", trust_level=2).agent_id
        return agent_id

    def apply(self, *texts: str) -> None:
        self.gate.apply_policies({f"{number}.yaml": text for number, text in enumerate(texts)})

    def mail(self, agent_id: str, conversation: str, step: int = 1, **more: Any) -> Any:
        action = {"type": "send_email", "parameters": {"to": "user@example.com", "body": f"It is {conversation}"}}
        return self.gate.verify_action(agent_id, action, {"conversation_id": conversation, "step_number": step}, **more)

    def refund(self, agent_id: str, conversation: str, amount: Any) -> Any:
        action = {"type": "tool_call", "tool": "refund", "parameters": {"amount": amount}}
        return self.gate.verify_action(agent_id, action, {"conversation_id": conversation, "step_number": 1})


@pytest.fixture(params=["memory", "file", "postgres"])
def house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    manual_clock = ManualClock(NOON)
    settings: dict[str, Any] = {"clock": manual_clock.clock()}
    if request.param == "postgres":
        postgres: Databases = request.getfixturevalue("postgres")
        settings["database_url"] = postgres.database()
    opened = qwed.open(**settings) if request.param == "memory" else qwed.open(tmp_path / "data", **settings)
    with opened as gate:
        gate.put_tool("refund", risk_level="high", effect="SPEND")
        yield House(gate, manual_clock)


def _decisions(answers: list[Any]) -> list[str]:
    return [str(answer.decision) for answer in answers]


def test_a_rule_counts_the_calls_before_this_one(house: House) -> None:
    house.apply(MAILS)
    agent = house.agent()
    assert _decisions([house.mail(agent, f"c{number}") for number in range(5)]) == ["APPROVED"] * 3 + ["DENIED"] * 2
    house.manual_clock.now += HOUR
    assert house.mail(agent, "later").decision == "APPROVED", "denied calls counted nowhere"


def test_agents_count_each_for_themselves(house: House) -> None:
    house.apply(MAILS)
    one, other = house.agent(), house.agent("other")
    for number in range(3):
        house.mail(one, f"c{number}")
    assert house.mail(one, "more").decision == "DENIED"
    assert house.mail(other, "more").decision == "APPROVED"


def test_agents_count_together_for_the_organisation(house: House) -> None:
    house.apply(ALL_MAILS)
    one, other = house.agent(), house.agent("other")
    answers = [house.mail(agent, f"c{number}") for number in range(2) for agent in (one, other)]
    assert _decisions(answers) == ["APPROVED"] * 3 + ["DENIED"]


def test_a_sum_is_exact_and_does_not_contain_this_call(house: House) -> None:
    house.apply(REFUNDS)
    agent = house.agent()
    answers = [house.refund(agent, f"c{number}", 0.1) for number in range(11)]
    assert _decisions(answers) == ["APPROVED"] * 10 + ["PENDING"]


def test_a_sum_of_many_digits_is_rounded_where_a_rule_reads_it(house: House) -> None:
    house.apply(REFUNDS)
    agent = house.agent()
    amounts = [0.1 + 0.2, 1e-20, 0.7, 0.0, 0.1]
    answers = [house.refund(agent, f"c{number}", amount) for number, amount in enumerate(amounts)]
    assert _decisions(answers) == ["APPROVED"] * 4 + ["PENDING"]


def test_a_call_that_waits_holds_its_amount_until_it_is_resolved(house: House) -> None:
    house.apply(REFUNDS)
    agent = house.agent()
    waiting = house.refund(agent, "large", 1.5)
    assert waiting.decision == "PENDING"
    assert house.refund(agent, "small", 0.1).decision == "PENDING", "what waits counts"
    house.gate.reject(waiting.approval_id, reason="no")
    house.manual_clock.now += 2 * DAY
    assert house.refund(agent, "again", 0.1).decision == "APPROVED", "rejected and expired calls do not count"


def test_an_approved_call_counts_from_its_approval(house: House) -> None:
    house.apply(MAILS.replace("then: allow", "then: ask"))
    agent = house.agent()
    waiting = [house.mail(agent, f"c{number}") for number in range(3)]
    assert _decisions(waiting) == ["PENDING"] * 3
    house.manual_clock.now += HOUR / 2
    assert house.mail(agent, "too many").decision == "DENIED"
    approved = house.gate.approve(waiting[0].approval_id, reason="yes")
    assert approved.state == "approved", "it does not count against itself"
    house.gate.reject(waiting[1].approval_id, reason="no")
    assert house.mail(agent, "free again").decision == "PENDING"
    house.manual_clock.now += HOUR - 1
    assert house.mail(agent, "one approved, two waiting").decision == "DENIED"
    house.manual_clock.now += 1
    assert house.mail(agent, "the approved one is an hour old").decision == "PENDING"


@pytest.mark.parametrize("amount", [-1, "ten", None, 1e-30])
def test_an_amount_that_cannot_be_added_up_is_denied(house: House, amount: Any) -> None:
    # The rule itself does not read the amount of this call.
    house.apply(REFUNDS.replace("+ args.amount", "").replace("args: {amount: number}\n", ""))
    answer = house.refund(house.agent(), "c", amount)
    assert (answer.decision, answer.error["code"]) == ("DENIED", "QWED-AGENT-POLICY-002")
    assert "argument `amount`" in answer.error["message"]
    assert "is added up by" in answer.error["message"]


def test_a_policy_in_shadow_refuses_no_amount_and_sees_what_was_added(house: House) -> None:
    house.apply(SHADOW)
    agent = house.agent()
    plain = [house.refund(agent, f"c{number}", amount).decision for number, amount in enumerate([-1, 5, 1])]
    house.apply()
    assert plain == [house.refund(agent, f"d{number}", amount).decision for number, amount in enumerate([-1, 5, 1])]


def test_calls_before_the_first_rule_that_counts_them_do_not_count(house: House) -> None:
    house.apply(MAILS.replace("send_email", "refund"))
    agent = house.agent()
    for number in range(3):
        house.mail(agent, f"c{number}")
    house.apply(MAILS)
    assert house.mail(agent, "first").decision == "APPROVED"


def test_another_set_with_the_same_rule_goes_on_counting(house: House) -> None:
    house.apply(MAILS)
    agent = house.agent()
    for number in range(3):
        house.mail(agent, f"c{number}")
    house.apply(MAILS, REFUNDS)
    assert house.mail(agent, "more").decision == "DENIED"


def test_an_explanation_reads_the_usage_and_adds_nothing(house: House) -> None:
    house.apply(MAILS)
    agent = house.agent()
    for number in range(2):
        house.mail(agent, f"c{number}")
    action = {"type": "send_email", "parameters": {"to": "user@example.com", "body": "Hello"}}
    for _ in range(3):
        assert house.gate.explain_action(agent, action).policy["rule"] == "few"
    house.mail(agent, "third")
    assert house.gate.explain_action(agent, action).policy["rule"] == "many"


def test_a_repeated_request_is_counted_once(house: House) -> None:
    house.apply(MAILS)
    agent = house.agent()
    answers = [house.mail(agent, "c", idempotency_key="k") for _ in range(4)]
    assert len({answer.action_id for answer in answers}) == 1
    assert _decisions([house.mail(agent, f"d{number}") for number in range(3)]) == ["APPROVED", "APPROVED", "DENIED"]


def test_of_many_threads_exactly_as_many_pass_as_the_rule_allows(house: House) -> None:
    house.apply(MAILS.replace(" 3", " 10"))
    agent, decisions, lock = house.agent(), Counter[str](), threading.Lock()

    def send(name: int) -> None:
        for number in range(15):
            decision = str(house.mail(agent, f"c{name} {number}").decision)
            with lock:
                decisions[decision] += 1

    threads = [threading.Thread(target=send, args=(name,)) for name in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert decisions == {"APPROVED": 10, "DENIED": 290}


def test_rules_hold_for_a_listed_tool_in_every_spelling_that_its_list_permits(house: House) -> None:
    house.apply(
        "policy: pay\nfacts: 1\napplies_to: {tools: [pay, mcp__bank__sendMoney]}\nargs: {amount: number}\nrules:\n"
        "  - {id: large, when: args.amount > 500, then: deny}\n"
        '  - {id: often, when: \'usage.count("pay", duration("1h")) >= 2\', then: deny}\n'
    )
    fields: dict[str, Any] = {"principal_id": "ops", "type": "trusted"}
    permissions = {"allowed_tools": ["pay", "mcp__bank__*"]}
    agent = house.gate.register_agent(name="payer", permissions=permissions, **fields).agent_id

    def pay(tool: str, amount: int) -> Any:
        context = {"conversation_id": f"{tool} {amount}", "step_number": 1}
        return house.gate.verify_tool_call(agent, tool, {"amount": amount}, context)

    tools = ("pay", "Pay", "mcp__bank__sendMoney", "mcp__bank__SENDMONEY")
    assert [pay(tool, 900).policy["rule"] for tool in tools] == ["large"] * 4
    assert _decisions([pay("Pay", 1), pay("pay", 2), pay("PAY", 3)]) == ["APPROVED", "APPROVED", "DENIED"]
