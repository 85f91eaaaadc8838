"""Token-level preprocessing: gaps and comments, placeholders, and an estimate of the parser's work."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from sqlglot import Token, TokenType
from sqlglot.dialects.dialect import Dialect

_FREE_JOINS = frozenset({TokenType.CROSS, TokenType.NATURAL})
_CONDITIONS = frozenset({TokenType.ON, TokenType.USING})
_BEFORE_BIND = frozenset(" (=,<>\n\t")
_FORMAT = re.compile(r"%(?:s|\(([A-Za-z_]\w{0,60})\)s)(?!\w)")
_VALUES = frozenset({TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.R_PAREN, TokenType.STRING})
_OPERATORS = {("<", "<="): "<< ", (">", ">="): ">> ", ("<", "#>"): "<->"}
_OPENING = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE})
_CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END})
_SIGNS = frozenset({TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE, TokenType.INTERVAL})
_EXPLAINING = frozenset({"EXPLAIN", "DESCRIBE", "DESC", "ANALYZE"})
_NESTED_TYPES = frozenset(
    {TokenType.ARRAY, TokenType.MAP, TokenType.STRUCT, TokenType.LIST, TokenType.NESTED, TokenType.NULLABLE}
)
_LAMBDAS = frozenset({TokenType.ARROW, TokenType.FARROW})
_LAMBDAS_PER_LEVEL = 10
"""Lambdas and JSON paths share a sign; only many of them are nested."""
_LETTERS = str.maketrans("0123456789", "abcdefghij")


def gaps(text: str, tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Yield the spans of blanks and comments: before the first token, between tokens, after the last."""
    at = 0
    for token in tokens:
        yield at, token.start
        at = token.end + 1
    yield at, len(text)


def nonblank_gaps(text: str, tokens: Sequence[Token]) -> list[tuple[int, int, str]]:
    """Return (tokens before it, start, text) of each gap with more than blanks; most queries have none."""
    numbered = enumerate(gaps(text, tokens))
    return [
        (index, start, text[start:end])
        for index, (start, end) in numbered
        if not text[start:end].isspace() and start < end
    ]


def blank_comments(text: str, tokens: Sequence[Token]) -> str:
    """Replace comments with blanks, so that `ORDER /* x */ BY` parses; positions stay the same."""
    gaps_with_text = nonblank_gaps(text, tokens)
    if not gaps_with_text:
        return text
    characters = list(text)
    for _index, start, gap in gaps_with_text:
        for offset, length in _comment_spans(gap):
            span = slice(start + offset, start + offset + length)
            characters[span] = ["\n" if character == "\n" else " " for character in characters[span]]
    return "".join(characters)


def normalize_binds(text: str, tokens: Sequence[Token]) -> str:
    """Rewrite `?1`, `:1`, `%s` and `%(name)s` as placeholders for every dialect; positions stay the same."""
    characters = list(text)
    for before, mark, after in zip((None, *tokens), tokens, tokens[1:], strict=False):
        if after.start != mark.end + 1:
            continue
        if mark.token_type is TokenType.COLON and after.token_type is TokenType.NUMBER:
            if text[mark.start - 1 : mark.start] in _BEFORE_BIND:
                digits = text[after.start : after.end + 1]
                characters[after.start : after.end + 1] = digits.translate(_LETTERS)
        elif mark.token_type is TokenType.PLACEHOLDER and after.token_type is TokenType.NUMBER:
            characters[after.start : after.end + 1] = " " * (after.end + 1 - after.start)
        elif mark.token_type is TokenType.MOD and (before is None or before.token_type not in _VALUES):
            match = _FORMAT.match(text, mark.start)
            if match:
                characters[mark.start : match.end()] = _bind(match[1]).ljust(len(match[0]))
    return "".join(characters)


def normalize_operators(text: str, tokens: Sequence[Token]) -> str:
    """Rewrite operators that the parser splits as known ones with the same operands; positions stay unchanged."""
    characters = list(text)
    for mark, after in pairwise(tokens):
        replacement = _OPERATORS.get((mark.text, after.text)) if after.start == mark.end + 1 else None
        if replacement and text[mark.start] == mark.text:
            characters[mark.start : after.end + 1] = replacement
    return "".join(characters)


