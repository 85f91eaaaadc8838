"""The map of the HTTP surface: one row per route, from which both the router and the API document are made."""

from typing import Any, NamedTuple

from qwed.api import (
    agents,
    approvals,
    attestations,
    audit,
    engine_shapes,
    erasure,
    events,
    node,
    organisations,
    reference,
    reports,
    shapes,
    standing,
    tools,
    verify,
    webhook,
)
from qwed.api import metrics as measured
from qwed.api.http import Handler
from qwed.kernel.actions import ActionView
from qwed.kernel.activity import ActivityPage
from qwed.kernel.answer import Answer
from qwed.kernel.attestations import AttestationCheck
from qwed.kernel.attested import AttestationView
from qwed.kernel.audit import ConsistencyProof, EntriesPage, InclusionProof
from qwed.kernel.erasure import ErasedView
from qwed.kernel.inquiries.finding import Finding
from qwed.kernel.inquiries.jobs import JobView
from qwed.kernel.record_views import ApprovalView
from qwed.kernel.signing_keys import SigningKeysView
from qwed.kernel.tools import Tool
from qwed.kernel.views import AgentView, BudgetView, RegisteredView
from qwed.ledger.sequencer import Head
from qwed.words import ErrorCode

E = ErrorCode
_KEY = (E.NO_CREDENTIAL, E.UNKNOWN_CREDENTIAL, E.ROLE_NOT_SUFFICIENT)
_AGENT = (*_KEY, E.INVALID_AGENT_TOKEN, E.AGENT_NOT_REGISTERED)
_BODY = (E.MALFORMED, E.MISSING_FIELD, E.TOO_LARGE)
_ENGINE = (*_KEY, *_BODY, E.BAD_OPTION, E.ENGINE_UNAVAILABLE)
_OWN_AGENT = (*_KEY, E.AGENT_NOT_REGISTERED)
_LOG = (*_KEY, E.BAD_OPTION, E.TAMPERING_FOUND)
_DECISION = (
    E.AGENT_NOT_REGISTERED,
    E.INVALID_AGENT_TOKEN,
    E.UNKNOWN_CREDENTIAL,
    E.AGENT_SUSPENDED,
    E.MISSING_CONTEXT,
    E.INVALID_STEP,
    E.STATE_INCOMPLETE,
    E.STATE_HASH_INVALID,
    E.STATE_SOURCE_UNKNOWN,
    E.NOT_DETERMINISTIC,
    E.BAD_OPTION,
    E.KEY_REUSED,
    E.COST_EXCEEDED,
    E.RATE_EXCEEDED,
    E.TOKENS_EXCEEDED,
    E.ENGINE_UNAVAILABLE,
    E.DEPENDENCY_DOWN,
)


