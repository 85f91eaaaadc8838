"""Words that depend on a number."""


def counted(count: int, noun: str) -> str:
    """`1 day`, `0 days`, `-2 days`; the noun is one that takes an s."""
    return f"{count} {noun}" if abs(count) == 1 else f"{count} {noun}s"
