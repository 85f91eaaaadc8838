"""Code Guard: the dangerous patterns, printed as in the document."""

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
_WORDS = ("eval", "exec", "subprocess", "os.system", "os.popen", "__import__", "compile", "importlib")
"""What a text must hold for the row of the same place to match it, in small letters."""


def patterns_in(code: str) -> tuple[str, ...]:
    """The names of the rows that match, in the order of the table."""
    # Ignoring capitals makes a regex of `re` slow, and four letters beyond ASCII match one of it.
    small = code.lower() if code.isascii() else code.casefold().replace("i\u0307", "i").replace("\u0131", "i")
    return tuple(
        name for (name, regex), word in zip(_COMPILED, _WORDS, strict=True) if word in small and regex.search(code)
    )
