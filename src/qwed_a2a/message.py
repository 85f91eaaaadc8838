"""Schema validation: what one agent tells another. Pydantic, because the document says so."""

import unicodedata
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, field_validator

LONGEST_ID = 256


class PayloadType(StrEnum):
    """What a payload is, and thereby which guard looks at it."""

    FINANCIAL_TRANSACTION = "financial_transaction"
    LOGIC_ASSERTION = "logic_assertion"
    CODE_EXECUTION = "code_execution"
    DATA_QUERY = "data_query"
    GENERAL = "general"


class AgentMessage(BaseModel):
    """One message from one agent to another."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sender_agent_id: str = Field(min_length=1, max_length=LONGEST_ID)
    receiver_agent_id: str = Field(min_length=1, max_length=LONGEST_ID)
    payload_type: PayloadType = PayloadType.GENERAL
    payload: dict[str, Any]
    timestamp: AwareDatetime = Field(default_factory=lambda: datetime.now(UTC))
    metadata: dict[str, Any] | None = None

    @field_validator("sender_agent_id", "receiver_agent_id")
    @classmethod
    def _has_no_control_character(cls, name: str) -> str:
        if any(unicodedata.category(each) == "Cc" for each in name):
            raise ValueError("must not have control characters")
        return name

    @field_validator("timestamp")
    @classmethod
    def _in_utc(cls, moment: datetime) -> datetime:
        try:
            return moment.astimezone(UTC)
        except OverflowError:
            # The first hours of the year 1 east of Greenwich, and the last of the year 9999 west of it.
            raise ValueError("must be a moment that UTC has") from None
