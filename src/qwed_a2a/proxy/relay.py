"""What happens to a call between the client and the agent: asked about, passed on, and its answer asked about too."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import UNSET

from qwed_a2a.proxy import contents
from qwed_a2a.proxy.beside import Beside
from qwed_a2a.proxy.chunks import Chunks
from qwed_a2a.proxy.faults import Fault, Refused
from qwed_a2a.proxy.judge import Judge
from qwed_a2a.proxy.kernel import Kernel, Party
from qwed_a2a.proxy.memory import Conversations, Shown
from qwed_a2a.proxy.terms import ON_ITS_WAY, CancelTask, Event, Metadata, Said, SendMessage, Task, TaskPage
from qwed_a2a.proxy.turn import Turn
from qwed_a2a.proxy.upstream import REST, RPC, Bounds, Endpoint, Headers, Upstream
from qwed_a2a.proxy.verbs import Verb

if TYPE_CHECKING:
    from a2a.types import AgentCard

    from qwed_a2a.proxy.book import CardBook

_CANCELLING = 5.0


class Call(NamedTuple):
    """One request of a client, understood."""

    verb: Verb
    params: Any
    sender: Party
    headers: Headers = ()
    """Those of the client that the agent may need."""


class _Talk(NamedTuple):
    """What a stream is part of."""

    conversation: str | None
    turn: Turn


class Relay:
    """Stands between clients and one agent; Refused is what a client is told in place of an answer."""

    def __init__(self, kernel: Kernel, book: "CardBook", bounds: Bounds, headers: Mapping[str, str]) -> None:
        self._book = book
        self.bounds = bounds
        self._more = tuple((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers.items())
        self._nobody = kernel.client
        self._conversations = Conversations(lambda: asyncio.get_running_loop().time())
        self.beside = Beside()
        self._judge = Judge(kernel, self._conversations, Shown(), bounds.verdict_seconds, self.beside)
        self._upstream: tuple[AgentCard, Upstream] | None = None
        self._ending: set[asyncio.Task[None]] = set()

    async def answer(self, call: Call) -> Any:
        """The answer to a call that has one."""
        return await _ANSWERED[call.verb](self, call)

    async def events(self, call: Call) -> AsyncGenerator[Event, None]:
        """The answers to a call that has many."""
        conversation = await self._admit(call)
        agent = self._agent()
        chunks, turn = Chunks(self.bounds.answer_bytes), Turn()
        task = ""
        async with aclosing(agent.stream(call.verb, call.params, call.headers)) as stream:
            try:
                async for event in stream:
                    task = _same_task(event, task)
                    conversation = conversation or _context(event)
                    for passed in await self._passed(event, chunks, call.sender, _Talk(conversation, turn)):
                        yield passed
                await self._judge.answer(chunks.whole(), call.sender.agent_id, conversation, turn)
                for held in chunks.release():
                    yield Event(artifact_update=held)
            except Refused as refused:
                # Whoever only watches must not end what somebody else began.
                if call.verb is Verb.STREAM and task and refused.data.get("source") != "upstream":
                    self._cancel(call, task)
                raise

    async def close(self) -> None:
        """Give back what is held."""
        for each in self._ending:
            each.cancel()
        await asyncio.gather(*self._ending, return_exceptions=True)
        if self._upstream is not None:
            self._upstream[1].close()
        self.beside.close()

    async def _send(self, call: Call) -> Event:
        conversation = await self._admit(call)
        event: Event = await self._agent().call(call.verb, call.params, call.headers)
        try:
            talk = conversation if _rests(event) else None
            await self._judge.answer(contents.of_answer(event), call.sender.agent_id, talk)
        except Refused:
            if event.task is not UNSET and event.task.status.state in ON_ITS_WAY:
                self._cancel(call, event.task.id)
            raise
        return event

    async def _read(self, call: Call) -> Task | TaskPage:
        await self._admit(call)
        found: Task | TaskPage = await self._agent().call(call.verb, call.params, call.headers)
        for task in (found,) if isinstance(found, Task) else found.tasks:
            await self._judge.answer(contents.of_answer(task), call.sender.agent_id, _talk_of(found))
        return found

    async def _card(self, call: Call) -> "AgentCard":
        await self._admit(call)
        sent = {name.decode("latin-1"): value.decode("latin-1") for name, value in call.headers}
        card = await self._book.extended(sent)
        if isinstance(card, str):
            raise Refused(Fault.EXTENDED_AGENT_CARD_NOT_CONFIGURED, card)
        return card

    async def _push(self, _call: Call) -> None:
        raise Refused(Fault.PUSH_NOTIFICATION_NOT_SUPPORTED, _PUSH)

    async def _admit(self, call: Call) -> str | None:
        """The conversation it is in, where it is a message; Refused where it may not reach the agent."""
        held = self._book.refusal()
        if held is not None:
            raise Refused(Fault.UNSUPPORTED_OPERATION, held, {"verdict": "blocked", "reason": held}, http=503)
        params = call.params
        if not isinstance(params, SendMessage):
            await self._judge.reading(call.verb.value.rpc, _about(params), _noted(params), call.sender)
            return None
        if params.configuration and params.configuration.task_push_notification_config is not UNSET:
            raise Refused(Fault.PUSH_NOTIFICATION_NOT_SUPPORTED, _PUSH)
        content = contents.of_message(params.message)
        return await self._judge.message(content, _noted(params), call.sender, self._named(params, call.sender))

    def _named(self, params: SendMessage, sender: Party) -> str | None:
        """The conversation of a message; many may send as the client that shows nothing, and say nothing together."""
        if params.message.context_id:
            return params.message.context_id
        return None if sender == self._nobody else self._conversations.of(sender.agent_id)

    async def _passed(self, event: Event, chunks: Chunks, to: Party, talk: _Talk) -> list[Event]:
        """What of an event, and of those that were held for it, may go on now."""
        if event.artifact_update is not UNSET:
            name = event.artifact_update.artifact.artifact_id
            if not chunks.hold(event.artifact_update):
                return []
            await self._judge.answer(chunks.whole(name), to.agent_id, None, talk.turn)
            return [Event(artifact_update=held) for held in chunks.release(name)]
        rests = _rests(event)
        whole = [*chunks.whole(), *contents.of_answer(event)] if rests else contents.of_answer(event)
        await self._judge.answer(whole, to.agent_id, talk.conversation if rests else None, talk.turn)
        before = [Event(artifact_update=held) for held in chunks.release()] if rests else []
        if event.task is not UNSET:
            chunks.know(event.task)
        return [*before, event]

    def _agent(self) -> Upstream:
        card = self._book.upstream()
        if self._upstream is None or self._upstream[0] is not card:
            found = Upstream(_endpoint(card), self.bounds, self._more, self.beside)
            if self._upstream is not None:
                self._upstream[1].close()
            self._upstream = card, found
        return self._upstream[1]

    def _cancel(self, call: Call, task: str) -> None:
        """Tell the agent that nobody will hear more of this; whether it listens is its own affair."""
        doing = asyncio.create_task(self._cancelled(call, CancelTask(tenant=call.params.tenant, id=task)))
        self._ending.add(doing)
        doing.add_done_callback(self._ending.discard)

    async def _cancelled(self, call: Call, params: CancelTask) -> None:
        with suppress(Refused, TimeoutError):
            async with asyncio.timeout(_CANCELLING):
                await self._agent().call(Verb.CANCEL, params, call.headers)


_PUSH = "push notifications would reach you past this proxy: stream, or ask for the task"
_ANSWERED: dict[Verb, Callable[[Relay, Call], Any]] = {
    Verb.SEND: Relay._send,
    Verb.GET: Relay._read,
    Verb.LIST: Relay._read,
    Verb.CANCEL: Relay._read,
    Verb.CARD: Relay._card,
    Verb.PUSH: Relay._push,
}


def _endpoint(card: "AgentCard") -> Endpoint:
    """Where to speak to the agent."""
    found = {
        each.protocol_binding: each
        for each in reversed(card.supported_interfaces)
        if each.protocol_version.split(".")[0] in ("", "1")
    }
    for binding in (RPC, REST):
        if binding in found:
            return Endpoint(found[binding].url, binding, found[binding].tenant)
    said = "the agent's card names no interface that is spoken here: JSONRPC or HTTP+JSON of A2A 1.x"
    raise Refused(Fault.INVALID_AGENT_RESPONSE, said, {"source": "upstream"}, http=502)


def _about(params: Said) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(params)
    return {"params": told}


def _noted(params: Said) -> Metadata:
    """What stands beside a message, or with a call that is none."""
    return getattr(params, "metadata", UNSET) or {}


def _task_of(event: Event) -> str:
    if event.task is not UNSET:
        return event.task.id
    update = event.status_update or event.artifact_update
    return update.task_id if update else ""


def _same_task(event: Event, task: str) -> str:
    """The task that a stream is about; whatever is said of another one was not asked for."""
    named = _task_of(event) or task
    if task and named != task:
        said = "the agent did not answer: its stream goes on with another task"
        raise Refused(Fault.INVALID_AGENT_RESPONSE, said, {"source": "upstream"}, http=502)
    return named


def _context(event: Event) -> str | None:
    said = (event.task, event.message, event.status_update, event.artifact_update)
    return next((each.context_id for each in said if each is not UNSET), None) or None


def _talk_of(found: Task | TaskPage) -> str | None:
    """The conversation in which a task that is read is said; on its way, or in a list, it is nobody's turn."""
    rests = isinstance(found, Task) and found.status.state not in ON_ITS_WAY
    return found.context_id or None if isinstance(found, Task) and rests else None


def _rests(event: Event) -> bool:
    """Whether nothing more of what is held will come: it must not be overtaken by the end of its task."""
    status = event.task.status if event.task else event.status_update.status if event.status_update else None
    return status is None or status.state not in ON_ITS_WAY
