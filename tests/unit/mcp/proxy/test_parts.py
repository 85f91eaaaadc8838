"""Parts of the proxy: server names, message framing, passthrough policy and client configuration."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.server import Server
from mcp.shared.message import SessionMessage
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitRequestURLParams,
    InputRequiredResult,
    JSONRPCResponse,
    Tool,
    ToolAnnotations,
)

from qwed.model.tool_name import is_server_name, server_of
from qwed.proxies.server_name import is_proxy_name
from qwed.proxies.state_directory import read_json_object, write_json_object
from qwed_mcp.proxy.framing import MAX_UNREAD_RESPONSES, LineSplitter, MessageReader, MessageTooLongError, MessageWriter
from qwed_mcp.proxy.output_throttle import OutputThrottle, ReadPacer
from qwed_mcp.proxy.proxy_command import client_config
from qwed_mcp.proxy.proxy_options import McpProxyOptions, PassthroughPolicy, RegistrationFields
from qwed_mcp.proxy.server_name import derive_server_name, qualified_tool_name
from qwed_mcp.proxy.server_process import server_environment
from qwed_mcp.proxy.server_requests import InputRequests
from qwed_mcp.proxy.tools_handler import hinted_effects
from qwed_mcp.proxy.upstream import Upstream


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("npx -y @modelcontextprotocol/server-filesystem /tmp", "server-filesystem"),
        ("npx -y @scope/server@1.2.3 --flag", "server"),
        ("uvx mcp-server-git --repository /x", "mcp-server-git"),
        ("uv run server.py", "server"),
        ("python -m my_server", "my-server"),
        ("/usr/bin/python3 /opt/My Server/notes.py".replace("My Server", "mine"), "notes"),
        ("docker run -i --rm mcp/sqlite", "sqlite"),
        ("node", "node"),
        ("./---", "server"),
        ("ünï__cödé", "n-c-d"),
    ],
)
def test_a_server_is_called_after_its_command(command: str, name: str) -> None:
    assert derive_server_name(command.split(), None) == name
    assert is_proxy_name(name)
    assert is_server_name(name)


def test_a_server_elsewhere_is_called_after_its_host() -> None:
    assert derive_server_name([], "https://user@mcp.example.com:8443/mcp") == "mcp-example-com"


@pytest.mark.parametrize("name", ["", "a_b", "a__b", "a b", "-a", "a-", "ä", "a" * 41, "a\n"])
def test_what_would_blur_where_a_tools_name_begins_is_no_name_of_a_server(name: str) -> None:
    assert not is_proxy_name(name)


def test_the_whole_name_of_a_tool_is_read_as_it_was_made() -> None:
    assert server_of(qualified_tool_name("server-filesystem", "read__file")) == "server-filesystem"


@pytest.mark.parametrize(
    ("uri", "passes"),
    [
        ("notes://one", True),
        ("notes://one/", False),
        ("file:///srv/a", True),
        ("file:///srv/deep/a", True),
        ("file:///srv", False),
        ("file:///srv/../etc/passwd", False),
        ("file:///srv/%2e%2E/etc/passwd", False),
        ("file:///srv/.%2e/etc", False),
        ("file:///srv/..\\etc", False),
        ("FILE:///srv/a", False),
        ("file:///srv/..%2fetc/passwd", False),
        ("file:///srv/a%2F..%2F..%2Fetc", False),
        ("file:///srv/%252e%252e/etc", False),
        ("file:///srv/..%255cetc", False),
        ("file:///srv/..;x/etc", False),
        ("file:///srv/..?x", False),
        ("file:///srv/a?path=../../etc", False),
        ("file:///srv/.\t./etc", False),
        ("file:///srv/.%00./etc", False),
        ("file:///srv/\uff0e\uff0e/etc", False),
        ("file:///srv/%2525252525252e./etc", False),
        ("file:///srv/a%20b/...", True),
        ("file:///srv/100%25/a..b", True),
    ],
)
def test_a_resource_passes_as_it_is_named_or_below_what_is_named(uri: str, passes: bool) -> None:
    assert PassthroughPolicy(resources=("notes://one", "file:///srv/*")).allows_resource(uri) is passes


def test_lines_end_where_they_end_however_the_bytes_come() -> None:
    whole = b'{"a": 1}\n\n{"b": "\xc3\xa4"}\nrest'
    for size in range(1, len(whole) + 1):
        splitter = LineSplitter()
        pieces = [whole[start : start + size] for start in range(0, len(whole), size)]
        lines = [line for piece in pieces for line in splitter.feed(piece)]
        assert lines == [b'{"a": 1}', b"", b'{"b": "\xc3\xa4"}']


def test_a_line_that_does_not_end_is_not_kept() -> None:
    splitter = LineSplitter(max_bytes=10)
    assert splitter.feed(b"0123456789\n0123456789") == [b"0123456789"]
    with pytest.raises(MessageTooLongError):
        splitter.feed(b"0")


def _messages(*chunks: bytes) -> list[SessionMessage | Exception]:
    left = [*chunks, b""]

    async def read() -> bytes:
        return left.pop(0)

    async def all_of_them() -> list[SessionMessage | Exception]:
        return [item async for item in MessageReader(read, ReadPacer())]

    return anyio.run(all_of_them)


def test_a_line_that_is_no_message_is_told_apart_and_the_next_is_read() -> None:
    wrong, right = _messages(b'{"jsonrpc": "2.0"\n{"jsonrpc": "2.0", "id": 1, "met', b'hod": "ping"}\n')
    assert isinstance(wrong, Exception)
    assert isinstance(right, SessionMessage)


def test_a_closed_peer_ends_the_stream_without_an_error() -> None:
    async def broken(*_: object) -> bytes:
        raise BrokenPipeError

    async def written(data: bytes) -> None:
        await broken()

    async def both() -> None:
        assert [item async for item in MessageReader(broken, ReadPacer())] == []
        [message] = [item for item in _parsed if isinstance(item, SessionMessage)]
        writing = MessageWriter(written, ReadPacer())
        with pytest.raises(anyio.BrokenResourceError):
            await writing.send(message)
        with pytest.raises(anyio.ClosedResourceError):
            await writing.send(message)

    _parsed = _messages(b'{"jsonrpc": "2.0", "method": "x"}\n')
    anyio.run(both)


def test_unsolicited_messages_are_throttled_and_answers_to_requests_are_not() -> None:
    async def read(sent: int, sizes: list[int]) -> bool:
        throttle = OutputThrottle(burst=3, per_second=1e-6)
        with anyio.move_on_after(0.05) as scope:
            for size in sizes:
                await throttle.before_read(size)
                for _ in range(sent):
                    throttle.on_message_sent()
        return not scope.cancelled_caught

    assert anyio.run(read, 0, [1, 1, 1])
    assert anyio.run(read, 1, [1] * 50)
    assert not anyio.run(read, 0, [1, 1, 1, 1])
    assert not anyio.run(read, 0, [1 << 20])


def test_messages_that_are_there_already_leave_others_their_turn() -> None:
    heard: list[int] = []

    async def others(reading: MessageReader) -> None:
        heard.append(len([item async for item in reading]))

    async def read() -> bytes:
        return b"x\n" * 5_000 if not heard else b""

    async def both() -> int:
        reading = MessageReader(read, ReadPacer())
        with anyio.move_on_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(others, reading)
                await anyio.lowlevel.checkpoint()
                await reading.aclose()
        return heard[0]

    assert anyio.run(both) <= 5_000


def test_answers_that_nobody_reads_are_not_kept_without_end() -> None:
    answer = SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=1, result={}))

    async def never(_: bytes) -> None:
        await anyio.sleep_forever()

    async def asked() -> bool:
        writing = MessageWriter(never, ReadPacer())
        async with anyio.create_task_group() as group:
            for _ in range(MAX_UNREAD_RESPONSES):
                group.start_soon(writing.send, answer)
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(anyio.BrokenResourceError):
                await writing.send(answer)
            group.cancel_scope.cancel()
        return writing.closed

    assert anyio.run(asked)


@pytest.mark.parametrize(
    ("hints", "effects"),
    [
        ({}, ()),
        ({"read_only_hint": True, "destructive_hint": False, "open_world_hint": False}, ()),
        ({"destructive_hint": True}, ("DELETE",)),
        ({"read_only_hint": True, "destructive_hint": True, "open_world_hint": True}, ("DELETE", "NETWORK")),
    ],
)
def test_a_hint_adds_an_effect_and_takes_none_away(hints: dict[str, bool], effects: tuple[str, ...]) -> None:
    tool = Tool(name="x", input_schema={"type": "object"}, annotations=ToolAnnotations(**hints))
    assert hinted_effects(tool) == effects


def test_the_server_gets_the_environment_without_the_control_planes() -> None:
    ours = {"PATH": "/bin", "QWED_API_KEY": "s", "qwed_agent_token": "s", "MY_QWED_": "1"}
    assert server_environment(ours) == {"PATH": "/bin", "MY_QWED_": "1"}


def test_the_command_is_printed_for_a_client_without_any_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"QWED_BASE_URL": "https://q.example.com", "QWED_API_KEY": "s1", "TOKEN": "s2"}.items():
        monkeypatch.setenv(name, value)
    for name in ("QWED_AGENT_ID", "QWED_AGENT_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    options = McpProxyOptions(name="them", command=("x",), registration=RegistrationFields("autonomous", "me"))
    argv = ["/opt/bin/qwed-mcp", "proxy", "--print-config", "--header-env", "A=TOKEN", "--", "x", "--print-config"]
    printed = client_config(options, argv, ["A=TOKEN"])
    assert "s1" not in printed
    assert json.loads(printed)["mcpServers"]["them"] == {
        "command": "/opt/bin/qwed-mcp",
        "args": ["proxy", "--header-env", "A=TOKEN", "--", "x", "--print-config"],
        "env": {"QWED_BASE_URL": "https://q.example.com", "QWED_API_KEY": "<QWED_API_KEY>", "TOKEN": "<TOKEN>"},
    }


def test_what_is_kept_is_written_whole_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "agent.json"
    write_json_object(file, {"a": 1})
    write_json_object(file, {"a": 2})
    assert read_json_object(file) == {"a": 2}
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["agent.json"]


@pytest.mark.parametrize("content", ["", "[]", "{", "[" * 100_000, "x" * (1 << 21)])
def test_what_is_broken_is_read_as_nothing(content: str, tmp_path: Path) -> None:
    (tmp_path / "agent.json").write_text(content)
    assert read_json_object(tmp_path / "agent.json") is None


@pytest.mark.parametrize(
    ("call", "passes"),
    [
        ({"request_state": "s", "input_responses": {"a": {"action": "decline"}}}, True),
        ({"request_state": "s"}, True),
        ({}, True),
        ({"request_state": "t"}, False),
        ({"input_responses": {"a": {"action": "decline"}}}, False),
        ({"request_state": "s", "input_responses": {"b": {"action": "decline"}}}, False),
        ({"request_state": "s", "arguments": {"x": 2}}, False),
        ({"request_state": "s", "name": "u"}, False),
    ],
)
def test_what_stands_beside_the_arguments_answers_what_the_server_asked_about_this_call(
    call: dict[str, Any], passes: bool
) -> None:
    inputs = InputRequests(Upstream(Client(Server("x")), 1.0, None), PassthroughPolicy(elicitation=True))
    asks = {"a": ElicitRequest(params=ElicitRequestURLParams(message="m", url="https://x.test", elicitation_id="e"))}
    first = CallToolRequestParams(name="t", arguments={"x": 1})
    inputs.remember(first, InputRequiredResult(input_requests=asks, request_state="s"))
    again = CallToolRequestParams(**{"name": "t", "arguments": {"x": 1}, **call})
    assert inputs.is_expected(again) is passes
    inputs.remember(first, CallToolResult(content=[]))
    assert inputs.is_expected(again) is (not call)


def test_what_a_proxy_holds_is_not_read_by_others_of_its_user() -> None:
    program = (
        "import ctypes; from qwed.proxies import process_hardening as p; p.disable_memory_dumps()\n"
        "print(ctypes.CDLL(None).prctl(3))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "0\n"
