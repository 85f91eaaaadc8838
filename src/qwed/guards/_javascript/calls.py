"""What a call gives back, and what it gives to the functions it calls."""

from qwed.guards._javascript import folding
from qwed.guards._javascript.atoms import (
    NOTHING,
    SOMETHING,
    Const,
    Func,
    Literal,
    Path,
    Plain,
    Value,
    const,
    constants,
    functions,
    joined,
    keys,
    paths,
    texts,
)
from qwed.guards._javascript.combining import combined, concatenated
from qwed.guards._javascript.names import PASSING, PROTOTYPES, WITHIN, is_asset, module_path, rule_of
from qwed.guards._javascript.rules import words
from qwed.guards._javascript.scopes import CLASSES, Variable, parameters
from qwed.guards._javascript.tables import RULES as TABLE
from qwed.guards._javascript.tree import Node
from qwed.guards._javascript.values import MAX_INLINED_WORK, Values, travelling

MAX_INLINED = 120
MAX_HELD = 3
"""How many lists deep we look for what is held."""

_COLLECTIONS = words("Map Set WeakMap WeakSet")
_WORLDS = words("globalThis require process")
_TAKING = words("Reflect.get Object.getOwnPropertyDescriptor Reflect.getOwnPropertyDescriptor")
"""Functions that give back one property of what they are given; what stands in a descriptor is the property itself."""
_EACH = words("map forEach filter some every find findIndex flatMap findLast sort")
_MAKERS = words("create extend defaults instance default promises")
_HERE = {"process.cwd": ".", "os.homedir": "~", "os.tmpdir": "/tmp", "url.fileURLToPath": "."}  # noqa: S108 - a name
_SINGLE = {"img": "Image()", "image": "Image()"}


def arguments_of(node: Node) -> list[Node]:
    """The arguments of a call; those of a tagged template are the template."""
    listed = node.get("arguments")
    if listed is None:
        return []
    return [listed] if listed.kind == "template_string" else listed.children


def callee_of(node: Node) -> Node | None:
    """What is called."""
    return node.get("function") or node.get("constructor")


def called(values: Values, node: Node) -> Value:
    """What the call may give back."""
    callee, arguments = callee_of(node), arguments_of(node)
    if callee is None:
        return SOMETHING
    if callee.kind == "import":
        return _modules(arguments)
    if callee.kind == "identifier" and callee.text == "await" and arguments:
        return arguments[-1].value or SOMETHING
    found = joined(_own(values, callee.value or NOTHING, arguments), _collected(node, callee))
    if not found:
        found = _handed_through(arguments)
    for path in paths(callee.value or NOTHING):
        found = joined(found, _library(values, path, arguments))
    if callee.kind in ("member_expression", "subscript_expression"):
        found = joined(found, _method(values, callee, arguments))
    return found or SOMETHING


def _collected(node: Node, callee: Node) -> Value:
    """`new Map(...)`: a literal of what it is given and of what is put in later."""
    listed = node.get("arguments")
    holds = node.kind == "new_expression" and callee.text in _COLLECTIONS and callee.variable is None
    return frozenset({Literal(listed)}) if holds and listed is not None else NOTHING


def _handed_through(arguments: list[Node]) -> Value:
    """A function we do not know may give back the world that it was given."""
    given = {name for argument in arguments for name in paths(argument.value or NOTHING)}
    return frozenset(Path(name) for name in given & _WORLDS)


def _own(values: Values, callee: Value, arguments: list[Node]) -> Value:
    """Hand the arguments to the functions of the program; what these return."""
    found = NOTHING
    for function in functions(callee):
        target = _constructor(function) if function.kind in CLASSES else function
        if target is not None:
            give(values, target, [argument.value or SOMETHING for argument in arguments])
        found = joined(found, values.returns.get(function, SOMETHING))
    return found


def _constructor(node: Node) -> Node | None:
    body = node.get("body")
    methods = body.children if body is not None else []
    return next(
        (each for each in methods if (name := each.get("name")) is not None and name.text == "constructor"), None
    )


def give(values: Values, function: Node, arguments: list[Value]) -> None:
    """The parameters of `function` may be these."""
    for parameter, value in zip(parameters(function), arguments, strict=False):
        values.bind(parameter, travelling(value))


