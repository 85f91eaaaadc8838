"""What every expression of a program may be: names, fields and calls followed until nothing new is found.

Order does not count: a name may be whatever it is given anywhere. The fields of all objects are taken together by
name, so a value put into one object is found in whichever object it is read from.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from qwed.guards._javascript.atoms import (
    ANY,
    FLOOD,
    MAX_ATOMS,
    NOTHING,
    SOMETHING,
    Atom,
    Const,
    Func,
    Literal,
    Part,
    Path,
    Value,
    bounded,
    const,
    joined,
    keys,
)
from qwed.guards._javascript.names import step
from qwed.guards._javascript.rules import words
from qwed.guards._javascript.scopes import Variable
from qwed.guards._javascript.tree import Node, Source, Unreadable

MAX_ROUNDS = 40
MAX_SPREAD = 64
"""Objects spread out in one literal; nobody writes more, so what more of them would hold is not followed."""
MAX_WORK = 600_000
MAX_INLINED_WORK = 100_000
SETTLED_ROUND = 6
"""From here on new constants are no longer followed: they come from a loop that computes ever more of them."""

_NAMES = frozenset({"identifier", "shorthand_property_identifier_pattern", "shorthand_property_identifier"})


@dataclass(slots=True)
class Values:
    """Everything known so far."""

    rules: "Mapping[str, Callable[[Values, Node], Value]]"
    """What each kind of node is worth."""
    fields: dict[str, Value] = field(default_factory=dict)
    returns: dict[Node, Value] = field(default_factory=dict)
    items: dict[Node, Value] = field(default_factory=dict)
    """What was put into an array or object after it was written."""
    spreads: dict[Node, list[Node]] = field(default_factory=dict)
    """What is spread out in each literal that was asked about."""
    changed: bool = False
    round: int = 0
    work: int = 0
    inlined: int = 0
    """How much of the work went into calling functions element by element."""
    nesting: int = 0

    def solve(self, source: Source) -> None:
        """Fill in the value of every node; Unreadable where that does not end."""
        for self.round in range(MAX_ROUNDS):
            self.changed = False
            self.evaluate(source.nodes)
            if not self.changed:
                return
        raise Unreadable("names are bound in a way that cannot be followed, write it plainly")

    def evaluate(self, nodes: list[Node]) -> None:
        """One pass over `nodes`, each after its children."""
        self.work += len(nodes)
        if self.work > MAX_WORK:
            raise Unreadable("names are bound in a way that cannot be followed, write it plainly")
        for node in nodes:
            rule = self.rules.get(node.kind)
            node.value = rule(self, node) if rule is not None else SOMETHING

    def grown(self, before: Value, more: Value) -> Value:
        """`before` and `more` together; notes whether that is news."""
        after = bounded(joined(before, more))
        if after == before:
            return before
        if self.round >= SETTLED_ROUND and any(isinstance(atom, Const | Part) for atom in after - before):
            after = bounded(after | {ANY, FLOOD})
        self.changed = self.changed or after != before
        return after

    def grow_variable(self, variable: Variable | None, value: Value) -> None:
        """The variable may also be `value`."""
        if variable is not None and value:
            variable.values = self.grown(variable.values, value)  # type: ignore[arg-type]  # atoms, by construction

    def grow_field(self, name: str, value: Value) -> None:
        """Property `name` of any object may also be `value`."""
        self.fields[name] = self.grown(self.fields.get(name, NOTHING), travelling(value))

    def bind(self, pattern: Node, value: Value) -> None:
        """Give the names in `pattern` their part of `value`."""
        pending = [(pattern, value)]
        while pending:
            here, part = pending.pop()
            if here.kind in _NAMES:
                self.grow_variable(here.variable, part)
            elif here.kind in ("member_expression", "subscript_expression"):
                self._bind_member(here, part)
            else:
                pending.extend(self._parts(here, part))

    def _parts(self, pattern: Node, value: Value) -> list[tuple[Node, Value]]:
        if pattern.kind in ("assignment_pattern", "object_assignment_pattern"):
            left, right = pattern.get("left"), pattern.get("right")
            default = right.value if right is not None and right.value else NOTHING
            return [(left, joined(value, default))] if left is not None else []
        if pattern.kind in ("object_pattern", "object"):
            return [part for child in pattern.children for part in self._property(child, value)]
        if pattern.kind in ("array_pattern", "array"):
            element = self.element(value)
            return [(child, element) for child in pattern.children]
        inner = pattern.get("pattern") or (pattern.children[0] if pattern.children else None)
        default_node = pattern.get("value") if pattern.kind.endswith("_parameter") else None
        default = default_node.value if default_node is not None and default_node.value else NOTHING
        return [(inner, joined(value, default))] if inner is not None else []

    def _property(self, child: Node, value: Value) -> list[tuple[Node, Value]]:
        """One entry of an object pattern."""
        if child.kind in ("pair_pattern", "pair"):
            key, target = child.get("key"), child.get("value")
            read = NOTHING
            for name in self.key_names(key):
                read = joined(read, self.member(value, name))
            return [(target, read or self.element(value))] if target is not None else []
        if child.kind == "rest_pattern":
            return [(child.children[0], value)] if child.children else []
        name_node = child.get("left") if child.kind == "object_assignment_pattern" else child
        return [(child, self.member(value, name_node.text))] if name_node is not None else []

    def _bind_member(self, node: Node, value: Value) -> None:
        names = self.property_names(node)
        for name in names:
            self.grow_field(name, value)
        target = node.get("object")
        if not names and target is not None:
            for atom in target.value or ():
                if isinstance(atom, Literal):
                    self.items[atom.node] = self.grown(self.items.get(atom.node, NOTHING), value)

    def key_names(self, key: Node | None) -> list[str]:
        """The names a property key of a literal can be."""
        if key is None:
            return []
        if key.kind == "computed_property_name":
            return keys(key.children[0].value or NOTHING) if key.children else []
        return [key.text] if key.text else keys(key.value or NOTHING)

    def property_names(self, node: Node) -> list[str]:
        """The names of the property that a member or subscript expression reads, as far as they are known."""
        last = node.get("property")
        if last is not None:
            return [last.text]
        index = node.get("index")
        return keys(index.value or NOTHING) if index is not None else []

    def member(self, value: Value, name: str) -> Value:
        """Property `name` of `value`."""
        if name == "constructor" and any(not isinstance(atom, Func) for atom in value):
            # Where it may be something else, whose constructor it is cannot be said.
            value = frozenset(atom for atom in value if not isinstance(atom, Func)) | {ANY}
        found: set[Atom] = set()
        for atom in value:
            found.update(self._member_of(atom, name))
        return bounded(frozenset(found))

    def _member_of(self, atom: Atom, name: str) -> Value:
        if isinstance(atom, Path):
            further = step(atom.name, name)
            return frozenset({Path(further)}) if further else joined(self.fields.get(name, NOTHING), SOMETHING)
        if name == "constructor":
            return frozenset({Path(_constructor(atom))})
        if isinstance(atom, Func) and name in ("call", "apply", "bind"):
            return frozenset({atom})
        if isinstance(atom, Const):
            return _constant_member(atom, name)
        if isinstance(atom, Literal) and name.isdigit() and int(name) < len(atom.node.children):
            return joined(atom.node.children[int(name)].value or NOTHING, self.items.get(atom.node, NOTHING))
        own = joined(self.fields.get(name, NOTHING), self._spread_member(atom, name))
        return own if own and isinstance(atom, Literal) else joined(own, SOMETHING)

    def _spread_member(self, atom: Atom, name: str) -> Value:
        """What `{...library}` has of the library's own."""
        if not isinstance(atom, Literal) or atom.node.kind != "object":
            return NOTHING
        spread = self.spreads.get(atom.node)
        if spread is None:
            spread = [child for child in atom.node.children if child.kind == "spread_element"]
            self.spreads[atom.node] = spread
        if len(spread) > MAX_SPREAD:
            return frozenset({Path("globalThis.*")})
        taken = frozenset(each for child in spread for each in child.value or NOTHING if isinstance(each, Path))
        return self.member(taken, name) if taken else NOTHING

    def element(self, value: Value) -> Value:
        """Any property of `value`: which one is not known."""
        found: set[Atom] = {ANY}
        for atom in value:
            if isinstance(atom, Path):
                further = step(atom.name, "*")
                found.update([Path(further)] if further else ())
            elif isinstance(atom, Const) and isinstance(atom.value, tuple):
                found.update(Const(each) for each in atom.value[:MAX_ATOMS])
            elif isinstance(atom, Literal):
                found.update(self._contents(atom.node))
        return bounded(frozenset(found))

    def _contents(self, literal: Node) -> set[Atom]:
        found: set[Atom] = set(self.items.get(literal, NOTHING))
        for child in literal.children:
            inner = child.get("value") if child.kind == "pair" else child
            if inner is not None and inner.value and inner.value != SOMETHING:
                found.update(inner.value)
        if literal.kind == "arguments":
            # A collection holds what the list that it was made from holds.
            lists = [atom.node for atom in found if isinstance(atom, Literal) and atom.node.kind == "array"]
            found.update(*map(self._contents, lists))
        return found


def travelling(value: Value) -> Value:
    """`value` without the names that mean something only where they are written."""
    kept = frozenset(atom for atom in value if not (isinstance(atom, Path) and atom.name in _LOCAL))
    return kept if len(kept) == len(value) else kept | {ANY}


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
    return "String" if isinstance(atom, Part) else "?.constructor"


def _constant_member(atom: Const, name: str) -> Value:
    if isinstance(atom.value, str | tuple):
        if name == "length":
            return const(len(atom.value))
        if name.isdigit() and int(name) < len(atom.value):
            return const(atom.value[int(name)])
    return SOMETHING
