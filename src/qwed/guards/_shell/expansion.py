"""Expansion of a word of the syntax tree to program arguments: quotes, escapes, variables, braces and substitutions."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from qwed.guards._shell.command_model import DataSource, PipeData, ShellReport, Violation, Word
from qwed.guards._shell.escapes import unescape
from qwed.model import EffectKind

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_WORDS = 64
MAX_VALUE = 1_024

_SPECIAL = "{},.*?[]~ \t\n"
_PROTECT = {ord(character): 0xE000 + index for index, character in enumerate(_SPECIAL)}
_RESTORE = {0xE000 + index: ord(character) for index, character in enumerate(_SPECIAL)}
_SPLIT = "\ue100"
_ESCAPE = re.compile(r"\\(.|\n)", re.DOTALL)
_ESCAPED_LETTER = re.compile(r"(?<=.)\\\w|\\\w.*\\\w", re.DOTALL)
_QUOTED_ESCAPE = re.compile(r"\\([$`\"\\\n])")
_BRACES = re.compile(r"\{([^{}]*,[^{}]*|-?\d{1,9}\.\.-?\d{1,9}|[A-Za-z]\.\.[A-Za-z])\}")
_SECRET_VARIABLE = re.compile(
    r"(?:.*_)?(?:API_?KEY|ACCESS_?KEY(?:_ID)?|SECRET\w*|TOKEN|PASSWORD|PASSWD|PASSPHRASE|PASS|CREDENTIALS?|PRIVATE_KEY"
    r"|PAT|AUTH|KEY)\Z"
)
_PLAIN_VARIABLES = frozenset(
    [*"?$#!-0123456789@*", "USER", "LOGNAME", "HOSTNAME", "UID", "EUID", "TMPDIR", "RANDOM", "SECONDS", "PPID", "LANG"]
)
"""Variables that are not secret and, as part of a path, lead to ordinary locations; the arguments of a script stay
unknown."""
_ARGUMENTS = frozenset("@*123456789")
_HIDDEN_SUBSTITUTION = re.compile(r"\[\$\(\w|\[`\w")


class ExpansionContext(Protocol):
    """Interface of the shell visitor that word expansion uses: variables, directory and inner commands."""

    report: ShellReport
    directory: str
    in_test: bool

    def lookup(self, name: str) -> list[Word] | None:
        """Return the possible values of a variable, or None if they are not known."""

    def substitution(self, node: "Node") -> PipeData:
        """Analyse the commands inside `$( )` and return their output."""

    def process(self, node: "Node") -> PipeData:
        """Analyse the commands inside `<( )` or `>( )`."""

    def visit(self, node: "Node") -> object:
        """Analyse the commands inside a node."""


@dataclass(slots=True)
class _WordParts:
    text: list[str] = field(default_factory=list)
    is_exact: bool = True
    pattern: bool = False
    has_inner_quotes: bool = False
    is_computed: bool = False
    origin: Violation | None = None

    def append_unknown(self, raw: str) -> None:
        self.text.append(raw.translate(_PROTECT))
        self.is_exact = self.pattern = False
        self.is_computed = True


def expand_words(context: ExpansionContext, node: "Node") -> list[Word]:
    """Return the words one argument expands to: usually one, more with braces or unquoted variables."""
    parts = _WordParts()
    _collect(context, node, parts)
    return _to_words(parts)


def text_of(node: "Node") -> str:
    """Return the source text of a node."""
    return (node.text or b"").decode("utf-8", "replace")


def _to_words(parts: _WordParts) -> list[Word]:
    text = "".join(parts.text)
    texts = _expand_braces(text) if "{" in text else [text]
    if texts is None:
        return [_word(parts, text, is_exact=False)]
    return [_word(parts, part, is_exact=parts.is_exact) for expanded in texts for part in expanded.split(_SPLIT)]


def _word(parts: _WordParts, text: str, is_exact: bool) -> Word:
    wild = any(character in text for character in "*?[") or text.startswith("~")
    plain = text.translate(_RESTORE)
    pattern = (is_exact or parts.pattern) and (wild or parts.pattern)
    return Word(plain, is_exact and not wild, pattern, parts.has_inner_quotes, parts.is_computed, parts.origin)


def _expand_braces(text: str) -> list[str] | None:
    """Return every word the braces expand to, or None if there are too many."""
    done: list[str] = []
    pending = [text]
    while pending:
        if len(done) + len(pending) > MAX_WORDS:
            return None
        current = pending.pop()
        match = _BRACES.search(current)
        if match is None:
            done.append(current)
            continue
        choices = _brace_choices(match[1])
        if choices is None:
            return None
        pending += [current[: match.start()] + choice + current[match.end() :] for choice in reversed(choices)]
    return done


def _brace_choices(inside: str) -> list[str] | None:
    if "," in inside:
        return inside.split(",")
    first, _, last = inside.partition("..")
    if first.isalpha():
        low, high = sorted((ord(first), ord(last)))
        return [chr(value) for value in range(low, high + 1)]
    low, high = sorted((int(first), int(last)))
    return [str(value) for value in range(low, high + 1)] if high - low < MAX_WORDS else None


def _collect(context: ExpansionContext, node: "Node", parts: _WordParts) -> None:
    collect = _COLLECTORS.get(node.type)
    if collect is not None:
        collect(context, node, parts)
    elif node.child_count:
        context.visit(node)
        parts.append_unknown(text_of(node))
    else:
        _unquoted(context, node, parts)


# A substitution in plain text is one that the grammar did not recognise.
_OVERLOOKED = re.compile(r"(?<!\\)(?:\\\\)*(?:`|\$\()")


def refuse_hidden_substitution(context: ExpansionContext, raw: str) -> None:
    """Report a substitution in text that the grammar did not recognise."""
    if ("`" in raw or "$(" in raw) and _OVERLOOKED.search(raw):
        context.report.add_violation(Violation.SUBSTITUTION)


def _unquoted(context: ExpansionContext, node: "Node", parts: _WordParts) -> None:
    raw = text_of(node)
    refuse_hidden_substitution(context, raw)
    if "\\" in raw:
        parts.has_inner_quotes |= _ESCAPED_LETTER.search(raw) is not None or (bool(parts.text) and raw[:2] != "\\\n")
        raw = _ESCAPE.sub(lambda match: "" if match[1] == "\n" else match[1].translate(_PROTECT), raw)
    parts.text.append(raw)


def _single_quoted(context: ExpansionContext, node: "Node", parts: _WordParts) -> None:
    raw = text_of(node)[1:-1]
    if _HIDDEN_SUBSTITUTION.search(raw):
        context.report.add_violation(Violation.OBFUSCATED)
    parts.text.append(raw.translate(_PROTECT))


def _ansi_c_string(_names: ExpansionContext, node: "Node", parts: _WordParts) -> None:
    raw = text_of(node)[2:-1]
    parts.has_inner_quotes |= "\\" in raw
    parts.text.append(unescape(raw).translate(_PROTECT))


def _double_quoted(context: ExpansionContext, node: "Node", parts: _WordParts) -> None:
    position = node.start_byte + 1
    source = node.text or b""
    for child in node.named_children:
        parts.text.append(_unescape_quoted(source[position - node.start_byte : child.start_byte - node.start_byte]))
        if child.type == "string_content":
            refuse_hidden_substitution(context, text_of(child))
            parts.text.append(_unescape_quoted(child.text or b""))
        else:
            _inside_quotes(context, child, parts)
        position = child.end_byte
    parts.text.append(_unescape_quoted(source[position - node.start_byte : -1]))


def _unescape_quoted(source: bytes) -> str:
    text = source.decode("utf-8", "replace")
    return _QUOTED_ESCAPE.sub(lambda match: match[1].strip("\n"), text).translate(_PROTECT)


def _inside_quotes(context: ExpansionContext, node: "Node", parts: _WordParts) -> None:
    before = len(parts.text)
    _collect(context, node, parts)
    parts.text[before:] = [part.replace(_SPLIT, " ") for part in parts.text[before:]]


def _concatenation(context: ExpansionContext, node: "Node", parts: _WordParts) -> None:
    kinds = [child.type for child in node.children]
    quoted = [child for child in node.children if child.type in _QUOTES]
    # Quotes next to a variable protect blanks; quotes next to plain letters have no purpose but to hide the word.
    parts.has_inner_quotes |= any(kind in _BARE for kind in kinds) and any(_is_short(child) for child in quoted)
    parts.has_inner_quotes |= len(quoted) > 1 and len(quoted) == len(kinds)
    parts.has_inner_quotes |= any(kind in _EXPANSIONS for kind in kinds) and b"/" not in (node.text or b"")
    if _EMPTY_INSIDE.search(text_of(node)):
        context.report.add_violation(Violation.OBFUSCATED)
    for child in node.children:
        _collect(context, child, parts)


# These expand to nothing, so inside a word their only purpose is to hide it.
_EMPTY_INSIDE = re.compile(r"\w(?:\$[@*]|\$\{[@*]\}|\$\([ \t]*\)|``)\w")
_QUOTES = frozenset({"string", "raw_string", "ansi_c_string"})
_BARE = frozenset({"word", "number"})
_EXPANSIONS = frozenset({"simple_expansion", "expansion", "command_substitution", "arithmetic_expansion"})


def _is_short(node: "Node") -> bool:
    inside = text_of(node).strip("$'\"")
    return all(character.isalnum() for character in inside)


def _variable(context: ExpansionContext, node: "Node", parts: _WordParts) -> None:
    _expand(context, text_of(node).strip('${}"'), text_of(node), parts)


def _expansion(context: ExpansionContext, node: "Node", parts: _WordParts) -> None:
    raw = text_of(node)
    name = raw[2:-1]
    if name.isidentifier() or name in _PLAIN_VARIABLES:
        _expand(context, name, raw, parts)
        return
    if "`" in raw:
        context.report.add_violation(Violation.SUBSTITUTION)
    if "@P}" in raw or "@A}" in raw:
        context.report.add_violation(Violation.INLINE_CODE)
    for child in node.named_children:
        context.visit(child)
        if not child.child_count:
            refuse_hidden_substitution(context, text_of(child))
        if child.type == "variable_name" and not _IS_SET_TEST.search(raw):
            _report_secret(context, text_of(child), raw)
    parts.append_unknown(raw)


_IS_SET_TEST = re.compile(r"\A\$\{\w+:?\+")


def _report_secret(context: ExpansionContext, name: str, raw: str) -> None:
    if _SECRET_VARIABLE.match(name) and not context.in_test:
        context.report.add_effect(EffectKind.SECRET, raw)


def _expand(context: ExpansionContext, name: str, raw: str, parts: _WordParts) -> None:
    if name == "IFS":
        context.report.add_violation(Violation.OBFUSCATED)
    values = context.lookup(name)
    if values is not None:
        _insert_values(values, parts)
    elif name in ("HOME", "PWD") and not "".join(parts.text):
        parts.text.append("~" if name == "HOME" else (context.directory or ".").translate(_PROTECT))
        parts.pattern = True
    else:
        _unset(context, name, raw, parts)


def _unset(context: ExpansionContext, name: str, raw: str, parts: _WordParts) -> None:
    _report_secret(context, name, raw)
    is_resolved = name in _PLAIN_VARIABLES and name not in _ARGUMENTS
    was_resolved = parts.is_exact or parts.pattern
    parts.append_unknown(raw)
    parts.pattern = is_resolved and was_resolved


def _insert_values(values: list[Word], parts: _WordParts) -> None:
    is_resolved = (parts.is_exact or parts.pattern) and all(value.is_resolved for value in values)
    parts.is_computed = True
    parts.pattern = is_resolved and (parts.pattern or any(value.pattern for value in values))
    parts.is_exact &= all(value.is_exact for value in values)
    texts = [_SPLIT.join(value.text.split()).translate(_PROTECT) for value in values]
    parts.origin = parts.origin or next((value.origin for value in values if value.origin), None)
    parts.text.append(texts[0] if len(texts) == 1 else "{" + ",".join(texts) + "}")


def _substitution(context: ExpansionContext, node: "Node", parts: _WordParts) -> None:
    output = context.substitution(node)
    parts.is_computed = True
    parts.origin = parts.origin or (
        Violation.SUBSTITUTION if output.source is not DataSource.REMOTE else output.violation
    )
    if output.source is DataSource.DECODED:
        parts.origin = output.violation
    if output.source is DataSource.TEXT and len(output.text) <= MAX_VALUE:
        parts.text.append(_SPLIT.join(output.text.split()).translate(_PROTECT))
    elif output.source is DataSource.LISTING:
        parts.text.append(output.text.translate(_PROTECT))
        parts.pattern, parts.is_exact = parts.is_exact or parts.pattern, False
    else:
        parts.append_unknown(text_of(node))


def _process(context: ExpansionContext, node: "Node", parts: _WordParts) -> None:
    output = context.process(node)
    parts.text.append("/dev/fd/63")
    parts.origin = output.violation


def _arithmetic(context: ExpansionContext, node: "Node", parts: _WordParts) -> None:
    context.visit(node)
    parts.text.append("0")
    parts.pattern, parts.is_computed = parts.is_exact or parts.pattern, True


def _array(context: ExpansionContext, node: "Node", parts: _WordParts) -> None:
    for child in node.named_children:
        context.visit(child)
    parts.append_unknown(text_of(node))


_COLLECTORS: dict[str, Callable[[ExpansionContext, "Node", _WordParts], None]] = {
    "command_name": lambda names, node, parts: _collect(names, node.children[0], parts),
    "raw_string": _single_quoted,
    "ansi_c_string": _ansi_c_string,
    "string": _double_quoted,
    "translated_string": lambda names, node, parts: _collect(names, node.children[-1], parts),
    "concatenation": _concatenation,
    "brace_expression": lambda _names, node, parts: parts.text.append(text_of(node)),
    "simple_expansion": _variable,
    "expansion": _expansion,
    "command_substitution": _substitution,
    "process_substitution": _process,
    "arithmetic_expansion": _arithmetic,
    "array": _array,
}
