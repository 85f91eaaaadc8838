"""Ruling 4.18: organisations and their keys. A key is shown once and kept as a hash."""

from dataclasses import replace
from typing import NamedTuple

from qwed.kernel.answer import Problem, problem
from qwed.kernel.change import Actor, change_of, keep
from qwed.kernel.services import Services
from qwed.kernel.views.record import HOUSE
from qwed.store.agent import Key
from qwed.store.credentials import API_KEY, mint
from qwed.store.parts import KeyAdded, KeyRevoked, OrganisationAdded
from qwed.words import ErrorCode, Event
from qwed.words.ids import new_id
from qwed.words.roles import METRICS, ROLES

LONGEST_NAME = 256
MOST_KEYS = 1_000


class NewKey(NamedTuple):
    """A key, and the text that is shown once."""

    key: Key
    text: str


class NewOrganisation(NamedTuple):
    """An organisation, and its first owner's key, which is shown once."""

    organisation_id: str
    name: str
    owner_key: str


def minted(organisation_id: str, name: str, role: str, now: float) -> NewKey:
    """A new key that nobody has kept yet."""
    made = mint(API_KEY)
    key = Key(
        key_id=new_id("key"),
        organisation_id=organisation_id,
        name=name,
        role=role,
        prefix=made.prefix,
        digest=made.digest,
        created_at=now,
    )
    return NewKey(key, made.text)


async def add_organisation(name: str, actor: Actor, services: Services) -> NewOrganisation | Problem:
    """A new organisation with an owner; only the owner of the first one makes others."""
    if actor.role != "owner" or actor.organisation_id != services.store.first_organisation():
        return problem(ErrorCode.ROLE_NOT_SUFFICIENT, "only an owner of the first organisation makes others")
    now = services.clock.now()
    organisation_id = new_id("org")
    owner = minted(organisation_id, "first owner", "owner", now)
    # Its own log begins with its first key; who made it stands in ours.
    said = {"name": owner.key.name, "role": owner.key.role}
    begun = change_of(Event.KEY_ADDED, HOUSE, organisation_id, now, services, about=owner.key.key_id, said=said)
    change = change_of(
        Event.ORGANISATION_ADDED,
        actor.by,
        actor.organisation_id,
        now,
        services,
        about=organisation_id,
        said={"name": name},
        parts=(OrganisationAdded(organisation_id, name, now), KeyAdded(owner.key)),
        beside=begun,
    )
    kept = await keep(change, services)
    return kept if isinstance(kept, Problem) else NewOrganisation(organisation_id, name, owner.text)


async def add_key(name: str, role: str, actor: Actor, services: Services) -> NewKey | Problem:
    """A new key of the actor's organisation."""
    if role not in ROLES:
        return problem(ErrorCode.MALFORMED, f"`role` must be one of {', '.join(ROLES)}")
    if role == METRICS and actor.organisation_id != services.store.first_organisation():
        return problem(ErrorCode.ROLE_NOT_SUFFICIENT, "metrics are of all: the first organisation reads them")
    active = [key for key in services.store.list_keys(actor.organisation_id) if key.revoked_at is None]
    if len(active) >= MOST_KEYS:
        return problem(ErrorCode.CONFLICT, f"an organisation has at most {MOST_KEYS} keys: revoke some first")
    now = services.clock.now()
    made = minted(actor.organisation_id, name, role, now)
    change = change_of(
        Event.KEY_ADDED,
        actor.by,
        actor.organisation_id,
        now,
        services,
        about=made.key.key_id,
        said={"name": name, "role": role},
        parts=(KeyAdded(made.key),),
    )
    kept = await keep(change, services)
    return kept if isinstance(kept, Problem) else made


async def revoke_key(key_id: str, actor: Actor, services: Services) -> Key | Problem:
    """The key, which opens nothing from now on; the last owner key stays, or nobody could come in again."""
    found = next((key for key in services.store.list_keys(actor.organisation_id) if key.key_id == key_id), None)
    if found is None:
        return problem(ErrorCode.NOT_FOUND, "no such key of this organisation")
    now = services.clock.now()
    change = change_of(
        Event.KEY_REVOKED,
        actor.by,
        actor.organisation_id,
        now,
        services,
        about=key_id,
        said={"name": found.name, "role": found.role},
        parts=(KeyRevoked(found, now),),
    )
    kept = await keep(change, services)
    return kept if isinstance(kept, Problem) else replace(found, revoked_at=now)
