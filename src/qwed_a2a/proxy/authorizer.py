"""Asks the backend about each message and answer, and maps refusals to A2A errors."""

import asyncio
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
from pydantic import ValidationError

from qwed.fair_executor import FairExecutor
from qwed.kernel.a2a.message import EngineName
from qwed.model import ErrorCode
from qwed.proxies.backend import Identity
from qwed_a2a.message import AgentMessage, PayloadType
from qwed_a2a.parsing import UnparsableMessage
from qwed_a2a.proxy.backend import MessageBackend
from qwed_a2a.proxy.content import MessageContent
from qwed_a2a.proxy.errors import CallRefusedError, ErrorKind
from qwed_a2a.proxy.message_schema import Metadata
from qwed_a2a.proxy.payloads import extract_all_payloads
from qwed_a2a.proxy.session_cache import ConversationNames, DeliveredDigests
from qwed_a2a.proxy.turn_digest import TurnDigest
from qwed_a2a.verdict import VerificationVerdict
from qwed_sdk.errors import QWEDError

_MAX_BATCH_BYTES = 262_144
"""Size limit of several contents that are checked as one message."""
_encode = msgspec.json.Encoder(order="sorted").encode
_RATE_LIMITED, _STEP_LIMIT = ErrorCode.RATE_LIMITED.code, ErrorCode.STEP_LIMIT.code
_STEP_LIMIT_HINT = (
    "start another conversation, with another `contextId` or none, or have QWED_MAX_STEPS raised on the server"
)
_CONTENT_FREE_ENGINES = frozenset({EngineName.TRUST_BOUNDARY, EngineName.ERROR_HANDLER})
"""Engines whose reasons do not describe the content of a message."""
_ERROR_BY_ENGINE = {
    EngineName.FINANCE_GUARD: ErrorKind.INVALID_PARAMS,
    EngineName.LOGIC_GUARD: ErrorKind.INVALID_PARAMS,
    EngineName.CODE_GUARD: ErrorKind.INVALID_PARAMS,
    EngineName.TRUST_BOUNDARY: ErrorKind.UNSUPPORTED_OPERATION,
}
_UNPROVEN = ErrorCode.UNKNOWN_CREDENTIAL.code
_PROOF_HINT = "send the token of that agent in `QWED-Agent-Token`"


class MessageRoute(NamedTuple):
    """Sender, receiver and conversation of a message."""

    sender: Identity
    receiver: str
    conversation: str | None
    answer: bool = False
    """True if the agent behind the proxy is the sender."""


