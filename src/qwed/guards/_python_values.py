"""What an expression may be: a dotted library name, or one of a few constants."""

import ast
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice, product

from qwed.guards._python_scopes import Binding, Program, Scope
from qwed.guards._python_tables import ALIASES, BUILTINS, DANGEROUS_BUILTINS, RULES, words

MAX_ROUNDS = 20
MAX_PATHS = 32
MAX_STARS = 20
MAX_SEGMENTS = 12
MAX_NESTING = 40
MAX_CONSTANTS = 64
MAX_TEXT = 2_000

Constant = str | int
_NOTHING: frozenset[str] = frozenset()

REROOTED = words("""
os sys subprocess builtins importlib imp ctypes pickle marshal shutil socket inspect gc types io codecs posix pty
runpy multiprocessing tempfile linecache tokenize copyreg bltns
""")
"""A library that imports one of these offers it as an attribute: `random._os.system` is `os.system`."""


class TooComplex(Exception):
    """The program binds names in a way we do not follow."""


def canonical(path: str) -> str:
    """The name a dotted path really has."""
    parts = path.split(".")
    for index in range(len(parts) - 1, 0, -1):
        bare = parts[index].lstrip("_")
        if bare in REROOTED and ".".join(parts[: index + 1]) not in RULES:
            parts = ["builtins" if bare == "bltns" else bare, *parts[index + 1 :]]
            break
    root = ALIASES.get(parts[0], parts[0])
    if root.startswith("_") and root not in RULES and root.lstrip("_") in RULES:
        root = root.lstrip("_")
    return ".".join([root, *parts[1:]])


