"""Token cursor of the math parser: look-ahead, bracketed lists and bounded nesting."""

from qwed.engines._math.syntax_tree import MathNode, MathRefusalError, ParseLimits, clip, name_node
from qwed.engines._math.tokens import END, MathToken, hint_for


class Cursor:
    """Position in a list of tokens; every nesting goes through `enter_nesting`, so its depth is bounded."""

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

    def __init__(self, tokens: list[MathToken], limits: ParseLimits, in_units: bool) -> None:
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
    def ahead(self) -> MathToken:
        return self.tokens[self.index]

    @property
    def behind(self) -> MathToken:
        return self.tokens[self.index - 1]

    def finish(self) -> None:
        if self.ahead.kind != "end":
            raise self.unexpected(self.ahead)

    def is_used_alone(self, name: str) -> bool:
        pairs = zip(self.tokens, self.tokens[1:], strict=False)
        return any(token.text == name and after.text != "(" for token, after in pairs)

    def count_arguments(self) -> int:
        """Return the number of arguments in the parentheses ahead."""
        depth, count = 0, 1
        for token in self.tokens[self.index :]:
            depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
            count += token.text == "," and depth == 1
            if depth == 0:
                break
        return count

    def is_half_of(self, token: MathToken) -> bool:
        """Return True if a unit follows a fraction of two numbers, as in `1/2 km`."""
        above, sign = self.tokens[self.index - 3 : self.index - 1] if self.index > 2 else (token, token)
        return self.in_units and token.kind == "name" and above.kind == "number" and sign.text == "/"

    def expressions_until(self, close: str, open_end: bool = True) -> list[MathNode]:
        """Parse the expressions separated by commas, up to and including `close`."""
        if open_end and self.ahead.text == close:
            self.index += 1
            return []
        bars, self.bars = self.bars, 0
        items = [self._item(close)]
        while self.behind.text == ",":
            items.append(self._item(close))
        self.bars = bars
        return items

    def _item(self, close: str) -> MathNode:
        self.enter_nesting()
        node = self.expression()
        if self.ahead.text == "->":
            self.index += 1
            self.arrow = True
            node = MathNode("tuple", (node, self.expression(), *self._side()))
            self.arrow = False
        if self.ahead.text not in (close, ","):
            raise self.unexpected(self.ahead)
        self.depth -= 1
        self.index += 1
        return node

    def is_limit_side(self) -> bool:
        return self.arrow and self.tokens[self.index + 1].text in (")", ",")

    def _side(self) -> tuple[MathNode, ...]:
        """Parse the side from which a limit such as `x->0+` is taken, if one is given."""
        if self.ahead.text not in ("+", "-"):
            return ()
        self.index += 1
        return (name_node("right" if self.behind.text == "+" else "left"),)

    def expression_until(self, close: str) -> MathNode:
        """Parse one expression up to and including `close`."""
        bars, self.bars = self.bars, self.bars if close == "|" else 0
        self.enter_nesting()
        node = self.expression()
        if self.ahead.text != close:
            raise self.unexpected(self.ahead)
        self.depth -= 1
        self.index += 1
        self.bars = bars
        return node

    def enter_nesting(self) -> None:
        self.depth += 1
        if self.depth > self.limits.depth:
            raise MathRefusalError("within_limits", f"nested deeper than {self.limits.depth}: split the expression up")

    def unexpected(self, token: MathToken) -> MathRefusalError:
        label = END if token.kind == "end" else clip(token.text)
        operand = token.kind in ("number", "name")
        hint = hint_for(token.text) or ("put an operator before it" if operand else "a number or a name is missing")
        return MathRefusalError(
            "syntax_valid", f"unexpected {label} at position {token.start + 1}: {hint}", token.start + 1
        )

    def expression(self) -> MathNode:
        """Parse the expression that starts here; the parser implements it."""
        raise NotImplementedError
