"""Simplified syntax tree of JavaScript and TypeScript: no types, no comments, children before parents."""

import re
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from qwed.guards._javascript.rules import words

if TYPE_CHECKING:
    from tree_sitter import Language, Tree, TreeCursor

MAX_NODES = 150_000
_NEWLINE = 10

_TYPES = words("""
comment html_comment hash_bang_line type_annotation type_arguments type_parameters interface_declaration
type_alias_declaration implements_clause asserts_annotation type_predicate_annotation accessibility_modifier
override_modifier function_signature method_signature abstract_method_signature index_signature opting_type_annotation
adding_type_annotation omitting_type_annotation construct_signature call_signature property_signature optional_chain
""")
_TYPE_OPERATORS = frozenset({"as_expression", "satisfies_expression", "type_assertion"})


class UnparsableScriptError(Exception):
    """The code cannot be analysed; `reason` and `line` say why."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


@dataclass(eq=False, slots=True)
class SyntaxNode:
    """Syntax node; `words` are its keywords and operators, `value` its possible values once resolved."""

    kind: str
    line: int
    role: str = ""
    """Field of the parent that it fills."""
    text: str = ""
    """Source of a leaf; "" for other nodes."""
    parent: "SyntaxNode | None" = None
    children: list["SyntaxNode"] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    value: Any = None
    variable: Any = None

    def get(self, role: str) -> "SyntaxNode | None":
        """Return the child with this role, or None."""
        return next((child for child in self.children if child.role == role), None)


@dataclass(slots=True)
class ParsedScript:
    """Whole program: its top node, and all nodes, children first."""

    top: SyntaxNode
    nodes: list[SyntaxNode]


def parse(code: str, typescript: bool) -> ParsedScript:
    """Parse `code`; raise UnparsableScriptError if it is not valid or too large."""
    # A carriage return ends a line too, and in a template it is a line feed.
    raw = code.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8", "surrogatepass")
    trees = [_tree(name, raw) for name in (("typescript", "tsx") if typescript else ("javascript",))]
    tree = next((candidate for candidate in trees if not candidate.root_node.has_error), None)
    if tree is None:
        line = raw.count(b"\n", 0, _first_error(trees[0])) + 1
        raise UnparsableScriptError(f"not {'TypeScript' if typescript else 'JavaScript'}", line)
    if tree.root_node.descendant_count > MAX_NODES:
        raise UnparsableScriptError(f"more than {MAX_NODES} syntax nodes, split it")
    _refuse_other_comments(tree, raw)
    return _convert(tree, raw)


_OTHER_COMMENT = re.compile(rb"<!--|(?:^|\n)[^\S\n]*(?:/\*.*?\*/[^\S\n]*)*-->")
_OTHER_LINE_ENDS = (b"\xe2\x80\xa8", b"\xe2\x80\xa9")
_TEXT_KINDS = words("string_fragment string template_string comment regex_pattern jsx_text html_character_reference")
_COMMENTS = words("comment html_comment hash_bang_line")


def _refuse_other_comments(tree: "Tree", raw: bytes) -> None:
    """Raise UnparsableScriptError where this parser and Node disagree on what is a comment: `<!--` and `-->` begin one
    that ends with the line, and U+2028 ends one."""
    for match in _OTHER_COMMENT.finditer(raw):
        node = tree.root_node.descendant_for_byte_range(match.end() - 1, match.end())
        if node is None or node.type not in _TEXT_KINDS:
            raise UnparsableScriptError("contains an HTML comment", raw.count(b"\n", 0, match.start()) + 1)
    for end in _OTHER_LINE_ENDS:
        place = raw.find(end)
        while place >= 0:
            node = tree.root_node.descendant_for_byte_range(place, place + 1)
            if node is None or node.type in _COMMENTS:
                raise UnparsableScriptError("contains an unusual line separator", raw.count(b"\n", 0, place) + 1)
            place = raw.find(end, place + 1)


@lru_cache(maxsize=8)
def _language(name: str) -> "Language":
    try:
        import tree_sitter
        import tree_sitter_javascript
        import tree_sitter_typescript
    except ImportError as missing:
        raise ImportError("reading JavaScript needs more packages, install `qwed[engines]`") from missing
    grammars = {
        "javascript": tree_sitter_javascript.language,
        "typescript": tree_sitter_typescript.language_typescript,
        "tsx": tree_sitter_typescript.language_tsx,
    }
    return tree_sitter.Language(grammars[name]())


def _tree(name: str, raw: bytes) -> "Tree":
    language = _language(name)
    from tree_sitter import Parser

    return Parser(language).parse(raw)


def _first_error(tree: "Tree") -> int:
    """Return the byte offset of the first syntax error."""
    cursor = tree.walk()
    while True:
        node = cursor.node
        if node is None:
            return 0
        if node.is_error or node.is_missing:
            return node.start_byte
        if not cursor.goto_first_child() if node.has_error else not cursor.goto_next_sibling():
            return node.start_byte


def _convert(tree: "Tree", raw: bytes) -> ParsedScript:
    cursor = tree.walk()
    # Lines are counted here because the Python binding miscounts the parser's points and can crash.
    ends = [offset for offset, byte in enumerate(raw) if byte == _NEWLINE]
    top = SyntaxNode("program", 1)
    nodes: list[SyntaxNode] = []
    parent = top
    if cursor.goto_first_child():
        while True:
            child = _convert_node(cursor, parent, raw, ends)
            if child is not None and cursor.goto_first_child():
                parent = child
                continue
            if child is not None:
                nodes.append(child)
            while not cursor.goto_next_sibling():
                if not cursor.goto_parent() or parent.parent is None:
                    nodes.append(top)
                    return ParsedScript(top, nodes)
                nodes.append(parent)
                parent = parent.parent
    nodes.append(top)
    return ParsedScript(top, nodes)


def _convert_node(cursor: "TreeCursor", parent: SyntaxNode, raw: bytes, ends: list[int]) -> SyntaxNode | None:
    """Add the node under the cursor to `parent` and return it, or None if only its keyword matters."""
    current = cursor.node
    if current is None or current.type in _TYPES or _is_type(cursor, parent):
        return None
    role = cursor.field_name or ""
    if not current.is_named:
        if current.type[0].isalpha() or role in ("operator", "kind"):
            parent.words.append(current.type)
        return None
    node = SyntaxNode(current.type, bisect_left(ends, current.start_byte) + 1, role, parent=parent)
    if not current.child_count:
        node.text = raw[current.start_byte : current.end_byte].decode("utf-8", "replace")
    parent.children.append(node)
    return node


def _is_type(cursor: "TreeCursor", parent: SyntaxNode) -> bool:
    """Return True if this is the type in `value as Type` or `<Type>value`."""
    if parent.kind not in _TYPE_OPERATORS or cursor.node is None or not cursor.node.is_named:
        return False
    return bool(parent.children) if parent.kind != "type_assertion" else cursor.node.type == "type_arguments"
