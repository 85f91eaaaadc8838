"""A word of the syntax tree to the text a program gets: quotes, escapes, variables, braces and substitutions."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from qwed.guards._shell.escapes import unescaped
from qwed.guards._shell.model import Feed, ShellReport, Source, Violation, Word
from qwed.words import EffectKind

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_WORDS = 64
MAX_VALUE = 1_024

_SPECIAL = "{},.*?[]~ \t\n"
_PROTECT = {ord(each): 0xE000 + at for at, each in enumerate(_SPECIAL)}
_RESTORE = {0xE000 + at: ord(each) for at, each in enumerate(_SPECIAL)}
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
"""Their values are no secret and, as part of a path, lead nowhere unusual; arguments of a script stay unknown."""
_ARGUMENTS = frozenset("@*123456789")
_HIDDEN_SUBSTITUTION = re.compile(r"\[\$\(\w|\[`\w")


class Names(Protocol):
    """What reading words needs from the walk: variables, directories and a judge for the commands inside."""

    report: ShellReport
    directory: str
    testing: bool

    def lookup(self, name: str) -> list[Word] | None:
        """The values a variable may have, if they are known."""

    def substitution(self, node: "Node") -> Feed:
        """Judge the commands inside `$( )` and say what they print."""

    def process(self, node: "Node") -> Feed:
        """Judge the commands inside `<( )` or `>( )`."""

    def visit(self, node: "Node") -> object:
        """Judge whatever commands stand inside a node."""


@dataclass(slots=True)
class _Parts:
    text: list[str] = field(default_factory=list)
    known: bool = True
    pattern: bool = False
    spliced: bool = False
    built: bool = False
    origin: Violation | None = None

    def unknown(self, raw: str) -> None:
        self.text.append(raw.translate(_PROTECT))
        self.known = self.pattern = False
        self.built = True


def words_of(names: Names, node: "Node") -> list[Word]:
    """The words one argument becomes: usually one, more where braces or an unquoted variable hold several."""
    parts = _Parts()
    _collect(names, node, parts)
    return _finished(parts)


def text_of(node: "Node") -> str:
    """The source of a node."""
    return (node.text or b"").decode("utf-8", "replace")


def _finished(parts: _Parts) -> list[Word]:
    text = "".join(parts.text)
    texts = _braced(text) if "{" in text else [text]
    if texts is None:
        return [_word(parts, text, known=False)]
    return [_word(parts, each, known=parts.known) for one in texts for each in one.split(_SPLIT)]


def _word(parts: _Parts, text: str, known: bool) -> Word:
    wild = any(each in text for each in "*?[") or text.startswith("~")
    plain = text.translate(_RESTORE)
    pattern = (known or parts.pattern) and (wild or parts.pattern)
    return Word(plain, known and not wild, pattern, parts.spliced, parts.built, parts.origin)


def _braced(text: str) -> list[str] | None:
    """Every word the braces stand for, None where there are too many."""
    done: list[str] = []
    waiting = [text]
    while waiting:
        if len(done) + len(waiting) > MAX_WORDS:
            return None
        one = waiting.pop()
        match = _BRACES.search(one)
        if match is None:
            done.append(one)
            continue
        choices = _choices(match[1])
        if choices is None:
            return None
        waiting += [one[: match.start()] + each + one[match.end() :] for each in reversed(choices)]
    return done


def _choices(inside: str) -> list[str] | None:
    if "," in inside:
        return inside.split(",")
    first, _, last = inside.partition("..")
    if first.isalpha():
        low, high = sorted((ord(first), ord(last)))
        return [chr(each) for each in range(low, high + 1)]
    low, high = sorted((int(first), int(last)))
    return [str(each) for each in range(low, high + 1)] if high - low < MAX_WORDS else None


def _collect(names: Names, node: "Node", parts: _Parts) -> None:
    collect = _COLLECTORS.get(node.type)
    if collect is not None:
        collect(names, node, parts)
    elif node.child_count:
        names.visit(node)
        parts.unknown(text_of(node))
    else:
        _unquoted(names, node, parts)


# What is left of a substitution in plain text is one the grammar overlooked.
_OVERLOOKED = re.compile(r"(?<!\\)(?:\\\\)*(?:`|\$\()")


def require_plain(names: Names, raw: str) -> None:
    """Refuse text that a shell would run and the grammar shows as text."""
    if ("`" in raw or "$(" in raw) and _OVERLOOKED.search(raw):
        names.report.violate(Violation.SUBSTITUTION)


def _unquoted(names: Names, node: "Node", parts: _Parts) -> None:
    raw = text_of(node)
    require_plain(names, raw)
    if "\\" in raw:
        parts.spliced |= _ESCAPED_LETTER.search(raw) is not None or (bool(parts.text) and raw[:2] != "\\\n")
        raw = _ESCAPE.sub(lambda match: "" if match[1] == "\n" else match[1].translate(_PROTECT), raw)
    parts.text.append(raw)


def _single(names: Names, node: "Node", parts: _Parts) -> None:
    raw = text_of(node)[1:-1]
    if _HIDDEN_SUBSTITUTION.search(raw):
        names.report.violate(Violation.OBFUSCATED)
    parts.text.append(raw.translate(_PROTECT))


def _coded(_names: Names, node: "Node", parts: _Parts) -> None:
    raw = text_of(node)[2:-1]
    parts.spliced |= "\\" in raw
    parts.text.append(unescaped(raw).translate(_PROTECT))


def _double(names: Names, node: "Node", parts: _Parts) -> None:
    at = node.start_byte + 1
    source = node.text or b""
    for child in node.named_children:
        parts.text.append(_quoted(source[at - node.start_byte : child.start_byte - node.start_byte]))
        if child.type == "string_content":
            require_plain(names, text_of(child))
            parts.text.append(_quoted(child.text or b""))
        else:
            _inside_quotes(names, child, parts)
        at = child.end_byte
    parts.text.append(_quoted(source[at - node.start_byte : -1]))


def _quoted(source: bytes) -> str:
    text = source.decode("utf-8", "replace")
    return _QUOTED_ESCAPE.sub(lambda match: match[1].strip("\n"), text).translate(_PROTECT)


def _inside_quotes(names: Names, node: "Node", parts: _Parts) -> None:
    before = len(parts.text)
    _collect(names, node, parts)
    parts.text[before:] = [each.replace(_SPLIT, " ") for each in parts.text[before:]]


def _concatenation(names: Names, node: "Node", parts: _Parts) -> None:
    kinds = [child.type for child in node.children]
    quoted = [child for child in node.children if child.type in _QUOTES]
    # Quotes beside a variable protect blanks; quotes beside plain letters protect nothing.
    parts.spliced |= any(each in _BARE for each in kinds) and any(_is_short(child) for child in quoted)
    parts.spliced |= len(quoted) > 1 and len(quoted) == len(kinds)
    parts.spliced |= any(each in _EXPANSIONS for each in kinds) and b"/" not in (node.text or b"")
    if _EMPTY_INSIDE.search(text_of(node)):
        names.report.violate(Violation.OBFUSCATED)
    for child in node.children:
        _collect(names, child, parts)


# They expand to nothing, so that all they do inside a word is to hide it.
_EMPTY_INSIDE = re.compile(r"\w(?:\$[@*]|\$\{[@*]\}|\$\([ \t]*\)|``)\w")
_QUOTES = frozenset({"string", "raw_string", "ansi_c_string"})
_BARE = frozenset({"word", "number"})
_EXPANSIONS = frozenset({"simple_expansion", "expansion", "command_substitution", "arithmetic_expansion"})


def _is_short(node: "Node") -> bool:
    inside = text_of(node).strip("$'\"")
    return all(each.isalnum() for each in inside)


def _variable(names: Names, node: "Node", parts: _Parts) -> None:
    _expand(names, text_of(node).strip('${}"'), text_of(node), parts)


def _expansion(names: Names, node: "Node", parts: _Parts) -> None:
    raw = text_of(node)
    name = raw[2:-1]
    if name.isidentifier() or name in _PLAIN_VARIABLES:
        _expand(names, name, raw, parts)
        return
    if "`" in raw:
        names.report.violate(Violation.SUBSTITUTION)
    if "@P}" in raw or "@A}" in raw:
        names.report.violate(Violation.INLINE_CODE)
    for child in node.named_children:
        names.visit(child)
        if not child.child_count:
            require_plain(names, text_of(child))
        if child.type == "variable_name" and not _ONLY_ASKS.search(raw):
            _secret(names, text_of(child), raw)
    parts.unknown(raw)


_ONLY_ASKS = re.compile(r"\A\$\{\w+:?\+")


def _secret(names: Names, name: str, raw: str) -> None:
    if _SECRET_VARIABLE.match(name) and not names.testing:
        names.report.effect(EffectKind.SECRET, raw)


def _expand(names: Names, name: str, raw: str, parts: _Parts) -> None:
    if name == "IFS":
        names.report.violate(Violation.OBFUSCATED)
    values = names.lookup(name)
    if values is not None:
        _insert(values, parts)
    elif name in ("HOME", "PWD") and not "".join(parts.text):
        parts.text.append("~" if name == "HOME" else (names.directory or ".").translate(_PROTECT))
        parts.pattern = True
    else:
        _unset(names, name, raw, parts)


def _unset(names: Names, name: str, raw: str, parts: _Parts) -> None:
    _secret(names, name, raw)
    settled = name in _PLAIN_VARIABLES and name not in _ARGUMENTS
    was_settled = parts.known or parts.pattern
    parts.unknown(raw)
    parts.pattern = settled and was_settled


def _insert(values: list[Word], parts: _Parts) -> None:
    settled = (parts.known or parts.pattern) and all(value.settled for value in values)
    parts.built = True
    parts.pattern = settled and (parts.pattern or any(value.pattern for value in values))
    parts.known &= all(value.known for value in values)
    texts = [_SPLIT.join(value.text.split()).translate(_PROTECT) for value in values]
    parts.origin = parts.origin or next((value.origin for value in values if value.origin), None)
    parts.text.append(texts[0] if len(texts) == 1 else "{" + ",".join(texts) + "}")


def _substitution(names: Names, node: "Node", parts: _Parts) -> None:
    feed = names.substitution(node)
    parts.built = True
    parts.origin = parts.origin or (Violation.SUBSTITUTION if feed.source is not Source.REMOTE else feed.violation)
    if feed.source is Source.DECODED:
        parts.origin = feed.violation
    if feed.source is Source.TEXT and len(feed.text) <= MAX_VALUE:
        parts.text.append(_SPLIT.join(feed.text.split()).translate(_PROTECT))
    elif feed.source is Source.LISTING:
        parts.text.append(feed.text.translate(_PROTECT))
        parts.pattern, parts.known = parts.known or parts.pattern, False
    else:
        parts.unknown(text_of(node))


def _process(names: Names, node: "Node", parts: _Parts) -> None:
    feed = names.process(node)
    parts.text.append("/dev/fd/63")
    parts.origin = feed.violation


def _arithmetic(names: Names, node: "Node", parts: _Parts) -> None:
    names.visit(node)
    parts.text.append("0")
    parts.pattern, parts.built = parts.known or parts.pattern, True


def _array(names: Names, node: "Node", parts: _Parts) -> None:
    for child in node.named_children:
        names.visit(child)
    parts.unknown(text_of(node))


_COLLECTORS: dict[str, Callable[[Names, "Node", _Parts], None]] = {
    "command_name": lambda names, node, parts: _collect(names, node.children[0], parts),
    "raw_string": _single,
    "ansi_c_string": _coded,
    "string": _double,
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
