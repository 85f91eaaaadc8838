"""JavaScript and TypeScript as a small tree of our own: no types, no comments, every node after its children."""

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


class Unreadable(Exception):
    """Why the code cannot be read, and on which line that shows."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


@dataclass(eq=False, slots=True)
class Node:
    """One piece of syntax; `words` are its keywords and operators, `value` what it may be once that is known."""

    kind: str
    line: int
    role: str = ""
    """The field of the parent it fills."""
    text: str = ""
    """The source of a leaf, and of nothing else."""
    parent: "Node | None" = None
    children: list["Node"] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    value: Any = None
    variable: Any = None

    def get(self, role: str) -> "Node | None":
        """The child that fills `role`."""
        return next((child for child in self.children if child.role == role), None)


@dataclass(slots=True)
class Source:
    """The whole program: its top node, and every node after its children."""

    top: Node
    nodes: list[Node]


def parse(code: str, typescript: bool) -> Source:
    """The tree of `code`; Unreadable where it is no program, or too large a one."""
    raw = code.encode("utf-8", "surrogatepass")
    trees = [_tree(name, raw) for name in (("typescript", "tsx") if typescript else ("javascript",))]
    tree = next((each for each in trees if not each.root_node.has_error), None)
    if tree is None:
        line = raw.count(b"\n", 0, _first_error(trees[0])) + 1
        raise Unreadable(f"not {'TypeScript' if typescript else 'JavaScript'}", line)
    if tree.root_node.descendant_count > MAX_NODES:
        raise Unreadable(f"more than {MAX_NODES} syntax nodes, split it")
    return _converted(tree, raw)


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
    """The byte at which the code stops making sense."""
    cursor = tree.walk()
    while True:
        here = cursor.node
        if here is None:
            return 0
        if here.is_error or here.is_missing:
            return here.start_byte
        if not cursor.goto_first_child() if here.has_error else not cursor.goto_next_sibling():
            return here.start_byte


def _converted(tree: "Tree", raw: bytes) -> Source:
    cursor = tree.walk()
    # Counted by ourselves: the parser's own points are not counted rightly by its binding, and crash it.
    ends = [at for at, byte in enumerate(raw) if byte == _NEWLINE]
    top = Node("program", 1)
    nodes: list[Node] = []
    here = top
    if cursor.goto_first_child():
        while True:
            child = _taken(cursor, here, raw, ends)
            if child is not None and cursor.goto_first_child():
                here = child
                continue
            if child is not None:
                nodes.append(child)
            while not cursor.goto_next_sibling():
                if not cursor.goto_parent() or here.parent is None:
                    nodes.append(top)
                    return Source(top, nodes)
                nodes.append(here)
                here = here.parent
    nodes.append(top)
    return Source(top, nodes)


def _taken(cursor: "TreeCursor", parent: Node, raw: bytes, ends: list[int]) -> Node | None:
    """The node under the cursor as a child of `parent`, or None where only its words matter."""
    found = cursor.node
    if found is None or found.type in _TYPES or _is_type(cursor, parent):
        return None
    role = cursor.field_name or ""
    if not found.is_named:
        if found.type[0].isalpha() or role in ("operator", "kind"):
            parent.words.append(found.type)
        return None
    node = Node(found.type, bisect_left(ends, found.start_byte) + 1, role, parent=parent)
    if not found.child_count:
        node.text = raw[found.start_byte : found.end_byte].decode("utf-8", "replace")
    parent.children.append(node)
    return node


def _is_type(cursor: "TreeCursor", parent: Node) -> bool:
    """Whether this is the type in `value as Type` or `<Type>value`."""
    if parent.kind not in _TYPE_OPERATORS or cursor.node is None or not cursor.node.is_named:
        return False
    return bool(parent.children) if parent.kind != "type_assertion" else cursor.node.type == "type_arguments"
