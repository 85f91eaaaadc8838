"""Results of calls, and the arguments they pass to functions of the program."""

from qwed.guards._javascript import constant_folding
from qwed.guards._javascript.abstract_ops import combine, concatenate
from qwed.guards._javascript.abstract_values import (
    NO_VALUE,
    UNKNOWN_VALUE,
    Const,
    Func,
    Literal,
    Path,
    Plain,
    Value,
    const,
    constants,
    functions,
    join,
    keys,
    paths,
    texts,
)
from qwed.guards._javascript.fixpoint import MAX_INLINED_WORK, ValueResolver, without_local_paths
from qwed.guards._javascript.module_paths import (
    PASS_THROUGH,
    PROPERTY_LISTERS,
    PROTOTYPES,
    UNKNOWN_FUNCTION,
    UNKNOWN_MEMBER,
    UNKNOWN_PROPERTY,
    is_asset,
    module_path,
    rule_of,
)
from qwed.guards._javascript.rules import words
from qwed.guards._javascript.scopes import CLASSES, Variable, parameters
from qwed.guards._javascript.syntax_tree import SyntaxNode
from qwed.guards._javascript.tables import RULES as TABLE

MAX_INLINED = 120
MAX_LIST_DEPTH = 3
"""Levels of nested lists that are searched for stored items."""

_COLLECTIONS = words("Map Set WeakMap WeakSet")
_GLOBAL_ROOTS = words("globalThis require process")
_PROPERTY_GETTERS = words("Reflect.get Object.getOwnPropertyDescriptor Reflect.getOwnPropertyDescriptor")
"""Functions that return one property of their argument; a descriptor counts as the property itself."""
_ITERATING = words("map forEach filter some every find findIndex flatMap findLast sort")
_FACTORIES = words("create extend defaults instance default promises")
_KNOWN_DIRECTORIES = {"process.cwd": ".", "os.homedir": "~", "os.tmpdir": "/tmp", "url.fileURLToPath": "."}  # noqa: S108 - a name
_ELEMENT_PATHS = {"img": "Image()", "image": "Image()"}


def arguments_of(node: SyntaxNode) -> list[SyntaxNode]:
    """Return the arguments of a call; for a tagged template, the template."""
    arguments = node.get("arguments")
    if arguments is None:
        return []
    return [arguments] if arguments.kind == "template_string" else arguments.children


def callee_of(node: SyntaxNode) -> SyntaxNode | None:
    """Return the function of a call."""
    return node.get("function") or node.get("constructor")


def call_result(values: ValueResolver, node: SyntaxNode) -> Value:
    """Return the possible results of the call."""
    callee, arguments = callee_of(node), arguments_of(node)
    if callee is None:
        return UNKNOWN_VALUE
    if callee.kind == "import":
        return _modules(arguments)
    if callee.kind == "identifier" and callee.text == "await" and arguments:
        return arguments[-1].value or UNKNOWN_VALUE
    result = join(_call_own(values, callee.value or NO_VALUE, arguments), _collection(node, callee))
    if not result:
        result = _passed_through(arguments)
    for path in paths(callee.value or NO_VALUE):
        result = join(result, _library(values, path, arguments))
    if callee.kind in ("member_expression", "subscript_expression"):
        result = join(result, _method(values, callee, arguments))
    return result or UNKNOWN_VALUE


def _collection(node: SyntaxNode, callee: SyntaxNode) -> Value:
    """Return `new Map(...)` as a literal of its arguments, to which later items are added."""
    arguments = node.get("arguments")
    holds = node.kind == "new_expression" and callee.text in _COLLECTIONS and callee.variable is None
    return frozenset({Literal(arguments)}) if holds and arguments is not None else NO_VALUE


def _passed_through(arguments: list[SyntaxNode]) -> Value:
    """Return the global objects among the arguments, because an unknown function may return them."""
    names = {name for argument in arguments for name in paths(argument.value or NO_VALUE)}
    return frozenset(Path(name) for name in names & _GLOBAL_ROOTS)


