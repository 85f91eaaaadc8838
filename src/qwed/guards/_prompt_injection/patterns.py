"""Patterns for text that addresses the model instead of describing the tool, over one plain line of lower-case text.

A description may say how the tool is used, what comes first and what is important. It may not speak of other
instructions, of what to keep from the user, of the conversation or of secrets, of how other tools are used, or of other
places to send data to.
"""

import re

from qwed.guards._prompt_injection.regex_parts import any_of
from qwed.model.data_files import read_patterns

_DISTANCE = re.compile(r" ~(\d*) ")


def _near(text: str) -> str:
    """Return the pattern of `one ~40 other`, parts of one sentence with at most 40 characters in between.

    What follows ` ~ ` comes directly. The groups are atomic: backtracking through all combinations would let hostile
    text take too much time.
    """
    first, *rest = _DISTANCE.split(text)
    parts = zip(rest[::2], rest[1::2], strict=True)
    steps = (rf"(?>[^.]{{0,{within}}}?\b{part}\b)" if within else part for within, part in parts)
    return rf"\b{first}\b{''.join(steps)}" if rest else text


def _patterns(name: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    rows = read_patterns(__file__, name)
    return tuple((re.compile(any_of(*map(_near, patterns))), what) for what, patterns in rows)


PATTERNS = _patterns("patterns.txt")
IN_OTHER_SCRIPTS = _patterns("other_scripts.txt")
