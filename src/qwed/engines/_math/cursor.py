"""Walking the tokens of a formula: what is ahead and behind, and what stands between brackets."""

from qwed.engines._math.tokens import END, Token, hint_for
from qwed.engines._math.tree import Limits, Node, Refused, clip, named


class Cursor:
    """A place among tokens; every nesting goes through `deeper`, so its depth is bounded."""

    __slots__ = (
        "after_bare",
        "after_power",
        "arrow",
        "bars",
        "depth",
        "in_units",
        "index",
        "limits",
        "percent",
        "tokens",
    )

    def __init__(self, tokens: list[Token], limits: Limits, in_units: bool) -> None:
        self.in_units = in_units
        self.tokens = tokens
        self.limits = limits
        self.index = 0
        self.depth = 0
        self.bars = 0
        self.percent = False
        self.arrow = False
        self.after_power = -1
        self.after_bare = -1

    @property
    def ahead(self) -> Token:
        return self.tokens[self.index]

    @property
    def behind(self) -> Token:
        return self.tokens[self.index - 1]

    def finish(self) -> None:
        if self.ahead.kind != "end":
            raise self.unexpected(self.ahead)

    def is_used_alone(self, name: str) -> bool:
        pairs = zip(self.tokens, self.tokens[1:], strict=False)
        return any(token.text == name and after.text != "(" for token, after in pairs)

    def count_arguments(self) -> int:
        """How many arguments stand between the parentheses ahead."""
        depth, count = 0, 1
        for token in self.tokens[self.index :]:
            depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
            count += token.text == "," and depth == 1
            if depth == 0:
                break
        return count

    def is_half_of(self, token: Token) -> bool:
        """Whether a unit follows a fraction of two numbers, as in `1/2 km`."""
        above, sign = self.tokens[self.index - 3 : self.index - 1] if self.index > 2 else (token, token)
        return self.in_units and token.kind == "name" and above.kind == "number" and sign.text == "/"

    def items(self, close: str, open_end: bool = True) -> list[Node]:
        """The expressions up to and over `close`, parted by commas."""
        if open_end and self.ahead.text == close:
            self.index += 1
            return []
        bars, self.bars = self.bars, 0
        items = [self._item(close)]
        while self.behind.text == ",":
            items.append(self._item(close))
        self.bars = bars
        return items

    def _item(self, close: str) -> Node:
        self.deeper()
        node = self.expression()
        if self.ahead.text == "->":
            self.index += 1
            self.arrow = True
            node = Node("tuple", (node, self.expression(), *self._side()))
            self.arrow = False
        if self.ahead.text not in (close, ","):
            raise self.unexpected(self.ahead)
        self.depth -= 1
        self.index += 1
        return node

    def says_side(self) -> bool:
        return self.arrow and self.tokens[self.index + 1].text in (")", ",")

    def _side(self) -> tuple[Node, ...]:
        """The side from which a limit such as `x->0+` is taken, if one is said."""
        if self.ahead.text not in ("+", "-"):
            return ()
        self.index += 1
        return (named("right" if self.behind.text == "+" else "left"),)

    def closing(self, close: str) -> Node:
        """One expression up to and over `close`."""
        bars, self.bars = self.bars, self.bars if close == "|" else 0
        self.deeper()
        node = self.expression()
        if self.ahead.text != close:
            raise self.unexpected(self.ahead)
        self.depth -= 1
        self.index += 1
        self.bars = bars
        return node

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > self.limits.depth:
            raise Refused("within_limits", f"nested deeper than {self.limits.depth}: split the expression up")

    def unexpected(self, token: Token) -> Refused:
        shown = END if token.kind == "end" else clip(token.text)
        operand = token.kind in ("number", "name")
        hint = hint_for(token.text) or ("put an operator before it" if operand else "a number or a name is missing")
        return Refused("syntax_valid", f"unexpected {shown} at position {token.start + 1}: {hint}", token.start + 1)

    def expression(self) -> Node:
        """The expression that starts here; the grammar says what that is."""
        raise NotImplementedError