def _modules(arguments: list[Node]) -> Value:
    found = NOTHING
    for module in texts(arguments[0].value or NOTHING) if arguments else ():
        found = joined(found, SOMETHING if is_asset(module) else frozenset({Path(module_path(module))}))
    return found or SOMETHING


def _library(values: Values, path: str, arguments: list[Node]) -> Value:
    first: Value = arguments[0].value if arguments and arguments[0].value else NOTHING
    bare = path.removesuffix(".call").removesuffix(".apply").removesuffix(".bind")
    if path.endswith(".bind"):
        return frozenset({Path(bare)})
    if bare == "require":
        return _modules(arguments[bare != path :])
    if path in _HERE:
        return const(_HERE[path])
    if f"{path}()" in TABLE and path != "?.constructor":
        return frozenset({Path(f"{path}()")})
    if path in PASSING:
        return joined(SOMETHING, NOTHING.union(*(argument.value or NOTHING for argument in arguments)))
    root, _, last = path.rpartition(".")
    if last in _MAKERS and rule_of(root).effect is not None:
        return frozenset({Path(root)})
    return _computed(values, path, arguments, first)


def _computed(values: Values, path: str, arguments: list[Node], first: Value) -> Value:
    if path in WITHIN:
        return values.element(first)
    if path in PROTOTYPES:
        return _prototype(first)
    if path in _TAKING and len(arguments) > 1:
        named = [values.member(first, key) for key in keys(arguments[1].value or NOTHING)]
        return NOTHING.union(*named) if named else values.element(first)
    if path == "document.createElement":
        return frozenset({Path(_SINGLE[name]) for name in texts(first) if name in _SINGLE}) or SOMETHING
    if path == "String.raw" and arguments and arguments[0].kind == "template_string":
        return first
    folder = folding.FUNCTIONS.get(path)
    return _folded(folder, path, arguments) if folder is not None else SOMETHING


def _prototype(value: Value) -> Value:
    if any(isinstance(atom, Path) and atom.name.endswith(".prototype") for atom in value):
        return frozenset({Path("Object.prototype")})
    if any(isinstance(atom, Func | Path) for atom in value):
        return frozenset({Path("Function.prototype")})
    if any(isinstance(atom, Literal) and atom.node.kind == "array" for atom in value):
        return frozenset({Path("Array.prototype")})
    plain = value and all(isinstance(atom, Literal) and atom.node.kind == "object" for atom in value)
    return frozenset({Path("Object.prototype")}) if plain else SOMETHING


def _folded(folder: folding.Folder, path: str, arguments: list[Node]) -> Value:
    given = _spread(arguments)
    if path.startswith("path.") and given:
        return _path_text(given)
    return combined(folder, given)


def _path_text(parts: list[Value]) -> Value:
    whole = parts[0]
    for part in parts[1:]:
        whole = concatenated(concatenated(whole, const("/")), part)
    return whole


def _spread(arguments: list[Node]) -> list[Value]:
    """The values given, those of a constant `...list` one by one."""
    given: list[Value] = []
    for argument in arguments:
        known = constants(argument.value or NOTHING)
        lists = [each for each in known if isinstance(each, tuple)]
        if argument.kind == "spread_element" and len(lists) == 1:
            given += [const(each) for each in lists[0]]
        else:
            given.append(argument.value or SOMETHING)
    return given


def _method(values: Values, callee: Node, arguments: list[Node]) -> Value:
    """A method of a constant, or one that calls back."""
    target = callee.get("object")
    receiver: Value = target.value if target is not None and target.value else SOMETHING
    found = NOTHING
    for name in values.property_names(callee):
        found = joined(found, _callback(values, name, receiver, arguments))
        known: Value = frozenset(atom for atom in receiver if isinstance(atom, Const))
        for atom in known:
            folder = folding.method(atom.value, name)  # type: ignore[union-attr]  # constants all of them
            if folder is not None:
                found = joined(found, combined(folder, [frozenset({atom}), *_spread(arguments)]))
        if name in ("push", "unshift", "add", "set", "concat"):
            _put(values, receiver, arguments)
        elif name in ("call", "apply") and target is not None:
            found = joined(found, _applied(values, name, receiver, arguments))
        elif name in ("get", "pop", "shift", "at", "slice", "reverse", "values"):
            found = joined(found, _kept(values, receiver))
        elif name == "decode" and arguments:
            found = joined(found, combined(folding.FUNCTIONS["Buffer.from"], [arguments[-1].value or SOMETHING]))
    return found


