"""Handlers of the A2A block, pair and trust lists; only owners change them (INTERFACES 6)."""

from qwed.api.openapi import a2a_schemas as shapes
from qwed.api.server.auth import OWNER, require_actor, require_key
from qwed.api.server.endpoint import Handler, RequestContext, Response, error_response, json_response
from qwed.kernel.a2a.access_lists import lists_of, put_entry, read_entry, remove_entry
from qwed.kernel.answer import Problem
from qwed.store.access_lists import ListEntry, ListName


async def a2a_lists(request: RequestContext) -> Response:
    """Return every list of the organisation."""
    key = require_key(request)
    if isinstance(key, Problem):
        return error_response(key)
    return json_response(await request.run_blocking(lists_of, key.organisation_id, request.services))


def _list_handler(name: str, which: ListName, *, there: bool) -> Handler:
    change = put_entry if there else remove_entry

    async def handler(request: RequestContext) -> Response:
        actor = require_actor(request, OWNER)
        if isinstance(actor, Problem):
            return error_response(actor)
        entry = read_entry(which, request.json())
        if isinstance(entry, Problem):
            return error_response(entry)
        stored = await request.driver.run(change(entry, actor, request.services))
        return error_response(stored) if isinstance(stored, Problem) else json_response(_view(stored, there))

    handler.__name__ = name
    return handler


def _view(entry: ListEntry, there: bool) -> shapes.AgentListedView | shapes.PairListedView:
    if entry.list is ListName.PAIRS:
        return shapes.PairListedView(sender=entry.sender, receiver=entry.receiver, listed=there)
    return shapes.AgentListedView(agent_id=entry.sender, listed=there)


block_agent = _list_handler("block_agent", ListName.BLOCKS, there=True)
unblock_agent = _list_handler("unblock_agent", ListName.BLOCKS, there=False)
block_pair = _list_handler("block_pair", ListName.PAIRS, there=True)
unblock_pair = _list_handler("unblock_pair", ListName.PAIRS, there=False)
trust_agent = _list_handler("trust_agent", ListName.TRUSTED, there=True)
revoke_agent = _list_handler("revoke_agent", ListName.TRUSTED, there=False)
