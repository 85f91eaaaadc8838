"""Names, functions and attributes whose value may change in a way that constant folding does not follow."""

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from qwed.guards._python.ast_children import descendants
from qwed.guards._python.library_rules import words
from qwed.guards._python.scopes import Binding, Program, Scope, Signature

_READING = words("""
len sorted enumerate zip map filter list tuple set dict frozenset str repr print min max sum any all reversed iter
isinstance bool
""")
"""Builtins that do not change the containers they are given."""
_READING_METHODS = words("join index count get items keys values copy format format_map startswith endswith")
_REPEATED = (ast.AugAssign, ast.For, ast.AsyncFor, ast.While)
_OPAQUE = words("__dict__ __getattribute__ __getattr__ __setattr__ __get__ __set_name__ __new__ __init_subclass__")
"""Names of a class by which an attribute may have a value that nothing assigns."""


@dataclass
class Mutability:
    """Answers for one program."""

    program: Program

    @cached_property
    def escaping(self) -> set[str]:
        """Names that are used other than to read the container they stand for, so that it may change elsewhere."""
        reading: set[int] = set()
        for node, scope in self.program.visits:
            reader = _READERS.get(type(node))
            if reader is not None:
                reading.update(map(id, reader(self, node, scope)))
        names = self.program.nodes(ast.Name)
        return {node.id for node in names if isinstance(node.ctx, ast.Load) and id(node) not in reading}

    @cached_property
    def repeated(self) -> set[int]:
        """Ids of loops, and of statements inside of them that extend a name."""
        repeated: set[int] = set()
        for kind in (ast.For, ast.AsyncFor, ast.While):
            for loop in self.program.nodes(kind):
                # A loop around it has noted what this one repeats.
                if id(loop) not in repeated:
                    repeated.update(id(part) for part in descendants(loop) if isinstance(part, _REPEATED))
        return repeated

    @cached_property
    def hides_attributes(self) -> bool:
        """True if attributes may get values other than by an assignment."""
        nodes = self.program.nodes
        named = (*nodes(ast.Name), *nodes(ast.Attribute), *nodes(ast.FunctionDef))
        used = {name for node in named for name in _names_of(node)}
        return not used.isdisjoint(_OPAQUE | {"setattr", "vars", "setattr_static"})

    @cached_property
    def keywords(self) -> set[str]:
        """Names of all keyword arguments, which may be the fields of an object."""
        return {node.arg or "" for node in self.program.nodes(ast.keyword)}

    @cached_property
    def reflected(self) -> bool:
        """True if an object of the program decides what a text becomes when it is added to it."""
        return not {"__radd__", "__rmod__"}.isdisjoint(self.program.methods | self._class_names)

    @cached_property
    def _class_names(self) -> set[str]:
        return {name for scope in self.program.scopes if scope.kind == "class" for name in scope.names}

    def reads_only(self, node: ast.expr, scope: Scope) -> bool:
        """Return True if a call of `node` does not change its arguments."""
        if isinstance(node, ast.Attribute):
            return node.attr in _READING_METHODS
        return isinstance(node, ast.Name) and node.id in _READING and not self.program.lookup(node.id, scope)[0]

    def is_plain_container(self, home: Scope, name: str) -> bool:
        """Return True if the container that a name stands for does not change."""
        values = [binding.value for binding in home.names.get(name, [])]
        return name not in self.escaping or all(isinstance(value, ast.Constant | ast.Tuple) for value in values)

    def is_plain_field(self, name: str) -> bool:
        """Return True if an attribute has the values that are assigned to it and no others."""
        bindings = self.program.fields.names.get(name, [])
        stated = all(binding.kind is None for binding in bindings)
        return (
            stated
            and name not in self.program.methods
            and name not in self.keywords
            and name not in self.program.global_names
            and not self.hides_attributes
        )

    def is_plain_function(self, name: str, scope: Scope) -> bool:
        """Return True if a name stands for the functions of that name and nothing else, none of them decorated."""
        homes, outside = self.program.lookup(name, scope)
        bindings = [binding for home in homes for binding in home.names[name]]
        defined = all(binding == Binding() or isinstance(binding.value, ast.Lambda) for binding in bindings)
        return (
            defined
            and bool(bindings)
            and len(bindings) == len(self.program.functions.get(name, []))
            and (name not in self._decorated)
            and outside
        )

    @cached_property
    def _decorated(self) -> set[str]:
        functions = self.program.nodes(ast.FunctionDef)
        return self.program.classes.union(node.name for node in functions if node.decorator_list)

    @cached_property
    def _passed_on(self) -> set[str]:
        """Names of functions that the program uses other than to call them, and names in its texts."""
        nodes = self.program.nodes
        calls = nodes(ast.Call)
        called = {id(node.func) for node in calls}
        spread = [node.func for node in calls if _is_spread(node)]
        used = [node for node in (*nodes(ast.Name), *nodes(ast.Attribute)) if id(node) not in called]
        texts = {node.value for node in nodes(ast.Constant) if isinstance(node.value, str)}
        return texts | {name for node in (*used, *spread) for name in _names_of(node)}

    def is_only_called(self, name: str) -> bool:
        """Return True if every call of a function is visible."""
        return self.is_called_by_name(name) and name not in self.program.methods

    def is_called_by_name(self, name: str) -> bool:
        """Return True if the program only calls a function; a library may still call a method."""
        plain = not name.startswith("__") and name not in self._decorated and name not in self._passed_on
        return plain and len(self.program.functions.get(name, [])) == 1

    def keeps_parameters(self, signature: Signature) -> bool:
        """Return True if the parameters of a function keep the values of the call."""
        names, inner = signature
        bindings = [binding for name in names for binding in inner.names.get(name, [])]
        kept = all(binding.scope is not None and binding.scope is not inner for binding in bindings)
        return kept and self.program.global_names.isdisjoint(names)


