"""Data flow between the commands of a pipeline: known text, a file listing, downloaded or decoded data."""

import posixpath
import re
from collections.abc import Callable

from qwed.guards._shell.chosen_text import prints_only_names
from qwed.guards._shell.command_model import NO_DATA, UNKNOWN_DATA, DataSource, PipeData, Violation, Word, names_in
from qwed.guards._shell.escapes import unescape
from qwed.guards._shell.grammar.loader import program
from qwed.guards._shell.grammar.parser import parse
from qwed.guards._shell.listings import excludes_secrets, find_starts, lists_any_name, may_hold_secrets
from qwed.guards._shell.scope import SOCKET
from qwed.guards._shell.wrappers import inner_command
from qwed.guards.file_effects import has_secrets_below

MAX_TEXT = 1 << 14

_DOWNLOADERS = names_in(
    """
    curl wget fetch aria2c lynx links elinks w3m nc ncat netcat socat ftp tftp sftp ssh telnet http https dig nslookup
    host aws gsutil openssl-s_client xh httpie finger whois busybox
    """
)
_DECODERS = names_in(
    """
    base64 base32 base16 basenc xxd openssl uudecode gunzip zcat bzcat xzcat zstdcat lz4cat bunzip2 unxz rev tr gzip
    bzip2 xz zstd uncompress gpg iconv od hexdump awk gawk mawk sed perl python python3 ruby php tac fold cut paste dd
    jq unzip tar
    """
)
_FILTERS = names_in("grep egrep fgrep rg head tail sort uniq tee cat wc shuf nl column less more pv sponge")
_LISTERS = names_in(
    """
    find ls fd fdfind locate pwd which dirname basename realpath readlink date whoami nproc uname id hostname seq
    mktemp tree du wc expr tput stat git pgrep pidof ps tty arch groups logname getconf true false test sysctl
    lsb_release
    """
)
_RANK = {
    DataSource.NOTHING: 0,
    DataSource.NUMBER: 1,
    DataSource.LISTING: 2,
    DataSource.TEXT: 3,
    DataSource.UNKNOWN: 4,
    DataSource.DECODED: 5,
    DataSource.REMOTE: 6,
}


def merge_outputs(outputs: list[PipeData]) -> PipeData:
    """Return the combined output of several commands that run one after the other."""
    printing = [output for output in outputs if output.source is not DataSource.NOTHING]
    if len(printing) < 2:
        return printing[0] if printing else NO_DATA
    worst = max(printing, key=lambda output: _RANK[output.source])
    if worst.source is DataSource.TEXT:
        all_text = all(output.source is DataSource.TEXT for output in printing)
        # Output that ends without a line break continues in the next output.
        whole = "".join(output.text for output in printing)
        return PipeData(DataSource.TEXT, whole) if all_text and len(whole) <= MAX_TEXT else UNKNOWN_DATA
    return worst._replace(any_name=any(output.any_name for output in printing))


def text_data(words: list[Word]) -> PipeData:
    """Return the data of a here-string."""
    if all(word.is_exact for word in words):
        return PipeData(DataSource.TEXT, " ".join(word.text for word in words) + "\n")
    return UNKNOWN_DATA


def file_data(word: Word) -> PipeData:
    """Return the data read from the file that a word names."""
    if word.origin is Violation.REMOTE_TO_SHELL or SOCKET.match(word.text):
        return PipeData(DataSource.REMOTE)
    return PipeData(DataSource.DECODED) if word.origin is Violation.DECODED_TO_SHELL else UNKNOWN_DATA


def command_output(words: list[Word], stdin: PipeData) -> PipeData:
    """Return the output of a command, as far as a later command could run or open it."""
    words = inner_command(words)
    if not words:
        return UNKNOWN_DATA
    name = words[0].text.rpartition("/")[2]
    if stdin.source is DataSource.REMOTE or name in _DOWNLOADERS:
        return PipeData(DataSource.REMOTE)
    if _prints_number(name, [word.text for word in words[1:]], stdin):
        return PipeData(DataSource.NUMBER)
    special = _OUTPUTS.get(name)
    if special is not None:
        return special(words[1:], stdin)
    if stdin.source is DataSource.DECODED or name in _DECODERS:
        return PipeData(DataSource.DECODED)
    if name in _FILTERS and stdin.source is not DataSource.NOTHING:
        # A part of a text may mean something else than the whole text.
        whole = name in _COPIES or (name in _LINES and stdin.text.count("\n") <= 1 and not _cuts(words[1:]))
        return UNKNOWN_DATA if stdin.source is DataSource.TEXT and not whole else stdin
    return _listing(name, words[1:]) if name in _LISTERS else UNKNOWN_DATA


