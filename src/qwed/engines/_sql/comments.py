"""What hides between the tokens: comments that cut a predicate, that a database runs, that dialects read apart."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import Token, TokenType

from qwed.engines._sql.parse import Reading, read
from qwed.engines._sql.tokens import comments_in, spoken_gaps

COMMENT_CUT = "comment_cuts_predicate"
EXECUTABLE_COMMENT = "executable_comment"
NESTED_COMMENT = "nested_comment"

_OPENS_PREDICATE = frozenset({TokenType.WHERE, TokenType.HAVING, TokenType.ON, TokenType.QUALIFY})
_ENDS_PREDICATE = frozenset(
    {
        TokenType.EXCEPT,
        TokenType.FETCH,
        TokenType.GROUP_BY,
        TokenType.INTERSECT,
        TokenType.JOIN,
        TokenType.LIMIT,
        TokenType.OFFSET,
        TokenType.ORDER_BY,
        TokenType.RETURNING,
        TokenType.SELECT,
        TokenType.SEMICOLON,
        TokenType.SET,
        TokenType.UNION,
        TokenType.WINDOW,
    }
)
_QUOTES = "'\""
_CONTINUATIONS = frozenset({"AND", "OR", "LIMIT", "ORDER", "GROUP", "UNION", "HAVING", "AS", "IN", "LIKE", "IS"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Comment:
    """One comment and where it stands."""

    body: str
    line: bool
    touching: bool
    """Nothing between it and the token before it."""
    in_predicate: bool
    """A condition is open here, or this is the end of a UNION."""
    last: bool
    """No token but a semicolon follows."""
    filtered: bool
    """The query has a WHERE."""


def comment_violations(text: str, tokens: Sequence[Token]) -> Iterator[str]:
    """The kinds of comment in `text` that no honest query has."""
    for comment in _comments(text, tokens):
        # The dialect is what the caller says; only MySQL runs these, and only queries for MySQL have them.
        if not comment.line and comment.body.startswith(("!", "M!")):
            yield EXECUTABLE_COMMENT
        if not comment.line and "/*" in comment.body:
            yield NESTED_COMMENT
        if (comment.in_predicate and _cuts(comment)) or (comment.last and _cut_at_the_end(comment)):
            yield COMMENT_CUT


def reads_differently(reading: Reading) -> bool:
    """Whether another database reads another text: escaped names; without a dialect also `\\`, `#` and `--x`."""
    if _escaped_name(reading):
        return True
    if reading.dialect or not _doubtful(reading):
        return False
    other = read(reading.text, "mysql")
    return isinstance(other, Reading) and _spans(other.tokens) != _spans(reading.tokens)


def _escaped_name(reading: Reading) -> bool:
    """`U&"p\\0061ssword"`, which the standard reads as one name and the parser as an operation."""
    text = reading.text
    return any(
        token.token_type is TokenType.AMP
        and text[token.start - 1 : token.start].lower() == "u"
        and text[token.end + 1 : token.end + 2] in ('"', "'")
        for token in reading.tokens
    )


def _spans(tokens: Sequence[Token]) -> list[tuple[int, int]]:
    return [(token.start, token.end) for token in tokens]


def _doubtful(reading: Reading) -> bool:
    if any(token.token_type is TokenType.HASH for token in reading.tokens):
        return True
    if any("\\" in reading.text[token.start : token.end + 1] for token in reading.tokens):
        return True
    return any(comment.line and comment.body[:1].strip() for comment in _comments(reading.text, reading.tokens))


def _comments(text: str, tokens: Sequence[Token]) -> Iterator[Comment]:
    spoken = spoken_gaps(text, tokens)
    if not spoken:
        return
    predicates = _predicate_flags(tokens)
    final = _last_meaningful(tokens)
    kinds = {token.token_type for token in tokens}
    union = TokenType.UNION in kinds
    for index, _start, gap in spoken:
        for offset, line, body in comments_in(gap):
            yield Comment(
                body=body,
                line=line,
                touching=offset == 0 and index > 0,
                in_predicate=index > 0 and (predicates[index - 1] or (union and index > final)),
                last=index > final,
                filtered=TokenType.WHERE in kinds,
            )


def _last_meaningful(tokens: Sequence[Token]) -> int:
    kept = [index for index, token in enumerate(tokens) if token.token_type is not TokenType.SEMICOLON]
    return kept[-1] if kept else -1


def _predicate_flags(tokens: Sequence[Token]) -> list[bool]:
    """For each token, whether a WHERE, HAVING or ON is still open there."""
    flags: list[bool] = []
    outer: list[bool] = []
    inside = False
    for token in tokens:
        kind = token.token_type
        if kind is TokenType.L_PAREN:
            outer.append(inside)
        elif kind is TokenType.R_PAREN and outer:
            inside = outer.pop()
        elif kind in _OPENS_PREDICATE:
            inside = True
        elif kind in _ENDS_PREDICATE:
            inside = False
        flags.append(inside)
    return flags


def _cuts(comment: Comment) -> bool:
    if _loose_quote(comment.body) or (comment.last and _silenced_condition(comment.body)):
        return True
    return comment.line and (comment.touching or (comment.last and not comment.body.strip("-+ \t\r")))


def _cut_at_the_end(comment: Comment) -> bool:
    """The rest of a text that went on, wherever it was cut: a loose quote, or a bare `--` behind a filtered query."""
    if _loose_quote(comment.body):
        return True
    bare = comment.line and not comment.body.strip("-+ \t\r")
    return comment.filtered and (bare or _silenced_condition(comment.body))


def _silenced_condition(body: str) -> bool:
    """The rest of the predicate, kept from the database: `AND active = 1`."""
    words = body.split(None, 1)
    return len(words) == 2 and words[0].upper() in {"AND", "OR"} and any(sign in words[1] for sign in "=<>")


def _loose_quote(body: str) -> bool:
    """A quote that belongs to the text which the comment silenced, not to a word such as `don't`."""
    quotes = [index for index, character in enumerate(body) if character in _QUOTES and not _apostrophe(body, index)]
    if not quotes:
        return False
    if not body[: quotes[0]].strip("-+ \t") and _continues(body[quotes[0] + 1 :]):
        return True
    if len(quotes) % 2 == 0:
        return False
    return any(not body[index - 1 : index].isalnum() or _continues(body[index + 1 :]) for index in quotes)


def _apostrophe(body: str, index: int) -> bool:
    return body[index - 1 : index].isalpha() and body[index + 1 : index + 2].isalpha()


def _continues(rest: str) -> bool:
    words = rest.split(None, 1)
    return not words or words[0][0] in ");," or words[0].upper() in _CONTINUATIONS
