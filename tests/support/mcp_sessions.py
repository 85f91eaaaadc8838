"""Sessions of the official MCP client with real `qwed-mcp` processes, for blocking tests."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, Tool

from tests.support.polling import until

COMMAND = str(Path(sys.executable).with_name("qwed-mcp"))
TRUSTED = {"QWED_MCP_TRUSTED_CODE_EXECUTION": "true", "QWED_MCP_SANDBOX": "none"}
_KEPT = ("PATH", "HOME", "LANG", "TMPDIR")
_LISTENING = "listening"


def environment(**settings: str) -> dict[str, str]:
    """Return the environment of a server: a few inherited variables, and these settings."""
    return {name: os.environ[name] for name in _KEPT if name in os.environ} | settings


class Session:
    """Connected client."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self.portal, self.client = portal, client

    def tools(self) -> dict[str, Tool]:
        listed = self.portal.call(self.client.list_tools)
        return {tool.name: tool for tool in listed.tools}

    def call(self, name: str, arguments: dict[str, Any] | None = None) -> CallToolResult:
        result: CallToolResult = self.portal.call(self.client.call_tool, name, arguments)
        return result

    def run(self, code: str, **more: Any) -> CallToolResult:
        return self.call("execute_python_code", {"code": code, **more})

    def submit(self, code: str) -> str:
        """Submit a background job and return its id."""
        job_id: str = self.run(code, background=True).structured_content["job_id"]
        return job_id

    def status(self, job_id: str) -> CallToolResult:
        return self.call("verification_status", {"job_id": job_id})

    def wait_ended(self, job_id: str) -> CallToolResult:
        """Poll a job until it has ended; return its status."""
        return until(lambda: None if text(status := self.status(job_id)).endswith("...") else status)


def text(result: CallToolResult) -> str:
    """Return the text of a result."""
    (content,) = result.content
    assert content.type == "text"
    return content.text


@contextmanager
def session(server: Any, mode: str = "auto") -> Iterator[Session]:
    """Client of a server, given in any form that the package accepts."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Client(server, mode=mode)) as client:
        yield Session(portal, client)


@contextmanager
def stdio(log: Path | None = None, mode: str = "auto", **settings: str) -> Iterator[Session]:
    """Session over stdio; the server's stderr is appended to `log`."""
    parameters = StdioServerParameters(command=COMMAND, args=[], env=environment(**settings))
    with ExitStack() as stack:
        errors = stack.enter_context(open(log or os.devnull, "a"))
        yield stack.enter_context(session(stdio_client(parameters, errlog=errors), mode))


class HttpServer:
    """Process of `qwed-mcp --http`."""

    def __init__(self, *options: str, **settings: str) -> None:
        self.process = subprocess.Popen(
            [COMMAND, "--http", "--port", "0", *options],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(**settings),
        )
        self.greeting = self._greeting()
        self.url: str = self.greeting["url"]

    def _greeting(self) -> dict[str, Any]:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            event: dict[str, Any] = json.loads(line) if line.startswith("{") else {}
            if event.get("event") == _LISTENING:
                return event
        raise RuntimeError("the server did not start")

    def stop(self) -> str:
        """Stop the server; return its stderr."""
        self.process.send_signal(signal.SIGTERM)
        _, errors = self.process.communicate(timeout=30)
        return errors

    @contextmanager
    def session(self, key: str, mode: str = "auto") -> Iterator[Session]:
        with session(_with_key(self.url, key), mode) as connected:
            yield connected

    def post(self, **more: Any) -> httpx.Response:
        return httpx.post(self.url, timeout=30, **more)


@asynccontextmanager
async def _with_key(url: str, key: str) -> Any:
    # The MCP package needs a client of httpx2, which has the same interface as httpx.
    import httpx2

    async with (
        httpx2.AsyncClient(headers={"X-API-Key": key}, timeout=60) as client,
        streamable_http_client(url, http_client=client) as streams,
    ):
        yield streams
