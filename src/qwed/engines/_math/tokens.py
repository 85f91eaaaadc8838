"""Tokens of the math grammar, the cursor of its parser, and its table of functions."""

import re
from fractions import Fraction
from typing import NamedTuple

from qwed.engines._math.syntax_tree import MathNode, MathRefusalError, Number, ParseLimits, ambiguous, clip, name_node
from qwed.model.data_files import read_mapping, read_table


class MathToken(NamedTuple):
    """One number, name, sign or mark, and its start position."""

    kind: str
    text: str
    start: int


END = "end of the text"

TRIGONOMETRIC = ("sin", "cos", "tan", "sec", "csc", "cot")
_ONE_ARGUMENT_TEXT = """
asin acos atan sinh cosh tanh asinh acosh atanh exp ln log2 log10 sqrt cbrt abs sign floor ceil factorial gamma zeta erf
fibonacci re im conj arg det inv transpose rank trace eigenvalues norm degrees radians
"""
_ONE_ARGUMENT = (*TRIGONOMETRIC, *_ONE_ARGUMENT_TEXT.split())
ARITY: dict[str, tuple[int, int]] = {
    **dict.fromkeys(_ONE_ARGUMENT, (1, 1)),
    **dict.fromkeys(("binomial", "permutations", "mod", "root", "dot", "cross"), (2, 2)),
    **dict.fromkeys(("min", "max", "gcd", "lcm", "mean", "median"), (1, 50)),
    "log": (1, 2),
    "round": (1, 2),
    "diff": (1, 3),
    "integrate": (1, 4),
    "limit": (2, 4),
    "sum": (1, 4),
    "product": (1, 4),
    "taylor": (4, 4),
}
"""Minimum and maximum number of arguments of every function; `log` and `ln` are natural, `log(x, b)` has base `b`."""

ALIASES = read_mapping(__file__, "aliases.txt")
"""Alternative names of functions."""
CAPITALS = {"C": "binomial", "P": "permutations", "D": "diff"}
"""Capital letters that are functions when called with two arguments."""
BARE = frozenset({*TRIGONOMETRIC, "asin", "acos", "atan", "sinh", "cosh", "tanh", "ln", "log", "log2", "log10"})
"""Functions whose argument may be written without parentheses, as in `sin x`."""

INFINITE = frozenset({"inf", "infinity", "oo"})
UNUSABLE = frozenset({"zoo", "nan", "true", "false", "none", "null", "undefined"})
SIGNS = {"=": "=", "==": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "!=": "!="}

_REST = (
    r"|(?P<name>[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)*)"
    r"|(?P<sign>==|<=|>=|!=|[=<>])"
    r"|(?P<mark>\*\*|->|[-+*/^(),!%|\[\]{}\u221a\u00b0]))"
)
_DIGITS = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_GROUPED = r"[1-9][0-9]{0,2}(?:,[0-9]{3})+(?![0-9,])(?:\.[0-9]+)?"
_PLAIN = re.compile(rf"[ \t\r\n]*(?:(?P<number>{_DIGITS}){_REST}")
_WITH_GROUPS = re.compile(rf"[ \t\r\n]*(?:(?P<number>{_GROUPED}|{_DIGITS}){_REST}")
_GROUP_AFTER_COMMA = re.compile(r"[0-9],0[0-9]{2}(?![0-9])")
_HINTS = {
    "$": "leave the currency out",
    "\\": "check the LaTeX",
    "'": "write `diff(f, x)`",
    ";": "claim one thing at a time",
    "\u2248": "write `=` and give a `tolerance`",
    "~": "write `=` and give a `tolerance`",
}


def hint_for(text: str) -> str:
    """Return a hint for a character that cannot be parsed, or the empty string."""
    return "write 1,000 or 1000, and a decimal point" if text == "," else _HINTS.get(text, "")


_BRACKETS = frozenset("()[]{}")


