"""Dangerous code patterns of the specification."""

import re
from typing import NamedTuple


class Pattern(NamedTuple):
    """One row of the table."""

    name: str
    regex: str
    catches: str


PATTERNS = (
    Pattern("eval", r"\beval\s*\(", "eval(, EVAL (, eval\\n("),
    Pattern("exec", r"\bexec\s*\(", "exec(, Exec ("),
    Pattern(
        "subprocess",
        r"subprocess\.|import subprocess|from subprocess import",
        "subprocess.run, import subprocess as sp, from subprocess import run",
    ),
    Pattern("os.system", r"\bos\.system\s*\(", "os.system(, OS.SYSTEM ("),
    Pattern("os.popen", r"\bos\.popen\s*\(", "All casing/spacing variants"),
    Pattern("__import__", r"__import__\s*\(", "Dynamic imports"),
    Pattern("compile", r"\bcompile\s*\(", "Code compilation"),
    Pattern("importlib", r"\bimportlib\s*\.", "Runtime module loading"),
)
_COMPILED = tuple((row.name, re.compile(row.regex, re.IGNORECASE)) for row in PATTERNS)
WORDS = ("eval", "exec", "subprocess", "os.system", "os.popen", "__import__", "compile", "importlib")
"""Lower-case substring that a text must contain for the pattern at the same index to match."""


def patterns_in(code: str) -> tuple[str, ...]:
    """Return the names of the matching patterns in the order of the table."""
    # Case-insensitive matching in `re` is slow, and four non-ASCII letters match an ASCII one.
    small = code.lower() if code.isascii() else code.casefold().replace("i\u0307", "i").replace("\u0131", "i")
    return tuple(
        name for (name, regex), word in zip(_COMPILED, WORDS, strict=True) if word in small and regex.search(code)
    )
