"""Asks the kernel about whatever passes, and says no in the words of A2A where it says no."""

import asyncio
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
from pydantic import ValidationError

from qwed.words import ErrorCode
from qwed_a2a.message import AgentMessage, PayloadType
from qwed_a2a.payloads import Unread
from qwed_a2a.proxy.beside import Beside
from qwed_a2a.proxy.contents import Content
from qwed_a2a.proxy.faults import Fault, Refused
from qwed_a2a.proxy.kernel import Kernel, Party
from qwed_a2a.proxy.memory import Conversations, Shown
from qwed_a2a.proxy.reading import found_in_all
from qwed_a2a.proxy.terms import Metadata
from qwed_a2a.proxy.turn import Turn
from qwed_a2a.verdict import EngineName, VerificationVerdict
from qwed_sdk.errors import QWEDError

_ONE_MESSAGE = 262_144
"""Bytes of several contents that are asked about together."""
_encode = msgspec.json.Encoder(order="sorted").encode
_TOO_FAST, _ALL_STEPS = ErrorCode.RATE_LIMITED.code, ErrorCode.STEP_LIMIT.code
_GO_ON = (
    "begin another conversation, with another `contextId` or none, or have QWED_MAX_STEPS raised where it is decided"
)
_SPEAK_OF_NOTHING = frozenset({EngineName.TRUST_BOUNDARY, EngineName.ERROR_HANDLER})
"""Who says nothing of what a message holds."""
_FAULTS = {
    EngineName.FINANCE_GUARD: Fault.INVALID_PARAMS,
    EngineName.LOGIC_GUARD: Fault.INVALID_PARAMS,
    EngineName.CODE_GUARD: Fault.INVALID_PARAMS,
    EngineName.TRUST_BOUNDARY: Fault.UNSUPPORTED_OPERATION,
}
_UNPROVEN = ErrorCode.UNKNOWN_CREDENTIAL.code
_PROVE = "send the token of that agent in `QWED-Agent-Token`"


class Way(NamedTuple):
    """From whom, to whom, in which conversation."""

    sender: Party
    receiver: str
    conversation: str | None
    answer: bool = False
    """Whether it is the agent behind the proxy that speaks."""


class Judge:
    """Raises Refused where something must not pass; what is shown again to whoever has seen it is not asked about."""

    def __init__(
        self, kernel: Kernel, conversations: Conversations, shown: Shown, seconds: float, beside: Beside
    ) -> None:
        self._kernel = kernel
        self._beside = beside
        self._conversations = conversations
        self._shown = shown
        self._seconds = seconds

    async def message(self, content: Content, noted: Metadata, sender: Party, conversation: str | None) -> str | None:
        """A message of a client, and what is noted beside it, may reach the agent; the conversation it is in now."""
        way = Way(sender, self._kernel.upstream.agent_id, conversation)
        way = await self._all([content.with_note(noted)], way, Turn())
        self._shown.note(sender.agent_id, content.digest())
        return way.conversation

    async def reading(self, verb: str, about: dict[str, Any], noted: Metadata, sender: Party) -> None:
        """A client may ask the agent for this, which is no message of a conversation."""
        way = Way(sender, self._kernel.upstream.agent_id, None)
        await self._ask(PayloadType.DATA_QUERY, {"operation": verb, **about}, way)
        await self._all([Content(metadata=noted)] if noted else [], way)

    async def answer(
        self, contents: list[Content], receiver: str, conversation: str | None, turn: Turn | None = None
    ) -> None:
        """What the agent says may reach the client; without a conversation its turn goes on."""
        way = Way(self._kernel.upstream, receiver, conversation, answer=True)
        digests = [None if content.scope is None else content.digest() for content in contents]
        unseen = [
            content
            for content, digest in zip(contents, digests, strict=True)
            if digest is None or not self._shown.knows(receiver, digest)
        ]
        await self._all(unseen, way, Turn() if turn is None else turn)
        for digest in filter(None, digests):
            self._shown.note(receiver, digest)

    async def _all(self, contents: list[Content], way: Way, turn: Turn | None = None) -> Way:
        """Ask about every payload, one after another, and about all that is none as few messages as it fits in."""
        turn = Turn() if turn is None else turn
        who = way.receiver if way.answer else way.sender.agent_id
        found = await self._beside.run(who, sum(map(len, map(_encode, contents))), found_in_all, contents)
        if isinstance(found, Unread):
            raise _unread(found, way.answer)
        asked: list[tuple[PayloadType, dict[str, Any]]] = []
        asked += [(kind, payload) for kind, payload in found if kind is not PayloadType.GENERAL]
        rest = _together([payload for kind, payload in found if kind is PayloadType.GENERAL])
        asked += [(PayloadType.GENERAL, each) for each in rest]
        ends = _end_of(asked, turn) if way.conversation is not None else None
        for kind, payload in asked:
            await self._ask(kind, payload, way._replace(conversation=None))
            turn.add(kind, payload)
        return way if ends is None else await self._ask(ends[0], turn.ended(ends[1]), way)

    async def _ask(self, kind: PayloadType, payload: dict[str, Any], way: Way) -> Way:
        verdict = await self._in_time(kind, payload, way)
        after = self._after(verdict, way)
        if after is not None:
            way = after
            verdict = await self._in_time(kind, payload, way)
        if not verdict.forwarded:
            raise _refusal(verdict, way.answer)
        return way

    async def _in_time(self, kind: PayloadType, payload: dict[str, Any], way: Way) -> VerificationVerdict:
        """The verdict; an agent that speaks too fast is listened to more slowly, for it cannot be told to wait."""
        left = self._seconds if way.answer else 0.0
        while True:
            verdict = await self._verdict(kind, payload, way)
            wait = _seconds_of(verdict) if verdict.details.get("code") == _TOO_FAST else None
            if wait is None or wait >= left:
                return verdict
            left -= wait or 0.001
            await asyncio.sleep(wait)

    def _after(self, verdict: VerificationVerdict, way: Way) -> Way | None:
        """The way in another conversation, where one of ours has had all its steps: nobody else can begin another.

        An answer stands outside of one that its client named: the client's own steps are what ends that.
        """
        if way.conversation is None or verdict.details.get("code") != _ALL_STEPS:
            return None
        of = way.receiver if way.answer else way.sender.agent_id
        name = self._conversations.after(of, way.conversation)
        return way._replace(conversation=name) if name is not None or way.answer else None

    async def _verdict(self, kind: PayloadType, payload: dict[str, Any], way: Way) -> VerificationVerdict:
        try:
            message = AgentMessage(
                sender_agent_id=way.sender.agent_id,
                receiver_agent_id=way.receiver,
                payload_type=kind,
                payload=payload,
                metadata=None if way.conversation is None else {"conversation_id": way.conversation},
            )
        except ValidationError:
            raise Refused(Fault.INVALID_REQUEST, "an agent is named by 1 to 256 printable characters") from None
        try:
            async with asyncio.timeout(self._seconds):
                return await self._kernel.intercept(message, way.sender)
        except QWEDError as error:
            raise _none(error, way) from None
        except TimeoutError:
            raise Refused(Fault.INTERNAL_ERROR, "no verdict could be had in time", {"verdict": "error"}) from None


