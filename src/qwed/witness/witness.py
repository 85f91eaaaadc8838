"""DESIGN 1, P5: the newest head of every log is published at the start, every so often and at the end.

Whoever holds one of them can tell whether the log was changed since. Nothing waits for a witness: one that fails is
said once, counted, and tried again at the next turn. Where several processes share the store, whoever leads publishes.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

from qwed.kernel.services import Services
from qwed.ledger.keyring import Keyring
from qwed.ledger.sequencer import Head, head_from
from qwed.waiting import LoopThread, failure_of
from qwed.witness.comparison import Contradiction, Log, recall
from qwed.witness.places import KINDS, Outcome, Place, WitnessFile, places_of

NONE, STARTING, READY, FAILING, CONTRADICTED = "none", "starting", "ready", "failing", "contradicted"
FOLLOWING_SECONDS = 1.0
"""Between two looks whether this process is the one to publish now."""
LAST_SECONDS = 2.0
"""For the heads that are published at the end."""
CLOSE_SECONDS = LAST_SECONDS + 1.0


class Desk:
    """One place, what was published there, and how it went last."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.newest: dict[str, Head] = {}
        self.why: str | None = None
        self.recalled = False
        """Whether what the place holds was compared with the log."""

    def grown(self, heads: Sequence[Head]) -> list[Head]:
        """Those of the newest heads that are not published here yet."""
        return [head for head in heads if not self._has(head)]

    def shrunk(self, heads: Sequence[Head]) -> list[Contradiction]:
        """Those of them that come after a later one, or after another one of their size."""
        return [
            Contradiction(head.log_id, head.size, "the log was longer, or another, before")
            for head in heads
            if head.log_id in self.newest and head.size <= self.newest[head.log_id].size
        ]

    def _has(self, head: Head) -> bool:
        known = self.newest.get(head.log_id)
        return known is not None and (known.size, known.root) == (head.size, head.root)


class Witness:
    """Started once, closed once; what it says of itself may be read from any thread."""

    def __init__(
        self,
        log: Log,
        keyring: Keyring,
        places: Sequence[Place],
        seconds: float,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self._leads = leads
        self.published: Counter[str] = Counter(dict.fromkeys(KINDS, 0))
        self.failed: Counter[str] = Counter(dict.fromkeys(KINDS, 0))
        """By kind of place: heads, and turns that could not be ended."""
        self.contradicted: dict[str, Contradiction] = {}
        """Logs that contradict a head which was published once."""
        self._log = log
        self._keyring = keyring
        self._seconds = seconds
        self._desks = [Desk(place) for place in places]
        self._thread = LoopThread("qwed-witness", self._serve)
        self._logger = logging.getLogger("qwed.witness")

    @property
    def state(self) -> str:
        """How it stands, in one word."""
        if self.contradicted:
            return CONTRADICTED
        if any(desk.why is not None for desk in self._desks):
            return FAILING
        if not self._desks:
            return NONE
        return READY if all(desk.recalled for desk in self._desks) else STARTING

    def start(self) -> None:
        """Begin with what was not published yet; without a place there is nothing to do."""
        if self._desks:
            self._thread.start()

    def close(self) -> None:
        """Publish once more, and stop within a few seconds."""
        self._thread.close(CLOSE_SECONDS)

    async def _serve(self) -> None:
        await asyncio.gather(*(self._serve_place(desk) for desk in self._desks))

    async def _serve_place(self, desk: Desk) -> None:
        await self._safely(desk, self._recall(desk))
        desk.recalled = True
        followed = False
        while not self._thread.closing.is_set():
            leads = self._leads()
            if leads and followed:
                # Whoever led until now has published since.
                await self._safely(desk, self._recall(desk))
            if leads:
                await self._safely(desk, self._turn(desk))
            followed = not leads
            await self._thread.pause(self._seconds if leads else min(self._seconds, FOLLOWING_SECONDS))
        if self._leads():
            await self._safely(desk, asyncio.wait_for(self._turn(desk), LAST_SECONDS))

    async def _safely(self, desk: Desk, work: Coroutine[Any, Any, None]) -> None:
        failure = await failure_of(work)
        if failure is not None:
            self._told(desk, Outcome(0, f"{type(failure).__name__}: {failure}"))

    async def _recall(self, desk: Desk) -> None:
        if not isinstance(desk.place, WitnessFile):
            return
        try:
            recalled = await recall(desk.place.file, self._log, self._keyring)
        except FileNotFoundError:
            return
        desk.newest |= recalled.newest
        for what, count in recalled.strange.items():
            details = {"place": desk.place.name, "what": what, "count": count}
            self._logger.warning("a witness holds what is not ours", extra=details)
        self._contradict(desk, recalled.contradictions.values())

    def _contradict(self, desk: Desk, found: Iterable[Contradiction]) -> None:
        for each in found:
            if each.log_id not in self.contradicted:
                self.contradicted[each.log_id] = each
                details = {"place": desk.place.name, **each._asdict()}
                self._logger.error("the log contradicts a head that was published", extra=details)

    async def _turn(self, desk: Desk) -> None:
        heads = desk.grown([head_from(signature) for signature in self._log.latest_heads()])
        if not heads:
            return
        self._contradict(desk, desk.shrunk(heads))
        outcome = await desk.place.publish(heads)
        desk.newest |= {head.log_id: head for head in heads[: outcome.published]}
        self._told(desk, outcome)

    def _told(self, desk: Desk, outcome: Outcome) -> None:
        """Count the outcome, and say it where it is another one than last time."""
        kind, before = desk.place.kind, desk.why
        self.published[kind] += outcome.published
        self.failed[kind] += outcome.why is not None
        desk.why = outcome.why
        if (outcome.why is None) == (before is None):
            return
        if outcome.why is None:
            self._logger.info("a witness is published to again", extra={"place": desk.place.name})
        else:
            self._logger.error("a witness fails", extra={"place": desk.place.name, "why": outcome.why})


def witness_for(services: Services) -> Witness:
    """The witness the settings ask for; SettingsError where they name a place that cannot be used."""
    settings = services.settings
    places = places_of(settings, services.clock)
    return Witness(
        services.store, services.signer.keyring, places, settings.witness_seconds, leads=services.store.leads
    )
