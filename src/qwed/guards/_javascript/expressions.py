"""What each kind of expression and statement makes of the values of its parts."""

from collections.abc import Callable

from qwed.guards._javascript import folding
from qwed.guards._javascript.atoms import (
    ANY,
    NOTHING,
    SOMETHING,
    Const,
    Func,
    Literal,
    Path,
    Value,
    const,
    joined,
)
from qwed.guards._javascript.calls import called
from qwed.guards._javascript.combining import combined, concatenated
from qwed.guards._javascript.names import global_path, is_asset, module_path
from qwed.guards._javascript.rules import words
from qwed.guards._javascript.scopes import FUNCTIONS, parameters
from qwed.guards._javascript.tree import Node, Source
from qwed.guards._javascript.values import Values, travelling


def solve(source: Source) -> Values:
    """The values of every node of `source`; Unreadable where they cannot be followed."""
    values = Values(RULES)
    values.solve(source)
    return values


def _reference(_values: Values, node: Node) -> Value:
    if node.variable is not None:
        known: Value = node.variable.values
        # `var eval` at the top of a script leaves the global what it was.
        if node.variable.bare or (node.text in ("eval", "Function") and node.variable.keyword == "var"):
            path = global_path(node.text)
            return known | {Path(path)} if path else known
        if node.text == "require" and node.variable.keyword == "parameter":
            return known | {Path("require")}
        return known
    if node.text in ("__dirname", "undefined"):
        return const("." if node.text == "__dirname" else None)
    path = global_path(node.text)
    return frozenset({Path(path)}) if path else SOMETHING


def _string(_values: Values, node: Node) -> Value:
    if node.value is None:
        texts = [
            child.text if child.kind != "escape_sequence" else folding.escape(child.text) for child in node.children
        ]
        return const("".join(texts))
    value: Value = node.value
    return value


def _template(_values: Values, node: Node) -> Value:
    parts: list[Value] = []
    for child in node.children:
        if child.kind == "template_substitution":
            parts.append(child.value or NOTHING)
        else:
            parts.append(const(folding.escape(child.text) if child.kind == "escape_sequence" else child.text))
    whole = const("")
    for part in parts:
        whole = concatenated(whole, part)
    return whole


def _number(_values: Values, node: Node) -> Value:
    try:
        return const(folding.number(node.text))
    except folding.Unfoldable:
        return SOMETHING


def _regex(_values: Values, node: Node) -> Value:
    pattern, flags = node.get("pattern"), node.get("flags")
    return const((folding.REGEX, pattern.text if pattern else "", flags.text if flags else ""))


def _array(_values: Values, node: Node) -> Value:
    literal: Value = frozenset({Literal(node)})
    items: list[object] = []
    for child in node.children:
        known = [atom.value for atom in child.value or () if isinstance(atom, Const)]
        if len(known) != 1 or len(child.value) != 1 or len(items) > 512:
            return literal
        spread = child.kind == "spread_element" and isinstance(known[0], str | tuple)
        items.extend(known[0] if spread else known)  # type: ignore[arg-type]  # a string or a tuple
    return literal | const(tuple(items))  # type: ignore[arg-type]  # constants all of them


def _object(_values: Values, node: Node) -> Value:
    return frozenset({Literal(node)})


def _pair(values: Values, node: Node) -> Value:
    value = node.get("value")
    for name in values.key_names(node.get("key") or node.get("name") or node.get("property")):
        values.grow_field(name, value.value if value is not None and value.value else SOMETHING)
    return NOTHING


def _shorthand(values: Values, node: Node) -> Value:
    value = _reference(values, node)
    values.grow_field(node.text, value)
    return value


def _function(values: Values, node: Node) -> Value:
    value: Value = frozenset({Func(node)})
    if not values.round:
        for parameter in parameters(node):
            values.bind(parameter, SOMETHING)
    body, name = node.get("body"), node.get("name")
    if body is not None and body.kind != "statement_block":
        values.returns[node] = values.grown(values.returns.get(node, NOTHING), travelling(body.value or NOTHING))
    if node.kind == "method_definition":
        given = values.returns.get(node, NOTHING) if "get" in node.words else NOTHING
        for each in values.key_names(name):
            values.grow_field(each, joined(value, given))
    elif name is not None:
        values.grow_variable(name.variable, value)
    return value


def _class(values: Values, node: Node) -> Value:
    value: Value = frozenset({Func(node)})
    name = node.get("name")
    if name is not None:
        values.grow_variable(name.variable, value)
    return value


def _return(values: Values, node: Node) -> Value:
    function = enclosing(node)
    if function is not None and node.children:
        more = travelling(node.children[0].value or NOTHING)
        values.returns[function] = values.grown(values.returns.get(function, NOTHING), more)
    return NOTHING


def enclosing(node: Node) -> Node | None:
    """The function a node stands in."""
    here = node.parent
    while here is not None and here.kind not in FUNCTIONS:
        here = here.parent
    return here