class MessageAuthorizer:
    """Raises CallRefusedError for content that must not pass. Content that a peer has already received is not checked
    again."""

    def __init__(
        self,
        backend: MessageBackend,
        conversations: ConversationNames,
        delivered: DeliveredDigests,
        seconds: float,
        parsing_pool: FairExecutor,
    ) -> None:
        self._backend = backend
        self._parsing_pool = parsing_pool
        self._conversations = conversations
        self._delivered = delivered
        self._seconds = seconds

    async def authorize_message(
        self, content: MessageContent, metadata: Metadata, sender: Identity, conversation: str | None
    ) -> str | None:
        """Check a client's message and its request metadata, and return the conversation it now belongs to."""
        route = MessageRoute(sender, self._backend.upstream.agent_id, conversation)
        route = await self._authorize_all([content.with_request_metadata(metadata)], route, TurnDigest())
        self._delivered.add(sender.agent_id, content.digest())
        return route.conversation

    async def authorize_read(
        self, operation: str, params: dict[str, Any], metadata: Metadata, sender: Identity
    ) -> None:
        """Check a client's request that is not a message of a conversation."""
        route = MessageRoute(sender, self._backend.upstream.agent_id, None)
        await self._authorize(PayloadType.DATA_QUERY, {"operation": operation, **params}, route)
        await self._authorize_all([MessageContent(metadata=metadata)] if metadata else [], route)

    async def authorize_answer(
        self, contents: list[MessageContent], receiver: str, conversation: str | None, turn: TurnDigest | None = None
    ) -> None:
        """Check the agent's answer to the client; without a conversation its turn continues."""
        route = MessageRoute(self._backend.upstream, receiver, conversation, answer=True)
        digests = [None if content.scope is None else content.digest() for content in contents]
        unseen = [
            content
            for content, digest in zip(contents, digests, strict=True)
            if digest is None or not self._delivered.contains(receiver, digest)
        ]
        await self._authorize_all(unseen, route, TurnDigest() if turn is None else turn)
        for digest in filter(None, digests):
            self._delivered.add(receiver, digest)

    async def _authorize_all(
        self, contents: list[MessageContent], route: MessageRoute, turn: TurnDigest | None = None
    ) -> MessageRoute:
        """Check each payload separately, and the general content in as few messages as possible."""
        turn = TurnDigest() if turn is None else turn
        owner = route.receiver if route.answer else route.sender.agent_id
        payloads = await self._parsing_pool.run(
            owner, extract_all_payloads, contents, size=sum(map(len, map(_encode, contents)))
        )
        if isinstance(payloads, UnparsableMessage):
            raise _unparsable_error(payloads, route.answer)
        pending: list[tuple[PayloadType, dict[str, Any]]] = []
        pending += [(kind, payload) for kind, payload in payloads if kind is not PayloadType.GENERAL]
        rest = _batch_general([payload for kind, payload in payloads if kind is PayloadType.GENERAL])
        pending += [(PayloadType.GENERAL, batch) for batch in rest]
        last = _take_last_payload(pending, turn) if route.conversation is not None else None
        for kind, payload in pending:
            await self._authorize(kind, payload, route._replace(conversation=None))
            turn.add(kind, payload)
        return route if last is None else await self._authorize(last[0], turn.finish(last[1]), route)

    async def _authorize(self, kind: PayloadType, payload: dict[str, Any], route: MessageRoute) -> MessageRoute:
        verdict = await self._verdict_with_retries(kind, payload, route)
        next_route = self._next_route(verdict, route)
        if next_route is not None:
            route = next_route
            verdict = await self._verdict_with_retries(kind, payload, route)
        if not verdict.forwarded:
            raise _refused_error(verdict, route.answer)
        return route

    async def _verdict_with_retries(
        self, kind: PayloadType, payload: dict[str, Any], route: MessageRoute
    ) -> VerificationVerdict:
        """Return the verdict; a rate-limited agent is retried, because it cannot be told to wait."""
        left = self._seconds if route.answer else 0.0
        while True:
            verdict = await self._verdict(kind, payload, route)
            wait = _wait_seconds(verdict) if verdict.details.get("code") == _RATE_LIMITED else None
            if wait is None or wait >= left:
                return verdict
            left -= wait or 0.001
            await asyncio.sleep(wait)

    def _next_route(self, verdict: VerificationVerdict, route: MessageRoute) -> MessageRoute | None:
        """Return the route in a new conversation if one that the proxy named has reached its step limit, else None.

        An answer leaves a conversation that its client named: the client's own steps end that one.
        """
        if route.conversation is None or verdict.details.get("code") != _STEP_LIMIT:
            return None
        client_id = route.receiver if route.answer else route.sender.agent_id
        name = self._conversations.next_after(client_id, route.conversation)
        return route._replace(conversation=name) if name is not None or route.answer else None

    async def _verdict(self, kind: PayloadType, payload: dict[str, Any], route: MessageRoute) -> VerificationVerdict:
        try:
            message = AgentMessage(
                sender_agent_id=route.sender.agent_id,
                receiver_agent_id=route.receiver,
                payload_type=kind,
                payload=payload,
                metadata=None if route.conversation is None else {"conversation_id": route.conversation},
            )
        except ValidationError:
            raise CallRefusedError(
                ErrorKind.INVALID_REQUEST, "an agent id must have 1 to 256 printable characters"
            ) from None
        try:
            async with asyncio.timeout(self._seconds):
                return await self._backend.intercept(message, route.sender)
        except QWEDError as error:
            raise _no_verdict_error(error, route) from None
        except TimeoutError:
            raise CallRefusedError(
                ErrorKind.INTERNAL_ERROR, "no verdict was available in time", {"verdict": "error"}
            ) from None


