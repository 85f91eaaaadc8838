"""Ruling 4.14: whom an owner blocks and trusts. Each change of a list stands in the log."""

import unicodedata
from typing import Any, NamedTuple

from qwed.guards.secrets import find_secrets
from qwed.guards.tool_approval import folded
from qwed.kernel.answer import Problem, problem
from qwed.kernel.bodies import refuse_body
from qwed.kernel.change import Actor, change_of, keep
from qwed.kernel.services import Services
from qwed.kernel.views.agents import View
from qwed.store.boundary import MOST_LISTED, Entry, ListName
from qwed.store.parts import ListChanged
from qwed.words import ErrorCode, Event

LONGEST_ID = 256
"""As in a message."""
_UNSEEN = frozenset({"Cc", "Cs"})


class _Told(NamedTuple):
    put: Event
    removed: Event


EVENTS = {
    ListName.BLOCKS: _Told(Event.AGENT_BLOCKED, Event.AGENT_UNBLOCKED),
    ListName.PAIRS: _Told(Event.PAIR_BLOCKED, Event.PAIR_UNBLOCKED),
    ListName.TRUSTED: _Told(Event.SENDER_TRUSTED, Event.SENDER_REVOKED),
}


class PairView(View, frozen=True, kw_only=True):
    """A sender that may not write to a receiver."""

    sender: str
    receiver: str


class ListsView(View, frozen=True, kw_only=True):
    """Who may not send to whom, and who is not looked at."""

    blocks: tuple[str, ...]
    pairs: tuple[PairView, ...]
    trusted: tuple[str, ...]


def lists_of(organisation_id: str, services: Services) -> ListsView:
    """The lists of an organisation."""
    boundary = services.store.boundary(organisation_id)
    return ListsView(
        blocks=tuple(each.sender for each in boundary.of(ListName.BLOCKS)),
        pairs=tuple(PairView(sender=each.sender, receiver=each.receiver) for each in boundary.of(ListName.PAIRS)),
        trusted=tuple(each.sender for each in boundary.of(ListName.TRUSTED)),
    )


def fields_of(name: ListName) -> tuple[str, ...]:
    """What an entry of a list consists of, as it is sent."""
    return ("sender", "receiver") if name is ListName.PAIRS else ("agent_id",)


def read_entry(name: ListName, raw: Any) -> Entry | Problem:
    """The entry that was sent, or what is wrong with it."""
    fields = fields_of(name)
    wrong = refuse_body(raw, fields)
    if wrong is not None:
        return wrong
    for field in fields:
        wrong = _refuse_name(field, raw.get(field))
        if wrong is not None:
            return wrong
    return Entry(name, *(raw[field] for field in fields))


def _refuse_name(field: str, name: Any) -> Problem | None:
    if name is None:
        return problem(ErrorCode.MISSING_FIELD, f"`{field}` is required")
    if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_ID:
        return problem(ErrorCode.MALFORMED, f"`{field}` must be a text of 1 to {LONGEST_ID} characters")
    if any(unicodedata.category(each) in _UNSEEN for each in name) or not folded(name):
        return problem(ErrorCode.MALFORMED, f"`{field}` must be readable, without control characters")
    if find_secrets(name):
        # It is compared with every message, so it cannot be masked.
        return problem(ErrorCode.MALFORMED, f"`{field}` carries a secret: use the name of an agent")
    return None


async def put_entry(entry: Entry, actor: Actor, services: Services) -> Entry | Problem:
    """Put an entry on its list; once more is no mistake."""
    boundary = services.store.boundary(actor.organisation_id)
    if entry in boundary.entries:
        # Whoever put it there may still wait for the disk.
        await services.store.durable()
        there = entry in services.store.boundary(actor.organisation_id).entries
        return entry if there else problem(ErrorCode.CONFLICT)
    if boundary.size(entry.list) >= MOST_LISTED:
        message = f"`{entry.list}` has {MOST_LISTED:,} entries, which is the most: remove one first"
        return problem(ErrorCode.CONFLICT, message)
    return await _keep(entry, EVENTS[entry.list].put, actor, services, there=True)


async def remove_entry(entry: Entry, actor: Actor, services: Services) -> Entry | Problem:
    """Take an entry off its list."""
    if entry not in services.store.boundary(actor.organisation_id).entries:
        return problem(ErrorCode.NOT_FOUND, f"this is not on the list `{entry.list}`: names are compared exactly")
    return await _keep(entry, EVENTS[entry.list].removed, actor, services, there=False)


async def _keep(entry: Entry, event: Event, actor: Actor, services: Services, *, there: bool) -> Entry | Problem:
    change = change_of(
        event,
        actor.by,
        actor.organisation_id,
        services.clock.now(),
        services,
        # Sealed: what agents of others are called may name people.
        said=dict(zip(fields_of(entry.list), entry[1:], strict=False)),
        parts=(ListChanged(actor.organisation_id, entry, there),),
    )
    kept = await keep(change, services)
    return kept if isinstance(kept, Problem) else entry
