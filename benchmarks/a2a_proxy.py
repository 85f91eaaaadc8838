"""Latency that `qwed a2a proxy` adds to a message of the official client."""

import os
import re
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal

from benchmarks.measure import added
from benchmarks.report import Row, Say, absolute, at_most
from benchmarks.servers import qwed_server

MESSAGES = 100
_AGENT = """
import socket, sys
import uvicorn
from a2a.helpers.proto_helpers import new_text_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Role
from starlette.applications import Starlette

class Weather(AgentExecutor):
    async def execute(self, context, queue):
        said = f"rain in {context.message.parts[0].text}"
        await queue.enqueue_event(new_text_message(said, role=Role.ROLE_AGENT, context_id=context.context_id))

    async def cancel(self, context, queue):
        pass

listening = socket.socket()
listening.bind(("127.0.0.1", 0))
base = f"http://127.0.0.1:{listening.getsockname()[1]}"
card = AgentCard(
    name="bench", description="the weather", version="1.0", capabilities=AgentCapabilities(),
    default_input_modes=["text/plain"], default_output_modes=["text/plain"],
    skills=[AgentSkill(id="weather", name="weather", description="the weather", tags=["weather"])],
    supported_interfaces=[AgentInterface(url=base + "/", protocol_binding="JSONRPC", protocol_version="1.0")],
)
handler = DefaultRequestHandler(agent_executor=Weather(), task_store=InMemoryTaskStore(), agent_card=card)
app = Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/")])
print("listening on", base, flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="critical")).run(sockets=[listening])
"""
STRAIGHT = "a message of an A2A client"
OWN = "the same message through the proxy, a Gate of its own"
SERVED = "the same message through the proxy, a server over HTTP"
_LISTENS = re.compile(r"listening on (http://[^\s:]+:\d+)")


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
    """Yield functions that return the median milliseconds of some messages, one per path."""
    with TemporaryDirectory() as folder, ExitStack() as stack:
        home = Path(folder)
        (home / "agent.py").write_text(_AGENT)
        running = stack.enter_context(qwed_server(home / "data", QWED_A2A_MESSAGES_PER_MINUTE="0"))
        portal = stack.enter_context(start_blocking_portal())
        agent = stack.enter_context(_process([sys.executable, str(home / "agent.py")], home, {}))
        member = {"QWED_BASE_URL": running.base, "QWED_API_KEY": running.owner_key}
        proxy = [str(Path(sys.executable).with_name("qwed")), "a2a", "proxy", "--listen", "127.0.0.1:0"]
        ways = {STRAIGHT: agent}
        for name, called, more in ((OWN, "own", {}), (SERVED, "served", member)):
            command = [*proxy, "--upstream", agent, "--name", called]
            ways[name] = stack.enter_context(_process(command, home, {"QWED_A2A_MESSAGES_PER_MINUTE": "0", **more}))
        yield {name: _timed(portal, stack.enter_context(_client(portal, url))) for name, url in ways.items()}


@contextmanager
def _process(command: list[str], home: Path, more: dict[str, str]) -> Iterator[str]:
    """Start a program and yield the address it listens on."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("QWED_")}
    environment = {**kept, "HOME": str(home), **more}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield _address(process)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


def _address(process: "subprocess.Popen[str]") -> str:
    said = []
    for line in process.stdout or ():
        said.append(line)
        found = _LISTENS.search(line)
        if found:
            return found[1]
    raise RuntimeError(f"it did not start: {''.join(said)}")


@contextmanager
def _client(portal: BlockingPortal, url: str) -> Iterator[Any]:
    import httpx
    from a2a.client import ClientConfig, create_client

    async def made() -> tuple[Any, httpx.AsyncClient]:
        http = httpx.AsyncClient(timeout=20)
        return await create_client(url, client_config=ClientConfig(httpx_client=http, streaming=False)), http

    client, http = portal.call(made)
    yield client
    portal.call(http.aclose)


def _timed(portal: BlockingPortal, client: Any) -> Callable[[], float]:
    from a2a.helpers.proto_helpers import new_text_message
    from a2a.types import Role, SendMessageRequest

    async def messages() -> float:
        took = []
        for number in range(MESSAGES):
            # One conversation per message: a hundred steps exceed the step limit.
            said = new_text_message(f"city {number}", role=Role.ROLE_USER, context_id=f"{time.monotonic_ns()}")
            begun = time.perf_counter()
            async for _ in client.send_message(SendMessageRequest(message=said)):
                pass
            took.append((time.perf_counter() - begun) * 1000)
        return statistics.median(took)

    return lambda: portal.call(messages)
