"""Tool calls that wait for a person: stored while their run is paused, and looked up when it is resumed."""

import hashlib
import json
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any, NamedTuple, TypeVar

from qwed.model import Decision
from qwed.model.lru_cache import LruCache
from qwed_sdk.errors import QWEDError
from qwed_sdk.http_request import Operation
from qwed_sdk.models import Action
from qwed_sdk.operations.bound_agent import AgentBinding, wait_for_decision
from qwed_sdk.operations.tool_check import Rules, action_of, permit_or_refusal
from qwed_sdk.permits import Permit, Refusal, is_same_json
from qwed_sdk.to_json import NotJsonSerializableError
from qwed_sdk.tool_guard import Checkpoint, run_in_thread

MAX_ENTRIES = 1000
"""Calls that are stored at once; the oldest is dropped, and is decided anew."""

PendingStore = MutableMapping[str, dict[str, str]]
"""Store of paused calls: any mutable mapping, so that another process can resume them."""
V = TypeVar("V")

_PERMITTING = frozenset(decision for decision in Decision if decision.permits)


class ToolRequest(NamedTuple):
    """Tool call as the model made it, in JSON."""

    call_id: str
    tool: str
    model_arguments: Mapping[str, Any]
    defaults: Mapping[str, Any] = {}

    @property
    def key(self) -> str:
        """Hash that identifies this call."""
        text = json.dumps([self.call_id, self.tool, self.model_arguments], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments that the tool receives, defaults included."""
        return {**self.defaults, **self.model_arguments}


def is_pending(decision: Permit | Refusal) -> bool:
    """Return True if a person has to decide first."""
    return isinstance(decision, Refusal) and decision.decision == Decision.PENDING


def pending_note_of(decision: Permit | Refusal) -> dict[str, str]:
    """Return what is stored of a waiting call: the ids of its action and its approval."""
    answer = decision.answer
    if answer is None or answer.action_id is None:
        return {}
    approval = answer.approval_id or (
        (answer.approval or {}).get("approval_id") if isinstance(answer, Action) else None
    )
    return {"action_id": answer.action_id, **({"approval_id": approval} if approval else {})}


class PendingRuns:
    """Decides each call once: a call that waited is looked up instead of requested again."""

    def __init__(self, checkpoint: Checkpoint, waiting: PendingStore | None = None) -> None:
        self._checkpoint = checkpoint
        self._waiting: PendingStore = LruCache(MAX_ENTRIES) if waiting is None else waiting
        self._decided: LruCache[str, Permit | Refusal] = LruCache(MAX_ENTRIES)

    def approval_id(self, request: ToolRequest) -> str | None:
        """Return the id of the approval that the call waits for, or None."""
        return (self._waiting.get(request.key) or {}).get("approval_id")

    def restore(self, request: ToolRequest, note: Any) -> None:
        """Restore a call that another process paused; an invalid note is ignored."""
        action_id = note.get("action_id") if isinstance(note, Mapping) else None
        if isinstance(action_id, str) and request.key not in self._waiting:
            self._waiting[request.key] = {"action_id": action_id}

    async def peek(self, request: ToolRequest, conversation: str | None) -> Permit | Refusal:
        """Return the decision about a call, and store it for `before`."""
        decision = self._decided.get(f"{conversation} {request.key}")
        if decision is None:
            decision = await self._decide(request, conversation)
        if not is_pending(decision):
            self._decided[f"{conversation} {request.key}"] = decision
        return decision

    async def before(self, request: ToolRequest, conversation: str | None) -> Permit | Refusal:
        """Return the decision about a call that runs now; a permit is used up."""
        decision = self._decided.pop(f"{conversation} {request.key}", None)
        return await self._decide(request, conversation) if decision is None else decision

    async def _decide(self, request: ToolRequest, conversation: str | None) -> Permit | Refusal:
        # Removed before the lookup, so that of two runs that resume the same call only one finds it.
        note = self._waiting.pop(request.key, None) or {}
        if "action_id" in note:
            return await self._look_up(request, note)
        decision = await self._checkpoint.before_async(request.tool, request.arguments, conversation)
        if is_pending(decision):
            self._waiting[request.key] = pending_note_of(decision)
        return decision

    async def _look_up(self, request: ToolRequest, note: dict[str, str]) -> Permit | Refusal:
        agent = self._checkpoint.agent
        # Stored again unless it is settled: the lookup may fail, or the run may be cancelled.
        settled = False
        try:
            operation = _recheck(agent.binding, self._checkpoint.rules, request, note["action_id"])
            decision: Permit | Refusal = await run_in_thread(agent.run, operation)
            settled = decision.answer is not None and not is_pending(decision)
            return decision
        finally:
            if not settled:
                self._waiting[request.key] = note


def _recheck(binding: AgentBinding, rules: Rules, request: ToolRequest, action_id: str) -> Operation[Permit | Refusal]:
    """Return the current decision about an action that waited; one approval permits one call."""
    try:
        expected = action_of(rules, request.tool, request.arguments)
        action = yield from wait_for_decision(binding, action_id, rules.wait)
    except NotJsonSerializableError as error:
        return Refusal(request.tool, f"its arguments cannot be verified: {error}")
    except QWEDError as error:
        return Refusal(request.tool, f"it could not be verified: {error.message}", error.code, error.suggestion)
    if action.action is None or not is_same_json(action.action, expected):
        return Refusal(request.tool, "another call was approved", answer=action)
    if action.execution is not None:
        return Refusal(request.tool, "it was already executed, and one approval permits one call", answer=action)
    if action.decision in _PERMITTING and action.attestation is None:
        # The server withholds the attestation of an approval while the agent is suspended, and after its revocation.
        return Refusal(request.tool, "it was approved, but the agent may not act on it now", answer=action)
    return permit_or_refusal(rules, request.tool, request.arguments, action)


async def log_outcome(checkpoint: Checkpoint, permit: Permit, success: bool, result: Any = None) -> None:
    """Record the outcome of a call, cancelled calls included."""
    import anyio

    if isinstance(sys.exception(), GeneratorExit):
        # The coroutine was closed: nothing can be awaited any more.
        return
    with anyio.CancelScope(shield=True):
        await checkpoint.after_async(permit, success, result)
