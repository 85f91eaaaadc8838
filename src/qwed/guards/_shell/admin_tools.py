"""Roles of operands of system tools: processes, services, settings, terminals."""

import re

from qwed.guards._shell.command_model import names_in
from qwed.guards._shell.grammar.context import Argument, Role, RoleContext
from qwed.model import EffectKind

_E = EffectKind


def _ps_operand(context: RoleContext, argument: Argument) -> None:
    """Report that a bare `e` among the letters, as in `ps auxe`, shows the environment of every process."""
    text = argument.word.text
    if ("e" in text and text.isalpha()) or "environ" in text:
        context.add(_E.SECRET, "environment")


def _service_verb(context: RoleContext, argument: Argument) -> None:
    if argument.word.text != "status":
        context.add(_E.ADMIN)


_HOST_DATABASES = frozenset({"hosts", "ahosts", "ahostsv4", "ahostsv6", "networks"})


def _getent_database(context: RoleContext, argument: Argument) -> None:
    """Report a database with secrets, or one whose names are looked up by DNS."""
    text = argument.word.text
    if not argument.word.is_exact:
        context.unresolved(f"`{text[:64]}` is known only at run time")
    elif text in ("passwd", "shadow", "gshadow"):
        context.add(_E.SECRET, f"/etc/{text}")
    elif text in _HOST_DATABASES and len(context.parsed.operands) > 1:
        context.add(_E.NETWORK)


def _date_format(context: RoleContext, argument: Argument) -> None:
    """Report a new time; a format starts with `+`."""
    if not argument.word.text.startswith("+"):
        context.add(_E.ADMIN)


def _sysctl_setting(context: RoleContext, argument: Argument) -> None:
    if "=" in argument.word.text or not argument.word.is_resolved:
        context.add(_E.ADMIN)


_PLAIN_VARIABLES = names_in(
    "PATH HOME USER SHELL LANG PWD TERM LOGNAME HOSTNAME VIRTUAL_ENV EDITOR TZ LC_ALL JAVA_HOME GOPATH NODE_ENV CI"
)


def _process_format(context: RoleContext, argument: Argument) -> None:
    """Report columns that show the environment of every process."""
    if "environ" in argument.word.text or not argument.word.is_exact:
        context.add(_E.SECRET, "environment")


def _system_file(context: RoleContext, argument: Argument) -> None:
    """Report a file below `/etc`, where relative names start."""
    text = argument.word.text
    context.add_file(_E.READ, argument.word if text.startswith("/") else argument.word._replace(text=f"/etc/{text}"))


_NEW_SETTING = re.compile(r"[^=]*=", re.DOTALL)


def _mail_setting(context: RoleContext, argument: Argument) -> None:
    """Report `name=value`, which changes the configuration."""
    if _NEW_SETTING.match(argument.word.text) or not argument.word.is_exact:
        context.add(_E.ADMIN)


_PACKET_WORD = re.compile(r"[\w.:-]+")


def _packet_filter(context: RoleContext, argument: Argument) -> None:
    """Report a word that begins another command, as `;` does."""
    if not (_PACKET_WORD.fullmatch(argument.word.text) and argument.word.is_exact):
        context.add(_E.ADMIN)


def _environment_name(context: RoleContext, argument: Argument) -> None:
    if argument.word.text not in _PLAIN_VARIABLES:
        context.add(_E.SECRET, argument.word.text)


_BUILTINS = names_in(
    """
    . : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown
    echo enable eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile
    popd printf pushd pwd read readarray readonly return set shift shopt source suspend test times trap true
    type typeset ulimit umask unalias unset wait
    """
)


def _builtin_name(context: RoleContext, argument: Argument) -> None:
    """Report a name that is no builtin: bash loads a library with this name."""
    if argument.word.text not in _BUILTINS or not argument.word.is_exact:
        context.escape(argument.word.text)


def _tmux_operand(context: RoleContext, argument: Argument) -> None:
    """Report a semicolon, which starts another tmux command."""
    if argument.word.text.endswith(";") or not argument.word.is_resolved:
        context.unresolved(f"`{argument.word.text[:64]}` of `tmux` is not understood")


def _tmux_format(context: RoleContext, argument: Argument) -> None:
    """Report `#(...)`, which runs a command."""
    if "#(" in argument.word.text or argument.word.text.endswith(";") or not argument.word.is_resolved:
        context.escape(argument.word.text)


_PLAIN_MODE = re.compile(r"0?[0-7]{3}|(?:[ugoa]*[-+=][rwxX]*,?)+")


def _file_mode(context: RoleContext, argument: Argument) -> None:
    """Report a mode with which a program runs as its owner."""
    if not (argument.word.is_exact and _PLAIN_MODE.fullmatch(argument.word.text)):
        context.add(_E.ADMIN)


ROLES: dict[str, Role] = {
    "file-mode": _file_mode,
    "ps-operand": _ps_operand,
    "service-verb": _service_verb,
    "getent-database": _getent_database,
    "date-format": _date_format,
    "sysctl-setting": _sysctl_setting,
    "process-format": _process_format,
    "system-file": _system_file,
    "mail-setting": _mail_setting,
    "packet-filter": _packet_filter,
    "env-name": _environment_name,
    "builtin-name": _builtin_name,
    "tmux-operand": _tmux_operand,
    "tmux-format": _tmux_format,
}