def _listing(name: str, arguments: list[Word]) -> PipeData:
    if not prints_only_names(name, arguments):
        return UNKNOWN_DATA
    return PipeData(DataSource.LISTING, _start(name, arguments), lists_any_name(name, arguments))


_LINES = names_in("head tail sort uniq shuf")
_COPIES = names_in("cat tee pv sponge")
_NUMBERS: dict[str, re.Pattern[str]] = {
    "nproc": re.compile(r"(?:--all)?"),
    "wc": re.compile(r"-[lcwmL]|--(?:lines|bytes|words|chars)"),
    "date": re.compile(r"\+(?:%[sYmdHMSjuwkIyN])+|-u \+%s"),
    "seq": re.compile(r"-?\d+(?: -?\d+){0,2}"),
    "id": re.compile(r"-[ug]"),
    "stat": re.compile(r"(?:-c ?|--format=)%[sYXZWabd]( [^ ]+)?"),
    "tput": re.compile(r"cols|lines|colors"),
    "pgrep": re.compile(r"(?:-[fnox]+ )?[\w./-]+"),
    "git": re.compile(r"rev-list --count [\w./^-]+"),
}
"""Arguments with which a program prints nothing but integers; `wc` only if it reads its input."""
_KEEPS_NUMBERS = {
    "tr": re.compile(r"-d ['\" \[:a-z\]\\]*"),
    "head": re.compile(r"(?:-n ?\d+|-\d+)?"),
    "tail": re.compile(r"(?:-n ?\d+|-\d+)?"),
    "xargs": re.compile(r""),
    "sort": re.compile(r"(?:-[nru]+)?"),
}


def _prints_number(name: str, arguments: list[str], stdin: PipeData) -> bool:
    """Return True if the output can only be integers."""
    keeps = _KEEPS_NUMBERS.get(name) if stdin.source is DataSource.NUMBER else None
    pattern = keeps or _NUMBERS.get(name)
    if pattern is None or (name == "wc" and stdin.source is DataSource.NOTHING):
        return False
    return pattern.fullmatch(" ".join(arguments)) is not None


def _cuts(arguments: list[Word]) -> bool:
    return any(_CUTS.match(word.text) for word in arguments)


_CUTS = re.compile(r"-[A-Za-z]*[co]|--bytes|--only-matching")
"""Options that keep parts of a line, whose meaning may differ from the whole line."""


_LISTS_OPERANDS = names_in("ls gls dir vdir fd fdfind tree du readlink realpath wc stat")


def _start(name: str, arguments: list[Word]) -> str:
    starts = [word.text for word in _starts(name, arguments)] or ["."]
    # If there are several directories, one with secrets counts.
    worst = [directory for directory in starts if has_secrets_below(directory)]
    return next((directory for directory in [*worst, *filter(may_hold_secrets, starts)]), starts[0])


def _starts(name: str, arguments: list[Word]) -> list[Word]:
    """Return the directories and files that a command lists."""
    if name in ("find", "gfind"):
        return find_starts(arguments)
    grammar = program(name) if name in _LISTS_OPERANDS else None
    operands = parse(grammar, arguments).operands if grammar is not None else []
    return operands[1:] if name in ("fd", "fdfind") else operands


def _echo(arguments: list[Word], stdin: PipeData) -> PipeData:
    if stdin.source is DataSource.DECODED:
        return stdin
    escapes, end = False, "\n"
    while arguments and arguments[0].text in ("-n", "-e", "-E", "-ne", "-en"):
        escapes |= "e" in arguments[0].text
        end = "" if "n" in arguments[0].text else end
        arguments = arguments[1:]
    if not all(word.is_exact for word in arguments):
        is_resolved = all(word.is_resolved for word in arguments)
        if not is_resolved or len(arguments) != 1:
            return UNKNOWN_DATA
        return PipeData(DataSource.LISTING, arguments[0].text, arguments[0].any_name)
    text = " ".join(word.text for word in arguments)
    return PipeData(DataSource.DECODED) if escapes and "\\" in text else PipeData(DataSource.TEXT, text + end)


def _printf(arguments: list[Word], _fed: PipeData) -> PipeData:
    arguments = arguments[1:] if arguments and arguments[0].text == "--" else arguments
    if not arguments or not all(word.is_exact for word in arguments):
        return UNKNOWN_DATA
    template = arguments[0].text
    text = unescape(template)
    if (
        text.strip("\n") != template.replace("\\n", "").strip("\n")
        or "%b" in template
        or "%c" in template
        or "%x" in template
    ):
        return PipeData(DataSource.DECODED)
    if "%" not in template:
        return PipeData(DataSource.TEXT, text)
    if template.replace("\\n", "") == "%s":
        return PipeData(DataSource.TEXT, "".join(text.replace("%s", word.text) for word in arguments[1:]))
    return UNKNOWN_DATA


