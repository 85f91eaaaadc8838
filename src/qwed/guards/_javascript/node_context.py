"""Context of a node: read, called, assigned, or only tested."""

from qwed.guards._javascript.calls import callee_of
from qwed.guards._javascript.rules import words
from qwed.guards._javascript.syntax_tree import SyntaxNode

_WRAPPERS = words("""
parenthesized_expression as_expression satisfies_expression non_null_expression type_assertion await_expression
""")
_COMPARING = words("=== !== == != instanceof in < > <= >=")
_TESTS = words("if_statement while_statement do_statement")


def is_plain_call(call: SyntaxNode) -> bool:
    callee = callee_of(call)
    target = callee.get("object") if callee is not None else None
    return call.kind == "call_expression" and not (target is not None and target.kind == "super")


def outermost(node: SyntaxNode) -> SyntaxNode:
    """Return the node with the parentheses around it."""
    current = node
    while current.parent is not None and current.parent.kind in _WRAPPERS:
        current = current.parent
    # `(0, eval)("x")`: the value of a sequence is its last element.
    parent = current.parent
    if parent is not None and parent.kind == "sequence_expression" and parent.children[-1] is current:
        return outermost(parent)
    return current


def unwrap(node: SyntaxNode) -> SyntaxNode:
    while node.kind in _WRAPPERS and node.children:
        node = node.children[-1]
    return node


def is_tested(node: SyntaxNode) -> bool:
    """Return True if the value is only compared or tested."""
    outer = outermost(node)
    parent = outer.parent
    if parent is None:
        return False
    if parent.kind == "unary_expression":
        return "typeof" in parent.words or "!" in parent.words or "delete" in parent.words
    if parent.kind == "binary_expression":
        # A class may define `instanceof`, and gets the left operand.
        tested = outer.role == "right" or "instanceof" not in parent.words
        return tested and any(word in _COMPARING for word in parent.words)
    return parent.kind in _TESTS and outer.role == "condition"


def is_called(outer: SyntaxNode, parent: SyntaxNode) -> bool:
    """Return True if a value is called, or passed to a function that calls it."""
    is_callee = outer.role in ("function", "constructor") and parent.kind in ("call_expression", "new_expression")
    return is_callee or is_passed_to_call(outer, parent)


def is_passed_to_call(outer: SyntaxNode, parent: SyntaxNode) -> bool:
    """Return True if a value is passed to a function that calls it."""
    call = parent.parent
    if parent.kind != "arguments" or call is None:
        return False
    callee = callee_of(call)
    last = callee.get("property") if callee is not None else None
    return last is not None and last.text in _CALLING and outer in parent.children[:2]


_CALLING = words("""
map forEach filter some every find findIndex flatMap findLast sort reduce reduceRight then catch finally replace
replaceAll from construct apply call bind
""")
"""Methods that call their first or second argument."""


def is_assigned(node: SyntaxNode) -> bool:
    parent = node.parent
    return node.role == "left" and parent is not None and parent.kind == "assignment_expression"


def is_inherited(node: SyntaxNode) -> bool:
    """Return True for `child.__proto__ = parent`."""
    return is_assigned(node) and node.get("property") is not None


_BINDING = words("""
variable_declarator:name import_specifier:name import_specifier:alias function_declaration:name
function_expression:name generator_function:name generator_function_declaration:name class_declaration:name class:name
enum_declaration:name internal_module:name module:name catch_clause:parameter arrow_function:parameter
required_parameter:pattern optional_parameter:pattern assignment_pattern:left object_assignment_pattern:left
for_in_statement:left export_specifier:alias pair_pattern:value jsx_attribute:
""")
_DECLARING = words("""
formal_parameters rest_pattern array_pattern object_pattern import_clause namespace_import import_require_clause
namespace_export
""")
_TAGS = words("jsx_opening_element jsx_closing_element jsx_self_closing_element")


def is_read(node: SyntaxNode) -> bool:
    """Return True if an identifier is read, not declared or written."""
    parent = node.parent
    if parent is None or parent.kind in _DECLARING or f"{parent.kind}:{node.role}" in _BINDING:
        return False
    if parent.kind == "export_specifier":
        clause = parent.parent.parent if parent.parent is not None else None
        return clause is not None and clause.get("source") is None
    if parent.kind in _TAGS:
        return not node.text[:1].islower()
    return not (is_assigned(node) and node.variable is not None)


def descendants(node: SyntaxNode) -> list[SyntaxNode]:
    nodes = list(node.children)
    for child in nodes:
        nodes.extend(child.children)
    return nodes
