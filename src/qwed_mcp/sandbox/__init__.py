"""Sandbox for agent code: no network, no secrets, no other jobs and no host files."""

from qwed_mcp.sandbox.bubblewrap import Bubblewrap
from qwed_mcp.sandbox.job import (
    EndReason,
    JobLimits,
    JobOutcome,
    Sandbox,
    SandboxError,
    SandboxJob,
    SandboxProvider,
    SandboxUnavailable,
)
from qwed_mcp.sandbox.selection import sandbox_from
from qwed_mcp.sandbox.unconfined import Unconfined

__all__ = [
    "Bubblewrap",
    "EndReason",
    "JobLimits",
    "JobOutcome",
    "Sandbox",
    "SandboxError",
    "SandboxJob",
    "SandboxProvider",
    "SandboxUnavailable",
    "Unconfined",
    "sandbox_from",
]
