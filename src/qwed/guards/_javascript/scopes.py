"""Which declaration each name of a JavaScript program belongs to."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from qwed.guards._javascript.rules import words
from qwed.guards._javascript.tables import GLOBAL_NAMES
from qwed.guards._javascript.tree import Node, Source, Unreadable

MAX_SCOPES_DEEP = 400

FUNCTIONS = words("""
function_declaration function_expression arrow_function method_definition generator_function
generator_function_declaration
""")
CLASSES = words("class_declaration class abstract_class_declaration")
_BLOCKS = words("""
statement_block for_statement for_in_statement switch_body catch_clause class_body class_static_block internal_module
module enum_body
""")
_NAMED = words("""
function_declaration generator_function_declaration class_declaration abstract_class_declaration enum_declaration
internal_module module
""")
_PATTERNS = words("""
object_pattern array_pattern assignment_pattern object_assignment_pattern rest_pattern pair_pattern required_parameter
optional_parameter
""")
_IDENTIFIERS = words("identifier shorthand_property_identifier_pattern shorthand_property_identifier type_identifier")
_IMPORTS = words("import_clause namespace_import import_specifier import_require_clause import_alias")
_REFERENCES = words("identifier shorthand_property_identifier shorthand_property_identifier_pattern undefined")
_ESCAPE = re.compile(r"\\u\{([0-9a-fA-F]{1,6})\}|\\u([0-9a-fA-F]{4})")


@dataclass(eq=False, slots=True)
class Variable:
    """One declared name and everything it may be."""

    name: str
    keyword: str
    values: frozenset[object] = frozenset()
    bare: bool = False
    """Whether a script declares it by `var` and no value: a global of that name stays what it is."""


@dataclass(eq=False, slots=True)
class _Scope:
    kind: str
    parent: "_Scope | None" = None
    depth: int = 0
    names: dict[str, Variable] = field(default_factory=dict)

    def inner(self, kind: str) -> "_Scope":
        if self.depth >= MAX_SCOPES_DEEP:
            raise Unreadable(f"blocks nested deeper than {MAX_SCOPES_DEEP}, write it plainly")
        return _Scope(kind, self, self.depth + 1)

    def function(self) -> "_Scope":
        here = self
        while here.kind == "block" and here.parent is not None:
            here = here.parent
        return here

    def declare(self, name: str, keyword: str) -> Variable:
        return self.names.setdefault(name, Variable(name, keyword))

    def find(self, name: str) -> Variable | None:
        here: _Scope | None = self
        while here is not None:
            if name in here.names:
                return here.names[name]
            here = here.parent
        return None


def plain(name: str) -> str:
    """An identifier without its escapes: `\\u0065val` is `eval`."""
    return _ESCAPE.sub(lambda found: _character(found[1] or found[2]), name) if "\\" in name else name


def _character(digits: str) -> str:
    code = int(digits, 16)
    return chr(code) if code < 0x110000 else ""


def settle(source: Source) -> None:
    """Give every identifier of `source` its variable; one without is a global."""
    top = _Scope("program")
    homes: list[tuple[Node, _Scope]] = []
    pending = [(source.top, top)]
    while pending:
        node, scope = pending.pop()
        if node.kind in _REFERENCES:
            node.text = plain(node.text)
            homes.append((node, scope))
        inner = _entered(node, scope)
        pending.extend((child, scope if child.role == "decorator" else inner) for child in node.children)
    for node, scope in homes:
        if _is_reference(node):
            node.variable = scope.find(node.text)
    _implicit(homes, top)


def _entered(node: Node, scope: _Scope) -> _Scope:
    """Declare what `node` declares; the scope its children live in."""
    _declare(node, scope)
    if node.kind in FUNCTIONS:
        inner = scope.inner("function")
        own = node.get("name")
        if node.kind.endswith("expression") and own is not None:
            inner.declare(plain(own.text), "function")
        for parameter in parameters(node):
            for name in names_in(parameter):
                inner.declare(plain(name.text), "parameter")
        return inner
    if node.kind in CLASSES:
        inner = scope.inner("block")
        own = node.get("name")
        if own is not None and node.kind == "class":
            inner.declare(plain(own.text), "class")
        return inner
    return _block(node, scope) if node.kind in _BLOCKS else scope


def _block(node: Node, scope: _Scope) -> _Scope:
    inner = scope.inner("block")
    parameter = node.get("parameter")
    for name in names_in(parameter) if parameter is not None and node.kind == "catch_clause" else ():
        inner.declare(plain(name.text), "parameter")
    if node.kind == "for_in_statement":
        _declare_loop(node, inner)
    return inner


def _declare(node: Node, scope: _Scope) -> None:
    if node.kind in _NAMED:
        _declare_named(node, scope)
    elif node.kind == "variable_declarator":
        _declare_variable(node, scope)
    elif node.kind in _IMPORTS:
        _declare_import(node, scope)


def _declare_import(node: Node, scope: _Scope) -> None:
    for child in node.children:
        if child.kind == "identifier" and (child.role == "alias" or node.get("alias") is None):
            scope.declare(plain(child.text), "import")


def _declare_named(node: Node, scope: _Scope) -> None:
    own = node.get("name")
    if own is None or _is_ambient(node, plain(own.text)):
        return
    variable = scope.declare(plain(own.text), "function")
    # A function in a block is also a name of the function around it, where the program is not strict; where it is
    # strict a global of that name stays what it is.
    if node.kind in FUNCTIONS and variable.name not in GLOBAL_NAMES:
        scope.function().names.setdefault(variable.name, variable)


def _declare_variable(node: Node, scope: _Scope) -> None:
    parent = node.parent
    keyword = parent.words[0] if parent is not None and parent.words else "var"
    home = scope.function() if parent is not None and parent.kind == "variable_declaration" else scope
    pattern = node.get("name")
    for name in names_in(pattern) if pattern is not None else ():
        if not _is_ambient(node, plain(name.text)):
            variable = home.declare(plain(name.text), keyword)
            variable.bare |= keyword == "var" and home.kind == "program" and node.get("value") is None


def _declare_loop(node: Node, scope: _Scope) -> None:
    keyword = next((word for word in node.words if word in ("const", "let", "var")), "")
    left = node.get("left")
    if keyword and left is not None:
        home = scope.function() if keyword == "var" else scope
        for name in names_in(left):
            home.declare(plain(name.text), keyword)


def _is_ambient(node: Node, name: str) -> bool:
    """`declare const process: any` makes no value: a global stays what it is."""
    here: Node | None = node
    while here is not None and here.kind != "ambient_declaration":
        here = here.parent if here.kind not in ("statement_block", "program") else None
    return here is not None and name in GLOBAL_NAMES


def _implicit(homes: list[tuple[Node, _Scope]], top: _Scope) -> None:
    """`x = 1` without a declaration makes a global of its own."""
    for node, _ in homes:
        assigned = node.role == "left" and node.parent is not None and node.parent.kind == "assignment_expression"
        looped = node.role == "left" and node.parent is not None and node.parent.kind == "for_in_statement"
        if node.variable is None and (assigned or looped) and node.text not in GLOBAL_NAMES:
            top.declare(node.text, "implicit")
    for node, _ in homes:
        if node.variable is None and node.text in top.names and _is_reference(node):
            node.variable = top.names[node.text]


def _is_reference(node: Node) -> bool:
    parent = node.parent
    if parent is None:
        return True
    if parent.kind in ("import_specifier", "namespace_export"):
        return node.role == "alias" or parent.get("alias") is None
    if parent.kind == "export_specifier":
        clause = parent.parent.parent if parent.parent is not None else None
        return node.role == "name" and clause is not None and clause.get("source") is None
    if parent.kind in ("jsx_opening_element", "jsx_closing_element", "jsx_self_closing_element"):
        return not node.text[:1].islower()
    return True


def parameters(function: Node) -> list[Node]:
    """The parameter patterns of a function."""
    single = function.get("parameter")
    if single is not None:
        return [single]
    listed = function.get("parameters")
    return [child for child in listed.children if child.kind != "decorator"] if listed is not None else []


def names_in(pattern: Node) -> Iterator[Node]:
    """The identifiers a pattern binds."""
    pending = [pattern]
    while pending:
        here = pending.pop()
        if here.kind in _IDENTIFIERS:
            yield here
        elif here.kind in _PATTERNS:
            pending.extend(child for child in here.children if child.role not in ("right", "key", "value", "decorator"))
            inner = here.get("value") if here.kind == "pair_pattern" else None
            if inner is not None:
                pending.append(inner)