def _declarator(values: Values, node: Node) -> Value:
    name, value = node.get("name"), node.get("value")
    known: Value = value.value if value is not None and value.value else NOTHING
    if name is not None:
        values.bind(name, known)
    home = node.parent.parent if node.parent is not None else None
    if home is not None and home.kind == "export_statement" and name is not None and name.text:
        # What a namespace exports is read as its property.
        values.grow_field(name.text, known)
    return NOTHING


def _assignment(values: Values, node: Node) -> Value:
    left, right = node.get("left"), node.get("right")
    value: Value = right.value if right is not None and right.value else SOMETHING
    if left is not None:
        values.bind(left, value)
    return value


def _augmented(values: Values, node: Node) -> Value:
    left, right = node.get("left"), node.get("right")
    if left is None or right is None:
        return SOMETHING
    operator = node.words[0].removesuffix("=") if node.words else ""
    value = operated(operator, left.value or NOTHING, right.value or NOTHING)
    values.bind(left, value)
    return value


def operated(operator: str, one: Value, other: Value) -> Value:
    """The result of a binary operator."""
    if operator in ("||", "&&", "??"):
        return joined(one, other)
    if operator == "+":
        return concatenated(one, other)
    return combined(folding.BINARY.get(operator), [one, other])


def _binary(_values: Values, node: Node) -> Value:
    left, right = node.get("left"), node.get("right")
    if left is None or right is None:
        return SOMETHING
    return operated(node.words[0] if node.words else "", left.value or NOTHING, right.value or NOTHING)


def _unary(_values: Values, node: Node) -> Value:
    argument = node.get("argument")
    operator = node.words[0] if node.words else ""
    return combined(folding.UNARY.get(operator), [argument.value or NOTHING]) if argument is not None else SOMETHING


def _update(values: Values, node: Node) -> Value:
    argument = node.get("argument")
    if argument is not None:
        values.bind(argument, SOMETHING)
    return SOMETHING


def _loop(values: Values, node: Node) -> Value:
    left, right = node.get("left"), node.get("right")
    if left is not None and right is not None:
        over = "of" in node.words or "of" in [word for child in node.children for word in child.words]
        values.bind(left, values.element(right.value or NOTHING) if over else SOMETHING)
    return NOTHING


def _catch(values: Values, node: Node) -> Value:
    parameter = node.get("parameter")
    if parameter is not None:
        values.bind(parameter, joined(SOMETHING, values.fields.get(_THROWN, NOTHING)))
    return NOTHING


def _throw(values: Values, node: Node) -> Value:
    if node.children:
        values.grow_field(_THROWN, node.children[0].value or NOTHING)
    return NOTHING


_THROWN = "\0thrown"
"""No property has this name."""


def _inner(_values: Values, node: Node) -> Value:
    value: Value = node.children[-1].value if node.children and node.children[-1].value else SOMETHING
    return value


def _ternary(_values: Values, node: Node) -> Value:
    one, other = node.get("consequence"), node.get("alternative")
    return joined(one.value if one is not None else NOTHING, other.value if other is not None else NOTHING)


def _member(values: Values, node: Node) -> Value:
    target, index = node.get("object"), node.get("index")
    value: Value = target.value if target is not None and target.value else SOMETHING
    found = NOTHING
    for name in values.property_names(node):
        found = joined(found, values.member(value, name))
    known: Value = index.value if index is not None and index.value else NOTHING
    open_ended = index is not None and any(not isinstance(atom, Const) for atom in known or SOMETHING)
    return joined(found, values.element(value)) if open_ended else found or SOMETHING


def _import(values: Values, node: Node) -> Value:
    source = node.get("source") or next(
        (inner for child in node.children if (inner := child.get("source")) is not None), None
    )
    if source is None or "type" in node.words or not source.children:
        return NOTHING
    module = "".join(child.text for child in source.children)
    base: Value = SOMETHING if is_asset(module) else frozenset({Path(module_path(module))})
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
    return NOTHING


def _this(_values: Values, _node: Node) -> Value:
    return frozenset({ANY, Path("this")})


def _default_parameter(values: Values, node: Node) -> Value:
    values.bind(node, NOTHING)
    return NOTHING


_WRAPPERS = words("""
parenthesized_expression as_expression satisfies_expression non_null_expression type_assertion await_expression
spread_element jsx_expression template_substitution sequence_expression instantiation_expression
""")
_Rule = Callable[[Values, Node], Value]
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
    "call_expression": called,
    "new_expression": called,
    "import_statement": _import,
    "this": _this,
    **dict.fromkeys(("assignment_pattern", "required_parameter", "optional_parameter"), _default_parameter),
    **dict.fromkeys(("pair", "field_definition", "public_field_definition", "enum_assignment"), _pair),
    **dict.fromkeys(FUNCTIONS, _function),
    **dict.fromkeys(("class_declaration", "class", "abstract_class_declaration"), _class),
    **dict.fromkeys(_WRAPPERS, _inner),
}
