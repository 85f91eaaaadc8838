"""A message as a tree of elements, whichever way it was written, and what is found in it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

from qwed.words import Record

MOST_FINDINGS = 200
"""A message of thousands of payments that are all wrong in the same way is not told thousands of times."""
_NONE: Mapping[str, str] = MappingProxyType({})


class Node:
    """One element."""

    __slots__ = ("attributes", "children", "name", "parent", "text")

    def __init__(self, name: str, parent: "Node | None" = None) -> None:
        self.name = name
        self.parent = parent
        self.attributes = _NONE
        self.children: list[Node] = []
        self.text = ""

    def mark(self, name: str, value: str) -> None:
        """Give it an attribute; few elements have one."""
        if not isinstance(self.attributes, dict):
            self.attributes = {}
        self.attributes[name] = value

    def all(self, path: str) -> Iterator["Node"]:
        """Every element at a path below, such as `PmtInf/CdtTrfTxInf`."""
        first, _, rest = path.partition("/")
        for child in self.children:
            if child.name == first:
                if rest:
                    yield from child.all(rest)
                else:
                    yield child

    def find(self, path: str) -> "Node | None":
        """The first element at a path below."""
        return next(self.all(path), None)

    def need(self, path: str) -> "Node":
        """The first element at a path below, which the structure of the message promises."""
        found = self.find(path)
        if found is None:
            raise LookupError(f"{self.name} has no {path}")
        return found

    def at(self, path: str) -> str | None:
        """The text of the first element at a path below."""
        found = self.find(path)
        return None if found is None else found.text

    def below(self) -> Iterator["Node"]:
        """Itself and everything in it."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(node.children))


@dataclass(frozen=True, kw_only=True)
class Finding(Record):
    """One thing that is wrong, where it stands, and how to see that by hand."""

    path: str
    rule: str
    """A name from the table of rules, such as `control_sum`."""
    message: str
    by_hand: tuple[str, ...] = ()


class Findings:
    """What is collected while a message is read."""

    def __init__(self) -> None:
        self.wrong: list[Finding] = []
        self.unknown: list[Finding] = []
        """What no table of ours knows: neither right nor wrong."""
        self.warnings: list[Finding] = []
        self.checked: list[str] = []
        """The sums and counts that came out right, each one line that can be redone."""
        self._places: dict[Node, dict[Node, str]] = {}

    def path(self, node: Node) -> str:
        """`/Document/CstmrCdtTrfInitn/PmtInf[2]/PmtInfId`; a number stands where there are several."""
        if node.parent is None:
            return f"/{node.name}"
        if node.parent not in self._places:
            self._places[node.parent] = _numbered(node.parent)
        return f"{self.path(node.parent)}/{self._places[node.parent][node]}"

    @property
    def full(self) -> bool:
        """Whether enough is wrong to stop looking."""
        return len(self.wrong) >= MOST_FINDINGS

    def fail(self, node: Node, rule: str, message: str, *by_hand: str) -> Self:
        """Note something wrong."""
        return self._add(self.wrong, node, rule, message, by_hand)

    def wonder(self, node: Node, rule: str, message: str, *by_hand: str) -> Self:
        """Note something that cannot be decided."""
        return self._add(self.unknown, node, rule, message, by_hand)

    def warn(self, node: Node, rule: str, message: str, *by_hand: str) -> Self:
        """Note something that the standard advises against and that leaves the message what it is."""
        return self._add(self.warnings, node, rule, message, by_hand)

    def hold(self, node: Node, line: str) -> None:
        """Note a computation that agrees with the message."""
        if len(self.checked) < MOST_FINDINGS:
            self.checked.append(f"{self.path(node)}: {line}")

    def _add(self, to: list[Finding], node: Node, rule: str, message: str, by_hand: tuple[str, ...]) -> Self:
        if len(to) < MOST_FINDINGS:
            path = self.path(node)
            to.append(Finding(path=path, rule=rule, message=message, by_hand=by_hand or (f"look at {path}",)))
        return self


def _numbered(parent: Node) -> dict[Node, str]:
    many, seen = Counter(each.name for each in parent.children), Counter[str]()
    places = {}
    for each in parent.children:
        seen[each.name] += 1
        places[each] = each.name if many[each.name] == 1 else f"{each.name}[{seen[each.name]}]"
    return places
