"""The record: the log and its proofs, events, erasure, attestations and the key they are signed with."""

from qwed.api import attestations, audit, erasure, events, shapes
from qwed.api.routes.row import BODY, KEY, LOG, E, Route
from qwed.kernel.keeping.erasure import ErasedView
from qwed.kernel.proving.attestations import AttestationCheck
from qwed.kernel.proving.attested import AttestationView
from qwed.kernel.proving.audit import ConsistencyProof, EntriesPage, InclusionProof
from qwed.kernel.proving.signing_keys import SigningKeysView
from qwed.ledger.sequencer import Head

ROUTES: tuple[Route, ...] = (
    Route("GET", "/audit/head", audit.audit_head, "How the log stands, signed", Head, errors=KEY),
    Route(
        "GET",
        "/audit/entries",
        audit.audit_entries,
        "The leaves of the log, oldest first",
        EntriesPage,
        errors=LOG,
        query=("from_index", "limit"),
    ),
    Route(
        "GET",
        "/audit/proof/inclusion",
        audit.audit_inclusion,
        "Proves that a leaf stands in the log",
        InclusionProof,
        errors=(*LOG, E.NOT_FOUND),
        query=("index", "activity_id", "size"),
    ),
    Route(
        "GET",
        "/audit/proof/consistency",
        audit.audit_consistency,
        "Proves that the log has only grown",
        ConsistencyProof,
        errors=(*LOG, E.MISSING_FIELD),
        query=("from", "to"),
    ),
    Route(
        "POST",
        "/audit/erase",
        erasure.erase_subject,
        "Destroy the key of a subject, and with it all content about them",
        ErasedView,
        shapes.ErasureShape,
        errors=(*KEY, *BODY, E.CONFLICT),
    ),
    Route(
        "GET",
        "/events",
        events.events,
        "What happens, as it happens: server-sent events that follow the log",
        str,
        errors=(*KEY, E.BAD_OPTION, E.RATE_LIMITED, E.OVERLOADED),
        query=("type",),
        media="text/event-stream",
    ),
    Route(
        "POST",
        "/attestation/verify",
        attestations.verify_attestation,
        "Is this attestation ours, and to be relied on now? For whoever holds it",
        AttestationCheck,
        shapes.JwtShape,
        errors=BODY,
        open=True,
    ),
    Route(
        "GET",
        "/attestation/{attestation_id}",
        attestations.get_attestation,
        "One attestation, issued again from the log",
        AttestationView,
        errors=(*KEY, E.INVALID_AGENT_TOKEN, E.NOT_FOUND, E.TAMPERING_FOUND),
    ),
    Route(
        "POST",
        "/attestation/{attestation_id}/revoke",
        attestations.revoke_attestation,
        "Revoke an attestation; nobody should rely on it any more",
        AttestationView,
        shapes.ReasonShape,
        errors=(*KEY, *BODY, E.NOT_FOUND, E.CONFLICT, E.TAMPERING_FOUND),
    ),
    Route(
        "POST",
        "/signing-key/rotate",
        attestations.rotate_signing_key,
        "Sign with another key from now on; for an owner of the first organisation",
        SigningKeysView,
        shapes.ReasonShape,
        errors=(*KEY, *BODY, E.CONFLICT),
    ),
)
