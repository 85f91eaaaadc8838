"""Where code that is run for an agent runs: with no network, no secret, no other job and no host file."""

from qwed_mcp.sandbox.bubblewrap import Bubblewrap
from qwed_mcp.sandbox.choice import sandbox_from
from qwed_mcp.sandbox.outcome import Chosen, Ended, Failed, Job, Limits, Outcome, Sandbox, Unavailable
from qwed_mcp.sandbox.unconfined import Unconfined

__all__ = [
    "Bubblewrap",
    "Chosen",
    "Ended",
    "Failed",
    "Job",
    "Limits",
    "Outcome",
    "Sandbox",
    "Unavailable",
    "Unconfined",
    "sandbox_from",
]