def _kept(values: Values, receiver: Value) -> Value:
    """Library names and functions that were put into a list."""
    kept: Value = NOTHING
    held = receiver
    for _ in range(MAX_HELD):
        held = values.element(frozenset(atom for atom in held if isinstance(atom, Literal)))
        kept |= frozenset(atom for atom in held if isinstance(atom, Path | Func))
    return kept


def _put(values: Values, receiver: Value, arguments: list[Node]) -> None:
    for atom in receiver:
        if isinstance(atom, Literal):
            for argument in arguments:
                more = argument.value or NOTHING
                values.items[atom.node] = values.grown(values.items.get(atom.node, NOTHING), more)


def _applied(values: Values, name: str, receiver: Value, arguments: list[Node]) -> Value:
    """`f.call(it, a)` and `f.apply(it, [a])`."""
    given = arguments[1:]
    if name == "apply":
        inside = [atom.node for argument in given for atom in argument.value or () if isinstance(atom, Literal)]
        given = inside[0].children if inside else []
    found = _own(values, receiver, given)
    for path in paths(receiver):
        folder = folding.FUNCTIONS.get(path)
        if folder is not None:
            found = joined(found, combined(folder, _spread(given)))
    return found


def _callback(values: Values, name: str, receiver: Value, arguments: list[Node]) -> Value:
    callback: Value = arguments[0].value if arguments and arguments[0].value else NOTHING
    if name in _EACH:
        element = values.element(receiver)
        for function in functions(callback):
            give(values, function, [element])
        return _mapped(values, callback, receiver) if name == "map" else NOTHING
    if name == "then":
        handed: Value = frozenset(atom for atom in receiver if isinstance(atom, Path | Func | Literal))
        for function in functions(callback):
            give(values, function, [handed])
        return _own(values, callback, [])
    if name == "reduce":
        for function in functions(callback):
            give(values, function, [SOMETHING, values.element(receiver)])
    return NOTHING


def _mapped(values: Values, callback: Value, receiver: Value) -> Value:
    """`[101, 118].map(String.fromCharCode)`, element by element."""
    found = NOTHING
    for items in constants(receiver):
        if not isinstance(items, tuple) or values.nesting > 1 or len(items) > MAX_INLINED:
            continue
        for path in paths(callback):
            folder = folding.FUNCTIONS.get(path)
            if folder is not None:
                found = joined(found, _gathered([combined(folder, [const(each)]) for each in items]))
        for function in functions(callback):
            found = joined(found, _inlined(values, function, items))
    return found


def _gathered(results: list[Value]) -> Value:
    known = [constants(result) for result in results]
    if any(len(each) != 1 or len(result) != 1 for each, result in zip(known, results, strict=True)):
        return SOMETHING
    return const(tuple(each[0] for each in known))


def _inlined(values: Values, function: Node, items: tuple[Plain, ...]) -> Value:
    body = _expression(function)
    nodes = _subtree(body) if body is not None else []
    given = parameters(function)
    variable = next((node.variable for node in given[:1] if node.kind == "identifier"), None)
    values.inlined += len(items) * len(nodes)
    if body is None or not isinstance(variable, Variable) or not nodes or values.inlined > MAX_INLINED_WORK:
        return NOTHING
    before, changed, results = variable.values, values.changed, []
    values.nesting += 1
    for item in items:
        variable.values = const(item)
        values.evaluate(nodes)
        results.append(body.value)
    # What the single elements told is told again by all of them together.
    variable.values, values.changed = before, changed
    values.nesting -= 1
    values.evaluate(nodes)
    return _gathered(results)


def _expression(function: Node) -> Node | None:
    """The one expression a function gives back, where it does nothing else."""
    body = function.get("body")
    if body is None or body.kind != "statement_block":
        return body
    single = body.children[0] if len(body.children) == 1 else None
    returns = single is not None and single.kind == "return_statement" and single.children
    return single.children[0] if single is not None and returns else None


def _subtree(top: Node) -> list[Node]:
    """A small tree, every node after its children; nothing where it is not small."""
    order, pending = [], [top]
    while pending:
        node = pending.pop()
        order.append(node)
        pending.extend(node.children)
        if len(order) > MAX_INLINED:
            return []
    return order[::-1]
