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
_MUTATION = re.compile(r"(?:^|\})\s*(?:#[^\n]*\n\s*)*mutation\b[^{}]{0,2000}\{", re.IGNORECASE)
_TOKEN = re.compile(r"[A-Za-z_]\w{0,63}|[{}()]")
_PATTERN = re.compile(
    r"\s*(?:optional\s+)?(?:match|merge|create)\s*(?:\w+\s*=\s*)?\(|\s*unwind\s+\S+\s+as\s"
    r"|\s*call\s+\w+\.[\w.]+|\s*load\s+csv\b|\s*(?:using\s+periodic|foreach)\s*\(?",
    re.IGNORECASE,
)
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
    """Return True if the text is a graph pattern, whose effects `mutations_in` yields."""
    return _PATTERN.match(text[:_LONGEST]) is not None


def mutations_in(text: str) -> Iterator[EffectKind]:
    """Yield the effects of the text if it is a query of such a language."""
    if text in _OPERATORS:
        yield _OPERATORS[text]
    begins = text[:_LONGEST]
    if _DIRECTORY_CHANGE.search(begins):
        yield EffectKind.ADMIN
    if "mutation" not in begins.lower() and not _PATTERN.match(begins):
        return
    plain = _QUOTED.sub('""', begins)
    if _MUTATION.search(plain):
        yield EffectKind.WRITE
        effects = (effect_of(meaning_of(name)) for name in islice(_operations_in(plain), _MOST_NAMES))
        yield from (effect for effect in effects if effect not in (None, EffectKind.READ))
    elif _PATTERN.match(plain):
        yield from (kind for words, kind in _CHANGES if words.search(plain))
        if _OPAQUE.search(plain):
            yield EffectKind.UNRESOLVED


def _operations_in(plain: str) -> Iterator[str]:
    """Yield the fields of the outermost level of a mutation: each is an operation, named like a tool."""
    depth = brackets = 0
    for match in _TOKEN.finditer(plain):
        piece = match[0]
        depth += (piece == "{") - (piece == "}")
        brackets += (piece == "(") - (piece == ")")
        if depth == 1 and brackets <= 0 and piece not in "{}()":
            yield piece
