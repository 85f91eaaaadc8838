"""`qwed hook`: permission lets the tool run, everything else stops it, and steps are counted."""

import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from qwed.cli import app
from qwed.cli.hook import HookOptions
from qwed_sdk.hook.input_formats import EVENTS, WINDSURF
from qwed_sdk.hook.setup_snippets import SNIPPETS
from tests.support.server import Server
from tests.unit.cli.hook_runner import COMMAND, HookRunner, claude_event, encode_input, hook_environment, run_process

WRITE = claude_event("Write", {"file_path": "/home/dev/app/a.py", "content": "x = 1\n"})
LIST = claude_event("Bash", {"command": "ls"})


def search(number: int) -> dict[str, Any]:
    return claude_event("WebSearch", {"query": f"question {number}"}, f"toolu_{number}")


def ids_of(hook: HookRunner) -> list[str]:
    return list(hook.stored()["calls"].values())


@pytest.fixture
def activities(api: httpx.Client, coder: dict[str, Any]) -> Any:
    def newest_first() -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = api.get(f"/agents/{coder['agent_id']}/activity").json()["activities"]
        return entries

    return newest_first


@pytest.fixture
def settle(api: httpx.Client) -> Any:
    def call(output: str, verb: str = "approve") -> None:
        match = re.search(r"apr_\w+", output)
        assert match is not None, output
        answer = api.post(f"/approvals/{match[0]}/{verb}", json={"reason": "seen"})
        assert answer.status_code == 200, answer.text

    return call


def test_a_yes_is_silent(hook: HookRunner) -> None:
    assert hook(LIST) == (0, "", "")


def test_a_no_tells_the_model_why(hook: HookRunner) -> None:
    output = hook(claude_event("Bash", {"command": "rm -rf /"}))
    assert output.code == 2
    assert output.err.startswith("qwed did not permit `Bash`: a critical risk action needs trust level 3")
    assert (output.err.count("\n"), output.out) == (1, "")


def test_the_session_is_the_conversation(hook: HookRunner, activities: Any) -> None:
    hook(LIST)
    assert activities()[0]["conversation_id"] == LIST["session_id"]


def test_a_step_that_was_refused_is_used_again(hook: HookRunner, activities: Any) -> None:
    assert hook(search(1)).code == 0
    assert hook(claude_event("Bash", {"command": "rm -rf /"})).code == 2
    assert hook(search(2)).code == 0
    assert [entry["step_number"] for entry in activities()] == [2, 2, 1]


def test_two_sessions_count_apart(hook: HookRunner, activities: Any) -> None:
    for session in ("a", "b"):
        assert hook(claude_event("Bash", {"command": "ls"}, session_id=session)).code == 0
    assert [entry["step_number"] for entry in activities()] == [1, 1]


def test_a_lost_count_is_found_again(hook: HookRunner, activities: Any) -> None:
    for number in range(3):
        assert hook(search(number)).code == 0
    hook.files[0].unlink()
    assert hook(search(4)).code == 0
    assert (hook.step, activities()[0]["step_number"]) == (4, 4)


def test_calls_at_once_take_turns(hook: HookRunner, activities: Any) -> None:
    env = hook_environment(hook.home, **{name: value for name, value in os.environ.items() if name.startswith("QWED_")})
    started = [
        subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=env, text=True) for _ in range(4)
    ]
    for number, process in enumerate(started):
        assert process.stdin is not None
        process.stdin.write(json.dumps(search(number)))
        process.stdin.close()
    for process in started:
        assert process.stderr is not None
        assert process.stderr.read() == ""
        process.stderr.close()
        assert process.wait() == 0
    assert sorted(entry["step_number"] for entry in activities()) == [1, 2, 3, 4]


def test_a_session_that_is_too_long_says_what_to_do(hook: HookRunner) -> None:
    assert hook(LIST).code == 0
    hook.files[0].write_text(json.dumps({**hook.stored(), "steps": dict.fromkeys(hook.stored()["steps"], 50)}))
    output = hook(LIST)
    assert output.code == 2
    assert "QWED-AGENT-LOOP-001" in output.err
    assert "/clear" in output.err
    assert "QWED_MAX_STEPS" in output.err


