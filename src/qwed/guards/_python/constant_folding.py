"""Constant folding: the possible values of expressions that only combine constants."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any

from qwed.guards._python import abstract_values, pure_functions
from qwed.guards._python.abstract_values import (
    ANYTHING,
    MAX_ITEMS,
    UNKNOWN,
    Choices,
    Possible,
    compute,
    has_unknown,
    items_of,
)
from qwed.guards._python.mutability import Mutability
from qwed.guards._python.name_resolution import NameResolver
from qwed.guards._python.scopes import Binding, Program, Scope, Signature, TooComplexError

MAX_NESTING = 60
MAX_CHOICES = 64
MAX_VALUES = 256
MAX_BINDINGS = 500
MAX_NAMESAKES = 8
MAX_STEPS = 4_000
MAX_ALL_STEPS = 400_000

Frame = dict[str, Any]
_APPLYING = frozenset({"map", "functools.reduce"})
_FOLDED = _APPLYING | pure_functions.FUNCTIONS.keys()
_UNCLEAR = " "
"""Key in a frame of an iteration that may be left out."""
ArgumentValues = list[Possible]


@dataclass(slots=True)
class ConstantFolder:
    """Constant folder for one program, with a limited number of steps."""

    program: Program
    values: NameResolver
    memo: dict[tuple[int, str], Possible] = field(default_factory=dict)
    strict_memo: dict[tuple[int, str], Possible] = field(default_factory=dict)
    loose_memo: dict[tuple[int, str], Possible] = field(default_factory=dict)
    steps: int = 0
    spent: int = 0
    limits: Mutability = field(init=False)
    loose: bool = False
    """Replace unknown parts of a text with `*`."""

    in_progress: set[int] = field(default_factory=set)
    """Ids of nodes being folded: the meaning of a name may depend on a text, and the text on the name."""

    def __post_init__(self) -> None:
        self.limits = Mutability(self.program)

    def possible(self, node: ast.expr, scope: Scope, *, loose: bool = False) -> Possible:
        """Return the possible values of `node`; unknown if the node is already being folded."""
        if id(node) in self.in_progress:
            return ANYTHING
        if not self.in_progress:
            self._renew()
        before = self.memo, self.loose
        self.memo, self.loose = self.loose_memo if loose else self.strict_memo, loose
        self.in_progress.add(id(node))
        values = self._fold(node, scope, {}, 0)
        self.in_progress.discard(id(node))
        self.memo, self.loose = before
        return values

    def _renew(self) -> None:
        self.spent, self.steps = self.spent + self.steps, 0
        if self.spent > MAX_ALL_STEPS:
            raise TooComplexError
        if self.values.node_paths is None:
            self.strict_memo, self.loose_memo = {}, {}

    def texts(self, node: ast.expr, scope: Scope) -> list[str]:
        """Return the texts among the values of `node`."""
        return sorted({value for value in self.possible(node, scope) if isinstance(value, str)})

    def guesses(self, node: ast.expr, scope: Scope) -> list[str]:
        """Return the texts of `node` with `*` for every unknown part."""
        values = self.possible(node, scope, loose=True)
        return sorted({value for value in values if isinstance(value, str) and value.strip("*")})

    def has_plain_prefix(self, node: ast.expr, scope: Scope) -> bool:
        """Return True if every possible text of `node` begins like an ordinary name."""
        return not self.limits.reflected and all(
            isinstance(value, str) and value[:1].isalpha() for value in self.possible(node, scope, loose=True)
        )

    def _fold(self, node: ast.expr, scope: Scope, frame: Frame, depth: int) -> Possible:
        self.steps += 1
        if depth > MAX_NESTING or self.steps > MAX_STEPS:
            return ANYTHING
        folder = _FOLDERS.get(type(node))
        return folder(self, node, scope, frame, depth + 1) if folder else ANYTHING

    def _constant(self, node: ast.Constant, _scope: Scope, _frame: Frame, _depth: int) -> Possible:
        return (node.value,) if pure_functions.is_small(node.value) else ANYTHING

    def _name(self, node: ast.Name, scope: Scope, frame: Frame, depth: int) -> Possible:
        if node.id in frame:
            return (frame[node.id],)
        homes, _ = self.program.lookup(node.id, scope)
        if not homes:
            return ANYTHING
        choices = Choices()
        for home in homes:
            choices.add(self._bound(home, node.id, depth))
        changed = any(isinstance(value, tuple | list | dict) for value in choices.all()) and not all(
            self.limits.is_plain_container(home, node.id) for home in homes
        )
        if changed or node.id in self.program.mutated:
            choices.add(ANYTHING)
        return choices.all() or ANYTHING

    def _bound(self, home: Scope, name: str, depth: int) -> Possible:
        key = (id(home), name)
        if key not in self.memo:
            # A name that depends on itself is unknown, which is also the safe answer.
            self.memo[key] = ANYTHING
            choices = Choices()
            bindings = home.names.get(name, [])
            for binding in bindings[:MAX_BINDINGS]:
                choices.add(self._binding(binding, choices.all(), depth))
            values = choices.all()
            few = len(values) <= MAX_VALUES and len(bindings) <= MAX_BINDINGS
            self.memo[key] = values if few else (*values[:MAX_VALUES], UNKNOWN)
        return self.memo[key]

    def _binding(self, binding: Binding, before: Possible, depth: int) -> Possible:
        scope = binding.scope
        if scope is None or binding.path:
            return ANYTHING
        if binding.value is not None:
            return self._fold(binding.value, scope, {}, depth)
        if binding.iterates is not None:
            item_lists = [items_of(value) for value in self._fold(binding.iterates, scope, {}, depth)]
            return tuple(item for items in item_lists for item in items)[:MAX_VALUES] or ANYTHING
        if binding.call_arguments:
            return self._parameter_values(binding.call_arguments, depth)
        return self._augmented_values(binding, before, scope, depth)

    def _parameter_values(self, keys: tuple[str, ...], depth: int) -> Possible:
        """Return the values of a parameter: the arguments of all calls, and unknown unless all calls are visible."""
        given = [key for key in keys if key in self.program.call_arguments.names]
        functions = {key.replace("=", ":").partition(":")[0] for key in keys}
        visible = all(map(self.limits.is_only_called, functions))
        choices = Choices() if visible else Choices(UNKNOWN)
        for key in given:
            choices.add(self._bound(self.program.call_arguments, key, depth))
        return choices.all()

    def _augmented_values(self, binding: Binding, before: Possible, scope: Scope, depth: int) -> Possible:
        """Return the values of `text += piece`, once or in a loop over known items."""
        grows, loop = binding.augments, binding.loop
        combine = pure_functions.OPERATIONS.get(type(grows.op)) if grows is not None else None
        if grows is None or combine is None or (loop is not None and len(before) != 1):
            return ANYTHING
        frames = [{}] if loop is None else self._frames(loop.target, loop.iter, scope, {}, depth)
        values = before or ANYTHING
        for frame in frames:
            values = self._product([values, self._fold(grows.value, scope, frame, depth)], combine)
        shared = isinstance(grows.target, ast.Name) and grows.target.id in self.program.global_names
        again = loop is None and (shared or id(grows) in self.limits.repeated)
        return _with_unknown(values) if again else values

    def _frames(self, target: ast.expr, iterable: ast.expr, scope: Scope, frame: Frame, depth: int) -> Iterator[Frame]:
        """Yield the bindings of each loop iteration; nothing if they are not known."""
        values = self._fold(iterable, scope, frame, depth)
        for item in items_of(values[0]) if len(values) == 1 else (UNKNOWN,):
            if isinstance(target, ast.Name):
                yield {**frame, target.id: item}
            elif isinstance(target, ast.Tuple) and isinstance(item, tuple | list | str):
                yield {**frame, **abstract_values.bind_targets(target, item)}

    def _choice(self, node: ast.IfExp | ast.BoolOp, scope: Scope, frame: Frame, depth: int) -> Possible:
        choices = Choices()
        for part in (node.body, node.orelse) if isinstance(node, ast.IfExp) else node.values:
            choices.add(self._fold(part, scope, frame, depth))
        return choices.all()

    def _sequence(self, node: ast.Tuple | ast.List | ast.Set, scope: Scope, frame: Frame, depth: int) -> Possible:
        parts: ArgumentValues = []
        for item in node.elts[:MAX_ITEMS]:
            if isinstance(item, ast.Starred):
                spread = self._fold(item.value, scope, frame, depth)
                parts += [(element,) for element in (items_of(spread[0]) if len(spread) == 1 else ANYTHING)]
            else:
                parts.append(self._fold(item, scope, frame, depth))
        return self._product(parts, lambda *items: tuple(items), keep=True)

    def _mapping(self, node: ast.Dict, scope: Scope, frame: Frame, depth: int) -> Possible:
        keys = [self._fold(key, scope, frame, depth) if key is not None else ANYTHING for key in node.keys[:MAX_ITEMS]]
        contents = [self._fold(value, scope, frame, depth) for value in node.values[:MAX_ITEMS]]
        if any(len(key_values) != 1 or key_values[0] is UNKNOWN for key_values in keys):
            return ANYTHING
        names = [key_values[0] for key_values in keys]
        return self._product(contents, lambda *items: dict(zip(names, items, strict=True)), keep=True)

    def _comprehension(
        self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp, scope: Scope, frame: Frame, depth: int
    ) -> Possible:
        frames: list[Frame] = [frame]
        for generator in node.generators:
            frames = list(islice(self._filtered_frames(generator, scope, frames, depth), MAX_ITEMS + 1))
        if len(frames) > MAX_ITEMS:
            return ANYTHING
        values = self._product(
            [self._fold(node.elt, scope, inner_frame, depth) for inner_frame in frames],
            lambda *items: tuple(items),
            keep=True,
        )
        return _with_unknown(values) if any(_UNCLEAR in inner_frame for inner_frame in frames) else values

    def _filtered_frames(
        self, generator: ast.comprehension, scope: Scope, frames: list[Frame], depth: int
    ) -> Iterator[Frame]:
        for frame in frames:
            for inner in self._frames(generator.target, generator.iter, scope, frame, depth):
                tests = [self._fold(test, scope, inner, depth) for test in generator.ifs]
                if any(len(values) != 1 or values[0] is UNKNOWN for values in tests):
                    yield {**inner, _UNCLEAR: UNKNOWN}
                elif all(values[0] for values in tests):
                    yield inner

    def _operation(self, node: ast.BinOp, scope: Scope, frame: Frame, depth: int) -> Possible:
        combine = pure_functions.OPERATIONS.get(type(node.op))
        if combine is None:
            return ANYTHING
        # A long sum leans to the left: iterate instead of recursing.
        rights: list[ast.expr] = []
        left: ast.expr = node
        while isinstance(left, ast.BinOp) and type(left.op) is type(node.op):
            rights.append(left.right)
            left = left.left
        values = self._fold(left, scope, frame, depth)
        if values == ANYTHING and not self.loose:
            return ANYTHING
        for right in reversed(rights):
            values = self._product([values, self._fold(right, scope, frame, depth)], combine)
        return values

    def _test(self, node: ast.UnaryOp | ast.Compare, scope: Scope, frame: Frame, depth: int) -> Possible:
        operands = [node.operand] if isinstance(node, ast.UnaryOp) else [node.left, *node.comparators]
        return self._product(
            [self._fold(operand, scope, frame, depth) for operand in operands], pure_functions.operator_of(node)
        )

    def _text(self, node: ast.JoinedStr, scope: Scope, frame: Frame, depth: int) -> Possible:
        return self._product(
            [self._fold(part, scope, frame, depth) for part in node.values], lambda *parts: "".join(map(str, parts))
        )

    def _field(self, node: ast.FormattedValue, scope: Scope, frame: Frame, depth: int) -> Possible:
        spec = self._fold(node.format_spec, scope, frame, depth) if node.format_spec else ("",)
        convert = pure_functions.CONVERSIONS[node.conversion]
        return self._product(
            [self._fold(node.value, scope, frame, depth), spec],
            lambda value, format_spec: pure_functions.format_value(convert(value), format_spec),
        )

    def _subscript(self, node: ast.Subscript, scope: Scope, frame: Frame, depth: int) -> Possible:
        parts = [self._fold(node.value, scope, frame, depth)]
        if not isinstance(node.slice, ast.Slice):
            parts.append(self._fold(node.slice, scope, frame, depth))
            return self._product(parts, lambda container, index: container[index])
        ends = (node.slice.lower, node.slice.upper, node.slice.step)
        parts += [self._fold(end, scope, frame, depth) if end is not None else (None,) for end in ends]
        return self._product(parts, lambda container, *ends: container[slice(*ends)])

    def _attribute(self, node: ast.Attribute, scope: Scope, frame: Frame, depth: int) -> Possible:
        for path in self.values.paths(node, scope):
            if path in pure_functions.CONSTANTS:
                return (pure_functions.CONSTANTS[path],)
        homes = self.program.fields
        if node.attr in homes.names and not frame:
            values = self._bound(homes, node.attr, depth)
            return values if self.limits.is_plain_field(node.attr) else _with_unknown(values)
        return ANYTHING

    def _call(self, node: ast.Call, scope: Scope, frame: Frame, depth: int) -> Possible:
        if any(isinstance(argument, ast.Starred) for argument in node.args):
            return self._spread(node, scope, frame, depth)
        if node.keywords and not node.args and self.values.paths(node.func, scope) == {"dict"}:
            keys: list[ast.expr | None] = [ast.Constant(word.arg) if word.arg else None for word in node.keywords]
            return self._mapping(ast.Dict(keys, [word.value for word in node.keywords]), scope, frame, depth)
        return self._plain_call(node, scope, frame, depth)

    def _plain_call(self, node: ast.Call, scope: Scope, frame: Frame, depth: int) -> Possible:
        words = {word.arg for word in node.keywords}
        paths = self.values.paths(node.func, scope)
        unclear = words - {"encoding", "errors"} and not (words == {"sep"} or self.loose)
        if unclear or not self._is_foldable(node.func, paths):
            return ANYTHING
        arguments = [self._fold(argument, scope, frame, depth) for argument in node.args]
        for path in sorted(paths):
            if path in pure_functions.FUNCTIONS:
                values = self._product(arguments, pure_functions.FUNCTIONS[path])
                return values if self.values.is_certain(node.func, scope) else _with_unknown(values)
        if isinstance(node.func, ast.Lambda):
            return self._lambda(node.func, arguments, scope, frame, depth)
        if isinstance(node.func, ast.Attribute) and node.func.attr in pure_functions.METHODS:
            whole = [self._fold(node.func.value, scope, frame, depth), *arguments]
            return self._product(whole, lambda *parts: pure_functions.METHODS[node.func.attr](*parts))  # type: ignore[attr-defined]  # narrowed above
        return self._map_or_reduce(node, arguments, scope, frame, depth)

    def _is_foldable(self, function: ast.expr, paths: frozenset[str]) -> bool:
        if isinstance(function, ast.Name) and function.id in self.program.functions:
            return True
        if isinstance(function, ast.Attribute) and function.attr in pure_functions.METHODS:
            return True
        return isinstance(function, ast.Lambda) or not _FOLDED.isdisjoint(paths)

    def _spread(self, node: ast.Call, scope: Scope, frame: Frame, depth: int) -> Possible:
        """Fold `f(*items)` with its items as arguments."""
        call = ast.Call(func=node.func, args=abstract_values.unpack_arguments(node.args), keywords=node.keywords)
        return self._call(call, scope, frame, depth) if call.args else ANYTHING

    def _lambda(self, node: ast.Lambda, arguments: ArgumentValues, scope: Scope, frame: Frame, depth: int) -> Possible:
        names = [argument.arg for argument in node.args.args]
        if len(names) != len(arguments) or any(len(argument) != 1 for argument in arguments):
            return ANYTHING
        inner = {**frame, **{name: argument[0] for name, argument in zip(names, arguments, strict=True)}}
        return self._fold(node.body, scope, inner, depth)

    def _map_or_reduce(
        self, node: ast.Call, arguments: ArgumentValues, scope: Scope, frame: Frame, depth: int
    ) -> Possible:
        """Fold `map(chr, codes)` and `functools.reduce(lambda a, b: a + b, parts)`."""
        functions = self.values.paths(node.func, scope)
        if not functions & _APPLYING or len(node.args) != 2 or len(arguments[1]) != 1:
            return self._call_own_function(node, arguments, scope, depth)
        if not self.values.is_certain(node.func, scope):
            return ANYTHING
        items = items_of(arguments[1][0])[:MAX_ITEMS]
        if "map" in functions:
            results = [self._apply_function(node.args[0], [(item,)], scope, frame, depth) for item in items]
            return self._product(results, lambda *parts: tuple(parts), keep=True)
        values: Possible = (items[0],) if items else ANYTHING
        for item in items[1:]:
            values = self._apply_function(node.args[0], [values, (item,)], scope, frame, depth)
        return values

    def _apply_function(
        self, function: ast.expr, arguments: ArgumentValues, scope: Scope, frame: Frame, depth: int
    ) -> Possible:
        self.steps += 1
        if isinstance(function, ast.Lambda):
            return self._lambda(function, arguments, scope, frame, depth)
        for path in self.values.paths(function, scope):
            if path in pure_functions.FUNCTIONS:
                values = self._product(arguments, pure_functions.FUNCTIONS[path])
                return values if self.values.is_certain(function, scope) else _with_unknown(values)
        return ANYTHING

    def _call_own_function(self, node: ast.Call, arguments: ArgumentValues, scope: Scope, depth: int) -> Possible:
        """Fold a call of the program's own function that only returns an expression.

        If several functions have the name, the call may mean any of them, or one that is not visible.
        """
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        signatures = self.program.functions.get(name, [])
        results = self.program.results.names.get(name, [])
        if len(signatures) != len(results) or not 0 < len(results) <= MAX_NAMESAKES:
            return ANYTHING
        plain = len(results) == 1 and self.limits.is_plain_function(name, scope)
        choices = Choices() if plain else Choices(UNKNOWN)
        for signature, result in zip(signatures, results, strict=True):
            choices.add(self._return_values(signature, result, arguments, depth))
        return choices.all()

    def _return_values(self, signature: Signature, result: Binding, arguments: ArgumentValues, depth: int) -> Possible:
        names, inner = signature
        unclear = len(names) < len(arguments) or any(len(argument) != 1 for argument in arguments)
        if unclear or result.value is None or result.scope is not inner:
            return ANYTHING
        frame = {name: argument[0] for name, argument in zip(names, arguments, strict=False)}
        values = self._fold(result.value, inner, frame, depth)
        return values if self.limits.keeps_parameters(signature) else _with_unknown(values)

    def _product(self, parts: ArgumentValues, combine: Callable[..., Any], *, keep: bool = False) -> Possible:
        """Return the results for every combination of the parts; `keep` allows unknown parts inside the result."""
        if not keep and not self.loose and ANYTHING in parts:
            return ANYTHING
        choices = Choices()
        for choice in islice(product(*parts), MAX_CHOICES + 1):
            self.steps += 1
            if self.loose and not keep:
                choice = tuple("*" if part is UNKNOWN else part for part in choice)
            self.steps += sum(len(part) for part in choice if isinstance(part, str | bytes | tuple)) // 100
            unknown = not keep and any(has_unknown(part) for part in choice)
            choices.add((UNKNOWN if unknown else compute(combine, choice),))
        values = choices.all()
        return values if 0 < len(values) <= MAX_CHOICES else ANYTHING


def _with_unknown(values: Possible) -> Possible:
    """Return the values, and that there may be others."""
    return values if UNKNOWN in values else (*values, UNKNOWN)


_FOLDERS: dict[type[ast.expr], Callable[..., Possible]] = {
    ast.Constant: ConstantFolder._constant,
    ast.Name: ConstantFolder._name,
    ast.IfExp: ConstantFolder._choice,
    ast.BoolOp: ConstantFolder._choice,
    ast.NamedExpr: lambda folder, node, *where: folder._fold(node.value, *where),
    ast.Tuple: ConstantFolder._sequence,
    ast.List: ConstantFolder._sequence,
    ast.Set: ConstantFolder._sequence,
    ast.Dict: ConstantFolder._mapping,
    ast.ListComp: ConstantFolder._comprehension,
    ast.GeneratorExp: ConstantFolder._comprehension,
    ast.SetComp: ConstantFolder._comprehension,
    ast.BinOp: ConstantFolder._operation,
    ast.UnaryOp: ConstantFolder._test,
    ast.Compare: ConstantFolder._test,
    ast.JoinedStr: ConstantFolder._text,
    ast.FormattedValue: ConstantFolder._field,
    ast.Subscript: ConstantFolder._subscript,
    ast.Attribute: ConstantFolder._attribute,
    ast.Call: ConstantFolder._call,
}
