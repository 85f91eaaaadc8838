"""Allow-list of the syntax tree: kinds of nodes that are understood, and the text that each kind of leaf may have.

The grammar of tree-sitter and a real shell differ in places. A tree is accepted only if its leaves are what their kind
promises and cover the text: what a shell would see between two nodes is blank.
"""

import re
from typing import TYPE_CHECKING

from qwed.guards._shell.command_model import names_in

if TYPE_CHECKING:
    from tree_sitter import Node

HEREDOC_MARK = "\uf8f0"
"""First character of the word that stands for a here-document; a command cannot contain it."""
INNER_QUOTE = "\uf8f1"
"""Stands for a double quote in the text of a here-document."""

_BARE = r"(?:[^\s'\"`$|&;()<>\\]|\\[^\n])"
_LEAVES: dict[str, re.Pattern[str]] = {
    "word": re.compile(rf"{_BARE}*+"),
    "number": re.compile(r"-?[0-9][\w#@]*+"),
    "string_content": re.compile(r"(?:[^\"\\$`]|\\.|\$(?![\w({\[@*#?$!'\"-]))*+", re.DOTALL),
    "raw_string": re.compile(r"'[^']*+'"),
    "ansi_c_string": re.compile(r"\$'(?:[^'\\]|\\.)*+'", re.DOTALL),
    "regex": re.compile(r"(?:[^\s'\"`$&;<>\\]|\\[^\n]|\$(?![\w({\[@*#?$!'\"-]))*+"),
    "extglob_pattern": re.compile(r"(?:[^\s'\"`$&;<>\\]|\\[^\n])++"),
    "comment": re.compile(r"#[^\n]*+"),
    "variable_name": re.compile(r"[A-Za-z_]\w*+|[0-9]{1,3}"),
    "special_variable_name": re.compile(r"[*@?!#$0_-]|[0-9]"),
    "file_descriptor": re.compile(r"[0-9]{1,3}"),
    "test_operator": re.compile(r"-[A-Za-z]{1,2}"),
}
"""Text of the kinds of leaves that are understood."""

_KINDS = names_in(
    """
    program redirected_statement for_statement c_style_for_statement variable_assignment variable_assignments
    unary_expression binary_expression postfix_expression ternary_expression parenthesized_expression
    while_statement do_group if_statement elif_clause else_clause case_statement case_item function_definition
    compound_statement subshell pipeline list negated_command test_command declaration_command unset_command
    command command_name subscript file_redirect herestring_redirect arithmetic_expansion brace_expression
    concatenation string translated_string array simple_expansion expansion command_substitution
    process_substitution
    """
)
"""Kinds of inner nodes that are understood."""

_ONLY_WORDS = re.compile(rb"[\w ./=:,@+%|;-]*+")
"""Text without quotes, expansions and lines, which has only one reading."""
_GAP = re.compile(r"(?:[ \t\n]|\\\n)*+")
_STRING_GAP = re.compile(r"(?:[^$`\"\\]|\\.)*+", re.DOTALL)
# Between backquotes a shell removes these backslashes before it reads the command.
_UNESCAPED = re.compile(rb"\\[`$\\\"]")
_BEFORE_COMMENT = frozenset(" \t\n;&|()")
# Text in these is checked as a whole where it is expanded.
_PLAIN_EXPANSION = re.compile(r"\$\{[#!]?(?:[A-Za-z_]\w*+|[0-9@*#?$!-])(?:[^$`'\"{}\\\n]|\\[^}\n])*+\}")
"""An expansion that contains no other one; it is checked as a whole where it is expanded."""


def syntax_problem(root: "Node", source: bytes) -> str:
    """Return why the tree is not understood, or an empty text."""
    if _ONLY_WORDS.fullmatch(source):
        return ""
    pending = [root]
    while pending:
        node = pending.pop()
        kind = node.type
        leaf = _LEAVES.get(kind)
        children = node.children if leaf is None or node.child_count else []
        if leaf is not None and not children:
            problem = _leaf_problem(node, leaf, source)
        elif kind not in _KINDS:
            problem = f"`{kind}` is not part of the shell language that is understood"
        elif kind == "command_substitution" and _has_escapes(source[node.start_byte : node.end_byte]):
            problem = "escapes between backquotes are not understood"
        elif kind == "expansion":
            children = _parts_of_expansion(node, source)
            problem = ""
        else:
            problem = _gap_problem(node, children, source)
        if problem:
            return problem
        pending += [child for child in children if child.is_named]
    return ""


def _has_escapes(source: bytes) -> bool:
    return source.lstrip().startswith(b"`") and _UNESCAPED.search(source) is not None


def _parts_of_expansion(node: "Node", source: bytes) -> list["Node"]:
    text = source[node.start_byte : node.end_byte].decode("utf-8", "replace")
    return [] if _PLAIN_EXPANSION.fullmatch(text.lstrip(" \t\n")) else node.children


def _leaf_problem(node: "Node", leaf: re.Pattern[str], source: bytes) -> str:
    text = source[node.start_byte : node.end_byte].decode("utf-8", "replace")
    if not leaf.fullmatch(text):
        return f"`{text[:64]}` is not read as a shell reads it"
    if node.type == "comment" and node.start_byte and chr(source[node.start_byte - 1]) not in _BEFORE_COMMENT:
        return "a number sign inside a word is not a comment"
    return ""


def _gap_problem(node: "Node", children: list["Node"], source: bytes) -> str:
    """Return a problem if there is text of the node that none of its children covers."""
    allowed = _STRING_GAP if node.type == "string" else _GAP
    position = node.start_byte
    for child in children:
        start = child.start_byte
        if start != position and not _is_blank(allowed, source[position:start]):
            return "part of the command is not in its syntax tree"
        position = child.end_byte
    if position != node.end_byte and not _is_blank(allowed, source[position : node.end_byte]):
        return "part of the command is not in its syntax tree"
    return ""


def _is_blank(allowed: re.Pattern[str], gap: bytes) -> bool:
    return gap == b" " or allowed.fullmatch(gap.decode("utf-8", "replace")) is not None


WORD_NODES = names_in(
    """
    word number string raw_string ansi_c_string translated_string concatenation simple_expansion expansion
    command_substitution process_substitution arithmetic_expansion brace_expression command_name regex
    """
)
"""Kinds of nodes that are words of a command."""
