"""Shapes of source text that exist to hide what it says."""

import re

from qwed.guards._javascript.tree import Node, Source
from qwed.guards.code_words import Danger, Report

_DISGUISE = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u3164\u115f\u1160\uffa0\u2800")
"""Characters that turn text round or cannot be seen, where they stand in a name."""
_GENERATED = re.compile(r"_0x[0-9a-fA-F]{2,}")
_ESCAPED_LETTER = re.compile(
    r"\\x[2-7][0-9a-fA-F]|\\u00[2-7][0-9a-fA-F]|\\u\{0{0,4}[2-7][0-9a-fA-F]\}|\\1[0-7]{2}|\\[4-7][0-7](?!\d)"
)
_SYMBOLS_ONLY = re.compile(r"[\[\](){}!+]{80,}")
_NAMES = frozenset(
    {"identifier", "property_identifier", "shorthand_property_identifier", "private_property_identifier"}
)
_QUOTED = frozenset({"string_fragment", "escape_sequence", "regex_pattern", "jsx_text"})

MIN_GENERATED = 3
MIN_ESCAPED = 4
MIN_SUMS = 8
MIN_DENSE = 100
DENSE_SHARE = 0.16


def hidden(code: str, source: Source, report: Report) -> None:
    """Report every shape that hides what the code says."""
    for number, line in enumerate(code.splitlines(), 1):
        if not line.isascii() and any(each in _DISGUISE for each in line):
            report.danger(Danger.OBFUSCATE, "invisible or turned text", number)
    if any(found[0].count("+") >= MIN_SUMS for found in _SYMBOLS_ONLY.finditer(re.sub(r"\s+", "", code))):
        report.danger(Danger.OBFUSCATE, "code without letters", 1)
    _names(source, report)
    _symbols(source, report)
    for node in source.nodes:
        if node.kind in ("string", "template_string"):
            _escaped(node, report)


def _names(source: Source, report: Report) -> None:
    generated: dict[str, int] = {}
    for node in source.nodes:
        if node.kind in _NAMES:
            if "\\" in node.text:
                report.danger(Danger.OBFUSCATE, "escaped letters in a name", node.line)
            if _GENERATED.fullmatch(node.text):
                generated.setdefault(node.text, node.line)
    if len(generated) >= MIN_GENERATED:
        report.danger(Danger.OBFUSCATE, "generated names", min(generated.values()))


def _symbols(source: Source, report: Report) -> None:
    lines: dict[int, list[int]] = {}
    for node in source.nodes:
        if node.text and node.kind not in _QUOTED:
            counts = lines.setdefault(node.line, [0, 0])
            counts[0] += sum(each.isascii() and each.isalnum() for each in node.text)
            counts[1] += len(node.text)
    # Line by line as well as altogether: beside an honest program such a line is only a small share.
    whole = [sum(letters for letters, _ in lines.values()), sum(size for _, size in lines.values())]
    for line, (letters, size) in [(1, whole), *lines.items()]:
        if size >= MIN_DENSE and letters < DENSE_SHARE * size:
            report.danger(Danger.OBFUSCATE, "names without letters", line)


def _escaped(node: Node, report: Report) -> None:
    """Plain letters written as escapes."""
    escapes = [child.text for child in node.children if child.kind == "escape_sequence"]
    letters = sum(_ESCAPED_LETTER.fullmatch(text) is not None for text in escapes)
    if letters >= MIN_ESCAPED and letters * 2 >= sum(
        len(child.text) for child in node.children if child.kind == "string_fragment"
    ):
        report.danger(Danger.OBFUSCATE, "escaped letters in a string", node.line)
