"""`qwed hook`: a yes lets the tool run, everything else stops it, and the steps of a session are counted."""

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
from qwed.cli.hook import Options
from qwed_sdk.hook.forms import EVENTS, WINDSURF
from qwed_sdk.hook.snippets import SNIPPETS
from tests.support.server import Server
from tests.unit.cli.hooking import COMMAND, Hook, as_bytes, claude, environment, run

WRITE = claude("Write", {"file_path": "/home/dev/app/a.py", "content": "x = 1\n"})
LIST = claude("Bash", {"command": "ls"})


def search(number: int) -> dict[str, Any]:
    return claude("WebSearch", {"query": f"question {number}"}, f"toolu_{number}")


def ids_of(hook: Hook) -> list[str]:
    return list(hook.kept()["calls"].values())


@pytest.fixture
def activities(api: httpx.Client, coder: dict[str, Any]) -> Any:
    def newest_first() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = api.get(f"/agents/{coder['agent_id']}/activity").json()["activities"]
        return found

    return newest_first


@pytest.fixture
def settle(api: httpx.Client) -> Any:
    def call(said: str, verb: str = "approve") -> None:
        found = re.search(r"apr_\w+", said)
        assert found is not None, said
        answer = api.post(f"/approvals/{found[0]}/{verb}", json={"reason": "seen"})
        assert answer.status_code == 200, answer.text

    return call


def test_a_yes_is_silent(hook: Hook) -> None:
    assert hook(LIST) == (0, "", "")


def test_a_no_tells_the_model_why(hook: Hook) -> None:
    said = hook(claude("Bash", {"command": "rm -rf /"}))
    assert said.code == 2
    assert said.err.startswith("qwed did not permit `Bash`: a critical risk action needs trust level 3")
    assert (said.err.count("\n"), said.out) == (1, "")


def test_the_session_is_the_conversation(hook: Hook, activities: Any) -> None:
    hook(LIST)
    assert activities()[0]["conversation_id"] == LIST["session_id"]


def test_a_step_that_was_refused_is_used_again(hook: Hook, activities: Any) -> None:
    assert hook(search(1)).code == 0
    assert hook(claude("Bash", {"command": "rm -rf /"})).code == 2
    assert hook(search(2)).code == 0
    assert [entry["step_number"] for entry in activities()] == [2, 2, 1]


def test_two_sessions_count_apart(hook: Hook, activities: Any) -> None:
    for session in ("a", "b"):
        assert hook(claude("Bash", {"command": "ls"}, session_id=session)).code == 0
    assert [entry["step_number"] for entry in activities()] == [1, 1]


def test_a_lost_count_is_found_again(hook: Hook, activities: Any) -> None:
    for number in range(3):
        assert hook(search(number)).code == 0
    hook.files[0].unlink()
    assert hook(search(4)).code == 0
    assert (hook.step, activities()[0]["step_number"]) == (4, 4)


def test_calls_at_once_take_turns(hook: Hook, activities: Any) -> None:
    env = environment(hook.home, **{name: value for name, value in os.environ.items() if name.startswith("QWED_")})
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


def test_a_session_that_is_too_long_says_what_to_do(hook: Hook) -> None:
    assert hook(LIST).code == 0
    hook.files[0].write_text(json.dumps({**hook.kept(), "steps": dict.fromkeys(hook.kept()["steps"], 50)}))
    said = hook(LIST)
    assert said.code == 2
    assert "QWED-AGENT-LOOP-001" in said.err
    assert "/clear" in said.err
    assert "QWED_MAX_STEPS" in said.err


TURNS = {
    "prompt_id": claude("Bash", {"command": "ls"}),
    "turn_id": claude("Bash", {"command": "ls"}, model="gpt"),
    "generation_id": {"hook_event_name": "beforeShellExecution", "conversation_id": "c", "command": "ls"},
    "execution_id": {"agent_action_name": "pre_run_command", "trajectory_id": "t", "tool_info": {"command_line": "ls"}},
    "turn": {"tool": "Bash", "parameters": {"command": "ls"}, "conversation": "c"},
}
"""What each agent calls a turn, and a tool call of it."""


