"""What is held back: a person is asked about each once, and whatever they release passes from then on."""

import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import anyio
from anyio.abc import TaskGroup

from qwed.proxies.kernel import Kernel
from qwed.proxies.waiting import Noted, Waiting
from qwed.words import Decision
from qwed_sdk.calls.checks import TOOL_CALL, Refusal
from qwed_sdk.errors import QWEDError
from qwed_sdk.hook.call import Unusable
from qwed_sdk.records import Answer

log = logging.getLogger(__name__)
MOST_WATCHED = 100
"""What is asked about; whoever has more of it held is not one to wait for."""
EXPIRED = "expired"
_AT_ONCE = 4
_POLL = 20.0
_PAUSE = 5.0
"""Seconds before a kernel that could not be asked is asked again."""
_LATER = 60.0
"""The same for one that would not ask a person."""


class Held(Protocol):
    """What is held: the definition of a tool, or the card of an agent."""

    @property
    def what(self) -> str:
        """What it is, such as `definition`."""

    @property
    def name(self) -> str:
        """Whose it is, in a line of a log."""

    @property
    def digest(self) -> str:
        """The SHA-256 of it: what is released is this and nothing else."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is held."""

    @property
    def releasable(self) -> bool:
        """Whether an approver can be asked at all."""

    @property
    def request(self) -> dict[str, Any]:
        """The parameters of the action that an approver decides about."""


H = TypeVar("H", bound=Held)


class Standing(NamedTuple):
    """How it stands with what is held."""

    decision: str
    reason: str
    noted: Noted | None = None


_UNASKED = Standing(Decision.DENIED, "too many definitions are held to ask about this one")
_FINAL = Standing(Decision.DENIED, "nobody can release it: the server has to change it")


class Releases(Generic[H]):
    """Asks in the background; nothing of it holds a call up."""

    def __init__(
        self,
        kernel: Kernel,
        waiting: Waiting,
        tasks: TaskGroup,
        release: Callable[[H, str], Awaitable[None]],
        tool: str,
    ) -> None:
        self._kernel = kernel
        self._tool = tool
        self._waiting = waiting
        self._tasks = tasks
        self._release = release
        self._limit = anyio.CapacityLimiter(_AT_ONCE)
        self._standing: dict[str, Standing] = {}

    def see(self, held: Iterable[H]) -> None:
        """Ask about those nobody was asked about yet."""
        for each in held:
            if each.releasable and each.digest not in self._standing and len(self._standing) < MOST_WATCHED:
                self._standing[each.digest] = Standing(Decision.PENDING, "an approver is being asked")
                self._tasks.start_soon(self._followed, each)

    def refusal(self, held: H, tool: str) -> Refusal:
        """Why a held tool cannot be called, and who can change that."""
        standing = self._standing.get(held.digest, _UNASKED) if held.releasable else _FINAL
        reason = f"its {held.what} is held: {'; '.join(held.reasons)} ({standing.reason})"
        if standing.noted is None:
            return Refusal(tool, reason, decision=standing.decision)
        answer = Answer({"decision": standing.decision, **standing.noted._asdict()})
        how = self._kernel.approving.format(approval=standing.noted.approval_id)
        suggestion = f"an approver can release it by approving {standing.noted.approval_id}: {how}"
        return Refusal(tool, reason, None, suggestion, standing.decision, answer)

    async def _followed(self, held: H) -> None:
        """Ask about one of them, and look for the decision until there is one."""
        answer = await self._until_asked(held)
        while answer.is_pending and self._kernel.waits:
            answer = await self._looked(answer)
        if Decision(answer.decision).permits:
            await self._released(held, answer)
        elif not answer.is_pending:
            told = (answer.error or {}).get("message") or "an approver refused it"
            self._standing[held.digest] = Standing(Decision.DENIED, told)

    async def _released(self, held: H, answer: Answer) -> None:
        """One approval is for one release: what was replaced and comes back is asked about again."""
        if self._waiting.claim(_question(held), answer.action_id or ""):
            await self._release(held, _who(answer))
            await self._logged(answer)
        self._standing.pop(held.digest, None)

    async def _until_asked(self, held: H) -> Answer:
        """The answer of somebody who can be asked: a person's, or that one will decide."""
        name = _name()
        while True:
            try:
                answer = await self._asked(held, name)
            except (QWEDError, Unusable) as error:
                self._standing[held.digest] = Standing(Decision.DENIED, f"nobody could be asked: {error}")
                await anyio.sleep(_PAUSE)
                continue
            if answer.is_pending:
                noted = Noted(answer.action_id or "", answer.approval_id or "")
                self._standing[held.digest] = Standing(answer.decision, "it waits for an approver", noted)
                log.warning("`%s` is held: %s (%s)", held.name, "; ".join(held.reasons), noted.approval_id)
            if answer.is_pending or answer.get("resolution") or Decision(answer.decision).permits:
                return answer
            told = (answer.error or {}).get("message")
            self._standing[held.digest] = Standing(Decision.DENIED, f"nobody could be asked: {told}")
            await anyio.sleep(_LATER)
            name = _name()

    async def _asked(self, held: H, name: str) -> Answer:
        """The answer, or the one to the same question of an earlier session."""
        question = _question(held)
        noted = self._waiting.noted(question)
        if noted is not None:
            found = await self._kernel.look(noted.action_id, 0)
            if (found.resolution or {}).get("state") != EXPIRED:
                return Answer({**found, "approval_id": noted.approval_id})
        action = {"type": TOOL_CALL, "tool": self._tool, "parameters": held.request}
        answer = await self._kernel.ask(action, {"conversation_id": name, "step_number": 1}, name)
        if answer.is_pending:
            self._waiting.note(question, Noted(answer.action_id or "", answer.approval_id or ""))
        return answer

    async def _looked(self, answer: Answer) -> Answer:
        """The answer as it stands a little later; a few are looked for at a time."""
        try:
            async with self._limit:
                found = await self._kernel.look(answer.action_id or "", _POLL)
        except QWEDError:
            await anyio.sleep(_PAUSE)
            return answer
        return answer if found.is_pending else found

    async def _logged(self, answer: Answer) -> None:
        try:
            await self._kernel.log(answer.action_id or "", True, None, None)
        except QWEDError as error:
            log.info("that something was released was not logged: %s", error)


def _name() -> str:
    """What one question is called: of two with the same name the second gets the first one's answer."""
    return f"pin_{secrets.token_hex(12)}"


def _question(held: Held) -> str:
    return f"pin {held.digest}"


def _who(answer: Answer) -> str:
    """Who released it, as the kernel tells it."""
    settled = answer.get("resolution") or {}
    return str(settled.get("approver") or settled.get("by") or "an approver")
