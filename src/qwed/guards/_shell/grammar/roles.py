"""Roles of operands and option values: what each of them is to the program, and the effect it has."""

import re

from qwed.guards._shell import (
    admin_tools,
    archive_tools,
    git,
    media_tools,
    network,
    remote,
    subcommand_tools,
    text_tools,
)
from qwed.guards._shell.command_model import Violation
from qwed.guards._shell.env_variables import SAFE_PAGERS
from qwed.guards._shell.grammar.context import Argument, Role, RoleContext
from qwed.guards._shell.inline_script import run_text
from qwed.guards.file_effects import is_secret
from qwed.model import EffectKind

_E = EffectKind


def _text(_context: RoleContext, _argument: Argument) -> None:
    pass


def _file(kind: EffectKind) -> Role:
    def report(context: RoleContext, argument: Argument) -> None:
        context.add_file(kind, argument.word)

    return report


def _target(kind: EffectKind) -> Role:
    def report(context: RoleContext, argument: Argument) -> None:
        context.add(kind, argument.word.text)

    return report


def _read(context: RoleContext, argument: Argument) -> None:
    changes = context.parsed.has("in-place") and not argument.option
    context.add_file(_E.WRITE if changes else _E.READ, argument.word)
    if context.parsed.has("recursive") and not argument.option:
        context.analysis.add_tree_read(argument.word)


def _list(context: RoleContext, argument: Argument) -> None:
    """Report a file that is not opened: only its name or its status is shown."""
    _read(context, argument._replace(word=argument.word._replace(any_name=False)))


def _source(context: RoleContext, argument: Argument) -> None:
    """Report a file that is checked; `@name` would be a file with more options."""
    if argument.word.text.startswith("@"):
        context.unresolved(f"`{argument.word.text[:64]}` may be a file of options")
    _list(context, argument)


def _summary(context: RoleContext, argument: Argument) -> None:
    """Report a file that is opened, of which only a number, a sum or a kind is shown."""
    _read(context, argument._replace(word=argument.word._replace(is_summarized=True)))


def _create(context: RoleContext, argument: Argument) -> None:
    """Report a name that is created or replaced, also if it is that of a device."""
    if argument.word.text.startswith("/dev/"):
        context.add(_E.WRITE, argument.word.text)
    context.add_file(_E.WRITE, argument.word)


def _replace(context: RoleContext, argument: Argument) -> None:
    """Report a file that another one takes the place of; a dash is the standard input."""
    if argument.word.text != "-":
        _create(context, argument)


def _name_list(context: RoleContext, argument: Argument) -> None:
    """Report a list of files; what it names is read or packed, and nobody named it in the command."""
    _read(context, argument)
    context.unresolved(f"the files in the list `{argument.word.text[:64]}` are known only at run time")


def _stream(context: RoleContext, argument: Argument) -> None:
    """Report a file that is printed to its end."""
    _read(context, argument)
    if argument.word.text == "/dev/zero":
        context.unresolved("`/dev/zero` never ends")


_IMAGE_SCHEME = re.compile(r"[A-Za-z][\w-]*:(?!//)|.*\.(?:msl|mvg|url)\Z", re.IGNORECASE | re.DOTALL)


def _image_file(context: RoleContext, argument: Argument) -> None:
    """Report an image; a prefix such as `msl:` names a decoder, and some of them write or remove files."""
    if _IMAGE_SCHEME.match(argument.word.text) or argument.word.text.startswith("@"):
        context.unresolved(f"the decoder of `{argument.word.text[:64]}` is not known")
    if not argument.option:
        context.add_file(_E.READ, argument.word)


def _output(context: RoleContext, argument: Argument) -> None:
    """Report a file that is written; a dash is the standard output."""
    if argument.word.text != "-":
        context.add_file(_E.WRITE, argument.word)


_GLOB_NUMBER = re.compile(r"#\d")


