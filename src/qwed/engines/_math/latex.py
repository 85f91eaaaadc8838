"""Translation of LaTeX to the notation of the math grammar, by tables; an unknown command is refused."""

import re
from collections.abc import Callable
from typing import NamedTuple

from qwed.engines._math.latex_tables import GREEK, MATRICES, SYMBOLS
from qwed.engines._math.syntax_tree import MathRefusalError, ambiguous, clip
from qwed.engines._math.tokens import ARITY, canonical_function

_MAX_DEPTH = 40
_WRAPPED = re.compile(r"\s*(?:\$\$(.*)\$\$|\$(.*)\$|\\\((.*)\\\)|\\\[(.*)\\\])\s*", re.DOTALL)
_TOKEN = re.compile(r"!=|\\[A-Za-z]+\*?|\\.|[A-Za-z]+|[0-9][0-9.,]*|\s+|.", re.DOTALL)
_SPLIT_SIGN = re.compile(r"[<>=*-]\s+[=>*]")
"""Signs that would merge into another one without the space between them."""
_THOUSANDS = re.compile(r"(?<=[0-9])(?:\{,\}|\\,)(?=[0-9]{3}(?![0-9]))")
_TO = re.compile(r"\s*(.+?)\s*->\s*(.+?)\s*(\^\([+-]\)|\^[+-])?\s*", re.DOTALL)
_ENDS = frozenset({"+", "-", "=", "<", ">", ",", ")", "]", "}", "|", "&", "\\\\"})
_ENDING = frozenset({"\\le", "\\leq", "\\ge", "\\geq", "\\ne", "\\neq", "\\lt", "\\gt", "\\right", "\\end", "\\equiv"})


def is_latex(text: str) -> bool:
    """Return True if the text contains anything that only LaTeX has."""
    return "\\" in text or "^{" in text or "_{" in text or (text.count("$") == 2 and text.strip().startswith("$"))


def from_latex(text: str) -> str:
    """Return the same formula in plain notation; raise MathRefusalError for a command that is not in the tables."""
    while wrapped := _WRAPPED.fullmatch(text):
        text = next(part for part in wrapped.groups() if part is not None)
    text = _THOUSANDS.sub(",", text.replace("\\displaystyle", "").replace("\\limits", ""))
    if tight := re.search(r"\S!=", text):
        raise ambiguous("!=", "`5! = 120` or `5 != 120`", tight.start() + 1)
    if torn := _SPLIT_SIGN.search(text):
        raise MathRefusalError(
            "syntax_valid", f"cannot read {clip(torn[0])} at position {torn.start() + 1}: leave the space out"
        )
    writer = _LatexTranslator([token for token in _TOKEN.findall(text) if not token.isspace()])
    translated = writer.until(frozenset())
    if writer.index < len(writer.tokens):
        raise writer.unexpected()
    return translated


class _Range(NamedTuple):
    """Bounds below and above a large operator."""

    low: str
    high: str


