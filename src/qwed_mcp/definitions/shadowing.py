"""Commands about the tools of another server: whose description says how they are used, steers them."""

import re
from collections.abc import Iterable, Iterator, Mapping

from qwed.kernel.tools import words_of
from qwed_mcp.definitions.names import Known

_TOKEN = re.compile(r"(?<![A-Za-z0-9_.-])[A-Za-z][A-Za-z0-9]*+(?:[_.-]++[A-Za-z0-9]++)*+")
_COMMAND = re.compile(
    r"\b(?:always|never|must|instead of|rather than|when(?:ever)?|before|after|do not|don't|should|first|only"
    r"|make sure)\b",
    re.IGNORECASE,
)
_AROUND = 160
_FEWEST_WORDS = 2
"""`search` and `fetch` are words of the language too."""
_QUALIFIED = re.compile(r"mcp__.{1,64}?__(.+)")

Foreign = Mapping[tuple[str, ...], Known]


def foreign_names(others: Iterable[Known], own: Iterable[str]) -> Foreign:
    """The names of tools that are not this server's, by their words."""
    mine = {tuple(words_of(name)) for name in own}
    named = ((tuple(words_of(each.name)), each) for each in others)
    return {words: each for words, each in named if len(words) >= _FEWEST_WORDS and words not in mine}


def commands_about_others(text: str, foreign: Foreign) -> Iterator[Known]:
    """The tools of others that are spoken of in a sentence that commands."""
    for token in _TOKEN.finditer(text):
        qualified = _QUALIFIED.fullmatch(token[0])
        known = foreign.get(tuple(words_of(qualified[1] if qualified else token[0])))
        if known is not None and _COMMAND.search(_sentence(text, token.start(), token.end())):
            yield known


def _sentence(text: str, start: int, end: int) -> str:
    before = text[max(0, start - _AROUND) : start]
    after = text[end : end + _AROUND]
    return before[max(before.rfind(". "), before.rfind("\n\n")) + 1 :] + " " + after.partition(". ")[0]