@pytest.mark.parametrize("member", TURNS)
def test_with_every_prompt_the_count_begins_anew(hook: Hook, activities: Any, member: str) -> None:
    for turn in ("one", "two"):
        assert [hook({**TURNS[member], member: turn}).code for _ in range(3)] == [0, 0, 2]
    found = [entry for entry in activities() if entry["decision"] == "APPROVED"]
    assert [entry["step_number"] for entry in found] == [2, 1, 2, 1]
    assert len({entry["conversation_id"] for entry in found}) == 2


def test_a_turn_that_goes_on_beside_another_keeps_its_count(hook: Hook, activities: Any) -> None:
    for number in range(4):
        assert hook(claude("WebSearch", {"query": f"{number}"}, prompt_id=f"turn {number % 2}")).code == 0
    assert [entry["step_number"] for entry in activities()] == [2, 2, 1, 1]


def test_a_turn_that_is_too_long_waits_for_the_person(hook: Hook) -> None:
    asked = {**LIST, "prompt_id": "p1"}
    assert hook(asked).code == 0
    hook.files[0].write_text(json.dumps({**hook.kept(), "steps": dict.fromkeys(hook.kept()["steps"], 50)}))
    said = hook(asked)
    assert (said.code, "wait for the person's next prompt" in said.err) == (2, True)
    assert hook({**asked, "prompt_id": "p2"}).code == 0


def test_what_a_person_approved_goes_through_in_a_later_turn(hook: Hook, settle: Any) -> None:
    asked = {**WRITE, "prompt_id": "p1"}
    said = hook(asked)
    assert said.code == 2
    settle(said.err)
    assert hook({**asked, "prompt_id": "p2"}).code == 0


def test_without_a_session_every_call_is_a_conversation_of_its_own(hook: Hook, activities: Any) -> None:
    for _ in range(4):
        assert hook({"tool": "search_web", "parameters": {"query": "x"}}).code == 0
    found = activities()
    assert (len({entry["conversation_id"] for entry in found}), hook.files) == (4, [])


def test_a_repair_does_not_let_the_broken_call_through(hook: Hook) -> None:
    table = hook.home / "actions.json"
    table.write_text('{"compute": {"type": "calculate", "query": "sum"}}')
    said = hook(claude("compute", {"sum": "2 + 2 = 5"}), "--actions", str(table))
    assert said.code == 2
    assert "not as it is: it would be permitted as" in said.err
    assert hook(claude("compute", {"sum": "2 + 2 = 4"}), "--actions", str(table)).code == 0


# A person


def test_a_call_that_waits_for_a_person_does_not_run(hook: Hook) -> None:
    said = hook(WRITE)
    assert said.code == 2
    assert "a person must approve this high risk action (QWED-AGENT-TRUST-002)" in said.err
    assert re.search(r"once a person has approved apr_\w+, make the same call again\n$", said.err)


def test_asking_again_asks_about_the_same_approval(hook: Hook) -> None:
    first, second = hook(WRITE), hook(WRITE)
    assert (second.code, second.err, hook.step) == (2, first.err, 1)


def test_an_approval_is_for_no_other_call_whatever_the_file_says(hook: Hook, settle: Any) -> None:
    said = hook(WRITE)
    settle(said.err)
    other = claude("Write", {"file_path": "/home/dev/app/b.py", "content": "x = 1\n"})
    assert hook(other).code == 2
    kept = hook.kept()
    approved, waits = kept["waiting"]
    kept["waiting"][waits] = kept["waiting"][approved]
    hook.files[0].write_text(json.dumps(kept))
    assert hook(other).code == 2
    assert hook(WRITE).code == 0


