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


def _environment_name(context: RoleContext, argument: Argument) -> None:
    if argument.word.text not in _PLAIN_VARIABLES:
        context.add(_E.SECRET, argument.word.text)


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
    "env-name": _environment_name,
    "tmux-operand": _tmux_operand,
    "tmux-format": _tmux_format,
}