def _shorten(arguments: list[Word], take: Callable[[str], str]) -> PipeData:
    """Return the output of dirname or basename: a part of its operand."""
    suffixes = [word.text for word in arguments[1:2]]
    words = arguments[:1]
    if len(arguments) > 2 or not words or words[0].is_option or not words[0].is_resolved:
        return UNKNOWN_DATA
    if not words[0].is_exact:
        start = words[0].text if words[0].is_computed else "."
        return PipeData(DataSource.LISTING, start, words[0].any_name)
    part = take(words[0].text.rstrip("/") or "/")
    for suffix in suffixes:
        part = part.removesuffix(suffix) or part
    return PipeData(DataSource.TEXT, part + "\n")


def _dirname(arguments: list[Word], _fed: PipeData) -> PipeData:
    return _shorten(arguments[:1], lambda path: posixpath.dirname(path) or ".") if len(arguments) == 1 else UNKNOWN_DATA


def _basename(arguments: list[Word], _fed: PipeData) -> PipeData:
    return _shorten(arguments, posixpath.basename)


_SUM = re.compile(r"-?\d+(?: [-+*/%] -?\d+)*")


def _expr(arguments: list[Word], _fed: PipeData) -> PipeData:
    numbers = all(word.is_exact or word.is_number for word in arguments)
    is_sum = numbers and _SUM.fullmatch(" ".join(word.text for word in arguments)) is not None
    return PipeData(DataSource.NUMBER) if is_sum else UNKNOWN_DATA


def _cat(arguments: list[Word], stdin: PipeData) -> PipeData:
    files = [word for word in arguments if not word.is_option and word.text != "-"]
    return stdin if not files and stdin.source is not DataSource.NOTHING else UNKNOWN_DATA


def _grep(arguments: list[Word], stdin: PipeData) -> PipeData:
    """Return file names with -l, otherwise lines of the files or of the input."""
    operands = [word for word in arguments if not word.is_option]
    if _prints_files(arguments):
        start = operands[1].text if len(operands) > 1 else "."
        return PipeData(DataSource.LISTING, start, lists_any_name("grep", arguments))
    if stdin.source is DataSource.LISTING:
        return stdin._replace(any_name=stdin.any_name and not _selects_names(arguments, operands))
    cuts = _cuts(arguments) or (stdin.source is DataSource.TEXT and stdin.text.count("\n") > 1)
    return stdin if len(operands) < 2 and stdin.source is not DataSource.NOTHING and not cuts else UNKNOWN_DATA


_FILE_OPTIONS = frozenset({"-l", "-L", "--files-with-matches", "--files-without-match", "--files-without-matches"})


def _prints_files(arguments: list[Word]) -> bool:
    """Return True if a search prints the names of files instead of lines."""
    grammar = program("grep")
    parsed = parse(grammar, arguments) if grammar is not None else None
    return parsed is not None and any(option.name in _FILE_OPTIONS for option in parsed.options)


_NAME_ANCHORS = re.compile(r"\\[.]|[\^$]|\.\*")


def _selects_names(arguments: list[Word], operands: list[Word]) -> bool:
    """Return True if a search in a listing selects names of files that hold no secrets."""
    plain = not any(word.is_option and ("v" in word.text or "e" in word.text) for word in arguments)
    return plain and len(operands) == 1 and excludes_secrets(f"*{_NAME_ANCHORS.sub('', operands[0].text)}*")


_GIT_LISTINGS = names_in("ls-files rev-parse diff status branch describe tag log rev-list merge-base remote")


def _git(arguments: list[Word], _fed: PipeData) -> PipeData:
    verb = next((word.text for word in arguments if not word.is_option), "")
    return _listing("git", arguments) if verb in _GIT_LISTINGS else UNKNOWN_DATA


_OUTPUTS: dict[str, Callable[[list[Word], PipeData], PipeData]] = {
    "echo": _echo,
    "dirname": _dirname,
    "basename": _basename,
    "expr": _expr,
    **dict.fromkeys(("true", "false", "test"), lambda _arguments, _fed: NO_DATA),
    "printf": _printf,
    "cat": _cat,
    **dict.fromkeys(("grep", "egrep", "fgrep", "rg", "ag"), _grep),
    "git": _git,
}
