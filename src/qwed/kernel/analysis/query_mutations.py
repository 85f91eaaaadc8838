"""Detects mutations in query languages without an engine: GraphQL, graph patterns, aggregation pipelines."""

import re
from collections.abc import Iterator
from itertools import islice

from qwed.kernel.tool_verbs import effect_of, meaning_of
from qwed.model import EffectKind

_LONGEST = 20_000
_MOST_NAMES = 500
_E = EffectKind

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*+"' + r"|'(?:[^'\\]|\\.)*+'")
_COMMENTS = re.compile(r"/\*.*?(?:\*/|\Z)|(?<!:)//[^\n\r]*", re.DOTALL)
_NODE = r"\(\s*\w{0,64}\s*(?::[\w:|&!%`$ ]{1,200})?(?:\{[^{}]{0,400}\}\s*)?\)"
_AFTER_NODE = (
    r"\s*(?:[-<,;]|\Z|(?:where|return|set|detach|delete|remove|with|on|match|merge|create|optional|foreach|call|union|unwind"
    r"|order)\b)"
)
_PATTERN = re.compile(
    rf"(?<![\w.-])(?:match|merge|create)\s*(?:\w{{1,64}}\s*=\s*)?(?:\w{{1,32}}\s*)?(?:\(\s*)?{_NODE}{_AFTER_NODE}"
    r"|\A\s*(?:(?:optional\s+)?(?:match|merge|create)\s*(?:\w+\s*=\s*)?\(|unwind\s+\S+\s+as\s|call\s+\w+\.[\w.]+"
    r"|load\s+csv\s+(?:with\s+headers\s+)?from\b|using\s+periodic\s+commit\b|foreach\s*\(\s*\w+\s+in\b)",
    re.IGNORECASE,
)
"""A pattern with a node anywhere, because hints and other clauses may stand before it; or another clause first."""
_MATCHES = re.compile(r"(?<![\w.-])match\b[^()]{0,60}\(\s*\w{0,64}\s*[:{)]", re.IGNORECASE)
"""A pattern in a text that is a query, in whatever form."""
_DIRECTORY_CHANGE = re.compile(r"^changetype:\s*(?:delete|modify|add|modr?dn)\b", re.IGNORECASE | re.MULTILINE)
_OPAQUE = re.compile(
    r"\bcall\s+(?!db\.(?:labels|relationshiptypes|propertykeys|schema\.\w+|indexes|constraints|info|ping)\b|apoc\.meta\.)\w"
    r"|\bload\s+csv\b|\bforeach\b|\busing\s+periodic\b",
    re.IGNORECASE,
)
"""Clauses of a graph pattern whose effects are not in the text."""
_CHANGES = (
    (re.compile(r"\b(?:delete|remove)\b", re.IGNORECASE), _E.DELETE),
    (re.compile(r"\b(?:set|create|merge)\b", re.IGNORECASE), _E.WRITE),
)
_OPERATORS = {
    "$out": _E.WRITE,
    "$merge": _E.WRITE,
    "$where": _E.EXECUTE,
    "$function": _E.EXECUTE,
    "$accumulator": _E.EXECUTE,
}


def is_graph_pattern(text: str) -> bool:
    """Return True if the text has a graph pattern, whose effects `mutations_in` yields."""
    return _PATTERN.search(_plain(text)) is not None


def _plain(text: str) -> str:
    """Return the text without strings and comments."""
    return _COMMENTS.sub(" ", _QUOTED.sub('""', text))


def mutations_in(text: str, *, is_query: bool = False) -> Iterator[EffectKind]:
    """Yield the effects of the text if it is a query of such a language; `is_query` if a name says so."""
    if text in _OPERATORS:
        yield _OPERATORS[text]
    if _DIRECTORY_CHANGE.search(text[:_LONGEST]):
        yield EffectKind.ADMIN
    fields = _mutation_fields(text) if "mutation" in text and "{" in text else None
    if fields is not None:
        yield EffectKind.WRITE
        effects = (effect_of(meaning_of(name)) for name in islice(fields, _MOST_NAMES))
        yield from (effect for effect in effects if effect not in (None, EffectKind.READ))
    elif _BEGINS_PATTERN.search(text):
        plain = _plain(text)
        if _PATTERN.search(plain) or (is_query and _MATCHES.search(plain)):
            yield from _changes_of_pattern(plain)


_BEGINS_PATTERN = re.compile(r"\b(?:match|merge|create|unwind|call|load|using|foreach)\b", re.IGNORECASE)


def _changes_of_pattern(plain: str) -> Iterator[EffectKind]:
    yield from (kind for words, kind in _CHANGES if words.search(plain))
    if _OPAQUE.search(plain):
        yield EffectKind.UNRESOLVED


# GraphQL. A comma, a byte order mark and a comment mean nothing there, so a mutation may begin after any of them.
_GRAPHQL_TOKEN = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+(?:"""|\Z)|"(?:[^"\\\n\r]|\\.)*+"?|#[^\n\r]*+|[\s,\ufeff]++|[A-Za-z_]\w*+|.', re.DOTALL
)
_IGNORED = re.compile(r'["#\s,\ufeff]')
_OPEN, _CLOSE = "{([", "})]"


def _mutation_fields(text: str) -> list[str] | None:
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
    for match in _GRAPHQL_TOKEN.finditer(text):
        if not _IGNORED.match(match[0]):
            yield match[0]
