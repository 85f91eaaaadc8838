"""Routes of the audit log, events, erasure, attestations and the signing key."""

from qwed.api.handlers import attestations, audit, event_stream
from qwed.api.openapi import schemas
from qwed.api.routes.route import BODY, KEY, LOG, E, Route
from qwed.kernel.audit.attestation_check import AttestationCheck
from qwed.kernel.audit.attestation_lookup import AttestationView
from qwed.kernel.audit.audit_log import ConsistencyProof, EntriesPage, InclusionProof
from qwed.kernel.audit.signing_keys import SigningKeysView
from qwed.kernel.privacy.erasure import ErasedView
from qwed.ledger.sequencer import Head

ROUTES: tuple[Route, ...] = (
    Route("GET", "/audit/head", audit.audit_head, "Get the signed head of the log", Head, errors=KEY),
    Route(
        "GET",
        "/audit/entries",
        audit.audit_entries,
        "List log entries, oldest first",
        EntriesPage,
        errors=LOG,
        query=("from_index", "limit"),
    ),
    Route(
        "GET",
        "/audit/proof/inclusion",
        audit.audit_inclusion,
        "Get an inclusion proof",
        InclusionProof,
        errors=(*LOG, E.NOT_FOUND),
        query=("index", "activity_id", "size"),
    ),
    Route(
        "GET",
        "/audit/proof/consistency",
        audit.audit_consistency,
        "Get a consistency proof",
        ConsistencyProof,
        errors=(*LOG, E.MISSING_FIELD),
        query=("from", "to"),
    ),
    Route(
        "POST",
        "/audit/erase",
        audit.erase_subject,
        "Erase all content about a subject",
        ErasedView,
        schemas.ErasureShape,
        errors=(*KEY, *BODY, E.CONFLICT),
    ),
    Route(
        "GET",
        "/events",
        event_stream.events,
        "Stream events of the log",
        str,
        errors=(*KEY, E.BAD_OPTION, E.RATE_LIMITED, E.OVERLOADED),
        query=("type",),
        media="text/event-stream",
    ),
    Route(
        "POST",
        "/attestation/verify",
        attestations.verify_attestation,
        "Verify an attestation",
        AttestationCheck,
        schemas.JwtShape,
        errors=BODY,
        open=True,
    ),
    Route(
        "GET",
        "/attestation/{attestation_id}",
        attestations.get_attestation,
        "Get an attestation",
        AttestationView,
        errors=(*KEY, E.INVALID_AGENT_TOKEN, E.NOT_FOUND, E.TAMPERING_FOUND),
    ),
    Route(
        "POST",
        "/attestation/{attestation_id}/revoke",
        attestations.revoke_attestation,
        "Revoke an attestation",
        AttestationView,
        schemas.ReasonShape,
        errors=(*KEY, *BODY, E.NOT_FOUND, E.CONFLICT, E.TAMPERING_FOUND),
    ),
    Route(
        "POST",
        "/signing-key/rotate",
        attestations.rotate_signing_key,
        "Rotate the signing key",
        SigningKeysView,
        schemas.ReasonShape,
        errors=(*KEY, *BODY, E.CONFLICT),
    ),
)
