"""Request passed to every engine."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DEFAULT_SENSITIVE_COLUMNS = (
    "password",
    "passwd",
    "pwd",
    "secret",
    "token",
    "api_key",
    "private_key",
    "ssn",
    "credit_card",
    "card_number",
    "cvv",
    "pin",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class DataPolicy:
    """Data permissions of the agent; an absent list means no limit."""

    allowed_tables: tuple[str, ...] | None = None
    allowed_columns: tuple[str, ...] | None = None
    sensitive_columns: tuple[str, ...] = DEFAULT_SENSITIVE_COLUMNS
    schema_ddl: str | None = None
    max_rows: int | None = None
    dialect: str | None = None
    """Dialect of the database that executes the query; None if it is not known."""
    allowed_functions: tuple[str, ...] = ()
    """Functions of the database itself that the agent may call, beside those that only compute."""
    tolerances: tuple[str, ...] = ()
    """How far a request may loosen the judgement of its claim, such as `tolerance_days=2`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineRequest:
    """One input for an engine. `parameters` may only narrow what `policy` allows."""

    query: str = ""
    code: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    policy: DataPolicy = DataPolicy()
    strict: bool = False
    """True for stand-alone verification without trust and risk: code must be pure, SQL must only read."""
