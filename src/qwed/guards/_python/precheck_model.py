"""Data of the pre-check: scopes with their names, calls, bindings and texts."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field


class NeedsFullCheckError(Exception):
    """The program contains something that only the full check can decide."""


@dataclass(eq=False, slots=True)
class PrecheckScope:
    """Module, class, function or comprehension with the names it binds and uses."""

    kind: str
    outer: "PrecheckScope | None"
    label: str
    level: Iterable[ast.AST]
    depth: int
    defined: set[str] = field(default_factory=set)
    """Names bound by an import, a function or a class."""
    values: set[str] = field(default_factory=set)
    """Names bound otherwise: parameters and assignments."""
    loaded: set[str] = field(default_factory=set)
    called: set[str] = field(default_factory=set)
    """Names used as the function of a call; `loaded` has the other uses."""

    def unbound(self) -> set[str]:
        """Return the used names that neither this scope nor an outer one binds."""
        names = (self.loaded | self.called) - self.defined - self.values
        outer = self.outer
        while names and outer is not None:
            if outer.kind != "class":
                names = names - outer.defined - outer.values
            outer = outer.outer
        return names


@dataclass(slots=True)
class Survey:
    """Data collected from a program."""

    scopes: list[PrecheckScope]
    attributes: set[str] = field(default_factory=set)
    methods: set[str] = field(default_factory=set)
    """Attributes used as the function of a call; `attributes` has the others."""
    bare: set[str] = field(default_factory=set)
    """Names used other than as the owner of an attribute."""
    uses: set[tuple[str, str]] = field(default_factory=set)
    """Names, and the dotted attributes used of them."""
    own: set[str] = field(default_factory=set)
    """Names (`self`, `cls`) through which methods access private attributes."""
    fields: set[str] = field(default_factory=set)
    """Attributes that are assigned."""
    assigned_owners: set[str] = field(default_factory=set)
    """First names of the dotted names that are assigned: `a` of `a.b.c = 1`."""
    words: set[str] = field(default_factory=set)
    """Keywords of calls."""
    texts: list[str] = field(default_factory=list)
    """Texts with an underscore or a bracket."""
    imports: list[tuple[str, str, str]] = field(default_factory=list)
    """Module, imported name or "", and the alias."""
    calls: list[ast.Call] = field(default_factory=list)
    subscripts: list[ast.Subscript] = field(default_factory=list)
    bindings: list[tuple[ast.expr, ast.expr]] = field(default_factory=list)
    """Targets, and the values they are assigned or iterate over."""
    results: list[tuple[str, ast.expr]] = field(default_factory=list)
    """Function names, and the values they return."""
    functions: list[tuple[tuple[str, ...], ast.arguments]] = field(default_factory=list)
    """Names by which a function is called, and its parameters."""
    annotations: list[tuple[ast.expr, PrecheckScope]] = field(default_factory=list)
    loops: int = 0
    """Number of comprehensions and lambdas."""
    parameters: int = 0