TURNS = {
    "prompt_id": claude_event("Bash", {"command": "ls"}),
    "turn_id": claude_event("Bash", {"command": "ls"}, model="gpt"),
    "generation_id": {"hook_event_name": "beforeShellExecution", "conversation_id": "c", "command": "ls"},
    "execution_id": {"agent_action_name": "pre_run_command", "trajectory_id": "t", "tool_info": {"command_line": "ls"}},
    "turn": {"tool": "Bash", "parameters": {"command": "ls"}, "conversation": "c"},
}
"""Member that names a turn, and a tool call with it, for each agent."""


@pytest.mark.parametrize("member", TURNS)
def test_with_every_prompt_the_count_begins_anew(hook: HookRunner, activities: Any, member: str) -> None:
    for turn in ("one", "two"):
        assert [hook({**TURNS[member], member: turn}).code for _ in range(3)] == [0, 0, 2]
    approved = [entry for entry in activities() if entry["decision"] == "APPROVED"]
    assert [entry["step_number"] for entry in approved] == [2, 1, 2, 1]
    assert len({entry["conversation_id"] for entry in approved}) == 2


def test_a_turn_that_goes_on_beside_another_keeps_its_count(hook: HookRunner, activities: Any) -> None:
    for number in range(4):
        assert hook(claude_event("WebSearch", {"query": f"{number}"}, prompt_id=f"turn {number % 2}")).code == 0
    assert [entry["step_number"] for entry in activities()] == [2, 2, 1, 1]


def test_a_turn_that_is_too_long_waits_for_the_person(hook: HookRunner) -> None:
    event = {**LIST, "prompt_id": "p1"}
    assert hook(event).code == 0
    hook.files[0].write_text(json.dumps({**hook.stored(), "steps": dict.fromkeys(hook.stored()["steps"], 50)}))
    output = hook(event)
    assert (output.code, "wait for the person's next prompt" in output.err) == (2, True)
    assert hook({**event, "prompt_id": "p2"}).code == 0


def test_what_a_person_approved_goes_through_in_a_later_turn(hook: HookRunner, settle: Any) -> None:
    event = {**WRITE, "prompt_id": "p1"}
    output = hook(event)
    assert output.code == 2
    settle(output.err)
    assert hook({**event, "prompt_id": "p2"}).code == 0


def test_without_a_session_every_call_is_a_conversation_of_its_own(hook: HookRunner, activities: Any) -> None:
    for _ in range(4):
        assert hook({"tool": "search_web", "parameters": {"query": "x"}}).code == 0
    entries = activities()
    assert (len({entry["conversation_id"] for entry in entries}), hook.files) == (4, [])


def test_a_repair_does_not_let_the_broken_call_through(hook: HookRunner) -> None:
    table = hook.home / "actions.json"
    table.write_text('{"compute": {"type": "calculate", "query": "sum"}}')
    output = hook(claude_event("compute", {"sum": "2 + 2 = 5"}), "--actions", str(table))
    assert output.code == 2
    assert "not in this form: it would be permitted as" in output.err
    assert hook(claude_event("compute", {"sum": "2 + 2 = 4"}), "--actions", str(table)).code == 0


# A person


def test_a_call_that_waits_for_a_person_does_not_run(hook: HookRunner) -> None:
    output = hook(WRITE)
    assert output.code == 2
    assert "a person must approve this high risk action: it writes" in output.err
    assert re.search(r"once a person has approved apr_\w+, make the same call again\n$", output.err)


def test_asking_again_asks_about_the_same_approval(hook: HookRunner) -> None:
    first, second = hook(WRITE), hook(WRITE)
    assert (second.code, second.err, hook.step) == (2, first.err, 1)


def test_an_approval_is_for_no_other_call_whatever_the_file_says(hook: HookRunner, settle: Any) -> None:
    output = hook(WRITE)
    settle(output.err)
    other = claude_event("Write", {"file_path": "/home/dev/app/b.py", "content": "x = 1\n"})
    assert hook(other).code == 2
    stored = hook.stored()
    approved, waits = stored["waiting"]
    stored["waiting"][waits] = stored["waiting"][approved]
    hook.files[0].write_text(json.dumps(stored))
    assert hook(other).code == 2
    assert hook(WRITE).code == 0


