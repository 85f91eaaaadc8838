"""Quarantine of tool definitions and agent cards: an approver is asked about each once, and releases it for good."""

import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import anyio
from anyio.abc import TaskGroup

from qwed.model import Decision
from qwed.proxies.backend import DecisionBackend
from qwed.proxies.pending_approvals import PendingApproval, PendingApprovals
from qwed_sdk.errors import QWEDError, UsageError
from qwed_sdk.models import Answer
from qwed_sdk.operations.tool_check import TOOL_CALL
from qwed_sdk.permits import Refusal

log = logging.getLogger(__name__)
MAX_WATCHED = 100
"""Items for which an approver is asked; a server with more of them is not worth waiting for."""
EXPIRED = "expired"
_MAX_CONCURRENT_POLLS = 4
_POLL_SECONDS = 20.0
_RETRY_SECONDS = 5.0
"""Seconds before a backend that could not be reached is asked again."""
_REFUSED_RETRY_SECONDS = 60.0
"""Seconds before a backend that refused to ask an approver is asked again."""


class QuarantinedItem(Protocol):
    """Quarantined tool definition or agent card."""

    @property
    def what(self) -> str:
        """Kind of the item, such as `definition`."""

    @property
    def name(self) -> str:
        """Name of its tool or agent, for log lines."""

    @property
    def digest(self) -> str:
        """SHA-256 of the content; a release is for this content only."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Reasons for the quarantine."""

    @property
    def releasable(self) -> bool:
        """True if an approver can release it."""

    @property
    def request(self) -> dict[str, Any]:
        """Parameters of the action that the approver decides."""


H = TypeVar("H", bound=QuarantinedItem)


class ReleaseStatus(NamedTuple):
    """Current state of one release request."""

    decision: str
    reason: str
    pending: PendingApproval | None = None


_TOO_MANY = ReleaseStatus(Decision.DENIED, "too many definitions are held to request the release of this one")
_NOT_RELEASABLE = ReleaseStatus(Decision.DENIED, "it cannot be released: the server has to change it")


class ReleaseRequests(Generic[H]):
    """Background requests for the release of quarantined items; calls never wait for them."""

    def __init__(
        self,
        backend: DecisionBackend,
        pending: PendingApprovals,
        tasks: TaskGroup,
        release: Callable[[H, str], Awaitable[None]],
        tool: str,
    ) -> None:
        self._backend = backend
        self._tool = tool
        self._pending = pending
        self._tasks = tasks
        self._release = release
        self._limit = anyio.CapacityLimiter(_MAX_CONCURRENT_POLLS)
        self._statuses: dict[str, ReleaseStatus] = {}

    def request_release(self, items: Iterable[H]) -> None:
        """Start a request for each item that has none yet."""
        for item in items:
            if item.releasable and item.digest not in self._statuses and len(self._statuses) < MAX_WATCHED:
                self._statuses[item.digest] = ReleaseStatus(Decision.PENDING, "an approver is being asked")
                self._tasks.start_soon(self._request_and_poll, item)

    def refusal(self, item: H, tool: str) -> Refusal:
        """Return why a quarantined tool cannot be called, and who can release it."""
        status = self._statuses.get(item.digest, _TOO_MANY) if item.releasable else _NOT_RELEASABLE
        reason = f"its {item.what} is held: {'; '.join(item.reasons)} ({status.reason})"
        if status.pending is None:
            return Refusal(tool, reason, decision=status.decision)
        answer = Answer({"decision": status.decision, **status.pending._asdict()})
        hint = self._backend.approval_hint.format(approval=status.pending.approval_id)
        suggestion = f"an approver can release it by approving {status.pending.approval_id}: {hint}"
        return Refusal(tool, reason, None, suggestion, status.decision, answer)

    async def _request_and_poll(self, item: H) -> None:
        """Ask about one item, and poll until it is decided."""
        answer = await self._request_until_answered(item)
        while answer.is_pending and self._backend.can_wait:
            answer = await self._poll(answer)
        if Decision(answer.decision).permits:
            await self._claim_and_release(item, answer)
        elif not answer.is_pending:
            message = (answer.error or {}).get("message") or "an approver refused it"
            self._statuses[item.digest] = ReleaseStatus(Decision.DENIED, message)

    async def _claim_and_release(self, item: H, answer: Answer) -> None:
        """Release the item once per approval: content that was replaced and comes back needs a new approval."""
        if self._pending.claim(_approval_key(item), answer.action_id or ""):
            await self._release(item, _approver_of(answer))
            await self._log_release(answer)
        self._statuses.pop(item.digest, None)

    async def _request_until_answered(self, item: H) -> Answer:
        """Return the answer of the backend: decided, or pending with an approver. Retry while it cannot ask one."""
        request_id = _new_request_id()
        while True:
            try:
                answer = await self._request(item, request_id)
            except (QWEDError, UsageError) as error:
                self._statuses[item.digest] = ReleaseStatus(Decision.DENIED, f"no approver could be asked: {error}")
                await anyio.sleep(_RETRY_SECONDS)
                continue
            if answer.is_pending:
                pending = PendingApproval(answer.action_id or "", answer.approval_id or "")
                self._statuses[item.digest] = ReleaseStatus(answer.decision, "it waits for an approver", pending)
                log.warning(
                    "quarantine: `%s` is held: %s (%s)", item.name, "; ".join(item.reasons), pending.approval_id
                )
            if answer.is_pending or answer.get("resolution") or Decision(answer.decision).permits:
                return answer
            message = (answer.error or {}).get("message")
            self._statuses[item.digest] = ReleaseStatus(Decision.DENIED, f"no approver could be asked: {message}")
            await anyio.sleep(_REFUSED_RETRY_SECONDS)
            request_id = _new_request_id()

    async def _request(self, item: H, request_id: str) -> Answer:
        """Return the answer, or the one to the same request of an earlier session."""
        key = _approval_key(item)
        pending = self._pending.find(key)
        if pending is not None:
            action_state = await self._backend.get_action(pending.action_id, 0)
            if (action_state.resolution or {}).get("state") != EXPIRED:
                return Answer({**action_state, "approval_id": pending.approval_id})
        action = {"type": TOOL_CALL, "tool": self._tool, "parameters": item.request}
        answer = await self._backend.verify_action(
            action, {"conversation_id": request_id, "step_number": 1}, request_id
        )
        if answer.is_pending:
            self._pending.add(key, PendingApproval(answer.action_id or "", answer.approval_id or ""))
        return answer

    async def _poll(self, answer: Answer) -> Answer:
        """Poll the action; few polls run at the same time."""
        try:
            async with self._limit:
                current = await self._backend.get_action(answer.action_id or "", _POLL_SECONDS)
        except QWEDError:
            await anyio.sleep(_RETRY_SECONDS)
            return answer
        return answer if current.is_pending else current

    async def _log_release(self, answer: Answer) -> None:
        try:
            await self._backend.log_execution(answer.action_id or "", True, None, None)
        except QWEDError as error:
            log.info("quarantine: log entry for a release failed: %s", error)


def _new_request_id() -> str:
    """Return a new idempotency key; two requests with the same key would get the same answer."""
    return f"pin_{secrets.token_hex(12)}"


def _approval_key(item: QuarantinedItem) -> str:
    return f"pin {item.digest}"


def _approver_of(answer: Answer) -> str:
    """Return the name of the approver, as the backend reports it."""
    resolution = answer.get("resolution") or {}
    return str(resolution.get("approver") or resolution.get("by") or "an approver")
