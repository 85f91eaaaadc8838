"""Which values an expression can have, worked out where it only puts constants together."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any

from qwed.guards._python import choices, pure
from qwed.guards._python.choices import ANYTHING, MAX_ITEMS, UNKNOWN, Choices, Possible, computed, is_open, items_of
from qwed.guards._python.scopes import Binding, Program, Scope, Signature, TooComplex
from qwed.guards._python.values import Values

MAX_NESTING = 60
MAX_CHOICES = 64
MAX_VALUES = 256
MAX_BINDINGS = 500
MAX_NAMESAKES = 8
MAX_STEPS = 4_000
MAX_ALL_STEPS = 400_000

Frame = dict[str, Any]
Given = list[Possible]


@dataclass(slots=True)
class Folder:
    """Folds the expressions of one program, within a budget of steps."""

    program: Program
    values: Values
    memo: dict[tuple[int, str], Possible] = field(default_factory=dict)
    strict_memo: dict[tuple[int, str], Possible] = field(default_factory=dict)
    loose_memo: dict[tuple[int, str], Possible] = field(default_factory=dict)
    steps: int = 0
    spent: int = 0
    loose: bool = False
    """Whether an unknown piece of a text reads `*`."""

    asked: set[int] = field(default_factory=set)
    """Nodes being folded, by id: what a name means may hang on a text, and that on the name."""

    def possible(self, node: ast.expr, scope: Scope, *, loose: bool = False) -> Possible:
        """The values of `node`; unknown where that is asked in order to answer itself."""
        if id(node) in self.asked:
            return ANYTHING
        if not self.asked:
            self._renew()
        before = self.memo, self.loose
        self.memo, self.loose = self.loose_memo if loose else self.strict_memo, loose
        self.asked.add(id(node))
        found = self._fold(node, scope, {}, 0)
        self.asked.discard(id(node))
        self.memo, self.loose = before
        return found

    def _renew(self) -> None:
        self.spent, self.steps = self.spent + self.steps, 0
        if self.spent > MAX_ALL_STEPS:
            raise TooComplex
        if self.values.cache is None:
            self.strict_memo, self.loose_memo = {}, {}

    def texts(self, node: ast.expr, scope: Scope) -> list[str]:
        """The texts among the values of `node`."""
        return sorted({value for value in self.possible(node, scope) if isinstance(value, str)})

    def guesses(self, node: ast.expr, scope: Scope) -> list[str]:
        """The texts of `node` with `*` for every piece that is not known."""
        found = self.possible(node, scope, loose=True)
        return sorted({value for value in found if isinstance(value, str) and value.strip("*")})

    def begins_plainly(self, node: ast.expr, scope: Scope) -> bool:
        """Whether every text that `node` can be begins like an ordinary name."""
        return all(isinstance(value, str) and value[:1].isalpha() for value in self.possible(node, scope, loose=True))

    def _fold(self, node: ast.expr, scope: Scope, frame: Frame, depth: int) -> Possible:
        self.steps += 1
        if depth > MAX_NESTING or self.steps > MAX_STEPS:
            return ANYTHING
        folder = _FOLDERS.get(type(node))
        return folder(self, node, scope, frame, depth + 1) if folder else ANYTHING

    def _constant(self, node: ast.Constant, _scope: Scope, _frame: Frame, _depth: int) -> Possible:
        return (node.value,) if pure.small(node.value) else ANYTHING

    def _name(self, node: ast.Name, scope: Scope, frame: Frame, depth: int) -> Possible:
        if node.id in frame:
            return (frame[node.id],)
        homes, _ = self.program.lookup(node.id, scope)
        found = Choices()
        for home in homes:
            found.add(self._bound(home, node.id, depth))
        if node.id in self.program.mutated:
            found.add(ANYTHING)
        return found.all() or ANYTHING

    def _bound(self, home: Scope, name: str, depth: int) -> Possible:
        key = (id(home), name)
        if key not in self.memo:
            # A name that depends on itself reads unknown, which is also the careful answer.
            self.memo[key] = ANYTHING
            found = Choices()
            bindings = home.names.get(name, [])
            for binding in bindings[:MAX_BINDINGS]:
                found.add(self._binding(binding, found.all(), depth))
            values = found.all()
            few = len(values) <= MAX_VALUES and len(bindings) <= MAX_BINDINGS
            self.memo[key] = values if few else (*values[:MAX_VALUES], UNKNOWN)
        return self.memo[key]

    def _binding(self, binding: Binding, before: Possible, depth: int) -> Possible:
        scope = binding.scope
        if scope is None or binding.path:
            return ANYTHING
        if binding.value is not None:
            return self._fold(binding.value, scope, {}, depth)
        if binding.each is not None:
            every = [items_of(value) for value in self._fold(binding.each, scope, {}, depth)]
            return tuple(item for items in every for item in items)[:MAX_VALUES] or ANYTHING
        if binding.handed:
            return self._handed(binding.handed, depth)
        return self._grown(binding, before, scope, depth)

    def _handed(self, keys: tuple[str, ...], depth: int) -> Possible:
        """A parameter: anything, and what the calls hand over."""
        found = Choices(UNKNOWN)
        for key in keys:
            if key in self.program.handed.names:
                found.add(self._bound(self.program.handed, key, depth))
        return found.all()

    def _grown(self, binding: Binding, before: Possible, scope: Scope, depth: int) -> Possible:
        """`text += piece`, once or in a loop over known items."""
        grows, loop = binding.grows, binding.loop
        combine = pure.OPERATIONS.get(type(grows.op)) if grows is not None else None
        if grows is None or combine is None or (loop is not None and len(before) != 1):
            return ANYTHING
        frames = [{}] if loop is None else self._frames(loop.target, loop.iter, scope, {}, depth)
        here = before or ANYTHING
        for frame in frames:
            here = self._product([here, self._fold(grows.value, scope, frame, depth)], combine)
        return here

    def _frames(self, target: ast.expr, iterable: ast.expr, scope: Scope, frame: Frame, depth: int) -> Iterator[Frame]:
        """What a loop binds, turn by turn; nothing where that is not known."""
        found = self._fold(iterable, scope, frame, depth)
        for item in items_of(found[0]) if len(found) == 1 else (UNKNOWN,):
            if isinstance(target, ast.Name):
                yield {**frame, target.id: item}
            elif isinstance(target, ast.Tuple) and isinstance(item, tuple | list | str):
                yield {**frame, **choices.named(target, item)}

    def _choice(self, node: ast.IfExp | ast.BoolOp, scope: Scope, frame: Frame, depth: int) -> Possible:
        found = Choices()
        for part in (node.body, node.orelse) if isinstance(node, ast.IfExp) else node.values:
            found.add(self._fold(part, scope, frame, depth))
        return found.all()

    def _sequence(self, node: ast.Tuple | ast.List | ast.Set, scope: Scope, frame: Frame, depth: int) -> Possible:
        parts: Given = []
        for item in node.elts[:MAX_ITEMS]:
            if isinstance(item, ast.Starred):
                spread = self._fold(item.value, scope, frame, depth)
                parts += [(each,) for each in (items_of(spread[0]) if len(spread) == 1 else ANYTHING)]
            else:
                parts.append(self._fold(item, scope, frame, depth))
        return self._product(parts, lambda *items: tuple(items), keep=True)

    def _mapping(self, node: ast.Dict, scope: Scope, frame: Frame, depth: int) -> Possible:
        keys = [self._fold(key, scope, frame, depth) if key is not None else ANYTHING for key in node.keys[:MAX_ITEMS]]
        held = [self._fold(value, scope, frame, depth) for value in node.values[:MAX_ITEMS]]
        if any(len(each) != 1 or each[0] is UNKNOWN for each in keys):
            return ANYTHING
        names = [each[0] for each in keys]
        return self._product(held, lambda *items: dict(zip(names, items, strict=True)), keep=True)

    def _comprehension(
        self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp, scope: Scope, frame: Frame, depth: int
    ) -> Possible:
        frames: list[Frame] = [frame]
        for generator in node.generators:
            frames = list(islice(self._passing(generator, scope, frames, depth), MAX_ITEMS + 1))
        if len(frames) > MAX_ITEMS:
            return ANYTHING
        return self._product(
            [self._fold(node.elt, scope, each, depth) for each in frames], lambda *items: tuple(items), keep=True
        )

    def _passing(self, generator: ast.comprehension, scope: Scope, frames: list[Frame], depth: int) -> Iterator[Frame]:
        for frame in frames:
            for inner in self._frames(generator.target, generator.iter, scope, frame, depth):
                if all(self._fold(test, scope, inner, depth) != (False,) for test in generator.ifs):
                    yield inner

    def _operation(self, node: ast.BinOp, scope: Scope, frame: Frame, depth: int) -> Possible:
        combine = pure.OPERATIONS.get(type(node.op))
        if combine is None:
            return ANYTHING
        # A long sum leans to the left: walked, not nested.
        rights: list[ast.expr] = []
        left: ast.expr = node
        while isinstance(left, ast.BinOp) and type(left.op) is type(node.op):
            rights.append(left.right)
            left = left.left
        here = self._fold(left, scope, frame, depth)
        for right in reversed(rights):
            here = self._product([here, self._fold(right, scope, frame, depth)], combine)
        return here

    def _test(self, node: ast.UnaryOp | ast.Compare, scope: Scope, frame: Frame, depth: int) -> Possible:
        operands = [node.operand] if isinstance(node, ast.UnaryOp) else [node.left, *node.comparators]
        return self._product([self._fold(each, scope, frame, depth) for each in operands], pure.operator_of(node))

    def _text(self, node: ast.JoinedStr, scope: Scope, frame: Frame, depth: int) -> Possible:
        return self._product(
            [self._fold(part, scope, frame, depth) for part in node.values], lambda *parts: "".join(map(str, parts))
        )

    def _field(self, node: ast.FormattedValue, scope: Scope, frame: Frame, depth: int) -> Possible:
        spec = self._fold(node.format_spec, scope, frame, depth) if node.format_spec else ("",)
        turn = pure.CONVERSIONS[node.conversion]
        return self._product(
            [self._fold(node.value, scope, frame, depth), spec], lambda value, how: pure.formatted(turn(value), how)
        )

    def _subscript(self, node: ast.Subscript, scope: Scope, frame: Frame, depth: int) -> Possible:
        parts = [self._fold(node.value, scope, frame, depth)]
        if not isinstance(node.slice, ast.Slice):
            parts.append(self._fold(node.slice, scope, frame, depth))
            return self._product(parts, lambda held, index: held[index])
        ends = (node.slice.lower, node.slice.upper, node.slice.step)
        parts += [self._fold(end, scope, frame, depth) if end is not None else (None,) for end in ends]
        return self._product(parts, lambda held, *ends: held[slice(*ends)])

    def _attribute(self, node: ast.Attribute, scope: Scope, frame: Frame, depth: int) -> Possible:
        for path in self.values.paths(node, scope):
            if path in pure.CONSTANTS:
                return (pure.CONSTANTS[path],)
        homes = self.program.fields
        if node.attr in homes.names and not frame:
            return self._bound(homes, node.attr, depth)
        return ANYTHING

    def _call(self, node: ast.Call, scope: Scope, frame: Frame, depth: int) -> Possible:
        if any(isinstance(each, ast.Starred) for each in node.args):
            return self._spread(node, scope, frame, depth)
        if node.keywords and not node.args and self.values.paths(node.func, scope) == {"dict"}:
            keys: list[ast.expr | None] = [ast.Constant(word.arg) if word.arg else None for word in node.keywords]
            return self._mapping(ast.Dict(keys, [word.value for word in node.keywords]), scope, frame, depth)
        words = {word.arg for word in node.keywords}
        if words - {"encoding", "errors"} and not (words == {"sep"} or self.loose):
            return ANYTHING
        arguments = [self._fold(each, scope, frame, depth) for each in node.args]
        for path in sorted(self.values.paths(node.func, scope)):
            if path in pure.FUNCTIONS:
                return self._product(arguments, pure.FUNCTIONS[path])
        if isinstance(node.func, ast.Lambda):
            return self._lambda(node.func, arguments, scope, frame, depth)
        if isinstance(node.func, ast.Attribute) and node.func.attr in pure.METHODS:
            whole = [self._fold(node.func.value, scope, frame, depth), *arguments]
            return self._product(whole, lambda *parts: pure.METHODS[node.func.attr](*parts))  # type: ignore[attr-defined]  # narrowed above
        return self._mapped(node, arguments, scope, frame, depth)

    def _spread(self, node: ast.Call, scope: Scope, frame: Frame, depth: int) -> Possible:
        """`f(*items)`: the items one by one."""
        call = ast.Call(func=node.func, args=choices.unpacked(node.args), keywords=node.keywords)
        return self._call(call, scope, frame, depth) if call.args else ANYTHING

    def _lambda(self, node: ast.Lambda, arguments: Given, scope: Scope, frame: Frame, depth: int) -> Possible:
        names = [each.arg for each in node.args.args]
        if len(names) != len(arguments) or any(len(each) != 1 for each in arguments):
            return ANYTHING
        inner = {**frame, **{name: each[0] for name, each in zip(names, arguments, strict=True)}}
        return self._fold(node.body, scope, inner, depth)

    def _mapped(self, node: ast.Call, arguments: Given, scope: Scope, frame: Frame, depth: int) -> Possible:
        """`map(chr, codes)` and `functools.reduce(lambda a, b: a + b, parts)`."""
        functions = self.values.paths(node.func, scope)
        if not functions & {"map", "functools.reduce"} or len(node.args) != 2 or len(arguments[1]) != 1:
            return self._own(node, arguments, depth)
        items = items_of(arguments[1][0])[:MAX_ITEMS]
        if "map" in functions:
            found = [self._applied(node.args[0], [(item,)], scope, frame, depth) for item in items]
            return self._product(found, lambda *parts: tuple(parts), keep=True)
        here: Possible = (items[0],) if items else ANYTHING
        for item in items[1:]:
            here = self._applied(node.args[0], [here, (item,)], scope, frame, depth)
        return here

    def _applied(self, function: ast.expr, arguments: Given, scope: Scope, frame: Frame, depth: int) -> Possible:
        self.steps += 1
        if isinstance(function, ast.Lambda):
            return self._lambda(function, arguments, scope, frame, depth)
        for path in self.values.paths(function, scope):
            if path in pure.FUNCTIONS:
                return self._product(arguments, pure.FUNCTIONS[path])
        return ANYTHING

    def _own(self, node: ast.Call, arguments: Given, depth: int) -> Possible:
        """A call of the program's own function that only returns an expression.

        Of several functions of one name it may be any, and nobody can say that there is no other.
        """
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        signatures = self.program.functions.get(name, [])
        results = self.program.results.names.get(name, [])
        if len(signatures) != len(results) or not 0 < len(results) <= MAX_NAMESAKES:
            return ANYTHING
        found = Choices() if len(results) == 1 else Choices(UNKNOWN)
        for signature, result in zip(signatures, results, strict=True):
            found.add(self._returned(signature, result, arguments, depth))
        return found.all()

    def _returned(self, signature: Signature, result: Binding, arguments: Given, depth: int) -> Possible:
        names, inner = signature
        unclear = len(names) < len(arguments) or any(len(each) != 1 for each in arguments)
        if unclear or result.value is None or result.scope is not inner:
            return ANYTHING
        frame = {name: each[0] for name, each in zip(names, arguments, strict=False)}
        return self._fold(result.value, inner, frame, depth)

    def _product(self, parts: Given, combine: Callable[..., Any], *, keep: bool = False) -> Possible:
        """Every combination of the parts, computed; `keep` lets unknown parts stand inside the result."""
        found = Choices()
        for choice in islice(product(*parts), MAX_CHOICES + 1):
            self.steps += 1
            if self.loose and not keep:
                choice = tuple("*" if part is UNKNOWN else part for part in choice)
            self.steps += sum(len(part) for part in choice if isinstance(part, str | bytes | tuple)) // 100
            unknown = not keep and any(is_open(part) for part in choice)
            found.add((UNKNOWN if unknown else computed(combine, choice),))
        values = found.all()
        return values if 0 < len(values) <= MAX_CHOICES else ANYTHING


_FOLDERS: dict[type[ast.expr], Callable[..., Possible]] = {
    ast.Constant: Folder._constant,
    ast.Name: Folder._name,
    ast.IfExp: Folder._choice,
    ast.BoolOp: Folder._choice,
    ast.NamedExpr: lambda folder, node, *where: folder._fold(node.value, *where),
    ast.Tuple: Folder._sequence,
    ast.List: Folder._sequence,
    ast.Set: Folder._sequence,
    ast.Dict: Folder._mapping,
    ast.ListComp: Folder._comprehension,
    ast.GeneratorExp: Folder._comprehension,
    ast.SetComp: Folder._comprehension,
    ast.BinOp: Folder._operation,
    ast.UnaryOp: Folder._test,
    ast.Compare: Folder._test,
    ast.JoinedStr: Folder._text,
    ast.FormattedValue: Folder._field,
    ast.Subscript: Folder._subscript,
    ast.Attribute: Folder._attribute,
    ast.Call: Folder._call,
}
