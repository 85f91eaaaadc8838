"""Roles of operands of network clients: what they fetch, send, store and run."""

import re

from qwed.guards._shell.command_model import Violation, names_in
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


_SCHEME = re.compile(r"(?i)\s*([a-z][a-z0-9+.-]*)://")
_FILE_SCHEME = re.compile(r"(?i)\s*file:/*")
_MANY_SCHEMES = re.compile(r"[^/]*[{\[][^/]*:")
_WEB_SCHEMES = frozenset({"http", "https", "ftp", "ftps", "ws", "wss", "sftp", "scp"})


def _url(context: RoleContext, argument: Argument) -> None:
    word = argument.word
    match = _SCHEME.match(word.text)
    scheme = match[1].lower() if match else "http"
    if word.text.startswith("@"):
        context.add_file(_E.READ, word._replace(text=word.text[1:]))
        context.unresolved(f"the addresses in `{word.text[:64]}` are not known")
    if local := _FILE_SCHEME.match(word.text):
        context.analysis.add_file_effect(_E.READ, word._replace(text="/" + word.text[local.end() :]))
        context.unresolved("`file:` is not an address of another machine")
        return
    context.add(_E.NETWORK, word.text)
    context.analysis.report.facts.add_url(word.text)
    if scheme not in _WEB_SCHEMES or _MANY_SCHEMES.match(word.text):
        context.unresolved(f"`{scheme}:` is not a known URL scheme")


def _web_scheme(context: RoleContext, argument: Argument) -> None:
    """Report the scheme of addresses that have none, unless it is that of the web."""
    if argument.word.text not in _WEB_SCHEMES:
        context.unresolved(f"`{argument.word.text[:64]}` is not the scheme of an address of another machine")


_FORM_FILES = re.compile(r"(?:^|=|;)[@<](\"(?:[^\"\\]|\\.)*\"|[^;]+)((?:,[^;]*)?)")


def _form(context: RoleContext, argument: Argument) -> None:
    """Report the files of a field such as `name=@file,"other";type=text/plain`."""
    for match in _FORM_FILES.finditer(argument.word.text):
        for name in (match[0].lstrip("=;@<") if match[1][0] != '"' else match[1] + match[2]).split(","):
            context.add_file(_E.READ, argument.word._replace(text=name.strip().strip('"').replace("\\", "")))
    if not argument.word.is_resolved and argument.word.text.startswith(("$", "`")):
        context.unresolved(f"`{argument.word.text[:64]}` is known only at run time")


def _socket_path(context: RoleContext, argument: Argument) -> None:
    """Report a socket of this machine: what listens there may do anything."""
    if context.parsed.has("-U"):
        context.add_file(_E.WRITE, argument.word)


_REQUEST_FILE = re.compile(r"[^=@:/]*(?::?=|==|:)?@(.+)", re.DOTALL)
_OUTPUT_FILE = re.compile(r"%output\{(?:>>)?([^}]*)\}")


def _write_out(context: RoleContext, argument: Argument) -> None:
    """Report a format, `@file` with a format, and the files that it writes."""
    if argument.word.text.startswith("@"):
        context.add_file(_E.READ, argument.word._replace(text=argument.word.text[1:]))
    for name in _OUTPUT_FILE.findall(argument.word.text):
        context.add_file(_E.WRITE, argument.word._replace(text=name))
    if not argument.word.is_exact:
        context.unresolved(f"`{argument.word.text[:64]}` is known only at run time")


def _upload(context: RoleContext, argument: Argument) -> None:
    """Report the files that are uploaded; curl expands `{a,b}` in their names."""
    match = re.fullmatch(r"([^{]*)\{([^{}]*)\}([^{]*)", argument.word.text)
    names = [match[1] + name + match[3] for name in match[2].split(",")] if match else [argument.word.text]
    for name in names:
        context.add_file(_E.READ, argument.word._replace(text=name))
    if match is None and set(argument.word.text) & {*"{["}:
        context.unresolved(f"`{argument.word.text[:64]}` is not a name that is understood")


