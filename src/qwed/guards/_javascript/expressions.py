"""Values of each kind of expression and statement, computed from the values of its parts."""

from collections.abc import Callable

from qwed.guards._javascript import constant_folding
from qwed.guards._javascript.abstract_ops import combine, concatenate
from qwed.guards._javascript.abstract_values import (
    ANY,
    NO_VALUE,
    UNKNOWN_VALUE,
    Const,
    Func,
    Literal,
    Path,
    Value,
    const,
    join,
)
from qwed.guards._javascript.calls import bind_arguments, call_result
from qwed.guards._javascript.fixpoint import ValueResolver, without_local_paths
from qwed.guards._javascript.module_paths import UNKNOWN_FUNCTION, global_path, is_asset, module_path
from qwed.guards._javascript.rules import words
from qwed.guards._javascript.scopes import FUNCTIONS, parameters
from qwed.guards._javascript.syntax_tree import ParsedScript, SyntaxNode


def resolve_values(source: ParsedScript) -> ValueResolver:
    """Resolve the values of every node of `source`; raise UnparsableScriptError if they cannot be followed."""
    values = ValueResolver(RULES)
    values.solve(source)
    return values


def _reference(_values: ValueResolver, node: SyntaxNode) -> Value:
    if node.variable is not None:
        variable_values: Value = node.variable.values
        # `var eval` at the top of a script does not change the global.
        if node.variable.bare or (node.text in ("eval", "Function") and node.variable.keyword == "var"):
            path = global_path(node.text)
            return variable_values | {Path(path)} if path else variable_values
        if node.text == "require" and node.variable.keyword == "parameter":
            return variable_values | {Path("require")}
        return variable_values
    if node.text in ("__dirname", "undefined"):
        return const("." if node.text == "__dirname" else None)
    path = global_path(node.text)
    return frozenset({Path(path)}) if path else UNKNOWN_VALUE


def _string(_values: ValueResolver, node: SyntaxNode) -> Value:
    if node.value is None:
        texts = [
            child.text if child.kind != "escape_sequence" else constant_folding.escape(child.text)
            for child in node.children
        ]
        return const("".join(texts))
    value: Value = node.value
    return value


def _template(_values: ValueResolver, node: SyntaxNode) -> Value:
    parts: list[Value] = []
    for child in node.children:
        if child.kind == "template_substitution":
            parts.append(child.value or NO_VALUE)
        else:
            parts.append(const(constant_folding.escape(child.text) if child.kind == "escape_sequence" else child.text))
    whole = const("")
    for part in parts:
        whole = concatenate(whole, part)
    return whole


def _number(_values: ValueResolver, node: SyntaxNode) -> Value:
    try:
        return const(constant_folding.number(node.text))
    except constant_folding.UnfoldableError:
        return UNKNOWN_VALUE


def _regex(_values: ValueResolver, node: SyntaxNode) -> Value:
    pattern, flags = node.get("pattern"), node.get("flags")
    return const((constant_folding.REGEX, pattern.text if pattern else "", flags.text if flags else ""))


def _array(_values: ValueResolver, node: SyntaxNode) -> Value:
    literal: Value = frozenset({Literal(node)})
    items: list[object] = []
    for child in node.children:
        constant_values = [atom.value for atom in child.value or () if isinstance(atom, Const)]
        if len(constant_values) != 1 or len(child.value) != 1 or len(items) > 512:
            return literal
        spread = child.kind == "spread_element" and isinstance(constant_values[0], str | tuple)
        items.extend(constant_values[0] if spread else constant_values)  # type: ignore[arg-type]  # a string or a tuple
    return literal | const(tuple(items))  # type: ignore[arg-type]  # constants all of them


def _object(_values: ValueResolver, node: SyntaxNode) -> Value:
    return frozenset({Literal(node)})


def _pair(values: ValueResolver, node: SyntaxNode) -> Value:
    value = node.get("value")
    for name in values.key_names(node.get("key") or node.get("name") or node.get("property")):
        values.grow_field(name, value.value if value is not None and value.value else UNKNOWN_VALUE)
    return NO_VALUE


def _shorthand(values: ValueResolver, node: SyntaxNode) -> Value:
    value = _reference(values, node)
    values.grow_field(node.text, value)
    return value


