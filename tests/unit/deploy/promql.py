"""Parser of the PromQL subset that we use: which metrics an expression names, and whether it is valid."""

import re
from dataclasses import dataclass, field

FUNCTIONS = frozenset({"rate", "increase", "histogram_quantile"})
AGGREGATIONS = frozenset({"sum", "min", "max", "count", "topk"})
OPERATORS = frozenset({"/", ">", "==", "and", "or", "unless"})
SETS = frozenset({"and", "or", "unless"})
"""Of two series only those with the same labels are compared, but for what is ignored."""
_TOKEN = re.compile(
    r"""\s*(?:(?P<string>"(?:[^"\\]|\\.)*")|(?P<range>\[(?:\d+[smhd]|\$__rate_interval)\])|(?P<duration>\d+[smhd]\b)|(?P<number>\d+(?:\.\d+)?)"""
    r"""|(?P<word>[A-Za-z_:][A-Za-z0-9_:]*)|(?P<sign>=~|!~|!=|==|[(){},=><*/+-]))"""
)


@dataclass
class Named:
    """The metrics an expression names, with the matchers of each, and the labels it groups by."""

    metrics: list[tuple[str, dict[str, tuple[str, str]]]] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    """Labels that do not count where two series are compared."""


def read(text: str) -> Named:
    """Return what an expression names; raise AssertionError if it is invalid."""
    reader = _Reader(text)
    reader.expression()
    assert not reader.left, f"left over: {reader.left}"
    return reader.named


class _Reader:
    def __init__(self, text: str) -> None:
        self.left: list[tuple[str, str]] = []
        self.named = Named()
        position = 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            assert match is not None, f"unreadable: {text[position:]}"
            kind = match.lastgroup or ""
            self.left.append((kind, match[kind]))
            position = match.end()

    def take(self, *expected: str) -> str:
        assert self.left, f"something is missing: {expected}"
        kind, text = self.left.pop(0)
        assert not expected or text in expected or kind in expected, f"{text} where {expected} should stand"
        return text

    def sees(self, *texts: str) -> bool:
        return bool(self.left) and (self.left[0][1] in texts or self.left[0][0] in texts)

    def expression(self) -> None:
        self.operand()
        while self.sees(*OPERATORS):
            operator = self.take()
            if operator in SETS and self.sees("ignoring"):
                self.take()
                self.labels(self.named.ignored)
            self.operand()

    def operand(self) -> None:
        if self.sees("number"):
            self.take()
        elif self.sees("("):
            self.inside()
        else:
            self.call(self.take("word"))

    def call(self, word: str) -> None:
        if word in AGGREGATIONS:
            if self.sees("by"):
                self.take()
                self.labels(self.named.groups)
            self.inside()
        elif word in FUNCTIONS:
            self.inside()
        else:
            assert not self.sees("("), f"unknown function {word}"
            self.named.metrics.append((word, self.matchers()))
            if self.sees("range"):
                self.take()
            if self.sees("offset"):
                self.take()
                self.take("duration")

    def inside(self) -> None:
        self.take("(")
        self.expression()
        while self.sees(","):
            self.take()
            self.expression()
        self.take(")")

    def labels(self, into: list[str]) -> None:
        self.take("(")
        into.append(self.take("word"))
        while self.sees(","):
            self.take()
            into.append(self.take("word"))
        self.take(")")

    def matchers(self) -> dict[str, tuple[str, str]]:
        match: dict[str, tuple[str, str]] = {}
        if not self.sees("{"):
            return match
        self.take("{")
        while not self.sees("}"):
            label = self.take("word")
            match[label] = (self.take("=", "!=", "=~", "!~"), self.take("string")[1:-1])
            if not self.sees("}"):
                self.take(",")
        self.take("}")
        return match
