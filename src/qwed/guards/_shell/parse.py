"""Parsing of shell text to a syntax tree, and checks on the text before the tree is visited."""

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_LENGTH = 1 << 14
# The parser's error recovery takes time quadratic in the number of operators.
MAX_OPERATORS = 1_000
MAX_LINES = 1_000
MAX_WORDS = 4_096
_OPERATORS = re.compile(r"[|&;()<>{}\[\]`]|\bfunction\b")

# A shell joins words at a line continuation or an escaped blank; the grammar splits them.
_CUT_WORD = re.compile(r"[^\s\\]\\\n(?=\S)|(?:\A|[\s'\"|&;()<>`])\\[ \t]")


@cache
def _parser() -> "Parser":
    try:
        import tree_sitter
        import tree_sitter_bash
    except ImportError as missing:
        raise ImportError("reading shell commands needs tree-sitter: install `qwed[engines]`") from missing
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def parse(text: str) -> "Node | str":
    """Return the root of the syntax tree, or the reason why the text cannot be parsed reliably."""
    if text.count("\n") > MAX_LINES or len(text.split()) > MAX_WORDS:
        return f"the command has more than {MAX_LINES} lines or {MAX_WORDS} words"
    if _CUT_WORD.search(text):
        return "a line continuation or an escaped blank splits a word"
    if sum(1 for _ in _OPERATORS.finditer(text)) > MAX_OPERATORS:
        return f"the command has more than {MAX_OPERATORS} operators"
    root = _parser().parse(text.encode("utf-8", "replace")).root_node
    return "the command is not valid shell syntax" if root.has_error else root


_ASSIGNED = re.compile(r"(?<![\w$])([A-Za-z_]\w*)(?:\[[^\]\n]{0,64}\])?\+?=")
_LOOPED = re.compile(r"\b(?:for|select)\s+([A-Za-z_]\w*)")
_TAKEN = re.compile(
    r"\b(?:read|mapfile|readarray|getopts|let|unset|printf\s+-v|wait\s+-[np]+)\b([^\n;|&<>]{0,512})"
    r"|\$\{([A-Za-z_]\w*)(?::?=|@)"
)
_REFERENCES = re.compile(r"\b(?:declare|typeset|local)\s+-\w*n|\$\{!")
_NAME = re.compile(r"[A-Za-z_]\w*")


def single_assignments(text: str) -> frozenset[str]:
    """Return the variables that are assigned at one place only, so that the value is certain wherever they are read
    later."""
    if _REFERENCES.search(text):
        return frozenset()
    counts: dict[str, int] = {}
    names = [*_ASSIGNED.findall(text), *_LOOPED.findall(text)]
    for words, name in _TAKEN.findall(text):
        names += [name, name] if name else _NAME.findall(words)
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return frozenset(name for name, count in counts.items() if count == 1)
