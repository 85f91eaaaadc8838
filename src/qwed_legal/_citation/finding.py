"""Citations in a running text: by eyecite where it is installed, and by their shape in any case."""

import logging
import re
from typing import Any

from qwed.packs.reading import text_of

LONGEST_TEXT = 100_000
_SHAPES = re.compile(
    r"\bECLI:[^\s,;()]{1,60}"
    r"|\[[0-9]{4}\] (?:[0-9]{1,2} )?[A-Z][A-Za-z]{1,8}(?: (?:Civ|Crim|ER|LR))? [0-9]{1,5}(?: \([A-Za-z]{1,8}\))?"
    r"|(?<![\w.])[0-9]{1,4} (?:[A-Z][A-Za-z0-9.'&]{0,12} ?){1,5} ?[0-9]{1,8}(?:,? \([^()]{0,40}[0-9]{4}\))?"
    r"|(?<![\w.])[0-9]{1,2} (?:U\.? ?S\.? ?C\.?|C\.? ?F\.? ?R\.?)[AS]?\.? \u00a7{1,2} ?[0-9][0-9A-Za-z.()-]{0,30}"
)
_RUN = re.compile(r"[^\sA-Za-z0-9]{20,}+")


def find(text: Any) -> list[str]:
    """What is shaped like a citation, in the order of the text."""
    shown = text_of("text", text, LONGEST_TEXT)
    spans = {found.span() for found in _SHAPES.finditer(shown)} | set(_eyecite(shown))
    kept: list[tuple[int, int]] = []
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if not kept or start >= kept[-1][1]:
            kept.append((start, end))
    return [shown[start:end].rstrip(" ,;.") for start, end in kept]


def _eyecite(text: str) -> list[tuple[int, int]]:
    try:
        from eyecite import get_citations
        from eyecite.models import FullCitation
    except ImportError:
        return []
    # It writes what it was given into the log.
    logging.getLogger("eyecite").setLevel(logging.CRITICAL)
    # A long run of signs it goes through once from each of them; no citation has one in it.
    quiet = _RUN.sub(lambda run: " " * len(run[0]), text)
    found: list[Any] = [each for each in get_citations(quiet) if isinstance(each, FullCitation)]
    return [each.span() for each in found]
