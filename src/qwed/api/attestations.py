"""INTERFACES 4: attestations checked, looked at and revoked, and the key they are signed with."""

from qwed.api.access import APPROVERS, OWNER, require_actor, require_key
from qwed.api.http import Call, Response, ok, refused
from qwed.kernel.answer import Problem, problem
from qwed.kernel.bodies import read_fields
from qwed.kernel.proving import attested
from qwed.kernel.proving.attestations import check, read_jwt
from qwed.kernel.proving.signing_keys import rotate_key, signing_keys_view
from qwed.store.credentials import matches
from qwed.words import ErrorCode


async def verify_attestation(call: Call) -> Response:
    """Whether a token is one of ours and to be relied on now; whoever holds one may ask."""
    jwt = read_jwt(call.json())
    if isinstance(jwt, Problem):
        return refused(jwt)
    return ok(await call.look(check, jwt, call.services))


async def get_attestation(call: Call) -> Response:
    """One attestation, issued again; for a key of its organisation, or for the token of its agent."""
    found = await _found_by_token(call) if call.agent_token is not None else None
    if not isinstance(found, Problem) and (found is None or call.api_key is not None):
        found = await _found_by_key(call)
    if isinstance(found, Problem):
        return refused(found)
    shown = await call.look(attested.attestation_view, found, call.services)
    return refused(shown) if isinstance(shown, Problem) else ok(shown)


async def _found_by_token(call: Call) -> attested.Found | Problem:
    found = await call.look(attested.find, call.path["attestation_id"], call.services)
    agent = None
    if found is not None and found.leaf.agent_id is not None:
        call.path = {**call.path, "agent_id": found.leaf.agent_id}
        await call.freshen()
        agent = call.services.store.find_agent(found.leaf.agent_id)
    if not matches(call.agent_token or "", None if agent is None else agent.token_digest) or found is None:
        return problem(ErrorCode.INVALID_AGENT_TOKEN)
    # Counted here, because the path does not say whose token it is.
    await call.count_token(call.agent_token)
    return found


async def _found_by_key(call: Call) -> attested.Found | Problem:
    key = require_key(call)
    if isinstance(key, Problem):
        return key
    return await call.look(attested.find_own, call.path["attestation_id"], key.organisation_id, call.services)


async def revoke_attestation(call: Call) -> Response:
    """An attestation that is not to be relied on any more."""
    actor = require_actor(call, APPROVERS)
    if isinstance(actor, Problem):
        return refused(actor)
    said = read_fields(call.json(), ("reason",))
    if isinstance(said, Problem):
        return refused(said)
    walk = attested.revoke(call.path["attestation_id"], said["reason"], actor, call.services)
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
    outcome = await call.driver.drive(rotate_key(said["reason"], actor, call.services))
    return refused(outcome) if isinstance(outcome, Problem) else ok(signing_keys_view(call.services))
