"""find: the directories it starts from are read, its tests are harmless, its actions are judged like commands."""

import re

from qwed.guards._shell.model import Call, Look, Violation, Word, names_in
from qwed.guards._shell.options import Rule
from qwed.guards._shell.wrappers import replaced
from qwed.guards.files import is_secret
from qwed.words import EffectKind

_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_WRITES = {"-fprint": 2, "-fprint0": 2, "-fls": 2, "-fprintf": 3}
"""The words an action that writes takes, itself included."""
_FLAGS = names_in(
    """
    -print -print0 -empty -not -o -a -or -and -readable -writable -executable -xdev -mount -prune -ls -true -false -quit
    -depth -d -follow -daystart -noleaf -nouser -nogroup -ignore_readdir_race ! ( ) , -warn -nowarn -help -version
    """
)
_NAMES = frozenset({"-name", "-iname", "-path", "-wholename", "-ipath"})
_VALUED = _NAMES | names_in(
    """
    -type -xtype -maxdepth -mindepth -size -mtime -mmin -atime -amin -ctime -cmin -user -group -uid -gid -perm -regex
    -iregex -regextype -newer -anewer -cnewer -samefile -inum -links -lname -ilname -fstype -printf -used -flags
    -context
    """
)
_NEWER = re.compile(r"-newer[aBcm][aBcmt]\Z")
_SETUID = re.compile(r"[-/+]?[2467]\d{3}\Z|[ug]?[+=]\w*s")


_TELLING = re.compile(r"(?i)passw|secret|credential|wallet|shadow|\.pem|\.key|\.kdbx|id_rsa|token")
_TOP = names_in("/ /home /root /etc /var ~ /Users /opt /mnt")


def _find(look: Look, call: Call) -> None:
    words = call.arguments
    while words and words[0].text in ("-L", "-H", "-P", "-E"):
        words = words[1:]
    first_test = next((at for at, word in enumerate(words) if word.text[:1] in ("-", "(", "!")), len(words))
    starts = words[:first_test] or [Word(".")]
    for start in starts:
        look.file(EffectKind.READ, start)
    at, tests = 0, words[first_test:]
    while at < len(tests):
        at += _test(look, starts, tests[at:] if tests[at].text in _RUNS else tests[at : at + 3])


def _test(look: Look, starts: list[Word], words: list[Word]) -> int:
    """Judge the first test or action; the answer is how many words it takes."""
    text = words[0].text
    if text in _RUNS:
        return _run(look, starts, words)
    if text in _WRITES:
        for word in words[1:2]:
            look.file(EffectKind.WRITE, word)
        return _WRITES[text]
    if text in _VALUED or _NEWER.match(text):
        for word in words[1:2]:
            _value(look, text, starts, word)
        return 2
    _flag(look, starts, words[0])
    return 1


def _flag(look: Look, starts: list[Word], word: Word) -> None:
    if word.text == "-delete":
        for start in starts:
            look.file(EffectKind.DELETE, start)
    elif not word.text.startswith("-"):
        # Another value of a variable in a loop: `find` itself would take no such word here.
        _value(look, "-name", starts, word)
    elif word.text not in _FLAGS:
        look.report.unclear(f"`{word.text[:64]}` is not a known test of `find`")


def _value(look: Look, test: str, starts: list[Word], value: Word) -> None:
    places = [value.text.strip("*") or value.text, *(f"{start.text.rstrip('/')}/{value.text}" for start in starts[:64])]
    hunts = _TELLING.search(value.text) is not None and any(start.text in _TOP for start in starts)
    if test in _NAMES and (hunts or any(is_secret(place) for place in places)):
        look.report.effect(EffectKind.SECRET, value.text)
    elif test == "-perm" and _SETUID.search(value.text):
        look.report.effect(EffectKind.ADMIN, f"find -perm {value.text}")


def _run(look: Look, starts: list[Word], words: list[Word]) -> int:
    end = next((at for at, word in enumerate(words) if word.text in (";", "+")), len(words))
    places = [start._replace(known=False, pattern=start.settled) for start in starts[:64]]
    if any("{}" in word.text and " " in word.text for word in words[1:end]):
        look.report.violate(Violation.INLINE_CODE)
    look.command([each for word in words[1:end] for each in replaced(word, "{}", places)])
    return end + 1


RULES: dict[str, Rule] = dict.fromkeys(("find", "gfind"), _find)
