"""Roles of git's operands and option values: revisions, remotes, settings."""

import re

from qwed.guards._shell.command_model import Violation, Word
from qwed.guards._shell.grammar.context import Argument, Role, RoleContext
from qwed.guards._shell.listings import is_narrow_search
from qwed.guards.file_effects import is_secret
from qwed.model import EffectKind

_E = EffectKind
_RUNNING_KEY = re.compile(
    r"(?i)(?:alias\.|core\.(?:pager|editor|sshcommand|fsmonitor|hookspath|gitproxy|askpass)|pager\.|diff\.(?:external|.*\.(?:command|textconv))"
    r"|merge\..*\.driver|filter\.|credential\.|gpg\.|(?:diff|merge)tool\.|sequence\.editor|protocol\.(?:ext|allow)|uploadpack\.|init\.templatedir"
    r"|include\.|includeif\.|http\.(?:proxy|sslverify)|url\.|interactive\.difffilter|web\.browser|browser\.|man\.|sendemail\.|submodule\."
    r"|trailer\.|remote\.|core\.attributesfile|core\.worktree|extensions\.|tar\.|gc\..*command|hook\.)"
)
"""Settings that run a program, load further settings or redirect what git connects to."""
_HARMLESS_KEY = re.compile(
    r"(?i)(?:color\.[\w.-]+|column\.\w+|advice\.\w+|user\.(?:name|email|signingkey)|author\.(?:name|email)|committer\.(?:name|email)"
    r"|core\.(?:quotepath|autocrlf|safecrlf|eol|filemode|ignorecase|precomposeunicode|symlinks|abbrev|bigfilethreshold|whitespace|commentchar|longpaths|untrackedcache|preloadindex|trustctime)"
    r"|log\.(?:date|decorate|follow|abbrevcommit|mailmap)|diff\.(?:renames|renamelimit|algorithm|context|mnemonicprefix|noprefix|colormoved|submodule|statgraphwidth|wserrorhighlight|relative)"
    r"|status\.[\w.]+|blame\.(?!ignorerevsfile)\w+|grep\.(?!fallbacktonoindex)\w+|format\.pretty|i18n\.\w+|init\.defaultbranch|commit\.(?:gpgsign|verbose)|tag\.(?:gpgsign|sort)"
    r"|pull\.(?:rebase|ff)|push\.(?:default|autosetupremote|followtags)|fetch\.(?:prune|prunetags|parallel|writecommitgraph)|merge\.(?:ff|conflictstyle|renames|renamelimit|stat|log)"
    r"|rebase\.(?:autosquash|autostash|updaterefs|stat)|branch\.(?:autosetupmerge|autosetuprebase|sort)|rerere\.(?:enabled|autoupdate)|gc\.(?:auto|autodetach)|maintenance\.auto|index\.version|pack\.\w+|protocol\.version"
    r"|http\.(?:version|postbuffer|lowspeedlimit|lowspeedtime)|versionsort\.\w+|feature\.\w+|help\.autocorrect|safe\.directory|transfer\.\w+|receive\.\w+|showbranch\.default|sequence\.)"
)
_TURNED_OFF = re.compile(
    r"(?i)(?:core\.pager|pager\.[\w-]+|core\.editor|sequence\.editor|credential\.helper|diff\.external|core\.fsmonitor|core\.hookspath)=(?:cat|less|true|false|:||/dev/null)"
)
_HELPER = re.compile(r"(?:ext|fd)::|[a-z][a-z0-9+-]*::")


def _setting(context: RoleContext, argument: Argument) -> None:
    """Report `-c key=value` unless the key is known to be harmless."""
    text = argument.word.text
    if _TURNED_OFF.fullmatch(text):
        return
    _require_harmless(context, argument, text.partition("=")[0])


def _new_key(context: RoleContext, argument: Argument) -> None:
    """Report a key of the configuration that is set."""
    _require_harmless(context, argument, argument.word.text, changes=True)


def _require_harmless(context: RoleContext, argument: Argument, key: str, changes: bool = False) -> None:
    if _RUNNING_KEY.match(key):
        context.analysis.report.add_violation(Violation.ESCAPE)
        context.add(_E.EXECUTE)
    elif not _HARMLESS_KEY.fullmatch(key) and not (changes and argument.word.is_exact and "." in key):
        context.unresolved(f"the git setting `{key[:64]}` is not known")


_LOCAL_REPOSITORY = re.compile(r"(?i)[/.~]|file:|[^:]*/")


def _remote(context: RoleContext, argument: Argument) -> None:
    _address(context, argument)
    local = not argument.word.is_exact or _LOCAL_REPOSITORY.match(argument.word.text)
    if local and context.parsed.command.name.endswith(" push"):
        context.add_file(_E.WRITE, argument.word)
    context.add(_E.NETWORK, argument.word.text)


def _address(context: RoleContext, argument: Argument) -> None:
    """Report a transport that runs a program."""
    if _HELPER.match(argument.word.text):
        context.analysis.report.add_violation(Violation.ESCAPE)
        context.add(_E.EXECUTE)
    elif not argument.word.is_resolved and argument.word.text.startswith(("$", "`")):
        context.unresolved(f"`{argument.word.text[:64]}` is known only at run time")


def _refspec(context: RoleContext, argument: Argument) -> None:
    """Report a refspec that deletes or overwrites a branch of the other side."""
    text = argument.word.text
    is_push = context.parsed.command.name.endswith(" push")
    if not argument.word.is_resolved and text.startswith(("$", "`")):
        context.unresolved(f"`{text[:64]}` is known only at run time")
    elif is_push and text.startswith((":", "+")):
        context.add(_E.DELETE)


def _object(context: RoleContext, argument: Argument) -> None:
    """Report a revision or path; without an index, it is a file."""
    text = argument.word.text
    if text.startswith(":("):
        context.unresolved(f"the path `{text[:64]}` has a pattern that is not understood")
    elif context.parsed.has("no-index"):
        _plain_file(context, argument.word)
    elif is_secret(text.rpartition(":")[2] or text):
        context.add(_E.SECRET, text)


def _plain_file(context: RoleContext, word: Word) -> None:
    """Report a file or a tree, in which ignored files are shown too."""
    parsed, shown = context.parsed, True
    if parsed.command.name.endswith(" grep"):
        patterns = parsed.values_of("-e") or parsed.operands[:1]
        shown = not (parsed.has("names-only", "inverts") or is_narrow_search(patterns))
        word = Word(".") if word in patterns else word
    context.add_file(_E.READ, word._replace(any_name=word.any_name or shown))


def _checkout(context: RoleContext, argument: Argument) -> None:
    if argument.word.text == ".":
        context.add_file(_E.DELETE, argument.word)


def _own_file(context: RoleContext, argument: Argument) -> None:
    """Report the file that the command works on."""
    context.add_file(_E.WRITE if "write" in context.parsed.outcome.effects else _E.READ, argument.word)


ROLES: dict[str, Role] = {
    "git-setting": _setting,
    "git-new-key": _new_key,
    "git-remote": _remote,
    "git-url": _address,
    "git-refspec": _refspec,
    "git-object": _object,
    "git-checkout": _checkout,
    "own-file": _own_file,
}
