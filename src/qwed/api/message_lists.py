"""INTERFACES 6: who may send to whom, an owner's to change and every key's to see."""

from qwed.api import message_shapes as shapes
from qwed.api.access import OWNER, require_actor, require_key
from qwed.api.http import Call, Handler, Response, ok, refused
from qwed.kernel.answer import Problem
from qwed.kernel.messages.lists import lists_of, put_entry, read_entry, remove_entry
from qwed.store.boundary import Entry, ListName


async def a2a_lists(call: Call) -> Response:
    """Every list of the organisation."""
    key = require_key(call)
    if isinstance(key, Problem):
        return refused(key)
    return ok(await call.look(lists_of, key.organisation_id, call.services))


def _changed(name: str, which: ListName, *, there: bool) -> Handler:
    change = put_entry if there else remove_entry

    async def handler(call: Call) -> Response:
        actor = require_actor(call, OWNER)
        if isinstance(actor, Problem):
            return refused(actor)
        entry = read_entry(which, call.json())
        if isinstance(entry, Problem):
            return refused(entry)
        kept = await call.driver.drive(change(entry, actor, call.services))
        return refused(kept) if isinstance(kept, Problem) else ok(_view(kept, there))

    handler.__name__ = name
    return handler


def _view(entry: Entry, there: bool) -> shapes.AgentListedView | shapes.PairListedView:
    if entry.list is ListName.PAIRS:
        return shapes.PairListedView(sender=entry.sender, receiver=entry.receiver, listed=there)
    return shapes.AgentListedView(agent_id=entry.sender, listed=there)


block_agent = _changed("block_agent", ListName.BLOCKS, there=True)
unblock_agent = _changed("unblock_agent", ListName.BLOCKS, there=False)
block_pair = _changed("block_pair", ListName.PAIRS, there=True)
unblock_pair = _changed("unblock_pair", ListName.PAIRS, there=False)
trust_agent = _changed("trust_agent", ListName.TRUSTED, there=True)
revoke_agent = _changed("revoke_agent", ListName.TRUSTED, there=False)