@dataclass(slots=True)
class Values:
    """The possible values of every name of a program."""

    program: Program
    known: dict[tuple[int, str], frozenset[str]] = field(default_factory=dict)
    folded: dict[tuple[tuple[int, ...], str], frozenset[Constant] | None] = field(default_factory=dict)

    @classmethod
    def of(cls, program: Program) -> "Values":
        """Repeats until no name gains a meaning; TooComplex where that does not end."""
        values = cls(program)
        if len(program.stars) > MAX_STARS:
            raise TooComplex
        for _ in range(MAX_ROUNDS):
            if not values._round():
                return values
        raise TooComplex

    def _round(self) -> bool:
        changed = False
        for scope in self.program.scopes:
            for name, bindings in scope.names.items():
                key = (id(scope), name)
                before = self.known.get(key, _NOTHING)
                after = before.union(*(self._bound(binding) for binding in bindings))
                if len(after) > MAX_PATHS or any(path.count(".") >= MAX_SEGMENTS for path in after):
                    raise TooComplex
                self.known[key] = after
                changed = changed or after != before
        return changed

    def _bound(self, binding: Binding) -> frozenset[str]:
        if binding.path:
            return frozenset({canonical(binding.path)})
        if binding.value is not None and binding.scope is not None:
            return self.paths(binding.value, binding.scope)
        return _NOTHING

    def paths(self, node: ast.expr, scope: Scope, depth: int = 0) -> frozenset[str]:
        """The library names `node` may stand for; empty where it is a value of the program's own."""
        if depth > MAX_NESTING:
            raise TooComplex
        if isinstance(node, ast.Name):
            return self.named(node.id, scope)
        if isinstance(node, ast.Attribute):
            return self._extended(self.paths(node.value, scope, depth + 1), node.attr)
        if isinstance(node, ast.NamedExpr | ast.Await | ast.Starred):
            return self.paths(node.value, scope, depth + 1)
        if isinstance(node, ast.IfExp):
            return self.paths(node.body, scope, depth + 1) | self.paths(node.orelse, scope, depth + 1)
        if isinstance(node, ast.BoolOp):
            return _NOTHING.union(*(self.paths(value, scope, depth + 1) for value in node.values))
        return self._fetched(node, scope, depth) if isinstance(node, ast.Call) else _NOTHING

    def _fetched(self, node: ast.Call, scope: Scope, depth: int) -> frozenset[str]:
        """`getattr(os, "system")` is `os.system`."""
        if (
            len(node.args) < 2
            or not isinstance(node.func, ast.Name)
            or "getattr" not in self.named(node.func.id, scope)
        ):
            return _NOTHING
        base = self.paths(node.args[0], scope, depth + 1)
        names = self.constants(node.args[1], scope) or frozenset()
        return _NOTHING.union(*(self._extended(base, name) for name in names if isinstance(name, str)))

    def _extended(self, bases: frozenset[str], attribute: str) -> frozenset[str]:
        return frozenset(canonical(f"{base}.{attribute}") for base in bases)

    def named(self, name: str, scope: Scope) -> frozenset[str]:
        """The library names the variable `name` may stand for."""
        homes, outside = self.program.lookup(name, scope)
        found = _NOTHING.union(*(self.known.get((id(home), name), _NOTHING) for home in homes))
        if not outside:
            return found
        # A builtin stays in play beside a module's own name: it may be used before that is bound, or after `del`.
        if name in DANGEROUS_BUILTINS or name == "open" or (not homes and name in BUILTINS):
            found |= {name}
        if not homes and name not in BUILTINS:
            found |= {canonical(f"{star}.{name}") for star in self.program.stars}
        return found | {canonical(f"{star}.{name}") for star in self.program.stars if f"{star}.{name}" in RULES}

    def defined(self, name: str, scope: Scope) -> bool:
        """Whether the program or Python itself gives `name` a value."""
        homes, _ = self.program.lookup(name, scope)
        return (
            bool(homes) or name in BUILTINS or name in DANGEROUS_BUILTINS or name == "open" or bool(self.program.stars)
        )

    def constants(self, node: ast.expr, scope: Scope, depth: int = 0) -> frozenset[Constant] | None:
        """Every constant `node` can be; None where it can be anything else."""
        if depth > MAX_NESTING:
            return None
        if isinstance(node, ast.Constant):
            value = node.value
            return frozenset({value}) if isinstance(value, str | int) and not isinstance(value, bool) else None
        if isinstance(node, ast.Name):
            return self._constant_name(node.id, scope, depth)
        if isinstance(node, ast.IfExp):
            return self._either([node.body, node.orelse], scope, depth)
        folder = _FOLDERS.get(type(node))
        return folder(self, node, scope, depth + 1) if folder else None

    def _constant_name(self, name: str, scope: Scope, depth: int) -> frozenset[Constant] | None:
        homes, _ = self.program.lookup(name, scope)
        key = (tuple(map(id, homes)), name)
        if key not in self.folded:
            # A name that depends on itself reads None, which is also the careful answer.
            self.folded[key] = None
            self.folded[key] = self._constant_bindings([item for home in homes for item in home.names[name]], depth + 1)
        return self.folded[key]

    def _constant_bindings(self, bindings: list[Binding], depth: int) -> frozenset[Constant] | None:
        found: set[Constant] = set()
        for binding in bindings:
            part = self._constant_binding(binding, depth)
            if part is None:
                return None
            found |= part
        return frozenset(found) if 0 < len(found) <= MAX_CONSTANTS else None

    def _constant_binding(self, binding: Binding, depth: int) -> frozenset[Constant] | None:
        if binding.scope is None:
            return None
        if binding.value is not None:
            return self.constants(binding.value, binding.scope, depth)
        if isinstance(binding.each, ast.Tuple | ast.List | ast.Set):
            return self._either(binding.each.elts, binding.scope, depth)
        return None

    def _either(self, nodes: list[ast.expr], scope: Scope, depth: int) -> frozenset[Constant] | None:
        found: set[Constant] = set()
        for node in nodes[: MAX_CONSTANTS + 1]:
            part = self.constants(node, scope, depth + 1)
            if part is None:
                return None
            found |= part
        return frozenset(found) if len(nodes) <= MAX_CONSTANTS else None

    def _combined(
        self, nodes: list[ast.expr], scope: Scope, depth: int, combine: Callable[..., Constant]
    ) -> frozenset[Constant] | None:
        parts = [self.constants(node, scope, depth) for node in nodes]
        choices = [part for part in parts if part is not None]
        if len(choices) < len(parts):
            return None
        return _computed(combine, islice(product(*choices), MAX_CONSTANTS + 1))

    def _operation(self, node: ast.expr, scope: Scope, depth: int) -> frozenset[Constant] | None:
        assert isinstance(node, ast.BinOp)  # noqa: S101 - the table says so
        combine = _OPERATIONS.get(type(node.op))
        if isinstance(node.op, ast.Mod) and isinstance(node.right, ast.Tuple):
            return self._combined([node.left, *node.right.elts], scope, depth, _interpolated)
        return self._combined([node.left, node.right], scope, depth, combine) if combine else None

    def _joined(self, node: ast.expr, scope: Scope, depth: int) -> frozenset[Constant] | None:
        assert isinstance(node, ast.JoinedStr)  # noqa: S101 - the table says so
        if any(
            isinstance(part, ast.FormattedValue) and (part.format_spec or part.conversion > 0) for part in node.values
        ):
            return None
        plain = [part.value if isinstance(part, ast.FormattedValue) else part for part in node.values]
        return self._combined(plain, scope, depth, lambda *parts: "".join(map(str, parts)))

    def _reversed(self, node: ast.expr, scope: Scope, depth: int) -> frozenset[Constant] | None:
        assert isinstance(node, ast.Subscript)  # noqa: S101 - the table says so
        backwards = ast.unparse(node.slice) == "::-1"
        return self._combined([node.value], scope, depth, lambda text: str(text)[::-1]) if backwards else None

    def _called(self, node: ast.expr, scope: Scope, depth: int) -> frozenset[Constant] | None:
        assert isinstance(node, ast.Call)  # noqa: S101 - the table says so
        if node.keywords:
            return None
        if isinstance(node.func, ast.Name):
            builtin = _CALLS.get(node.func.id)
            return self._combined(node.args, scope, depth, builtin) if builtin else None
        if not isinstance(node.func, ast.Attribute):
            return None
        if node.func.attr == "join" and len(node.args) == 1 and isinstance(node.args[0], ast.List | ast.Tuple):
            return self._combined([node.func.value, *node.args[0].elts], scope, depth, lambda by, *rest: by.join(rest))
        method = _METHODS.get(node.func.attr)
        return self._combined([node.func.value, *node.args], scope, depth, method) if method else None