def _download(context: RoleContext, argument: Argument) -> None:
    """Report a file that curl writes; `#1` in its name stands for a part of the address."""
    _output(context, argument)
    if _GLOB_NUMBER.search(argument.word.text):
        context.unresolved(f"`{argument.word.text[:64]}` takes a part of the address as a name")


_CERTIFICATES = (".pem", ".crt", ".cer", ".der", ".csr", ".crl")


def _certificate(context: RoleContext, argument: Argument) -> None:
    """Report a file unless its name is that of a certificate, which is public."""
    if not (argument.word.text.endswith(_CERTIFICATES) and is_secret(argument.word.text)):
        context.add_file(_E.READ, argument.word)


def _code(context: RoleContext, argument: Argument) -> None:
    context.analysis.report.add_violation(Violation.INLINE_CODE)
    _script(context, argument)


def _tree(context: RoleContext, argument: Argument) -> None:
    context.add_file(_E.READ, argument.word)
    context.analysis.add_tree_read(argument.word)


def _refuse(context: RoleContext, argument: Argument) -> None:
    name = argument.option or argument.word.text[:64]
    context.unresolved(f"`{name}` of `{context.parsed.name}` is not understood")


def _run(context: RoleContext, argument: Argument) -> None:
    context.escape(argument.word.text or context.call.line)


def _pager(context: RoleContext, argument: Argument) -> None:
    if argument.word.text not in SAFE_PAGERS or not argument.word.is_exact:
        _run(context, argument)


def _command(context: RoleContext, argument: Argument) -> None:
    context.analysis.visit_command([argument.word, *argument.following], context.call.stdin)


def _script(context: RoleContext, argument: Argument) -> None:
    run_text(context.analysis, [argument.word, *argument.following], context.call.stdin)


_JO_FILE = re.compile(r"(?:[^=]*=)?[@%:](.+)", re.DOTALL)


def _jo_value(context: RoleContext, argument: Argument) -> None:
    """Report the file that a value is read from: `name=@file`, `name=%file`, `name=:file`."""
    if match := _JO_FILE.match(argument.word.text):
        context.add_file(_E.READ, argument.word._replace(text=match[1]))
    elif not argument.word.is_exact:
        context.unresolved(f"`{argument.word.text[:64]}` is known only at run time")


_AT_FILE = re.compile(r"(?:^|=|;)[@<]([^;]+)")


def _at_file(context: RoleContext, argument: Argument) -> None:
    """Report files that a value names after `@` or `<`."""
    for name in _AT_FILE.findall(argument.word.text):
        context.add_file(_E.READ, argument.word._replace(text=name))
    if not argument.word.is_resolved and argument.word.text.startswith(("$", "`")):
        context.unresolved(f"`{argument.word.text[:64]}` is known only at run time")


_PARAMETER_FILE = re.compile(r"(?:fileb?://|@)(.+)")


def _parameter(context: RoleContext, argument: Argument) -> None:
    """Report the file that a parameter of a cloud command is read from."""
    if match := _PARAMETER_FILE.match(argument.word.text):
        context.add_file(_E.READ, argument.word._replace(text=match[1]))


_VALUE_FILE = re.compile(r"(?:^|[=,])([^=,]+)(?=,|$)")


def _set_file(context: RoleContext, argument: Argument) -> None:
    """Report the files in `name=file,name=file`."""
    for name in _VALUE_FILE.findall(argument.word.text):
        context.add_file(_E.READ, argument.word._replace(text=name))


def _style(context: RoleContext, argument: Argument) -> None:
    """Report `file:name` or a path, which a style or a template is read from."""
    if argument.word.text.startswith("file:") or "/" in argument.word.text:
        context.add_file(_E.READ, argument.word._replace(text=argument.word.text.removeprefix("file:")))


_SECRET_NAME = re.compile(r"(?i)(?:^|[_.:/-])(?:_?auth\w*|\w*token\w*|\w*passw\w*|\w*secret\w*|\w*credential\w*|key)\b")


