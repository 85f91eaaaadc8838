"""Latency that `qwed-mcp proxy` adds to a tool call over stdio."""

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters

from benchmarks.measure import added
from benchmarks.report import Row, Say, absolute, at_most
from benchmarks.servers import qwed_server

CALLS = 100
_SERVER = """
from mcp.server import MCPServer
server = MCPServer("bench")

@server.tool()
def get_weather(city: str) -> str:
    return f"rain in {city}"

server.run("stdio")
"""
STRAIGHT = "a call of a tool over stdio"
OWN = "the same through the proxy, a Gate of its own"
SERVED = "the same through the proxy, a server over HTTP"


def rows(rounds: int, _say: Say) -> list[Row]:
    """Return the latency that each path adds to the direct one."""
    with contenders() as running:
        seen, more = added(running, STRAIGHT, rounds)
    aims = {OWN: at_most(3)}
    return [
        *(absolute(f"{name}: added, ms", values, aims.get(name)) for name, values in more.items()),
        *(absolute(f"{name}, ms", values) for name, values in seen.items()),
    ]


@contextmanager
def contenders() -> Iterator[dict[str, Callable[[], float]]]:
    """Yield functions that return the median milliseconds of some calls, one per path."""
    with TemporaryDirectory() as folder, ExitStack() as stack:
        home = Path(folder)
        script = home / "bench.py"
        script.write_text(_SERVER)
        running = stack.enter_context(qwed_server(home / "data"))
        portal = stack.enter_context(start_blocking_portal())
        served = {"QWED_BASE_URL": running.base, "QWED_API_KEY": running.owner_key}
        proxy = str(Path(sys.executable).with_name("qwed-mcp"))
        server = [sys.executable, str(script)]
        ways = {
            STRAIGHT: (server, {}),
            OWN: ([proxy, "proxy", "--name", "own", "--", *server], {}),
            SERVED: ([proxy, "proxy", "--name", "served", "--", *server], served),
        }
        yield {
            name: _timed(portal, stack.enter_context(_client(portal, command, home, more)))
            for name, (command, more) in ways.items()
        }


@contextmanager
def _client(portal: BlockingPortal, command: list[str], home: Path, more: dict[str, str]) -> Iterator[Client]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("QWED_")}
    environment = {**kept, "HOME": str(home), **more}
    told = StdioServerParameters(command=command[0], args=command[1:], env=environment)
    with portal.wrap_async_context_manager(Client(told)) as client:
        yield client


def _timed(portal: BlockingPortal, client: Client) -> Callable[[], float]:
    async def calls() -> float:
        took = []
        for number in range(CALLS):
            begun = time.perf_counter()
            _passed(await client.call_tool("get_weather", {"city": f"city {number}"}))
            took.append((time.perf_counter() - begun) * 1000)
        return statistics.median(took)

    return lambda: portal.call(calls)


def _passed(result: Any) -> None:
    if result.is_error:
        raise RuntimeError(f"the benchmark was refused: {result.content}")
