"""Detection of source text that hides its meaning."""

import re

from qwed.guards._javascript.syntax_tree import ParsedScript, SyntaxNode
from qwed.guards.code_findings import CodeReport, ViolationKind

_DISGUISE = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u3164\u115f\u1160\uffa0\u2800")
"""Characters that reverse the text direction or are invisible in a name."""
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


def report_obfuscation(code: str, source: ParsedScript, report: CodeReport) -> None:
    """Report every kind of obfuscation in the source."""
    for number, line in enumerate(code.splitlines(), 1):
        if not line.isascii() and any(character in _DISGUISE for character in line):
            report.add_violation(ViolationKind.OBFUSCATE, "invisible or turned text", number)
    if any(match[0].count("+") >= MIN_SUMS for match in _SYMBOLS_ONLY.finditer(re.sub(r"\s+", "", code))):
        report.add_violation(ViolationKind.OBFUSCATE, "code without letters", 1)
    _report_names(source, report)
    _report_symbols(source, report)
    for node in source.nodes:
        if node.kind in ("string", "template_string"):
            _report_escapes(node, report)


def _report_names(source: ParsedScript, report: CodeReport) -> None:
    generated: dict[str, int] = {}
    for node in source.nodes:
        if node.kind in _NAMES:
            if "\\" in node.text:
                report.add_violation(ViolationKind.OBFUSCATE, "escaped letters in a name", node.line)
            if _GENERATED.fullmatch(node.text):
                generated.setdefault(node.text, node.line)
    if len(generated) >= MIN_GENERATED:
        report.add_violation(ViolationKind.OBFUSCATE, "generated names", min(generated.values()))


def _report_symbols(source: ParsedScript, report: CodeReport) -> None:
    lines: dict[int, list[int]] = {}
    for node in source.nodes:
        if node.text and node.kind not in _QUOTED:
            counts = lines.setdefault(node.line, [0, 0])
            counts[0] += sum(character.isascii() and character.isalnum() for character in node.text)
            counts[1] += len(node.text)
    # Check each line as well as the whole: in a large program such a line is only a small share.
    whole = [sum(letters for letters, _ in lines.values()), sum(size for _, size in lines.values())]
    for line, (letters, size) in [(1, whole), *lines.items()]:
        if size >= MIN_DENSE and letters < DENSE_SHARE * size:
            report.add_violation(ViolationKind.OBFUSCATE, "names without letters", line)


def _report_escapes(node: SyntaxNode, report: CodeReport) -> None:
    """Report plain letters written as escapes."""
    escapes = [child.text for child in node.children if child.kind == "escape_sequence"]
    letters = sum(_ESCAPED_LETTER.fullmatch(text) is not None for text in escapes)
    if letters >= MIN_ESCAPED and letters * 2 >= sum(
        len(child.text) for child in node.children if child.kind == "string_fragment"
    ):
        report.add_violation(ViolationKind.OBFUSCATE, "escaped letters in a string", node.line)
