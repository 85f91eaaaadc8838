"""Configuration of the interceptor: which guards are active, and their limits."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

MIN_PAYLOAD_BYTES, MAX_PAYLOAD_BYTES = 1_024, 10_485_760


@dataclass(frozen=True, kw_only=True)
class InterceptorConfig:
    """Settings of an interceptor; a value out of range raises ValueError with the name of the field."""

    enable_financial_verification: bool = True
    enable_logic_verification: bool = True
    enable_code_verification: bool = True
    block_on_error: bool = True
    max_payload_size_bytes: int = 1_048_576
    trusted_agents: Sequence[str] | None = None
    verify_untyped: bool = False
    """True to verify what a payload is, beside what its type says; a gateway and a proxy do."""

    def __post_init__(self) -> None:
        for item in fields(self):
            if item.type is bool and type(getattr(self, item.name)) is not bool:
                raise ValueError(f"`{item.name}` must be true or false")
        size = self.max_payload_size_bytes
        if type(size) is not int or not MIN_PAYLOAD_BYTES <= size <= MAX_PAYLOAD_BYTES:
            raise ValueError(f"`max_payload_size_bytes` must be a whole number from 1024 to {MAX_PAYLOAD_BYTES}")
        if self.trusted_agents is not None:
            # Copied: the caller may append to its list later.
            object.__setattr__(self, "trusted_agents", _agent_ids(self.trusted_agents))


def _agent_ids(value: Sequence[str]) -> tuple[str, ...]:
    agent_ids = tuple(value)
    if isinstance(value, str) or not all(isinstance(agent_id, str) and agent_id for agent_id in agent_ids):
        raise ValueError("`trusted_agents` must be a list of agent ids")
    return agent_ids