def _call_own(values: ValueResolver, callee: Value, arguments: list[SyntaxNode]) -> Value:
    """Bind the arguments to the functions of the program and return their results."""
    result = NO_VALUE
    for function in functions(callee):
        target = _constructor(function) if function.kind in CLASSES else function
        if target is not None:
            bind_arguments(values, target, [argument.value or UNKNOWN_VALUE for argument in arguments])
        result = join(result, values.returns.get(function, UNKNOWN_VALUE))
    return result


def _constructor(node: SyntaxNode) -> SyntaxNode | None:
    body = node.get("body")
    methods = body.children if body is not None else []
    return next(
        (method for method in methods if (name := method.get("name")) is not None and name.text == "constructor"), None
    )


def bind_arguments(values: ValueResolver, function: SyntaxNode, arguments: list[Value]) -> None:
    """Add the arguments to the possible values of the parameters of `function`."""
    for parameter, value in zip(parameters(function), arguments, strict=False):
        values.bind(parameter, without_local_paths(value))


def _modules(arguments: list[SyntaxNode]) -> Value:
    result = NO_VALUE
    for module in texts(arguments[0].value or NO_VALUE) if arguments else ():
        result = join(result, UNKNOWN_VALUE if is_asset(module) else frozenset({Path(module_path(module))}))
    return result or UNKNOWN_VALUE


def _library(values: ValueResolver, path: str, arguments: list[SyntaxNode]) -> Value:
    first: Value = arguments[0].value if arguments and arguments[0].value else NO_VALUE
    bare = path.removesuffix(".call").removesuffix(".apply").removesuffix(".bind")
    if path.endswith(".bind"):
        return frozenset({Path(bare)})
    if bare == "require":
        return _modules(arguments[bare != path :])
    if path in _KNOWN_DIRECTORIES:
        return const(_KNOWN_DIRECTORIES[path])
    if f"{path}()" in TABLE and path != "?.constructor":
        return frozenset({Path(f"{path}()")})
    if path in ("Proxy", UNKNOWN_MEMBER):
        return _unknown_result(values, path, arguments[1:], first)
    if path in PASS_THROUGH:
        return join(UNKNOWN_VALUE, NO_VALUE.union(*(argument.value or NO_VALUE for argument in arguments)))
    root, _, last = path.rpartition(".")
    if last in _FACTORIES and rule_of(root).effect is not None:
        return frozenset({Path(root)})
    return _library_result(values, path, arguments, first)


def _unknown_result(values: ValueResolver, path: str, arguments: list[SyntaxNode], first: Value) -> Value:
    """Return a proxy, which acts as its traps do, or the result of a property that may be `Function`."""
    if path == UNKNOWN_MEMBER:
        return UNKNOWN_VALUE | {Path(UNKNOWN_FUNCTION)}
    _bind_traps(values, arguments, first)
    return join(first, frozenset({Path(UNKNOWN_MEMBER)}))


def _bind_traps(values: ValueResolver, arguments: list[SyntaxNode], target: Value) -> None:
    """Pass the target of a proxy to the functions of its handler."""
    handlers = [atom.node for argument in arguments for atom in argument.value or () if isinstance(atom, Literal)]
    for child in [child for handler in handlers for child in handler.children]:
        trap = child.get("value") or child
        for function in functions(trap.value or NO_VALUE):
            bind_arguments(values, function, [target])


def _library_result(values: ValueResolver, path: str, arguments: list[SyntaxNode], first: Value) -> Value:
    if path in PROPERTY_LISTERS:
        return values.element(first)
    if path in PROTOTYPES:
        return _prototype(first)
    if path in _PROPERTY_GETTERS and len(arguments) > 1:
        names = keys(arguments[1].value or NO_VALUE)
        members = [values.member(first, key) for key in names]
        if "constructor" in names:
            members.append(frozenset({Path(UNKNOWN_FUNCTION)}))
        return NO_VALUE.union(*members) if members else values.lookup(first)
    if path == "document.createElement":
        return (
            frozenset({Path(_ELEMENT_PATHS[name]) for name in texts(first) if name in _ELEMENT_PATHS}) or UNKNOWN_VALUE
        )
    if path == "String.raw" and arguments and arguments[0].kind == "template_string":
        return first
    folder = constant_folding.FUNCTIONS.get(path)
    return _fold_call(folder, path, arguments) if folder is not None else UNKNOWN_VALUE


