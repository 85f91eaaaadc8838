"""What flows from one command into the next: known text, a listing of files, something downloaded or decoded."""

import itertools
import re
from collections.abc import Callable, Iterator

from qwed.guards._shell.escapes import unescaped
from qwed.guards._shell.model import NOTHING, UNKNOWN, Feed, Source, Violation, Word, names_in
from qwed.guards._shell.scope import SOCKET
from qwed.guards.files import holds_secrets

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
_KEEPERS = names_in("grep egrep fgrep rg head tail sort uniq tee cat wc shuf nl column less more pv sponge")
_LISTERS = names_in(
    """
    find ls fd fdfind locate pwd which dirname basename realpath readlink date whoami nproc uname id hostname seq
    mktemp tree du wc expr tput stat git pgrep pidof ps tty arch groups logname getconf true false test sysctl
    lsb_release
    """
)
_WRAPPED = names_in("sudo env nohup time nice command builtin exec timeout stdbuf doas ionice setsid")
_RANK = {Source.NOTHING: 0, Source.LISTING: 1, Source.TEXT: 2, Source.UNKNOWN: 3, Source.DECODED: 4, Source.REMOTE: 5}


def merged(feeds: list[Feed]) -> Feed:
    """What several commands print one after the other."""
    printing = [feed for feed in feeds if feed.source is not Source.NOTHING]
    if len(printing) < 2:
        return printing[0] if printing else NOTHING
    worst = max(printing, key=lambda feed: _RANK[feed.source])
    if worst.source is Source.TEXT:
        known = all(feed.source is Source.TEXT for feed in printing)
        # What ends without a line break runs on in what is printed next.
        whole = "".join(feed.text for feed in printing)
        return Feed(Source.TEXT, whole) if known and len(whole) <= MAX_TEXT else UNKNOWN
    return worst


def text_feed(words: list[Word]) -> Feed:
    """What a here-string feeds."""
    if all(word.known for word in words):
        return Feed(Source.TEXT, " ".join(word.text for word in words) + "\n")
    return UNKNOWN


def file_feed(word: Word) -> Feed:
    """What reading the file a word names feeds."""
    if word.origin is Violation.REMOTE_TO_SHELL or SOCKET.match(word.text):
        return Feed(Source.REMOTE)
    return Feed(Source.DECODED) if word.origin is Violation.DECODED_TO_SHELL else UNKNOWN


def output(words: list[Word], fed: Feed) -> Feed:
    """What a command prints, as far as a later command could run or open it."""
    words = _unwrapped(words)
    if not words:
        return UNKNOWN
    name = words[0].text.rpartition("/")[2]
    if fed.source is Source.REMOTE or name in _DOWNLOADERS:
        return Feed(Source.REMOTE)
    special = _OUTPUTS.get(name)
    if special is not None:
        return special(words[1:], fed)
    if fed.source is Source.DECODED or name in _DECODERS:
        return Feed(Source.DECODED)
    if name in _KEEPERS and fed.source is not Source.NOTHING:
        return UNKNOWN if fed.source is Source.TEXT and any(map(_CUTS.match, (w.text for w in words[1:]))) else fed
    return Feed(Source.LISTING, _start(name, words[1:])) if name in _LISTERS else UNKNOWN


_CUTS = re.compile(r"-[A-Za-z]*[co]|--bytes|--only-matching")
"""Options that keep parts of a line, which say something else than the line."""


def _unwrapped(words: list[Word]) -> list[Word]:
    at = 0
    while at < len(words) and words[at].text in _WRAPPED:
        at += 1
        while at < len(words) and (words[at].is_option or "=" in words[at].text or words[at].text[:1].isdigit()):
            at += 1
    return words[at:]


def _start(name: str, arguments: list[Word]) -> str:
    if name not in ("find", "ls", "fd", "tree", "du", "readlink", "realpath", "dirname", "basename"):
        return "."
    starts = [word.text for word in itertools.takewhile(_is_start, _past_flags(arguments))] or ["."]
    # Of several places the one counts that holds the most.
    return next((place for place in starts if holds_secrets(place)), starts[0])


def _past_flags(arguments: list[Word]) -> Iterator[Word]:
    return itertools.dropwhile(lambda word: word.is_option, arguments)


def _is_start(word: Word) -> bool:
    return not word.is_option and word.text not in ("(", "!")


def _echo(arguments: list[Word], fed: Feed) -> Feed:
    if fed.source is Source.DECODED:
        return fed
    escapes, end = False, "\n"
    while arguments and arguments[0].text in ("-n", "-e", "-E", "-ne", "-en"):
        escapes |= "e" in arguments[0].text
        end = "" if "n" in arguments[0].text else end
        arguments = arguments[1:]
    if not all(word.known for word in arguments):
        settled = all(word.settled for word in arguments)
        return Feed(Source.LISTING, arguments[0].text) if settled and len(arguments) == 1 else UNKNOWN
    text = " ".join(word.text for word in arguments)
    return Feed(Source.DECODED) if escapes and "\\" in text else Feed(Source.TEXT, text + end)


def _printf(arguments: list[Word], _fed: Feed) -> Feed:
    if not arguments or not all(word.known for word in arguments):
        return UNKNOWN
    form = arguments[0].text
    text = unescaped(form)
    if text.strip("\n") != form.replace("\\n", "").strip("\n") or "%b" in form or "%c" in form or "%x" in form:
        return Feed(Source.DECODED)
    if "%" not in form:
        return Feed(Source.TEXT, text)
    if form.replace("\\n", "") == "%s":
        return Feed(Source.TEXT, "".join(text.replace("%s", word.text) for word in arguments[1:]))
    return UNKNOWN


def _cat(arguments: list[Word], fed: Feed) -> Feed:
    files = [word for word in arguments if not word.is_option and word.text != "-"]
    return fed if not files and fed.source is not Source.NOTHING else UNKNOWN


def _grep(arguments: list[Word], fed: Feed) -> Feed:
    """Names of files with -l; lines of the files or of its input otherwise."""
    operands = [word for word in arguments if not word.is_option]
    if any(word.is_option and ("l" in word.text.lower()) for word in arguments):
        return Feed(Source.LISTING, operands[1].text if len(operands) > 1 else ".")
    cuts = any(map(_CUTS.match, (word.text for word in arguments)))
    return fed if len(operands) < 2 and fed.source is not Source.NOTHING and not cuts else UNKNOWN


_TELLING_GIT = names_in("ls-files rev-parse diff status branch describe tag log rev-list merge-base remote")


def _git(arguments: list[Word], _fed: Feed) -> Feed:
    verb = next((word.text for word in arguments if not word.is_option), "")
    return Feed(Source.LISTING, ".") if verb in _TELLING_GIT else UNKNOWN


_OUTPUTS: dict[str, Callable[[list[Word], Feed], Feed]] = {
    "echo": _echo,
    "printf": _printf,
    "cat": _cat,
    **dict.fromkeys(("grep", "egrep", "fgrep", "rg", "ag"), _grep),
    "git": _git,
}
