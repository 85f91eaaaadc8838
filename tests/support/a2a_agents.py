"""Real agents of the official package, served over HTTP on this machine, and the application of a proxy beside them."""

import asyncio
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from a2a.helpers.proto_helpers import (
    get_message_text,
    new_text_message,
    new_text_part,
)
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Artifact,
    Message,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
)
from a2a.utils.errors import InvalidParamsError
from starlette.applications import Starlette


def card_of(base: str, name: str = "clerk", *, bindings: tuple[str, ...] = ("JSONRPC", "HTTP+JSON")) -> AgentCard:
    """The card of an agent that is found below an address."""
    where = {"JSONRPC": f"{base}/rpc", "HTTP+JSON": f"{base}/rest"}
    return AgentCard(
        name=name,
        description="does what it is told",
        version="1.0",
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="s", name="s", description="s", tags=["t"])],
        supported_interfaces=[
            AgentInterface(url=where[each], protocol_binding=each, protocol_version="1.0") for each in bindings
        ],
    )


class Scripted(AgentExecutor):
    """Does what a message tells it: `answer <text>`, `task <text>`, `stream <a|b|c>` and so on."""

    def __init__(self) -> None:
        self.heard: list[Message] = []
        self.headers: list[dict[str, str]] = []
        self.cancelled: list[str] = []

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        self.heard.append(context.message)
        self.headers.append(dict(context.call_context.state.get("headers", {})) if context.call_context else {})
        word, _, rest = get_message_text(context.message).partition(" ")
        await _DEEDS.get(word, _answer)(context, event_queue, rest)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        self.cancelled.append(context.task_id or "")
        await TaskUpdater(event_queue, context.task_id or "", context.context_id or "").cancel()


Deed = Callable[[RequestContext, EventQueue, str], Awaitable[None]]


async def _answer(context: RequestContext, queue: EventQueue, text: str) -> None:
    """One message: the text, and the data that came."""
    message = new_text_message(text, role=Role.ROLE_AGENT, context_id=context.context_id)
    for part in context.message.parts if context.message else ():
        if part.HasField("data"):
            message.parts.append(part)
    await queue.enqueue_event(message)


async def _task(context: RequestContext, queue: EventQueue, text: str) -> None:
    """A task with one artifact, done at once."""
    updater = await _begun(context, queue)
    await updater.add_artifact([new_text_part(text)], name="result")
    await updater.complete(updater.new_agent_message([new_text_part("done")]))


async def _stream(context: RequestContext, queue: EventQueue, text: str) -> None:
    """A task whose artifact comes in pieces."""
    updater = await _begun(context, queue)
    pieces = text.split("|")
    for number, piece in enumerate(pieces):
        await queue.enqueue_event(
            TaskArtifactUpdateEvent(
                task_id=updater.task_id,
                context_id=updater.context_id,
                artifact=Artifact(artifact_id="a", name="pieces", parts=[new_text_part(piece)]),
                append=number > 0,
                last_chunk=number == len(pieces) - 1,
            )
        )
        await updater.update_status(
            TaskState.TASK_STATE_WORKING, updater.new_agent_message([new_text_part(f"piece {number}")])
        )
    await updater.complete()


async def _wait(context: RequestContext, queue: EventQueue, text: str) -> None:
    """A task that says something, and then goes on until it is cancelled."""
    updater = await _begun(context, queue)
    await updater.update_status(TaskState.TASK_STATE_WORKING, updater.new_agent_message([new_text_part(text)]))
    await asyncio.Event().wait()


async def _backwards(context: RequestContext, queue: EventQueue, text: str) -> None:
    """A task with one artifact that nobody could see in the message."""
    await _task(context, queue, text[::-1])


async def _forwards(context: RequestContext, queue: EventQueue, text: str) -> None:
    """Whatever is told from its end to its beginning."""
    word, _, rest = text[::-1].partition(" ")
    await _DEEDS[word](context, queue, rest)


async def _hold(context: RequestContext, queue: EventQueue, text: str) -> None:
    """A task that says something harmless, then something else, and then nothing more."""
    updater = await _begun(context, queue)
    for said in ("working on it", text[::-1]):
        await updater.update_status(TaskState.TASK_STATE_WORKING, updater.new_agent_message([new_text_part(said)]))
    await asyncio.Event().wait()


async def _fail(context: RequestContext, queue: EventQueue, text: str) -> None:
    """An error of the agent's own, whose words nobody has looked at."""
    raise InvalidParamsError(f"the agent says {text}")


async def _begun(context: RequestContext, queue: EventQueue) -> TaskUpdater:
    task_id, context_id = context.task_id or "", context.context_id or ""
    status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
    await queue.enqueue_event(Task(id=task_id, context_id=context_id, status=status, history=[context.message]))
    return TaskUpdater(queue, task_id, context_id)


_DEEDS: dict[str, Deed] = {
    "answer": _answer,
    "task": _task,
    "stream": _stream,
    "backwards": _backwards,
    "forwards": _forwards,
    "hold": _hold,
    "wait": _wait,
    "fail": _fail,
}


def agent_app(executor: AgentExecutor, card: AgentCard) -> Starlette:
    """The agent, in both bindings."""
    handler = DefaultRequestHandler(agent_executor=executor, task_store=InMemoryTaskStore(), agent_card=card)
    return Starlette(
        routes=[
            *create_agent_card_routes(card),
            *create_jsonrpc_routes(handler, "/rpc"),
            *create_rest_routes(handler, path_prefix="/rest"),
        ]
    )


@contextmanager
def listening() -> Iterator[tuple[socket.socket, str]]:
    """A socket, and the address of whoever will serve on it."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        found.listen(64)
        yield found, f"http://127.0.0.1:{found.getsockname()[1]}"


@contextmanager
def served(app: Any, on: socket.socket) -> Iterator[None]:
    """Serve an application until the block ends."""
    # Several servers share one interpreter here: with the usual turns each would wait for the others most of the time.
    turns = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)
    ready = threading.Event()
    server = _Server(uvicorn.Config(app, log_level="error", lifespan="auto", timeout_graceful_shutdown=2), ready)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[on])), daemon=True)
    thread.start()
    assert ready.wait(20)
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(20)
        sys.setswitchinterval(turns)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: threading.Event) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready.set()

    def install_signal_handlers(self) -> None:
        """Not in a thread."""