def _take_last_payload(
    pending: list[tuple[PayloadType, dict[str, Any]]], turn: TurnDigest
) -> tuple[PayloadType, dict[str, Any]] | None:
    """Remove and return the payload that takes the step of the conversation, or None if there is no content."""
    if pending and (pending[-1][0] is PayloadType.GENERAL or (len(pending) == 1 and not turn)):
        return pending.pop()
    # A payload for a guard must stay as it was sent, so the step gets an empty general one.
    return (PayloadType.GENERAL, {}) if pending or turn else None


def _batch_general(rest: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the general payloads in batches: a task with a long history must not exceed the rate limit."""
    batch: list[dict[str, Any]] = []
    size = 0
    for payload in rest:
        length = len(_encode(payload))
        if batch and size + length > _MAX_BATCH_BYTES:
            yield _batch(batch)
            batch, size = [], 0
        batch.append(payload)
        size += length
    if batch:
        yield _batch(batch)


def _batch(payloads: list[dict[str, Any]]) -> dict[str, Any]:
    return payloads[0] if len(payloads) == 1 else {"said": payloads}


def _unparsable_error(unparsable: UnparsableMessage, answer: bool) -> CallRefusedError:
    """Return the error for content that cannot be parsed completely; the backend is not asked."""
    reason = "it cannot be parsed completely" if answer else unparsable.reason
    what = "the answer of the agent" if answer else "the message"
    fault = ErrorKind.INVALID_AGENT_RESPONSE if answer else ErrorKind.INVALID_PARAMS
    return CallRefusedError(fault, f"{what} is refused: {reason}", {"verdict": "blocked", "reason": reason})


def _refused_error(verdict: VerificationVerdict, answer: bool) -> CallRefusedError:
    engine = verdict.engine_used.value.replace("_", " ")
    reason_shown = not answer or verdict.engine_used in _CONTENT_FREE_ENGINES
    reason = verdict.reason if reason_shown else f"the {engine} refused it"
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
    if code == _STEP_LIMIT:
        reason = data["reason"] = f"{reason}; {_STEP_LIMIT_HINT}"
    fault = (
        ErrorKind.INVALID_AGENT_RESPONSE
        if answer
        else _ERROR_BY_ENGINE.get(verdict.engine_used, ErrorKind.INTERNAL_ERROR)
    )
    what = "the answer of the agent" if answer else "the message"
    message = f"{what} is refused by the {engine}" + (f": {reason}" if reason_shown else "")
    return CallRefusedError(fault, message, data, _retry_after(verdict))


def _retry_after(verdict: VerificationVerdict) -> int | None:
    seconds = _wait_seconds(verdict)
    return None if seconds is None else max(1, math.ceil(seconds))


def _wait_seconds(verdict: VerificationVerdict) -> float | None:
    seconds = verdict.details.get("retry_after")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not math.isfinite(seconds):
        return None
    return max(0.0, seconds)


def _no_verdict_error(error: QWEDError, route: MessageRoute) -> CallRefusedError:
    """Return the error for a backend that could not be reached or does not know the sender."""
    data = {"verdict": "error", "reason": error.message, **({"code": error.code} if error.code else {})}
    wait = None if error.retry_after is None else max(1, math.ceil(error.retry_after))
    status = error.status or _STATUS.get(error.code or "", 503)
    if status not in _SENDER_STATUSES:
        return CallRefusedError(
            ErrorKind.INTERNAL_ERROR, f"no verdict is available: {error.message}", data, wait, http=503
        )
    # The sender has to correct its message.
    fault = ErrorKind.INVALID_AGENT_RESPONSE if route.answer else ErrorKind.INVALID_REQUEST
    message = f"no verdict is available: {error.message}"
    if error.code == _UNPROVEN and not route.answer:
        message = f"the message is refused: {error.message}; {_PROOF_HINT}"
    return CallRefusedError(fault, message, data, wait, http=502 if route.answer else status)


_STATUS = {row.value.code: row.value.http for row in ErrorCode}
_SENDER_STATUSES = frozenset({400, 401, 403, 404, 413})
