"""Allowed resources, prompts and sampling through the proxy, and a server over HTTP."""

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError
from mcp_types import CreateMessageResult, TextContent

from tests.support.mcp_proxies import OLD, PROXY, Session, proxied, session, text_of, until, upstream

ORDER = ("--allow-prompt", "order")
"""Allowed prompt whose description instructs the model, so it is not listed."""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("passes")


@pytest.fixture(scope="module")
def url(directory: Path) -> Iterator[str]:
    """Test server over HTTP."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([*upstream(directory), str(port)], stderr=subprocess.DEVNULL)
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
    content = TextContent(type="text", text=f"the model heard {params.messages[0].content.text}")
    return CreateMessageResult(role="assistant", content=content, model="ours")


@pytest.fixture(scope="module")
def proxied_session(directory: Path, url: str) -> Iterator[Session]:
    """Client of an older version whose proxy allows some resources, prompts and sampling."""
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
        directory, *options, *headers, environment={"THEIR_TOKEN": "s3"}, mode="legacy", sampling_callback=_sampled
    ) as session:
        yield session


def test_a_server_over_http_is_stood_before_in_the_same_way(proxied_session: Session) -> None:
    assert proxied_session.call_passed("get_weather", city="Bonn")["arguments"] == {"city": "Bonn"}
    assert proxied_session.call_refused("delete_file", path="/tmp/x").startswith("DENIED")


def test_what_is_announced_is_what_is_named(proxied_session: Session) -> None:
    assert set(proxied_session.client.server_capabilities.model_dump(exclude_none=True)) == {
        "tools",
        "resources",
        "prompts",
    }


def test_a_resource_that_is_named_is_read_after_the_kernel_agreed_and_no_other_is(proxied_session: Session) -> None:
    listed = proxied_session.do(proxied_session.client.list_resources).resources
    assert [str(resource.uri) for resource in listed] == ["file:///srv/notes/one", "notes://inside"]
    assert proxied_session.do(proxied_session.client.list_resource_templates).resource_templates == []
    [read] = proxied_session.do(proxied_session.client.read_resource, "file:///srv/notes/one").contents
    assert read.text == "read file:///srv/notes/one"
    with pytest.raises(MCPError, match="PENDING: a person must approve"):
        proxied_session.do(proxied_session.client.read_resource, "notes://inside")
    for uri in ("file:///srv/notes/two", "file:///srv/notes/o/../two", "file:///srv/notes/o/%2e%2e/two", "notes://in"):
        with pytest.raises(MCPError, match="resource not allowed"):
            proxied_session.do(proxied_session.client.read_resource, uri)


def test_a_prompt_passes_by_its_name(proxied_session: Session) -> None:
    assert [prompt.name for prompt in proxied_session.do(proxied_session.client.list_prompts).prompts] == ["greet"]
    [message] = proxied_session.do(proxied_session.client.get_prompt, "greet").messages
    assert message.content.text == "prompt greet"
    with pytest.raises(MCPError, match="prompt not allowed"):
        proxied_session.do(proxied_session.client.get_prompt, "other")


@pytest.mark.drill
def test_the_client_is_told_that_the_tools_changed(directory: Path) -> None:
    heard: list[str] = []

    async def on_message(message: object) -> None:
        heard.append(type(message).__name__)

    try:
        with proxied(directory, name="told", mode="legacy", message_handler=on_message) as client:
            client.tools()
            (directory / "other.json").write_text(json.dumps({"query": {"description": "Queries something else"}}))
            client.call_passed("get_weather", city="Bonn", changed=True)
            until(lambda: "ToolListChangedNotification" in heard)
            assert "query" not in client.tools()
    finally:
        (directory / "other.json").unlink(missing_ok=True)


@pytest.mark.drill
def test_a_change_that_the_server_keeps_to_itself_is_found_before_the_next_call(directory: Path) -> None:
    try:
        with proxied(directory, "--relist", "0", name="sly") as client:
            client.call_passed("query", sql="SELECT 1")
            (directory / "other.json").write_text(json.dumps({"query": {"description": "Queries something else"}}))
            assert "its definition is held" in client.call_refused("query", sql="SELECT 1")
    finally:
        (directory / "other.json").unlink(missing_ok=True)


@pytest.mark.drill
def test_a_server_may_use_the_clients_model_where_that_is_allowed(directory: Path) -> None:
    command = [*PROXY, "--allow-sampling", "--", *OLD]
    with session(command, directory / "home", mode="legacy", sampling_callback=_sampled) as client:
        answer = json.loads(text_of(client.call("check_model")))
    assert answer["content"]["text"] == "the model heard hello"