def _prototype(value: Value) -> Value:
    if any(isinstance(atom, Path) and atom.name.endswith(".prototype") for atom in value):
        return frozenset({Path("Object.prototype")})
    if any(
        isinstance(atom, Func) or (isinstance(atom, Path) and atom.name not in (UNKNOWN_PROPERTY, UNKNOWN_MEMBER))
        for atom in value
    ):
        return frozenset({Path("Function.prototype")})
    if any(isinstance(atom, Literal) and atom.node.kind == "array" for atom in value):
        return frozenset({Path("Array.prototype")})
    plain = value and all(isinstance(atom, Literal) and atom.node.kind == "object" for atom in value)
    return frozenset({Path("Object.prototype")}) if plain else UNKNOWN_VALUE | {Path(UNKNOWN_PROPERTY)}


def _fold_call(folder: constant_folding.Folder, path: str, arguments: list[SyntaxNode]) -> Value:
    argument_values = _argument_values(arguments)
    if path.startswith("path.") and argument_values:
        return _path_text(argument_values)
    return combine(folder, argument_values)


def _path_text(parts: list[Value]) -> Value:
    whole = parts[0]
    for part in parts[1:]:
        whole = concatenate(concatenate(whole, const("/")), part)
    return whole


def _argument_values(arguments: list[SyntaxNode]) -> list[Value]:
    """Return the argument values, with a constant `...list` expanded."""
    values: list[Value] = []
    for argument in arguments:
        constant_values = constants(argument.value or NO_VALUE)
        lists = [item for item in constant_values if isinstance(item, tuple)]
        if argument.kind == "spread_element" and len(lists) == 1:
            values += [const(item) for item in lists[0]]
        else:
            values.append(argument.value or UNKNOWN_VALUE)
    return values


def _method(values: ValueResolver, callee: SyntaxNode, arguments: list[SyntaxNode]) -> Value:
    """Return the result of a method of a constant, or of one with a callback."""
    target = callee.get("object")
    receiver: Value = target.value if target is not None and target.value else UNKNOWN_VALUE
    result = NO_VALUE
    for name in values.property_names(callee):
        result = join(result, _callback(values, name, receiver, arguments))
        constant_atoms: Value = frozenset(atom for atom in receiver if isinstance(atom, Const))
        for atom in constant_atoms:
            folder = constant_folding.method_folder(atom.value, name)  # type: ignore[union-attr]  # constants all of them
            if folder is not None:
                result = join(result, combine(folder, [frozenset({atom}), *_argument_values(arguments)]))
        if name in ("push", "unshift", "add", "set", "concat"):
            _store_items(values, receiver, arguments)
        elif name in ("call", "apply") and target is not None:
            result = join(result, _apply_call(values, name, receiver, arguments))
        elif name in ("get", "pop", "shift", "at", "slice", "reverse", "values"):
            result = join(result, _stored_items(values, receiver))
        elif name == "decode" and arguments:
            result = join(
                result, combine(constant_folding.FUNCTIONS["Buffer.from"], [arguments[-1].value or UNKNOWN_VALUE])
            )
    return result


def _stored_items(values: ValueResolver, receiver: Value) -> Value:
    """Return the library names and functions stored in a list."""
    stored: Value = NO_VALUE
    current = receiver
    for _ in range(MAX_LIST_DEPTH):
        current = values.element(frozenset(atom for atom in current if isinstance(atom, Literal)))
        stored |= frozenset(atom for atom in current if isinstance(atom, Path | Func))
    return stored


def _store_items(values: ValueResolver, receiver: Value, arguments: list[SyntaxNode]) -> None:
    for atom in receiver:
        if isinstance(atom, Literal):
            for argument in arguments:
                more = argument.value or NO_VALUE
                values.items[atom.node] = values.merge(values.items.get(atom.node, NO_VALUE), more)


def _apply_call(values: ValueResolver, name: str, receiver: Value, arguments: list[SyntaxNode]) -> Value:
    """Return the result of `f.call(it, a)` or `f.apply(it, [a])`."""
    call_arguments = arguments[1:]
    if name == "apply":
        inside = [
            atom.node for argument in call_arguments for atom in argument.value or () if isinstance(atom, Literal)
        ]
        call_arguments = inside[0].children if inside else []
    result = _call_own(values, receiver, call_arguments)
    for path in paths(receiver):
        folder = constant_folding.FUNCTIONS.get(path)
        if folder is not None:
            result = join(result, combine(folder, _argument_values(call_arguments)))
    return result