def _function(values: ValueResolver, node: SyntaxNode) -> Value:
    value: Value = frozenset({Func(node)})
    if not values.round:
        for parameter in parameters(node):
            values.bind(parameter, UNKNOWN_VALUE)
    body, name = node.get("body"), node.get("name")
    if body is not None and body.kind != "statement_block":
        values.returns[node] = values.merge(
            values.returns.get(node, NO_VALUE), without_local_paths(body.value or NO_VALUE)
        )
    if node.kind == "method_definition":
        _method(values, node, value)
    elif name is not None:
        values.grow_variable(name.variable, value)
    return value


def _method(values: ValueResolver, node: SyntaxNode, value: Value) -> None:
    """Store a method, or the result of a getter; a setter gets what is stored under its name."""
    getter_value = values.returns.get(node, NO_VALUE) if "get" in node.words else NO_VALUE
    for property_name in values.key_names(node.get("name")):
        if "set" in node.words:
            bind_arguments(values, node, [values.fields.get(property_name, NO_VALUE)])
        values.grow_field(property_name, join(value, getter_value))


def _class(values: ValueResolver, node: SyntaxNode) -> Value:
    value: Value = frozenset({Func(node)})
    name = node.get("name")
    if name is not None:
        values.grow_variable(name.variable, value)
    return value


def _return(values: ValueResolver, node: SyntaxNode) -> Value:
    function = enclosing_function(node)
    if function is not None and node.children:
        more = without_local_paths(node.children[0].value or NO_VALUE)
        values.returns[function] = values.merge(values.returns.get(function, NO_VALUE), more)
    return NO_VALUE


def enclosing_function(node: SyntaxNode) -> SyntaxNode | None:
    """Return the function that contains the node, or None."""
    current = node.parent
    while current is not None and current.kind not in FUNCTIONS:
        current = current.parent
    return current


def _declarator(values: ValueResolver, node: SyntaxNode) -> Value:
    name, value = node.get("name"), node.get("value")
    initial: Value = value.value if value is not None and value.value else NO_VALUE
    if name is not None:
        values.bind(name, initial)
    home = node.parent.parent if node.parent is not None else None
    if home is not None and home.kind == "export_statement" and name is not None and name.text:
        # An export of a namespace is read as its property.
        values.grow_field(name.text, initial)
    return NO_VALUE


def _assignment(values: ValueResolver, node: SyntaxNode) -> Value:
    left, right = node.get("left"), node.get("right")
    value: Value = right.value if right is not None and right.value else UNKNOWN_VALUE
    if left is not None:
        values.bind(left, value)
    return value


def _augmented(values: ValueResolver, node: SyntaxNode) -> Value:
    left, right = node.get("left"), node.get("right")
    if left is None or right is None:
        return UNKNOWN_VALUE
    operator = node.words[0].removesuffix("=") if node.words else ""
    value = apply_operator(operator, left.value or NO_VALUE, right.value or NO_VALUE)
    values.bind(left, value)
    return value


def apply_operator(operator: str, one: Value, other: Value) -> Value:
    """Return the result of a binary operator."""
    if operator in ("||", "&&", "??"):
        return join(one, other)
    if operator == "+":
        return concatenate(one, other)
    return combine(constant_folding.BINARY.get(operator), [one, other])


def _binary(_values: ValueResolver, node: SyntaxNode) -> Value:
    left, right = node.get("left"), node.get("right")
    if left is None or right is None:
        return UNKNOWN_VALUE
    return apply_operator(node.words[0] if node.words else "", left.value or NO_VALUE, right.value or NO_VALUE)


def _unary(_values: ValueResolver, node: SyntaxNode) -> Value:
    argument = node.get("argument")
    operator = node.words[0] if node.words else ""
    return (
        combine(constant_folding.UNARY.get(operator), [argument.value or NO_VALUE])
        if argument is not None
        else UNKNOWN_VALUE
    )


def _update(values: ValueResolver, node: SyntaxNode) -> Value:
    argument = node.get("argument")
    if argument is not None:
        values.bind(argument, UNKNOWN_VALUE)
    return UNKNOWN_VALUE


def _loop(values: ValueResolver, node: SyntaxNode) -> Value:
    left, right = node.get("left"), node.get("right")
    if left is not None and right is not None:
        over = "of" in node.words or "of" in [word for child in node.children for word in child.words]
        values.bind(left, values.element(right.value or NO_VALUE) if over else UNKNOWN_VALUE)
    return NO_VALUE


def _catch(values: ValueResolver, node: SyntaxNode) -> Value:
    parameter = node.get("parameter")
    if parameter is not None:
        values.bind(parameter, join(UNKNOWN_VALUE, values.fields.get(_THROWN, NO_VALUE)))
    return NO_VALUE


