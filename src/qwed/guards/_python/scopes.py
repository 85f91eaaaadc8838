"""Scopes and bindings of a program; all bindings of a name count, in any order."""

import ast
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar


class TooComplexError(Exception):
    """The program binds names in a way that is not followed."""


@dataclass(eq=False, slots=True)
class Scope:
    """Module, class, function or comprehension, and the names it binds."""

    kind: str
    parent: "Scope | None" = None
    label: str = ""
    """Name of a class or function."""
    names: dict[str, list["Binding"]] = field(default_factory=dict)


class Binding(NamedTuple):
    """One way a name gets its value; all fields empty if the value is unknown."""

    path: str = ""
    """Dotted name from an import."""
    value: ast.expr | None = None
    iterates: ast.expr | None = None
    """Expression over whose elements the name iterates."""
    scope: Scope | None = None
    """Scope in which `value`, `iterates` or `kind` is evaluated."""
    kind: ast.expr | None = None
    """Annotation: the name holds an instance of it."""
    augments: ast.AugAssign | None = None
    """Statement that extends the name in place."""
    loop: ast.For | None = None
    """Loop in which it is extended."""
    call_arguments: tuple[str, ...] = ()
    """For a parameter: keys of the call arguments passed to it."""


class Signature(NamedTuple):
    """Function of the program."""

    parameters: tuple[str, ...]
    scope: Scope


Node = TypeVar("Node", bound=ast.AST)
_BARE_FIELDS = frozenset({"ctx", "op"})
Visit = tuple[ast.AST, Scope]
"""Node and the scope in which it is evaluated; a plain tuple because there is one for every node."""


@dataclass(slots=True)
class Program:
    """All nodes in order, parents first, and every binding."""

    module: Scope = field(default_factory=lambda: Scope("module"))
    scopes: list[Scope] = field(default_factory=list)
    visits: list[Visit] = field(default_factory=list)
    unknown: set[str] = field(default_factory=set)
    """Names of the kinds of nodes that are not understood."""
    global_names: set[str] = field(default_factory=set)
    """Names declared global or nonlocal somewhere: their bindings in all scopes are merged."""
    star_imports: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)
    """All imported modules."""
    roots: set[str] = field(default_factory=set)
    """Top-level names of the imported modules."""
    shared: Scope = field(default_factory=lambda: Scope("module"))
    """Scope with every binding of the global names."""
    bound_targets: set[int] = field(default_factory=set)
    """Ids of names that an assignment has already bound."""
    results: Scope = field(default_factory=lambda: Scope("module"))
    """Return values by function name, merged over all functions of that name."""
    fields: Scope = field(default_factory=lambda: Scope("module"))
    """Assigned values by attribute name, merged over all objects."""
    functions: dict[str, list[Signature]] = field(default_factory=dict)
    methods: set[str] = field(default_factory=set)
    """All names defined in a class."""
    classes: set[str] = field(default_factory=set)
    lambdas: dict[int, str] = field(default_factory=dict)
    """Name of each lambda, by id."""
    calls: list[tuple[ast.Call, Scope]] = field(default_factory=list)
    call_names: set[str] = field(default_factory=set)
    """Names by which functions of the program are called."""
    call_arguments: Scope = field(default_factory=lambda: Scope("module"))
    """Call arguments as `function:position` and `function=keyword`, merged over all functions of that name."""
    mutated: set[str] = field(default_factory=set)
    """Names whose value is changed in place."""
    deleted: set[str] = field(default_factory=set)
    shadowed: set[str] = field(default_factory=set)
    """Names of dangerous builtins that the module defines before it uses them."""
    comprehensions: dict[int, Scope] = field(default_factory=dict)
    """Scope of each comprehension, by id."""

    def nodes(self, kind: type[Node]) -> list[Node]:
        """Return the nodes of one kind, in order."""
        return [node for node, _ in self.visits if isinstance(node, kind)]

    def count(self) -> int:
        """Return the number of all nodes, contexts and operators included."""
        bare = sum(not _BARE_FIELDS.isdisjoint(node._fields) for node, _ in self.visits)
        return len(self.visits) + bare + sum(len(node.ops) for node in self.nodes(ast.Compare))

    def free_bindings(self) -> None:
        """Drop the bindings, which refer to the scopes that hold them: the program is freed without a search for
        cycles."""
        for scope in self.scopes:
            scope.names.clear()

    def lookup(self, name: str, scope: Scope) -> tuple[list[Scope], bool]:
        """Return the scopes that may hold `name`, and True if it may also be a builtin."""
        if name in self.global_names:
            return [self.shared] if name in self.shared.names else [], True
        scopes: list[Scope] = []
        current: Scope | None = scope
        while current is not None:
            if name in current.names and (current is scope or current.kind != "class"):
                scopes.append(current)
                if current.kind in ("function", "comprehension"):
                    return scopes, False
            current = current.parent
        return scopes, True
