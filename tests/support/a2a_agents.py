"""Real agents of the official package, served over HTTP on this machine."""

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


def make_card(base: str, name: str = "clerk", *, bindings: tuple[str, ...] = ("JSONRPC", "HTTP+JSON")) -> AgentCard:
    """Return the card of an agent below this URL."""
    urls = {"JSONRPC": f"{base}/rpc", "HTTP+JSON": f"{base}/rest"}
    return AgentCard(
        name=name,
        description="does what it is told",
        version="1.0",
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="s", name="s", description="s", tags=["t"])],
        supported_interfaces=[
            AgentInterface(url=urls[binding], protocol_binding=binding, protocol_version="1.0") for binding in bindings
        ],
    )


class ScriptedAgent(AgentExecutor):
    """Agent that does what a message says: `answer <text>`, `task <text>`, `stream <a|b|c>` and so on."""

    def __init__(self) -> None:
        self.received: list[Message] = []
        self.headers: list[dict[str, str]] = []
        self.cancelled: list[str] = []

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        self.received.append(context.message)
        self.headers.append(dict(context.call_context.state.get("headers", {})) if context.call_context else {})
        word, _, rest = get_message_text(context.message).partition(" ")
        await _BEHAVIOURS.get(word, _answer)(context, event_queue, rest)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        self.cancelled.append(context.task_id or "")
        await TaskUpdater(event_queue, context.task_id or "", context.context_id or "").cancel()


Behaviour = Callable[[RequestContext, EventQueue, str], Awaitable[None]]


async def _answer(context: RequestContext, queue: EventQueue, text: str) -> None:
    """Send one message: the text, and the data that was received."""
    message = new_text_message(text, role=Role.ROLE_AGENT, context_id=context.context_id)
    for part in context.message.parts if context.message else ():
        if part.HasField("data"):
            message.parts.append(part)
    await queue.enqueue_event(message)


async def _task(context: RequestContext, queue: EventQueue, text: str) -> None:
    """Complete a task with one artifact."""
    updater = await _start_task(context, queue)
    await updater.add_artifact([new_text_part(text)], name="result")
    await updater.complete(updater.new_agent_message([new_text_part("done")]))


async def _stream(context: RequestContext, queue: EventQueue, text: str) -> None:
    """Stream the artifact of a task in chunks."""
    updater = await _start_task(context, queue)
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
    """Send a status, and then run until cancelled."""
    updater = await _start_task(context, queue)
    await updater.update_status(TaskState.TASK_STATE_WORKING, updater.new_agent_message([new_text_part(text)]))
    await asyncio.Event().wait()


async def _backwards(context: RequestContext, queue: EventQueue, text: str) -> None:
    """Complete a task with the reversed text as artifact, so that the request does not contain it."""
    await _task(context, queue, text[::-1])


async def _forwards(context: RequestContext, queue: EventQueue, text: str) -> None:
    """Do what the reversed text says."""
    word, _, rest = text[::-1].partition(" ")
    await _BEHAVIOURS[word](context, queue, rest)


async def _hold(context: RequestContext, queue: EventQueue, text: str) -> None:
    """Send a harmless status, then the reversed text, and then nothing."""
    updater = await _start_task(context, queue)
    for status_text in ("working on it", text[::-1]):
        await updater.update_status(
            TaskState.TASK_STATE_WORKING, updater.new_agent_message([new_text_part(status_text)])
        )
    await asyncio.Event().wait()


async def _fail(context: RequestContext, queue: EventQueue, text: str) -> None:
    """Raise an error of the agent, whose text is not verified."""
    raise InvalidParamsError(f"the agent says {text}")


async def _start_task(context: RequestContext, queue: EventQueue) -> TaskUpdater:
    task_id, context_id = context.task_id or "", context.context_id or ""
    status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
    await queue.enqueue_event(Task(id=task_id, context_id=context_id, status=status, history=[context.message]))
    return TaskUpdater(queue, task_id, context_id)


_BEHAVIOURS: dict[str, Behaviour] = {
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
    """Return the agent's application in both bindings."""
    handler = DefaultRequestHandler(agent_executor=executor, task_store=InMemoryTaskStore(), agent_card=card)
    return Starlette(
        routes=[
            *create_agent_card_routes(card),
            *create_jsonrpc_routes(handler, "/rpc"),
            *create_rest_routes(handler, path_prefix="/rest"),
        ]
    )


@contextmanager
def listening_socket() -> Iterator[tuple[socket.socket, str]]:
    """Yield a listening socket and its URL."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        yield listener, f"http://127.0.0.1:{listener.getsockname()[1]}"


@contextmanager
def serve_app(app: Any, listener: socket.socket) -> Iterator[None]:
    """Serve an application until the block ends."""
    # Several servers share one interpreter: with the default switch interval they mostly wait for each other.
    previous_interval = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)
    ready = threading.Event()
    server = _Server(uvicorn.Config(app, log_level="error", lifespan="auto", timeout_graceful_shutdown=2), ready)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])), daemon=True)
    thread.start()
    assert ready.wait(20)
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(20)
        sys.setswitchinterval(previous_interval)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: threading.Event) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready.set()

    def install_signal_handlers(self) -> None:
        """Do nothing: it runs in a thread."""
