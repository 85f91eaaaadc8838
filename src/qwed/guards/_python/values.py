"""What an expression may be: a dotted library name, or a value that a library made."""

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from qwed.guards._python.scopes import Binding, Program, Scope, TooComplex
from qwed.guards._python.tables import (
    ALIASES,
    ASSUMED,
    BUILTINS,
    DANGEROUS_BUILTINS,
    KNOWN,
    RETURNS,
    RULES,
    TOLD_OF,
    words,
)

MAX_EVALUATIONS = 44
"""How often a name is looked at again, on average."""
FEW_EVALUATIONS = 10_000
"""However few names there are."""
PASS_SHARE = 20
"""Going through the names once costs as much as looking at one in so many."""
MAX_PATHS = 400
MAX_STARS = 20
MAX_NESTING = 60
MAX_SEGMENTS = 6

Paths = frozenset[str]
Key = tuple[int, str]
"""A scope, by id, and a name in it."""
NOTHING: Paths = frozenset()

REROOTED = words("""
os sys subprocess builtins importlib imp ctypes pickle marshal shutil socket inspect gc types io codecs posix pty
runpy multiprocessing tempfile linecache tokenize copyreg bltns posixsubprocess winapi
""")
"""A library that imports one of these offers it as an attribute: `random._os.system` is `os.system`."""


POWERFUL = REROOTED - words("types io codecs tokenize linecache copyreg tempfile")
"""Those of them that nobody hands on for a harmless reason."""


def canonical(path: str) -> str:
    """The name a dotted path really has; what a library made and nobody knows further is its `root()`."""
    parts = path.split(".")
    for index in range(len(parts) - 1, 0, -1):
        bare = parts[index].lstrip("_")
        if bare in REROOTED and ".".join(parts[: index + 1]) not in KNOWN:
            parts = ["builtins" if bare == "bltns" else bare, *parts[index + 1 :]]
            break
    root = ALIASES.get(parts[0], parts[0])
    if root.startswith("_") and root not in RULES and root.lstrip("_") in RULES:
        root = root.lstrip("_")
    whole = ".".join([root, *parts[1:]])
    whole = RETURNS.get(whole, whole)
    return root.partition(".")[0].partition("(")[0] + "()" if "()" in whole and whole not in KNOWN else whole


def extended(bases: Paths, attribute: str) -> Paths:
    """The names that an attribute of these has; past what the rows tell apart a name grows no longer."""
    telling = attribute.startswith("_") or attribute in REROOTED
    return frozenset(
        canonical(f"{base}.{attribute}") if _grows(base, telling or _is_told_of(base, attribute)) else base
        for base in bases
    )


def _is_told_of(base: str, attribute: str) -> bool:
    return "(" not in base and attribute in TOLD_OF.get(base.partition(".")[0], ())


def _grows(base: str, telling: bool) -> bool:
    if base in KNOWN or base in BUILTINS:
        return True
    return telling and base.count(".") < MAX_SEGMENTS and base.partition(".")[0] not in BUILTINS


def _can_mean(binding: Binding) -> bool:
    """Whether a name may stand for something of a library by this."""
    told = binding.path or binding.handed or binding.kind is not None
    return bool(told) or type(binding.value) in _READERS or type(binding.each) in _READERS


def _made(paths: Paths) -> Paths:
    """What calling these gives back, where a row asks for it."""
    return frozenset(canonical(f"{path}()") for path in paths) & KNOWN