class _LatexTranslator:
    """Translator from LaTeX tokens to plain notation; its nesting is bounded."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens
        self.index = 0
        self.depth = 0
        self.differential = ""

    @property
    def ahead(self) -> str:
        return self.tokens[self.index] if self.index < len(self.tokens) else ""

    def unexpected(self) -> MathRefusalError:
        return MathRefusalError(
            "syntax_valid", f"cannot read {clip(self.ahead or 'the end')} in the LaTeX: check its braces"
        )

    def take(self) -> str:
        token = self.ahead
        if not token:
            raise self.unexpected()
        self.index += 1
        return token

    def until(self, ends: frozenset[str]) -> str:
        """Translate everything up to, but not including, one of `ends`."""
        self._enter_nesting()
        parts = []
        while self.ahead and self.ahead not in ends and self.ahead != "}":
            parts.append(self.piece())
        self.depth -= 1
        return "".join(parts)

    def _enter_nesting(self) -> None:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise MathRefusalError("within_limits", f"nested deeper than {_MAX_DEPTH}: split the expression up")

    def piece(self) -> str:
        """Translate one token with everything that belongs to it."""
        mark = self.take()
        if mark == "{":
            inside = self.until(frozenset({"}"}))
            self._expect("}")
            return f"({inside})"
        if mark == "^":
            return self._exponent()
        if mark[0] == "\\":
            return self._command(mark)
        if mark.isalpha():
            return self._letters(mark)
        # The original spaces are gone here: without a new one, a number or `!` would merge with the next token.
        return f"{mark} " if mark[0].isdigit() or mark[0] == "!" else mark

    def _expect(self, token: str) -> None:
        if self.take() != token:
            self.index -= 1
            raise self.unexpected()

    def group(self, one_digit: bool = False) -> str:
        """Translate the next argument: a group in braces, one command, one letter or one digit."""
        if self.ahead == "{":
            self.index += 1
            inside = self.until(frozenset({"}"}))
            self._expect("}")
            return inside
        token = self.ahead
        if token.startswith("("):
            return self._parenthesised()
        if len(token) > 1 and token[0].isdigit() and not one_digit:
            # LaTeX takes only the first digit, but the author of `x^10` means all of them.
            raise MathRefusalError("unambiguous", f"{clip(token)} has two readings in LaTeX: write `{{{token[:20]}}}`")
        if len(token) > 1 and token[0] != "\\":
            self.tokens[self.index : self.index + 1] = [token[0], token[1:]]
        return self.piece()

    def _parenthesised(self) -> str:
        """Translate an exponent in parentheses, as in plain notation."""
        self._enter_nesting()
        self.index += 1
        parts: list[str] = []
        inside = 0
        while self.ahead and (inside or self.ahead != ")"):
            inside += (self.ahead == "(") - (self.ahead == ")")
            parts.append(self.piece())
        self._expect(")")
        self.depth -= 1
        return "".join(parts)

    def _exponent(self) -> str:
        exponent = self.group().strip()
        if exponent in ("\u00b0", "*"):
            return "\u00b0" if exponent == "\u00b0" else "^*"
        return "^T" if exponent in ("T", "top") else f"^({exponent})"

    def _letters(self, token: str) -> str:
        """Translate adjacent letters as factors, unless they spell a function or a word of the grammar."""
        if canonical_function(token) in ARITY or token in ("mod", "of", "oo", "pi"):
            return f" {token} "
        first, last = token[:-1], token[-1]
        spaced = "".join(f" {letter}" for letter in first)
        if self.ahead != "_":
            return f"{spaced} {last} "
        self.index += 1
        index = re.sub(r"\s", "", self.group())
        if not index.isalnum():
            raise MathRefusalError(
                "syntax_valid", f"an index such as {clip(index)} is not read: use letters and digits"
            )
        return f"{spaced} {last}_{index} "

    def _command(self, token: str) -> str:
        name = token[1:].rstrip("*")
        if name in SYMBOLS:
            return SYMBOLS[name]
        if name in GREEK:
            return self._letters_of_greek(name)
        rule = _RULES.get(name)
        if rule is not None:
            return rule(self)
        if canonical_function(name) in ARITY:
            return self._function(canonical_function(name))
        raise MathRefusalError(
            "syntax_valid", f"cannot read the LaTeX command {clip(token)}: write it in plain notation"
        )

    def _letters_of_greek(self, name: str) -> str:
        if self.ahead != "_":
            return f" {name} "
        self.index += 1
        return f" {name}_{re.sub(r'[^A-Za-z0-9]', '', self.group())} "

    def _function(self, name: str) -> str:
        if self.ahead == "_":
            self.index += 1
            name = f"{name}_{self.group().strip()}"
        if self.ahead in ("{", "\\begin"):
            return f" {name}({self.group()}) "
        return f" {name} "

    def fraction(self) -> str:
        whole = self.tokens[max(0, self.index - 3) : self.index - 1]
        above, below = self.group(one_digit=True).strip(), self.group(one_digit=True).strip()
        tight = re.sub(r"\s", "", above), re.sub(r"[\s()]", "", below)
        if whole and whole[-1].isdigit() and whole[0] not in ("^", "_") and _is_proper(*tight):
            raise MathRefusalError(
                "unambiguous", f"{clip(whole[-1])} before a fraction has two readings: write `+` or `\\cdot`"
            )
        if all(re.fullmatch(r"d[a-z]", part) for part in tight):
            raise MathRefusalError(
                "decidable", "a derivative of an unknown function is not decided here: write `d/dx(f)`"
            )
        order = re.fullmatch(r"d(?:\^\(?([0-9]+)\)?)?", tight[0])
        if order and (variable := re.fullmatch(r"d([A-Za-z])(?:\^([0-9]+))?", tight[1])) and order[1] == variable[2]:
            power = f"^{order[1]}" if order[1] else ""
            return f" d{power}/d{variable[1]}{power} "
        if re.fullmatch(r"d[a-z]", tight[0]):
            self.differential, above = tight[0][1], "1"
        return f"(({above})/({below}))"

    def choice(self) -> str:
        return f" binomial({self.group(one_digit=True)}, {self.group(one_digit=True)}) "

    def root(self) -> str:
        if self.ahead != "[":
            return f" sqrt({self.group()}) "
        self.index += 1
        order = self.until(frozenset({"]"}))
        self._expect("]")
        return f" root({self.group()}, {order}) "

    def _range(self) -> _Range:
        bounds = {"_": "", "^": ""}
        while self.ahead in bounds and not bounds[self.ahead]:
            mark = self.take()
            bounds[mark] = self.group()
        return _Range(bounds["_"], bounds["^"])

    def integral(self) -> str:
        low, high = self._range()
        outer, self.differential = self.differential, ""
        parts: list[str] = []
        inside = 0
        while not self._takes_differential():
            if self.differential and not inside and (not self.ahead or self._ends_term(bool(parts))):
                break
            inside += (self.ahead in ("(", "[")) - (self.ahead in (")", "]"))
            if not self.ahead or self.ahead == "}":
                raise MathRefusalError("syntax_valid", "the integral has no variable: end it with `dx`")
            parts.append(self.piece())
        variable, self.differential = self.differential, outer
        bounds = f", {low}, {high}" if low or high else ""
        return f" integrate({''.join(parts).strip() or '1'}, {variable}{bounds}) "

    def _takes_differential(self) -> bool:
        """Consume a `dx` if it is next, and return True if it was."""
        token = self.ahead
        if token in ("\\mathrm", "\\text", "\\operatorname") and self.tokens[self.index + 1 : self.index + 4] == [
            "{",
            "d",
            "}",
        ]:
            self.index += 4
            self.differential = self.take()
            return True
        if re.fullmatch(r"[a-z]*d[a-z]", token) and canonical_function(token) not in ARITY:
            self.tokens[self.index] = token[:-2]
            self.differential = token[-1]
            if token[:-2]:
                return False
            self.index += 1
            return True
        if self.differential and token == "" and self.index < len(self.tokens):
            self.index += 1
        return False

    def sum_or_product(self, name: str) -> str:
        low, high = self._range()
        variable, sign, first = low.partition("=")
        if not sign or not high:
            raise MathRefusalError("syntax_valid", f"write the {name} with its bounds, as in `\\sum_{{k=1}}^{{n}}`")
        return f" {name}({self._body()}, {variable.strip()}, {first}, {high}) "

    def limit(self) -> str:
        low, _high = self._range()
        match = _TO.fullmatch(low)
        if match is None:
            raise MathRefusalError("syntax_valid", "write the limit with its point, as in `\\lim_{x \\to 0}`")
        side = "" if match[3] is None else ", right" if "+" in match[3] else ", left"
        return f" limit({self._body()}, {match[1]}, {match[2]}{side}) "

    def _body(self) -> str:
        """Translate the one term an operator applies to; a sum after it would be ambiguous."""
        parts: list[str] = []
        inside = 0
        while self.ahead and (inside or not self._ends_term(bool(parts))):
            inside += (self.ahead in ("(", "[")) - (self.ahead in (")", "]"))
            parts.append(self.piece())
        if self.ahead in ("+", "-"):
            raise MathRefusalError(
                "unambiguous", "what is added after a sum or limit has two readings: write parentheses"
            )
        return "".join(parts)

    def _ends_term(self, begun: bool) -> bool:
        return self.ahead in _ENDING or (self.ahead in _ENDS and (begun or self.ahead != "-"))

    def bracketed(self, function: str, close: str) -> str:
        inside = self.until(frozenset({close}))
        self._expect(close)
        return f" {function}({inside}) "

    def skip_delimiter(self) -> str:
        r"""Drop `\left` or `\right`, and keep the bracket after it."""
        if self.ahead == ".":
            self.index += 1
        return ""

    def upright_letters(self) -> str:
        """Translate upright letters unchanged: a function, a unit, or the constant e."""
        if self.ahead != "{":
            return self.piece()
        self.index += 1
        letters = []
        while self.ahead not in ("}", ""):
            letters.append(self.take())
        self._expect("}")
        return f" {' '.join(letters)} "

    def environment(self) -> str:
        kind = self.group().replace(" ", "")
        rows, cells = [], []
        while True:
            cells.append(self.until(frozenset({"&", "\\\\", "\\end"})).strip())
            mark = self.take()
            if mark != "&":
                rows.append(cells)
                cells = []
            if mark == "\\end":
                break
        if self.group().replace(" ", "") != kind or kind not in MATRICES:
            raise MathRefusalError("syntax_valid", f"cannot read the environment {clip(kind)}: write a `pmatrix`")
        if rows[-1] == [""]:
            rows.pop()
        text = ", ".join(f"[{', '.join(row)}]" for row in rows)
        return f" det([{text}]) " if kind == "vmatrix" else f"[{text}]"


def _is_proper(above: str, below: str) -> bool:
    """Return True if the fraction can follow the integer part of a mixed number."""
    return above.isdecimal() and below.isdecimal() and len(above + below) < 20 and 0 < int(above) < int(below)


_RULES: dict[str, Callable[[_LatexTranslator], str]] = {
    **dict.fromkeys(("frac", "dfrac", "tfrac", "cfrac"), _LatexTranslator.fraction),
    "sqrt": _LatexTranslator.root,
    "int": _LatexTranslator.integral,
    "sum": lambda writer: writer.sum_or_product("sum"),
    "prod": lambda writer: writer.sum_or_product("product"),
    "lim": _LatexTranslator.limit,
    **dict.fromkeys(("left", "right"), _LatexTranslator.skip_delimiter),
    "lfloor": lambda writer: writer.bracketed("floor", "\\rfloor"),
    "lceil": lambda writer: writer.bracketed("ceil", "\\rceil"),
    **dict.fromkeys(("binom", "dbinom", "tbinom"), _LatexTranslator.choice),
    "begin": _LatexTranslator.environment,
    "pmod": lambda writer: f" (mod {writer.group()}) ",
    **dict.fromkeys(("mathrm", "text", "operatorname", "mathbf", "mathit"), lambda writer: writer.upright_letters()),
}