def test_an_approval_that_was_used_is_not_used_again_whatever_the_file_says(hook: Hook, settle: Any) -> None:
    settle(hook(WRITE).err)
    before = hook.files[0].read_text()
    assert hook(WRITE).code == 0
    assert hook({**WRITE, "hook_event_name": "PostToolUse"}).code == 0
    hook.files[0].write_text(before)
    assert hook(WRITE).code == 2


def test_once_it_is_approved_the_same_call_runs_once(hook: Hook, settle: Any) -> None:
    settle(hook(WRITE).err)
    assert hook(claude("Write", {"file_path": "/home/dev/app/b.py", "content": "x = 1\n"})).code == 2
    assert hook(WRITE).code == 0
    assert hook(WRITE).code == 2


def test_once_it_is_rejected_the_model_is_told(hook: Hook, settle: Any) -> None:
    settle(hook(WRITE).err, "reject")
    said = hook(WRITE)
    assert said.code == 2
    assert "a person refused this: seen" in said.err


def test_an_approval_is_worth_nothing_to_an_agent_that_was_stopped(
    hook: Hook, settle: Any, api: httpx.Client, coder: dict[str, Any]
) -> None:
    settle(hook(WRITE).err)
    assert api.post(f"/agents/{coder['agent_id']}/suspend", json={"reason": "odd"}).status_code == 200
    said = hook(WRITE)
    assert said.code == 2
    assert "suspended" in said.err


def test_an_approval_that_was_revoked_is_none(hook: Hook, settle: Any, api: httpx.Client, activities: Any) -> None:
    settle(hook(WRITE).err)
    (waiting,) = hook.kept()["waiting"].values()
    path = f"/agents/{activities()[0]['agent_id']}/actions/{waiting.split()[0]}"
    name = api.get(path).json()["attestation_id"]
    assert api.post(f"/attestation/{name}/revoke", json={"reason": "a mistake"}).status_code == 200
    said = hook(WRITE)
    assert (said.code, "revoked" in said.err) == (2, True)


@contextmanager
def approving(api: httpx.Client, agent_id: str) -> Iterator[None]:
    """A person who approves the first thing that waits."""

    def approve() -> None:
        waiting: list[dict[str, Any]] = []
        while not waiting:
            listed = api.get("/approvals", params={"state": "pending"}).json()["approvals"]
            waiting = [each for each in listed if each["agent_id"] == agent_id]
        api.post(f"/approvals/{waiting[0]['approval_id']}/approve", json={"reason": "seen"})

    person = threading.Thread(target=approve)
    person.start()
    yield
    person.join()


def test_a_person_who_answers_in_time_lets_it_run(hook: Hook, api: httpx.Client, coder: dict[str, Any]) -> None:
    with approving(api, coder["agent_id"]):
        assert hook(WRITE, "--wait", "30") == (0, "", "")
    assert ids_of(hook) != []


def test_a_person_who_does_not_answer_is_not_waited_for_longer(hook: Hook) -> None:
    said = hook(WRITE, "--wait", "0.2")
    assert (said.code, "apr_" in said.err) == (2, True)


def test_the_person_at_the_keyboard_decides_where_that_is_asked_for(hook: Hook) -> None:
    said = hook(WRITE, "--ask")
    assert (said.code, said.err) == (0, "")
    told = json.loads(said.out)["hookSpecificOutput"]
    assert (told["hookEventName"], told["permissionDecision"]) == ("PreToolUse", "ask")
    assert "a person must approve this high risk action" in told["permissionDecisionReason"]


def test_what_is_denied_is_no_question(hook: Hook) -> None:
    said = hook(claude("Bash", {"command": "rm -rf /"}), "--ask")
    assert (said.code, said.out) == (2, "")


