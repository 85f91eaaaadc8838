"""Engine detection for a text, by patterns alone: no library, no model, deterministic.

The rules are tried in order and the first match decides; a text that matches none is prose. Detection runs on the event
loop, so every pattern is linear in the text: repetitions are possessive or bounded.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

MAX_CHARACTERS = 100_000
_MAX_CHECKOUT = 1 << 20
_MAX_OPENING = 4_000
"""Characters of a document searched for its first element."""


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """Engine that was chosen, the reason, and the parameters derived from the text."""

    engine: str
    why: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    text: str | None = None
    """The input itself, if it is only a part of the text."""


_VERBOSE = re.IGNORECASE | re.VERBOSE | re.DOTALL
_FENCE = re.compile(r"\A\s*```([A-Za-z+#]{0,20})[ \t]*\n(.*?)\n?```\s*\Z", re.DOTALL)
_SQL = re.compile(
    r"""\A(?:[\s(]++|--[^\n]*+\n|/\*(?:[^*]++|\*(?!/))*+\*/)*+(?:
        select\s+(?:.{1,20000}?\bfrom\b|(?:distinct|top)\b|[\d*'"(@]|\w+\s*\()
        |with\s+(?:recursive\s+)?[\w"`\[\]]+\s*(?:\([^)]{0,500}\)\s*)?as\s+(?:not\s+)?(?:materialized\s+)?\(
        |insert\s+(?:or\s+\w+\s+)?(?:ignore\s+)?into\b|replace\s+into\b|delete\s+from\b|merge\s+into\b
        |update\s+[\w".`\[\]]+(?:\s+(?:as\s+)?\w+)?\s+set\b
        |(?:create|drop|alter|truncate)\s+(?:or\s+replace\s+)?(?:temp\w*\s+|unique\s+)?
            (?:table|view|index|database|schema|user|role|function|trigger|sequence)\b
        |(?:grant|revoke)\s+[\w\s,]{1,200}\bon\b|explain\s+(?:analyze\s+)?(?:select|update|delete|insert|with)\b
        |(?:exec|execute)\s+\w+|pragma\s+\w+|attach\s+database\b
    )""",
    _VERBOSE,
)
_ISO_20022 = re.compile(
    r"""\A\ufeff?\s*+(?:<\?xml[^<>]{0,200}\?>\s*+)?(?:<!--(?:[^-]++|-(?!->))*+-->\s*+)*+
        <(?:[A-Za-z_][\w.-]{0,40}:)?Document\s[^<>]{0,2000}?xmlns(?::[\w.-]{1,40})?\s*=\s*
        ["']urn:iso:std:iso:20022:tech:xsd:(?P<family>[a-z]{4}\.\d{3})\.\d{3}\.\d{2}["']""",
    re.VERBOSE,
)
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_DSL = re.compile(
    r"""\A\s*(?:[;\#][^\n]*\n\s*)*\(\s*(?:
        and|or|not|implies|iff|xor|if|eq|neq?|gte?|lte?|ge|le|plus|times|mult|minus|div|mod|pow|neg|abs
        |forall|exists|let|var|[=<>!+*/-]=?
    )[\s()]""",
    _VERBOSE,
)
_CONNECTIVE = re.compile(
    r"""[\u2200\u2203\u2192\u2194\u2227\u2228\u00ac\u2295\u22a2\u2234\u21d2\u21d4]
        |(?:\A|[\w)])\s*(?:->|<->|=>|<=>|\|-)\s*[\w(~!]|\b(?:forall|exists)\s+\w+\s*[.,(:]""",
    _VERBOSE,
)
_ARGUMENT = re.compile(r"(?:\A|[\n.;])[^\S\n]*(?:therefore|hence|thus|so)[\s,]", re.IGNORECASE)
_SYLLOGISM = re.compile(r"\A\s*(?:all|no|some|every|if)\s", re.IGNORECASE)
_PYTHON = re.compile(
    r"""^[ \t]*(?:
            (?:async\s+)?def\s+\w+\s*\(|class\s+\w+\s*[:(]|from\s+[\w.]+\s+import\s|@\w+|lambda\s
            |import\s+[\w.]+(?:\s+as\s+\w+)?[ \t]*(?:$|[,;\#])
            |(?:for|while|if|with|try|elif|else|except)\b[^\n]{0,300}:[ \t]*(?:$|\#|\w)
        )
        |\A\s*(?:[A-Za-z_][\w.]*\s*=\s*)?
            (?:print|exec|eval|open|__import__|getattr|compile|os\.\w+|sys\.\w+|subprocess\.\w+)\s*\(""",
    re.MULTILINE | re.VERBOSE,
)
_JAVASCRIPT = re.compile(
    r"""^[ \t]*(?:const|let|var)\s+[\w{\[][^=\n]{0,200}=|\bfunction\s*+\w*+\s*+\([^)\n]{0,300}\)\s*\{|\)\s*=>
        |\bconsole\.\w+\(|\brequire\s*\(\s*['"]|\bdocument\.\w+|\bnew\s+Function\s*\(
        |^[ \t]*(?:import|export)\s[^\n]{0,200}\bfrom\s+['"]|^[ \t]*export\s+(?:default|const|function|class)\b""",
    re.MULTILINE | re.VERBOSE,
)
_TYPESCRIPT = re.compile(
    r"""^[ \t]*(?:export\s+)?(?:interface\s+\w+|type\s+\w+(?:<[^>\n]*>)?\s*=|enum\s+\w+)
        |[\w)\]]\s*:\s*(?:string|number|boolean|void|any|unknown)\b""",
    re.MULTILINE | re.VERBOSE,
)
_TYPE_FIRST = ("interface", "type", "export", "enum")
_COMMANDS = (
    "sudo|rm|ls|cat|cp|mv|mkdir|rmdir|touch|chmod|chown|curl|wget|find|grep|sed|awk|tar|ssh|scp|dd|kill|ps|df|du|head|tail"
    "|echo|bash|sh|zsh|python3?|pip3?|npm|node|git|docker|kubectl|apt|apt-get|yum|systemctl|service|export|source|nc|env"
)
_SHELL = re.compile(
    rf"""\A\s*(?:
        \#!\s*/\S*\b(?:ba|z|da|k)?sh\b|\$\s+\w
        |(?:{_COMMANDS})\s+(?:-{{1,2}}\w|/|~|\.{{1,2}}/|\$|['"]|https?://)
        |(?:{_COMMANDS})\b[^\n]{{0,2000}}(?:\||&&|>|;)\s*\S
        |(?:git|docker|kubectl|npm|pip3?|apt|apt-get|systemctl)\s+[a-z-]+(?:\s+\S+){{0,4}}\s*\Z
    )""",
    re.VERBOSE,
)
_MATH_WORDS = re.compile(
    r"""(?:a(?:rc)?)?(?:sin|cos|tan|cot|sec|csc)h?|exp|log|ln|lg|sqrt|cbrt|abs|sign|floor|ceil(?:ing)?|round|min|max|gcd|lcm
        |mod|factorial|binomial|pi|inf|oo|infinity|diff|derivative|integrate|integral|limit|lim|sum|prod(?:uct)?|series
        |solve|det|inv(?:erse)?|transpose|rank|trace|simplify|evaluate|expand|factor|d[xyt]|of|percent|degrees?|deg|rad
        |and|or|for|increase|decrease|on|off""",
    re.IGNORECASE | re.VERBOSE,
)
_LATEX = re.compile(
    r"\\(?:frac|sqrt|int|sum|lim|prod|cdot|times|sin|cos|tan|ln|log|pi|left|begin|infty|leq?|geq?|neq)\b"
)
_UNIT = re.compile(r"(?<=\d)\s*[a-zA-Z\u00b5\u00b0%]{1,10}(?:\s*[*/^]\s*[a-zA-Z0-9]{1,5}){0,3}")
_WORD = re.compile(r"[A-Za-z]{2,}")
_SIGNS = "\u00d7\u00f7\u2212\u221a\u2264\u2265\u2260\u222b\u2211"
_FORMULA = re.compile(
    rf"[\w\s.,+\-*/^=<>!()\[\]{{}}|%$'\"\\&;:~{_SIGNS}"
    "\u00b0\u00b5\u20ac\u00a3\u00b7\u03c0\u221e\u2248\u220f\u2202\u00b2\u00b3\u2074\u00bd\u00bc\u00be\u00b1]+"
)
_OPERATOR = re.compile(rf"[=<>+*/^!%{_SIGNS}]|\d\s*-|\w\(")
_LANGUAGES = {
    "python": "python",
    "py": "python",
    "javascript": "javascript",
    "js": "javascript",
    "typescript": "typescript",
    "ts": "typescript",
    "bash": "bash",
    "sh": "bash",
    "shell": "bash",
    "zsh": "bash",
}


def route(text: str) -> EngineChoice | None:
    """Return the engine for `text`; None for prose, and for a text that is too long."""
    document = _message(text) or _checkout(text)
    if document is not None or not text.strip() or len(text) > MAX_CHARACTERS:
        return document
    return next((routed for row in _ROWS if (routed := row(text)) is not None), None)


def _message(text: str) -> EngineChoice | None:
    """Detect an ISO 20022 document by its namespace; its length does not matter."""
    match = _ISO_20022.match(text, 0, _MAX_OPENING)
    if match is None:
        return None
    parameters = {"operation": "payment_message", "msg_type": match["family"]}
    return EngineChoice("finance", f"an ISO 20022 document, {match['family']}", parameters)


def _checkout(text: str) -> EngineChoice | None:
    """Detect a checkout of the Universal Commerce Protocol by its envelope."""
    if len(text) > _MAX_CHECKOUT or not text.lstrip().startswith("{") or '"ucp"' not in text:
        return None
    try:
        members = _decode_members(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    if "ucp" not in members or "line_items" not in members:
        return None
    return EngineChoice("ucp", "a checkout with a `ucp` envelope", {"operation": "checkout"})


def _fenced_block(text: str) -> EngineChoice | None:
    fence = _FENCE.match(text)
    if fence is None:
        return None
    language = fence[1].lower()
    if language == "sql":
        return EngineChoice("sql", "the code fence is marked sql", text=fence[2])
    if language in _LANGUAGES:
        return EngineChoice(
            "code", f"the code fence is marked {language}", {"language": _LANGUAGES[language]}, fence[2]
        )
    inside = None if fence[2].lstrip().startswith("```") else route(fence[2])
    return None if inside is None else replace(inside, text=fence[2])


def _match(pattern: re.Pattern[str], engine: str, why: str, **parameters: str) -> Callable[[str], EngineChoice | None]:
    def row(text: str) -> EngineChoice | None:
        return EngineChoice(engine, why, parameters) if pattern.search(text) else None

    return row


def _argument(text: str) -> EngineChoice | None:
    if _SYLLOGISM.match(text) and _ARGUMENT.search(text):
        return EngineChoice("logic", "premises and a conclusion")
    return None


def _typescript(text: str) -> EngineChoice | None:
    if _TYPESCRIPT.search(text) and (_JAVASCRIPT.search(text) or text.lstrip().startswith(_TYPE_FIRST)):
        return EngineChoice("code", "TypeScript annotations", {"language": "typescript"})
    return None


def _formula(text: str) -> EngineChoice | None:
    if _LATEX.search(text):
        return EngineChoice("math", "LaTeX commands")
    if len(text) > 10_000 or not _FORMULA.fullmatch(text) or not _OPERATOR.search(text):
        return None
    if not all(_MATH_WORDS.fullmatch(word) for word in _WORD.findall(_UNIT.sub(" ", text))):
        return None
    return EngineChoice("math", "a formula: numbers, operators and known functions")


_ROWS: tuple[Callable[[str], EngineChoice | None], ...] = (
    _fenced_block,
    _match(_SQL, "sql", "it begins like a SQL statement"),
    _match(_DSL, "logic", "an expression of the logic language"),
    _typescript,
    _match(_JAVASCRIPT, "code", "statements of JavaScript", language="javascript"),
    _match(_SHELL, "code", "it begins like a shell command", language="bash"),
    _match(_PYTHON, "code", "statements of Python", language="python"),
    _match(_CONNECTIVE, "logic", "logical connectives"),
    _argument,
    _formula,
)
