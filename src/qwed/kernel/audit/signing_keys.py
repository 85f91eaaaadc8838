"""Signing key of this node and its rotation (DESIGN 7)."""

from qwed.domain.write_set import Committed
from qwed.kernel.answer import Problem, problem
from qwed.kernel.audit_change import Actor, build_change, commit_change
from qwed.kernel.services import Services
from qwed.kernel.views.agent_views import View
from qwed.ledger.keyring import KeyringError, SigningKey
from qwed.model import ErrorCode, Event


class SigningKeysView(View, frozen=True, kw_only=True):
    """Signing keys of the node: the kid of the current key, and every public key, the current one first."""

    issuer: str
    kid: str
    keys: list[dict[str, str]]


async def rotate_key(reason: str, actor: Actor, services: Services) -> SigningKey | Problem:
    """Rotate the signing key; only an owner of the first organisation may."""
    if actor.role != "owner" or actor.organisation_id != services.store.first_organisation():
        return problem(ErrorCode.ROLE_NOT_SUFFICIENT, "only an owner of the first organisation may rotate the key")
    try:
        new = services.signer.keyring.rotate()
    except KeyringError as error:
        return problem(ErrorCode.CONFLICT, str(error))
    except OSError as error:
        services.log.error("signing key rotation failed: %s", error)
        return problem(ErrorCode.DEPENDENCY_DOWN, "the new key could not be written; the old one stays in use")
    receipt = await announce_key(new, reason, actor, services)
    return receipt if isinstance(receipt, Problem) else new


async def announce_key(key: SigningKey, reason: str, actor: Actor, services: Services) -> Committed | Problem:
    """Log that a new key signs; the head over that leaf is the first that it certainly signs."""
    change = build_change(
        Event.SIGNING_KEY_ROTATED,
        actor.actor_id,
        actor.organisation_id,
        services.clock.now(),
        services,
        about=key.kid,
        content={"reason": reason},
    )
    return await commit_change(change, services)


def signing_keys_view(services: Services) -> SigningKeysView:
    """Return the signing keys of the node."""
    keyring = services.signer.keyring
    keys = keyring.public_jwks()
    return SigningKeysView(issuer=keyring.issuer, kid=keys[0]["kid"], keys=keys)
