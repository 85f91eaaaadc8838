"""What a survey of a program gathers: its places and the names in each, its calls, bindings and texts."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field


class Unplain(Exception):
    """The program holds something that only the full check can judge."""


@dataclass(eq=False, slots=True)
class Place:
    """A module, class, function or comprehension: the names it binds and those it asks for."""

    kind: str
    outer: "Place | None"
    label: str
    level: Iterable[ast.AST]
    depth: int
    defined: set[str] = field(default_factory=set)
    """By an import, a function or a class."""
    values: set[str] = field(default_factory=set)
    """By anything else: parameters, and what is set."""
    loaded: set[str] = field(default_factory=set)
    called: set[str] = field(default_factory=set)
    """Asked for as the function of a call; `loaded` has the others."""

    def unbound(self) -> set[str]:
        """The names it asks for that neither it nor a place around it binds."""
        names = (self.loaded | self.called) - self.defined - self.values
        outer = self.outer
        while names and outer is not None:
            if outer.kind != "class":
                names = names - outer.defined - outer.values
            outer = outer.outer
        return names


@dataclass(slots=True)
class Survey:
    """What a program consists of."""

    places: list[Place]
    attributes: set[str] = field(default_factory=set)
    methods: set[str] = field(default_factory=set)
    """Attributes that are the function of a call; `attributes` has the others."""
    own: set[str] = field(default_factory=set)
    """Private attributes that a method asks of its own object."""
    fields: set[str] = field(default_factory=set)
    """Attributes that are set."""
    words: set[str] = field(default_factory=set)
    """Keywords of calls."""
    texts: list[str] = field(default_factory=list)
    """Those with an underscore."""
    imports: list[tuple[str, str, str]] = field(default_factory=list)
    """Module, name in it or nothing, and the name it is given here."""
    calls: list[ast.Call] = field(default_factory=list)
    subscripts: list[ast.Subscript] = field(default_factory=list)
    bindings: list[tuple[ast.expr, ast.expr]] = field(default_factory=list)
    """Targets and what they are set to, or run over."""
    results: list[tuple[str, ast.expr]] = field(default_factory=list)
    """What the functions of a name give back."""
    functions: list[tuple[tuple[str, ...], ast.arguments]] = field(default_factory=list)
    """The names that a function is called by, and its parameters."""
    annotations: list[tuple[ast.expr, Place]] = field(default_factory=list)
    loops: int = 0
    """Comprehensions and lambdas."""
    parameters: int = 0