def _computed(combine: Callable[..., Constant], choices: Iterator[tuple[Constant, ...]]) -> frozenset[Constant] | None:
    found: set[Constant] = set()
    for choice in choices:
        try:
            result = combine(*choice)
        except (TypeError, ValueError, AttributeError, IndexError, KeyError, OverflowError):
            return None
        if len(found) >= MAX_CONSTANTS or (isinstance(result, str) and len(result) > MAX_TEXT):
            return None
        found.add(result)
    return frozenset(found)


def _added(one: Constant, other: Constant) -> Constant:
    return operator.add(one, other)  # type: ignore[no-any-return]  # a mismatch raises TypeError, which is caught


def _interpolated(text: str, *rest: Constant) -> str:
    # A width such as `%99999999s` would fill the memory, so only the bare placeholders are followed.
    if set(_PLACEHOLDER.findall(text)) - {"%s", "%d"}:
        raise ValueError
    return text % rest


def _formatted(text: str, *rest: Constant) -> str:
    if set(_FIELD.findall(text)) - {"{}"}:
        raise ValueError
    return text.format(*rest)


_PLACEHOLDER = re.compile(r"%.?")
_FIELD = re.compile(r"\{[^}]*\}?|\}")
_OPERATIONS: dict[type[ast.operator], Callable[..., Constant]] = {ast.Add: _added, ast.Mod: _interpolated}
_CALLS: dict[str, Callable[..., Constant]] = {"chr": chr, "str": str}
_METHODS: dict[str, Callable[..., Constant]] = {
    "lower": str.lower,
    "upper": str.upper,
    "strip": str.strip,
    "replace": str.replace,
    "format": _formatted,
}
_FOLDERS: dict[type[ast.expr], Callable[[Values, ast.expr, Scope, int], frozenset[Constant] | None]] = {
    ast.BinOp: Values._operation,
    ast.JoinedStr: Values._joined,
    ast.Subscript: Values._reversed,
    ast.Call: Values._called,
}
