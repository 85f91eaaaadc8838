"""Handlers of attestations and of the signing key (INTERFACES 4)."""

from qwed.api.server.auth import APPROVERS, OWNER, require_actor, require_key
from qwed.api.server.endpoint import RequestContext, Response, error_response, json_response
from qwed.kernel.answer import Problem, problem
from qwed.kernel.audit import attestation_lookup
from qwed.kernel.audit.attestation_check import check_attestation, read_jwt
from qwed.kernel.audit.signing_keys import rotate_key, signing_keys_view
from qwed.kernel.body_parsing import read_fields
from qwed.model import ErrorCode
from qwed.store.credentials import matches


async def verify_attestation(request: RequestContext) -> Response:
    """Return whether a token was issued here and is valid now; no credential is required."""
    jwt = read_jwt(request.json())
    if isinstance(jwt, Problem):
        return error_response(jwt)
    return json_response(await request.run_blocking(check_attestation, jwt, request.services))


async def get_attestation(request: RequestContext) -> Response:
    """Return an attestation, issued again, to a key of its organisation or the token of its agent."""
    attestation = await _find_by_token(request) if request.agent_token is not None else None
    if not isinstance(attestation, Problem) and (attestation is None or request.api_key is not None):
        attestation = await _find_by_key(request)
    if isinstance(attestation, Problem):
        return error_response(attestation)
    view = await request.run_blocking(attestation_lookup.attestation_view, attestation, request.services)
    return error_response(view) if isinstance(view, Problem) else json_response(view)


async def _find_by_token(request: RequestContext) -> attestation_lookup.LoggedAttestation | Problem:
    attestation = await request.run_blocking(
        attestation_lookup.find_attestation, request.path["attestation_id"], request.services
    )
    agent = None
    if attestation is not None and attestation.leaf.agent_id is not None:
        request.path = {**request.path, "agent_id": attestation.leaf.agent_id}
        await request.refresh_cache()
        agent = request.services.store.find_agent(attestation.leaf.agent_id)
    if not matches(request.agent_token or "", None if agent is None else agent.token_digest) or attestation is None:
        return problem(ErrorCode.INVALID_AGENT_TOKEN)
    # Counted here, because the path does not name the agent.
    await request.count_token(request.agent_token)
    return attestation


async def _find_by_key(request: RequestContext) -> attestation_lookup.LoggedAttestation | Problem:
    key = require_key(request)
    if isinstance(key, Problem):
        return key
    return await request.run_blocking(
        attestation_lookup.find_own_attestation, request.path["attestation_id"], key.organisation_id, request.services
    )


async def revoke_attestation(request: RequestContext) -> Response:
    """Revoke an attestation."""
    actor = require_actor(request, APPROVERS)
    if isinstance(actor, Problem):
        return error_response(actor)
    fields = read_fields(request.json(), ("reason",))
    if isinstance(fields, Problem):
        return error_response(fields)
    revocation = attestation_lookup.revoke(request.path["attestation_id"], fields["reason"], actor, request.services)
    outcome = await request.driver.run(revocation)
    return error_response(outcome) if isinstance(outcome, Problem) else json_response(outcome)


async def rotate_signing_key(request: RequestContext) -> Response:
    """Rotate the signing key; old keys stay in the JWKS."""
    actor = require_actor(request, OWNER)
    if isinstance(actor, Problem):
        return error_response(actor)
    fields = read_fields(request.json(), ("reason",))
    if isinstance(fields, Problem):
        return error_response(fields)
    outcome = await request.driver.run(rotate_key(fields["reason"], actor, request.services))
    return (
        error_response(outcome) if isinstance(outcome, Problem) else json_response(signing_keys_view(request.services))
    )