def _throw(values: ValueResolver, node: SyntaxNode) -> Value:
    if node.children:
        values.grow_field(_THROWN, node.children[0].value or NO_VALUE)
    return NO_VALUE


_THROWN = "\0thrown"
"""Field for thrown values; no property has this name."""


def _inner(_values: ValueResolver, node: SyntaxNode) -> Value:
    value: Value = node.children[-1].value if node.children and node.children[-1].value else UNKNOWN_VALUE
    return value


def _ternary(_values: ValueResolver, node: SyntaxNode) -> Value:
    one, other = node.get("consequence"), node.get("alternative")
    return join(one.value if one is not None else NO_VALUE, other.value if other is not None else NO_VALUE)


def _member(values: ValueResolver, node: SyntaxNode) -> Value:
    target, index = node.get("object"), node.get("index")
    value: Value = target.value if target is not None and target.value else UNKNOWN_VALUE
    result = NO_VALUE
    for name in values.property_names(node):
        result = join(result, values.member(value, name))
    index_value: Value = index.value if index is not None and index.value else NO_VALUE
    open_ended = index is not None and any(not isinstance(atom, Const) for atom in index_value or UNKNOWN_VALUE)
    if target is not None and target.kind == "super":
        result = join(result, _inherited_member(values, node, open_ended))
    return join(result, values.lookup(value)) if open_ended else result or UNKNOWN_VALUE


def _inherited_member(values: ValueResolver, node: SyntaxNode, open_ended: bool) -> Value:
    """Return `super.constructor`: in a static method `super` is the prototype of functions."""
    named = "constructor" in values.property_names(node)
    return frozenset({Path("Function" if named else UNKNOWN_FUNCTION)}) if named or open_ended else NO_VALUE


def _import(values: ValueResolver, node: SyntaxNode) -> Value:
    source = node.get("source") or next(
        (inner for child in node.children if (inner := child.get("source")) is not None), None
    )
    if source is None or "type" in node.words or not source.children:
        return NO_VALUE
    module = "".join(child.text for child in source.children)
    base: Value = UNKNOWN_VALUE if is_asset(module) else frozenset({Path(module_path(module))})
    pending = list(node.children)
    while pending:
        child = pending.pop()
        if child.kind == "import_specifier":
            name, alias = child.get("name"), child.get("alias")
            bound = alias or name
            value = values.member(base, name.text if name is not None else "default")
            values.grow_variable(bound.variable if bound is not None else None, value)
        elif child.kind == "identifier":
            values.grow_variable(child.variable, base)
        else:
            pending.extend(child.children)
    return NO_VALUE


def _this(_values: ValueResolver, _node: SyntaxNode) -> Value:
    return frozenset({ANY, Path("this")})


def _default_parameter(values: ValueResolver, node: SyntaxNode) -> Value:
    values.bind(node, NO_VALUE)
    return NO_VALUE


_WRAPPERS = words("""
parenthesized_expression as_expression satisfies_expression non_null_expression type_assertion await_expression
spread_element jsx_expression template_substitution sequence_expression instantiation_expression
""")
_Rule = Callable[[ValueResolver, SyntaxNode], Value]
RULES: dict[str, _Rule] = {
    "identifier": _reference,
    "shorthand_property_identifier": _shorthand,
    "undefined": lambda _values, _node: const(None),
    "string": _string,
    "template_string": _template,
    "number": _number,
    "regex": _regex,
    "true": lambda _values, _node: const(True),
    "false": lambda _values, _node: const(False),
    "null": lambda _values, _node: const(None),
    "array": _array,
    "object": _object,
    "return_statement": _return,
    "variable_declarator": _declarator,
    "assignment_expression": _assignment,
    "augmented_assignment_expression": _augmented,
    "binary_expression": _binary,
    "unary_expression": _unary,
    "update_expression": _update,
    "for_in_statement": _loop,
    "catch_clause": _catch,
    "throw_statement": _throw,
    "ternary_expression": _ternary,
    "member_expression": _member,
    "subscript_expression": _member,
    "call_expression": call_result,
    "new_expression": call_result,
    "import_statement": _import,
    "this": _this,
    **dict.fromkeys(("assignment_pattern", "required_parameter", "optional_parameter"), _default_parameter),
    **dict.fromkeys(("pair", "field_definition", "public_field_definition", "enum_assignment"), _pair),
    **dict.fromkeys(FUNCTIONS, _function),
    **dict.fromkeys(("class_declaration", "class", "abstract_class_declaration"), _class),
    **dict.fromkeys(_WRAPPERS, _inner),
}
