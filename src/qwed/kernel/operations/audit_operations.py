"""Operations on the audit log, attestations, erasure and the signing key (INTERFACES 4)."""

from typing import Annotated

from msgspec import Meta

from qwed.kernel.answer import Problem, problem
from qwed.kernel.audit import attestation_lookup, audit_log
from qwed.kernel.audit.attestation_check import AttestationCheck, JwtRequest, check_attestation, jwt_of
from qwed.kernel.audit.attestation_lookup import AttestationView
from qwed.kernel.audit.audit_log import ConsistencyProof, EntriesPage, InclusionProof
from qwed.kernel.audit.signing_keys import SigningKeysView, rotate_key, signing_keys_view
from qwed.kernel.operations.agent_operations import ReasonRequest
from qwed.kernel.operations.operation import APPROVERS, OWNER, Access, Call, E, operation
from qwed.kernel.pagination import DEFAULT_LIMIT, Limit, LogIndex
from qwed.kernel.privacy.erasure import ErasedView, ErasureRequest, erase
from qwed.kernel.request_schema import RequestStruct
from qwed.ledger.sequencer import Head
from qwed.model.endpoints import Endpoint

_LOG = (E.BAD_OPTION, E.TAMPERING_FOUND)


class EntriesRequest(RequestStruct):
    """Page of leaves, oldest first."""

    from_index: Annotated[
        LogIndex, Meta(description="Index of the first leaf; the `next_index` of the previous page.")
    ] = 0
    limit: Limit = DEFAULT_LIMIT


class InclusionRequest(RequestStruct):
    """Leaf to prove, by index or by activity, and the size of the log."""

    index: Annotated[LogIndex, Meta(description="Index of the leaf; or send `activity_id`.")] | None = None
    activity_id: Annotated[str, Meta(description="Activity of the leaf; or send `index`.")] | None = None
    size: Annotated[LogIndex, Meta(description="Size of the log; defaults to the newest head.")] | None = None


class ConsistencyRequest(RequestStruct, rename={"first": "from", "second": "to"}):
    """Two sizes of the log."""

    first: Annotated[LogIndex, Meta(description="Size of the log that you know. Required.")] | None = None
    second: Annotated[LogIndex, Meta(description="Size to compare with; defaults to the newest head.")] | None = None


@operation(Endpoint.AUDIT_HEAD, "Get the signed head of the log")
def audit_head(call: Call) -> Head:
    """Return the newest signed head."""
    return audit_log.newest_head(call.actor.organisation_id, call.services)


@operation(Endpoint.AUDIT_ENTRIES, "List log entries, oldest first", errors=_LOG)
def audit_entries(call: Call, request: EntriesRequest) -> EntriesPage | Problem:
    """Return a page of leaves, oldest first."""
    return audit_log.log_entries(call.actor.organisation_id, request.from_index, request.limit, call.services)


@operation(Endpoint.AUDIT_INCLUSION, "Get an inclusion proof", errors=(*_LOG, E.NOT_FOUND))
def audit_inclusion(call: Call, request: InclusionRequest) -> InclusionProof | Problem:
    """Return a proof that a leaf is in the log."""
    leaf = request.index if request.activity_id is None else request.activity_id
    if leaf is None or None not in (request.index, request.activity_id):
        return problem(E.BAD_OPTION, "give `index` or `activity_id`, one of the two")
    return audit_log.prove_inclusion(call.actor.organisation_id, leaf, request.size, call.services)


@operation(Endpoint.AUDIT_CONSISTENCY, "Get a consistency proof", errors=(*_LOG, E.MISSING_FIELD))
def audit_consistency(call: Call, request: ConsistencyRequest) -> ConsistencyProof | Problem:
    """Return a proof that the log has only grown."""
    if request.first is None:
        return problem(E.MISSING_FIELD, "`from` is required: the size of the log that you know")
    return audit_log.prove_consistency(call.actor.organisation_id, request.first, request.second, call.services)


@operation(Endpoint.ERASE_SUBJECT, "Erase all content about a subject", roles=OWNER, errors=(E.CONFLICT,))
async def erase_subject(call: Call, request: ErasureRequest) -> ErasedView | Problem:
    """Destroy the key of a subject."""
    return await erase(request.subject, call.actor, call.services)


@operation(Endpoint.VERIFY_ATTESTATION, "Verify an attestation", access=Access.OPEN)
def verify_attestation(call: Call, request: JwtRequest) -> AttestationCheck | Problem:
    """Return whether a token was issued here and is valid now; no credential is required."""
    jwt = jwt_of(request)
    return jwt if isinstance(jwt, Problem) else check_attestation(jwt, call.services)


@operation(
    Endpoint.REVOKE_ATTESTATION,
    "Revoke an attestation",
    roles=APPROVERS,
    errors=(E.NOT_FOUND, E.CONFLICT, E.TAMPERING_FOUND),
)
async def revoke_attestation(call: Call, request: ReasonRequest) -> AttestationView | Problem:
    """Revoke an attestation."""
    return await attestation_lookup.revoke(call.path["attestation_id"], request.reason, call.actor, call.services)


@operation(Endpoint.ROTATE_SIGNING_KEY, "Rotate the signing key", roles=OWNER, errors=(E.CONFLICT,))
async def rotate_signing_key(call: Call, request: ReasonRequest) -> SigningKeysView | Problem:
    """Rotate the signing key; old keys stay in the JWKS."""
    outcome = await rotate_key(request.reason, call.actor, call.services)
    return outcome if isinstance(outcome, Problem) else signing_keys_view(call.services)
