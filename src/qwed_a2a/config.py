"""Configuration reference: which guards are active, and what they are held to."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

SMALLEST_PAYLOAD, LARGEST_PAYLOAD = 1_024, 10_485_760


@dataclass(frozen=True, kw_only=True)
class InterceptorConfig:
    """What an interceptor verifies; a value out of its bounds is refused by name."""

    enable_financial_verification: bool = True
    enable_logic_verification: bool = True
    enable_code_verification: bool = True
    block_on_error: bool = True
    max_payload_size_bytes: int = 1_048_576
    trusted_agents: Sequence[str] | None = None

    def __post_init__(self) -> None:
        for each in fields(self):
            if each.type is bool and type(getattr(self, each.name)) is not bool:
                raise ValueError(f"`{each.name}` must be true or false")
        size = self.max_payload_size_bytes
        if type(size) is not int or not SMALLEST_PAYLOAD <= size <= LARGEST_PAYLOAD:
            raise ValueError(f"`max_payload_size_bytes` must be a whole number from 1024 to {LARGEST_PAYLOAD}")
        if self.trusted_agents is not None:
            # A list that somebody goes on appending to would trust more than was agreed upon.
            object.__setattr__(self, "trusted_agents", _ids(self.trusted_agents))


def _ids(given: Sequence[str]) -> tuple[str, ...]:
    named = tuple(given)
    if isinstance(given, str) or not all(isinstance(each, str) and each for each in named):
        raise ValueError("`trusted_agents` must be a list of agent ids")
    return named
