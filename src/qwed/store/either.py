"""What a store does whichever database it speaks to: whom it tells, and what requests under way hold."""

import threading
from collections.abc import Callable, Collection

from qwed.store import rows
from qwed.store.agent import Agent
from qwed.store.chains import ChainTable
from qwed.store.commits import Commits
from qwed.store.conversation import Conversation, Past, Step
from qwed.store.jobs import JobTable
from qwed.store.live import LiveState
from qwed.store.log import LogTable, nobody_listens
from qwed.store.memories import MemoryTable
from qwed.store.messages import MessageTable
from qwed.store.outbox import OutboxTable
from qwed.store.protocol import Reservation
from qwed.store.residents import Residents
from qwed.store.subjects import SubjectTable
from qwed.store.usage import Charge, Exceeded, Usage
from qwed.waiting import Soon, at_once
from qwed.words import ErrorCode
from qwed.words.clock import Clock


class EitherStore(OutboxTable, JobTable, LogTable, SubjectTable, MessageTable, ChainTable, Residents, MemoryTable):
    """The part of a store that is the same for SQLite and PostgreSQL."""

    _live: LiveState

    def __init__(self, clock: Clock, lease_seconds: float) -> None:
        self._clock = clock
        self.on_notice: Callable[[], None] = _nobody
        """Called from the writing thread once a notice is durable; must not wait."""
        self.on_commit: Callable[[Collection[str]], None] = nobody_listens
        self.on_distrust: Callable[[], None] = _nobody
        self.on_erased: Callable[[], None] = _nobody
        self.on_beat: Callable[[], None] = _nobody
        self.soon: Soon = at_once
        self.commits = Commits()
        self._lock = threading.RLock()
        self._keys_in_flight: dict[tuple[str, str], float] = {}
        self._lease_seconds = lease_seconds

    def _committed(self, organisations: Collection[str], notices: bool) -> None:
        if organisations:
            self.on_commit(organisations)
        if notices:
            self.on_notice()

    def reserve_step(self, agent: Agent, conversation_id: str, step: Step) -> Reservation | ErrorCode:
        """Hold a step against the requests that this process serves."""
        with self._lock:
            return self._live.reserve(agent, conversation_id, step)

    def hold(self, reservation: Reservation, charge: Charge, now: float) -> Exceeded | None:
        """Hold a part of the budget likewise."""
        with self._lock:
            return self._live.hold(reservation, charge, now)

    def awaits(self, agent_id: str) -> bool:
        """Whether anything of the agent's waits for a person, and holds a part of its budget; from what is in mind."""
        with self._lock:
            return self._live.usage(agent_id).spent.open_approvals > 0

    def release(self, reservation: Reservation) -> None:
        """Give back what is held."""
        with self._lock:
            self._live.release(reservation)

    def _load_conversation(self, agent_id: str, conversation_id: str) -> Conversation:
        row = self._one(rows.SELECT_CONVERSATION, (agent_id, conversation_id))
        return Conversation(Past(*row) if row is not None else Past())

    def _load_usage(self, agent_id: str) -> Usage:
        row = self._one(rows.SELECT_USAGE, (agent_id,))
        return Usage() if row is None else rows.to_usage(row)


def _nobody() -> None:
    """Nobody wants to know."""
