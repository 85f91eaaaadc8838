"""Data flow between the commands of a pipeline: known text, a file listing, downloaded or decoded data."""

import itertools
import re
from collections.abc import Callable, Iterator

from qwed.guards._shell.command_model import NO_DATA, UNKNOWN_DATA, DataSource, PipeData, Violation, Word, names_in
from qwed.guards._shell.escapes import unescape
from qwed.guards._shell.scope import SOCKET
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
_WRAPPERS = names_in("sudo env nohup time nice command builtin exec timeout stdbuf doas ionice setsid")
_RANK = {
    DataSource.NOTHING: 0,
    DataSource.LISTING: 1,
    DataSource.TEXT: 2,
    DataSource.UNKNOWN: 3,
    DataSource.DECODED: 4,
    DataSource.REMOTE: 5,
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
    return worst


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
    words = _skip_wrappers(words)
    if not words:
        return UNKNOWN_DATA
    name = words[0].text.rpartition("/")[2]
    if stdin.source is DataSource.REMOTE or name in _DOWNLOADERS:
        return PipeData(DataSource.REMOTE)
    special = _OUTPUTS.get(name)
    if special is not None:
        return special(words[1:], stdin)
    if stdin.source is DataSource.DECODED or name in _DECODERS:
        return PipeData(DataSource.DECODED)
    if name in _FILTERS and stdin.source is not DataSource.NOTHING:
        return (
            UNKNOWN_DATA
            if stdin.source is DataSource.TEXT and any(map(_CUTS.match, (w.text for w in words[1:])))
            else stdin
        )
    return PipeData(DataSource.LISTING, _start(name, words[1:])) if name in _LISTERS else UNKNOWN_DATA


_CUTS = re.compile(r"-[A-Za-z]*[co]|--bytes|--only-matching")
"""Options that keep parts of a line, whose meaning may differ from the whole line."""


def _skip_wrappers(words: list[Word]) -> list[Word]:
    index = 0
    while index < len(words) and words[index].text in _WRAPPERS:
        index += 1
        while index < len(words) and (
            words[index].is_option or "=" in words[index].text or words[index].text[:1].isdigit()
        ):
            index += 1
    return words[index:]


def _start(name: str, arguments: list[Word]) -> str:
    if name not in ("find", "ls", "fd", "tree", "du", "readlink", "realpath", "dirname", "basename"):
        return "."
    starts = [word.text for word in itertools.takewhile(_is_start, _past_flags(arguments))] or ["."]
    # If there are several directories, one with secrets counts.
    return next((directory for directory in starts if has_secrets_below(directory)), starts[0])


def _past_flags(arguments: list[Word]) -> Iterator[Word]:
    return itertools.dropwhile(lambda word: word.is_option, arguments)


def _is_start(word: Word) -> bool:
    return not word.is_option and word.text not in ("(", "!")


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
        return PipeData(DataSource.LISTING, arguments[0].text) if is_resolved and len(arguments) == 1 else UNKNOWN_DATA
    text = " ".join(word.text for word in arguments)
    return PipeData(DataSource.DECODED) if escapes and "\\" in text else PipeData(DataSource.TEXT, text + end)


def _printf(arguments: list[Word], _fed: PipeData) -> PipeData:
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


def _cat(arguments: list[Word], stdin: PipeData) -> PipeData:
    files = [word for word in arguments if not word.is_option and word.text != "-"]
    return stdin if not files and stdin.source is not DataSource.NOTHING else UNKNOWN_DATA


def _grep(arguments: list[Word], stdin: PipeData) -> PipeData:
    """Return file names with -l, otherwise lines of the files or of the input."""
    operands = [word for word in arguments if not word.is_option]
    if any(word.is_option and ("l" in word.text.lower()) for word in arguments):
        return PipeData(DataSource.LISTING, operands[1].text if len(operands) > 1 else ".")
    cuts = any(map(_CUTS.match, (word.text for word in arguments)))
    return stdin if len(operands) < 2 and stdin.source is not DataSource.NOTHING and not cuts else UNKNOWN_DATA


_GIT_LISTINGS = names_in("ls-files rev-parse diff status branch describe tag log rev-list merge-base remote")


def _git(arguments: list[Word], _fed: PipeData) -> PipeData:
    verb = next((word.text for word in arguments if not word.is_option), "")
    return PipeData(DataSource.LISTING, ".") if verb in _GIT_LISTINGS else UNKNOWN_DATA


_OUTPUTS: dict[str, Callable[[list[Word], PipeData], PipeData]] = {
    "echo": _echo,
    "printf": _printf,
    "cat": _cat,
    **dict.fromkeys(("grep", "egrep", "fgrep", "rg", "ag"), _grep),
    "git": _git,
}