@pytest.mark.parametrize(
    "given",
    [
        {**WRITE, "permission_mode": "bypassPermissions"},
        {**WRITE, "turn_id": "turn_1"},
        {"tool": "Write", "parameters": {"file_path": "/srv/a.py", "content": "x"}, "conversation": "c"},
    ],
    ids=["nobody is asked", "Codex", "any other"],
)
def test_where_nobody_can_be_asked_the_answer_is_no(hook: Hook, given: dict[str, Any]) -> None:
    said = hook(given, "--ask")
    assert (said.code, "a person must approve" in said.err) == (2, True)


def test_a_question_that_nobody_hears_is_no_yes(hook: Hook) -> None:
    env = environment(hook.home, **{name: value for name, value in os.environ.items() if name.startswith("QWED_")})
    nobody, line = os.pipe()
    os.close(nobody)
    try:
        assert run(WRITE, "--ask", env=env, stdout=line).code == 2
    finally:
        os.close(line)


# Afterwards


@pytest.mark.parametrize(("event", "success"), [("PostToolUse", True), ("PostToolUseFailure", False)])
def test_how_it_went_is_logged(hook: Hook, api: httpx.Client, coder: dict[str, Any], event: str, success: bool) -> None:
    assert hook(LIST).code == 0
    (action_id,) = ids_of(hook)
    assert hook({**LIST, "hook_event_name": event}) == (0, "", "")
    action = api.get(f"/agents/{coder['agent_id']}/actions/{action_id}").json()
    assert (action["execution"]["success"], ids_of(hook)) == (success, [])


def test_an_agent_without_ids_for_its_calls_is_logged_too(hook: Hook, activities: Any) -> None:
    call = {"hook_event_name": "BeforeTool", "session_id": "g", "tool_name": "google_web_search"}
    asked = {**call, "tool_input": {"query": "x"}}
    assert hook(asked).code == 0
    assert hook({**asked, "hook_event_name": "AfterTool", "tool_response": {"llmContent": "y"}}).code == 0
    assert activities()[0]["execution"]["success"] is True


@pytest.mark.parametrize("given", [{**LIST, "tool_use_id": "never seen"}, {**LIST, "session_id": "never seen"}])
def test_a_call_that_was_never_asked_about_is_not_logged(hook: Hook, given: dict[str, Any]) -> None:
    assert hook(LIST).code == 0
    assert hook({**given, "hook_event_name": "PostToolUse"}) == (0, "", "")