def tokenize(text: str, limits: ParseLimits) -> list[MathToken]:
    """Return the tokens and an end token; raise MathRefusalError for unknown characters."""
    tokens: list[MathToken] = []
    listing: list[bool] = []
    position, end = 0, len(text.rstrip(" \t\r\n"))
    while position < end:
        # Inside the brackets of a call or a list a comma separates arguments, elsewhere it groups thousands.
        match = (_PLAIN if True in listing else _WITH_GROUPS).match(text, position)
        if match is None:
            raise _unknown_character(text, position)
        group = match.lastgroup or "mark"
        token = MathToken(group, match[group], match.start(group))
        if True in listing and token.kind == "number" and _GROUP_AFTER_COMMA.match(text, token.start - 2):
            raise ambiguous(",", "1000 without a comma, or a space after the comma", token.start - 1)
        if token.text == "!=" and text[token.start - 1 : token.start].strip():
            raise ambiguous("!=", "`5! = 120` or `5 != 120`", token.start)
        if token.text in _BRACKETS:
            _track_brackets(listing, token, tokens)
        tokens.append(token)
        position = match.end()
        if len(tokens) > limits.tokens:
            raise MathRefusalError(
                "within_limits", f"the text has more than {limits.tokens} numbers and signs: shorten it"
            )
    tokens.append(MathToken("end", END, end))
    return tokens


def split_names(tokens: list[MathToken]) -> list[MathToken]:
    """Split `xy` into `x` and `y` if both letters also occur alone."""
    alone = set()
    for token in tokens:
        if token.kind == "name" and len(token.text) == 1:
            alone.add(token.text)
    if not alone:
        return tokens
    split: list[MathToken] = []
    for token in tokens:
        if split and split[-1].text == "/" and token.text[0] == "d":
            split.append(token)
            continue
        whole = token.kind != "name" or not 2 <= len(token.text) <= 4 or not alone.issuperset(token.text)
        if whole or token.text == "pi" or canonical_function(token.text) in ARITY:
            split.append(token)
        else:
            split.extend(MathToken("name", letter, token.start + index) for index, letter in enumerate(token.text))
    return split


def _track_brackets(listing: list[bool], token: MathToken, before: list[MathToken]) -> None:
    """Track the open brackets: True for each in which commas separate arguments."""
    if token.text in ("[", "{"):
        listing.append(True)
    elif token.text == "(":
        listing.append(bool(before) and _is_function(before[-1].text))
    elif token.text in (")", "]", "}") and listing:
        listing.pop()


def _is_function(text: str) -> bool:
    return text in CAPITALS or canonical_function(text) in ARITY


def canonical_function(text: str) -> str:
    """Return the canonical name of a function."""
    return ALIASES.get(text.lower(), text.lower())


def _unknown_character(text: str, position: int) -> MathRefusalError:
    while text[position] in " \t\r\n":
        position += 1
    character = text[position]
    hint = hint_for(character) or "use digits, names, `+ - * / ^ ( )` and comparison signs"
    return MathRefusalError(
        "syntax_valid", f"cannot read {clip(character)} at position {position + 1}: {hint}", position + 1
    )


_GREEK = frozenset(read_table(__file__, "greek_letters.txt").split())


def is_letter(text: str) -> bool:
    """Return True if the name counts as one letter, so that adjacent ones multiply."""
    return (len(text) == 1 and text.isalpha()) or text.lower() in _GREEK or bool(re.fullmatch(r"[A-Za-z]_[0-9]+", text))


def number_of(token: MathToken, digits: int) -> Number:
    """Return the exact value of a number token; a decimal becomes a fraction."""
    if token.text.isdecimal() and len(token.text) <= digits:
        return int(token.text)
    mantissa, _, scale = token.text.replace(",", "").lower().partition("e")
    if len(mantissa) > digits or len(scale.lstrip("+-0")) > 4 or abs(int(scale or 0)) > digits:
        raise MathRefusalError(
            "within_limits", f"the number at position {token.start + 1} has more than {digits} digits"
        )
    whole, _, fraction = mantissa.partition(".")
    exponent = int(scale or 0) - len(fraction)
    value = int(whole + fraction)
    return value * 10**exponent if exponent >= 0 else Fraction(value, 10**-exponent)


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
        ahead = self.tokens[self.index]
        if ahead.kind != "end":
            raise self.unexpected(ahead)

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
