"""Roles of operands of programs that log in to other machines and copy files to and from them: ssh, scp, rsync."""

import re

from qwed.guards._shell.command_model import DataSource, Word
from qwed.guards._shell.grammar.context import Argument, Role, RoleContext
from qwed.guards.file_effects import is_run_later
from qwed.model import EffectKind

_E = EffectKind
_SSH_RUNS = re.compile(
    r"(?i)\s*(?:ProxyCommand|LocalCommand|PermitLocalCommand|KnownHostsCommand|Match|Include|PKCS11Provider"
    r"|SecurityKeyProvider|XAuthLocation|ProxyUseFdpass|RemoteCommand|ControlPath|ControlMaster)\b"
)
_SSH_HARMLESS = re.compile(
    r"(?i)\s*(?:StrictHostKeyChecking|UserKnownHostsFile|ConnectTimeout|ConnectionAttempts|BatchMode|LogLevel|Port|User"
    r"|HostName|HostKeyAlias|IdentitiesOnly|IdentityFile|PasswordAuthentication|PubkeyAuthentication|NumberOfPasswordPrompts"
    r"|KbdInteractiveAuthentication|PreferredAuthentications|ServerAliveInterval|ServerAliveCountMax|TCPKeepAlive"
    r"|Compression|AddressFamily|RequestTTY|CheckHostIP|VisualHostKey|HashKnownHosts|ForwardX11|ExitOnForwardFailure"
    r"|Ciphers|MACs|KexAlgorithms|HostKeyAlgorithms|PubkeyAcceptedAlgorithms|GSSAPIAuthentication|ControlPersist"
    r"|UpdateHostKeys|FingerprintHash|SendEnv|EscapeChar)[\s=]"
)


def _ssh_setting(context: RoleContext, argument: Argument) -> None:
    """Report `-o Key=value` unless the key is known to run nothing."""
    text = argument.word.text
    if _SSH_RUNS.match(text):
        context.escape(text)
    elif not _SSH_HARMLESS.match(text):
        context.unresolved(f"the ssh setting `{text[:64]}` is not known")


def _ssh_host(context: RoleContext, argument: Argument) -> None:
    """Report the machine that is logged in to; without a command, its shell runs the standard input."""
    context.add(_E.NETWORK, argument.word.text.rpartition("@")[2])
    stdin = context.call.stdin
    if len(context.parsed.operands) > 1 or stdin.source is DataSource.NOTHING:
        return
    if stdin.source is DataSource.TEXT:
        context.analysis.visit_script(stdin.text)
    context.analysis.report.add_violation(stdin.violation)


_PLAIN_SSH = re.compile(r"(?:/usr/bin/)?ssh\b(?: (?:-[46CqTx]+|-[ipl] ?[\w./~@-]+|-o ?\w+=[\w./-]+))*")


def _remote_shell(context: RoleContext, argument: Argument) -> None:
    """Report the program that connects to the other machine unless it is a plain ssh."""
    text = argument.word.text
    if not _PLAIN_SSH.fullmatch(text) or _SSH_RUNS.search(text.partition("-o")[2]):
        context.escape(text)


_REMOTE_PATH = re.compile(r"(?:[\w.-]+@)?[\w.-]+::?(?!\\)|[a-z][a-z0-9+.-]*://|\[")


def _add_copies(context: RoleContext, target: Word) -> None:
    """Report files that another program executes, if the target is a directory that gets them with their names."""
    for source in context.parsed.operands[:-1]:
        copy = f"{target.text.rstrip('/')}/{re.split('[/:]', source.text.rstrip('/'))[-1]}"
        if is_run_later(copy):
            context.add_file(_E.WRITE, target._replace(text=copy))


def _path(kind: EffectKind) -> Role:
    """Return the role of a path that may be on another machine: `host:path`, `s3://bucket/key`."""

    def report(context: RoleContext, argument: Argument) -> None:
        word = argument.word._replace(text=argument.word.text.removeprefix("file://"))
        text = word.text
        if text.startswith(("/", ".", "~")) or not _REMOTE_PATH.match(text):
            context.add_file(kind, word)
            if kind is _E.WRITE:
                _add_copies(context, word)
            if kind is _E.READ and context.parsed.has("recursive"):
                context.analysis.add_tree_read(word)
            return
        host = text if "://" in text else text.partition(":")[0].rpartition("@")[2]
        context.add(_E.NETWORK, host or text)

    return report


def _cloud_target(context: RoleContext, argument: Argument) -> None:
    """Report a file, or an object in a cloud, that is written; `-` is the standard output."""
    if argument.word.text == "-":
        return
    _path(_E.WRITE)(context, argument)
    if "://" in argument.word.text:
        context.add(_E.WRITE, argument.word.text)


def _remote_host(context: RoleContext, argument: Argument) -> None:
    """Report a machine that a program reaches by starting ssh."""
    context.add(_E.NETWORK, argument.word.text)
    context.add(_E.EXECUTE, f"ssh {argument.word.text}")


def _rsync_filter(context: RoleContext, argument: Argument) -> None:
    """Report a rule that reads further rules from a file."""
    if not argument.word.is_exact or re.match(r"\s*(?:merge|dir-merge|[.:])", argument.word.text):
        context.unresolved(f"the rule `{argument.word.text[:64]}` of `rsync` is not understood")


ROLES: dict[str, Role] = {
    "rsync-filter": _rsync_filter,
    "remote-host": _remote_host,
    "ssh-setting": _ssh_setting,
    "ssh-host": _ssh_host,
    "remote-shell": _remote_shell,
    "remote-source": _path(_E.READ),
    "cloud-target": _cloud_target,
    "remote-target": _path(_E.WRITE),
}
