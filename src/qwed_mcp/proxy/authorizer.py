"""Authorization of each tool call before it reaches the server."""

import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import anyio

from qwed.model import CanonicalJsonError, Decision, ErrorCode, sha256_of
from qwed.proxies.backend import DecisionBackend
from qwed.proxies.pending_approvals import PendingApproval, PendingApprovals
from qwed_sdk.errors import QWEDError, UsageError, may_have_decided
from qwed_sdk.models import Action, Answer
from qwed_sdk.operations.tool_check import Rules, action_of, permit_or_refusal
from qwed_sdk.permits import Permit, Refusal, is_same_json
from qwed_sdk.step_counter import Conversation
from qwed_sdk.to_json import NotJsonSerializableError

ReportStatus = Callable[[str], Awaitable[None]]
"""Reports to the client that its call is waiting."""

_RULES = Rules()
_STEP_SECONDS = 60.0
"""Seconds that a call waits for its step in the conversation."""
_POLL_SECONDS = 5.0
_MAX_CONVERSATIONS = 3
"""Conversations that are started for one call; the step limit belongs to the server and may be one."""


class ProposedCall(NamedTuple):
    """Call to be authorized."""

    tool: str
    """Qualified tool name."""
    arguments: Mapping[str, Any]
    effects: tuple[str, ...] = ()
    """Effects that the server declares for the tool."""


