"""Publishes the newest head of every log at the start, at an interval and at the end (DESIGN 1, P5).

A published head shows whether the log was changed since. Nothing waits for a witness: a failure is logged once,
counted, and retried at the next interval. If several processes share the store, the leader publishes.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

from qwed.futures import LoopThread, capture_failure
from qwed.kernel.services import Services
from qwed.ledger.keyring import Keyring
from qwed.ledger.sequencer import Head, head_from
from qwed.witness.consistency import Contradiction, WitnessedLog, compare_file
from qwed.witness.publishers import KINDS, FilePublisher, Publisher, PublishResult, create_publishers

NONE, STARTING, READY, FAILING, CONTRADICTED = "none", "starting", "ready", "failing", "contradicted"
FOLLOWER_POLL_SECONDS = 1.0
"""Interval at which a follower checks whether it has become the leader."""
FINAL_PUBLISH_SECONDS = 2.0
"""Time to publish the last heads when the server stops."""
CLOSE_SECONDS = FINAL_PUBLISH_SECONDS + 1.0


class PublisherState:
    """One publisher, the heads published there, and its last error."""

    def __init__(self, publisher: Publisher) -> None:
        self.publisher = publisher
        self.newest: dict[str, Head] = {}
        self.error: str | None = None
        self.compared = False
        """True once the publisher's heads were compared with the log."""

    def unpublished(self, heads: Sequence[Head]) -> list[Head]:
        """Return the heads that are not published here yet."""
        return [head for head in heads if not self._is_published(head)]

    def contradictions_of(self, heads: Sequence[Head]) -> list[Contradiction]:
        """Return the heads that follow a larger one, or a different one of the same size."""
        return [
            Contradiction(head.log_id, head.size, "the log was longer or different before")
            for head in heads
            if head.log_id in self.newest and head.size <= self.newest[head.log_id].size
        ]

    def _is_published(self, head: Head) -> bool:
        published = self.newest.get(head.log_id)
        return published is not None and (published.size, published.root) == (head.size, head.root)


class Witness:
    """Publishes heads in a thread. Started and closed once; its state may be read from any thread."""

    def __init__(
        self,
        log: WitnessedLog,
        keyring: Keyring,
        publishers: Sequence[Publisher],
        seconds: float,
        is_leader: Callable[[], bool] = lambda: True,
    ) -> None:
        self._is_leader = is_leader
        self.published: Counter[str] = Counter(dict.fromkeys(KINDS, 0))
        self.failed: Counter[str] = Counter(dict.fromkeys(KINDS, 0))
        """By kind of publisher: heads published, and failed attempts."""
        self.contradicted: dict[str, Contradiction] = {}
        """Logs that contradict a published head."""
        self._log = log
        self._keyring = keyring
        self._seconds = seconds
        self._states = [PublisherState(publisher) for publisher in publishers]
        self._thread = LoopThread("qwed-witness", self._serve)
        self._logger = logging.getLogger("qwed.witness")

    @property
    def state(self) -> str:
        """State shown by `/ready`."""
        if self.contradicted:
            return CONTRADICTED
        if any(state.error is not None for state in self._states):
            return FAILING
        if not self._states:
            return NONE
        return READY if all(state.compared for state in self._states) else STARTING

    def start(self) -> None:
        """Start with the heads that are not published yet; do nothing without publishers."""
        if self._states:
            self._thread.start()

    def close(self) -> None:
        """Publish once more, and stop within a few seconds."""
        self._thread.close(CLOSE_SECONDS)

    async def _serve(self) -> None:
        await asyncio.gather(*(self._serve_publisher(state) for state in self._states))

    async def _serve_publisher(self, state: PublisherState) -> None:
        await self._guard(state, self._compare(state))
        state.compared = True
        was_follower = False
        while not self._thread.closing.is_set():
            is_leader = self._is_leader()
            if is_leader and was_follower:
                # The previous leader has published since.
                await self._guard(state, self._compare(state))
            if is_leader:
                await self._guard(state, self._publish_new(state))
            was_follower = not is_leader
            await self._thread.pause(self._seconds if is_leader else min(self._seconds, FOLLOWER_POLL_SECONDS))
        if self._is_leader():
            await self._guard(state, asyncio.wait_for(self._publish_new(state), FINAL_PUBLISH_SECONDS))

    async def _guard(self, state: PublisherState, work: Coroutine[Any, Any, None]) -> None:
        failure = await capture_failure(work)
        if failure is not None:
            self._record(state, PublishResult(0, f"{type(failure).__name__}: {failure}"))

    async def _compare(self, state: PublisherState) -> None:
        if not isinstance(state.publisher, FilePublisher):
            return
        try:
            comparison = await compare_file(state.publisher.file, self._log, self._keyring)
        except FileNotFoundError:
            return
        state.newest |= comparison.newest
        for kind, count in comparison.unrelated.items():
            details = {"publisher": state.publisher.name, "kind": kind, "count": count}
            self._logger.warning("witness file has unrelated lines", extra=details)
        self._contradict(state, comparison.contradictions.values())

    def _contradict(self, state: PublisherState, contradictions: Iterable[Contradiction]) -> None:
        for contradiction in contradictions:
            if contradiction.log_id not in self.contradicted:
                self.contradicted[contradiction.log_id] = contradiction
                details = {"publisher": state.publisher.name, **contradiction._asdict()}
                self._logger.error("audit log contradicts a published head", extra=details)

    async def _publish_new(self, state: PublisherState) -> None:
        heads = state.unpublished([head_from(signature) for signature in self._log.latest_heads()])
        if not heads:
            return
        self._contradict(state, state.contradictions_of(heads))
        outcome = await state.publisher.publish(heads)
        state.newest |= {head.log_id: head for head in heads[: outcome.published]}
        self._record(state, outcome)

    def _record(self, state: PublisherState, outcome: PublishResult) -> None:
        """Count the outcome, and log it if it changed."""
        kind, before = state.publisher.kind, state.error
        self.published[kind] += outcome.published
        self.failed[kind] += outcome.error is not None
        state.error = outcome.error
        if (outcome.error is None) == (before is None):
            return
        if outcome.error is None:
            self._logger.info("witness publishing restored", extra={"publisher": state.publisher.name})
        else:
            details = {"publisher": state.publisher.name, "error": outcome.error}
            self._logger.error("witness publishing failed", extra=details)


def create_witness(services: Services) -> Witness:
    """Return the witness of the settings; raise SettingsError if a publisher cannot be used."""
    settings = services.settings
    publishers = create_publishers(settings, services.clock)
    return Witness(
        services.store,
        services.signer.keyring,
        publishers,
        settings.witness_seconds,
        is_leader=services.store.is_leader,
    )
