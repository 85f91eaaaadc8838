"""Random programs made from parts of other programs, by a seed."""

import ast
import copy
import random
from collections.abc import Iterator, Sequence


class Recombination:
    """Generator that recombines statements, expressions, names and strings of given programs."""

    def __init__(self, programs: Sequence[str], hosts: Sequence[str], names: Sequence[str], seed: int) -> None:
        self._random = random.Random(seed)
        self._hosts = [ast.parse(each) for each in hosts]
        trees = [ast.parse(each) for each in programs]
        self._statements = [each for tree in trees for each in tree.body]
        self._expressions = [each for tree in trees for each in ast.walk(tree) if _is_value(each)]
        self._texts = sorted({each.value for each in self._expressions if _is_text(each)})
        self._names = sorted(names)

    def programs(self, count: int) -> Iterator[str]:
        """Yield `count` programs, each a host with one to four parts exchanged."""
        for _ in range(count):
            tree = copy.deepcopy(self._random.choice(self._hosts))
            for _ in range(self._random.randint(1, 4)):
                self._random.choice((self._statement, self._expression, self._word, self._word, self._text))(tree)
            yield from _written(tree)

    def _statement(self, tree: ast.Module) -> None:
        blocks = [each.body for each in ast.walk(tree) if isinstance(getattr(each, "body", None), list)]
        block = self._random.choice(blocks)
        block.insert(self._random.randint(0, len(block)), copy.deepcopy(self._random.choice(self._statements)))

    def _expression(self, tree: ast.Module) -> None:
        places = [(each, name) for each in ast.walk(tree) for name, held in ast.iter_fields(each) if _is_value(held)]
        if places:
            node, name = self._random.choice(places)
            setattr(node, name, copy.deepcopy(self._random.choice(self._expressions)))

    def _word(self, tree: ast.Module) -> None:
        places = [
            (each, name)
            for each in ast.walk(tree)
            for name in ("id", "attr", "arg", "name", "asname", "module")
            if isinstance(getattr(each, name, None), str)
        ]
        if not places:
            return
        node, name = self._random.choice(places)
        own = [getattr(each, member) for each, member in places]
        setattr(node, name, self._random.choice(own if self._random.random() < 0.5 else self._names))

    def _text(self, tree: ast.Module) -> None:
        places = [each for each in ast.walk(tree) if _is_text(each)]
        if places and self._texts:
            self._random.choice(places).value = self._random.choice(self._texts)


def _written(tree: ast.Module) -> Iterator[str]:
    """Yield the source of the program if it can be unparsed."""
    try:
        code = ast.unparse(ast.fix_missing_locations(tree))
        ast.parse(code)
    except (ValueError, SyntaxError):
        return
    yield code


def _is_value(node: object) -> bool:
    part_of_text = isinstance(node, ast.FormattedValue | ast.Slice)
    return isinstance(node, ast.expr) and not part_of_text and isinstance(getattr(node, "ctx", ast.Load()), ast.Load)


def _is_text(node: object) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
