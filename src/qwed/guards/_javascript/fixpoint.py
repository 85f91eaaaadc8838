"""Fixpoint iteration over the possible values of every expression: names, fields and calls are followed until nothing
changes.

Order does not matter: a name may have any value it gets anywhere. The fields of all objects are merged by name, so a
value stored in one object is found in every object it may be read from.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from qwed.guards._javascript.abstract_values import (
    ANY,
    FLOOD,
    MAX_ATOMS,
    NO_VALUE,
    UNKNOWN_VALUE,
    Atom,
    Const,
    Func,
    Literal,
    PartialText,
    Path,
    Value,
    const,
    join,
    keys,
    limit,
)
from qwed.guards._javascript.module_paths import (
    UNKNOWN_FUNCTION,
    UNKNOWN_MEMBER,
    UNKNOWN_PROPERTY,
    is_namespace,
    property_path,
)
from qwed.guards._javascript.rules import words
from qwed.guards._javascript.scopes import Variable
from qwed.guards._javascript.syntax_tree import ParsedScript, SyntaxNode, UnparsableScriptError

MAX_ROUNDS = 40
MAX_SPREAD = 64
"""Spread objects followed in one literal; real code does not have more."""
MAX_WORK = 600_000
MAX_INLINED_WORK = 100_000
MAX_CONSTANT_ROUNDS = 6
"""Rounds after which new constants are not followed, because they come from a loop that computes ever more of them."""

_NAMES = frozenset({"identifier", "shorthand_property_identifier_pattern", "shorthand_property_identifier"})


@dataclass(slots=True)
class ValueResolver:
    """Values found so far."""

    rules: "Mapping[str, Callable[[ValueResolver, SyntaxNode], Value]]"
    """Function that computes the value of each kind of node."""
    fields: dict[str, Value] = field(default_factory=dict)
    returns: dict[SyntaxNode, Value] = field(default_factory=dict)
    items: dict[SyntaxNode, Value] = field(default_factory=dict)
    """Items added to an array or object after its creation."""
    spreads: dict[SyntaxNode, list[SyntaxNode]] = field(default_factory=dict)
    """Cached spread elements of each literal."""
    changed: bool = False
    round: int = 0
    work: int = 0
    inlined: int = 0
    """Part of the work spent on calling functions element by element."""
    nesting: int = 0

    def solve(self, source: ParsedScript) -> None:
        """Compute the value of every node; raise UnparsableScriptError if the limit is reached."""
        for self.round in range(MAX_ROUNDS):
            self.changed = False
            self.evaluate(source.nodes)
            if not self.changed:
                return
        raise UnparsableScriptError("names are bound in a way that cannot be followed, simplify the code")

    def evaluate(self, nodes: list[SyntaxNode]) -> None:
        """Evaluate `nodes` once, children first."""
        self.work += len(nodes)
        if self.work > MAX_WORK:
            raise UnparsableScriptError("names are bound in a way that cannot be followed, simplify the code")
        for node in nodes:
            rule = self.rules.get(node.kind)
            node.value = rule(self, node) if rule is not None else UNKNOWN_VALUE

    def merge(self, before: Value, more: Value) -> Value:
        """Return the union of `before` and `more`, and record if it is larger."""
        after = limit(join(before, more))
        if after == before:
            return before
        if self.round >= MAX_CONSTANT_ROUNDS and any(isinstance(atom, Const | PartialText) for atom in after - before):
            after = limit(after | {ANY, FLOOD})
        self.changed = self.changed or after != before
        return after

    def grow_variable(self, variable: Variable | None, value: Value) -> None:
        """Add `value` to the possible values of the variable."""
        if variable is not None and value:
            variable.values = self.merge(variable.values, value)  # type: ignore[arg-type]  # atoms, by construction

    def grow_field(self, name: str, value: Value) -> None:
        """Add `value` to the possible values of property `name` of any object."""
        self.fields[name] = self.merge(self.fields.get(name, NO_VALUE), without_local_paths(value))

    def bind(self, pattern: SyntaxNode, value: Value) -> None:
        """Bind the names in `pattern` to their parts of `value`."""
        pending = [(pattern, value)]
        while pending:
            target, part = pending.pop()
            if target.kind in _NAMES:
                self.grow_variable(target.variable, part)
            elif target.kind in ("member_expression", "subscript_expression"):
                self._bind_member(target, part)
            else:
                pending.extend(self._parts(target, part))

    def _parts(self, pattern: SyntaxNode, value: Value) -> list[tuple[SyntaxNode, Value]]:
        if pattern.kind in ("assignment_pattern", "object_assignment_pattern"):
            left, right = pattern.get("left"), pattern.get("right")
            default = right.value if right is not None and right.value else NO_VALUE
            return [(left, join(value, default))] if left is not None else []
        if pattern.kind in ("object_pattern", "object"):
            return [part for child in pattern.children for part in self._property(child, value)]
        if pattern.kind in ("array_pattern", "array"):
            element = self.element(value)
            return [(child, element) for child in pattern.children]
        inner = pattern.get("pattern") or (pattern.children[0] if pattern.children else None)
        default_node = pattern.get("value") if pattern.kind.endswith("_parameter") else None
        default = default_node.value if default_node is not None and default_node.value else NO_VALUE
        return [(inner, join(value, default))] if inner is not None else []

    def _property(self, child: SyntaxNode, value: Value) -> list[tuple[SyntaxNode, Value]]:
        """Return the bindings of one entry of an object pattern."""
        if child.kind in ("pair_pattern", "pair"):
            key, target = child.get("key"), child.get("value")
            read = NO_VALUE
            for name in self.key_names(key):
                read = join(read, self.member(value, name))
            return [(target, read or self.lookup(value))] if target is not None else []
        if child.kind == "rest_pattern":
            return [(child.children[0], value)] if child.children else []
        name_node = child.get("left") if child.kind == "object_assignment_pattern" else child
        return [(child, self.member(value, name_node.text))] if name_node is not None else []

    def _bind_member(self, node: SyntaxNode, value: Value) -> None:
        names = self.property_names(node)
        for name in names:
            self.grow_field(name, value)
        target = node.get("object")
        if not names and target is not None:
            for atom in target.value or ():
                if isinstance(atom, Literal):
                    self.items[atom.node] = self.merge(self.items.get(atom.node, NO_VALUE), value)

    def key_names(self, key: SyntaxNode | None) -> list[str]:
        """Return the names that a property key of a literal can have."""
        if key is None:
            return []
        if key.kind == "computed_property_name":
            return keys(key.children[0].value or NO_VALUE) if key.children else []
        return [key.text] if key.text else keys(key.value or NO_VALUE)

    def property_names(self, node: SyntaxNode) -> list[str]:
        """Return the known names of the property that a member or subscript expression reads."""
        last = node.get("property")
        if last is not None:
            return [last.text]
        index = node.get("index")
        return keys(index.value or NO_VALUE) if index is not None else []

    def member(self, value: Value, name: str) -> Value:
        """Return property `name` of `value`."""
        if name == "constructor" and any(not isinstance(atom, Func) for atom in value):
            # If the value may be something else, the owner of the constructor is unknown.
            value = frozenset(atom for atom in value if not isinstance(atom, Func)) | {ANY}
        atoms: set[Atom] = set()
        for atom in value:
            atoms.update(self._member_of(atom, name))
        return limit(frozenset(atoms))

    def _member_of(self, atom: Atom, name: str) -> Value:
        if isinstance(atom, Path):
            further = property_path(atom.name, name)
            return frozenset({Path(further)}) if further else join(self.fields.get(name, NO_VALUE), UNKNOWN_VALUE)
        if name == "constructor":
            return frozenset({Path(_constructor(atom))})
        if isinstance(atom, Func) and name in ("call", "apply", "bind"):
            return frozenset({atom})
        if isinstance(atom, Const):
            return _constant_member(atom, name)
        if isinstance(atom, Literal) and name.isdigit() and int(name) < len(atom.node.children):
            return join(atom.node.children[int(name)].value or NO_VALUE, self.items.get(atom.node, NO_VALUE))
        own = join(self.fields.get(name, NO_VALUE), self._spread_member(atom, name))
        return own if own and isinstance(atom, Literal) else join(own, UNKNOWN_VALUE)

    def _spread_member(self, atom: Atom, name: str) -> Value:
        """Return the property that `{...library}` takes from the library."""
        if not isinstance(atom, Literal) or atom.node.kind != "object":
            return NO_VALUE
        spread = self.spreads.get(atom.node)
        if spread is None:
            spread = [child for child in atom.node.children if child.kind == "spread_element"]
            self.spreads[atom.node] = spread
        if len(spread) > MAX_SPREAD:
            return frozenset({Path("globalThis.*")})
        spread_paths = frozenset(
            atom_in_spread
            for child in spread
            for atom_in_spread in child.value or NO_VALUE
            if isinstance(atom_in_spread, Path)
        )
        return self.member(spread_paths, name) if spread_paths else NO_VALUE

    def element(self, value: Value) -> Value:
        """Return any property of `value`, if it is not known which one."""
        atoms: set[Atom] = {ANY}
        for atom in value:
            if isinstance(atom, Path):
                further = property_path(atom.name, "*")
                atoms.update([Path(further)] if further else ())
            elif isinstance(atom, Const) and isinstance(atom.value, tuple):
                atoms.update(Const(item) for item in atom.value[:MAX_ATOMS])
            elif isinstance(atom, Literal):
                atoms.update(self._contents(atom.node))
        return limit(frozenset(atoms))

    def lookup(self, value: Value) -> Value:
        """Return the property of `value` with an unknown name, which may be the constructor that it inherits."""
        return limit(self.element(value) | frozenset(map(_inherited, value or UNKNOWN_VALUE)))

    def _contents(self, literal: SyntaxNode) -> set[Atom]:
        atoms: set[Atom] = set(self.items.get(literal, NO_VALUE))
        for child in literal.children:
            inner = child.get("value") if child.kind == "pair" else child
            if inner is not None and inner.value and inner.value != UNKNOWN_VALUE:
                atoms.update(inner.value)
        if literal.kind == "arguments":
            # A collection contains the items of the list it was created from.
            lists = [atom.node for atom in atoms if isinstance(atom, Literal) and atom.node.kind == "array"]
            atoms.update(*map(self._contents, lists))
        return atoms


def _inherited(atom: Atom) -> Atom:
    if isinstance(atom, Func):
        return Path(UNKNOWN_FUNCTION)
    if isinstance(atom, Path) and not is_namespace(atom.name):
        return Path(UNKNOWN_FUNCTION)
    if isinstance(atom, Path):
        return ANY
    return Path(UNKNOWN_MEMBER if atom == ANY else UNKNOWN_PROPERTY)


def without_local_paths(value: Value) -> Value:
    """Return `value` without the names that are meaningful only where they are written."""
    remaining = frozenset(atom for atom in value if not (isinstance(atom, Path) and atom.name in _LOCAL))
    if len(remaining) == len(value):
        return remaining
    # The constructor of an unknown value, which may be a function, stays one to call with care.
    return remaining | ({ANY, Path(UNKNOWN_FUNCTION)} if Path("?.constructor") in value else {ANY})


_LOCAL = words("""
?.constructor ?.constructor.prototype Object.prototype Function.prototype String Number Boolean Array Object
""")


def _constructor(atom: Atom) -> str:
    if isinstance(atom, Func):
        return "Function"
    if isinstance(atom, Literal):
        return "Array" if atom.node.kind == "array" else "Object"
    if isinstance(atom, Const):
        return {str: "String", tuple: "Array", bool: "Boolean"}.get(type(atom.value), "Number")
    return "String" if isinstance(atom, PartialText) else "?.constructor"


def _constant_member(atom: Const, name: str) -> Value:
    if isinstance(atom.value, str | tuple):
        if name == "length":
            return const(len(atom.value))
        if name.isdigit() and int(name) < len(atom.value):
            return const(atom.value[int(name)])
    return UNKNOWN_VALUE
