"""Each call on its way: asked about before it reaches the server."""

import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import anyio

from qwed.proxies.kernel import Kernel
from qwed.proxies.waiting import Noted, Waiting
from qwed.words import Decision, ErrorCode, NotCanonical, sha256_of
from qwed_sdk.calls.checks import Permit, Refusal, Rules, action_of, same, settled
from qwed_sdk.conversation import Conversation
from qwed_sdk.errors import QWEDError, perhaps_decided
from qwed_sdk.hook.call import Unusable
from qwed_sdk.plain import NotPlain
from qwed_sdk.records import Action, Answer

Tell = Callable[[str], Awaitable[None]]
"""Tells the client what it is waiting for."""

_RULES = Rules()
_TURN = 60.0
"""Seconds until it is a call's turn to be asked about."""
_SLICE = 5.0
_ANEW = 3
"""Conversations that are begun for one call: the limit of steps is the server's, and may be one."""


class Proposed(NamedTuple):
    """A call that wants to pass."""

    tool: str
    """Its whole name, as the kernel knows it."""
    arguments: Mapping[str, Any]
    effects: tuple[str, ...] = ()
    """What the server states of the tool beside what its name and arguments say."""


class Asker:
    """Asks for one session of a client. A refusal is a value; only a Permit permits."""

    def __init__(self, kernel: Kernel, waiting: Waiting, wait: float, max_calls: int | None = None) -> None:
        self._kernel = kernel
        self._waiting = waiting
        self._wait = wait
        self._max_calls = max_calls
        self._calls = 0
        self._conversation = _begun()

    async def before(self, call: Proposed, tell: Tell | None = None) -> Permit | Refusal:
        """May it pass? Whatever keeps that from being answered is a refusal."""
        self._calls += 1
        if self._max_calls is not None and self._calls > self._max_calls:
            return Refusal(call.tool, f"this session may make {self._max_calls} calls, and has made them")
        try:
            return await self._decided(call, action_of(_RULES, call.tool, call.arguments), tell)
        except (NotPlain, NotCanonical) as error:
            return Refusal(call.tool, f"its arguments cannot be verified: {error}")
        except Unusable as error:
            return Refusal(call.tool, f"it could not be verified: {error}")
        except QWEDError as error:
            return Refusal(call.tool, f"it could not be verified: {error.message}", error.code, error.suggestion)

    async def _decided(self, call: Proposed, action: dict[str, Any], tell: Tell | None) -> Permit | Refusal:
        # Most calls wait for nobody: their name is worked out where one is needed.
        noted = None if self._waiting.empty else self._waiting.noted(_question(call, action))
        found = None if noted is None else await self._answer_to(noted, action)
        if noted is not None and found is not None:
            return await self._with_a_person(call, _question(call, action), noted, found, tell)
        answer = await self._at_next_step({**action, "effects": list(call.effects)} if call.effects else action)
        if not answer.is_pending or not answer.action_id:
            return _settled(call, answer, answer.corrected)
        question, noted = _question(call, action), Noted(answer.action_id, answer.approval_id or "")
        self._waiting.note(question, noted)
        return await self._with_a_person(call, question, noted, answer, tell)

    async def _with_a_person(
        self, call: Proposed, question: str, noted: Noted, answer: Answer, tell: Tell | None
    ) -> Permit | Refusal:
        # What is looked up later may have a secret hidden in it, which is not what the tool should be given.
        corrected = answer.corrected
        if answer.is_pending and self._kernel.waits and self._wait > 0:
            answer = await self._awaited(noted, tell)
        return self._left_to_a_person(call, question, noted, answer, corrected or answer.corrected)

    def _left_to_a_person(
        self, call: Proposed, question: str, noted: Noted, answer: Answer, corrected: dict[str, Any] | None
    ) -> Permit | Refusal:
        """What the person's answer means: one approval is for one call."""
        answer = Answer({**answer, "action_id": noted.action_id, "approval_id": noted.approval_id})
        if answer.is_pending:
            how = self._kernel.approving.format(approval=noted.approval_id)
            told = f"once a person has approved {noted.approval_id}, make the same call again ({how})"
            refusal = _settled(call, answer, None)
            return refusal._replace(suggestion=told) if isinstance(refusal, Refusal) else refusal
        if not self._waiting.claim(question, noted.action_id):
            return Refusal(call.tool, "the same call was made twice, and the approval was for one of them: ask again")
        if Decision(answer.decision).permits and answer.attestation is None:
            return Refusal(call.tool, "it was approved, but the agent was stopped since, or the approval revoked")
        return _settled(call, answer, corrected)

    async def _answer_to(self, noted: Noted, action: dict[str, Any]) -> Action | None:
        """The answer to a question of an earlier call; None where it was for another, or was acted on."""
        found = await self._kernel.look(noted.action_id, 0)
        unused = found.execution is None and found.action is not None
        return found if unused and same(action, _without_effects(found.action)) else None

    async def _awaited(self, noted: Noted, tell: Tell | None) -> Answer:
        """The answer once a person has decided, or as it stands when the patience ends."""
        ends = anyio.current_time() + self._wait
        while True:
            if tell is not None:
                await tell(f"waiting for approval {noted.approval_id}")
            left = ends - anyio.current_time()
            found = await self._kernel.look(noted.action_id, max(0.0, min(_SLICE, left)))
            if not found.is_pending or anyio.current_time() >= ends:
                return found

    async def _at_next_step(self, action: dict[str, Any]) -> Answer:
        """The answer. Where a conversation has had all its steps another begins: MCP does not tell where one ends."""
        for _ in range(_ANEW):
            conversation = self._conversation
            answer = await self._at_step_of(conversation, action)
            if answer is None:
                continue
            if (answer.error or {}).get("code") != ErrorCode.STEP_LIMIT.code:
                return answer
            if self._conversation is conversation:
                self._conversation = _begun()
        return await self._kernel.ask(action, {"conversation_id": _begun().conversation_id, "step_number": 1})

    async def _at_step_of(self, conversation: Conversation, action: dict[str, Any]) -> Answer | None:
        """The answer at the next step; None where the conversation was over before it was our turn."""
        if not await conversation.hold_awaiting(_TURN):
            raise Unusable(f"other calls were asked about for {_TURN:g} seconds: ask again")
        try:
            if conversation is not self._conversation:
                return None
            step = conversation.take()
            answer = await self._asked(conversation, step, action)
            if not Decision(answer.decision).commits:
                conversation.give_back(step)
            return answer
        finally:
            conversation.free_awaiting()

    async def _asked(self, conversation: Conversation, step: int, action: dict[str, Any]) -> Answer:
        context = {"conversation_id": conversation.conversation_id, "step_number": step}
        try:
            return await self._kernel.ask(action, context)
        except QWEDError as error:
            if not perhaps_decided(error):
                conversation.give_back(step)
            raise


def _begun() -> Conversation:
    return Conversation(f"mcp_{secrets.token_hex(12)}")


def _question(call: Proposed, action: dict[str, Any]) -> str:
    """What a person is asked about: not only these arguments, but a tool of which this is stated."""
    return sha256_of({**action, "effects": sorted(call.effects)})


def _without_effects(action: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (action or {}).items() if name != "effects"}


def _settled(call: Proposed, answer: Answer, corrected: Mapping[str, Any] | None) -> Permit | Refusal:
    repaired = None if corrected is None else _without_effects(corrected)
    return settled(_RULES, call.tool, call.arguments, answer, repaired)
