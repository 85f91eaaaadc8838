"""Real client, proxy and server for blocking tests."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import CallToolResult, TextContent, Tool

from tests.support.mcp_upstream import BEGUN, CANCELLED
from tests.support.polling import until

T = TypeVar("T")
PROXY = (str(Path(sys.executable).with_name("qwed-mcp")), "proxy")
NAME = "served"
"""Name of the server whose calls a control plane decides."""
UPSTREAM = Path(__file__).with_name("mcp_upstream.py")


OLD = [sys.executable, str(UPSTREAM.with_name("mcp_old.py"))]
"""Command of a server of the 2024 protocol."""


def upstream(directory: Path) -> list[str]:
    """Return the command of a server whose tools a file in `directory` changes."""
    return [sys.executable, str(UPSTREAM), str(directory / "other.json")]


class Session:
    """Blocking methods of a client."""

    def __init__(self, portal: BlockingPortal, client: Client, log: Path) -> None:
        self.portal = portal
        self.client = client
        self.log = log

    def tools(self) -> dict[str, Tool]:
        return {tool.name: tool for tool in self.do(self.client.list_tools, cache_mode="bypass").tools}

    def call(self, name: str, /, **arguments: Any) -> CallToolResult:
        return self.do(self.client.call_tool, name, arguments)

    def call_passed(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool that must pass; return what the server received."""
        result = self.call(name, **arguments)
        assert not result.is_error, text_of(result)
        assert result.structured_content is not None
        return result.structured_content

    def call_refused(self, name: str, /, **arguments: Any) -> str:
        """Call a tool that must be refused; return the reason."""
        result = self.call(name, **arguments)
        assert result.is_error, result
        return text_of(result)

    def do(self, verb: Any, *args: Any, **kwargs: Any) -> Any:
        return self.portal.call(lambda: verb(*args, **kwargs))

    def begin(self, verb: Any, *args: Any, **kwargs: Any) -> "Future[Any]":
        return self.portal.start_task_soon(lambda: verb(*args, **kwargs))

    def cancel(self, **arguments: Any) -> None:
        """Make a call that is never answered, cancel it once it reaches the server, and wait for its cancellation
        there."""
        begun, cancelled = (self.log.read_text().count(line) for line in (BEGUN, CANCELLED))
        call = self.begin(self.client.call_tool, "read_forever", arguments)
        until(lambda: self.log.read_text().count(BEGUN) > begun)
        call.cancel()
        until(lambda: self.log.read_text().count(CANCELLED) > cancelled)


def text_of(result: CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


@contextmanager
def session(
    command: Sequence[str], home: Path, environment: Mapping[str, str] | None = None, **client: Any
) -> Iterator[Session]:
    """Client of the command with `home` as its home directory; its standard error goes to a file there."""
    home.mkdir(exist_ok=True)
    log = home / "stderr.log"
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("QWED_")}
    parameters = StdioServerParameters(
        command=command[0], args=list(command[1:]), env={**inherited, "HOME": str(home), **(environment or {})}
    )
    with log.open("a") as errors, start_blocking_portal() as portal:
        connection = Client(stdio_client(parameters, errors), **client)
        with portal.wrap_async_context_manager(connection) as entered:
            yield Session(portal, entered, log)


@contextmanager
def proxied(
    directory: Path, *options: str, name: str = "demo", environment: Mapping[str, str] | None = None, **client: Any
) -> Iterator[Session]:
    """Client of the test server through a proxy."""
    command = [*PROXY, "--name", name, *options, *([] if "--url" in options else ["--", *upstream(directory)])]
    with session(command, directory / "home", environment, **client) as connected:
        yield connected