def test_what_has_run_is_never_stopped(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hook(LIST).code == 0
    monkeypatch.setenv("QWED_BASE_URL", "http://127.0.0.1:9")
    assert hook({**LIST, "hook_event_name": "PostToolUse"}).code == 0
    monkeypatch.delenv("QWED_AGENT_TOKEN")
    said = hook({**LIST, "hook_event_name": "PostToolUse"})
    assert (said.code, "QWED_AGENT_TOKEN is not set" in said.err) == (0, True)


# Agents that read more than the exit code


def test_cursor_is_told_in_its_own_words(hook: Hook) -> None:
    shell = {"hook_event_name": "beforeShellExecution", "conversation_id": "c", "cwd": "/home/dev/app"}
    assert json.loads(hook({**shell, "command": "ls"}).out) == {"permission": "allow"}
    said = hook({**shell, "command": "rm -rf /"})
    assert (said.code, json.loads(said.out)["permission"]) == (2, "deny")
    assert json.loads(said.out)["agent_message"] == said.err.strip()


def test_copilot_is_told_in_its_own_words(hook: Hook) -> None:
    call = {"sessionId": "c", "cwd": "/home/dev/app", "toolName": "bash"}
    assert hook({**call, "toolArgs": '{"command": "ls"}'}) == (0, "", "")
    said = hook({**call, "toolArgs": '{"command": "rm -rf /"}'})
    assert (said.code, json.loads(said.out)["permissionDecision"]) == (2, "deny")


def test_the_whole_answer_can_be_had(hook: Hook) -> None:
    yes, no = hook(LIST, "--json"), hook(claude("Bash", {"command": "rm -rf /"}), "--json")
    assert (yes.code, json.loads(yes.out)["answer"]["decision"]) == (0, "APPROVED")
    told = json.loads(no.out)
    assert (no.code, told["allowed"], told["answer"]["decision"]) == (2, False, "DENIED")
    assert told["reason"] == no.err.strip()


# Setting it up


def test_everything_in_place_is_one_sentence(hook: Hook, server: Server, coder: dict[str, Any]) -> None:
    said = hook("", "--check")
    assert said.code == 0
    assert said.out == (f"the hook asks {server.base_url} for `{coder['name']}` ({coder['agent_id']}), trust level 2\n")


def test_what_is_not_in_place_is_one_sentence_too(
    hook: Hook, monkeypatch: pytest.MonkeyPatch, api: httpx.Client, coder: dict[str, Any]
) -> None:
    api.post(f"/agents/{coder['agent_id']}/suspend", json={"reason": "odd"})
    assert "suspended" in hook("", "--check").err
    monkeypatch.setenv("QWED_AGENT_TOKEN", "qwed_agent_wrong")
    assert hook("", "--check").code == 2
    monkeypatch.setenv("QWED_BASE_URL", "not an address")
    said = hook("", "--check")
    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("missing", ["QWED_AGENT_ID", "QWED_AGENT_TOKEN"])
def test_without_an_agent_nothing_runs_not_even_with_the_key_of_the_organisation(
    hook: Hook, server: Server, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setenv("QWED_API_KEY", server.owner_key)
    monkeypatch.setenv(missing, " ")
    said = hook(LIST)
    assert said.code == 2
    assert f"{missing} is not set" in said.err


@pytest.mark.parametrize("agent", SNIPPETS)
def test_the_settings_of_every_agent_stop_its_tools_whatever_becomes_of_the_hook(hook: Hook, agent: str) -> None:
    said = hook("", "--print-settings", agent)
    assert said.code == 0
    events = json.loads(said.out)["hooks"]
    before = [event for event in events if event.lower().startswith(("pre", "before"))]
    assert len(before) >= 1
    assert all(event in EVENTS or event in WINDSURF for event in events)
    assert all("qwed hook || exit 2" in json.dumps(events[event]) for event in before)
    assert all("exit 2" not in json.dumps(events[event]) for event in events if event not in before)


def test_the_settings_give_the_hook_more_time_than_it_takes(hook: Hook) -> None:
    options = ("--wait", "300", "--timeout", "40", "--ask", "--actions", "my tools.json")
    said = hook("", "--print-settings", "claude-code", *options)
    (before,) = json.loads(said.out)["hooks"]["PreToolUse"][0]["hooks"]
    assert before["command"] == "qwed hook --timeout 40 --wait 300 --ask --actions 'my tools.json' || exit 2"
    assert (before["timeout"], before["onFailure"]) == (355, "block")


def test_a_command_that_is_not_there_stops_the_tool(hook: Hook) -> None:
    (before,) = json.loads(hook("", "--print-settings", "claude-code").out)["hooks"]["PreToolUse"][0]["hooks"]
    done = subprocess.run(
        ["/bin/sh", "-c", before["command"]], input=as_bytes(LIST), env={"PATH": "/nowhere"}, capture_output=True
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
def test_a_wrong_option_permits_nothing(hook: Hook, arguments: tuple[str, ...]) -> None:
    said = hook(LIST, *arguments)
    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert said.err.startswith("qwed: ")


def test_the_help_has_the_options_that_there_are(hook: Hook) -> None:
    said = hook("", "--help")
    assert said.code == 0
    assert set(re.findall(r"--[a-z-]+", said.out)) == {
        "--help",
        *(f"--{name.replace('_', '-')}" for name in Options._fields),
    }


def test_the_quick_way_and_the_listed_one_have_the_same_options() -> None:
    (listed,) = [command for path, command in app.every() if path == "qwed hook"]
    defaults = {option.name: option.default for option in listed.params if option.name != "help"}
    assert defaults == Options()._asdict()
