"""Where verdicts come from: exact arithmetic at once, a verdict already known, or an engine worker."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import NamedTuple, Protocol

import msgspec

from qwed.engines.arithmetic import verify_quick
from qwed.engines.pool import EnginePool, Turn
from qwed.engines.protocol import EngineRequest, Policy
from qwed.engines.table import ENGINES
from qwed.waiting import Ticket
from qwed.words import Status, Verdict

REMEMBERED = 10_000
QUIET_SECONDS = 3.0
"""After a start the first questions have the processors to themselves."""
_LONGEST = 4096
_LARGEST = 8192
"""Bytes of a verdict that is remembered: evidence may be as long as the context it was found in."""
_WAITED_FOR = 256
"""Turns that are kept in mind before those are forgotten that are over; no queue is as long."""
_encode = msgspec.json.Encoder().encode

SETTLED = frozenset({Status.VERIFIED, Status.FAILED, Status.BLOCKED, Status.SIMPLIFIED})
"""Verdicts that depend on nothing but the input; a timeout may go better next time."""

Key = tuple[str, str, int, Policy, bool, str]


class Question(NamedTuple):
    """One input, and whose verdict may be reused for it."""

    organisation_id: str
    engine: str
    action_hash: str
    request: EngineRequest
    agent_id: str = ""
    """Who asks: workers are shared out among agents. No part of what a verdict is remembered by."""
    seconds: float | None = None
    """How long it may take, where no agent asks and none waits for its step."""


class Asks(Protocol):
    """Whoever has verdicts to give."""

    def ask(self, question: Question) -> Verdict | Ticket[Verdict]:
        """The verdict, or a ticket for it."""


class OnBehalf(NamedTuple):
    """Asks for those who do not say for whom: each `who` has its turn at the workers."""

    verdicts: Asks
    who: str

    def ask(self, question: Question) -> Verdict | Ticket[Verdict]:
        """The verdict, or a ticket for it."""
        return self.verdicts.ask(question._replace(agent_id=self.who))


class Verdicts:
    """Asks the pool only for what nobody has asked before. Safe to use from any thread."""

    def __init__(self, pool: EnginePool, seconds: float) -> None:
        self._pool = pool
        self._seconds = seconds
        self._known: OrderedDict[Key, Verdict] = OrderedDict()
        self._waited_for: dict[tuple[Key, str], Turn] = {}
        self._lock = Lock()
        self.on_ask: Callable[[str, Turn], None] | None = None
        """Called with the engine and the turn of each question that a worker gets, by whoever asks."""

    def start(self) -> None:
        """Start the workers; the first question does it where nobody has."""
        self._pool.start()

    def warm(self) -> None:
        """Start the workers, and have them load in a quiet moment what is not asked for either."""
        self._pool.start(warm_after=QUIET_SECONDS)

    @property
    def ready(self) -> bool:
        """Whether the workers are up."""
        return self._pool.ready

    def known(self) -> frozenset[str]:
        """The engines there are."""
        return _NAMES

    def ask(self, question: Question) -> Verdict | Ticket[Verdict]:
        """The verdict, or a ticket for it."""
        if question.engine == "math" and not question.request.parameters:
            quick = verify_quick(question.request.query)
            if quick is not None:
                return quick
        key = _key(question)
        with self._lock:
            found = self._known.get(key) or self._shared(key, question)
        return self._submit(key, question) if found is None else found

    def _shared(self, key: Key, question: Question) -> Ticket[Verdict] | None:
        """What the same agent waits for already: who asks one thing on many connections fills no queue with it.

        Of another agent it would be another's turn that is waited for; and what may take longer is asked by itself.
        """
        turn = self._waited_for.get((key, question.agent_id)) if question.seconds is None else None
        return None if turn is None else turn.another()

    def _submit(self, key: Key, question: Question) -> Ticket[Verdict]:
        self.start()
        for_agent = question.seconds is None
        seconds = self._seconds if question.seconds is None else question.seconds
        turn = self._pool.submit(question.engine, question.request, seconds, for_agent=for_agent, who=question.agent_id)
        if isinstance(turn, Turn):
            if for_agent and ENGINES[question.engine].lasting:
                self._wait_for((key, question.agent_id), turn)
            if self.on_ask is not None:
                self.on_ask(question.engine, turn)
        return turn

    def _wait_for(self, place: tuple[Key, str], turn: Turn) -> None:
        with self._lock:
            self._waited_for[place] = turn
            if len(self._waited_for) > _WAITED_FOR:
                self._waited_for = {place: turn for place, turn in self._waited_for.items() if not turn.ended}

    def forget(self) -> None:
        """Remember nothing: what was asked may be about somebody who is erased."""
        with self._lock:
            self._known.clear()
            self._waited_for.clear()

    def learn(self, question: Question, verdict: Verdict) -> None:
        """Remember a verdict that depends on its input alone."""
        if not ENGINES[question.engine].lasting:
            return
        if verdict.status not in SETTLED or len(question.request.query) + len(question.request.code) > _LONGEST:
            return
        if len(_encode(verdict)) > _LARGEST:
            return
        with self._lock:
            self._known[_key(question)] = verdict
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)

    def close(self) -> None:
        """End the workers."""
        self._pool.close()


_NAMES = frozenset(ENGINES)


def _key(question: Question) -> Key:
    version = ENGINES[question.engine].version
    asked = question.request
    return question.organisation_id, question.engine, version, asked.policy, asked.strict, question.action_hash
