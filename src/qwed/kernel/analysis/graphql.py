"""Operations of a GraphQL document, read with the lexical rules of the language.

A comma, a byte order mark and a comment mean nothing there, so that a mutation may begin after any of them.
"""

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+(?:"""|\Z)|"(?:[^"\\\n\r]|\\.)*+"?|#[^\n\r]*+|[\s,\ufeff]++|[A-Za-z_]\w*+|.', re.DOTALL
)
_IGNORED = re.compile(r'["#\s,\ufeff]')
_OPEN, _CLOSE = "{([", "})]"


def mutation_fields(text: str) -> list[str] | None:
    """Return the outermost fields of the mutations of a document, or None if it has no mutation."""
    mutations = [definition for definition in _definitions(text) if definition.keyword == "mutation"]
    return [field for mutation in mutations for field in mutation.fields] if mutations else None


class _Definition:
    """A definition that is being read: an operation or a fragment."""

    def __init__(self) -> None:
        self.words: list[str] = []
        """What stands before its fields."""
        self.fields: list[str] = []
        """Names of its outermost fields."""
        self._open: list[str] = []

    @property
    def keyword(self) -> str:
        return self.words[0] if self.words else ""

    def read(self, piece: str) -> bool:
        """Read a piece; return True if it ends the definition."""
        if not self._open and piece != "{":
            self.words.append(piece)
        elif self._open == ["{"] and piece.isidentifier():
            self.fields.append(piece)
        if piece in _OPEN:
            self._open.append(piece)
        return piece in _CLOSE and bool(self._open) and self._open.pop() == "{" and not self._open


def _definitions(text: str) -> Iterator[_Definition]:
    definition = _Definition()
    for piece in _pieces(text):
        if definition.read(piece):
            yield definition
            definition = _Definition()
    if definition.fields:
        yield definition


def _pieces(text: str) -> Iterator[str]:
    for match in _TOKEN.finditer(text):
        if not _IGNORED.match(match[0]):
            yield match[0]
