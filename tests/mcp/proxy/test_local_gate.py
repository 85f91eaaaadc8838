"""`qwed-mcp proxy` with a local Gate, a real client and a real server."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import MCPError
from mcp_types import CallToolResult, ImageContent, ResourceLink

from tests.support.mcp_proxies import Session, proxied, text_of
from tests.support.mcp_upstream import TOOLS


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("proxy")


@pytest.fixture(scope="module")
def work(directory: Path) -> Path:
    path = directory / "work"
    path.mkdir()
    return path


@pytest.fixture(scope="module")
def proxied_session(directory: Path, work: Path) -> Iterator[Session]:
    """Client of the newest version, connected through the proxy."""
    options = ("--allow-path", str(work), "--principal", "me", "--timeout", "4")
    with proxied(
        directory, *options, environment={"QWED_LOG_LEVEL": "error", "qwed_other": "1", "THEIRS": "2"}
    ) as session:
        yield session


def test_all_tools_of_all_pages_are_listed_as_the_server_defines_them(proxied_session: Session) -> None:
    assert proxied_session.tools() == TOOLS


def test_a_call_reaches_the_server_with_the_very_arguments(proxied_session: Session) -> None:
    arguments = {"city": "Köln\u0000 \U0001f600", "none": None, "deep": {"a": [None, 1.5, 2**70, True, {}]}}
    assert proxied_session.call_passed("get_weather", **arguments)["arguments"] == arguments


def test_a_denied_call_says_why_and_never_reaches_the_server(proxied_session: Session, work: Path) -> None:
    result = proxied_session.call("read_file", path=str(work / ".." / "secret"))
    assert result.is_error
    assert text_of(result).startswith(f"DENIED: `{work / '..' / 'secret'}` is outside the agent's allowed paths: ")
    assert "(QWED-AGENT-005)" in text_of(result)
    assert result.meta is not None
    assert result.meta["qwed/decision"] == "DENIED"
    assert result.meta["qwed/code"] == "QWED-AGENT-005"
    assert result.meta["qwed/action_id"].startswith("act_")
    assert "read_file" not in proxied_session.call_passed("list_calls")["calls"]


def test_the_result_is_the_servers_own_and_names_its_action(proxied_session: Session) -> None:
    result = proxied_session.call("get_picture")
    picture, link = result.content
    assert isinstance(picture, ImageContent)
    assert (picture.data, picture.mime_type) == ("aGVsbG8=", "image/png")
    assert isinstance(link, ResourceLink)
    assert str(link.uri) == "notes://one"
    assert result.meta is not None
    assert result.meta["theirs"] == 1
    assert result.meta["qwed/action_id"].startswith("act_")


def test_what_the_client_tells_beside_the_arguments_does_not_pass(proxied_session: Session) -> None:
    result = proxied_session.do(proxied_session.client.call_tool, "list_calls", {}, meta={"example.com/trace": "t1"})
    assert "example.com/trace" not in result.structured_content["meta"]
    assert result.structured_content["meta"]["io.modelcontextprotocol/clientInfo"]["name"] == "qwed-mcp-proxy"


def test_the_progress_of_the_server_reaches_the_client(proxied_session: Session) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    result = proxied_session.do(proxied_session.client.call_tool, "count_slowly", {}, progress_callback=on_progress)
    assert text_of(result) == "three"
    assert seen == [(1, 3, "1 of 3"), (2, 3, "2 of 3"), (3, 3, "3 of 3")]


def test_the_server_is_told_our_environment_without_the_variables_of_the_control_plane(
    proxied_session: Session,
) -> None:
    names = proxied_session.call_passed("get_environment")["names"]
    assert "THEIRS" in names
    assert [name for name in names if name.upper().startswith("QWED_")] == []


def test_what_the_server_says_on_standard_error_is_passed_on(proxied_session: Session) -> None:
    assert "the server speaks on standard error" in proxied_session.log.read_text()


def test_a_tool_that_is_not_listed_cannot_be_called(proxied_session: Session) -> None:
    assert proxied_session.call_refused("get_wether", city="Bonn") == "DENIED: the server lists no tool with this name"


def test_an_error_of_the_server_comes_as_it_is(proxied_session: Session) -> None:
    with pytest.raises(MCPError) as caught:
        proxied_session.call("read_wrongly")
    assert (caught.value.code, caught.value.message, caught.value.error.data) == (-32077, "not today", {"theirs": True})


def test_a_server_that_does_not_answer_is_not_waited_for_and_is_told(proxied_session: Session) -> None:
    assert "the server did not answer within 4 seconds" in proxied_session.call_refused("read_forever")
    assert proxied_session.call_passed("list_calls")["calls"][-2:] == ["cancelled", "list_calls"]


def test_a_call_that_the_client_cancels_is_cancelled_at_the_server(proxied_session: Session) -> None:
    proxied_session.cancel(because="cancelled")
    calls: list[str] = proxied_session.call_passed("list_calls", because="cancelled")["calls"]
    assert calls[-3:] == ["read_forever", "cancelled", "list_calls"]


def test_a_hint_of_the_server_adds_an_effect(proxied_session: Session) -> None:
    assert "DENIED" in proxied_session.call_refused("read_notes")


def test_a_hundred_calls_at_once_are_all_answered_each_with_its_own(proxied_session: Session) -> None:
    async def all_at_once() -> list[CallToolResult]:
        answers: list[Any] = [None] * 100

        async def one(number: int) -> None:
            answers[number] = await proxied_session.client.call_tool("get_weather", {"city": f"city {number}"})

        async with anyio.create_task_group() as group:
            for number in range(100):
                group.start_soon(one, number)
        return answers

    results = proxied_session.do(all_at_once)
    assert [result.structured_content["arguments"]["city"] for result in results] == [f"city {n}" for n in range(100)]
    assert len({result.meta["qwed/action_id"] for result in results}) == 100


def test_large_arguments_pass_whole_or_not_at_all(proxied_session: Session) -> None:
    large = "word " * 40_000
    assert proxied_session.call_passed("get_weather", city=large)["arguments"] == {"city": large}
    assert "its arguments cannot be verified" in proxied_session.call_refused("get_weather", city="w" * (1 << 21))


def test_what_is_not_named_does_not_pass(proxied_session: Session) -> None:
    capabilities = proxied_session.client.server_capabilities.model_dump(exclude_none=True)
    assert set(capabilities) == {"tools"}
    for verb in (
        proxied_session.client.list_resources,
        proxied_session.client.list_prompts,
        proxied_session.client.list_resource_templates,
    ):
        with pytest.raises(MCPError, match="Method not found"):
            proxied_session.do(verb)
    with pytest.raises(MCPError, match="Method not found"):
        proxied_session.do(proxied_session.client.read_resource, "notes://one")
    with pytest.raises(MCPError, match="Method not found"):
        proxied_session.do(proxied_session.client.get_prompt, "greet")


def test_the_words_with_which_a_server_introduces_itself_do_not_pass(proxied_session: Session) -> None:
    assert proxied_session.client.instructions is None
    assert proxied_session.client.server_info is not None
    assert proxied_session.client.server_info.name == "demo"


def test_what_is_kept_is_for_its_owner_alone(proxied_session: Session, directory: Path) -> None:
    state = directory / "home" / ".qwed" / "mcp" / "demo"
    assert state.stat().st_mode & 0o777 == 0o700
    assert (state / "agent.json").stat().st_mode & 0o777 == 0o600
    agent = json.loads((state / "agent.json").read_text())
    assert agent["fields"]["permissions"]["allowed_tools"] == ["mcp__demo__*", "release_tool_definition"]
    assert agent["fields"]["principal_id"] == "me"