def _names_of(node: ast.AST) -> Iterable[str]:
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute):
        return (node.attr,)
    return (node.name,) if isinstance(node, ast.FunctionDef) else ()


def _is_spread(node: ast.Call) -> bool:
    starred = any(isinstance(argument, ast.Starred) for argument in node.args)
    return starred or any(word.arg is None for word in node.keywords)


def _call_operands(limits: Mutability, node: ast.AST, scope: Scope) -> list[ast.expr]:
    assert isinstance(node, ast.Call)  # noqa: S101 - the table says so
    owner = [node.func.value] if isinstance(node.func, ast.Attribute) else [node.func]
    return [*owner, *node.args] if limits.reads_only(node.func, scope) else [node.func]


def _members(*names: str) -> Callable[[Mutability, ast.AST, Scope], list[ast.expr]]:
    """Return a reader of these members of a node, each a node, a list or None."""

    def read(_limits: Mutability, node: ast.AST, _scope: Scope) -> list[ast.expr]:
        members = [getattr(node, name) for name in names]
        return [part for member in members for part in (member if isinstance(member, list) else [member]) if part]

    return read


def _subscript_operands(_limits: Mutability, node: ast.AST, _scope: Scope) -> list[ast.expr]:
    assert isinstance(node, ast.Subscript)  # noqa: S101 - the table says so
    return [node.value, node.slice] if isinstance(node.ctx, ast.Load) else [node.slice]


def _comprehension_operands(_limits: Mutability, node: ast.AST, _scope: Scope) -> list[ast.expr]:
    assert isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp)  # noqa: S101 - the table says so
    return [part for generator in node.generators for part in (generator.iter, *generator.ifs)]


_READERS: dict[type[ast.AST], Callable[[Mutability, ast.AST, Scope], list[ast.expr]]] = {
    ast.Call: _call_operands,
    ast.Subscript: _subscript_operands,
    ast.For: _members("iter"),
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp), _comprehension_operands),
    ast.Compare: _members("left", "comparators"),
    ast.BinOp: _members("left", "right"),
    ast.FormattedValue: _members("value"),
    ast.If: _members("test"),
    ast.While: _members("test"),
    ast.UnaryOp: _members("operand"),
    ast.Expr: _members("value"),
}
"""Operands that a node only reads."""