def _key(context: RoleContext, argument: Argument) -> None:
    """Report a setting whose name says that it holds a secret."""
    if not argument.word.is_exact:
        context.unresolved(f"`{argument.word.text[:64]}` is known only at run time")
    elif _SECRET_NAME.search(argument.word.text):
        context.add(_E.SECRET)


_TEMPLATE_SECRET = re.compile(
    r"(?i)\benv\b|\$ENV|secret(?!list\b)|token|passw|credential|environ|json \.(?:Config)?\s*\}"
)
_TEMPLATE_FILE = re.compile(r"[\w-]+-file\b")


def _template(context: RoleContext, argument: Argument) -> None:
    """Report an output template or query that prints environments or secrets."""
    if not argument.word.is_exact and not argument.word.pattern:
        context.unresolved(f"`{argument.word.text[:64]}` is known only at run time")
    elif _TEMPLATE_FILE.match(argument.word.text):
        context.unresolved(f"the template of `{argument.word.text[:64]}` is not known")
    elif _TEMPLATE_SECRET.search(argument.word.text):
        context.add(_E.SECRET)


def _format_string(context: RoleContext, argument: Argument) -> None:
    """Report a format of Python that reaches the attributes of an object, from which all others can be reached."""
    if "__" in argument.word.text or not argument.word.is_exact:
        context.unresolved(f"`{argument.word.text[:64]}` of `{argument.option}` is not understood")


_PERL_TEXT = re.compile(r"(?:[^@$\\{}\"]|\$[\d&+f_.,;])*")


def _perl_text(context: RoleContext, argument: Argument) -> None:
    """Report a text that Perl evaluates, unless it only names what was matched."""
    if not (_PERL_TEXT.fullmatch(argument.word.text) and argument.word.is_exact):
        context.escape(argument.word.text)


_PAGER_JUMP = re.compile(r"\+(?:\d+|G|F|/[^!]*)\Z")


def _pager_file(context: RoleContext, argument: Argument) -> None:
    """Report a file that a pager shows; `+` starts a pager command, which can run a program."""
    if not argument.word.text.startswith("+"):
        context.add_file(_E.READ, argument.word)
    elif not _PAGER_JUMP.match(argument.word.text):
        _run(context, argument)


def _file_pattern(context: RoleContext, argument: Argument) -> None:
    """Report a search for the names of files that hold secrets."""
    if is_secret(argument.word.text.strip("*")):
        context.add(_E.SECRET, argument.word.text)


ROLES: dict[str, Role] = {
    "text": _text,
    "read": _read,
    "list": _list,
    "name-list": _name_list,
    "source": _source,
    "summary": _summary,
    "create": _create,
    "replace": _replace,
    "directory": _file(_E.READ),
    "target": _text,
    "tree": _tree,
    "write": _file(_E.WRITE),
    "output": _output,
    "download": _download,
    "delete": _file(_E.DELETE),
    "network": _target(_E.NETWORK),
    "execute": _target(_E.EXECUTE),
    "run": _run,
    "pager": _pager,
    "command": _command,
    "script": _script,
    "refuse": _refuse,
    "stream": _stream,
    "code": _code,
    "image-file": _image_file,
    "certificate": _certificate,
    "at-file": _at_file,
    "jo-value": _jo_value,
    "parameter": _parameter,
    "key": _key,
    "git-key": _key,
    "set-file": _set_file,
    "style": _style,
    "format-string": _format_string,
    "perl-text": _perl_text,
    **git.ROLES,
    **archive_tools.ROLES,
    **media_tools.ROLES,
    **network.ROLES,
    **remote.ROLES,
    **subcommand_tools.ROLES,
    **text_tools.ROLES,
    **admin_tools.ROLES,
    "template": _template,
    "pager-file": _pager_file,
    "file-pattern": _file_pattern,
}
"""Effect of each role. Relative paths start at the `directory` or `target`."""
