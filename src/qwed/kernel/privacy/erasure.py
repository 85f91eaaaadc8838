"""Erasure of a subject's content and retention of old content. Leaves and proofs stay unchanged (DESIGN 7)."""

import threading
from collections.abc import Callable
from typing import Annotated

from msgspec import Meta

from qwed.domain.change_parts import SubjectErased
from qwed.futures import Future, notify
from qwed.kernel.admin.approvals import expire
from qwed.kernel.answer import Problem
from qwed.kernel.audit_change import Actor, build_change, commit_change
from qwed.kernel.privacy.payload import masked_name
from qwed.kernel.request import clear_action_cache
from qwed.kernel.request_schema import MAX_NAME_LENGTH, FieldRule, RequestStruct
from qwed.kernel.services import Services
from qwed.kernel.views.agent_views import View
from qwed.model import Event
from qwed.model.clock import DAY
from qwed.store.protocol import StoreError

_BATCH_SIZE = 1_000
_PAUSE = 60.0
_PAUSE_SHARED = 1.0
"""Shorter where processes share the store: the leader may end at any time while approvals expire without requests."""
_SWEEP_INTERVAL = 3_600.0
"""Seconds between two searches for expired content."""
_TIMEOUT = 30.0
_TRIES = 10


class ErasedView(View, frozen=True, kw_only=True):
    """Result of an erasure: `erased` is false if there was no content; `activity_id` is the leaf that records it."""

    erased: bool
    activity_id: str | None


class ErasureRequest(RequestStruct):
    """Subject to erase, as named in `context.subject` or `principal_id`."""

    # Wider than the rule for new subjects: a name that was accepted once can always be erased.
    subject: Annotated[
        str,
        Meta(min_length=1, max_length=MAX_NAME_LENGTH, description="person whom the content is about"),
        FieldRule(f"must be a text of 1 to {MAX_NAME_LENGTH} characters"),
    ]


async def erase(subject: str, actor: Actor, services: Services) -> ErasedView | Problem:
    """Destroy the key of a subject, so that no stored content about the subject can be decrypted."""
    organisation_id, now = actor.organisation_id, services.clock.now()
    name = services.vault.name(organisation_id, subject)
    data_subject = services.store.find_subject(organisation_id, name)
    if data_subject is None:
        return ErasedView(erased=False, activity_id=None)
    # The leaf names the subject only by a random id.
    part = SubjectErased(organisation_id, name, now, subject)
    change = build_change(
        Event.ERASED, actor.actor_id, organisation_id, now, services, about=data_subject.subject_id, parts=(part,)
    )
    receipt = await commit_change(change, services)
    if isinstance(receipt, Problem):
        return receipt
    forget_content(services)
    await _start_vacuum(services)
    return ErasedView(erased=True, activity_id=change.activity.activity_id)


def forget_content(services: Services) -> None:
    """Clear every cache that may hold data of an erased subject."""
    services.vault.forget()
    services.assessments.forget()
    services.engines.forget()
    clear_action_cache()
    masked_name.cache_clear()


def _start_vacuum(services: Services) -> Future[None]:
    """Start a vacuum of the files; the future is done when it ends. If it fails, the retention job tries again."""
    future: Future[None] = Future()
    future.set_result(None)

    def work() -> None:
        vacuum_store(services)
        notify([future])

    # In a thread of its own, because it may have to wait for those who read the files.
    threading.Thread(target=work, name="qwed-vacuum", daemon=True).start()
    return future


def vacuum_store(services: Services) -> None:
    """Vacuum the store so that no deleted key stays readable, unless readers block it all the time."""
    try:
        any(services.store.purge_deleted() for _ in range(_TRIES))
    except StoreError as error:
        services.log.error("vacuum failed; deleted data may stay readable in the files: %s", error)


class RetentionJob:
    """Drops expired content at the start and every hour, and vacuums the files after deletions.

    Where several processes share the store, the leader does it, and resolves expired approvals as well.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._single_process = not services.store.is_shared
        self._next_sweep = 0.0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="qwed-retention", daemon=True)

    def start(self) -> None:
        """Start the thread, if there are files or content with a limited retention."""
        if not self._services.store.in_memory or self._services.settings.content_retention_days:
            self._thread.start()

    def close(self) -> None:
        """Stop the thread and wait for it."""
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join(_TIMEOUT)

    def _run(self) -> None:
        pause = _PAUSE if self._single_process else _PAUSE_SHARED
        while True:
            if self._services.store.is_leader():
                self._run_due()
            if not self._services.store.deleted_purged:
                vacuum_store(self._services)
            if self._closing.wait(pause):
                return

    def _run_due(self) -> None:
        now = self._services.clock.monotonic()
        try:
            if not self._single_process:
                expire(self._services, self._services.clock.now())
            if now >= self._next_sweep:
                self._next_sweep = now + _SWEEP_INTERVAL
                drop_expired_content(self._services)
        except (StoreError, TimeoutError) as error:
            self._services.log.error("retention job failed: %s", error)


def drop_expired_content(services: Services) -> int:
    """Drop content older than its retention and expired rows; return the number of steps for content."""
    store, days, now = services.store, services.settings.content_retention_days, services.clock.now()
    expired = _run_steps(lambda: store.drop_expired(now, _BATCH_SIZE))
    steps = _run_steps(lambda: store.drop_content(now - days * DAY, _BATCH_SIZE, now)) if days else 0
    if expired or steps:
        vacuum_store(services)
    return steps


def _run_steps(step: Callable[[], Future[None] | None]) -> int:
    """Run the step until nothing is left to do; return the number of steps."""
    steps = 0
    while (future := step()) is not None:
        future.wait_result(_TIMEOUT)
        steps += 1
    return steps
