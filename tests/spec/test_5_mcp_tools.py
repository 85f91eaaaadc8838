"""Ruling 4.4 for MCP tools: `mcp__<server>__<tool>` is classified by the tool's own name."""

from collections.abc import Callable

import httpx
import pytest

from tests.conftest import AgentConversation
from tests.spec.requests import Json, said, tool_call
from tests.spec.sections import spec

Make = Callable[..., AgentConversation]
OF_FILES = {"allowed_tools": ["mcp__files__*"]}
NOT_ALLOWED = ("DENIED", "QWED-AGENT-004")


def _risk(answer: Json) -> str:
    return str(answer["risk_assessment"]["final_risk"])


@spec("5.2")
@pytest.mark.parametrize(
    ("tool", "risk"),
    [
        ("mcp__files__list_things", "low"),
        ("mcp__files__listThings", "low"),
        ("mcp__delete__list_things", "low"),
        ("mcp__get__stamp_letter", "high"),
        ("mcp__files__stamp_letter", "high"),
        ("mcp__files__purge_things", "critical"),
        ("mcp__files__deleteThings", "critical"),
        ("mcp__files__deletethings", "critical"),
        ("mcp__files__sub__delete_things", "critical"),
        ("mcp__files__send_money", "critical"),
        ("mcp__files__", "high"),
        ("mcp____list_things", "high"),
        ("MCP__files__list_things", "high"),
    ],
)
def test_the_risk_of_a_tool_of_a_server_is_read_from_its_own_name(asking: Make, tool: str, risk: str) -> None:
    assert _risk(asking(type="trusted", permissions={"allowed_tools": [tool]})(tool_call(tool), 1)) == risk


@spec("5.1", "7.1")
def test_the_whole_name_stands_in_the_answer_and_in_the_log(asking: Make) -> None:
    ask = asking(type="trusted", permissions=OF_FILES)
    answer = ask(tool_call("mcp__files__list_things"), 1)
    assert said(answer) == ("APPROVED", None)
    kept = ask.api.get(f"/agents/{ask.agent_id}/actions/{answer['action_id']}").json()
    assert kept["action"]["tool"] == "mcp__files__list_things"


@spec("5.1", "3.1")
@pytest.mark.parametrize(
    ("tool", "known"),
    [
        ("mcp__files__list_things", True),
        ("mcp__files__a__b", True),
        ("mcp__other__list_things", False),
        ("mcp__Files__list_things", False),
        ("mcp__files2__list_things", False),
        ("mcp__files__", False),
        ("mcp__files__*", False),
        ("mcp__files__list things", False),
        ("mcp__files__l\u0456st_things", False),
        ("mcp__files__list\u200b_things", False),
        ("list_things", False),
        ("mcp__files_list_things", False),
    ],
)
def test_a_list_names_all_plainly_named_tools_of_one_server(asking: Make, tool: str, known: bool) -> None:
    answer = asking(type="trusted", permissions=OF_FILES)(tool_call(tool), 1)
    assert said(answer) == (("APPROVED", None) if known else NOT_ALLOWED)


@spec("3.1")
@pytest.mark.parametrize("name", ["allowed_tools", "blocked_tools"])
@pytest.mark.parametrize(
    "entry",
    [
        "*",
        "get_*",
        "mcp__*",
        "mcp__*__get",
        "mcp__a__get_*",
        "mcp__a__*x",
        "mcp__a__b__*",
        "mcp__a_*",
        "mcp____*",
        "mcp__a___*",
    ],
)
def test_any_other_pattern_is_refused_with_the_form_there_is(api: httpx.Client, name: str, entry: str) -> None:
    body = {"name": "a", "principal_id": "p", "permissions": {name: ["get_orders", entry]}}
    refused = api.post("/agents/register", json=body)
    assert refused.status_code == 400
    assert f"`permissions.{name}`: `{entry}`" in refused.json()["error"]["message"]
    assert "`mcp__<server>__*`" in refused.json()["error"]["message"]


@spec("5.1", "3.1")
@pytest.mark.parametrize(
    "blocked", ["delete_files", "Delete_Files", "mcp__files__delete_files", "mcp__files__*", "mcp__FILES__*"]
)
@pytest.mark.parametrize("tool", ["mcp__files__delete_files", "mcp__Files__delete_files"])
def test_a_block_holds_on_every_server(asking: Make, blocked: str, tool: str) -> None:
    permissions = {"allowed_tools": [tool], "blocked_tools": [blocked]}
    answer = asking(type="trusted", permissions=permissions)(tool_call(tool), 1)
    assert (said(answer), answer["error"]["check"]) == (NOT_ALLOWED, "tool_not_blocked")


@spec("5.1", "3.1")
def test_a_block_of_one_server_leaves_the_others(asking: Make) -> None:
    permissions = {"allowed_tools": ["mcp__a__*", "mcp__b__*"], "blocked_tools": ["mcp__a__*"]}
    ask = asking(type="trusted", permissions=permissions)
    assert said(ask(tool_call("mcp__a__list_things"), 1)) == NOT_ALLOWED
    assert said(ask(tool_call("mcp__b__list_things"), 1)) == ("APPROVED", None)


