"""Checks of comments: those that cut off a predicate, or that a database executes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import Token, TokenType

from qwed.engines._sql.tokens import comments_in, nonblank_gaps

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
    """One comment and its position."""

    body: str
    line: bool
    touching: bool
    """True if nothing is between it and the token before it."""
    in_predicate: bool
    """True if a condition is open here, or this is the end of a UNION."""
    last: bool
    """True if no token but a semicolon follows."""
    filtered: bool
    """True if the query has a WHERE."""


def comment_violations(text: str, tokens: Sequence[Token]) -> Iterator[str]:
    """Yield the kinds of comment in `text` that do not occur in honest queries."""
    for comment in _comments(text, tokens):
        # Checked for every dialect, because the caller states it; only queries for MySQL have such comments.
        if not comment.line and comment.body.startswith(("!", "M!")):
            yield EXECUTABLE_COMMENT
        if not comment.line and "/*" in comment.body:
            yield NESTED_COMMENT
        if (comment.in_predicate and _cuts(comment)) or (comment.last and _cuts_at_end(comment)):
            yield COMMENT_CUT


def _comments(text: str, tokens: Sequence[Token]) -> Iterator[Comment]:
    gaps_with_text = nonblank_gaps(text, tokens)
    if not gaps_with_text:
        return
    predicates = _predicate_flags(tokens)
    final = _last_meaningful(tokens)
    kinds = {token.token_type for token in tokens}
    union = TokenType.UNION in kinds
    for index, _start, gap in gaps_with_text:
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
    indices = [index for index, token in enumerate(tokens) if token.token_type is not TokenType.SEMICOLON]
    return indices[-1] if indices else -1


def _predicate_flags(tokens: Sequence[Token]) -> list[bool]:
    """Return for each token whether a WHERE, HAVING or ON is open there."""
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
    if _has_unmatched_quote(comment.body) or (comment.last and _hides_condition(comment.body)):
        return True
    return comment.line and (comment.touching or (comment.last and not comment.body.strip("-+ \t\r")))


def _cuts_at_end(comment: Comment) -> bool:
    """Return True if the comment cuts off the rest of a text: an unmatched quote, or a bare `--` after a filtered
    query."""
    if _has_unmatched_quote(comment.body):
        return True
    bare = comment.line and not comment.body.strip("-+ \t\r")
    return comment.filtered and (bare or _hides_condition(comment.body))


def _hides_condition(body: str) -> bool:
    """Return True if the comment hides the rest of the predicate, as `AND active = 1`."""
    words = body.split(None, 1)
    return len(words) == 2 and words[0].upper() in {"AND", "OR"} and any(sign in words[1] for sign in "=<>")


def _has_unmatched_quote(body: str) -> bool:
    """Return True for a quote that belongs to the commented-out text, not to a word such as `don't`."""
    quotes = [index for index, character in enumerate(body) if character in _QUOTES and not _is_apostrophe(body, index)]
    if not quotes:
        return False
    if not body[: quotes[0]].strip("-+ \t") and _continues(body[quotes[0] + 1 :]):
        return True
    if len(quotes) % 2 == 0:
        return False
    return any(not body[index - 1 : index].isalnum() or _continues(body[index + 1 :]) for index in quotes)


def _is_apostrophe(body: str, index: int) -> bool:
    return body[index - 1 : index].isalpha() and body[index + 1 : index + 2].isalpha()


def _continues(rest: str) -> bool:
    words = rest.split(None, 1)
    return not words or words[0][0] in ");," or words[0].upper() in _CONTINUATIONS