def _bind(name: str | None) -> str:
    return f":{name}" if name else "?"


def double_quoted(text: str, tokens: Sequence[Token]) -> tuple[str, ...]:
    """Return the folded texts that are strings here and names in most dialects, raw and unescaped, without aliases."""
    texts: list[str] = []
    before = None
    for token in tokens:
        if token.token_type is TokenType.STRING and text[token.start] == '"' and before is not TokenType.ALIAS:
            texts += (token.text.lower(), text[token.start + 1 : token.end].lower())
        before = token.token_type
    return tuple(dict.fromkeys(texts))


def _comment_spans(gap: str) -> list[tuple[int, int]]:
    """Return the spans of the comments of a gap; none if it contains other text, such as the body of a command."""
    spans = [(offset, len(body) + 4 - 2 * line) for offset, line, body in comments_in(gap)]
    rest = list(gap)
    for offset, length in spans:
        rest[offset : offset + length] = " " * len(rest[offset : offset + length])
    return [] if "".join(rest).strip() else spans


def comments_in(gap: str) -> Iterator[tuple[int, bool, str]]:
    """Yield (offset, whether it ends with its line, body) of each comment in a gap."""
    at = 0
    while at < len(gap):
        if gap.startswith("/*", at):
            end = gap.find("*/", at + 2)
            stop = len(gap) if end < 0 else end
            yield at, False, gap[at + 2 : stop]
            at = stop + 2
        elif gap.startswith(("--", "//", "#"), at):
            marker = 1 if gap[at] == "#" else 2
            end = gap.find("\n", at)
            stop = len(gap) if end < 0 else end
            yield at, True, gap[at + marker : stop]
            at = stop + 1
        else:
            at += 1


def nesting(tokens: Sequence[Token]) -> int:
    """Return how deeply the parser would nest: brackets, CASE, signs in a row, lambdas and types of types."""
    depth = deepest = signs = lambdas = types = 0
    before = None
    for token in tokens:
        kind = token.token_type
        signs = signs + 1 if kind in _SIGNS or token.text.upper() in _EXPLAINING else 0
        depth = max(0, depth + (kind in _OPENING) - (kind in _CLOSING))
        types = max(0, types + (kind is TokenType.LT and before in _NESTED_TYPES) - (kind is TokenType.GT))
        lambdas += kind in _LAMBDAS
        deepest = max(deepest, depth + signs + types, lambdas // _LAMBDAS_PER_LEVEL)
        before = kind
    return deepest


def backtracking(tokens: Sequence[Token], dialect: str) -> int:
    """Estimate how often the parser may restart: each open join and each nested type call doubles its work."""
    return _open_joins(tokens) + max(_type_depths(tokens, dialect), default=0)


def _open_joins(tokens: Sequence[Token]) -> int:
    """Return the number of joins without ON or USING at their own depth."""
    open_joins: dict[int, int] = {}
    depth, total, before = 0, 0, None
    for token in tokens:
        kind = token.token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if kind is TokenType.JOIN and before not in _FREE_JOINS:
            open_joins[depth] = open_joins.get(depth, 0) + 1
            total += 1
        elif kind in _CONDITIONS and open_joins.get(depth):
            open_joins[depth] -= 1
            total -= 1
        before = kind
    return total


def _type_depths(tokens: Sequence[Token], dialect: str) -> Iterator[int]:
    types = type(Dialect.get_or_raise(dialect)).parser_class.TYPE_TOKENS
    calls: list[bool] = []
    before = None
    depth = 0
    for token in tokens:
        # `ARRAY[` may begin a type as `DECIMAL(` does.
        if token.token_type in _TYPE_OPENING:
            calls.append(before in types)
            depth += calls[-1]
            yield depth
        elif token.token_type in _TYPE_CLOSING and calls:
            depth -= calls.pop()
        before = token.token_type


_TYPE_OPENING = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET})
_TYPE_CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET})
