"""Detection of tool shadowing: commands about the tools of another server in a description."""

import re
from collections.abc import Iterable, Iterator, Mapping

from qwed.kernel.tool_verbs import words_of
from qwed_mcp.tool_pinning.lookalikes import KnownTool

_TOKEN = re.compile(r"(?<![A-Za-z0-9_.-])[A-Za-z][A-Za-z0-9]*+(?:[_.-]++[A-Za-z0-9]++)*+")
_COMMAND = re.compile(
    r"\b(?:always|never|must|instead of|rather than|when(?:ever)?|before|after|do not|don't|should|first|only"
    r"|make sure)\b",
    re.IGNORECASE,
)
_CONTEXT_CHARS = 160
_MIN_WORDS = 2
"""Shortest name that is looked for; `search` and `fetch` are ordinary words too."""
_QUALIFIED = re.compile(r"mcp__.{1,64}?__(.+)")

ForeignTools = Mapping[tuple[str, ...], KnownTool]


def index_foreign_tools(others: Iterable[KnownTool], own: Iterable[str]) -> ForeignTools:
    """Index the tools of other servers by the words of their names."""
    mine = {tuple(words_of(name)) for name in own}
    candidates = ((tuple(words_of(tool.name)), tool) for tool in others)
    return {words: tool for words, tool in candidates if len(words) >= _MIN_WORDS and words not in mine}


def commands_about_others(text: str, foreign: ForeignTools) -> Iterator[KnownTool]:
    """Yield the tools of other servers that occur in a sentence with a command."""
    for token in _TOKEN.finditer(text):
        qualified = _QUALIFIED.fullmatch(token[0])
        tool = foreign.get(tuple(words_of(qualified[1] if qualified else token[0])))
        if tool is not None and _COMMAND.search(_sentence(text, token.start(), token.end())):
            yield tool


def _sentence(text: str, start: int, end: int) -> str:
    before = text[max(0, start - _CONTEXT_CHARS) : start]
    after = text[end : end + _CONTEXT_CHARS]
    return before[max(before.rfind(". "), before.rfind("\n\n")) + 1 :] + " " + after.partition(". ")[0]
