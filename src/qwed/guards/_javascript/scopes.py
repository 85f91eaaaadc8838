"""Resolution of the names of a JavaScript program to their declarations."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from qwed.guards._javascript.rules import words
from qwed.guards._javascript.syntax_tree import ParsedScript, SyntaxNode, UnparsableScriptError
from qwed.guards._javascript.tables import GLOBAL_NAMES

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
    """Declared name and its possible values."""

    name: str
    keyword: str
    values: frozenset[object] = frozenset()
    bare: bool = False
    """True if a script declares it by `var` without a value, which does not change a global of that name."""


@dataclass(eq=False, slots=True)
class _Scope:
    kind: str
    parent: "_Scope | None" = None
    depth: int = 0
    names: dict[str, Variable] = field(default_factory=dict)

    def inner(self, kind: str) -> "_Scope":
        if self.depth >= MAX_SCOPES_DEEP:
            raise UnparsableScriptError(f"blocks nested deeper than {MAX_SCOPES_DEEP}, simplify the code")
        return _Scope(kind, self, self.depth + 1)

    def function(self) -> "_Scope":
        scope = self
        while scope.kind == "block" and scope.parent is not None:
            scope = scope.parent
        return scope

    def declare(self, name: str, keyword: str) -> Variable:
        return self.names.setdefault(name, Variable(name, keyword))

    def find(self, name: str) -> Variable | None:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return None


def unescape_identifier(name: str) -> str:
    r"""Return an identifier without its escapes: `\\u0065val` is `eval`."""
    return _ESCAPE.sub(lambda match: _character(match[1] or match[2]), name) if "\\" in name else name


def _character(digits: str) -> str:
    code = int(digits, 16)
    return chr(code) if code < 0x110000 else ""


def resolve_variables(source: ParsedScript) -> None:
    """Assign every identifier of `source` its variable; globals have none."""
    top = _Scope("program")
    homes: list[tuple[SyntaxNode, _Scope]] = []
    pending = [(source.top, top)]
    while pending:
        node, scope = pending.pop()
        if node.kind in _REFERENCES:
            node.text = unescape_identifier(node.text)
            homes.append((node, scope))
        inner = _enter(node, scope)
        pending.extend((child, scope if child.role == "decorator" else inner) for child in node.children)
    for node, scope in homes:
        if _is_reference(node):
            node.variable = scope.find(node.text)
    _implicit(homes, top)


def _enter(node: SyntaxNode, scope: _Scope) -> _Scope:
    """Declare the names of `node` and return the scope of its children."""
    _declare(node, scope)
    if node.kind in FUNCTIONS:
        inner = scope.inner("function")
        own = node.get("name")
        if node.kind.endswith("expression") and own is not None:
            inner.declare(unescape_identifier(own.text), "function")
        for parameter in parameters(node):
            for name in bound_names(parameter):
                inner.declare(unescape_identifier(name.text), "parameter")
        return inner
    if node.kind in CLASSES:
        inner = scope.inner("block")
        own = node.get("name")
        if own is not None and node.kind == "class":
            inner.declare(unescape_identifier(own.text), "class")
        return inner
    return _block(node, scope) if node.kind in _BLOCKS else scope


def _block(node: SyntaxNode, scope: _Scope) -> _Scope:
    inner = scope.inner("block")
    parameter = node.get("parameter")
    for name in bound_names(parameter) if parameter is not None and node.kind == "catch_clause" else ():
        inner.declare(unescape_identifier(name.text), "parameter")
    if node.kind == "for_in_statement":
        _declare_loop(node, inner)
    return inner


def _declare(node: SyntaxNode, scope: _Scope) -> None:
    if node.kind in _NAMED:
        _declare_named(node, scope)
    elif node.kind == "variable_declarator":
        _declare_variable(node, scope)
    elif node.kind in _IMPORTS:
        _declare_import(node, scope)


def _declare_import(node: SyntaxNode, scope: _Scope) -> None:
    for child in node.children:
        if child.kind == "identifier" and (child.role == "alias" or node.get("alias") is None):
            scope.declare(unescape_identifier(child.text), "import")


def _declare_named(node: SyntaxNode, scope: _Scope) -> None:
    own = node.get("name")
    if own is None or _is_ambient(node, unescape_identifier(own.text)):
        return
    variable = scope.declare(unescape_identifier(own.text), "function")
    # In sloppy mode a function in a block is also visible in the enclosing function; in strict mode it does not hide a
    # global of that name.
    if node.kind in FUNCTIONS and variable.name not in GLOBAL_NAMES:
        scope.function().names.setdefault(variable.name, variable)


def _declare_variable(node: SyntaxNode, scope: _Scope) -> None:
    parent = node.parent
    keyword = parent.words[0] if parent is not None and parent.words else "var"
    home = scope.function() if parent is not None and parent.kind == "variable_declaration" else scope
    pattern = node.get("name")
    for name in bound_names(pattern) if pattern is not None else ():
        if not _is_ambient(node, unescape_identifier(name.text)):
            variable = home.declare(unescape_identifier(name.text), keyword)
            variable.bare |= keyword == "var" and home.kind == "program" and node.get("value") is None


def _declare_loop(node: SyntaxNode, scope: _Scope) -> None:
    keyword = next((word for word in node.words if word in ("const", "let", "var")), "")
    left = node.get("left")
    if keyword and left is not None:
        home = scope.function() if keyword == "var" else scope
        for name in bound_names(left):
            home.declare(unescape_identifier(name.text), keyword)


def _is_ambient(node: SyntaxNode, name: str) -> bool:
    """Return True for `declare const process: any`, which does not change the global."""
    current: SyntaxNode | None = node
    while current is not None and current.kind != "ambient_declaration":
        current = current.parent if current.kind not in ("statement_block", "program") else None
    return current is not None and name in GLOBAL_NAMES


def _implicit(homes: list[tuple[SyntaxNode, _Scope]], top: _Scope) -> None:
    """Declare a global for `x = 1` without a declaration."""
    for node, _ in homes:
        assigned = node.role == "left" and node.parent is not None and node.parent.kind == "assignment_expression"
        looped = node.role == "left" and node.parent is not None and node.parent.kind == "for_in_statement"
        if node.variable is None and (assigned or looped) and node.text not in GLOBAL_NAMES:
            top.declare(node.text, "implicit")
    for node, _ in homes:
        if node.variable is None and node.text in top.names and _is_reference(node):
            node.variable = top.names[node.text]


def _is_reference(node: SyntaxNode) -> bool:
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


def parameters(function: SyntaxNode) -> list[SyntaxNode]:
    """Return the parameter patterns of a function."""
    single = function.get("parameter")
    if single is not None:
        return [single]
    parameter_list = function.get("parameters")
    return (
        [child for child in parameter_list.children if child.kind != "decorator"] if parameter_list is not None else []
    )


def bound_names(pattern: SyntaxNode) -> Iterator[SyntaxNode]:
    """Yield the identifiers a pattern binds."""
    pending = [pattern]
    while pending:
        current = pending.pop()
        if current.kind in _IDENTIFIERS:
            yield current
        elif current.kind in _PATTERNS:
            pending.extend(
                child for child in current.children if child.role not in ("right", "key", "value", "decorator")
            )
            inner = current.get("value") if current.kind == "pair_pattern" else None
            if inner is not None:
                pending.append(inner)
