"""Building blocks of the phrase patterns."""


def words(text: str) -> str:
    """Return a pattern that matches any of the words in the text."""
    return f"(?:{'|'.join(text.split())})"


def any_of(*patterns: str) -> str:
    """Return a pattern that matches any of the patterns."""
    return f"(?:{'|'.join(f'(?:{pattern})' for pattern in patterns)})"
