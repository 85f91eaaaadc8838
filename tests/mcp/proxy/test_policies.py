"""The example policies decide alike over HTTP, through `qwed-mcp proxy` and through `qwed hook`."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import httpx
import pytest

from tests.support import mcp_office
from tests.support.mcp_proxies import PROXY, session
from tests.support.server import Server
from tests.unit.cli.hook_runner import claude_event, hook_environment, run_process

EXAMPLES = Path(__file__).parents[3] / "examples" / "policies"
OFFICE = "office"
UPSTREAM = [sys.executable, mcp_office.__file__]
MAILS = 10


class Ruling(NamedTuple):
    """A decision, and the rule that its answer names."""

    decision: str
    policy: str | None
    rule: str | None


Door = Callable[[str, dict[str, Any]], Ruling]
"""Proposes a call of a tool of the office."""


def qualified(tool: str) -> str:
    return f"mcp__{OFFICE}__{tool}"


def _ruling(answer: dict[str, Any]) -> Ruling:
    """Return what an answer of the server says: a refusal names its rule in the details too."""
    named = answer.get("policy") or {}
    if answer["decision"] != "APPROVED":
        details = answer["error"].get("details") or {}
        assert (details.get("policy"), details.get("rule")) == (named.get("policy"), named.get("rule"))
    return Ruling(answer["decision"], named.get("policy"), named.get("rule"))


class Office:
    """Organisation with the tools of the office, and one agent for each door."""

    def __init__(self, owner: httpx.Client) -> None:
        self.owner = owner
        for group in ("finance", "engineering", "operations"):
            self._done(owner.post("/keys", json={"name": group, "role": "approver", "groups": [group]}))
        for tool, effect in (("refund", "SPEND"), ("deploy", "ADMIN")):
            row = {"risk_level": "high", "effect": effect}
            self._done(owner.put(f"/tools/{qualified(tool)}", json=row))

    def apply(self, name: str, changes: Mapping[str, str]) -> None:
        """Put an example in force for the tools of the server, which have qualified names."""
        text = (EXAMPLES / f"{name}.yaml").read_text()
        for before, after in changes.items():
            assert before in text
            text = text.replace(before, after)
        self._done(self.owner.put("/policies", json={"documents": [{"text": text}]}, headers={"If-Match": "*"}))

    def agent(self, name: str) -> dict[str, str]:
        permissions = {"allowed_tools": [qualified("*")]}
        body = {"name": name, "principal_id": "ops", "trust_level": 3, "permissions": permissions}
        agent: dict[str, str] = self._done(self.owner.post("/agents/register", json=body))
        return agent

    def recorded(self, agent_id: str) -> Ruling:
        """Return the newest decision about an agent."""
        newest = self._done(self.owner.get(f"/agents/{agent_id}/activity"))["activities"][0]
        named = newest.get("policy") or {}
        return Ruling(newest["decision"], named.get("policy"), named.get("rule"))

    @staticmethod
    def _done(response: httpx.Response) -> Any:
        assert response.is_success, response.text
        return response.json()


@pytest.fixture(scope="module")
def office(server: Server) -> Iterator[Office]:
    with httpx.Client(base_url=server.base_url, headers={"X-API-Key": server.owner_key}, timeout=60) as operator:
        key = operator.post("/organisations", json={"name": "office"}).json()["owner_key"]
    with httpx.Client(base_url=server.base_url, headers={"X-API-Key": key}, timeout=60) as owner:
        yield Office(owner)


@pytest.fixture(scope="module")
def doors(office: Office, server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Door]]:
    """One function for each door; each has an agent of its own."""
    home = tmp_path_factory.mktemp("office")
    command = [*PROXY, "--name", OFFICE, "--wait", "0", "--", *UPSTREAM]
    agent = office.agent("proxy")
    with session(command, home / "proxy", _environment(server, agent)) as connected:

        def proxy(tool: str, arguments: dict[str, Any]) -> Ruling:
            result = connected.call(tool, **arguments)
            recorded = office.recorded(agent["agent_id"])
            if result.is_error:
                meta = result.meta or {}
                assert recorded == tuple(meta.get(f"qwed/{name}") for name in Ruling._fields), result
            return recorded

        yield {"http": _http(office), "proxy": proxy, "hook": _hook(office, server, home)}


def _environment(server: Server, agent: dict[str, str]) -> dict[str, str]:
    return {
        "QWED_BASE_URL": server.base_url,
        "QWED_AGENT_ID": agent["agent_id"],
        "QWED_AGENT_TOKEN": agent["agent_token"],
    }


def _http(office: Office) -> Door:
    agent, steps = office.agent("http"), iter(range(1, 50))

    def decide(tool: str, arguments: dict[str, Any]) -> Ruling:
        context = {"conversation_id": f"c{next(steps)}", "step_number": 1}
        action = {"type": "tool_call", "tool": qualified(tool), "parameters": arguments}
        answer = office.owner.post(f"/agents/{agent['agent_id']}/verify", json={"action": action, "context": context})
        return _ruling(answer.json())

    return decide


def _hook(office: Office, server: Server, home: Path) -> Door:
    environment = hook_environment(home, **_environment(server, office.agent("hook")))

    def decide(tool: str, arguments: dict[str, Any]) -> Ruling:
        output = run_process(claude_event(qualified(tool), arguments), "--json", env=environment)
        answer = json.loads(output.out)["answer"]
        assert answer is not None, output
        return _ruling(answer)

    return decide


class Example(NamedTuple):
    """Calls of one example policy, with the expected decisions."""

    tool: str
    argument: str
    expected: dict[Any, tuple[str, str | None]]
    """Decision and rule by the value of the argument."""
    changes: Mapping[str, str] = MappingProxyType({})
    others: Mapping[str, Any] = MappingProxyType({})


def _named(tool: str, before: str) -> dict[str, str]:
    return {before: before.replace(tool, qualified(tool))}


_OPEN = {"in [0, 6]": "in [7]", "< 8 ": "< 0 ", ">= 18)": ">= 24)"}
_CLOSED = {"in [0, 6]": "in [0, 1, 2, 3, 4, 5, 6]"}
EXAMPLE_CALLS = {
    "refund-tiers": Example(
        "refund",
        "amount",
        {20: ("APPROVED", "small"), 100: ("PENDING", "medium"), 501: ("DENIED", "large")},
        _named("refund", "tools: [refund]"),
    ),
    "internal-mail": Example(
        "send_email",
        "to",
        {"ann@example.com": ("APPROVED", "colleagues"), "bob@example.org": ("PENDING", "outside")},
        others={"body": "the minutes"},
    ),
    "salaries": Example(
        "query",
        "sql",
        {"SELECT name FROM staff": ("APPROVED", None), "SELECT name FROM salaries": ("DENIED", "hr-alone")},
    ),
    "three-programs": Example(
        "run_command",
        "command",
        {"cat /srv/app/README.md": ("APPROVED", "inside"), "curl https://example.org": ("DENIED", "others")},
    ),
    "staging-and-production": Example(
        "deploy",
        "environment",
        {"staging": ("APPROVED", "staging"), "elsewhere": ("DENIED", "other")},
        _named("deploy", "tools: [deploy]"),
    ),
}


@pytest.mark.parametrize("name", EXAMPLE_CALLS)
def test_an_example_decides_alike_at_every_door(name: str, office: Office, doors: dict[str, Door]) -> None:
    example = EXAMPLE_CALLS[name]
    office.apply(name, example.changes)
    for value, (decision, rule) in example.expected.items():
        expected = Ruling(decision, rule and name, rule)
        found = {
            door: decide(example.tool, {example.argument: value, **example.others}) for door, decide in doors.items()
        }
        assert found == dict.fromkeys(doors, expected), value


@pytest.mark.parametrize(
    ("changes", "expected"),
    [(_OPEN, Ruling("APPROVED", None, None)), (_CLOSED, Ruling("PENDING", "business-hours", "after-hours"))],
    ids=["open", "closed"],
)
def test_business_hours_hold_at_every_door(
    changes: dict[str, str], expected: Ruling, office: Office, doors: dict[str, Door]
) -> None:
    # The clock of the server is the real one, so the hours are moved instead.
    office.apply("business-hours", changes)
    call = {"path": "notes/today.txt", "content": f"{expected.decision} by the clock"}
    assert {door: decide("write_file", call) for door, decide in doors.items()} == dict.fromkeys(doors, expected)


def test_ten_mails_an_hour_hold_at_every_door(office: Office, doors: dict[str, Door]) -> None:
    office.apply("mails-an-hour", {"send_email": qualified("send_email")})
    for door, decide in doors.items():
        mails = [{"to": "ann@example.com", "body": f"number {number}"} for number in range(MAILS + 1)]
        *sent, last = [decide("send_email", mail) for mail in mails]
        assert sent == [Ruling("APPROVED", None, None)] * MAILS, door
        assert last == Ruling("DENIED", "mails-an-hour", "agent-limit"), door


def test_a_tool_of_a_server_is_another_tool_than_the_plain_one(office: Office, doors: dict[str, Door]) -> None:
    office.apply("refund-tiers", {})
    found = [decide("refund", {"amount": 501}) for decide in doors.values()]
    assert [ruling.policy for ruling in found] == [None, None, None]
