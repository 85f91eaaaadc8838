"""Expansion of a word of the syntax tree to program arguments: quotes, escapes, variables, braces and substitutions."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from qwed.guards._shell.command_model import DataSource, PipeData, ShellReport, Violation, Word, names_in
from qwed.guards._shell.escapes import is_plain_ansi, unescape
from qwed.guards._shell.listings import has_any_name
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
_WILD = re.compile(r"[*?\[]|\A~")
_OPEN_BRACES = re.compile(r"\{[^{}]*(?:,|\.\.)[^{}]*\}")
_SECRET_VARIABLE = re.compile(
    r"(?:.*_)?(?:API_?KEY|ACCESS_?KEY(?:_ID)?|SECRET\w*|TOKEN|PASSWORD|PASSWD|PASSPHRASE|PASS|CREDENTIALS?|PRIVATE_KEY"
    r"|PAT|AUTH|KEY)\Z"
)
INTEGER_VARIABLES = names_in("RANDOM SECONDS UID EUID PPID LINENO BASHPID")
"""Variables of a shell that only hold integers; not every shell has them, so they may be empty."""
_PLAIN_VARIABLES = INTEGER_VARIABLES | frozenset([*"?$#-0123456789@*", "USER", "LOGNAME", "HOSTNAME", "TMPDIR", "LANG"])
"""Variables that are not secret and, as part of a path, lead to ordinary locations; the arguments of a script stay
unknown."""
_ARGUMENTS = frozenset("@*123456789")
_CONNECTION_VARIABLE = re.compile(
    r"(?:.*_)?(?:(?:DATABASE|DB|POSTGRES(?:QL)?|PG|MYSQL|MARIADB|MONGO(?:DB)?|REDIS|AMQP|RABBITMQ|BROKER|CLICKHOUSE|JDBC)"
    r"_?(?:URL|URI)|DSN|CONNECTION_STRING|CONN_?STR)\Z"
)
"""Variables with an address that usually contains a password; giving it to a database client reveals nothing."""


class ExpansionContext(Protocol):
    """Interface of the shell visitor that word expansion uses: variables, directory and inner commands."""

    report: ShellReport
    directory: str
    in_test: bool
    connects: bool
    """True if the words are for a database client, to which an address with a password is no secret."""
    ifs_changed: bool
    """True if words may be split in another way."""
    in_map: bool
    """True inside `declare -A`."""

    def note_tested(self, text: str) -> None:
        """Note that a test reads a secret, which it shows only if commands are traced."""

    def lookup(self, name: str) -> list[Word] | None:
        """Return the possible values of a variable, or None if they are not known."""

    def is_integer(self, name: str) -> bool:
        """Return True if a variable certainly holds an integer."""

    def is_inherited(self, name: str) -> bool:
        """Return True if the script does not assign the variable."""

    def forget(self, name: str) -> None:
        """Note that a variable gets a value that is not known."""

    def substitution(self, node: "Node") -> PipeData:
        """Analyse the commands inside `$( )` and return their output."""

    def process(self, node: "Node") -> PipeData:
        """Analyse the commands inside `<( )` or `>( )`."""

    def arithmetic(self, node: "Node") -> None:
        """Analyse the arithmetic inside a node."""

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
    integers: int = 0
    """Number of parts that are integers known only at run time."""
    splits: bool = False
    any_name: bool = False

    def append_unknown(self, raw: str) -> None:
        self.text.append(raw.translate(_PROTECT))
        self.is_exact = self.pattern = False
        self.is_computed = True

    def append_integer(self) -> None:
        self.text.append("0")
        self.pattern, self.is_computed = self.is_exact or self.pattern, True
        self.is_exact = False
        self.integers += 1


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
    wild = _WILD.search(text) is not None
    plain = text.translate(_RESTORE)
    known = is_exact or parts.pattern
    number = parts.integers == 1 and len([piece for piece in parts.text if piece]) == 1
    if "{" in text and _OPEN_BRACES.search(text):
        return Word(plain, False, False, parts.has_inner_quotes, True, parts.origin)
    return Word(
        plain,
        is_exact and not wild,
        known and (wild or parts.pattern),
        parts.has_inner_quotes,
        parts.is_computed,
        parts.origin,
        number,
        parts.splits and not known,
        parts.any_name or (wild and has_any_name(plain)),
    )


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
    width = max(map(len, (first, last))) if _PADDED.search(inside) else 0
    return [f"{value:0{width}}" for value in range(low, high + 1)] if high - low < MAX_WORDS else None


_PADDED = re.compile(r"(?:\A|\.|-)0\d")


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


def _single_quoted(_context: ExpansionContext, node: "Node", parts: _WordParts) -> None:
    parts.text.append(text_of(node)[1:-1].translate(_PROTECT))


def _ansi_c_string(context: ExpansionContext, node: "Node", parts: _WordParts) -> None:
    raw = text_of(node)[2:-1]
    parts.has_inner_quotes |= "\\" in raw
    if not is_plain_ansi(raw):
        context.report.add_unresolved(f"`{text_of(node)[:64]}` has an escape that is not understood")
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
    before, splits = len(parts.text), parts.splits
    source = text_of(node)
    # The grammar counts blanks before an expansion in quotes to the expansion.
    parts.text.append(source[: len(source) - len(source.lstrip(" \t\n"))].translate(_PROTECT))
    _collect(context, node, parts)
    parts.text[before:] = [part.replace(_SPLIT, " ") for part in parts.text[before:]]
    parts.splits = splits


def _concatenation(context: ExpansionContext, node: "Node", parts: _WordParts) -> None:
    kinds = [child.type for child in node.children]
    quoted = [child for child in node.children if child.type in _QUOTES]
    # Quotes next to a variable protect blanks; quotes next to plain letters have no purpose but to hide the word.
    parts.has_inner_quotes |= any(kind in _BARE for kind in kinds) and any(_is_short(child) for child in quoted)
    parts.has_inner_quotes |= len(quoted) > 1 and len(quoted) == len(kinds)
    parts.has_inner_quotes |= any(kind in _EXPANSIONS for kind in kinds) and b"/" not in (node.text or b"")
    if _EMPTY_INSIDE.search(text_of(node)):
        context.report.add_violation(Violation.OBFUSCATED)
    _refuse_joined(context, node)
    for child in node.children:
        _collect(context, child, parts)


def _refuse_joined(context: ExpansionContext, node: "Node") -> None:
    """Report parts that a shell joins in another way: `$"text"` is translated, `$x{a,b}` is `$xa $xb`."""
    for before, after in pairwise(node.children):
        translated = before.type == "$" and after.type in _QUOTES
        if translated or (before.type == "simple_expansion" and text_of(after).startswith("{")):
            context.report.add_unresolved(f"`{text_of(node)[:64]}` is not read as a shell reads it")


# These expand to nothing, so inside a word their only purpose is to hide it.
_EMPTY_INSIDE = re.compile(r"\w(?:\$[@*]|\$\{[@*]\}|\$\([ \t]*\)|``)\w")
_QUOTES = frozenset({"string", "raw_string", "ansi_c_string"})
_BARE = frozenset({"word", "number"})
_EXPANSIONS = frozenset({"simple_expansion", "expansion", "command_substitution", "arithmetic_expansion"})


def _is_short(node: "Node") -> bool:
    inside = text_of(node).strip("$'\"")
    return all(character.isalnum() for character in inside)


def _variable(context: ExpansionContext, node: "Node", parts: _WordParts) -> None:
    raw = text_of(node).lstrip(" \t\n")
    _expand(context, raw.strip('${}"'), raw, parts)


_NAME = r"(?:[A-Za-z_]\w*|[0-9@*#?$!-])"
_LENGTH = re.compile(rf"\$\{{#{_NAME}(?:\[[@*]\])?\}}")
_UNDERSTOOD = re.compile(
    rf"\$\{{({_NAME})(?:\[(?:[@*]|\d{{1,9}}|-1)\])?"
    r"(?:(:?=)|:?[-+?]|\^\^?|,,?|##?|%%?|//?[#%]?|@[QUuLEa](?=\})|:([^-=?+}][^}]*)(?=\}\Z)|(?=\}\Z))"
)
"""Expansions of a variable whose value is text; indices and offsets are numbers."""
_KEYS = re.compile(r"\$\{![A-Za-z_]\w*\[[@*]\]\}")
_OFFSET = re.compile(r"\s*(?:-?\d{1,9}|\$?([A-Za-z_]\w*)|\$\{([A-Za-z_]\w*))\s*")


def _expansion(context: ExpansionContext, node: "Node", parts: _WordParts) -> None:
    raw = text_of(node).lstrip(" \t\n")
    name = raw[2:-1]
    if name.isidentifier() or name in _PLAIN_VARIABLES:
        _expand(context, name, raw, parts)
    elif _LENGTH.fullmatch(raw):
        parts.append_integer()
    else:
        _transformed(context, node, raw, parts)


def _transformed(context: ExpansionContext, node: "Node", raw: str, parts: _WordParts) -> None:
    if "`" in raw:
        context.report.add_violation(Violation.SUBSTITUTION)
    if "@P}" in raw or "@A}" in raw:
        context.report.add_violation(Violation.INLINE_CODE)
    if not _is_understood(context, raw):
        context.report.add_unresolved(f"`{raw[:64]}` is not an expansion that is understood")
    # A default is assigned, an error is printed.
    before, context.in_test = context.in_test, context.in_test and not _ASSIGNS_OR_PRINTS.match(raw)
    for child in node.named_children:
        _visit_part(context, child, raw)
    context.in_test = before
    parts.splits |= True
    parts.append_unknown(raw)


def _is_understood(context: ExpansionContext, raw: str) -> bool:
    if _KEYS.fullmatch(raw):
        return True
    match = _UNDERSTOOD.match(raw)
    if match is None:
        return False
    if match[2]:
        context.forget(match[1])
    offsets = [_OFFSET.fullmatch(piece) for piece in match[3].split(":")] if match[3] else []
    names = [offset[1] or offset[2] for offset in offsets if offset]
    return None not in offsets and all(context.is_integer(name) for name in names if name)


def _visit_part(context: ExpansionContext, node: "Node", raw: str) -> None:
    if node.type == "subscript":
        for index in node.named_children[1:]:
            if text_of(index) not in ("@", "*"):
                context.arithmetic(index)
    elif node.type in ("regex", "variable_name", "special_variable_name"):
        refuse_hidden_substitution(context, text_of(node))
    else:
        context.visit(node)
    name = node.named_children[0] if node.type == "subscript" else node
    if name.type == "variable_name" and not _IS_SET_TEST.search(raw):
        _report_secret(context, text_of(name), raw)


_ASSIGNS_OR_PRINTS = re.compile(r"\$\{!?\w+(?:\[[^\]]*\])?:?[=?]")
_IS_SET_TEST = re.compile(r"\A\$\{\w+:?\+")


def is_secret_variable(name: str) -> bool:
    """Return True if the name of a variable says that it holds a secret."""
    return _SECRET_VARIABLE.match(name) is not None or _CONNECTION_VARIABLE.match(name) is not None


def _report_secret(context: ExpansionContext, name: str, raw: str) -> None:
    is_secret = _SECRET_VARIABLE.match(name) or (_CONNECTION_VARIABLE.match(name) and not context.connects)
    if is_secret and context.in_test:
        context.note_tested(raw)
    elif is_secret:
        context.report.add_effect(EffectKind.SECRET, raw)


_INTEGERS = frozenset("#?$")


def _expand(context: ExpansionContext, name: str, raw: str, parts: _WordParts) -> None:
    if name == "IFS":
        context.report.add_violation(Violation.OBFUSCATED)
    values = context.lookup(name)
    if values is not None:
        _insert_values(context, values, raw, parts)
    elif context.is_integer(name):
        parts.append_integer()
    elif not context.is_inherited(name):
        parts.splits = True
        _unset(context, name, raw, parts)
    elif name in _INTEGERS:
        parts.append_integer()
    elif name in ("HOME", "PWD") and not "".join(parts.text):
        parts.text.append("~" if name == "HOME" else (context.directory or ".").translate(_PROTECT))
        parts.pattern = True
    else:
        _unset(context, name, raw, parts)


def _unset(context: ExpansionContext, name: str, raw: str, parts: _WordParts) -> None:
    _report_secret(context, name, raw)
    is_resolved = name in _PLAIN_VARIABLES and name not in _ARGUMENTS and context.is_inherited(name)
    was_resolved = parts.is_exact or parts.pattern
    parts.append_unknown(raw)
    parts.pattern = is_resolved and was_resolved
    parts.integers += is_resolved and name in INTEGER_VARIABLES


def _insert_values(context: ExpansionContext, values: list[Word], raw: str, parts: _WordParts) -> None:
    if len(values) == 1 and not values[0].is_resolved:
        parts.origin = parts.origin or values[0].origin
        parts.splits = True
        parts.append_unknown(values[0].text)
        return
    is_resolved = (parts.is_exact or parts.pattern) and all(value.is_resolved for value in values)
    parts.is_computed = True
    parts.pattern = is_resolved and (parts.pattern or any(value.pattern for value in values))
    parts.is_exact &= all(value.is_exact for value in values)
    parts.integers += len(values) == 1 and values[0].is_number
    if context.ifs_changed and any(len(value.text.split()) > 1 for value in values):
        parts.append_unknown(raw)
        return
    is_part = "".join(parts.text) != ""
    texts = [
        "*"
        if is_part and value.is_computed and value.is_several
        else _SPLIT.join(value.text.split()).translate(_PROTECT)
        for value in values
    ]
    parts.origin = parts.origin or next((value.origin for value in values if value.origin), None)
    parts.any_name |= any(value.any_name for value in values)
    parts.text.append(texts[0] if len(texts) == 1 else "{" + ",".join(texts) + "}")


def _substitution(context: ExpansionContext, node: "Node", parts: _WordParts) -> None:
    output = context.substitution(node)
    parts.is_computed = True
    if output.source is DataSource.NUMBER:
        parts.append_integer()
        return
    parts.origin = parts.origin or (
        Violation.SUBSTITUTION if output.source is not DataSource.REMOTE else output.violation
    )
    if output.source is DataSource.DECODED:
        parts.origin = output.violation
    if output.source is DataSource.TEXT and len(output.text) <= MAX_VALUE and not context.ifs_changed:
        parts.text.append(_SPLIT.join(output.text.split()).translate(_PROTECT))
    elif output.source is DataSource.LISTING:
        # A name after other text is not known to begin with the directory of the listing.
        parts.text.append("*" if "".join(parts.text) else output.text.translate(_PROTECT))
        parts.any_name |= output.any_name
        parts.pattern, parts.is_exact = parts.is_exact or parts.pattern, False
    else:
        parts.splits = True
        parts.append_unknown(text_of(node))


def _process(context: ExpansionContext, node: "Node", parts: _WordParts) -> None:
    output = context.process(node)
    parts.text.append("/dev/fd/63")
    parts.origin = output.violation


def _arithmetic(context: ExpansionContext, node: "Node", parts: _WordParts) -> None:
    context.arithmetic(node)
    parts.append_integer()


def _array(context: ExpansionContext, node: "Node", parts: _WordParts) -> None:
    for child in node.named_children:
        if child.type == "concatenation" and text_of(child.children[0]).startswith("["):
            _require_plain_index(context, child)
        expand_words(context, child)
    parts.append_unknown(text_of(node))


_PLAIN_INDEX = re.compile(r"\[([\w.-]+|'[\w .-]*'|\"[\w .-]*\")\]=")


def _require_plain_index(context: ExpansionContext, node: "Node") -> None:
    """Report an index `[x]=` that is not a number; a name is one only in a map, which `declare -A` makes."""
    match = _PLAIN_INDEX.match(text_of(node))
    if match is None or not (match[1].isdigit() or context.in_map):
        context.report.add_unresolved(f"`{text_of(node)[:64]}` has an index that is not a number")


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
