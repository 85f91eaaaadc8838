"""Normalisation of input to the notation of the grammar: LaTeX, Unicode signs, percentages in words."""

import re

from qwed.engines._math.latex import from_latex, is_latex
from qwed.engines._math.latex_tables import SIGNS
from qwed.engines._math.syntax_tree import MathRefusalError

_MAX = 4096
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n")
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]+")
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_LOWERED = re.compile("[₀₁₂₃₄₅₆₇₈₉]+")
_LARGE_SIGNS = {"\u2211": "\\sum ", "\u220f": "\\prod ", "\u222b": "\\int "}
_LARGE = re.compile("[\u2211\u220f\u222b]")
_MIXED = re.compile(r"(?<![0-9.,])([0-9]+)\s?([½⅓¼¾⅔⅕⅛])")
_CONGRUENT = re.compile(r"(?P<left>[^≡=<>]+)≡(?P<right>[^≡=<>()]+)\(\s*mod\s+(?P<modulus>[^()]+)\)\s*")
_PERCENT = r"(?P<rate>[0-9]+(?:\.[0-9]+)?)\s*%"
_WHOLE = r"(?P<whole>[^=<>!%]+?)"
_RAISED_BY = "increased|raised|marked up|grown"
_LOWERED_BY = "decreased|reduced|discounted|lowered|marked down"
_UP = r"(?:increase|rise)"
_DOWN = r"(?:decrease|reduction)"
_PERCENT_CHANGES = tuple(
    (re.compile(pattern, re.IGNORECASE), sign)
    for pattern, sign in (
        (rf"\s*(?:an?\s+)?{_PERCENT}\s+{_UP}\s+(?:on|of|in|to|from|over)\s+{_WHOLE}\s*", "+"),
        (rf"\s*(?:an?\s+)?{_PERCENT}\s+{_DOWN}\s+(?:on|of|in|to|from)\s+{_WHOLE}\s*", "-"),
        (rf"\s*{_WHOLE}\s+(?:{_RAISED_BY})\s+by\s+{_PERCENT}\s*", "+"),
        (rf"\s*{_WHOLE}\s+(?:{_LOWERED_BY})\s+by\s+{_PERCENT}\s*", "-"),
        (rf"\s*(?:increase|raise)\s+{_WHOLE}\s+by\s+{_PERCENT}\s*", "+"),
        (rf"\s*(?:decrease|reduce|discount|lower)\s+{_WHOLE}\s+by\s+{_PERCENT}\s*", "-"),
        (rf"\s*{_PERCENT}\s+more\s+than\s+{_WHOLE}\s*", "+"),
        (rf"\s*{_PERCENT}\s+(?:less\s+than|off(?:\s+of)?)\s+{_WHOLE}\s*", "-"),
    )
)
_LAST_CHANGE = re.compile(
    r"(?P<before>.+%)(?:\s*,)?(?:\s+and)?(?:\s+then)?\s+"
    rf"(?P<change>(?:{_RAISED_BY}|{_LOWERED_BY})\s+by\s+[^%]+%\s*)",
    re.IGNORECASE | re.DOTALL,
)
_CHOOSE = re.compile(r"\b([0-9]+|[A-Za-z])\s+choose\s+([0-9]+|[A-Za-z])\b")
_POWERS = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_MAGNITUDE = re.compile(
    rf"(?<![\w.,)\]])([0-9][0-9,]*(?:\.[0-9]+)?) +({'|'.join(_POWERS)})\b(?!\s*[\w(^*!.\[|])", re.IGNORECASE
)
_PERCENT_WORD = re.compile(r"(?<=[0-9)])\s*\bpercent\b", re.IGNORECASE)
_COMPARISON = re.compile(r"(<=|>=|==|!=|=|<|>)")


def normalize_notation(text: str) -> str:
    """Return the text in the notation of the grammar; unknown notation is left for the parser to refuse."""
    if len(text) > _MAX:
        raise MathRefusalError("within_limits", f"the text is longer than {_MAX} characters: shorten it")
    text = _LARGE.sub(lambda match: _LARGE_SIGNS[match[0]], text)
    text = text.replace("{,}", ",")
    if is_latex(text):
        text = from_latex(text)
    if not text.isascii():
        text = _from_unicode(text)
    text = _CHOOSE.sub(r"binomial(\1, \2)", text)
    text = _MAGNITUDE.sub(_expand_magnitude, text)
    text = _PERCENT_WORD.sub("%", text)
    return _from_words(text) if "%" in text else text


def _expand_magnitude(match: re.Match[str]) -> str:
    """Write `5 million` as a number.

    After a slash or a power sign its extent is ambiguous, so the text stays unchanged there.
    """
    if match.string[: match.start()].rstrip().endswith(("/", "^", "**")):
        return match[0]
    return f"({match[1]}*10^{_POWERS[match[2].lower()]})"


def _from_unicode(text: str) -> str:
    if congruence := _CONGRUENT.fullmatch(text):
        left, right, modulus = (congruence[part].strip() for part in ("left", "right", "modulus"))
        text = f"mod(({left}) - ({right}), {modulus}) = 0"
    text = _RAISED.sub(lambda match: f"^({match[0].translate(_SUPERSCRIPTS)})", text)
    text = _LOWERED.sub(lambda match: f"_{match[0].translate(_SUBSCRIPTS)}", text)
    text = re.sub("∛(?=\\()", "cbrt", text)
    text = re.sub("∛([0-9.]+|[A-Za-z])", r"cbrt(\1)", text)
    text = _MIXED.sub(r"(\1+\2)", text)
    return text.translate(SIGNS)


def _from_words(text: str) -> str:
    parts = _COMPARISON.split(text)
    return "".join(part if index % 2 else _expand_percent_change(part) for index, part in enumerate(parts))


def _expand_percent_change(side: str) -> str:
    for pattern, sign in _PERCENT_CHANGES:
        if match := pattern.fullmatch(side):
            return f" ({match['whole']})*(1 {sign} {match['rate']}/100) "
    # Successive changes: the last one applies to everything before it.
    chain = _LAST_CHANGE.fullmatch(side)
    first = _expand_percent_change(chain["before"]) if chain else side
    return _expand_percent_change(f"{first} {chain['change']}") if chain and first != chain["before"] else side