def _callback(values: ValueResolver, name: str, receiver: Value, arguments: list[SyntaxNode]) -> Value:
    callback: Value = arguments[0].value if arguments and arguments[0].value else NO_VALUE
    if name in _ITERATING:
        element = values.element(receiver)
        for function in functions(callback):
            bind_arguments(values, function, [element])
        return join(_map_call(values, callback, receiver), _unknown_results(values, callback))
    if name == "then":
        resolved: Value = frozenset(atom for atom in receiver if isinstance(atom, Path | Func | Literal))
        for function in functions(callback):
            bind_arguments(values, function, [resolved])
        return _call_own(values, callback, [])
    return _reduced(values, callback, receiver, arguments[1:]) if name in ("reduce", "reduceRight") else NO_VALUE


def _unknown_results(values: ValueResolver, callback: Value) -> Value:
    """Return the properties with an unknown name among the results of a callback."""
    results = [values.returns.get(function, NO_VALUE) for function in functions(callback)]
    return NO_VALUE.union(*results) & {Path(UNKNOWN_FUNCTION)}


def _reduced(values: ValueResolver, callback: Value, receiver: Value, initial: list[SyntaxNode]) -> Value:
    """Return what the callback of `reduce` returns, which is also its first argument."""
    result: Value = initial[0].value if initial and initial[0].value else values.element(receiver)
    for function in functions(callback):
        result = join(result, values.returns.get(function, NO_VALUE))
        bind_arguments(values, function, [join(UNKNOWN_VALUE, result), values.element(receiver)])
    return result


def _map_call(values: ValueResolver, callback: Value, receiver: Value) -> Value:
    """Return the result of `[101, 118].map(String.fromCharCode)`, element by element."""
    result = NO_VALUE
    for items in constants(receiver):
        if not isinstance(items, tuple) or values.nesting > 1 or len(items) > MAX_INLINED:
            continue
        for path in paths(callback):
            folder = constant_folding.FUNCTIONS.get(path)
            if folder is not None:
                result = join(result, _to_list([combine(folder, [const(item)]) for item in items]))
        for function in functions(callback):
            result = join(result, _inline(values, function, items))
    return result


def _to_list(results: list[Value]) -> Value:
    choices = [constants(result) for result in results]
    if any(len(choice) != 1 or len(result) != 1 for choice, result in zip(choices, results, strict=True)):
        return UNKNOWN_VALUE
    return const(tuple(choice[0] for choice in choices))


def _inline(values: ValueResolver, function: SyntaxNode, items: tuple[Plain, ...]) -> Value:
    body = _expression(function)
    nodes = _subtree(body) if body is not None else []
    function_parameters = parameters(function)
    variable = next((node.variable for node in function_parameters[:1] if node.kind == "identifier"), None)
    values.inlined += len(items) * len(nodes)
    if body is None or not isinstance(variable, Variable) or not nodes or values.inlined > MAX_INLINED_WORK:
        return NO_VALUE
    before, changed, results = variable.values, values.changed, []
    values.nesting += 1
    for item in items:
        variable.values = const(item)
        values.evaluate(nodes)
        results.append(body.value)
    # Restore the state: the pass over all elements together finds the same again.
    variable.values, values.changed = before, changed
    values.nesting -= 1
    values.evaluate(nodes)
    return _to_list(results)


def _expression(function: SyntaxNode) -> SyntaxNode | None:
    """Return the expression that a function returns if it does nothing else, or None."""
    body = function.get("body")
    if body is None or body.kind != "statement_block":
        return body
    single = body.children[0] if len(body.children) == 1 else None
    returns = single is not None and single.kind == "return_statement" and single.children
    return single.children[0] if single is not None and returns else None


def _subtree(top: SyntaxNode) -> list[SyntaxNode]:
    """Return the nodes of a small tree, children first; empty if it is not small."""
    order, pending = [], [top]
    while pending:
        node = pending.pop()
        order.append(node)
        pending.extend(node.children)
        if len(order) > MAX_INLINED:
            return []
    return order[::-1]