@dataclass(slots=True)
class Values:
    """The possible values of every name of a program."""

    program: Program
    known: dict[Key, Paths] = field(default_factory=dict)
    readers: dict[Key, set[Key]] = field(default_factory=dict)
    """Which names were settled by what each of them stands for."""
    asking: Key | None = None
    """The name that is being settled."""
    cache: dict[int, Paths] | None = None
    """What every node that was asked about may stand for, by id, once the names are settled."""
    settled: dict[tuple[str, int], Paths] = field(default_factory=dict)
    """The same for every name that was asked about, by its scope."""
    texts: Callable[[ast.expr, Scope], list[str]] = lambda _node, _scope: []
    """The texts an expression can be, for `getattr`."""

    def settle(self) -> None:
        """Repeat until no name gains a meaning; TooComplex where that does not end."""
        if len(self.program.stars) > MAX_STARS:
            raise TooComplex
        keys = self._telling()
        stale: set[Key] = {(id(scope), name) for scope, name in keys}
        budget = MAX_EVALUATIONS * len(keys) + FEW_EVALUATIONS
        while stale:
            budget -= len(keys) // PASS_SHARE + len(stale)
            if budget < 0:
                raise TooComplex
            self._pass(keys, stale)
            # Most names are bound before they are used; chains of them run either way, so both directions take turns.
            keys.reverse()
        self.asking, self.cache = None, {}

    def _telling(self) -> list[tuple[Scope, str]]:
        """The names that can mean anything at all: most hold plain values, and most calls are of no function here."""
        names = [
            (scope, name)
            for scope in self.program.scopes
            for name, bindings in scope.names.items()
            if any(map(_can_mean, bindings))
        ]
        handed = self.program.handed
        asked = {key for scope, name in names for binding in scope.names[name] for key in binding.handed}
        return [(scope, name) for scope, name in names if scope is not handed or name in asked]

    def _pass(self, keys: list[tuple[Scope, str]], stale: set[Key]) -> None:
        """Look once at every name that one of its sources has changed for."""
        for scope, name in keys:
            key = (id(scope), name)
            if key not in stale:
                continue
            stale.discard(key)
            self.asking = key
            before = self.known.get(key, NOTHING)
            after = before.union(*[self._bound(binding) for binding in scope.names[name]])
            if len(after) > MAX_PATHS:
                raise TooComplex
            if after != before:
                self.known[key] = after
                stale |= self.readers.get(key, set())

    def _told(self, key: Key) -> Paths:
        """What a name is known to stand for so far; whoever asks is asked again when that grows."""
        if self.asking is not None:
            self.readers.setdefault(key, set()).add(self.asking)
        return self.known.get(key, NOTHING)

    def _bound(self, binding: Binding) -> Paths:
        if binding.path:
            return frozenset({canonical(binding.path)})
        if binding.scope is None:
            return NOTHING
        found = self.instances(binding.kind, binding.scope) if binding.kind is not None else NOTHING
        for node in (binding.value, binding.each):
            if node is not None:
                found |= self.paths(node, binding.scope)
        handed = id(self.program.handed)
        return found.union(*[self._told((handed, key)) for key in binding.handed])

    def instances(self, annotation: ast.expr, scope: Scope) -> Paths:
        """The library values that an annotation promises."""
        if isinstance(annotation, ast.BinOp):
            return self.instances(annotation.left, scope) | self.instances(annotation.right, scope)
        if isinstance(annotation, ast.Subscript):
            inner = annotation.slice
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return NOTHING.union(*(self.instances(part, scope) for part in parts))
        if not isinstance(annotation, ast.Name | ast.Attribute):
            return NOTHING
        return _made(frozenset(path for path in self.paths(annotation, scope) if "." in path))

    def paths(self, node: ast.expr, scope: Scope, depth: int = 0) -> Paths:
        """The library names `node` may stand for; empty where it is a value of the program's own."""
        if depth > MAX_NESTING:
            if isinstance(node, ast.IfExp | ast.BoolOp | ast.NamedExpr):
                raise TooComplex
            return NOTHING
        reader = _READERS.get(type(node))
        if reader is None or self.cache is None:
            return reader(self, node, scope, depth + 1) if reader else NOTHING
        if id(node) not in self.cache:
            self.cache[id(node)] = reader(self, node, scope, depth + 1)
        return self.cache[id(node)]

    def _name(self, node: ast.Name, scope: Scope, _depth: int) -> Paths:
        return self.named(node.id, scope)

    def _attribute(self, node: ast.Attribute, scope: Scope, depth: int) -> Paths:
        bases = self.paths(node.value, scope, depth)
        return extended(bases, node.attr) or self._told((id(self.program.fields), node.attr))

    def _inside(self, node: ast.NamedExpr | ast.Await | ast.Starred | ast.YieldFrom, scope: Scope, depth: int) -> Paths:
        return self.paths(node.value, scope, depth)

    def _choice(self, node: ast.IfExp, scope: Scope, depth: int) -> Paths:
        return self.paths(node.body, scope, depth) | self.paths(node.orelse, scope, depth)

    def _any(self, node: ast.BoolOp | ast.List | ast.Tuple | ast.Set, scope: Scope, depth: int) -> Paths:
        parts = node.values if isinstance(node, ast.BoolOp) else node.elts
        return NOTHING.union(*(self.paths(part, scope, depth) for part in parts))

    def _comprehended(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, scope: Scope, depth: int) -> Paths:
        inner = self.program.comprehensions.get(id(node), scope)
        return frozenset(path for path in self.paths(node.elt, inner, depth) if "()" in path)

    def _subscript(self, node: ast.Subscript, scope: Scope, depth: int) -> Paths:
        return frozenset(path for path in self.paths(node.value, scope, depth) if "()" in path)

    def _operation(self, node: ast.BinOp, scope: Scope, depth: int) -> Paths:
        made = self.paths(node.left, scope, depth) | self.paths(node.right, scope, depth)
        return frozenset(path for path in made if "()" in path)

    def _call(self, node: ast.Call, scope: Scope, depth: int) -> Paths:
        func = node.func
        functions = self.paths(func, scope, depth)
        if "getattr" in functions and len(node.args) > 1:
            base = self.paths(node.args[0], scope, depth)
            return NOTHING.union(*(extended(base, text) for text in self.texts(node.args[1], scope)))
        made = _made(functions)
        passing = functions & _PASSING
        if passing:
            made |= NOTHING.union(*(self._values(argument, scope, depth) for argument in node.args))
        name = func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""
        return made | self._told((id(self.program.results), name))

    def _values(self, node: ast.expr, scope: Scope, depth: int) -> Paths:
        return frozenset(path for path in self.paths(node, scope, depth) if "()" in path)

    def named(self, name: str, scope: Scope) -> Paths:
        """The library names the variable `name` may stand for."""
        if self.cache is None:
            return self._named(name, scope)
        key = (name, id(scope))
        if key not in self.settled:
            self.settled[key] = self._named(name, scope)
        return self.settled[key]

    def _named(self, name: str, scope: Scope) -> Paths:
        homes, outside, name = self._homes(name, scope)
        found = NOTHING.union(*[self._told((id(home), name)) for home in homes])
        if not outside:
            return found
        return found | self._ambient(name, bool(homes))

    def _ambient(self, name: str, bound: bool) -> Paths:
        """What `name` means outside the program's own scopes."""
        found = {canonical(f"{star}.{name}") for star in self.program.stars if f"{star}.{name}" in RULES}
        # A builtin stays in play beside a module's own name: it may be used before that is bound, or after `del`.
        if name in DANGEROUS_BUILTINS or name == "open":
            if not bound or name in self.program.deleted or name not in self.program.shadowed:
                found.add(name)
        elif not bound and name in BUILTINS:
            found.add(name)
        elif not bound:
            found |= {canonical(f"{star}.{name}") for star in self.program.stars}
            if name in ASSUMED and not self.program.stars:
                found.add(canonical(ASSUMED[name]))
        return frozenset(found)

    def _homes(self, name: str, scope: Scope) -> tuple[list[Scope], bool, str]:
        homes, outside = self.program.lookup(name, scope)
        if homes or not name.startswith("__") or name.endswith("__"):
            return homes, outside, name
        mangled = _mangled(name, scope)
        return *self.program.lookup(mangled, scope), mangled

    def bound(self, name: str, scope: Scope) -> bool:
        """Whether the program itself gives `name` a value."""
        return bool(self._homes(name, scope)[0])

    def assumed(self, name: str, scope: Scope) -> bool:
        """Whether `name` has a meaning only because everybody uses it so."""
        return name in ASSUMED and name not in BUILTINS and not self.bound(name, scope)

    def defined(self, name: str, scope: Scope) -> bool:
        """Whether the program or Python itself gives `name` a value."""
        homes, _, name = self._homes(name, scope)
        ambient = name in BUILTINS or name in DANGEROUS_BUILTINS or name == "open" or name in ASSUMED
        return bool(homes) or ambient or bool(self.program.stars)


def _mangled(name: str, scope: Scope) -> str:
    """A private name as the innermost class spells it."""
    here: Scope | None = scope
    while here is not None and here.kind != "class":
        here = here.parent
    return f"_{here.label.lstrip('_')}{name}" if here is not None else name


_PASSING = words("next iter list tuple set sorted reversed enumerate filter max min map zip")
"""Builtins that give back what they were given."""
_READERS: dict[type[ast.expr], Callable[..., Paths]] = {
    ast.Name: Values._name,
    ast.Attribute: Values._attribute,
    ast.NamedExpr: Values._inside,
    ast.Await: Values._inside,
    ast.Starred: Values._inside,
    ast.YieldFrom: Values._inside,
    ast.IfExp: Values._choice,
    ast.BoolOp: Values._any,
    ast.List: Values._any,
    ast.Tuple: Values._any,
    ast.Set: Values._any,
    ast.ListComp: Values._comprehended,
    ast.SetComp: Values._comprehended,
    ast.GeneratorExp: Values._comprehended,
    ast.Subscript: Values._subscript,
    ast.BinOp: Values._operation,
    ast.Call: Values._call,
}
