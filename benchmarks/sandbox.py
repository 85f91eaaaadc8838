"""Time of an empty job in the sandbox, compared with a bare Python process."""

import subprocess
import sys
import time
from collections.abc import Callable

from benchmarks.measure import interleaved, ratio
from benchmarks.report import Row, Say, absolute, at_most
from qwed_mcp.sandbox import EndReason, JobLimits, Sandbox, SandboxUnavailable, sandbox_from
from qwed_mcp.settings import McpSettings

JOBS = 5


def rows(rounds: int, say: Say) -> list[Row]:
    """Compare a sandboxed job with a bare interpreter."""
    running = contenders()
    if isinstance(running, SandboxUnavailable):
        say(f"  there is no sandbox here: {running.reason}")
        return []
    seen = interleaved(running, rounds)
    ours, theirs = seen
    return [
        Row(f"{ours} / {theirs}", ratio(seen[ours], seen[theirs])),
        *(absolute(f"{name}, ms", values, at_most(150) if name == ours else None) for name, values in seen.items()),
    ]


def contenders() -> dict[str, Callable[[], float]] | SandboxUnavailable:
    """Return functions that time one job in milliseconds, or why there is no sandbox."""
    sandbox = sandbox_from(McpSettings())()
    if isinstance(sandbox, SandboxUnavailable):
        return sandbox
    return {
        "sandboxed job that does nothing": lambda: _each(lambda: _run(sandbox, "pass")),
        "bare python -I that does nothing": lambda: _each(_bare),
    }


def _run(sandbox: Sandbox, code: str) -> None:
    outcome = sandbox.start(code, JobLimits(seconds=30)).wait()
    if (outcome.ended, outcome.return_code) != (EndReason.EXITED, 0):
        raise RuntimeError(f"did not run: {outcome}")


def _bare() -> None:
    subprocess.run([sys.executable, "-I", "-c", "pass"], check=True)


def _each(work: Callable[[], None]) -> float:
    begun = time.perf_counter()
    for _ in range(JOBS):
        work()
    return (time.perf_counter() - begun) / JOBS * 1000
