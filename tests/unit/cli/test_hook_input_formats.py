"""`qwed hook`: valid, malicious and large inputs of agents, and the actions made of them."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwed_sdk.errors import UsageError
from qwed_sdk.hook.actions import action_of
from qwed_sdk.hook.input_formats import COPILOT_BEFORE, EVENTS, GENERIC, WINDSURF, read_call
from qwed_sdk.hook.tool_call import ToolCall
from qwed_sdk.hook.tool_mapping import DEFAULT_MAPPINGS, parse_mappings
from tests.docs.pages import ROOT
from tests.support.case_tables import each, rows
from tests.support.server import Server
from tests.unit.cli.hook_runner import HookRunner, claude_event, encode_input

Row = dict[str, Any]
TABLE = rows("hook.jsonl")


def input_of(row: Row) -> bytes:
    """Return the input of a row; large inputs are built from their description."""
    if "hex" in row:
        return bytes.fromhex(row["hex"])
    if "around" not in row:
        return encode_input(row.get("text", row.get("input")))
    before, after = row["around"]
    if "depth" in row:
        return f"{before}{row['open'] * row['depth']}{row['close'] * row['depth']}{after}".encode()
    return f"{before}{row['fill'] * (row['bytes'] - len(before) - len(after))}{after}".encode()


@each("row", [row for row in TABLE if "action" in row], ids=lambda row: row["name"])
def test_what_is_verified_is_what_would_be_done(row: Row) -> None:
    assert action_of(read_call(input_of(row)), {}) == row["action"]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row["name"])
def test_every_input_ends_in_a_yes_or_a_no(row: Row, hook: HookRunner) -> None:
    output = hook(input_of(row))
    assert output.code == row["exit"]
    assert row.get("says", "") in output.err
    assert output.err.count("\n") == (0 if output.code == 0 else 1)


@each("mode", ["default", "plan", "acceptEdits", "dontAsk", "bypassPermissions", "auto", None], ids=str)
def test_a_person_is_asked_only_where_one_is_there(mode: str | None) -> None:
    call = read_call(encode_input(claude_event("Bash", {"command": "ls"}, permission_mode=mode)))
    assert call.can_ask is (mode in ("default", "plan", "acceptEdits"))


@each("member", ["turn_id", "model", "cursor_version", "timestamp"])
def test_an_agent_that_takes_a_question_for_a_yes_is_not_asked_one(member: str) -> None:
    assert not read_call(encode_input(claude_event("Bash", {"command": "ls"}, **{member: "x"}))).can_ask


AFTER = [
    ("Claude Code", claude_event("Bash", {}, hook_event_name="PostToolUse", tool_response={"stdout": ""}), True),
    ("Claude Code, failed", claude_event("Bash", {}, hook_event_name="PostToolUseFailure", error="no"), False),
    ("Gemini CLI", claude_event("x", {}, hook_event_name="AfterTool", tool_response={"llmContent": "a"}), True),
    ("Gemini CLI, failed", claude_event("x", {}, hook_event_name="AfterTool", tool_response={"error": "no"}), False),
    ("Copilot CLI", {"toolName": "bash", "toolArgs": {}, "toolResult": {"resultType": "success"}}, True),
    ("Copilot CLI, failed", {"toolName": "bash", "toolArgs": {}, "error": "no"}, False),
    ("Copilot CLI, refused", {"toolName": "bash", "toolArgs": {}, "toolResult": {"resultType": "denied"}}, False),
    (
        "Copilot, other words",
        claude_event("x", {}, hook_event_name="PostToolUse", tool_result={"result_type": "x"}),
        False,
    ),
    ("Cursor", {"hook_event_name": "afterShellExecution", "command": "ls", "output": ""}, True),
    ("Cursor, failed", claude_event("Shell", {}, hook_event_name="postToolUseFailure"), False),
    ("Windsurf", {"agent_action_name": "post_run_command", "tool_info": {"command_line": "ls"}}, True),
    ("any other", {"tool": "x", "success": True}, True),
    ("any other, failed", {"tool": "x", "success": False}, False),
]


@each(("name", "event", "success"), AFTER, ids=str)
def test_how_it_went_is_read_from_what_the_agent_says(name: str, event: Row, success: bool) -> None:
    assert read_call(encode_input(event)).success is success


def test_a_call_that_is_to_come_has_no_success_whatever_it_says() -> None:
    event = claude_event(
        "Bash", {"command": "ls"}, tool_response={"result_type": "success"}, tool_result={"error": "x"}
    )
    assert not read_call(encode_input(event)).is_over


@each(
    ("agent", "tool"), [("generic", "view"), ("gemini-cli", "Bash"), ("claude-code", "glob"), ("copilot-cli", "Read")]
)
def test_a_name_means_something_only_where_its_own_agent_says_it(agent: str, tool: str) -> None:
    arguments = {"path": "/srv/a", "command": "ls", "pattern": "*"}
    assert action_of(ToolCall(agent, tool, arguments), {})["type"] == "tool_call"


def test_every_agent_that_is_read_has_its_tools() -> None:
    formats = [*EVENTS.values(), *WINDSURF.values(), COPILOT_BEFORE, GENERIC]
    assert {input_format.agent for input_format in formats} == set(DEFAULT_MAPPINGS)


def test_the_page_names_every_tool_of_the_table() -> None:
    page = (ROOT / "docs" / "hook.md").read_text()
    assert [tool for rows in DEFAULT_MAPPINGS.values() for tool in rows if f"`{tool}`" not in page] == []


MEMBERS = sorted({member for row in TABLE for member in row.get("input", {})})
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from([*EVENTS, *WINDSURF]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(MEMBERS), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(MEMBERS), VALUES, max_size=8))
def test_whatever_comes_is_a_call_with_an_action_or_refused(event: Row) -> None:
    try:
        call = read_call(encode_input(event))
        action = action_of(call, {})
    except UsageError:
        return
    assert set(action) <= {"type", "tool", "query", "code", "target", "parameters"}
    assert isinstance(call.tool, str)


# Custom mappings


def test_a_row_of_a_file_makes_a_tool_an_action_of_an_engine() -> None:
    table = parse_mappings(b'{"mcp__db__run": {"type": "execute_sql", "query": "sql", "ignored": ["reason"]}}', "it")
    call = ToolCall("claude-code", "mcp__db__run", {"sql": "SELECT 1", "reason": "to see", "limit": 3})
    assert action_of(call, table) == {"type": "execute_sql", "query": "SELECT 1", "parameters": {"limit": 3}}
    assert action_of(ToolCall("claude-code", "Bash", {"command": "ls"}), table)["type"] == "shell_command"


def test_a_row_can_be_taken_out() -> None:
    table = parse_mappings(b'{"TodoWrite": null}', "it")
    assert action_of(ToolCall("claude-code", "TodoWrite", {}), table) == {"type": "tool_call", "tool": "TodoWrite"}


WRONG_ROWS = [
    (b"{", "is not valid JSON"),
    (b"[]", "is not a JSON object"),
    (b'{"x": 1}', "must be an object with a `type`"),
    (b'{"x": {"query": "sql"}}', "must be an object with a `type`"),
    (b'{"x": {"type": "execute_sql", "sql": "sql"}}', "has no member `sql`"),
    (b'{"x": {"type": "execute_sql", "query": 7}}', "must name an argument"),
    (b'{"x": {"type": "execute_sql", "query": [7]}}', "must name an argument"),
    (b'{"x": {"type": "tool_call", "tool": ["a"]}}', "must name an argument"),
    (b'{"x": {"type": "file_read", "here": "yes"}}', "must be true or false"),
    (b'{"x": null, "x": null}', "occurs twice"),
]


@each(("data", "says"), WRONG_ROWS, ids=str)
def test_a_table_that_is_wrong_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse_mappings(data, "it")


def test_a_hook_with_a_wrong_table_permits_nothing(hook: HookRunner) -> None:
    table = hook.home / "actions.json"
    table.write_text('{"search_web": {"type": 7}}')
    assert hook({"tool": "search_web"}, "--actions", str(table)).code == 2
    missing = hook({"tool": "search_web"}, "--actions", str(hook.home / "none.json"))
    assert (missing.code, "cannot be read" in missing.err) == (2, True)


def test_a_statement_goes_to_the_engine_that_reads_it(hook: HookRunner, server: Server) -> None:
    table = hook.home / "actions.json"
    table.write_text('{"mcp__db__run": {"type": "execute_sql", "query": "sql"}}')
    event = claude_event("mcp__db__run", {"sql": "SELECT id FROM orders"})
    assert hook(event, "--actions", str(table)).code == 0
    assert hook(claude_event("mcp__db__run", {"sql": "DROP TABLE orders"}), "--actions", str(table)).code == 2
