"""Which name is bound to what, scope by scope, without regard to order: every binding of a name counts."""

import ast
from dataclasses import dataclass, field
from typing import NamedTuple


class TooComplex(Exception):
    """The program binds names in a way we do not follow."""


@dataclass(eq=False, slots=True)
class Scope:
    """A module, class, function or comprehension and the names it binds."""

    kind: str
    parent: "Scope | None" = None
    label: str = ""
    """What a class or function is called."""
    names: dict[str, list["Binding"]] = field(default_factory=dict)


class Binding(NamedTuple):
    """One way a name gets its value; all empty means we cannot say."""

    path: str = ""
    """A dotted name, from an import."""
    value: ast.expr | None = None
    each: ast.expr | None = None
    """The name runs over the elements of this."""
    scope: Scope | None = None
    """Where `value`, `each` or `kind` is evaluated."""
    kind: ast.expr | None = None
    """An annotation: the name holds an instance of it."""
    grows: ast.AugAssign | None = None
    """The name is extended in place."""
    loop: ast.For | None = None
    """The loop in which it is extended."""
    handed: tuple[str, ...] = ()
    """A parameter: what calls hand over under these names."""


class Signature(NamedTuple):
    """A function of the program's own."""

    parameters: tuple[str, ...]
    scope: Scope


Visit = tuple[ast.AST, Scope]
"""A node and the scope it is evaluated in; one is made of every node, so it is no type of its own."""


@dataclass(slots=True)
class Program:
    """The nodes in order, parents first, and every binding."""

    module: Scope = field(default_factory=lambda: Scope("module"))
    scopes: list[Scope] = field(default_factory=list)
    visits: list[Visit] = field(default_factory=list)
    loose: set[str] = field(default_factory=set)
    """Names declared global or nonlocal somewhere: their bindings in all scopes are taken together."""
    stars: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)
    """Every module the program imports."""
    roots: set[str] = field(default_factory=set)
    """The first word of each."""
    shared: Scope = field(default_factory=lambda: Scope("module"))
    """Holds every binding of the loose names."""
    settled: set[int] = field(default_factory=set)
    """Names that an assignment has bound already, by id."""
    results: Scope = field(default_factory=lambda: Scope("module"))
    """What functions of a name give back, whichever function it is."""
    fields: Scope = field(default_factory=lambda: Scope("module"))
    """What attributes of a name are set to, whichever object has them."""
    functions: dict[str, list[Signature]] = field(default_factory=dict)
    methods: set[str] = field(default_factory=set)
    """Every name that the program defines in a class."""
    classes: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    """Every attribute the program names, without leading underscores."""
    lambdas: dict[int, str] = field(default_factory=dict)
    """The name each lambda is given, by id."""
    handed: Scope = field(default_factory=lambda: Scope("module"))
    """What calls hand over, as `function:position` and `function=keyword`, whichever function of that name it is."""
    mutated: set[str] = field(default_factory=set)
    """Names whose value is changed in place."""
    deleted: set[str] = field(default_factory=set)
    shadowed: set[str] = field(default_factory=set)
    """Names that the module binds for itself before it uses them."""
    comprehensions: dict[int, Scope] = field(default_factory=dict)
    """The scope of each comprehension, by id."""

    def lookup(self, name: str, scope: Scope) -> tuple[list[Scope], bool]:
        """The scopes that may hold `name`, and whether it may also be a builtin."""
        if name in self.loose:
            return [self.shared] if name in self.shared.names else [], True
        found: list[Scope] = []
        here: Scope | None = scope
        while here is not None:
            if name in here.names and (here is scope or here.kind != "class"):
                found.append(here)
                if here.kind in ("function", "comprehension"):
                    return found, False
            here = here.parent
        return found, True
