"""The grammar of the math engine: text in, a small tree out. Standard library only, bounded, nothing is evaluated.

What has two readings is refused instead of guessed: `2/3(4)`, `x^2y`, `5!=120`, `10 % 3`. `2(3)` is read as 6.
"""

from qwed.engines._math.parser import Parser
from qwed.engines._math.tokens import END, SIGNS, Token, parted, tokens_of
from qwed.engines._math.tree import FULL, Claim, Limits, Node, Refused

_PLAIN = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "≤": "<=", "≥": ">=", "≠": " != ", "π": " pi "})  # noqa: RUF001
_MAX_LINKS = 6


def parse(text: str, limits: Limits = FULL, in_units: bool = False) -> Claim:
    """The claim or expression `text` holds; Refused says what is wrong and where.

    `xy` is `x*y` where `x` and `y` stand alone beside it, except `in_units`, where names are words.
    """
    if len(text) > limits.length:
        raise Refused("within_limits", f"the text is longer than {limits.length} characters: shorten it")
    if not text.isascii():
        text = text.translate(_PLAIN)
    tokens = tokens_of(text, limits)
    parser = Parser(tokens if in_units else parted(tokens), limits, in_units)
    if parser.ahead.text == END:
        hint = "write an expression such as `2+2` or a claim such as `2+2 = 4`"
        raise Refused("syntax_valid", f"the text is empty: {hint}", 1)
    sides, signs = [parser.expression()], []
    while parser.ahead.kind == "sign":
        signs.append(parser.ahead)
        parser.index += 1
        sides.append(parser.expression())
    parser.finish()
    return _chained(text, sides, signs)


def _chained(text: str, sides: list[Node], signs: list[Token]) -> Claim:
    if not signs:
        return Claim(text.strip(), sides[0], text.strip())
    if len(signs) > _MAX_LINKS:
        raise Refused("within_limits", f"a chain has at most {_MAX_LINKS} comparisons: claim less at a time")
    cuts = [0, *(sign.start + len(sign.text) for sign in signs)]
    ends = [*(sign.start for sign in signs), len(text)]
    texts = [text[cut:end].strip() for cut, end in zip(cuts, ends, strict=True)]
    links = []
    for index, sign in enumerate(signs):
        left, right = texts[index], texts[index + 1]
        whole = text.strip() if len(signs) == 1 else f"{left} {sign.text} {right}"
        links.append(Claim(whole, sides[index], left, SIGNS[sign.text], sides[index + 1], right))
    return links[0]._replace(also=tuple(links[1:]))
