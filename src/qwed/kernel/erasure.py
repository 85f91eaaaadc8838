"""DESIGN 7: content goes when its subject is erased, or when its time is over. Leaves and proofs stay as they are."""

import threading
from typing import Any

from qwed.kernel.answer import Problem, problem
from qwed.kernel.bodies import refuse_body
from qwed.kernel.change import Actor, change_of, keep
from qwed.kernel.request import SUBJECT, forget_actions, is_subject
from qwed.kernel.services import Services
from qwed.kernel.views import View
from qwed.store.parts import SubjectErased
from qwed.store.protocol import StoreError
from qwed.words import ErrorCode, Event
from qwed.words.clock import DAY

_AT_ONCE = 1_000
_PAUSE = 3_600.0
_PATIENCE = 30.0


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
    if not isinstance(subject, str) or not is_subject(subject):
        return problem(ErrorCode.MALFORMED, f"`subject` must be {SUBJECT}")
    return subject


async def erase(subject: str, actor: Actor, services: Services) -> ErasedView | Problem:
    """Destroy the key of a subject: whatever is kept about them opens no more, here and in every copy of the tables."""
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
    services.store.scrub()
    return ErasedView(erased=True, activity_id=change.activity.activity_id)


def forget_content(services: Services) -> None:
    """Hold nothing in memory that may be about somebody who is erased."""
    services.vault.forget()
    services.judgements.forget()
    services.engines.forget()
    forget_actions()


class Sweeper:
    """Drops content whose time is over: at the start, and every hour."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="qwed-retention", daemon=True)

    def start(self) -> None:
        """Begin, where an operator has limited how long content is kept."""
        if self._services.settings.content_retention_days:
            self._thread.start()

    def close(self) -> None:
        """Stop soon."""
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join(_PATIENCE)

    def _run(self) -> None:
        while True:
            try:
                sweep(self._services)
            except (StoreError, TimeoutError) as error:
                self._services.log.error("content whose time is over could not be dropped: %s", error)
            if self._closing.wait(_PAUSE):
                return


def sweep(services: Services) -> int:
    """Drop all content that is older than it may become; in how many steps."""
    days = services.settings.content_retention_days
    steps = 0
    while days:
        ticket = services.store.drop_content(services.clock.now() - days * DAY, _AT_ONCE)
        if ticket is None:
            break
        ticket.block(_PATIENCE)
        steps += 1
    if steps:
        services.store.scrub()
    return steps