def test_an_approval_that_was_used_is_not_used_again_whatever_the_file_says(hook: HookRunner, settle: Any) -> None:
    settle(hook(WRITE).err)
    before = hook.files[0].read_text()
    assert hook(WRITE).code == 0
    assert hook({**WRITE, "hook_event_name": "PostToolUse"}).code == 0
    hook.files[0].write_text(before)
    assert hook(WRITE).code == 2


def test_once_it_is_approved_the_same_call_runs_once(hook: HookRunner, settle: Any) -> None:
    settle(hook(WRITE).err)
    assert hook(claude_event("Write", {"file_path": "/home/dev/app/b.py", "content": "x = 1\n"})).code == 2
    assert hook(WRITE).code == 0
    assert hook(WRITE).code == 2


def test_once_it_is_rejected_the_model_is_told(hook: HookRunner, settle: Any) -> None:
    settle(hook(WRITE).err, "reject")
    output = hook(WRITE)
    assert output.code == 2
    assert "a person rejected this: seen" in output.err


def test_an_approval_is_worth_nothing_to_an_agent_that_was_stopped(
    hook: HookRunner, settle: Any, api: httpx.Client, coder: dict[str, Any]
) -> None:
    settle(hook(WRITE).err)
    assert api.post(f"/agents/{coder['agent_id']}/suspend", json={"reason": "odd"}).status_code == 200
    output = hook(WRITE)
    assert output.code == 2
    assert "suspended" in output.err


def test_an_approval_that_was_revoked_is_none(
    hook: HookRunner, settle: Any, api: httpx.Client, activities: Any
) -> None:
    settle(hook(WRITE).err)
    (waiting,) = hook.stored()["waiting"].values()
    path = f"/agents/{activities()[0]['agent_id']}/actions/{waiting.split()[0]}"
    name = api.get(path).json()["attestation_id"]
    assert api.post(f"/attestation/{name}/revoke", json={"reason": "a mistake"}).status_code == 200
    output = hook(WRITE)
    assert (output.code, "revoked" in output.err) == (2, True)


@contextmanager
def approving(api: httpx.Client, agent_id: str) -> Iterator[None]:
    """Approve the first pending request of the agent, in a thread."""

    def approve() -> None:
        waiting: list[dict[str, Any]] = []
        while not waiting:
            listed = api.get("/approvals", params={"state": "pending"}).json()["approvals"]
            waiting = [approval for approval in listed if approval["agent_id"] == agent_id]
        api.post(f"/approvals/{waiting[0]['approval_id']}/approve", json={"reason": "seen"})

    person = threading.Thread(target=approve)
    person.start()
    yield
    person.join()


def test_a_person_who_answers_in_time_lets_it_run(hook: HookRunner, api: httpx.Client, coder: dict[str, Any]) -> None:
    with approving(api, coder["agent_id"]):
        assert hook(WRITE, "--wait", "30") == (0, "", "")
    assert ids_of(hook) != []


def test_a_person_who_does_not_answer_is_not_waited_for_longer(hook: HookRunner) -> None:
    output = hook(WRITE, "--wait", "0.2")
    assert (output.code, "apr_" in output.err) == (2, True)


def test_the_person_at_the_keyboard_decides_where_that_is_asked_for(hook: HookRunner) -> None:
    output = hook(WRITE, "--ask")
    assert (output.code, output.err) == (0, "")
    reply = json.loads(output.out)["hookSpecificOutput"]
    assert (reply["hookEventName"], reply["permissionDecision"]) == ("PreToolUse", "ask")
    assert "a person must approve this high risk action" in reply["permissionDecisionReason"]


def test_what_is_denied_is_no_question(hook: HookRunner) -> None:
    output = hook(claude_event("Bash", {"command": "rm -rf /"}), "--ask")
    assert (output.code, output.out) == (2, "")


@pytest.mark.parametrize(
    "event",
    [
        {**WRITE, "permission_mode": "bypassPermissions"},
        {**WRITE, "turn_id": "turn_1"},
        {"tool": "Write", "parameters": {"file_path": "/srv/a.py", "content": "x"}, "conversation": "c"},
    ],
    ids=["no person", "Codex", "any other"],
)
def test_where_nobody_can_be_asked_the_answer_is_no(hook: HookRunner, event: dict[str, Any]) -> None:
    output = hook(event, "--ask")
    assert (output.code, "a person must approve" in output.err) == (2, True)


