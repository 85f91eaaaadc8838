"""Citation extraction from running text: by pattern, and by eyecite if it is installed."""

import logging
import re
from typing import Any

from qwed.packs.value_parsing import text_of

MAX_TEXT = 100_000
_CITATION_SHAPES = re.compile(
    r"\bECLI:[^\s,;()]{1,60}"
    r"|\[[0-9]{4}\] (?:[0-9]{1,2} )?[A-Z][A-Za-z]{1,8}(?: (?:Civ|Crim|ER|LR))? [0-9]{1,5}(?: \([A-Za-z]{1,8}\))?"
    r"|(?<![\w.])[0-9]{1,4} (?:[A-Z][A-Za-z0-9.'&]{0,12} ?){1,5} ?[0-9]{1,8}(?:,? \([^()]{0,40}[0-9]{4}\))?"
    r"|(?<![\w.])[0-9]{1,2} (?:U\.? ?S\.? ?C\.?|C\.? ?F\.? ?R\.?)[AS]?\.? \u00a7{1,2} ?[0-9][0-9A-Za-z.()-]{0,30}"
)
_SYMBOL_RUN = re.compile(r"[^\sA-Za-z0-9]{20,}+")


def find_citations(text: Any) -> list[str]:
    """Return the substrings that resemble a citation, in text order."""
    content = text_of("text", text, MAX_TEXT)
    spans = {match.span() for match in _CITATION_SHAPES.finditer(content)} | set(_eyecite_spans(content))
    selected: list[tuple[int, int]] = []
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if not selected or start >= selected[-1][1]:
            selected.append((start, end))
    return [content[start:end].rstrip(" ,;.") for start, end in selected]


def _eyecite_spans(text: str) -> list[tuple[int, int]]:
    try:
        from eyecite import get_citations
        from eyecite.models import FullCitation
    except ImportError:
        return []
    # eyecite logs its input.
    logging.getLogger("eyecite").setLevel(logging.CRITICAL)
    # eyecite takes quadratic time on a long run of symbols; no citation contains one.
    blanked = _SYMBOL_RUN.sub(lambda run: " " * len(run[0]), text)
    citations: list[Any] = [citation for citation in get_citations(blanked) if isinstance(citation, FullCitation)]
    return [citation.span() for citation in citations]
