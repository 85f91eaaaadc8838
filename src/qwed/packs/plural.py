"""English plurals."""


def pluralize(count: int, noun: str) -> str:
    """Format a count and its noun: `1 day`, `0 days`, `-2 days`. The plural must end in `s`."""
    return f"{count} {noun}" if abs(count) == 1 else f"{count} {noun}s"