def test_a_question_that_nobody_hears_is_no_yes(hook: HookRunner) -> None:
    env = hook_environment(hook.home, **{name: value for name, value in os.environ.items() if name.startswith("QWED_")})
    reader, writer = os.pipe()
    os.close(reader)
    try:
        assert run_process(WRITE, "--ask", env=env, stdout=writer).code == 2
    finally:
        os.close(writer)


# Afterwards


@pytest.mark.parametrize(("event", "success"), [("PostToolUse", True), ("PostToolUseFailure", False)])
def test_how_it_went_is_logged(
    hook: HookRunner, api: httpx.Client, coder: dict[str, Any], event: str, success: bool
) -> None:
    assert hook(LIST).code == 0
    (action_id,) = ids_of(hook)
    assert hook({**LIST, "hook_event_name": event}) == (0, "", "")
    action = api.get(f"/agents/{coder['agent_id']}/actions/{action_id}").json()
    assert (action["execution"]["success"], ids_of(hook)) == (success, [])


def test_an_agent_without_ids_for_its_calls_is_logged_too(hook: HookRunner, activities: Any) -> None:
    call = {"hook_event_name": "BeforeTool", "session_id": "g", "tool_name": "google_web_search"}
    event = {**call, "tool_input": {"query": "x"}}
    assert hook(event).code == 0
    assert hook({**event, "hook_event_name": "AfterTool", "tool_response": {"llmContent": "y"}}).code == 0
    assert activities()[0]["execution"]["success"] is True


@pytest.mark.parametrize("event", [{**LIST, "tool_use_id": "never seen"}, {**LIST, "session_id": "never seen"}])
def test_a_call_that_was_never_asked_about_is_not_logged(hook: HookRunner, event: dict[str, Any]) -> None:
    assert hook(LIST).code == 0
    assert hook({**event, "hook_event_name": "PostToolUse"}) == (0, "", "")


