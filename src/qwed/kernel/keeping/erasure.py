"""DESIGN 7: content goes when its subject is erased, or when its time is over. Leaves and proofs stay as they are."""

import threading
from collections.abc import Callable
from typing import Any

from qwed.kernel.answer import Problem, problem
from qwed.kernel.bodies import refuse_body
from qwed.kernel.change import Actor, change_of, keep
from qwed.kernel.keeping.payload import shown_name
from qwed.kernel.people.approvals import expire
from qwed.kernel.request import LONGEST_NAME, forget_actions
from qwed.kernel.services import Services
from qwed.kernel.views.agents import View
from qwed.store.parts import SubjectErased
from qwed.store.protocol import StoreError
from qwed.waiting import Ticket, announce
from qwed.words import ErrorCode, Event
from qwed.words.clock import DAY

_AT_ONCE = 1_000
_PAUSE = 60.0
_PAUSE_AMONG_OTHERS = 1.0
"""Where whoever led may end at any time, and an approval may run out that no request comes by."""
_BETWEEN = 3_600.0
"""Seconds between two looks for content whose time is over."""
_PATIENCE = 30.0
_TRIES = 10


class ErasedView(View, frozen=True, kw_only=True):
    """Whether there was anything to erase; then which leaf says so."""

    erased: bool
    activity_id: str | None


def read_erasure(raw: Any) -> str | Problem:
    """The subject in a body, or what is wrong with it."""
    wrong = refuse_body(raw, ("subject",))
    if wrong is not None:
        return wrong
    subject = raw.get("subject")
    if subject is None:
        return problem(ErrorCode.MISSING_FIELD, "`subject` is required")
    # Not only what can be a subject today: what was taken once can be erased for ever.
    if not isinstance(subject, str) or not 0 < len(subject) <= LONGEST_NAME:
        return problem(ErrorCode.MALFORMED, f"`subject` must be a text of 1 to {LONGEST_NAME} characters")
    return subject


async def erase(subject: str, actor: Actor, services: Services) -> ErasedView | Problem:
    """Destroy the key of a subject: whatever is kept about them opens no more."""
    organisation_id, now = actor.organisation_id, services.clock.now()
    name = services.vault.name(organisation_id, subject)
    found = services.store.find_subject(organisation_id, name)
    if found is None:
        return ErasedView(erased=False, activity_id=None)
    # Of whom, the leaf says only by a name that tells nobody.
    part = SubjectErased(organisation_id, name, now, subject)
    change = change_of(Event.ERASED, actor.by, organisation_id, now, services, about=found.subject_id, parts=(part,))
    kept = await keep(change, services)
    if isinstance(kept, Problem):
        return kept
    forget_content(services)
    await _cleared(services)
    return ErasedView(erased=True, activity_id=change.activity.activity_id)


def forget_content(services: Services) -> None:
    """Hold nothing in memory that may be about somebody who is erased."""
    services.vault.forget()
    services.judgements.forget()
    services.engines.forget()
    forget_actions()
    shown_name.cache_clear()


def _cleared(services: Services) -> Ticket[None]:
    """Done when the files were cleared, or would not let themselves be: the sweeper goes on with it then."""
    ticket: Ticket[None] = Ticket()
    ticket.complete(None)

    def work() -> None:
        clear(services)
        announce([ticket])

    # In a thread of its own, because it may have to wait for those who read the files.
    threading.Thread(target=work, name="qwed-clearing", daemon=True).start()
    return ticket


def clear(services: Services) -> None:
    """Let no deleted key stay readable in the files, unless somebody reads them all the while."""
    try:
        any(services.store.scrub() for _ in range(_TRIES))
    except StoreError as error:
        services.log.error("what was deleted could not be cleared from the files: %s", error)


class Sweeper:
    """Drops what has run out, at the start and every hour, and clears what was deleted from the files.

    Where several processes share the store, whoever leads does it, and settles the approvals whose time is over.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._alone = services.store.freshen is None
        self._next_sweep = 0.0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="qwed-retention", daemon=True)

    def start(self) -> None:
        """Begin, where there are files or content that may become too old."""
        if not self._services.store.in_memory or self._services.settings.content_retention_days:
            self._thread.start()

    def close(self) -> None:
        """Stop soon."""
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join(_PATIENCE)

    def _run(self) -> None:
        pause = _PAUSE if self._alone else _PAUSE_AMONG_OTHERS
        while True:
            if self._services.store.leads():
                self._keep_house()
            if not self._services.store.scrubbed:
                clear(self._services)
            if self._closing.wait(pause):
                return

    def _keep_house(self) -> None:
        now = self._services.clock.monotonic()
        try:
            if not self._alone:
                expire(self._services, self._services.clock.now())
            if now >= self._next_sweep:
                self._next_sweep = now + _BETWEEN
                sweep(self._services)
        except (StoreError, TimeoutError) as error:
            self._services.log.error("what has run out could not be dropped: %s", error)


def sweep(services: Services) -> int:
    """Drop all content that is older than it may become, in how many steps; with it what has a time of its own."""
    store, days, now = services.store, services.settings.content_retention_days, services.clock.now()
    over = _taken(lambda: store.drop_expired(now, _AT_ONCE))
    steps = _taken(lambda: store.drop_content(now - days * DAY, _AT_ONCE, now)) if days else 0
    if over or steps:
        clear(services)
    return steps


def _taken(step: Callable[[], Ticket[None] | None]) -> int:
    """How many steps there were to take."""
    steps = 0
    while (ticket := step()) is not None:
        ticket.block(_PATIENCE)
        steps += 1
    return steps
