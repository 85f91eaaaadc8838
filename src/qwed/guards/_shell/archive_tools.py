"""Roles of operands of programs that pack, unpack and copy: archives, dd."""

import re

from qwed.guards._shell.grammar.context import Argument, Role, RoleContext
from qwed.guards._shell.listings import has_any_name
from qwed.model import EffectKind

_E = EffectKind
_CHANGES_ARCHIVE = (
    "-c",
    "--create",
    "-r",
    "--append",
    "-u",
    "--update",
    "-A",
    "--catenate",
    "--concatenate",
    "--delete",
)


def _archive(context: RoleContext, argument: Argument) -> None:
    """Report the archive; it is not relative to the directory that its members are relative to."""
    if argument.word.text == "-":
        return
    if re.match(r"[^/]*:", argument.word.text) and context.call.name in ("tar", "gtar"):
        context.escape(argument.word.text)
    changes = argument.option and context.parsed.has(*_CHANGES_ARCHIVE)
    context.analysis.add_file_effect(_E.WRITE if changes else _E.READ, argument.word)


_COMPRESSORS = re.compile(r"(?:p?bzip2|gzip|pigz|p?ixz|xz|zstd|zstdmt|lz4|lzip|lzop|brotli)(?: -[\w=-]+)*")


def _compressor(context: RoleContext, argument: Argument) -> None:
    if not _COMPRESSORS.fullmatch(argument.word.text) or not argument.word.is_exact:
        context.escape(argument.word.text)


_ENDLESS = frozenset({"/dev/zero", "/dev/urandom", "/dev/random"})
_DD_PLAIN = frozenset(
    {"bs", "cbs", "conv", "count", "ibs", "iflag", "obs", "oflag", "seek", "oseek", "iseek", "skip", "status"}
)


def _dd_operand(context: RoleContext, argument: Argument) -> None:
    key, _, value = argument.word.text.partition("=")
    word = argument.word._replace(text=value)
    if not argument.word.is_resolved:
        context.unresolved("the files that `dd` copies are known only at run time")
    if key == "if":
        context.add_file(_E.READ, word)
        if value in _ENDLESS and not any(text.startswith("count=") for text in context.call.texts):
            context.unresolved("`dd` copies without end")
    elif key == "of":
        context.add_file(_E.WRITE, word)
        if value.startswith("/dev/") and value not in ("/dev/null", "/dev/stdout"):
            context.add(_E.ADMIN)
    elif key not in _DD_PLAIN:
        context.unresolved(f"`{argument.word.text[:64]}` of `dd` is not known")


def _zip_archive(context: RoleContext, argument: Argument) -> None:
    """Report an archive; the program expands a pattern by itself."""
    word = argument.word
    any_name = word.any_name or has_any_name(word.text)
    _archive(context, argument._replace(word=word._replace(any_name=any_name, is_summarized=True)))


def _archive_names(context: RoleContext, argument: Argument) -> None:
    """Report `@list`, which the names of members are read from."""
    if "@" in argument.word.text:
        context.unresolved(f"the names in `{argument.word.text[:64]}` are not known")


ROLES: dict[str, Role] = {
    "archive-names": _archive_names,
    "archive": _archive,
    "zip-archive": _zip_archive,
    "compressor": _compressor,
    "dd-operand": _dd_operand,
}