def _request_item(context: RoleContext, argument: Argument) -> None:
    """Report the file that a part of a request is read from: `name@file`, `name=@file`, `@file`."""
    if match := _REQUEST_FILE.match(argument.word.text):
        context.add_file(_E.READ, argument.word._replace(text=match[1]))


def _dns_name(context: RoleContext, argument: Argument) -> None:
    """Report a name or a server; `+short` is an option of the query."""
    if not argument.word.text.startswith("+"):
        context.add(_E.NETWORK, argument.word.text)


_NUMERIC_HOST = re.compile(r"(?:\d+(?:\.\d+){0,3}|\[?[0-9a-fA-F]*:[0-9a-fA-F:.]*\]?|\*)?(?:/\d+)?(?::[\w*-]*)?")


def is_looked_up(host: str) -> bool:
    """Return True if DNS is asked for a host; an address in numbers, with or without a port, is not a name."""
    return _NUMERIC_HOST.fullmatch(host) is None


def _host_name(context: RoleContext, argument: Argument) -> None:
    if is_looked_up(argument.word.text):
        context.add(_E.NETWORK, argument.word.text)


def _inet_address(context: RoleContext, argument: Argument) -> None:
    """Report an address such as `tcp@host:port` with a name that is looked up."""
    if is_looked_up(argument.word.text.rpartition("@")[2]) and "@" in argument.word.text:
        context.add(_E.NETWORK, argument.word.text)


_STATES = (
    "connected|synchronized|bucket|big|established|syn-sent|syn-recv|fin-wait-[12]|time-wait|closed|close-wait|last-ack"
    "|listen|listening|closing|all|unconnected"
)
_ADDRESS_NUMBER = r"(?:\d[\d.]*(?:/\d+)?|\*|\[[0-9a-fA-F:]*\])?(?::[\w-]+)?"
_SOCKET_FILTER = re.compile(
    rf"(?:(?:(?:state|exclude) (?:{_STATES})|and|or|not|!|&&?|\|\|?|autobound"
    rf"|(?:src|dst|sport|dport)(?: (?:[=!<>]=?|eq|ne|neq|gt|lt|geq?|leq?))? {_ADDRESS_NUMBER})(?: |\Z))*"
)


def _socket_filter(context: RoleContext, argument: Argument) -> None:
    """Report a filter of `ss` with names of hosts, which are looked up."""
    words = context.parsed.operands
    text = " ".join(re.sub(r"[()]", " ", " ".join(word.text for word in words)).split())
    if argument.word is words[0] and not (all(word.is_exact for word in words) and _SOCKET_FILTER.fullmatch(text)):
        context.add(_E.NETWORK)


def _open_file(context: RoleContext, _argument: Argument) -> None:
    """Report that the names of the hosts of connections are looked up."""
    if context.parsed.has("sockets") and not context.parsed.has("-n"):
        context.add(_E.NETWORK)


def _port(context: RoleContext, argument: Argument) -> None:
    """Report a port such as `8080/tcp`: a connection shows who serves it."""
    named = re.search(r"/(?:tcp|udp)\Z", argument.word.text)
    if named or context.parsed.has("-n", "--namespace") or not argument.word.is_resolved:
        context.add(_E.NETWORK)


_LOCAL_SERVER = re.compile(
    r"(?i)(?:localhost|127(?:\.\d+){3}|::1|\[::1\]|/(?:var/run|run|tmp)(?:/[\w-][\w.-]*)*/?)?(?::\d+|,\d+)?"
)
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://(?:[^/@]*@)?([^/?]*)(?:.*\?(.*))?")
_SETTING = re.compile(r"(\w+)\s*=\s*('[^']*'|[^\s&]*)")
_PLAIN_SETTINGS = names_in("dbname user port password connect_timeout application_name sslmode client_encoding")


def _server(context: RoleContext, argument: Argument) -> None:
    """Report the server of a database client, unless it is this machine."""
    if not _LOCAL_SERVER.fullmatch(argument.word.text):
        context.add(_E.NETWORK, argument.word.text)


