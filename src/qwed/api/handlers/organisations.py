"""Handlers of organisations, their keys and their change log (ruling 4.18)."""

from qwed.api.server.auth import OWNER, require_actor, require_key
from qwed.api.server.endpoint import RequestContext, Response, error_response, json_response
from qwed.kernel.admin import organisations
from qwed.kernel.admin.pages import PageQuery, changes_page
from qwed.kernel.answer import Problem
from qwed.kernel.body_parsing import read_fields
from qwed.kernel.views.agent_views import View
from qwed.model.clock import rfc3339
from qwed.store.agent import Key


class OrganisationView(View, frozen=True, kw_only=True):
    """New organisation with its owner key, shown once."""

    organisation_id: str
    name: str
    owner_key: str


class KeyView(View, frozen=True, kw_only=True):
    """Key without its secret; `prefix` is the public part by which its holder recognises it."""

    id: str
    name: str
    role: str
    prefix: str
    created_at: str
    revoked_at: str | None


class OwnKeyView(KeyView, frozen=True, kw_only=True):
    """Key of the caller and its organisation."""

    organisation_id: str


class NewKeyView(KeyView, frozen=True, kw_only=True):
    """New key with its secret, shown once."""

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
    """Return a key without its secret."""
    return KeyView(**_fields(key))  # type: ignore[arg-type]  # only `revoked_at` may be None


async def add_organisation(request: RequestContext) -> Response:
    """Create an organisation; requires an owner of the first one."""
    actor = require_actor(request, OWNER)
    if isinstance(actor, Problem):
        return error_response(actor)
    fields = read_fields(request.json(), ("name",), longest=organisations.MAX_NAME_LENGTH)
    if isinstance(fields, Problem):
        return error_response(fields)
    created = await request.driver.run(organisations.add_organisation(fields["name"], actor, request.services))
    return (
        error_response(created)
        if isinstance(created, Problem)
        else json_response(OrganisationView(**created._asdict()), 201)
    )


async def add_key(request: RequestContext) -> Response:
    """Create a key of the owner's organisation."""
    actor = require_actor(request, OWNER)
    if isinstance(actor, Problem):
        return error_response(actor)
    fields = read_fields(request.json(), ("name", "role"), longest=organisations.MAX_NAME_LENGTH)
    if isinstance(fields, Problem):
        return error_response(fields)
    created = await request.driver.run(organisations.add_key(fields["name"], fields["role"], actor, request.services))
    if isinstance(created, Problem):
        return error_response(created)
    return json_response(NewKeyView(**_fields(created.key), key=created.text), 201)  # type: ignore[arg-type]  # as above


async def list_keys(request: RequestContext) -> Response:
    """Return the organisation's keys; requires an owner."""
    key = require_key(request, OWNER)
    if isinstance(key, Problem):
        return error_response(key)
    keys = await request.run_blocking(request.services.store.list_keys, key.organisation_id)
    return json_response(KeysView(keys=[key_view(row) for row in keys]))


async def get_own_key(request: RequestContext) -> Response:
    """Return the caller's key and its role."""
    key = require_key(request)
    if isinstance(key, Problem):
        return error_response(key)
    return json_response(OwnKeyView(**_fields(key), organisation_id=key.organisation_id))  # type: ignore[arg-type]  # as above


async def revoke_key(request: RequestContext) -> Response:
    """Revoke a key."""
    actor = require_actor(request, OWNER)
    if isinstance(actor, Problem):
        return error_response(actor)
    revoked = await request.driver.run(organisations.revoke_key(request.path["key_id"], actor, request.services))
    return error_response(revoked) if isinstance(revoked, Problem) else json_response(key_view(revoked))


async def list_changes(request: RequestContext) -> Response:
    """Return a page of the organisation's changes, newest first."""
    key = require_key(request)
    if isinstance(key, Problem):
        return error_response(key)
    page = await request.run_blocking(changes_page, key.organisation_id, PageQuery(**request.query), request.services)
    return error_response(page) if isinstance(page, Problem) else json_response(page)
