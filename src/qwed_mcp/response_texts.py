"""Texts that describe a run or a job, as fixed by seed 004 (Error responses, Response format)."""

from collections.abc import Callable
from typing import NamedTuple

from qwed_mcp.sandbox.job import OUTPUT_CAP, EndReason, JobOutcome

TRUNCATION_WARNING = "[WARNING: OUTPUT TRUNCATED DUE TO 1MB SIZE CAP. PROCESS TERMINATED.]"
CANCELLED = "Job was cancelled."


class RunSummary(NamedTuple):
    """Text that describes a run, and its success."""

    text: str
    success: bool


def describe_run(outcome: JobOutcome, seconds: float) -> RunSummary:
    """Describe a synchronous run that was limited to `seconds`."""
    if outcome.ended is EndReason.TIMED_OUT:
        return RunSummary(f"Execution timed out after {float(seconds)} seconds.", False)
    return _describe(outcome)


def describe_job(outcome: JobOutcome, seconds: float) -> RunSummary:
    """Describe a background job that was limited to `seconds`."""
    if outcome.ended is EndReason.TIMED_OUT:
        return RunSummary(
            f"Background verification timed out after {seconds:g} seconds. "
            "Process terminated to prevent resource exhaustion.",
            False,
        )
    return _describe(outcome)


def _describe(outcome: JobOutcome) -> RunSummary:
    streams = (("STDOUT", outcome.stdout), ("STDERR", outcome.stderr))
    blocks = [f"{name}:\n{_truncate(text)}" for name, text in streams if text.rstrip("\n")]
    return RunSummary("\n\n".join([*blocks, _SUMMARIES[outcome.ended](outcome)]), _succeeded(outcome))


def _succeeded(outcome: JobOutcome) -> bool:
    return outcome.ended is EndReason.EXITED and outcome.return_code == 0


def _describe_exit(outcome: JobOutcome) -> str:
    if _succeeded(outcome):
        return "Execution completed successfully."
    return f"Execution failed with return code {outcome.return_code}."


_SUMMARIES: dict[EndReason, Callable[[JobOutcome], str]] = {
    EndReason.EXITED: _describe_exit,
    EndReason.TIMED_OUT: lambda _outcome: "Execution timed out.",
    EndReason.OUTPUT_CAP: lambda _outcome: TRUNCATION_WARNING,
    EndReason.MEMORY: lambda _outcome: "Execution was ended: it exceeded the memory limit of a run.",
    EndReason.CANCELLED: lambda _outcome: CANCELLED,
}


def _truncate(text: str) -> str:
    """Strip trailing newlines and cut the text at the output cap.

    The cap is applied again here because one undecodable byte becomes three bytes of UTF-8.
    """
    if len(text) * 4 > OUTPUT_CAP:
        text = text.encode("utf-8", "replace")[:OUTPUT_CAP].decode("utf-8", "ignore")
    return text.rstrip("\n")
