"""Seed 004, Error responses and Response format: what a run and a job read like, word for word."""

from collections.abc import Callable
from typing import NamedTuple

from qwed_mcp.sandbox.outcome import OUTPUT_CAP, Ended, Outcome

WARNING = "[WARNING: OUTPUT TRUNCATED DUE TO 1MB SIZE CAP. PROCESS TERMINATED.]"
CANCELLED = "Job was cancelled."


class Told(NamedTuple):
    """An outcome in words, and whether the code did what it was to do."""

    text: str
    well: bool


def told(outcome: Outcome, seconds: float) -> Told:
    """What came of a synchronous run that had `seconds`."""
    if outcome.ended is Ended.TIMED_OUT:
        return Told(f"Execution timed out after {float(seconds)} seconds.", False)
    return _told(outcome)


def told_in_background(outcome: Outcome, seconds: float) -> Told:
    """What came of a background job that had `seconds`."""
    if outcome.ended is Ended.TIMED_OUT:
        return Told(
            f"Background verification timed out after {seconds:g} seconds. "
            "Process terminated to prevent resource exhaustion.",
            False,
        )
    return _told(outcome)


def _told(outcome: Outcome) -> Told:
    streams = (("STDOUT", outcome.stdout), ("STDERR", outcome.stderr))
    blocks = [f"{name}:\n{_cut(text)}" for name, text in streams if text.rstrip("\n")]
    return Told("\n\n".join([*blocks, _SUMMARIES[outcome.ended](outcome)]), _went_well(outcome))


def _went_well(outcome: Outcome) -> bool:
    return outcome.ended is Ended.EXITED and outcome.return_code == 0


def _exited(outcome: Outcome) -> str:
    if _went_well(outcome):
        return "Execution completed successfully."
    return f"Execution failed with return code {outcome.return_code}."


_SUMMARIES: dict[Ended, Callable[[Outcome], str]] = {
    Ended.EXITED: _exited,
    Ended.TIMED_OUT: lambda _outcome: "Execution timed out.",
    Ended.OUTPUT_CAP: lambda _outcome: WARNING,
    Ended.MEMORY: lambda _outcome: "Execution was ended: it needed more memory than a run may use.",
    Ended.CANCELLED: lambda _outcome: CANCELLED,
}


def _cut(text: str) -> str:
    """The text without its last line's end, and never more than the cap: a byte that is no text can become three."""
    if len(text) * 4 > OUTPUT_CAP:
        text = text.encode("utf-8", "replace")[:OUTPUT_CAP].decode("utf-8", "ignore")
    return text.rstrip("\n")
