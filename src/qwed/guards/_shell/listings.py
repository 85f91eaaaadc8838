"""Names of files that nobody stated: whether files with secrets can be among them, and what a search shows of them.

A listing of the project, of its parents or of a home directory contains any name, `.env` too, unless a pattern excludes
it. Directories below the project are expected to hold no secrets except those that their names tell.
"""

import itertools
import posixpath
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from qwed.guards._shell.command_model import Word, names_in
from qwed.guards.file_effects import has_secrets_below, is_secret

_SECRET_TREES = ("/etc", "/root", "/home", "/home/x", "/proc", "/var", "/Users", "/Users/x")


def may_read_secrets(path: str) -> bool:
    """Return True if secrets are below a directory, or below one that a pattern matches."""
    plain = posixpath.normpath(re.sub(r"/{2,}", "/", path)) if path else path
    above = ["/".join(plain.split("/")[:count]) for count in (2, 3)]
    matches = any(fnmatchcase(tree, part) for part in above if re.search(r"[*?\[]", part) for tree in _SECRET_TREES)
    return has_secrets_below(plain) or (plain.startswith("/") and matches)


_MIN_LITERAL = 2
_MAX_PATTERN = 1_024
_BRACKETS = re.compile(r"\[!?\^?\]?[^\]]*\]")
_LITERAL = re.compile(r"[A-Za-z0-9_-]")
_HIDDEN_GLOB = re.compile(r"(?:\A|/)\.(?:[*?]|\[[^\]/]*\])+(?=/|\Z)")
_HOMES = re.compile(
    r"~[^/]*(?:/[^/]+)?|/(?:home|Users)/[^/]+(?:/[^/]+)?|/root(?:/[^/]+)?|/(?:srv|opt|mnt|var/www)/[^/]+"
    r"|/(?:app|code|repo|src|workspaces?)(?:/[^/]+)?"
)
"""Absolute paths of homes and projects."""


def has_any_name(pattern: str) -> bool:
    """Return True if a pattern of the shell matches all hidden files."""
    return _HIDDEN_GLOB.search(pattern) is not None


_HOME = re.compile(r"~[^/]*|/(?:home|Users)/[^/]+|/root")


def is_home(path: str) -> bool:
    """Return True if this directory, or that of a pattern, is the home directory of a user."""
    return _HOME.fullmatch(_directory(path)) is not None


def _directory(path: str) -> str:
    """Return the directory before a pattern that matches all hidden files, or the path itself."""
    hidden = _HIDDEN_GLOB.search(path)
    return posixpath.normpath((path[: hidden.start()] if hidden else path) or ("/" if path[:1] == "/" else "."))


def may_hold_secrets(path: str) -> bool:
    """Return True if files with secrets are expected in this directory, or in that of a pattern."""
    directory = _directory(path)
    if directory.startswith(("/", "~")):
        return has_secrets_below(directory) or _HOMES.fullmatch(directory) is not None
    return directory.startswith("../") or not directory.strip("./*")


def excludes_secrets(glob: str) -> bool:
    """Return True if no file that holds secrets is expected among the names that match a pattern."""
    literals = _LITERAL.findall(_BRACKETS.sub("", glob[:_MAX_PATTERN]))
    return (
        len(glob) <= _MAX_PATTERN
        and len(literals) >= _MIN_LITERAL
        and not is_secret(glob)
        and not is_secret(glob.strip("*"))
    )


_NAME_TESTS = names_in("-name -iname -path -wholename -ipath")
_OR = names_in("-o -or ,")
_NOT = names_in("! -not")
_HIDDEN_FILES = names_in(".* */.* */.*/* ./.* ./.*/*")


FIND_OPTION = re.compile(r"-(?:[LHPE]|O[0-3])")


def find_starts(words: Sequence[Word]) -> list[Word]:
    """Return the directories that find starts from: the words after its options and before its first test."""
    rest = itertools.dropwhile(lambda word: FIND_OPTION.fullmatch(word.text), words)
    return list(itertools.takewhile(lambda word: word.text[:1] not in ("-", "(", "!"), rest))


def find_has_any_name(words: Sequence[Word]) -> bool:
    """Return True if the tests of find do not exclude files that hold secrets, in one of its alternatives."""
    branch: list[Word] = []
    for word in [*_without_negated_groups(words), Word("-o")]:
        if word.text not in _OR:
            branch.append(word)
        elif not _is_narrowed(branch):
            return True
        else:
            branch = []
    return False


