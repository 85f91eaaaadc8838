"""Element tree of a message, from XML or JSON, and the issues found in it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Self

from qwed.model import Record

MAX_ISSUES = 200
"""Limit on reported issues, for messages with thousands of payments that share one error."""
_NO_ATTRIBUTES: Mapping[str, str] = MappingProxyType({})


class Element:
    """Element of a message."""

    __slots__ = ("attributes", "children", "name", "parent", "text")

    def __init__(self, name: str, parent: "Element | None" = None) -> None:
        self.name = name
        self.parent = parent
        self.attributes = _NO_ATTRIBUTES
        self.children: list[Element] = []
        self.text = ""

    def set_attribute(self, name: str, value: str) -> None:
        """Set an attribute; the dict is created only then, because few elements have one."""
        if not isinstance(self.attributes, dict):
            self.attributes = {}
        self.attributes[name] = value

    def all(self, path: str) -> Iterator["Element"]:
        """Yield every element at a path below, such as `PmtInf/CdtTrfTxInf`."""
        first, _, rest = path.partition("/")
        for child in self.children:
            if child.name == first:
                if rest:
                    yield from child.all(rest)
                else:
                    yield child

    def find(self, path: str) -> "Element | None":
        """Return the first element at a path below, or None."""
        return next(self.all(path), None)

    def require(self, path: str) -> "Element":
        """Return the first element at a path below, which the checked structure guarantees."""
        element = self.find(path)
        if element is None:
            raise LookupError(f"{self.name} has no {path}")
        return element

    def text_at(self, path: str) -> str | None:
        """Return the text of the first element at a path below, or None."""
        element = self.find(path)
        return None if element is None else element.text

    def iter_tree(self) -> Iterator["Element"]:
        """Yield the element and all its descendants in document order."""
        pending = [self]
        while pending:
            node = pending.pop()
            yield node
            pending.extend(reversed(node.children))


@dataclass(frozen=True, kw_only=True)
class MessageIssue(Record):
    """One issue with its path and the steps to reproduce it."""

    path: str
    rule: str
    """Name from the table of rules, such as `control_sum`."""
    message: str
    by_hand: tuple[str, ...] = ()


class MessageIssues:
    """Collector of issues."""

    def __init__(self) -> None:
        self.errors: list[MessageIssue] = []
        self.undecided: list[MessageIssue] = []
        """Issues that our tables cannot decide."""
        self.warnings: list[MessageIssue] = []
        self.confirmed: list[str] = []
        """Sums and counts that agree, each as a reproducible line."""
        self._numbered: dict[Element, dict[Element, str]] = {}

    def path(self, node: Element) -> str:
        """Return the path `/Document/CstmrCdtTrfInitn/PmtInf[2]/PmtInfId`; repeated elements are numbered."""
        if node.parent is None:
            return f"/{node.name}"
        if node.parent not in self._numbered:
            self._numbered[node.parent] = _numbered_names(node.parent)
        return f"{self.path(node.parent)}/{self._numbered[node.parent][node]}"

    @property
    def is_full(self) -> bool:
        """True if there are enough errors to stop checking."""
        return len(self.errors) >= MAX_ISSUES

    def fail(self, node: Element, rule: str, message: str, *by_hand: str) -> Self:
        """Add an error."""
        return self._add(self.errors, node, rule, message, by_hand)

    def add_undecided(self, node: Element, rule: str, message: str, *by_hand: str) -> Self:
        """Add an issue that cannot be decided."""
        return self._add(self.undecided, node, rule, message, by_hand)

    def warn(self, node: Element, rule: str, message: str, *by_hand: str) -> Self:
        """Add a warning about something that the standard advises against."""
        return self._add(self.warnings, node, rule, message, by_hand)

    def confirm(self, node: Element, line: str) -> None:
        """Add a computation that agrees with the message."""
        if len(self.confirmed) < MAX_ISSUES:
            self.confirmed.append(f"{self.path(node)}: {line}")

    def _add(
        self, issues: list[MessageIssue], node: Element, rule: str, message: str, by_hand: tuple[str, ...]
    ) -> Self:
        if len(issues) < MAX_ISSUES:
            path = self.path(node)
            issues.append(MessageIssue(path=path, rule=rule, message=message, by_hand=by_hand or (f"look at {path}",)))
        return self


def _numbered_names(parent: Element) -> dict[Element, str]:
    counts, seen = Counter(child.name for child in parent.children), Counter[str]()
    names = {}
    for child in parent.children:
        seen[child.name] += 1
        names[child] = child.name if counts[child.name] == 1 else f"{child.name}[{seen[child.name]}]"
    return names
