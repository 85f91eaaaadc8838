"""What passes beside tools when it is named: resources, prompts, the client's model; and a server over HTTP."""

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError
from mcp_types import CreateMessageResult, TextContent

from tests.support.proxies import OLD, PROXY, Session, proxied, session, text_of, until, upstream

ORDER = ("--allow-prompt", "order")
"""Named, and described by an order to the model: it is not listed."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("passes")


@pytest.fixture(scope="module")
def url(place: Path) -> Iterator[str]:
    """The server of tests over HTTP."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([*upstream(place), str(port)], stderr=subprocess.DEVNULL)
    try:
        until(lambda: _listens(port))
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(timeout=60)


def _listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


async def _sampled(context: Any, params: Any) -> CreateMessageResult:
    said = TextContent(type="text", text=f"the model heard {params.messages[0].content.text}")
    return CreateMessageResult(role="assistant", content=said, model="ours")


@pytest.fixture(scope="module")
def before(place: Path, url: str) -> Iterator[Session]:
    """A client of an older version, before a proxy that lets some of it through."""
    resources = (
        "--allow-resource",
        "file:///srv/notes/o*",
        "--allow-resource",
        "notes://inside",
        "--allow-resource",
        "notes://order",
    )
    options = (*resources, "--allow-prompt", "greet", *ORDER, "--allow-sampling", "--url", url)
    headers = ("--header-env", "X-Theirs=THEIR_TOKEN")
    with proxied(
        place, *options, *headers, environment={"THEIR_TOKEN": "s3"}, mode="legacy", sampling_callback=_sampled
    ) as found:
        yield found


def test_a_server_over_http_is_stood_before_in_the_same_way(before: Session) -> None:
    assert before.called("get_weather", city="Bonn")["arguments"] == {"city": "Bonn"}
    assert before.refused("delete_file", path="/tmp/x").startswith("DENIED")


def test_what_is_announced_is_what_is_named(before: Session) -> None:
    assert set(before.client.server_capabilities.model_dump(exclude_none=True)) == {"tools", "resources", "prompts"}


def test_a_resource_that_is_named_is_read_after_the_kernel_agreed_and_no_other_is(before: Session) -> None:
    listed = before.do(before.client.list_resources).resources
    assert [str(each.uri) for each in listed] == ["file:///srv/notes/one", "notes://inside"]
    assert before.do(before.client.list_resource_templates).resource_templates == []
    [read] = before.do(before.client.read_resource, "file:///srv/notes/one").contents
    assert read.text == "read file:///srv/notes/one"
    with pytest.raises(MCPError, match="PENDING: a person must approve"):
        before.do(before.client.read_resource, "notes://inside")
    for uri in ("file:///srv/notes/two", "file:///srv/notes/o/../two", "file:///srv/notes/o/%2e%2e/two", "notes://in"):
        with pytest.raises(MCPError, match="this resource does not pass"):
            before.do(before.client.read_resource, uri)


def test_a_prompt_passes_by_its_name(before: Session) -> None:
    assert [each.name for each in before.do(before.client.list_prompts).prompts] == ["greet"]
    [message] = before.do(before.client.get_prompt, "greet").messages
    assert message.content.text == "prompt greet"
    with pytest.raises(MCPError, match="this prompt does not pass"):
        before.do(before.client.get_prompt, "other")


@pytest.mark.drill
def test_the_client_is_told_that_the_tools_changed(place: Path) -> None:
    heard: list[str] = []

    async def hear(message: object) -> None:
        heard.append(type(message).__name__)

    try:
        with proxied(place, name="told", mode="legacy", message_handler=hear) as client:
            client.tools()
            (place / "other.json").write_text(json.dumps({"query": {"description": "Queries something else"}}))
            client.called("get_weather", city="Bonn", changed=True)
            until(lambda: "ToolListChangedNotification" in heard)
            assert "query" not in client.tools()
    finally:
        (place / "other.json").unlink(missing_ok=True)


@pytest.mark.drill
def test_a_change_that_the_server_keeps_to_itself_is_found_before_the_next_call(place: Path) -> None:
    try:
        with proxied(place, "--relist", "0", name="sly") as client:
            client.called("query", sql="SELECT 1")
            (place / "other.json").write_text(json.dumps({"query": {"description": "Queries something else"}}))
            assert "its definition is held" in client.refused("query", sql="SELECT 1")
    finally:
        (place / "other.json").unlink(missing_ok=True)


@pytest.mark.drill
def test_a_server_may_use_the_clients_model_where_that_is_allowed(place: Path) -> None:
    command = [*PROXY, "--allow-sampling", "--", *OLD]
    with session(command, place / "home", mode="legacy", sampling_callback=_sampled) as client:
        said = json.loads(text_of(client.call("check_model")))
    assert said["content"]["text"] == "the model heard hello"
