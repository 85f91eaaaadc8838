"""What messages between agents and their verdicts look like, for the API document; `qwed_a2a` reads and makes them.

Typed here anew, and compared by a test: `qwed_a2a` loads pydantic, which a server does with its first message.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from qwed.api.shapes import Shape
from qwed.kernel.views.agents import View

AgentName = Annotated[str, Meta(min_length=1, max_length=256, pattern=r"^[^\u0000-\u001f\u007f-\u009f]*$")]
PayloadType = Literal["financial_transaction", "logic_assertion", "code_execution", "data_query", "general"]
EngineName = Literal[
    "finance_guard", "logic_guard", "code_guard", "trust_boundary", "bypass", "passthrough", "error_handler"
]
Guards = Literal["finance_guard", "logic_guard", "code_guard"]


class MetadataShape(msgspec.Struct, kw_only=True):
    """What stands beside a message. In a conversation loops are looked for; steps that are not given are counted."""

    conversation_id: Annotated[str, Meta(min_length=1, max_length=256)] | None = None
    step_number: Annotated[int, Meta(ge=1)] | None = None


class MessageShape(Shape):
    """One message."""

    sender_agent_id: AgentName
    receiver_agent_id: AgentName
    payload: Annotated[dict[str, Any], Meta(description="what is sent, in the form that its type has")]
    payload_type: PayloadType = "general"
    timestamp: Annotated[str, Meta(extra_json_schema={"format": "date-time"})] | None = None
    metadata: MetadataShape | None = None


class AgentShape(Shape):
    """An entry of a list: an agent's id, or the name that somebody sends under."""

    agent_id: AgentName


class PairShape(Shape):
    """An entry of the pairs, in this direction alone."""

    sender: AgentName
    receiver: AgentName


class VerdictView(View, frozen=True, kw_only=True):
    """What became of a message: `forwarded` may go on, anything else must not."""

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
    """Messages are judged here, and by what."""

    status: Literal["ok", "unavailable"]
    version: str
    guards: list[Guards]


class MessageMetricsView(View, frozen=True, kw_only=True):
    """What became of the organisation's messages since the server started."""

    total_intercepts: int
    total_forwarded: int
    total_blocked: int
    total_errors: int
    average_latency_ms: float
    block_rate: float
    by_engine: dict[str, int]


class AgentListedView(View, frozen=True, kw_only=True):
    """How an agent stands on a list now."""

    agent_id: str
    listed: bool


class PairListedView(View, frozen=True, kw_only=True):
    """How a pair stands now."""

    sender: str
    receiver: str
    listed: bool
