"""Trust boundary of one process: access lists and rate limits that decide whether two agents may exchange messages."""

import threading
from collections.abc import Awaitable
from typing import Protocol

from qwed.domain.access_lists import AccessLists, ListEntry, ListName
from qwed.guards.tool_approval import fold_name
from qwed.model.clock import Clock
from qwed_a2a.message import PayloadType
from qwed_a2a.token_buckets import MAX_PER_MINUTE, PairTokenBuckets

BoundaryResult = tuple[bool, str]
"""True if the message may pass, and the reason."""
PASSED: BoundaryResult = (True, "within the trust boundary")


class MessageBoundary(Protocol):
    """Trust boundary as the interceptor uses it."""

    def evaluate(
        self, sender: str, receiver: str, payload_type: PayloadType
    ) -> BoundaryResult | Awaitable[BoundaryResult]:
        """Return True if the pair may exchange this message, else False and the reason; it awaits futures of
        `qwed.futures` only."""


class TrustBoundary:
    """Trust boundary of one process. Safe to use from any thread.

    Blocks and rates apply to every spelling of a name; trust applies to the exact spelling.
    """

    def __init__(
        self,
        max_requests_per_minute: int | None = 60,
        default_allow: bool = True,
        strict_mode: bool = False,
        *,
        clock: Clock | None = None,
    ) -> None:
        per_minute = _require_rate(max_requests_per_minute)
        self.max_requests_per_minute = per_minute
        self.default_allow = _require_bool("default_allow", default_allow)
        self.strict_mode = _require_bool("strict_mode", strict_mode)
        self._buckets = None if per_minute is None else PairTokenBuckets(per_minute, (clock or Clock()).monotonic)
        self._lists = AccessLists()
        self._lock = threading.Lock()

    def block_agent(self, agent_id: str) -> None:
        """Block all messages from and to the agent."""
        self._change(ListName.BLOCKS, fold_name(_require_agent_id(agent_id)), present=True)

    def unblock_agent(self, agent_id: str) -> None:
        """Remove the block of an agent, if there is one."""
        self._change(ListName.BLOCKS, fold_name(_require_agent_id(agent_id)), present=False)

    def trust_agent(self, agent_id: str) -> None:
        """Add the agent to the allowlist that strict mode requires."""
        self._change(ListName.TRUSTED, _require_agent_id(agent_id), present=True)

    def revoke_agent(self, agent_id: str) -> None:
        """Remove the agent from the allowlist, if it is on it."""
        self._change(ListName.TRUSTED, _require_agent_id(agent_id), present=False)

    def block_pair(self, sender: str, receiver: str) -> None:
        """Block messages from the sender to the receiver; the opposite direction is a pair of its own."""
        pair = fold_name(_require_agent_id(sender)), fold_name(_require_agent_id(receiver))
        self._change(ListName.PAIRS, *pair, present=True)

    def unblock_pair(self, sender: str, receiver: str) -> None:
        """Remove the block of a pair, if there is one."""
        pair = fold_name(_require_agent_id(sender)), fold_name(_require_agent_id(receiver))
        self._change(ListName.PAIRS, *pair, present=False)

    def trusts(self, agent_id: str) -> bool:
        """Return True if the agent is on the allowlist."""
        return self._lists.trusts(agent_id)

    def evaluate(self, sender: str, receiver: str, _payload_type: PayloadType = PayloadType.GENERAL) -> BoundaryResult:
        """Return True and take a token if the sender may send this to the receiver, else False and the reason."""
        lists = self._lists
        refusal = lists.refusal(sender, receiver) or self._allowlist_refusal(lists, sender, receiver)
        if refusal is not None:
            return False, refusal
        if self._buckets is not None and not self._buckets.take((fold_name(sender), fold_name(receiver))):
            limit = f"{self.max_requests_per_minute} messages per minute"
            return False, f"more than {limit} from this sender to this receiver"
        return PASSED

    def _allowlist_refusal(self, lists: AccessLists, sender: str, receiver: str) -> str | None:
        if (self.strict_mode or not self.default_allow) and not lists.trusts(sender):
            return "the sender is not on the allowlist"
        if not self.default_allow and not lists.trusts(receiver):
            return "the receiver is not on the allowlist"
        return None

    def _change(self, name: ListName, *agents: str, present: bool) -> None:
        with self._lock:
            self._lists = self._lists.with_change(ListEntry(name, *agents), present=present)


def _require_agent_id(agent_id: str) -> str:
    if not isinstance(agent_id, str) or not agent_id:
        raise ValueError("an agent id must be a text that is not empty")
    return agent_id


def _require_bool(name: str, value: bool) -> bool:
    if type(value) is not bool:
        raise ValueError(f"`{name}` must be true or false")
    return value


def _require_rate(per_minute: int | None) -> int | None:
    if per_minute is not None and (type(per_minute) is not int or not 1 <= per_minute <= MAX_PER_MINUTE):
        raise ValueError(
            f"`max_requests_per_minute` must be a whole number from 1 to {MAX_PER_MINUTE}, or None for no limit"
        )
    return per_minute
