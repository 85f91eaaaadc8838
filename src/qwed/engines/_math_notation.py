"""Text as people write it, brought into the one notation the grammar reads: LaTeX, unicode signs, percent in words."""

import re

from qwed.engines._math_latex import from_latex, is_latex
from qwed.engines._math_tree import Refused

_MAX = 4096
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n")
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]+")
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_LOWERED = re.compile("[₀₁₂₃₄₅₆₇₈₉]+")
_SIGNS = str.maketrans(
    {
        **dict.fromkeys("×·⋅∙", "*"),  # noqa: RUF001
        **dict.fromkeys("÷∕", "/"),  # noqa: RUF001
        **dict.fromkeys("−–‒", "-"),  # noqa: RUF001
        "≤": "<=",
        "≥": ">=",
        "⩽": "<=",
        "⩾": ">=",
        "≠": " != ",
        "∞": " oo ",
        "→": "->",
        "π": " pi ",
        "½": "(1/2)",
        "⅓": "(1/3)",
        "¼": "(1/4)",
        "¾": "(3/4)",
        "⅔": "(2/3)",
        "⅕": "(1/5)",
        "⅛": "(1/8)",
        "\u03b1": " alpha ",
        "β": " beta ",
        "\u03b3": " gamma ",
        "δ": " delta ",
        "ε": " epsilon ",
        "θ": " theta ",
        "λ": " lambda ",
        "μ": " mu ",
        "\u03c1": " rho ",
        "\u03c3": " sigma ",
        "τ": " tau ",
        "φ": " phi ",
        "ω": " omega ",
    }
)
_CONGRUENT = re.compile(r"(?P<left>[^≡=<>]+)≡(?P<right>[^≡=<>()]+)\(\s*mod\s+(?P<modulus>[^()]+)\)\s*")
_PERCENT = r"(?P<rate>[0-9]+(?:\.[0-9]+)?)\s*%"
_WHOLE = r"(?P<whole>[^=<>!%]+?)"
_UP = r"(?:increase|rise)"
_DOWN = r"(?:decrease|reduction)"
_MORE = tuple(
    (re.compile(pattern, re.IGNORECASE), way)
    for pattern, way in (
        (rf"\s*(?:an?\s+)?{_PERCENT}\s+{_UP}\s+(?:on|of|in|to|from|over)\s+{_WHOLE}\s*", "+"),
        (rf"\s*(?:an?\s+)?{_PERCENT}\s+{_DOWN}\s+(?:on|of|in|to|from)\s+{_WHOLE}\s*", "-"),
        (rf"\s*{_WHOLE}\s+(?:increased|raised|marked up|grown)\s+by\s+{_PERCENT}\s*", "+"),
        (rf"\s*{_WHOLE}\s+(?:decreased|reduced|discounted|lowered|marked down)\s+by\s+{_PERCENT}\s*", "-"),
        (rf"\s*(?:increase|raise)\s+{_WHOLE}\s+by\s+{_PERCENT}\s*", "+"),
        (rf"\s*(?:decrease|reduce|discount|lower)\s+{_WHOLE}\s+by\s+{_PERCENT}\s*", "-"),
        (rf"\s*{_PERCENT}\s+more\s+than\s+{_WHOLE}\s*", "+"),
        (rf"\s*{_PERCENT}\s+(?:less\s+than|off(?:\s+of)?)\s+{_WHOLE}\s*", "-"),
    )
)
_COMPARISON = re.compile(r"(<=|>=|==|!=|=|<|>)")


def plain(text: str) -> str:
    """The text in the notation of the grammar; what it does not know it leaves for the grammar to refuse."""
    if len(text) > _MAX:
        raise Refused("within_limits", f"the text is longer than {_MAX} characters: shorten it")
    if is_latex(text):
        text = from_latex(text)
    if not text.isascii():
        text = _from_unicode(text)
    return _from_words(text) if "%" in text else text


def _from_unicode(text: str) -> str:
    if congruence := _CONGRUENT.fullmatch(text):
        left, right, modulus = (congruence[part].strip() for part in ("left", "right", "modulus"))
        text = f"mod(({left}) - ({right}), {modulus}) = 0"
    text = _RAISED.sub(lambda found: f"^({found[0].translate(_SUPERSCRIPTS)})", text)
    text = _LOWERED.sub(lambda found: f"_{found[0].translate(_SUBSCRIPTS)}", text)
    text = re.sub("∛(?=\\()", "cbrt", text)
    text = re.sub("∛([0-9.]+|[A-Za-z])", r"cbrt(\1)", text)
    return text.translate(_SIGNS)


def _from_words(text: str) -> str:
    parts = _COMPARISON.split(text)
    return "".join(part if index % 2 else _changed(part) for index, part in enumerate(parts))


def _changed(side: str) -> str:
    for pattern, way in _MORE:
        if found := pattern.fullmatch(side):
            return f" ({found['whole']})*(1 {way} {found['rate']}/100) "
    return side
