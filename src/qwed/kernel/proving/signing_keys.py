"""DESIGN 7: the key that this node signs with, and another one in its place."""

from qwed.kernel.answer import Problem, problem
from qwed.kernel.change import Actor, change_of, keep
from qwed.kernel.services import Services
from qwed.kernel.views.agents import View
from qwed.ledger.keyring import KeyringError, SigningKey
from qwed.store.protocol import Kept
from qwed.words import ErrorCode, Event


class SigningKeysView(View, frozen=True, kw_only=True):
    """What the node signs with: the kid of the present key, and every public key, the present one first."""

    issuer: str
    kid: str
    keys: list[dict[str, str]]


async def rotate_key(reason: str, actor: Actor, services: Services) -> SigningKey | Problem:
    """A new key to sign with; only the owner of the first organisation, whose node it is, asks for one."""
    if actor.role != "owner" or actor.organisation_id != services.store.first_organisation():
        return problem(ErrorCode.ROLE_NOT_SUFFICIENT, "only an owner of the first organisation rotates the key")
    try:
        new = services.signer.keyring.rotate()
    except KeyringError as error:
        return problem(ErrorCode.CONFLICT, str(error))
    except OSError as error:
        services.log.error("the new signing key could not be written: %s", error)
        return problem(ErrorCode.DEPENDENCY_DOWN, "the new key could not be written, and the old one signs on")
    announced = await announce_key(new, reason, actor, services)
    return announced if isinstance(announced, Problem) else new


async def announce_key(key: SigningKey, reason: str, actor: Actor, services: Services) -> Kept | Problem:
    """Say in the log that another key signs; the head over that leaf is the first it has signed for sure."""
    change = change_of(
        Event.SIGNING_KEY_ROTATED,
        actor.by,
        actor.organisation_id,
        services.clock.now(),
        services,
        about=key.kid,
        said={"reason": reason},
    )
    return await keep(change, services)


def signing_keys_view(services: Services) -> SigningKeysView:
    """What the node signs with."""
    keyring = services.signer.keyring
    keys = keyring.public_jwks()
    return SigningKeysView(issuer=keyring.issuer, kid=keys[0]["kid"], keys=keys)
