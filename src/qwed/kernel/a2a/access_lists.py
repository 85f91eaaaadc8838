"""Administration of the block and trust lists. Each change of a list is logged (ruling 4.14)."""

import unicodedata
from typing import Annotated, NamedTuple

from msgspec import Meta

from qwed.domain.access_lists import MAX_LIST_ENTRIES, ListEntry, ListName
from qwed.domain.change_parts import ListChanged
from qwed.guards.secrets import find_secrets
from qwed.guards.tool_approval import fold_name
from qwed.kernel.answer import Problem, problem
from qwed.kernel.audit_change import Actor, build_change, commit_change
from qwed.kernel.request_schema import FieldRule, RequestStruct
from qwed.kernel.services import Services
from qwed.kernel.views.agent_views import View
from qwed.model import ErrorCode, Event

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


def _refuse_name(name: str) -> str | None:
    if any(unicodedata.category(char) in _INVISIBLE for char in name) or not fold_name(name):
        return "must be readable, without control characters"
    # It is compared with every message, so it cannot be masked.
    return "carries a secret: use the name of an agent" if find_secrets(name) else None


AgentName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=MAX_ID_LENGTH,
        extra_json_schema={"pattern": r"^[^\u0000-\u001f\u007f-\u009f]*$"},
    ),
    FieldRule(f"must be a text of 1 to {MAX_ID_LENGTH} characters", refuse=_refuse_name),
]


class AgentRequest(RequestStruct):
    """Entry of a list: the id of an agent, or the name that a sender uses."""

    agent_id: AgentName


class PairRequest(RequestStruct):
    """Blocked pair, in this direction only."""

    sender: AgentName
    receiver: AgentName


def entry_of(name: ListName, request: AgentRequest | PairRequest) -> ListEntry:
    """Return the entry of a list."""
    return ListEntry(name, *(getattr(request, field) for field in fields_of(name)))


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
