"""Relay of a call between client and agent: verify the request, forward it, verify the answer."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import UNSET

from qwed.http_client.pool import Headers
from qwed.proxies.backend import Identity
from qwed_a2a.proxy import content as content_module
from qwed_a2a.proxy.artifact_buffer import ArtifactBuffer
from qwed_a2a.proxy.authorizer import MessageAuthorizer
from qwed_a2a.proxy.backend import MessageBackend
from qwed_a2a.proxy.errors import CallRefusedError, ErrorKind
from qwed_a2a.proxy.message_schema import (
    UNFINISHED_STATES,
    A2AStruct,
    CancelTask,
    Metadata,
    SendMessage,
    StreamResponse,
    Task,
    TaskPage,
)
from qwed_a2a.proxy.methods import A2AMethod
from qwed_a2a.proxy.parsing_pool import new_parsing_pool
from qwed_a2a.proxy.session_cache import ConversationNames, DeliveredDigests
from qwed_a2a.proxy.turn_digest import TurnDigest
from qwed_a2a.proxy.upstream import REST, RPC, UpstreamAgent, UpstreamEndpoint, UpstreamLimits

if TYPE_CHECKING:
    from a2a.types import AgentCard

    from qwed_a2a.proxy.card_registry import CardRegistry

_CANCEL_SECONDS = 5.0


class ClientCall(NamedTuple):
    """Parsed request of a client."""

    method: A2AMethod
    params: Any
    sender: Identity
    headers: Headers = ()
    """Client headers that the agent may need."""


class _StreamContext(NamedTuple):
    """Conversation and turn of a stream."""

    conversation: str | None
    turn: TurnDigest


class Relay:
    """Relay between clients and one agent; it raises CallRefusedError with the error for the client."""

    def __init__(
        self, backend: MessageBackend, cards: "CardRegistry", limits: UpstreamLimits, headers: Mapping[str, str]
    ) -> None:
        self._cards = cards
        self.limits = limits
        self._extra_headers = tuple(
            (name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()
        )
        self._anonymous = backend.client
        self._conversations = ConversationNames(lambda: asyncio.get_running_loop().time())
        self.parsing_pool = new_parsing_pool()
        self._authorizer = MessageAuthorizer(
            backend, self._conversations, DeliveredDigests(), limits.verdict_seconds, self.parsing_pool
        )
        self._upstream: tuple[AgentCard, UpstreamAgent] | None = None
        self._cancellations: set[asyncio.Task[None]] = set()

    async def answer(self, call: ClientCall) -> Any:
        """Return the answer to a call with a single answer."""
        return await _HANDLERS[call.method](self, call)

    async def events(self, call: ClientCall) -> AsyncGenerator[StreamResponse, None]:
        """Yield the answers to a streaming call."""
        conversation = await self._admit(call)
        agent = self._agent()
        chunks, turn = ArtifactBuffer(self.limits.answer_bytes), TurnDigest()
        task = ""
        async with aclosing(agent.stream(call.method, call.params, call.headers)) as stream:
            try:
                async for event in stream:
                    task = _require_same_task(event, task)
                    conversation = conversation or _context(event)
                    for passed in await self._release_event(
                        event, chunks, call.sender, _StreamContext(conversation, turn)
                    ):
                        yield passed
                await self._authorizer.authorize_answer(chunks.contents(), call.sender.agent_id, conversation, turn)
                for update in chunks.release():
                    yield StreamResponse(artifact_update=update)
            except CallRefusedError as refused:
                # A subscriber must not cancel a task that another client started.
                if call.method is A2AMethod.STREAM and task and refused.data.get("source") != "upstream":
                    self._cancel(call, task)
                raise

    async def close(self) -> None:
        """Cancel pending work and close the connections."""
        for task in self._cancellations:
            task.cancel()
        await asyncio.gather(*self._cancellations, return_exceptions=True)
        if self._upstream is not None:
            self._upstream[1].close()
        self.parsing_pool.close()

    async def _send(self, call: ClientCall) -> StreamResponse:
        conversation = await self._admit(call)
        event: StreamResponse = await self._agent().call(call.method, call.params, call.headers)
        try:
            turn_conversation = conversation if _ends_turn(event) else None
            await self._authorizer.authorize_answer(
                content_module.contents_of_answer(event), call.sender.agent_id, turn_conversation
            )
        except CallRefusedError:
            if event.task is not UNSET and event.task.status.state in UNFINISHED_STATES:
                self._cancel(call, event.task.id)
            raise
        return event

    async def _read_tasks(self, call: ClientCall) -> Task | TaskPage:
        await self._admit(call)
        answer: Task | TaskPage = await self._agent().call(call.method, call.params, call.headers)
        for task in (answer,) if isinstance(answer, Task) else answer.tasks:
            await self._authorizer.authorize_answer(
                content_module.contents_of_answer(task), call.sender.agent_id, _conversation_of(answer)
            )
        return answer

    async def _extended_card(self, call: ClientCall) -> "AgentCard":
        await self._admit(call)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in call.headers}
        card = await self._cards.extended(headers)
        if isinstance(card, str):
            raise CallRefusedError(ErrorKind.EXTENDED_AGENT_CARD_NOT_CONFIGURED, card)
        return card

    async def _refuse_push(self, _call: ClientCall) -> None:
        raise CallRefusedError(ErrorKind.PUSH_NOTIFICATION_NOT_SUPPORTED, _PUSH_REFUSAL)

    async def _admit(self, call: ClientCall) -> str | None:
        """Authorize the call and return its conversation if it is a message; raise CallRefusedError if not allowed."""
        refusal = self._cards.refusal()
        if refusal is not None:
            raise CallRefusedError(
                ErrorKind.UNSUPPORTED_OPERATION, refusal, {"verdict": "blocked", "reason": refusal}, http=503
            )
        params = call.params
        if not isinstance(params, SendMessage):
            await self._authorizer.authorize_read(
                call.method.value.rpc, _params_payload(params), _request_metadata(params), call.sender
            )
            return None
        if params.configuration and params.configuration.task_push_notification_config is not UNSET:
            raise CallRefusedError(ErrorKind.PUSH_NOTIFICATION_NOT_SUPPORTED, _PUSH_REFUSAL)
        content = content_module.content_of_message(params.message)
        return await self._authorizer.authorize_message(
            content, _request_metadata(params), call.sender, self._conversation_name(params, call.sender)
        )

    def _conversation_name(self, params: SendMessage, sender: Identity) -> str | None:
        """Return the conversation of a message; anonymous clients share one identity but no conversation."""
        if params.message.context_id:
            return params.message.context_id
        return None if sender == self._anonymous else self._conversations.current(sender.agent_id)

    async def _release_event(
        self, event: StreamResponse, chunks: ArtifactBuffer, receiver: Identity, context: _StreamContext
    ) -> list[StreamResponse]:
        """Return the events that may be delivered now: this one, and the chunks held for it."""
        if event.artifact_update is not UNSET:
            name = event.artifact_update.artifact.artifact_id
            if not chunks.add(event.artifact_update):
                return []
            await self._authorizer.authorize_answer(chunks.contents(name), receiver.agent_id, None, context.turn)
            return [StreamResponse(artifact_update=update) for update in chunks.release(name)]
        ends_turn = _ends_turn(event)
        contents = (
            [*chunks.contents(), *content_module.contents_of_answer(event)]
            if ends_turn
            else content_module.contents_of_answer(event)
        )
        await self._authorizer.authorize_answer(
            contents, receiver.agent_id, context.conversation if ends_turn else None, context.turn
        )
        before = [StreamResponse(artifact_update=update) for update in chunks.release()] if ends_turn else []
        if event.task is not UNSET:
            chunks.set_known(event.task)
        return [*before, event]

    def _agent(self) -> UpstreamAgent:
        card = self._cards.upstream()
        if self._upstream is None or self._upstream[0] is not card:
            agent = UpstreamAgent(_endpoint(card), self.limits, self._extra_headers, self.parsing_pool)
            if self._upstream is not None:
                self._upstream[1].close()
            self._upstream = card, agent
        return self._upstream[1]

    def _cancel(self, call: ClientCall, task: str) -> None:
        """Ask the agent to cancel the task, in the background; it may ignore that."""
        task_handle = asyncio.create_task(self._send_cancel(call, CancelTask(tenant=call.params.tenant, id=task)))
        self._cancellations.add(task_handle)
        task_handle.add_done_callback(self._cancellations.discard)

    async def _send_cancel(self, call: ClientCall, params: CancelTask) -> None:
        with suppress(CallRefusedError, TimeoutError):
            async with asyncio.timeout(_CANCEL_SECONDS):
                await self._agent().call(A2AMethod.CANCEL, params, call.headers)


_PUSH_REFUSAL = "push notifications would bypass this proxy: use streaming, or poll the task"
_HANDLERS: dict[A2AMethod, Callable[[Relay, ClientCall], Any]] = {
    A2AMethod.SEND: Relay._send,
    A2AMethod.GET: Relay._read_tasks,
    A2AMethod.LIST: Relay._read_tasks,
    A2AMethod.CANCEL: Relay._read_tasks,
    A2AMethod.CARD: Relay._extended_card,
    A2AMethod.PUSH: Relay._refuse_push,
}


def _endpoint(card: "AgentCard") -> UpstreamEndpoint:
    """Return the interface of the agent that the proxy uses."""
    interfaces = {
        interface.protocol_binding: interface
        for interface in reversed(card.supported_interfaces)
        if interface.protocol_version.split(".")[0] in ("", "1")
    }
    for binding in (RPC, REST):
        if binding in interfaces:
            return UpstreamEndpoint(interfaces[binding].url, binding, interfaces[binding].tenant)
    message = "the agent's card has no supported interface: JSONRPC or HTTP+JSON of A2A 1.x"
    raise CallRefusedError(ErrorKind.INVALID_AGENT_RESPONSE, message, {"source": "upstream"}, http=502)


def _params_payload(params: A2AStruct) -> dict[str, Any]:
    members: dict[str, Any] = msgspec.to_builtins(params)
    return {"params": members}


def _request_metadata(params: A2AStruct) -> Metadata:
    """Return the metadata of a request."""
    return getattr(params, "metadata", UNSET) or {}


def _task_of(event: StreamResponse) -> str:
    if event.task is not UNSET:
        return event.task.id
    update = event.status_update or event.artifact_update
    return update.task_id if update else ""


def _require_same_task(event: StreamResponse, task: str) -> str:
    """Return the task of a stream; raise CallRefusedError if an event is about another one."""
    named = _task_of(event) or task
    if task and named != task:
        message = "the agent did not answer: its stream continues with another task"
        raise CallRefusedError(ErrorKind.INVALID_AGENT_RESPONSE, message, {"source": "upstream"}, http=502)
    return named


def _context(event: StreamResponse) -> str | None:
    members = (event.task, event.message, event.status_update, event.artifact_update)
    return next((member.context_id for member in members if member is not UNSET), None) or None


def _conversation_of(answer: Task | TaskPage) -> str | None:
    """Return the conversation of a finished task; an unfinished task or a list takes no step."""
    is_finished = isinstance(answer, Task) and answer.status.state not in UNFINISHED_STATES
    return answer.context_id or None if isinstance(answer, Task) and is_finished else None


def _ends_turn(event: StreamResponse) -> bool:
    """Return True if no more chunks will follow, so that held chunks are released before the end of the task."""
    status = event.task.status if event.task else event.status_update.status if event.status_update else None
    return status is None or status.state not in UNFINISHED_STATES