class Route(NamedTuple):
    """One route: where, what runs, and what the document says of it."""

    method: str
    path: str
    handler: Handler
    summary: str
    response: Any
    request: Any = None
    status: int = 200
    errors: tuple[ErrorCode, ...] = ()
    decides: bool = False
    open: bool = False
    query: tuple[str, ...] = ()
    media: str = "application/json"
    also: tuple[int, ...] = ()
    """Further statuses that carry the same response."""
    uploads: bool = False
    """Whether it takes a file, in a form or in base64."""
    files: tuple[str, ...] = ()
    """Media types of the files it answers with, where one of them is asked for in place of JSON."""

    @property
    def takes_token(self) -> bool:
        """Whether an agent may use it with its own token; otherwise an organisation's key is needed."""
        return E.INVALID_AGENT_TOKEN in self.errors


ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        "/agents/register",
        agents.register_agent,
        "Register an agent (spec 3)",
        RegisteredView,
        shapes.RegisterShape,
        201,
        (*_KEY, *_BODY),
    ),
    Route(
        "GET",
        "/agents",
        agents.list_agents,
        "The organisation's agents",
        shapes.AgentsShape,
        errors=(*_KEY, E.BAD_OPTION),
        query=("limit", "cursor"),
    ),
    Route("GET", "/agents/{agent_id}", agents.get_agent, "One agent", AgentView, errors=_AGENT),
    Route(
        "GET",
        "/agents/{agent_id}/did.json",
        agents.get_did,
        "The agent's DID document (spec 3.4)",
        dict[str, Any],
        errors=_AGENT,
    ),
    Route(
        "POST",
        "/agents/{agent_id}/verify",
        agents.verify,
        "May this action happen? (spec 4)",
        Answer,
        shapes.VerifyShape,
        errors=(*_DECISION, *_BODY),
        decides=True,
        uploads=True,
    ),
    Route(
        "POST",
        "/agents/{agent_id}/tools/{tool}",
        agents.verify_tool,
        "May this tool be called? (spec 5)",
        Answer,
        shapes.VerifyToolShape,
        errors=(*_DECISION, *_BODY),
        decides=True,
    ),
    Route(
        "GET",
        "/agents/{agent_id}/actions/{action_id}",
        agents.get_action,
        "One action as it stands now; `wait` for a person's decision (spec 7.1)",
        ActionView,
        errors=(*_AGENT, E.NOT_FOUND, E.BAD_OPTION),
        query=("wait",),
    ),
    Route(
        "POST",
        "/agents/{agent_id}/actions/{action_id}/execution",
        agents.report_execution,
        "Log what became of a permitted action, once (spec 7.1)",
        ActionView,
        shapes.ExecutionShape,
        errors=(*_AGENT, *_BODY, E.NOT_FOUND, E.NOT_DETERMINISTIC, E.CONFLICT),
    ),
    Route(
        "GET",
        "/agents/{agent_id}/activity",
        agents.get_activity,
        "The agent's activity, newest first (spec 7.2)",
        ActivityPage,
        errors=(*_AGENT, E.BAD_OPTION),
        query=("from", "to", "limit", "cursor", "decision", "kind"),
    ),
    Route(
        "GET",
        "/agents/{agent_id}/compliance-report",
        reports.get_compliance_report,
        "What an auditor is handed about the agent, as PDF, JSON or CSV (spec 7.3)",
        shapes.ReportShape,
        errors=(*_OWN_AGENT, E.BAD_OPTION, E.TAMPERING_FOUND),
        query=("format", "from", "to"),
        files=("application/pdf", "text/csv"),
    ),
    Route(
        "GET",
        "/agents/{agent_id}/budget",
        agents.get_budget,
        "What the agent may spend and has spent (spec 6.1)",
        BudgetView,
        errors=_AGENT,
    ),
    Route(
        "POST",
        "/agents/{agent_id}/trust",
        standing.change_trust,
        "Ask for more trust, or set less (spec 8.2)",
        standing.TrustView,
        shapes.TrustShape,
        202,
        (*_AGENT, *_BODY, E.AGENT_SUSPENDED, E.BAD_OPTION, E.CONFLICT),
        also=(200,),
    ),
    Route(
        "POST",
        "/agents/{agent_id}/suspend",
        standing.suspend,
        "Stop an agent",
        AgentView,
        shapes.ReasonShape,
        errors=(*_OWN_AGENT, *_BODY, E.CONFLICT),
    ),
    Route(
        "POST",
        "/agents/{agent_id}/complaint",
        standing.file_complaint,
        "File a complaint, which stops the agent (spec 8.3)",
        AgentView,
        shapes.ReasonShape,
        errors=(*_OWN_AGENT, *_BODY, E.CONFLICT),
    ),
    Route(
        "POST",
        "/agents/{agent_id}/reactivate",
        standing.reactivate,
        "Let a stopped agent go on",
        AgentView,
        shapes.ReasonShape,
        errors=(*_OWN_AGENT, *_BODY, E.CONFLICT),
    ),
    Route(
        "POST",
        "/agents/{agent_id}/rotate-token",
        standing.rotate_token,
        "Give the agent a new token; the old one opens nothing any more",
        RegisteredView,
        errors=(*_OWN_AGENT, E.CONFLICT),
    ),
    Route(
        "POST",
        "/suspend-all",
        standing.suspend_all,
        "The kill switch: stop every agent of the organisation at once",
        standing.HaltView,
        shapes.ReasonShape,
        errors=(*_KEY, *_BODY, E.CONFLICT),
    ),
    Route(
        "POST",
        "/reactivate-all",
        standing.reactivate_all,
        "Put the kill switch back",
        standing.HaltView,
        shapes.ReasonShape,
        errors=(*_KEY, *_BODY, E.CONFLICT),
    ),
    Route(
        "GET",
        "/approvals",
        approvals.list_approvals,
        "What waits for a person, and what became of it",
        approvals.ApprovalsView,
        errors=(*_KEY, E.BAD_OPTION),
        query=("state", "agent_id", "limit", "cursor"),
    ),
    Route(
        "GET",
        "/approvals/{approval_id}",
        approvals.get_approval,
        "One approval",
        ApprovalView,
        errors=(*_KEY, E.NOT_FOUND),
    ),
    Route(
        "POST",
        "/approvals/{approval_id}/approve",
        approvals.approve,
        "Permit what waits",
        ApprovalView,
        shapes.ResolveShape,
        errors=(*_KEY, *_BODY, E.OWN_REQUEST, E.NOT_FOUND, E.CONFLICT),
    ),
    Route(
        "POST",
        "/approvals/{approval_id}/reject",
        approvals.reject,
        "Refuse what waits, and free what it holds",
        ApprovalView,
        shapes.ResolveShape,
        errors=(*_KEY, *_BODY, E.NOT_FOUND, E.CONFLICT),
    ),
    Route(
        "POST",
        "/organisations",
        organisations.add_organisation,
        "Make another organisation; for an owner of the first one",
        organisations.OrganisationView,
        shapes.OrganisationShape,
        201,
        (*_KEY, *_BODY, E.CONFLICT),
    ),
    Route(
        "POST",
        "/keys",
        organisations.add_key,
        "Make a key of the organisation",
        organisations.NewKeyView,
        shapes.KeyShape,
        201,
        (*_KEY, *_BODY, E.CONFLICT),
    ),
    Route("GET", "/keys", organisations.list_keys, "The organisation's keys", organisations.KeysView, errors=_KEY),
    Route(
        "DELETE",
        "/keys/{key_id}",
        organisations.revoke_key,
        "Revoke a key; it opens nothing any more",
        organisations.KeyView,
        errors=(*_KEY, E.NOT_FOUND, E.CONFLICT),
    ),
    Route(
        "GET",
        "/changes",
        organisations.list_changes,
        "What was changed in the organisation, by whom, newest first",
        organisations.ChangesView,
        errors=(*_KEY, E.BAD_OPTION),
        query=("limit", "cursor"),
    ),
    Route(
        "PUT",
        "/webhook",
        webhook.put_webhook,
        "Set where the organisation is told what happens",
        webhook.NewWebhookView,
        shapes.WebhookShape,
        errors=(*_KEY, *_BODY, E.BAD_OPTION, E.CONFLICT),
    ),
    Route(
        "GET",
        "/webhook",
        webhook.get_webhook,
        "The webhook, and how its notices fare",
        webhook.WebhookView,
        errors=(*_KEY, E.NOT_FOUND),
    ),
    Route(
        "DELETE",
        "/webhook",
        webhook.delete_webhook,
        "Tell nobody any more",
        webhook.RemovedView,
        errors=(*_KEY, E.NOT_FOUND, E.CONFLICT),
    ),
    Route(
        "POST",
        "/verify",
        verify.verify_any,
        "Verify a formula, query or code; its shape says which engine reads it",
        Finding,
        engine_shapes.VerifyAnyShape,
        errors=_ENGINE,
    ),
    *(
        Route(
            "POST",
            f"/verify/{engine}",
            verify.verified_by(engine),
            summary,
            Finding,
            shape,
            errors=_ENGINE,
            uploads=engine in ("stats", "image"),
        )
        for engine, summary, shape in (
            ("math", "Verify a claim, or compute an expression, exactly", engine_shapes.VerifyMathShape),
            ("logic", "Is it satisfiable, or do the premises entail the conclusion?", engine_shapes.VerifyLogicShape),
            ("code", "Is this code pure computation?", engine_shapes.VerifyCodeShape),
            ("sql", "Does this query only read, and nothing it should not?", engine_shapes.VerifySqlShape),
            ("fact", "Does the context say so?", engine_shapes.VerifyFactShape),
            (
                "stats",
                "Does the table bear out the claim? Takes a form too",
                engine_shapes.VerifyStatsShape,
            ),
            (
                "image",
                "Does the image bear out the claim? Takes a form too",
                engine_shapes.VerifyImageShape,
            ),
            ("consensus", "Do independent methods agree on it?", engine_shapes.VerifyConsensusShape),
        )
    ),
    Route(
        "POST",
        "/verify/batch",
        verify.verify_batch,
        "Verify up to 100 items; a job that takes long is answered with 202 and goes on",
        JobView,
        engine_shapes.BatchShape,
        errors=(*_KEY, *_BODY, E.UNKNOWN_TYPE, E.BAD_OPTION, E.RATE_LIMITED),
        also=(202,),
    ),
    Route(
        "GET",
        "/verify/batch/{job_id}",
        verify.get_batch,
        "How far a batch is, and its answers so far",
        JobView,
        errors=(*_KEY, E.NOT_FOUND),
    ),
    Route("GET", "/audit/head", audit.audit_head, "How the log stands, signed", Head, errors=_KEY),
    Route(
        "GET",
        "/audit/entries",
        audit.audit_entries,
        "The leaves of the log, oldest first",
        EntriesPage,
        errors=_LOG,
        query=("from_index", "limit"),
    ),
    Route(
        "GET",
        "/audit/proof/inclusion",
        audit.audit_inclusion,
        "Proves that a leaf stands in the log",
        InclusionProof,
        errors=(*_LOG, E.NOT_FOUND),
        query=("index", "activity_id", "size"),
    ),
    Route(
        "GET",
        "/audit/proof/consistency",
        audit.audit_consistency,
        "Proves that the log has only grown",
        ConsistencyProof,
        errors=(*_LOG, E.MISSING_FIELD),
        query=("from", "to"),
    ),
    Route(
        "POST",
        "/audit/erase",
        erasure.erase_subject,
        "Destroy the key of a subject, and with it all content about them",
        ErasedView,
        shapes.ErasureShape,
        errors=(*_KEY, *_BODY, E.CONFLICT),
    ),
    Route(
        "GET",
        "/events",
        events.events,
        "What happens, as it happens: server-sent events that follow the log",
        str,
        errors=(*_KEY, E.BAD_OPTION, E.RATE_LIMITED, E.OVERLOADED),
        query=("type",),
        media="text/event-stream",
    ),
    Route("GET", "/tools", tools.list_tools, "The tool registry (spec 5.3)", shapes.ToolsShape, errors=_KEY),
    Route(
        "PUT",
        "/tools/{name}",
        tools.put_tool,
        "Describe a tool and make it known",
        Tool,
        shapes.ToolShape,
        errors=(*_KEY, *_BODY),
    ),
    Route(
        "POST",
        "/attestation/verify",
        attestations.verify_attestation,
        "Is this attestation ours, and to be relied on now? For whoever holds it",
        AttestationCheck,
        shapes.JwtShape,
        errors=_BODY,
        open=True,
    ),
    Route(
        "GET",
        "/attestation/{attestation_id}",
        attestations.get_attestation,
        "One attestation, issued again from the log",
        AttestationView,
        errors=(*_KEY, E.INVALID_AGENT_TOKEN, E.NOT_FOUND, E.TAMPERING_FOUND),
    ),
    Route(
        "POST",
        "/attestation/{attestation_id}/revoke",
        attestations.revoke_attestation,
        "Revoke an attestation; nobody should rely on it any more",
        AttestationView,
        shapes.ReasonShape,
        errors=(*_KEY, *_BODY, E.NOT_FOUND, E.CONFLICT, E.TAMPERING_FOUND),
    ),
    Route(
        "POST",
        "/signing-key/rotate",
        attestations.rotate_signing_key,
        "Sign with another key from now on; for an owner of the first organisation",
        SigningKeysView,
        shapes.ReasonShape,
        errors=(*_KEY, *_BODY, E.CONFLICT),
    ),
    Route("GET", "/.well-known/jwks.json", node.jwks, "The keys that sign attestations", shapes.JwksShape, open=True),
    Route("GET", "/health", node.health, "The process answers", shapes.HealthShape, open=True),
    Route("GET", "/ready", node.ready, "Every part is there", shapes.ReadyShape, open=True),
    Route(
        "GET",
        "/metrics",
        measured.metrics,
        "Metrics for Prometheus; for an owner of the first organisation",
        str,
        errors=_KEY,
        media="text/plain",
    ),
    Route("GET", "/openapi.json", reference.openapi, "This document", dict[str, Any], open=True),
    Route("GET", "/docs", reference.docs, "This document as a page", str, open=True, media="text/html"),
)
