"""Grammar of the math engine: text in, a small tree out. Standard library only, bounded, nothing is evaluated.

Ambiguous input is refused instead of guessed: `2/3(4)`, `x^2y`, `5!=120`, `10 % 3`. `2(3)` is read as 6.
"""

from qwed.engines._math.parser import Parser
from qwed.engines._math.syntax_tree import FULL_LIMITS, Claim, MathNode, MathRefusalError, ParseLimits
from qwed.engines._math.tokens import END, SIGNS, MathToken, split_names, tokenize

_PLAIN = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "≤": "<=", "≥": ">=", "≠": " != ", "π": " pi "})  # noqa: RUF001
_MAX_LINKS = 6


def parse(text: str, limits: ParseLimits = FULL_LIMITS, in_units: bool = False) -> Claim:
    """Parse a claim or an expression; MathRefusalError says what is wrong and where.

    `xy` is `x*y` if `x` and `y` also occur alone, except `in_units`, where names are words.
    """
    if len(text) > limits.length:
        raise MathRefusalError("within_limits", f"the text is longer than {limits.length} characters: shorten it")
    if not text.isascii():
        text = text.translate(_PLAIN)
    tokens = tokenize(text, limits)
    parser = Parser(tokens if in_units else split_names(tokens), limits, in_units)
    if parser.ahead.text == END:
        hint = "write an expression such as `2+2` or a claim such as `2+2 = 4`"
        raise MathRefusalError("syntax_valid", f"the text is empty: {hint}", 1)
    sides, signs = [parser.expression()], []
    while parser.ahead.kind == "sign":
        signs.append(parser.ahead)
        parser.index += 1
        sides.append(parser.expression())
    parser.finish()
    return _build_claim(text, sides, signs)


def _build_claim(text: str, sides: list[MathNode], signs: list[MathToken]) -> Claim:
    if not signs:
        return Claim(text.strip(), sides[0], text.strip())
    if len(signs) > _MAX_LINKS:
        raise MathRefusalError("within_limits", f"a chain has at most {_MAX_LINKS} comparisons: claim less at a time")
    cuts = [0, *(sign.start + len(sign.text) for sign in signs)]
    ends = [*(sign.start for sign in signs), len(text)]
    texts = [text[cut:end].strip() for cut, end in zip(cuts, ends, strict=True)]
    links = []
    for index, sign in enumerate(signs):
        left, right = texts[index], texts[index + 1]
        whole = text.strip() if len(signs) == 1 else f"{left} {sign.text} {right}"
        links.append(Claim(whole, sides[index], left, SIGNS[sign.text], sides[index + 1], right))
    return links[0]._replace(also=tuple(links[1:]))
