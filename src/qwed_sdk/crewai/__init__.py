"""CrewAI integration: `QWEDVerifiedAgent` is a `crewai.Agent` whose tools run only with permission."""

from typing import Any

try:
    from qwed_sdk.crewai.agent import QWEDVerifiedAgent
except ImportError as problem:
    _MISSING = f"QWEDVerifiedAgent needs crewai 1.15.30 or newer: pip install crewai ({problem})"

    class QWEDVerifiedAgent:  # type: ignore[no-redef]
        """Placeholder when CrewAI is not installed; its constructor raises ImportError."""

        def __init__(self, *_: Any, **__: Any) -> None:
            raise ImportError(_MISSING)


__all__ = ["QWEDVerifiedAgent"]
