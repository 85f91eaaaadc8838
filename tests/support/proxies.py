"""A real client before a real proxy before a real server, to be used from a test that does not await."""

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
from tests.support.patience import until

T = TypeVar("T")
PROXY = (str(Path(sys.executable).with_name("qwed-mcp")), "proxy")
NAME = "served"
"""What the server is called that a control plane decides about."""
UPSTREAM = Path(__file__).with_name("mcp_upstream.py")


OLD = [sys.executable, str(UPSTREAM.with_name("mcp_old.py"))]
"""A server of 2024."""


def upstream(place: Path) -> list[str]:
    """The command of a server whose tools a file in `place` changes."""
    return [sys.executable, str(UPSTREAM), str(place / "other.json")]


class Session:
    """The verbs of a client, blocking."""

    def __init__(self, portal: BlockingPortal, client: Client, log: Path) -> None:
        self.portal = portal
        self.client = client
        self.log = log

    def tools(self) -> dict[str, Tool]:
        return {tool.name: tool for tool in self.do(self.client.list_tools, cache_mode="bypass").tools}

    def call(self, name: str, /, **arguments: Any) -> CallToolResult:
        return self.do(self.client.call_tool, name, arguments)

    def called(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """What the server says it was asked; the call must have passed."""
        result = self.call(name, **arguments)
        assert not result.is_error, text_of(result)
        assert result.structured_content is not None
        return result.structured_content

    def refused(self, name: str, /, **arguments: Any) -> str:
        """Why the call did not pass."""
        result = self.call(name, **arguments)
        assert result.is_error, result
        return text_of(result)

    def do(self, verb: Any, *given: Any, **named: Any) -> Any:
        return self.portal.call(lambda: verb(*given, **named))

    def begin(self, verb: Any, *given: Any, **named: Any) -> "Future[Any]":
        return self.portal.start_task_soon(lambda: verb(*given, **named))

    def cancel(self, **arguments: Any) -> None:
        """Make a call that is never answered, and cancel it once it has reached the server, which hears of that too."""
        begun, cancelled = (self.log.read_text().count(said) for said in (BEGUN, CANCELLED))
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
    """A client of the command, which has `home` for its home; its standard error is in a file there."""
    home.mkdir(exist_ok=True)
    log = home / "stderr.log"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("QWED_")}
    told = StdioServerParameters(
        command=command[0], args=list(command[1:]), env={**kept, "HOME": str(home), **(environment or {})}
    )
    with log.open("a") as errors, start_blocking_portal() as portal:
        made = Client(stdio_client(told, errors), **client)
        with portal.wrap_async_context_manager(made) as entered:
            yield Session(portal, entered, log)


@contextmanager
def proxied(
    place: Path, *options: str, name: str = "demo", environment: Mapping[str, str] | None = None, **client: Any
) -> Iterator[Session]:
    """A client before a proxy before the server of tests."""
    command = [*PROXY, "--name", name, *options, *([] if "--url" in options else ["--", *upstream(place)])]
    with session(command, place / "home", environment, **client) as found:
        yield found