class Authorizer:
    """Authorizes the calls of one client session; refusals are values, and only a Permit permits."""

    def __init__(
        self, backend: DecisionBackend, pending: PendingApprovals, wait: float, max_calls: int | None = None
    ) -> None:
        self._backend = backend
        self._pending = pending
        self._wait = wait
        self._max_calls = max_calls
        self._calls = 0
        self._conversation = _new_conversation()

    async def authorize(self, call: ProposedCall, report: ReportStatus | None = None) -> Permit | Refusal:
        """Return a permit, or a refusal if the call is denied or cannot be verified."""
        self._calls += 1
        if self._max_calls is not None and self._calls > self._max_calls:
            return Refusal(call.tool, f"this session has made its {self._max_calls} allowed calls")
        try:
            return await self._decide(call, action_of(_RULES, call.tool, call.arguments), report)
        except (NotJsonSerializableError, CanonicalJsonError) as error:
            return Refusal(call.tool, f"its arguments cannot be verified: {error}")
        except UsageError as error:
            return Refusal(call.tool, f"it could not be verified: {error}")
        except QWEDError as error:
            return Refusal(call.tool, f"it could not be verified: {error.message}", error.code, error.suggestion)

    async def _decide(
        self, call: ProposedCall, action: dict[str, Any], report: ReportStatus | None
    ) -> Permit | Refusal:
        # Most calls need no approval, so the digest is computed only where it is used.
        approval = None if self._pending.empty else self._pending.find(_call_digest(call, action))
        earlier = None if approval is None else await self._find_earlier_answer(approval, action)
        if approval is not None and earlier is not None:
            return await self._wait_and_decide(call, _call_digest(call, action), approval, earlier, report)
        answer = await self._verify_at_next_step({**action, "effects": list(call.effects)} if call.effects else action)
        if not answer.is_pending or not answer.action_id:
            return _permit_or_refuse(call, answer, answer.corrected)
        digest, approval = _call_digest(call, action), PendingApproval(answer.action_id, answer.approval_id or "")
        self._pending.add(digest, approval)
        return await self._wait_and_decide(call, digest, approval, answer, report)

    async def _wait_and_decide(
        self, call: ProposedCall, digest: str, approval: PendingApproval, answer: Answer, report: ReportStatus | None
    ) -> Permit | Refusal:
        # A stored action may have masked secrets, so the correction of the first answer is used.
        corrected = answer.corrected
        if answer.is_pending and self._backend.can_wait and self._wait > 0:
            answer = await self._wait_for_approval(approval, report)
        return self._apply_approval(call, digest, approval, answer, corrected or answer.corrected)

    def _apply_approval(
        self,
        call: ProposedCall,
        digest: str,
        approval: PendingApproval,
        answer: Answer,
        corrected: dict[str, Any] | None,
    ) -> Permit | Refusal:
        """Apply the person's decision; one approval is for one call."""
        answer = Answer({**answer, "action_id": approval.action_id, "approval_id": approval.approval_id})
        if answer.is_pending:
            hint = self._backend.approval_hint.format(approval=approval.approval_id)
            suggestion = f"once a person has approved {approval.approval_id}, make the same call again ({hint})"
            refusal = _permit_or_refuse(call, answer, None)
            return refusal._replace(suggestion=suggestion) if isinstance(refusal, Refusal) else refusal
        if not self._pending.claim(digest, approval.action_id):
            return Refusal(
                call.tool, "the approval was used by an identical call: make the call again to request another"
            )
        if Decision(answer.decision).permits and answer.attestation is None:
            return Refusal(
                call.tool, "it was approved, but since then the agent was stopped or the approval was revoked"
            )
        return _permit_or_refuse(call, answer, corrected)

    async def _find_earlier_answer(self, approval: PendingApproval, action: dict[str, Any]) -> Action | None:
        """Return the answer to an earlier call, or None if it was for another action or was used."""
        earlier = await self._backend.get_action(approval.action_id, 0)
        unused = earlier.execution is None and earlier.action is not None
        return earlier if unused and is_same_json(action, _without_effects(earlier.action)) else None

    async def _wait_for_approval(self, approval: PendingApproval, report: ReportStatus | None) -> Answer:
        """Return the answer once a person has decided, or the pending one when the wait ends."""
        deadline = anyio.current_time() + self._wait
        while True:
            if report is not None:
                await report(f"waiting for approval {approval.approval_id}")
            left = deadline - anyio.current_time()
            answer = await self._backend.get_action(approval.action_id, max(0.0, min(_POLL_SECONDS, left)))
            if not answer.is_pending or anyio.current_time() >= deadline:
                return answer

    async def _verify_at_next_step(self, action: dict[str, Any]) -> Answer:
        """Verify the action; start another conversation when the steps are used up, because MCP has no end of one."""
        for _ in range(_MAX_CONVERSATIONS):
            conversation = self._conversation
            answer = await self._verify_at_step(conversation, action)
            if answer is None:
                continue
            if (answer.error or {}).get("code") != ErrorCode.STEP_LIMIT.code:
                return answer
            if self._conversation is conversation:
                self._conversation = _new_conversation()
        return await self._backend.verify_action(
            action, {"conversation_id": _new_conversation().conversation_id, "step_number": 1}
        )

    async def _verify_at_step(self, conversation: Conversation, action: dict[str, Any]) -> Answer | None:
        """Verify at the next step; return None if the conversation ended before the lock was acquired."""
        if not await conversation.acquire_async(_STEP_SECONDS):
            raise UsageError(f"earlier calls were not decided within {_STEP_SECONDS:g} seconds: retry")
        try:
            if conversation is not self._conversation:
                return None
            step = conversation.take_step()
            answer = await self._verify(conversation, step, action)
            if not Decision(answer.decision).commits:
                conversation.return_step(step)
            return answer
        finally:
            conversation.release_async()

    async def _verify(self, conversation: Conversation, step: int, action: dict[str, Any]) -> Answer:
        context = {"conversation_id": conversation.conversation_id, "step_number": step}
        try:
            return await self._backend.verify_action(action, context)
        except QWEDError as error:
            if not may_have_decided(error):
                conversation.return_step(step)
            raise


def _new_conversation() -> Conversation:
    return Conversation(f"mcp_{secrets.token_hex(12)}")


def _call_digest(call: ProposedCall, action: dict[str, Any]) -> str:
    """Return the digest of the call with its declared effects, which the approver sees too."""
    return sha256_of({**action, "effects": sorted(call.effects)})


def _without_effects(action: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (action or {}).items() if name != "effects"}


def _permit_or_refuse(call: ProposedCall, answer: Answer, corrected: Mapping[str, Any] | None) -> Permit | Refusal:
    repaired = None if corrected is None else _without_effects(corrected)
    return permit_or_refusal(_RULES, call.tool, call.arguments, answer, repaired)
