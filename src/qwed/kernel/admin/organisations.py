"""Organisations and their keys. A key is shown once and stored as a hash (ruling 4.18)."""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from qwed.domain.agent import Key
from qwed.domain.change_parts import KeyAdded, KeyChanged, KeyRevoked, OrganisationAdded
from qwed.domain.credentials import API_KEY, mint
from qwed.kernel.admin.approver_groups import APPROVING_ROLES, can_approve
from qwed.kernel.answer import Problem, problem
from qwed.kernel.audit_change import Actor, build_change, commit_change
from qwed.kernel.services import Services
from qwed.kernel.views.activity_views import SYSTEM_ACTOR
from qwed.model import ErrorCode, Event
from qwed.model.ids import new_id
from qwed.model.roles import METRICS, ROLES

MAX_NAME_LENGTH = 256
MAX_KEYS = 1_000
_NO_APPROVER = "a key with the role `{}` approves nothing: groups are for owner and approver keys"


class NewKey(NamedTuple):
    """A key and its text, which is shown once."""

    key: Key
    text: str


class NewOrganisation(NamedTuple):
    """An organisation and its first owner's key, which is shown once."""

    organisation_id: str
    name: str
    owner_key: str


def mint_key(organisation_id: str, name: str, role: str, now: float, approver_groups: tuple[str, ...] = ()) -> NewKey:
    """Return a new key that is not stored yet."""
    minted = mint(API_KEY)
    key = Key(
        key_id=new_id("key"),
        organisation_id=organisation_id,
        name=name,
        role=role,
        prefix=minted.prefix,
        digest=minted.digest,
        created_at=now,
        approver_groups=approver_groups,
    )
    return NewKey(key, minted.text)


async def add_organisation(name: str, actor: Actor, services: Services) -> NewOrganisation | Problem:
    """Create an organisation with an owner; only an owner of the first organisation may."""
    if actor.role != "owner" or actor.organisation_id != services.store.first_organisation():
        return problem(ErrorCode.ROLE_NOT_SUFFICIENT, "only an owner of the first organisation may create others")
    now = services.clock.now()
    organisation_id = new_id("org")
    owner = mint_key(organisation_id, "first owner", "owner", now)
    # Its own log begins with its first key; its creation is logged in the first organisation.
    content = {"name": owner.key.name, "role": owner.key.role}
    first_change = build_change(
        Event.KEY_ADDED, SYSTEM_ACTOR, organisation_id, now, services, about=owner.key.key_id, content=content
    )
    change = build_change(
        Event.ORGANISATION_ADDED,
        actor.actor_id,
        actor.organisation_id,
        now,
        services,
        about=organisation_id,
        content={"name": name},
        parts=(OrganisationAdded(organisation_id, name, now), KeyAdded(owner.key)),
        linked=first_change,
    )
    receipt = await commit_change(change, services)
    return receipt if isinstance(receipt, Problem) else NewOrganisation(organisation_id, name, owner.text)


async def add_key(
    name: str, role: str, actor: Actor, services: Services, groups: Iterable[str] = ()
) -> NewKey | Problem:
    """Create a key of the actor's organisation."""
    if role not in ROLES:
        return problem(ErrorCode.MALFORMED, f"`role` must be one of {', '.join(ROLES)}")
    approver_groups = tuple(sorted(set(groups)))
    if approver_groups and role not in APPROVING_ROLES:
        return problem(ErrorCode.MALFORMED, _NO_APPROVER.format(role))
    if role == METRICS and actor.organisation_id != services.store.first_organisation():
        return problem(
            ErrorCode.ROLE_NOT_SUFFICIENT,
            "metrics cover all organisations: only a key of the first organisation may read them",
        )
    active = [key for key in services.store.list_keys(actor.organisation_id) if key.revoked_at is None]
    if len(active) >= MAX_KEYS:
        return problem(ErrorCode.CONFLICT, f"an organisation has at most {MAX_KEYS} keys: revoke some first")
    now = services.clock.now()
    new_key = mint_key(actor.organisation_id, name, role, now, approver_groups)
    change = build_change(
        Event.KEY_ADDED,
        actor.actor_id,
        actor.organisation_id,
        now,
        services,
        about=new_key.key.key_id,
        content={"name": name, "role": role, "groups": approver_groups or None},
        parts=(KeyAdded(new_key.key),),
    )
    receipt = await commit_change(change, services)
    return receipt if isinstance(receipt, Problem) else new_key


def _key_of(key_id: str, actor: Actor, services: Services) -> Key | Problem:
    match = next((key for key in services.store.list_keys(actor.organisation_id) if key.key_id == key_id), None)
    return problem(ErrorCode.NOT_FOUND, "this organisation has no such key") if match is None else match


async def change_groups(key_id: str, groups: Iterable[str], actor: Actor, services: Services) -> Key | Problem:
    """Set the groups in whose name a key approves, and return the key."""
    match = _key_of(key_id, actor, services)
    if isinstance(match, Problem):
        return match
    approver_groups = tuple(sorted(set(groups)))
    if match.approver_groups == approver_groups:
        return match
    if not can_approve(match):
        reason = "a revoked key approves nothing" if match.revoked_at is not None else _NO_APPROVER.format(match.role)
        return problem(ErrorCode.CONFLICT, reason)
    after = replace(match, approver_groups=approver_groups)
    change = build_change(
        Event.KEY_CHANGED,
        actor.actor_id,
        actor.organisation_id,
        services.clock.now(),
        services,
        about=key_id,
        content={"name": match.name, "groups_before": match.approver_groups, "groups_after": approver_groups},
        parts=(KeyChanged(match, after),),
    )
    receipt = await commit_change(change, services)
    return receipt if isinstance(receipt, Problem) else after


async def revoke_key(key_id: str, actor: Actor, services: Services) -> Key | Problem:
    """Revoke a key and return it; the last owner key cannot be revoked."""
    match = _key_of(key_id, actor, services)
    if isinstance(match, Problem):
        return match
    now = services.clock.now()
    change = build_change(
        Event.KEY_REVOKED,
        actor.actor_id,
        actor.organisation_id,
        now,
        services,
        about=key_id,
        content={"name": match.name, "role": match.role},
        parts=(KeyRevoked(match, now),),
    )
    receipt = await commit_change(change, services)
    return receipt if isinstance(receipt, Problem) else replace(match, revoked_at=now)
