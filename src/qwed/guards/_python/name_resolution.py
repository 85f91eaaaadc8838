"""Name resolution: the dotted library names that an expression may stand for."""

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from qwed.guards._python.library_rules import (
    ALIASES,
    ASSUMED,
    BUILTINS,
    DANGEROUS_BUILTINS,
    EFFECT_NAMES,
    KNOWN_PREFIXES,
    RETURNS,
    RULES,
    cached,
    words,
)
from qwed.guards._python.module_names import MODULES, names_of
from qwed.guards._python.scopes import Binding, Program, Scope, TooComplexError
from qwed.guards._python.syntax import dotted_name

MAX_EVALUATIONS = 44
"""Average number of evaluations per name."""
FEW_EVALUATIONS = 10_000
"""Evaluations allowed in addition, for small programs."""
PASS_SHARE = 20
"""Names skipped in one pass that cost as much as one evaluation."""
MAX_PATHS = 400
MAX_STARS = 20
MAX_NESTING = 60
MAX_SEGMENTS = 6

Paths = frozenset[str]
Key = tuple[int, str]
"""Id of a scope, and a name in it."""
NO_PATHS: Paths = frozenset()

REACHABLE_MODULES = words("""
os sys subprocess builtins importlib imp ctypes pickle marshal shutil socket inspect gc types io codecs posix pty
runpy multiprocessing tempfile linecache tokenize copyreg bltns posixsubprocess winapi
""")
"""Modules that are accessible as attributes of libraries that import them: `random._os.system` is `os.system`."""


POWERFUL_MODULES = REACHABLE_MODULES - words("types io codecs tokenize linecache copyreg tempfile")
"""Reachable modules that have no harmless use as a value."""


OWN_MODULE = "sys.modules[__name__]"
"""Path of the program's own module."""
_OWN_MODULE_NAMES = words("__name__ __package__ __module__")


@cached
def canonical_path(path: str) -> str:
    """Return the canonical form of a dotted path; an unknown result of a library becomes its `root()`."""
    parts = path.split(".")
    for index in range(len(parts) - 1, 0, -1):
        bare = parts[index].lstrip("_")
        path_so_far = ".".join(parts[: index + 1])
        if bare in REACHABLE_MODULES and path_so_far not in KNOWN_PREFIXES and path_so_far not in MODULES:
            parts = ["builtins" if bare == "bltns" else bare, *parts[index + 1 :]]
            break
    root = ALIASES.get(parts[0], parts[0])
    if root.startswith("_") and root not in RULES and root not in MODULES:
        bare = root.lstrip("_")
        root = bare if bare in RULES or bare in MODULES else root
    whole = ".".join([root, *parts[1:]])
    whole = RETURNS.get(whole, whole)
    if "()" not in whole or whole in KNOWN_PREFIXES:
        return whole
    value = root.partition(".")[0].partition("(")[0] + "()"
    member = f"{value}.{whole.rpartition('.')[2]}"
    return member if member in RULES else value


def extend_paths(bases: Paths, attribute: str) -> Paths:
    """Return the paths of an attribute of these; beyond the rules a path does not grow."""
    is_relevant = attribute.startswith("_") or attribute in REACHABLE_MODULES
    return frozenset(
        canonical_path(f"{base}.{attribute}")
        if _can_extend(base, is_relevant or _has_effect_name(base, attribute))
        else base
        for base in bases
    )


def _has_effect_name(base: str, attribute: str) -> bool:
    return "(" not in base and attribute in EFFECT_NAMES.get(base.partition(".")[0], ())


def _can_extend(base: str, is_relevant: bool) -> bool:
    if base in KNOWN_PREFIXES or base in BUILTINS or base in MODULES:
        return True
    return is_relevant and base.count(".") < MAX_SEGMENTS and base.partition(".")[0] not in BUILTINS


def _can_be_library(binding: Binding) -> bool:
    """Return True if the binding may give the name a library meaning."""
    has_source = binding.path or binding.call_arguments or binding.kind is not None
    return bool(has_source) or type(binding.value) in _READERS or type(binding.iterates) in _READERS


