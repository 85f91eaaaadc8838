"""Ruling 4.18: organisations, their keys, and the record of what was changed in them."""

from qwed.api.access import OWNER, require_actor, require_key
from qwed.api.http import Call, Response, ok, refused
from qwed.kernel.answer import Problem
from qwed.kernel.bodies import read_fields
from qwed.kernel.people import organisations
from qwed.kernel.people.listing import Asked, changes_page
from qwed.kernel.views.agents import View
from qwed.store.agent import Key
from qwed.words.clock import rfc3339


class OrganisationView(View, frozen=True, kw_only=True):
    """A new organisation. The key is shown this once."""

    organisation_id: str
    name: str
    owner_key: str


class KeyView(View, frozen=True, kw_only=True):
    """A key without its secret; `prefix` is the public part by which its holder recognises it."""

    id: str
    name: str
    role: str
    prefix: str
    created_at: str
    revoked_at: str | None


class OwnKeyView(KeyView, frozen=True, kw_only=True):
    """The key that asks, and whose it is."""

    organisation_id: str


class NewKeyView(KeyView, frozen=True, kw_only=True):
    """A new key, shown this once."""

    key: str


class KeysView(View, frozen=True, kw_only=True):
    """Every key of the organisation, oldest first."""

    keys: list[KeyView]


def _fields(key: Key) -> dict[str, str | None]:
    return {
        "id": key.key_id,
        "name": key.name,
        "role": key.role,
        "prefix": key.prefix,
        "created_at": rfc3339(key.created_at),
        "revoked_at": None if key.revoked_at is None else rfc3339(key.revoked_at),
    }


def key_view(key: Key) -> KeyView:
    """A key as anyone who may see keys sees it."""
    return KeyView(**_fields(key))  # type: ignore[arg-type]  # only `revoked_at` may be None


async def add_organisation(call: Call) -> Response:
    """The owner of the first organisation may make others."""
    actor = require_actor(call, OWNER)
    if isinstance(actor, Problem):
        return refused(actor)
    said = read_fields(call.json(), ("name",), longest=organisations.LONGEST_NAME)
    if isinstance(said, Problem):
        return refused(said)
    made = await call.driver.drive(organisations.add_organisation(said["name"], actor, call.services))
    return refused(made) if isinstance(made, Problem) else ok(OrganisationView(**made._asdict()), 201)


async def add_key(call: Call) -> Response:
    """A new key of the owner's organisation."""
    actor = require_actor(call, OWNER)
    if isinstance(actor, Problem):
        return refused(actor)
    said = read_fields(call.json(), ("name", "role"), longest=organisations.LONGEST_NAME)
    if isinstance(said, Problem):
        return refused(said)
    made = await call.driver.drive(organisations.add_key(said["name"], said["role"], actor, call.services))
    if isinstance(made, Problem):
        return refused(made)
    return ok(NewKeyView(**_fields(made.key), key=made.text), 201)  # type: ignore[arg-type]  # as above


async def list_keys(call: Call) -> Response:
    """The organisation's keys; the owner's to see."""
    key = require_key(call, OWNER)
    if isinstance(key, Problem):
        return refused(key)
    found = await call.look(call.services.store.list_keys, key.organisation_id)
    return ok(KeysView(keys=[key_view(each) for each in found]))


async def get_own_key(call: Call) -> Response:
    """The key that is shown: which one it is, and what its role is."""
    key = require_key(call)
    if isinstance(key, Problem):
        return refused(key)
    return ok(OwnKeyView(**_fields(key), organisation_id=key.organisation_id))  # type: ignore[arg-type]  # as above


async def revoke_key(call: Call) -> Response:
    """A key that opens nothing from now on."""
    actor = require_actor(call, OWNER)
    if isinstance(actor, Problem):
        return refused(actor)
    found = await call.driver.drive(organisations.revoke_key(call.path["key_id"], actor, call.services))
    return refused(found) if isinstance(found, Problem) else ok(key_view(found))


async def list_changes(call: Call) -> Response:
    """What was changed in the organisation and by whom, newest first."""
    key = require_key(call)
    if isinstance(key, Problem):
        return refused(key)
    page = await call.look(changes_page, key.organisation_id, Asked(**call.query), call.services)
    return refused(page) if isinstance(page, Problem) else ok(page)