def test_what_has_run_is_never_stopped(hook: HookRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hook(LIST).code == 0
    monkeypatch.setenv("QWED_BASE_URL", "http://127.0.0.1:9")
    assert hook({**LIST, "hook_event_name": "PostToolUse"}).code == 0
    monkeypatch.delenv("QWED_AGENT_TOKEN")
    output = hook({**LIST, "hook_event_name": "PostToolUse"})
    assert (output.code, "QWED_AGENT_TOKEN is not set" in output.err) == (0, True)


# Agents that read more than the exit code


def test_cursor_is_told_in_its_own_words(hook: HookRunner) -> None:
    shell = {"hook_event_name": "beforeShellExecution", "conversation_id": "c", "cwd": "/home/dev/app"}
    assert json.loads(hook({**shell, "command": "ls"}).out) == {"permission": "allow"}
    output = hook({**shell, "command": "rm -rf /"})
    assert (output.code, json.loads(output.out)["permission"]) == (2, "deny")
    assert json.loads(output.out)["agent_message"] == output.err.strip()


def test_copilot_is_told_in_its_own_words(hook: HookRunner) -> None:
    call = {"sessionId": "c", "cwd": "/home/dev/app", "toolName": "bash"}
    assert hook({**call, "toolArgs": '{"command": "ls"}'}) == (0, "", "")
    output = hook({**call, "toolArgs": '{"command": "rm -rf /"}'})
    assert (output.code, json.loads(output.out)["permissionDecision"]) == (2, "deny")


def test_the_whole_answer_can_be_had(hook: HookRunner) -> None:
    yes, no = hook(LIST, "--json"), hook(claude_event("Bash", {"command": "rm -rf /"}), "--json")
    assert (yes.code, json.loads(yes.out)["answer"]["decision"]) == (0, "APPROVED")
    reply = json.loads(no.out)
    assert (no.code, reply["allowed"], reply["answer"]["decision"]) == (2, False, "DENIED")
    assert reply["reason"] == no.err.strip()


# Setting it up


def test_everything_in_place_is_one_sentence(hook: HookRunner, server: Server, coder: dict[str, Any]) -> None:
    output = hook("", "--check")
    assert output.code == 0
    assert output.out == (
        f"the hook uses {server.base_url} for `{coder['name']}` ({coder['agent_id']}), trust level 2\n"
    )


def test_what_is_not_in_place_is_one_sentence_too(
    hook: HookRunner, monkeypatch: pytest.MonkeyPatch, api: httpx.Client, coder: dict[str, Any]
) -> None:
    api.post(f"/agents/{coder['agent_id']}/suspend", json={"reason": "odd"})
    assert "suspended" in hook("", "--check").err
    monkeypatch.setenv("QWED_AGENT_TOKEN", "qwed_agent_wrong")
    assert hook("", "--check").code == 2
    monkeypatch.setenv("QWED_BASE_URL", "not an address")
    output = hook("", "--check")
    assert (output.code, output.out, output.err.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("missing", ["QWED_AGENT_ID", "QWED_AGENT_TOKEN"])
def test_without_an_agent_nothing_runs_not_even_with_the_key_of_the_organisation(
    hook: HookRunner, server: Server, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setenv("QWED_API_KEY", server.owner_key)
    monkeypatch.setenv(missing, " ")
    output = hook(LIST)
    assert output.code == 2
    assert f"{missing} is not set" in output.err


@pytest.mark.parametrize("agent", SNIPPETS)
def test_the_settings_of_every_agent_stop_its_tools_whatever_becomes_of_the_hook(hook: HookRunner, agent: str) -> None:
    output = hook("", "--print-settings", agent)
    assert output.code == 0
    events = json.loads(output.out)["hooks"]
    before = [event for event in events if event.lower().startswith(("pre", "before"))]
    assert len(before) >= 1
    assert all(event in EVENTS or event in WINDSURF for event in events)
    assert all("qwed hook || exit 2" in json.dumps(events[event]) for event in before)
    assert all("exit 2" not in json.dumps(events[event]) for event in events if event not in before)


def test_the_settings_give_the_hook_more_time_than_it_takes(hook: HookRunner) -> None:
    options = ("--wait", "300", "--timeout", "40", "--ask", "--actions", "my tools.json")
    output = hook("", "--print-settings", "claude-code", *options)
    (before,) = json.loads(output.out)["hooks"]["PreToolUse"][0]["hooks"]
    assert before["command"] == "qwed hook --timeout 40 --wait 300 --ask --actions 'my tools.json' || exit 2"
    assert (before["timeout"], before["onFailure"]) == (355, "block")


def test_a_command_that_is_not_there_stops_the_tool(hook: HookRunner) -> None:
    (before,) = json.loads(hook("", "--print-settings", "claude-code").out)["hooks"]["PreToolUse"][0]["hooks"]
    done = subprocess.run(
        ["/bin/sh", "-c", before["command"]], input=encode_input(LIST), env={"PATH": "/nowhere"}, capture_output=True
    )
    assert done.returncode == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("--timeout", "nan"),
        ("--timeout", "-1"),
        ("--wait", "inf"),
        ("--wait", "1e9"),
        ("--wait",),
        ("--print-settings", "emacs"),
        ("--unknown",),
        ("--time", "1"),
        ("file.json",),
    ],
)
def test_a_wrong_option_permits_nothing(hook: HookRunner, arguments: tuple[str, ...]) -> None:
    output = hook(LIST, *arguments)
    assert (output.code, output.out, output.err.count("\n")) == (2, "", 1)
    assert output.err.startswith("qwed: ")


def test_the_help_has_the_options_that_there_are(hook: HookRunner) -> None:
    output = hook("", "--help")
    assert output.code == 0
    assert set(re.findall(r"--[a-z-]+", output.out)) == {
        "--help",
        *(f"--{name.replace('_', '-')}" for name in HookOptions._fields),
    }


def test_the_quick_way_and_the_listed_one_have_the_same_options() -> None:
    (listed,) = [command for path, command in app.iter_commands() if path == "qwed hook"]
    defaults = {option.name: option.default for option in listed.params if option.name != "help"}
    assert defaults == HookOptions()._asdict()