def _returned_values(paths: Paths) -> Paths:
    """Return the results of calling these, as far as a rule refers to them."""
    return frozenset(canonical_path(f"{path}()") for path in paths) & KNOWN_PREFIXES


@dataclass(slots=True)
class NameResolver:
    """Possible library meanings of every name of a program."""

    program: Program
    meanings: dict[Key, Paths] = field(default_factory=dict)
    dependents: dict[Key, set[Key]] = field(default_factory=dict)
    """Names that depend on each name."""
    current: Key | None = None
    """Name being resolved."""
    node_paths: dict[int, Paths] | None = None
    """Cached meanings of nodes by id; None until all names are resolved."""
    name_paths: dict[tuple[str, int], Paths] = field(default_factory=dict)
    """Cached meanings of names by scope."""
    meaningful: set[str] = field(default_factory=set)
    """Names with a library meaning in some scope; empty until all names are resolved."""
    texts: Callable[[ast.expr, Scope], list[str]] = lambda _node, _scope: []
    """Possible texts of an expression, for `getattr`."""

    def resolve_all(self) -> None:
        """Repeat until no name gains a meaning; raise TooComplexError if the limit is reached."""
        if len(self.program.star_imports) > MAX_STARS:
            raise TooComplexError
        keys = self._relevant_names()
        stale: set[Key] = {(id(scope), name) for scope, name in keys}
        budget = MAX_EVALUATIONS * len(keys) + FEW_EVALUATIONS
        while stale:
            budget -= len(keys) // PASS_SHARE + len(stale)
            if budget < 0:
                raise TooComplexError
            self._pass(keys, stale)
            # Most names are bound before they are used; chains run in both directions, so alternate the direction.
            keys.reverse()
        self.current, self.node_paths = None, {}
        self.meaningful.update(name for _, name in self.meanings)

    def _relevant_names(self) -> list[tuple[Scope, str]]:
        """Return the names that can have a library meaning: most hold plain values, and most calls are of other
        functions."""
        names = [
            (scope, name)
            for scope in self.program.scopes
            for name, bindings in scope.names.items()
            if any(map(_can_be_library, bindings))
        ]
        arguments = self.program.call_arguments
        used_keys = {key for scope, name in names for binding in scope.names[name] for key in binding.call_arguments}
        return [(scope, name) for scope, name in names if scope is not arguments or name in used_keys]

    def _pass(self, keys: list[tuple[Scope, str]], stale: set[Key]) -> None:
        """Evaluate once every name that depends on a changed one."""
        for scope, name in keys:
            key = (id(scope), name)
            if key not in stale:
                continue
            stale.discard(key)
            self.current = key
            before = self.meanings.get(key, NO_PATHS)
            after = before.union(*[self._bound(binding) for binding in scope.names[name]])
            if len(after) > MAX_PATHS:
                raise TooComplexError
            if after != before:
                self.meanings[key] = after
                stale |= self.dependents.get(key, set())

    def _meaning_of(self, key: Key) -> Paths:
        """Return the meanings known so far, and register the current name as a dependent."""
        if self.current is not None:
            self.dependents.setdefault(key, set()).add(self.current)
        return self.meanings.get(key, NO_PATHS)

    def _bound(self, binding: Binding) -> Paths:
        if binding.path:
            return frozenset({canonical_path(binding.path)})
        if binding.scope is None:
            return NO_PATHS
        paths = self.instances(binding.kind, binding.scope) if binding.kind is not None else NO_PATHS
        for node in (binding.value, binding.iterates):
            if node is not None:
                paths |= self.paths(node, binding.scope)
        arguments = id(self.program.call_arguments)
        return paths.union(*[self._meaning_of((arguments, key)) for key in binding.call_arguments])

    def instances(self, annotation: ast.expr, scope: Scope) -> Paths:
        """Return the library values that an annotation declares."""
        if isinstance(annotation, ast.BinOp):
            return self.instances(annotation.left, scope) | self.instances(annotation.right, scope)
        if isinstance(annotation, ast.Subscript):
            inner = annotation.slice
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return NO_PATHS.union(*(self.instances(part, scope) for part in parts))
        if not isinstance(annotation, ast.Name | ast.Attribute):
            return NO_PATHS
        return _returned_values(frozenset(path for path in self.paths(annotation, scope) if "." in path))

    def paths(self, node: ast.expr, scope: Scope, depth: int = 0) -> Paths:
        """Return the library names `node` may stand for; empty if it is a value of the program."""
        if depth > MAX_NESTING:
            if isinstance(node, ast.IfExp | ast.BoolOp | ast.NamedExpr):
                raise TooComplexError
            return NO_PATHS
        reader = _READERS.get(type(node))
        if reader is None or self.node_paths is None:
            return reader(self, node, scope, depth + 1) if reader else NO_PATHS
        if id(node) not in self.node_paths:
            self.node_paths[id(node)] = reader(self, node, scope, depth + 1)
        return self.node_paths[id(node)]

    def _name(self, node: ast.Name, scope: Scope, _depth: int) -> Paths:
        return self.paths_of_name(node.id, scope)

    def _attribute(self, node: ast.Attribute, scope: Scope, depth: int) -> Paths:
        bases = self.paths(node.value, scope, depth)
        return self.extend(bases, node.attr) or self._meaning_of((id(self.program.fields), node.attr))

    def extend(self, bases: Paths, attribute: str) -> Paths:
        """Return the paths of an attribute of these; an attribute of the program's own module is a name of it."""
        if OWN_MODULE not in bases:
            return extend_paths(bases, attribute)
        return extend_paths(bases - {OWN_MODULE}, attribute) | self.paths_of_name(attribute, self.program.module)

    def _inside(self, node: ast.NamedExpr | ast.Await | ast.Starred | ast.YieldFrom, scope: Scope, depth: int) -> Paths:
        return self.paths(node.value, scope, depth)

    def _choice(self, node: ast.IfExp, scope: Scope, depth: int) -> Paths:
        return self.paths(node.body, scope, depth) | self.paths(node.orelse, scope, depth)

    def _any(self, node: ast.BoolOp | ast.List | ast.Tuple | ast.Set, scope: Scope, depth: int) -> Paths:
        parts = node.values if isinstance(node, ast.BoolOp) else node.elts
        return NO_PATHS.union(*(self.paths(part, scope, depth) for part in parts))

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, scope: Scope, depth: int) -> Paths:
        inner = self.program.comprehensions.get(id(node), scope)
        return frozenset(path for path in self.paths(node.elt, inner, depth) if "()" in path)

    def _subscript(self, node: ast.Subscript, scope: Scope, depth: int) -> Paths:
        paths = self.paths(node.value, scope, depth)
        if "sys.modules" in paths and dotted_name(node.slice).rpartition(".")[2] in _OWN_MODULE_NAMES:
            return frozenset({OWN_MODULE})
        return frozenset(path for path in paths if "()" in path)

    def _operation(self, node: ast.BinOp, scope: Scope, depth: int) -> Paths:
        operands = self.paths(node.left, scope, depth) | self.paths(node.right, scope, depth)
        return frozenset(path for path in operands if "()" in path)

    def _call(self, node: ast.Call, scope: Scope, depth: int) -> Paths:
        func = node.func
        functions = self.paths(func, scope, depth)
        if "getattr" in functions and len(node.args) > 1:
            base = self.paths(node.args[0], scope, depth)
            return NO_PATHS.union(*(self.extend(base, text) for text in self.texts(node.args[1], scope)))
        results = _returned_values(functions)
        passing = functions & _PASSING
        if passing:
            results |= NO_PATHS.union(*(self._values(argument, scope, depth) for argument in node.args))
        name = func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""
        return results | self._meaning_of((id(self.program.results), name))

    def _values(self, node: ast.expr, scope: Scope, depth: int) -> Paths:
        return frozenset(path for path in self.paths(node, scope, depth) if "()" in path)

    def paths_of_name(self, name: str, scope: Scope) -> Paths:
        """Return the library names the variable `name` may stand for."""
        if self.node_paths is None:
            return self._resolve_name(name, scope)
        if not (name in self.meaningful or name in _AMBIENT or self.program.star_imports or name.startswith("__")):
            return NO_PATHS
        key = (name, id(scope))
        if key not in self.name_paths:
            self.name_paths[key] = self._resolve_name(name, scope)
        return self.name_paths[key]

    def _resolve_name(self, name: str, scope: Scope) -> Paths:
        homes, outside, name = self._homes(name, scope)
        paths = NO_PATHS.union(*[self._meaning_of((id(home), name)) for home in homes])
        if not outside:
            return paths
        return paths | self._ambient(name, bool(homes))

    def _ambient(self, name: str, bound: bool) -> Paths:
        """Return the meaning of `name` outside the program's own scopes."""
        paths = {canonical_path(f"{star}.{name}") for star in self.program.star_imports if f"{star}.{name}" in RULES}
        # A builtin remains possible if the module binds its name: it may be used before the binding or after `del`.
        if name in DANGEROUS_BUILTINS or name == "open":
            if not bound or name in self.program.deleted or name not in self.program.shadowed:
                paths.add(name)
        elif not bound and name in BUILTINS:
            paths.add(name)
        elif not bound:
            paths |= {canonical_path(f"{star}.{name}") for star in self.program.star_imports}
            if name in ASSUMED and not self.program.star_imports:
                paths.add(canonical_path(ASSUMED[name]))
        return frozenset(paths)

    def _homes(self, name: str, scope: Scope) -> tuple[list[Scope], bool, str]:
        homes, outside = self.program.lookup(name, scope)
        if homes or not name.startswith("__") or name.endswith("__"):
            return homes, outside, name
        mangled = _mangle(name, scope)
        return *self.program.lookup(mangled, scope), mangled

    def is_bound(self, name: str, scope: Scope) -> bool:
        """Return True if the program binds `name`."""
        return bool(self._homes(name, scope)[0])

    def is_certain(self, node: ast.expr, scope: Scope) -> bool:
        """Return True if `node` can only be the builtin or the library name that it looks like."""
        if isinstance(node, ast.Attribute):
            return node.attr not in self.program.fields.names and self.is_certain(node.value, scope)
        if not isinstance(node, ast.Name):
            return False
        homes, _, name = self._homes(node.id, scope)
        if not homes:
            return name in BUILTINS and not any(name in names_of(star) for star in self.program.star_imports)
        return all(binding.path for home in homes for binding in home.names[name])

    def is_assumed(self, name: str, scope: Scope) -> bool:
        """Return True if `name` has a meaning only by common usage."""
        return name in ASSUMED and name not in BUILTINS and not self.is_bound(name, scope)

    def is_defined(self, name: str, scope: Scope) -> bool:
        """Return True if the program or Python defines `name`."""
        homes, _, name = self._homes(name, scope)
        return bool(homes) or name in _AMBIENT or bool(self.program.star_imports)