def _database(context: RoleContext, argument: Argument) -> None:
    """Report the server in an address or in settings such as `host=x dbname=y`; a plain name is a database."""
    word = argument.word
    if match := _ADDRESS.match(word.text):
        _server(context, argument._replace(word=word._replace(text=match[1])))
        if word.text.startswith("postgres"):
            _settings(context, argument, match[2] or "")
    elif "=" in word.text:
        _settings(context, argument, word.text)


def _settings(context: RoleContext, argument: Argument, text: str) -> None:
    for name, value in _SETTING.findall(text):
        if name in ("host", "hostaddr"):
            _server(context, argument._replace(word=argument.word._replace(text=value.strip("'"))))
        elif name == "service":
            # The server of a service is in a file of the user.
            context.add(_E.NETWORK, f"service:{value}")
        elif name not in _PLAIN_SETTINGS:
            context.unresolved(f"the setting `{name[:64]}` of a connection is not known")


def _psql_output(context: RoleContext, argument: Argument) -> None:
    """Report the file, or after `|` the program, that gets the output."""
    if argument.word.text.lstrip().startswith("|"):
        context.escape(argument.word.text)
    else:
        context.add_file(_E.WRITE, argument.word)


def _reverse_shell(context: RoleContext, argument: Argument) -> None:
    context.analysis.report.add_violation(Violation.REVERSE_SHELL)
    context.add(_E.EXECUTE, argument.word.text)


_SOCAT_RUNS = re.compile(r"(?i)(?:exec|system|shell|pty)\b")
_SOCAT_FILE = re.compile(r"(?i)(?:open|file|create|gopen)\w*:([^,]*)")
_SOCAT_SOCKET = re.compile(r"(?i)(?:unix|abstract|pipe)[\w-]*:([^,]*)")
_SOCAT_NETWORK = re.compile(
    r"(?i)(?:tcp|udp|openssl|ssl|sctp|ip|socks|proxy|unix|stdio|stdin|stdout|pipe|fd)\w*(?:-\w+)*\b|-"
)


def _socat_address(context: RoleContext, argument: Argument) -> None:
    text = argument.word.text
    if _SOCAT_RUNS.match(text):
        _reverse_shell(context, argument)
    elif (match := _SOCAT_FILE.match(text)) or (match := _SOCAT_SOCKET.match(text)):
        context.add_file(_E.WRITE, argument.word._replace(text=match[1]))
    elif not _SOCAT_NETWORK.match(text):
        context.unresolved(f"`{text[:64]}` is not a known address of `socat`")


_HTTP_METHODS = names_in("GET HEAD OPTIONS POST PUT PATCH QUERY TRACE PROPFIND REPORT")
_OTHER_PROTOCOL = re.compile(r"(?i)(?!https?:)[a-z][a-z0-9+.-]*:/")


def _http_method(context: RoleContext, argument: Argument) -> None:
    """Report a request that removes something on the other side; other protocols have methods of their own."""
    method = argument.word.text.upper()
    if not argument.word.is_exact:
        context.unresolved("the method of a request is known only at run time")
    elif method == "DELETE":
        context.add(_E.DELETE)
    elif method not in _HTTP_METHODS or any(_OTHER_PROTOCOL.match(word.text) for word in context.parsed.operands):
        context.unresolved(f"the request `{argument.word.text[:64]}` is not known")


ROLES: dict[str, Role] = {
    "url": _url,
    "web-scheme": _web_scheme,
    "socket-path": _socket_path,
    "header-file": _header_file,
    "named-file": _named_file,
    "cookie-file": _cookie_file,
    "http-method": _http_method,
    "dns-name": _dns_name,
    "host-name": _host_name,
    "inet-address": _inet_address,
    "socket-filter": _socket_filter,
    "open-file": _open_file,
    "port": _port,
    "write-out": _write_out,
    "form": _form,
    "upload": _upload,
    "request-item": _request_item,
    "server": _server,
    "database": _database,
    "psql-output": _psql_output,
    "reverse-shell": _reverse_shell,
    "socat-address": _socat_address,
}
