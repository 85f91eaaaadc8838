"""Administration of the block and trust lists. Each change of a list is logged (ruling 4.14)."""

import unicodedata
from typing import Any, NamedTuple

from qwed.guards.secrets import find_secrets
from qwed.guards.tool_approval import fold_name
from qwed.kernel.answer import Problem, problem
from qwed.kernel.audit_change import Actor, build_change, commit_change
from qwed.kernel.body_parsing import refuse_body
from qwed.kernel.services import Services
from qwed.kernel.views.agent_views import View
from qwed.model import ErrorCode, Event
from qwed.store.access_lists import MAX_LIST_ENTRIES, ListEntry, ListName
from qwed.store.change_parts import ListChanged

MAX_ID_LENGTH = 256
"""The same limit as in a message."""
_INVISIBLE = frozenset({"Cc", "Cs"})


class _ListEvents(NamedTuple):
    added: Event
    removed: Event


EVENTS = {
    ListName.BLOCKS: _ListEvents(Event.AGENT_BLOCKED, Event.AGENT_UNBLOCKED),
    ListName.PAIRS: _ListEvents(Event.PAIR_BLOCKED, Event.PAIR_UNBLOCKED),
    ListName.TRUSTED: _ListEvents(Event.SENDER_TRUSTED, Event.SENDER_REVOKED),
}


class PairView(View, frozen=True, kw_only=True):
    """A sender that may not write to a receiver."""

    sender: str
    receiver: str


class ListsView(View, frozen=True, kw_only=True):
    """The block and trust lists of an organisation."""

    blocks: tuple[str, ...]
    pairs: tuple[PairView, ...]
    trusted: tuple[str, ...]


def lists_of(organisation_id: str, services: Services) -> ListsView:
    """Return the lists of an organisation."""
    boundary = services.store.access_lists(organisation_id)
    return ListsView(
        blocks=tuple(entry.sender for entry in boundary.entries_of(ListName.BLOCKS)),
        pairs=tuple(
            PairView(sender=entry.sender, receiver=entry.receiver) for entry in boundary.entries_of(ListName.PAIRS)
        ),
        trusted=tuple(entry.sender for entry in boundary.entries_of(ListName.TRUSTED)),
    )


def fields_of(name: ListName) -> tuple[str, ...]:
    """Return the members of a list entry in a request."""
    return ("sender", "receiver") if name is ListName.PAIRS else ("agent_id",)


def read_entry(name: ListName, raw: Any) -> ListEntry | Problem:
    """Parse the entry in a request, or return the problem with it."""
    fields = fields_of(name)
    refusal = refuse_body(raw, fields)
    if refusal is not None:
        return refusal
    for field in fields:
        refusal = _refuse_name(field, raw.get(field))
        if refusal is not None:
            return refusal
    return ListEntry(name, *(raw[field] for field in fields))


def _refuse_name(field: str, name: Any) -> Problem | None:
    if name is None:
        return problem(ErrorCode.MISSING_FIELD, f"`{field}` is required")
    if not isinstance(name, str) or not 1 <= len(name) <= MAX_ID_LENGTH:
        return problem(ErrorCode.MALFORMED, f"`{field}` must be a text of 1 to {MAX_ID_LENGTH} characters")
    if any(unicodedata.category(char) in _INVISIBLE for char in name) or not fold_name(name):
        return problem(ErrorCode.MALFORMED, f"`{field}` must be readable, without control characters")
    if find_secrets(name):
        # It is compared with every message, so it cannot be masked.
        return problem(ErrorCode.MALFORMED, f"`{field}` carries a secret: use the name of an agent")
    return None


async def put_entry(entry: ListEntry, actor: Actor, services: Services) -> ListEntry | Problem:
    """Add an entry to its list; adding it twice is not an error."""
    boundary = services.store.access_lists(actor.organisation_id)
    if entry in boundary.entries:
        # The request that added it may still wait for the disk.
        await services.store.durable()
        stored = entry in services.store.access_lists(actor.organisation_id).entries
        return entry if stored else problem(ErrorCode.CONFLICT)
    if boundary.size(entry.list) >= MAX_LIST_ENTRIES:
        message = f"`{entry.list}` has {MAX_LIST_ENTRIES:,} entries, which is the maximum: remove one first"
        return problem(ErrorCode.CONFLICT, message)
    return await _commit(entry, EVENTS[entry.list].added, actor, services, present=True)


async def remove_entry(entry: ListEntry, actor: Actor, services: Services) -> ListEntry | Problem:
    """Remove an entry from its list."""
    if entry not in services.store.access_lists(actor.organisation_id).entries:
        return problem(ErrorCode.NOT_FOUND, f"this is not on the list `{entry.list}`: names are compared exactly")
    return await _commit(entry, EVENTS[entry.list].removed, actor, services, present=False)


async def _commit(
    entry: ListEntry, event: Event, actor: Actor, services: Services, *, present: bool
) -> ListEntry | Problem:
    change = build_change(
        event,
        actor.actor_id,
        actor.organisation_id,
        services.clock.now(),
        services,
        # Sealed: the names of foreign agents may contain personal data.
        content=dict(zip(fields_of(entry.list), entry[1:], strict=False)),
        parts=(ListChanged(actor.organisation_id, entry, present),),
    )
    receipt = await commit_change(change, services)
    return receipt if isinstance(receipt, Problem) else entry
