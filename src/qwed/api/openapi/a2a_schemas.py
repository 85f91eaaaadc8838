"""Request and response schemas of the A2A endpoints, for the OpenAPI document.

Declared again here and compared by a test: `qwed_a2a` loads pydantic, which the server defers to the first message.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from qwed.api.openapi.schemas import RequestShape
from qwed.kernel.views.agent_views import View

AgentName = Annotated[str, Meta(min_length=1, max_length=256, pattern=r"^[^\u0000-\u001f\u007f-\u009f]*$")]
PayloadType = Literal["financial_transaction", "logic_assertion", "code_execution", "data_query", "general"]
EngineName = Literal[
    "finance_guard", "logic_guard", "code_guard", "trust_boundary", "bypass", "passthrough", "error_handler"
]
Guards = Literal["finance_guard", "logic_guard", "code_guard"]


class MetadataShape(msgspec.Struct, kw_only=True):
    """Metadata of a message. Loops are detected within a conversation; absent step numbers are assigned."""

    conversation_id: Annotated[str, Meta(min_length=1, max_length=256)] | None = None
    step_number: Annotated[int, Meta(ge=1)] | None = None


class MessageShape(RequestShape):
    """One message."""

    sender_agent_id: AgentName
    receiver_agent_id: AgentName
    payload: Annotated[dict[str, Any], Meta(description="content of the message, in the format of its type")]
    payload_type: PayloadType = "general"
    timestamp: Annotated[str, Meta(extra_json_schema={"format": "date-time"})] | None = None
    metadata: MetadataShape | None = None


class AgentShape(RequestShape):
    """Entry of a list: the id of an agent, or the name that a sender uses."""

    agent_id: AgentName


class PairShape(RequestShape):
    """Blocked pair, in this direction only."""

    sender: AgentName
    receiver: AgentName


class VerdictView(View, frozen=True, kw_only=True):
    """Verdict on a message: deliver it only if the status is `forwarded`."""

    status: Literal["forwarded", "blocked", "error"]
    reason: str
    audit_trace_id: str
    attestation_jwt: str | None
    engine_used: EngineName
    verified_at: str
    details: dict[str, Any]
    activity_id: str
    """Its leaf in the log."""


class MessageHealthView(View, frozen=True, kw_only=True):
    """Status of A2A verification and its guards."""

    status: Literal["ok", "unavailable"]
    version: str
    guards: list[Guards]


class MessageMetricsView(View, frozen=True, kw_only=True):
    """Counters of the organisation's messages since the server started."""

    total_intercepts: int
    total_forwarded: int
    total_blocked: int
    total_errors: int
    average_latency_ms: float
    block_rate: float
    by_engine: dict[str, int]


class AgentListedView(View, frozen=True, kw_only=True):
    """Membership of an agent in a list."""

    agent_id: str
    listed: bool


class PairListedView(View, frozen=True, kw_only=True):
    """Membership of a pair in the list."""

    sender: str
    receiver: str
    listed: bool
