"""CrewAI: `QWEDVerifiedAgent` is a `crewai.Agent` none of whose tools runs before qwed has permitted it."""

from typing import Any

try:
    from qwed_sdk.crewai.agent import QWEDVerifiedAgent
except ImportError as problem:
    _MISSING = f"QWEDVerifiedAgent needs crewai 1.15.30 or newer: pip install crewai ({problem})"

    class QWEDVerifiedAgent:  # type: ignore[no-redef]
        """Stands in where CrewAI is not installed: making one says what to install."""

        def __init__(self, *_: Any, **__: Any) -> None:
            raise ImportError(_MISSING)


__all__ = ["QWEDVerifiedAgent"]
