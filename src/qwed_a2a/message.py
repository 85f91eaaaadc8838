"""Schema of a message between agents, a Pydantic model as the specification requires."""

import re
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, field_validator

MAX_ID_LENGTH = 256
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class PayloadType(StrEnum):
    """Kind of a payload, which selects its guard."""

    FINANCIAL_TRANSACTION = "financial_transaction"
    LOGIC_ASSERTION = "logic_assertion"
    CODE_EXECUTION = "code_execution"
    DATA_QUERY = "data_query"
    GENERAL = "general"


class AgentMessage(BaseModel):
    """One message from one agent to another."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sender_agent_id: str = Field(min_length=1, max_length=MAX_ID_LENGTH)
    receiver_agent_id: str = Field(min_length=1, max_length=MAX_ID_LENGTH)
    payload_type: PayloadType = PayloadType.GENERAL
    payload: dict[str, Any]
    timestamp: AwareDatetime = Field(default_factory=lambda: datetime.now(UTC))
    metadata: dict[str, Any] | None = None

    @field_validator("sender_agent_id", "receiver_agent_id")
    @classmethod
    def _has_no_control_character(cls, name: str) -> str:
        if _CONTROL_CHARACTERS.search(name):
            raise ValueError("must not have control characters")
        return name

    @field_validator("timestamp")
    @classmethod
    def _in_utc(cls, moment: datetime) -> datetime:
        try:
            return moment.astimezone(UTC)
        except OverflowError:
            # The first hours of the year 1 in eastern time zones, and the last of the year 9999 in western ones.
            raise ValueError("must be a time that exists in UTC") from None
