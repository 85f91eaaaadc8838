"""Parsing of shell text to a syntax tree that is read as a shell reads the text."""

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from qwed.guards._shell.heredoc import UNREADABLE, Heredoc, HeredocError, extract_heredocs
from qwed.guards._shell.syntax import HEREDOC_MARK, syntax_problem

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_LENGTH = 1 << 14
# The parser's error recovery takes time quadratic in the number of operators.
MAX_OPERATORS = 1_000
MAX_LINES = 1_000
MAX_WORDS = 4_096
INVALID = "the command is not valid shell syntax"
_OPERATORS = re.compile(r"[|&;()<>{}\[\]`]|\bfunction\b")

# A shell joins words at a line continuation or an escaped blank; the grammar splits them.
_CUT_WORD = re.compile(r"[^\s\\]\\\n(?=\S)|(?:\A|[\s'\"|&;()<>`])\\[ \t]")


class ParsedScript(NamedTuple):
    """Syntax tree of a script, its here-documents by number, and why the tree is not to be relied on."""

    root: "Node"
    heredocs: dict[int, Heredoc]
    problem: str = ""


@cache
def _parser() -> "Parser":
    try:
        import tree_sitter
        import tree_sitter_bash
    except ImportError as missing:
        raise ImportError("reading shell commands needs tree-sitter: install `qwed[engines]`") from missing
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def parse(text: str) -> ParsedScript | str:
    """Return the syntax tree, or the reason why there is none."""
    if text.count("\n") > MAX_LINES or len(text.split()) > MAX_WORDS:
        return f"the command has more than {MAX_LINES} lines or {MAX_WORDS} words"
    try:
        text, heredocs = extract_heredocs(text)
    except HeredocError as error:
        return str(error)
    if _CUT_WORD.search(text):
        return "a line continuation or an escaped blank splits a word"
    if sum(1 for _ in _OPERATORS.finditer(text)) > MAX_OPERATORS:
        return f"the command has more than {MAX_OPERATORS} operators"
    source = text.encode("utf-8", "replace")
    root = _parser().parse(source).root_node
    if root.has_error:
        return INVALID
    problem = syntax_problem(root, source)
    if not problem and heredocs and _count_marks(root) != len(heredocs):
        problem = UNREADABLE
    return ParsedScript(root, heredocs, problem)


def heredoc_number(node: "Node") -> int | None:
    """Return the number of the here-document that a redirection reads, or None if it reads a file."""
    destination = node.child_by_field_name("destination")
    text = (destination.text or b"").decode("utf-8", "replace") if destination is not None else ""
    return (
        int(text[1:]) if text.startswith(HEREDOC_MARK) and any(child.type == "<" for child in node.children) else None
    )


def _count_marks(root: "Node") -> int:
    count, pending = 0, [root]
    while pending:
        node = pending.pop()
        count += node.type == "file_redirect" and heredoc_number(node) is not None
        pending += node.named_children
    return count