def _mangle(name: str, scope: Scope) -> str:
    """Return a private name as mangled by the innermost class."""
    current: Scope | None = scope
    while current is not None and current.kind != "class":
        current = current.parent
    return f"_{current.label.lstrip('_')}{name}" if current is not None else name


_AMBIENT = BUILTINS | DANGEROUS_BUILTINS | ASSUMED.keys() | {"open"}
"""Names that may mean something though the program does not bind them."""
_PASSING = words("next iter list tuple set sorted reversed enumerate filter max min map zip")
"""Builtins that return what they were given."""
_READERS: dict[type[ast.expr], Callable[..., Paths]] = {
    ast.Name: NameResolver._name,
    ast.Attribute: NameResolver._attribute,
    ast.NamedExpr: NameResolver._inside,
    ast.Await: NameResolver._inside,
    ast.Starred: NameResolver._inside,
    ast.YieldFrom: NameResolver._inside,
    ast.IfExp: NameResolver._choice,
    ast.BoolOp: NameResolver._any,
    ast.List: NameResolver._any,
    ast.Tuple: NameResolver._any,
    ast.Set: NameResolver._any,
    ast.ListComp: NameResolver._comprehension,
    ast.SetComp: NameResolver._comprehension,
    ast.GeneratorExp: NameResolver._comprehension,
    ast.Subscript: NameResolver._subscript,
    ast.BinOp: NameResolver._operation,
    ast.Call: NameResolver._call,
}