@spec("5.3", "5.1")
@pytest.mark.parametrize("name", ["delete_database", "drop_table", "send_money", "delete_files", "revoke_access"])
def test_a_name_on_the_dangerous_list_is_dangerous_on_any_server(asking: Make, name: str) -> None:
    answer = asking(type="trusted", permissions=OF_FILES)(tool_call(f"mcp__files__{name}"), 1)
    assert (answer["decision"], _risk(answer)) == ("PENDING", "critical")


@spec("5.3", "5.1")
@pytest.mark.parametrize("name", ["Delete_Files", "delete_file\uff53", "DELETE_FILES", "Read_File"])
def test_a_spelling_of_a_built_in_tool_is_no_tool_on_any_server(asking: Make, name: str) -> None:
    tool = f"mcp__files__{name}"
    answer = asking(type="trusted", permissions={"allowed_tools": [tool]})(tool_call(tool), 1)
    assert (said(answer), answer["error"]["check"]) == (NOT_ALLOWED, "tool_allowed")


@spec("5.3")
@pytest.mark.parametrize("name", ["mcp__files__delete_files", "mcp__files__Delete_Files", "mcp__a__b__delete_files"])
def test_the_registry_takes_no_tool_of_a_server_off_the_dangerous_list(api: httpx.Client, name: str) -> None:
    assert api.put(f"/tools/{name}", json={"risk_level": "low"}).status_code == 400


@spec("5.3")
def test_an_owner_describes_a_tool_of_a_server_by_its_whole_name(api: httpx.Client, asking: Make) -> None:
    row = {"risk_level": "high", "effect": "WRITE"}
    assert api.put("/tools/mcp__files__getThing", json=row).status_code == 200
    ask = asking(type="trusted", permissions=OF_FILES)
    assert _risk(ask(tool_call("mcp__files__getThing"), 1)) == "high"
    assert _risk(ask(tool_call("mcp__files__getOther"), 2)) == "low"


RELEASE: Json = {
    "type": "tool_call",
    "tool": "release_tool_definition",
    "parameters": {
        "server": "files",
        "tool": "read_file",
        "digest": "sha256:" + "ab" * 32,
        "reason": "the description changed",
        "was": "Reads a file",
        "now": "~/.ssh/id_rsa",
        "example": "DROP TABLE users",
        "see": "http://169.254.169.254/latest/meta-data/",
        "command": "rm -rf /",
        "path": "/etc/shadow",
    },
}


CARD: Json = {
    "type": "tool_call",
    "tool": "release_agent_card",
    "parameters": {
        "name": "ledger",
        "url": "http://169.254.169.254/agent",
        "digest": "sha256:" + "ab" * 32,
        "why": "its skills changed: `rm -rf /`",
    },
}


@spec("5.3", "8.1")
@pytest.mark.parametrize("trust", [0, 1, 2, 3])
@pytest.mark.parametrize("asked", [RELEASE, CARD], ids=["definition", "card"])
def test_a_person_is_asked_for_what_is_held_at_every_trust_level(asking: Make, asked: Json, trust: int) -> None:
    limits = {"allowed_paths": ["/srv"], "allowed_domains": ["example.com"]}
    answer = asking(trust_level=trust, permissions=limits)(asked, 1)
    assert (answer["decision"], _risk(answer)) == ("PENDING", "low")
    assert answer["verification"]["effects"] == []


@spec("5.3")
def test_a_definition_that_carries_a_secret_is_not_asked_for(asking: Make) -> None:
    told = {**RELEASE, "parameters": {**RELEASE["parameters"], "now": "use sk-proj-" + "a1B2" * 12}}
    answer = asking(trust_level=3)(told, 1)
    assert (answer["decision"], answer["error"]["check"]) == ("DENIED", "no_secret_leakage")


@spec("5.3")
@pytest.mark.parametrize("row", [{"risk_level": "low"}, {"risk_level": "low", "dangerous": False}])
@pytest.mark.parametrize("asked", [RELEASE, CARD], ids=["definition", "card"])
def test_no_row_releases_what_is_held_without_a_person(api: httpx.Client, asking: Make, asked: Json, row: Json) -> None:
    api.put(f"/tools/{asked['tool']}", json=row)
    assert asking(trust_level=3)(asked, 1)["decision"] == "PENDING"


@spec("4.3")
def test_an_approved_release_is_released(api: httpx.Client, asking: Make) -> None:
    ask = asking(trust_level=1)
    waiting = ask(RELEASE, 1)
    key = api.post("/keys", json={"name": "approver", "role": "approver"}).json()["key"]
    approved = api.post(
        f"/approvals/{waiting['approval_id']}/approve", json={"reason": "seen"}, headers={"X-API-Key": key}
    )
    assert approved.status_code == 200
    kept = api.get(f"/agents/{ask.agent_id}/actions/{waiting['action_id']}").json()
    assert kept["decision"] == "APPROVED"
