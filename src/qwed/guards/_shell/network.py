"""Roles of operands of network clients: what they fetch, send, store and run."""

import re

from qwed.guards._shell.command_model import Violation
from qwed.guards._shell.grammar.context import Argument, Role, RoleContext
from qwed.model import EffectKind

_E = EffectKind
_NAMED_FILE = re.compile(r"[^=@]*@(.+)")
"""`name@file` without a `=` before the `@`."""


def _header_file(context: RoleContext, argument: Argument) -> None:
    """Report `@file`, which a header list is read from."""
    if argument.word.text.startswith("@"):
        context.add_file(_E.READ, argument.word._replace(text=argument.word.text[1:]))


def _named_file(context: RoleContext, argument: Argument) -> None:
    if match := _NAMED_FILE.match(argument.word.text):
        context.add_file(_E.READ, argument.word._replace(text=match[1]))


def _cookie_file(context: RoleContext, argument: Argument) -> None:
    """Report a cookie file; text with `=` is a cookie."""
    text = argument.word.text
    if text.startswith("@"):
        context.add_file(_E.READ, argument.word._replace(text=text[1:]))
    elif "=" not in text:
        context.add_file(_E.READ, argument.word)


_SCHEME = re.compile(r"(?i)([a-z][a-z0-9+.-]*)://")
_WEB_SCHEMES = frozenset({"http", "https", "ftp", "ftps", "ws", "wss", "sftp", "scp"})


def _url(context: RoleContext, argument: Argument) -> None:
    word = argument.word
    match = _SCHEME.match(word.text)
    scheme = match[1].lower() if match else "http"
    if scheme == "file":
        context.analysis.add_file_effect(_E.READ, word._replace(text="/" + word.text[7:].lstrip("/")))
        context.unresolved("`file:` is not an address of another machine")
        return
    context.add(_E.NETWORK, word.text)
    if scheme not in _WEB_SCHEMES:
        context.unresolved(f"`{scheme}:` is not a known URL scheme")


def _dns_name(context: RoleContext, argument: Argument) -> None:
    """Report a name or a server; `+short` is an option of the query."""
    if not argument.word.text.startswith("+"):
        context.add(_E.NETWORK, argument.word.text)


def _reverse_shell(context: RoleContext, argument: Argument) -> None:
    context.analysis.report.add_violation(Violation.REVERSE_SHELL)
    context.add(_E.EXECUTE, argument.word.text)


_SOCAT_RUNS = re.compile(r"(?i)(?:exec|system|shell|pty)\b")
_SOCAT_FILE = re.compile(r"(?i)(?:open|file|create|gopen)\w*:([^,]*)")
_SOCAT_NETWORK = re.compile(
    r"(?i)(?:tcp|udp|openssl|ssl|sctp|ip|socks|proxy|unix|stdio|stdin|stdout|pipe|fd)\w*(?:-\w+)*\b|-"
)


def _socat_address(context: RoleContext, argument: Argument) -> None:
    text = argument.word.text
    if _SOCAT_RUNS.match(text):
        _reverse_shell(context, argument)
    elif match := _SOCAT_FILE.match(text):
        context.add_file(_E.WRITE, argument.word._replace(text=match[1]))
    elif not _SOCAT_NETWORK.match(text):
        context.unresolved(f"`{text[:64]}` is not a known address of `socat`")


def _http_method(context: RoleContext, argument: Argument) -> None:
    """Report a request that removes something on the other side."""
    if argument.word.text.upper() == "DELETE":
        context.add(_E.DELETE)
    elif not argument.word.is_exact:
        context.unresolved("the method of a request is known only at run time")


ROLES: dict[str, Role] = {
    "url": _url,
    "header-file": _header_file,
    "named-file": _named_file,
    "cookie-file": _cookie_file,
    "http-method": _http_method,
    "dns-name": _dns_name,
    "reverse-shell": _reverse_shell,
    "socat-address": _socat_address,
}
