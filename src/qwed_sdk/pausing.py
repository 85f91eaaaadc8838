"""Calls that wait for a person: kept while their run is paused, and looked up again when it is resumed."""

import hashlib
import json
import sys
from collections import OrderedDict
from collections.abc import Mapping, MutableMapping
from typing import Any, NamedTuple, TypeVar

from qwed.words import Decision
from qwed_sdk.calls.checks import Permit, Refusal, Rules, action_of, same, settled
from qwed_sdk.calls.own import Bound, wait_for_decision
from qwed_sdk.checkpoint import Checkpoint, beside
from qwed_sdk.errors import QWEDError
from qwed_sdk.plain import NotPlain
from qwed_sdk.records import Action
from qwed_sdk.wire import Call

KEPT = 1000
"""Calls remembered at once; the oldest is forgotten, and asks anew."""

Waiting = MutableMapping[str, dict[str, str]]
"""Where paused calls are kept: anything like a dict, so that another process may resume what this one paused."""
V = TypeVar("V")

_PERMITTING = frozenset(decision for decision in Decision if decision.permits)


class Asked(NamedTuple):
    """One call as the model made it, in JSON."""

    call_id: str
    tool: str
    said: Mapping[str, Any]
    defaults: Mapping[str, Any] = {}

    @property
    def key(self) -> str:
        """What tells this very call from every other."""
        text = json.dumps([self.call_id, self.tool, self.said], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def arguments(self) -> dict[str, Any]:
        """What the tool is to be given: what is not said is done all the same."""
        return {**self.defaults, **self.said}


class Recent(OrderedDict[str, V]):
    """A dict that forgets its oldest entry when it is full."""

    def __setitem__(self, key: str, value: V) -> None:
        super().__setitem__(key, value)
        if len(self) > KEPT:
            self.popitem(last=False)


def is_pending(found: Permit | Refusal) -> bool:
    """Whether a person has to decide first."""
    return isinstance(found, Refusal) and found.decision == Decision.PENDING


def note_of(found: Permit | Refusal) -> dict[str, str]:
    """What is kept of a call that waits: its action, and what the person decides on."""
    answer = found.answer
    if answer is None or answer.action_id is None:
        return {}
    approval = answer.approval_id or (
        (answer.approval or {}).get("approval_id") if isinstance(answer, Action) else None
    )
    return {"action_id": answer.action_id, **({"approval_id": approval} if approval else {})}


class Pauses:
    """Asks a Checkpoint about a call, once: a call that waited is not asked about again but looked up."""

    def __init__(self, checkpoint: Checkpoint, waiting: Waiting | None = None) -> None:
        self._checkpoint = checkpoint
        self._waiting: Waiting = Recent() if waiting is None else waiting
        self._decided: Recent[Permit | Refusal] = Recent()

    def approval_id(self, asked: Asked) -> str | None:
        """What a person decides on, while the call waits."""
        return (self._waiting.get(asked.key) or {}).get("approval_id")

    def recall(self, asked: Asked, note: Any) -> None:
        """Take up a call that another process paused and noted; what is no such note says nothing."""
        action_id = note.get("action_id") if isinstance(note, Mapping) else None
        if isinstance(action_id, str) and asked.key not in self._waiting:
            self._waiting[asked.key] = {"action_id": action_id}

    async def look(self, asked: Asked, conversation: str | None) -> Permit | Refusal:
        """The decision on a call that is about to be made, and then does not ask again."""
        found = self._decided.get(f"{conversation} {asked.key}")
        if found is None:
            found = await self._find(asked, conversation)
        if not is_pending(found):
            self._decided[f"{conversation} {asked.key}"] = found
        return found

    async def before(self, asked: Asked, conversation: str | None) -> Permit | Refusal:
        """The decision on a call that is made now; a permission is used up by it."""
        found = self._decided.pop(f"{conversation} {asked.key}", None)
        return await self._find(asked, conversation) if found is None else found

    async def _find(self, asked: Asked, conversation: str | None) -> Permit | Refusal:
        # Taken out before it is looked up, so that of two that resume the same call one alone finds it.
        waited = self._waiting.pop(asked.key, None) or {}
        if "action_id" in waited:
            return await self._look_up(asked, waited)
        found = await self._checkpoint.before_async(asked.tool, asked.arguments, conversation)
        if is_pending(found):
            self._waiting[asked.key] = note_of(found)
        return found

    async def _look_up(self, asked: Asked, waited: dict[str, str]) -> Permit | Refusal:
        agent = self._checkpoint.agent
        # Kept unless it is settled: the answer may not come, or the run be cancelled before it does.
        over = False
        try:
            call = _again(agent.bound, self._checkpoint.rules, asked, waited["action_id"])
            found: Permit | Refusal = await beside(agent.run, call)
            over = found.answer is not None and not is_pending(found)
            return found
        finally:
            if not over:
                self._waiting[asked.key] = waited


def _again(bound: Bound, rules: Rules, asked: Asked, action_id: str) -> Call[Permit | Refusal]:
    """What qwed says now of an action that waited: one approval permits this very call, once."""
    try:
        called = action_of(rules, asked.tool, asked.arguments)
        action = yield from wait_for_decision(bound, action_id, rules.wait)
    except NotPlain as error:
        return Refusal(asked.tool, f"its arguments cannot be verified: {error}")
    except QWEDError as error:
        return Refusal(asked.tool, f"it could not be verified: {error.message}", error.code, error.suggestion)
    if action.action is None or not same(action.action, called):
        return Refusal(asked.tool, "what was approved is another call", answer=action)
    if action.execution is not None:
        return Refusal(asked.tool, "it was done already, and one approval permits one call", answer=action)
    if action.decision in _PERMITTING and action.attestation is None:
        # Every approval is attested; the server keeps that back while the agent is stopped, and once it was revoked.
        return Refusal(asked.tool, "it was approved, but the agent may not act on it now", answer=action)
    return settled(rules, asked.tool, asked.arguments, action)


async def report(checkpoint: Checkpoint, permit: Permit, success: bool, result: Any = None) -> None:
    """Log what became of a call, also of one that was cancelled."""
    import anyio

    if isinstance(sys.exception(), GeneratorExit):
        # Thrown away unfinished: nothing can be awaited any more.
        return
    with anyio.CancelScope(shield=True):
        await checkpoint.after_async(permit, success, result)