def _end_of(asked: list[tuple[PayloadType, dict[str, Any]]], turn: Turn) -> tuple[PayloadType, dict[str, Any]] | None:
    """What of it takes the step, and is taken out of it for that; None where nothing was said."""
    if asked and (asked[-1][0] is PayloadType.GENERAL or (len(asked) == 1 and not turn)):
        return asked.pop()
    # No guard's payload is to be anything but what was sent.
    return (PayloadType.GENERAL, {}) if asked or turn else None


def _together(rest: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What no guard looks at, as one message: a task with a long history must not be a flood."""
    held: list[dict[str, Any]] = []
    size = 0
    for payload in rest:
        length = len(_encode(payload))
        if held and size + length > _ONE_MESSAGE:
            yield _one(held)
            held, size = [], 0
        held.append(payload)
        size += length
    if held:
        yield _one(held)


def _one(held: list[dict[str, Any]]) -> dict[str, Any]:
    return held[0] if len(held) == 1 else {"said": held}


def _unread(found: Unread, answer: bool) -> Refused:
    """Nobody was asked: what cannot be read whole cannot be judged."""
    reason = "it cannot be read whole" if answer else found.reason
    what = "the answer of the agent" if answer else "the message"
    fault = Fault.INVALID_AGENT_RESPONSE if answer else Fault.INVALID_PARAMS
    return Refused(fault, f"{what} is refused: {reason}", {"verdict": "blocked", "reason": reason})


def _refusal(verdict: VerificationVerdict, answer: bool) -> Refused:
    who = verdict.engine_used.value.replace("_", " ")
    told = not answer or verdict.engine_used in _SPEAK_OF_NOTHING
    reason = verdict.reason if told else f"the {who} refused it"
    data = {
        "verdict": verdict.status.value,
        "reason": reason,
        "engine": verdict.engine_used.value,
        "trace_id": verdict.audit_trace_id,
        "attestation": verdict.attestation_jwt or "",
    }
    code = verdict.details.get("code")
    if isinstance(code, str):
        data["code"] = code
    if code == _ALL_STEPS:
        reason = data["reason"] = f"{reason}; {_GO_ON}"
    fault = Fault.INVALID_AGENT_RESPONSE if answer else _FAULTS.get(verdict.engine_used, Fault.INTERNAL_ERROR)
    what = "the answer of the agent" if answer else "the message"
    said = f"{what} is refused by the {who}" + (f": {reason}" if told else "")
    return Refused(fault, said, data, _retry_after(verdict))


def _retry_after(verdict: VerificationVerdict) -> int | None:
    seconds = _seconds_of(verdict)
    return None if seconds is None else max(1, math.ceil(seconds))


def _seconds_of(verdict: VerificationVerdict) -> float | None:
    seconds = verdict.details.get("retry_after")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not math.isfinite(seconds):
        return None
    return max(0.0, seconds)


def _none(error: QWEDError, way: Way) -> Refused:
    """No verdict: whoever decides could not be asked, or does not know who asks."""
    data = {"verdict": "error", "reason": error.message, **({"code": error.code} if error.code else {})}
    wait = None if error.retry_after is None else max(1, math.ceil(error.retry_after))
    status = error.status or _STATUS.get(error.code or "", 503)
    if status not in _THEIRS:
        return Refused(Fault.INTERNAL_ERROR, f"no verdict could be had: {error.message}", data, wait, http=503)
    # What is wrong with a message is for whoever sent it to change.
    fault = Fault.INVALID_AGENT_RESPONSE if way.answer else Fault.INVALID_REQUEST
    said = f"no verdict could be had: {error.message}"
    if error.code == _UNPROVEN and not way.answer:
        said = f"the message is refused: {error.message}; {_PROVE}"
    return Refused(fault, said, data, wait, http=502 if way.answer else status)


_STATUS = {row.value.code: row.value.http for row in ErrorCode}
_THEIRS = frozenset({400, 401, 403, 404, 413})
