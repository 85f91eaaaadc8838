"""INTERFACES 4: attestations checked, looked at and revoked, and the key they are signed with."""

import asyncio

from qwed.api.access import APPROVERS, OWNER, require_actor, require_key
from qwed.api.http import Call, Response, ok, refused
from qwed.kernel import attestations
from qwed.kernel.answer import Problem, problem
from qwed.kernel.attestations import SigningKeysView, signing_keys_view
from qwed.kernel.bodies import read_fields
from qwed.store.credentials import matches
from qwed.words import ErrorCode


async def verify_attestation(call: Call) -> Response:
    """Whether a token is one of ours and to be relied on now; whoever holds one may ask."""
    jwt = attestations.read_jwt(call.json())
    if isinstance(jwt, Problem):
        return refused(jwt)
    return ok(await asyncio.to_thread(attestations.check, jwt, call.services))


async def get_attestation(call: Call) -> Response:
    """One attestation, issued again; for a key of its organisation, or for the token of its agent."""
    found = attestations.find(call.path["attestation_id"], call.services)
    refusal = await _refuse_token(call, found) if call.agent_token is not None else None
    if refusal is None and (call.api_key is not None or call.agent_token is None):
        refusal = _refuse_key(call, found)
    if refusal is not None or found is None:
        return refused(refusal or attestations.no_such())
    return ok(attestations.attestation_view(found, call.services))


async def _refuse_token(call: Call, found: attestations.Found | None) -> Problem | None:
    agent_id = None if found is None else found.leaf.agent_id
    agent = None if agent_id is None else call.services.store.find_agent(agent_id)
    if not matches(call.agent_token or "", None if agent is None else agent.token_digest):
        return problem(ErrorCode.INVALID_AGENT_TOKEN)
    # Counted here, because the path does not say whose token it is.
    call.path = {**call.path, "agent_id": agent_id or ""}
    await call.count_token(call.agent_token)
    return None


def _refuse_key(call: Call, found: attestations.Found | None) -> Problem | None:
    key = require_key(call)
    if isinstance(key, Problem):
        return key
    own = found is not None and found.entry.organisation_id == key.organisation_id
    return None if own else attestations.no_such()


async def revoke_attestation(call: Call) -> Response:
    """An attestation that is not to be relied on any more."""
    actor = require_actor(call, APPROVERS)
    if isinstance(actor, Problem):
        return refused(actor)
    said = read_fields(call.json(), ("reason",))
    if isinstance(said, Problem):
        return refused(said)
    walk = attestations.revoke(call.path["attestation_id"], said["reason"], actor, call.services)
    outcome = await call.driver.drive(walk)
    return refused(outcome) if isinstance(outcome, Problem) else ok(outcome)


async def rotate_signing_key(call: Call) -> Response:
    """Another key to sign with; the old ones stay in the JWKS."""
    actor = require_actor(call, OWNER)
    if isinstance(actor, Problem):
        return refused(actor)
    said = read_fields(call.json(), ("reason",))
    if isinstance(said, Problem):
        return refused(said)
    outcome = await call.driver.drive(attestations.rotate_key(said["reason"], actor, call.services))
    if isinstance(outcome, Problem):
        return refused(outcome)
    view: SigningKeysView = signing_keys_view(call.services)
    return ok(view)
