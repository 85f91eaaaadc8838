"""Handler of one attestation, which a key or the token of its agent may read (INTERFACES 4)."""

from qwed.api.server.auth import require_key
from qwed.api.server.endpoint import RequestContext, Response, error_response, json_response
from qwed.domain.credentials import matches
from qwed.kernel.answer import Problem, problem
from qwed.kernel.audit import attestation_lookup
from qwed.kernel.operations.operation import E, operation
from qwed.model import ErrorCode
from qwed.model.endpoints import Endpoint


@operation(
    Endpoint.GET_ATTESTATION,
    "Get an attestation",
    response=attestation_lookup.AttestationView,
    errors=(E.INVALID_AGENT_TOKEN, E.NOT_FOUND, E.TAMPERING_FOUND),
)
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