def _without_negated_groups(words: Sequence[Word]) -> Iterator[Word]:
    """Yield the words of an expression without `! ( ... )`."""
    depth, is_opened = 0, False
    for word, following in zip(words, [*words[1:], Word("")], strict=False):
        if depth or is_opened:
            depth, is_opened = depth + {"(": 1, ")": -1}.get(word.text, 0), False
        elif word.text in _NOT and following.text == "(":
            is_opened = True
        else:
            yield word


_ACTIONS = names_in("-exec -execdir -ok -okdir -print -print0 -printf -ls -fprint -fprint0 -fprintf -fls -delete")


def _is_narrowed(branch: list[Word]) -> bool:
    """Return True if a test that every file must pass before an action excludes files that hold secrets."""
    branch = list(itertools.takewhile(lambda word: word.text not in _ACTIONS, branch))
    for index, word in enumerate(branch[:-1]):
        value = branch[index + 1]
        is_negated = index > 0 and branch[index - 1].text in _NOT
        if word.text in _NAME_TESTS and value.is_exact:
            if value.text in _HIDDEN_FILES if is_negated else excludes_secrets(value.text):
                return True
        elif word.text == "-type" and value.text == "d" and not is_negated:
            return True
    return any(word.text == "-empty" for word in branch)


_SHOWS_HIDDEN = {
    **dict.fromkeys(("ls", "gls", "dir", "vdir"), re.compile(r"-[A-Za-z]*[aAf]|--a(?:l|$)|--almost")),
    "tree": re.compile(r"-[A-Za-z]*a"),
    "du": re.compile(r"-[A-Za-z]*a|--all"),
    **dict.fromkeys(("fd", "fdfind"), re.compile(r"-[A-Za-z]*[HuI]|--hidden|--unrestricted|--no-ignore")),
    "rg": re.compile(r"-[A-Za-z]*[.u]|--hidden|--unrestricted|--no-ignore|--files-without-match"),
    "ag": re.compile(r"-[A-Za-z]*u|--hidden|--unrestricted"),
    "git": re.compile(r"-[A-Za-z]*[oi]|--others|--ignored?|--no-index"),
}
"""Options with which a program lists hidden or ignored files."""


def lists_any_name(name: str, arguments: Sequence[Word]) -> bool:
    """Return True if files that hold secrets can be among those that a command lists."""
    if any(word.any_name for word in arguments):
        return True
    if name in ("find", "gfind"):
        return find_has_any_name(arguments)
    if name in ("grep", "egrep", "fgrep"):
        return not is_narrow_search([word for word in arguments if not word.is_option][:1])
    shown = _SHOWS_HIDDEN.get(name)
    if shown is None:
        return False
    if any(word.text == "--exclude-standard" for word in arguments):
        return any(re.fullmatch(r"-[a-z]*i[a-z]*|--ignored?", word.text) for word in arguments)
    return any(shown.match(word.text) for word in arguments)


_SAMPLE_LINES = """
api_key=apikey aws_access_key_id aws_secret_access_key secret_key client_secret secrets password: passwd passphrase
auth_token access_token authorization bearer credentials private_key -----begin openssh rsa ec private key-----
database_url db_host db_password postgresql:// mysql:// redis_url mongodb:// user username login machine default
host port name email account export https://hooks.slack.com smtp_pass stripe_sk_live github_pat jwt encryption
"""
"""Words of lines in files that hold secrets, without the secrets themselves."""
_MIN_RUN = 3
_OPTIONAL = re.compile(r"\)\\?[?*{]|\(\?")
_CLASS = re.compile(r"\[\^?\]?[^\]]*\]")
_ESCAPE = re.compile(r"\\[^|(){}+?.]")
_MAYBE = re.compile(r".\\?[?*]|.\\?\{[^}]*\}?")
_RUN = re.compile(r"[a-z0-9_]{3,}")


def is_narrow_search(patterns: Sequence[Word]) -> bool:
    """Return True if no line of a file that holds secrets is expected to match one of these regular expressions."""
    return bool(patterns) and all(word.is_exact and _is_narrow(word.text.lower()) for word in patterns)


def _is_narrow(pattern: str) -> bool:
    if len(pattern) > _MAX_PATTERN or _OPTIONAL.search(pattern):
        return False
    plain = _MAYBE.sub(" ", _ESCAPE.sub(" ", _CLASS.sub(" ", pattern)))
    branches = re.split(r"\\?\||\n", plain)
    return all(any(run not in _SAMPLE_LINES for run in _RUN.findall(branch)) for branch in branches)
