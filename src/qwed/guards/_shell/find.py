"""Rules for find: its start directories are read, its tests are harmless, its actions are analysed like commands."""

import itertools
import re

from qwed.guards._shell.command_model import CommandCall, Rule, ShellAnalysis, Violation, Word, names_in
from qwed.guards._shell.listings import FIND_OPTION, find_has_any_name, find_starts
from qwed.guards._shell.wrappers import substitute
from qwed.guards.file_effects import is_secret
from qwed.model import EffectKind

_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_WRITES = {"-fprint": 2, "-fprint0": 2, "-fls": 2, "-fprintf": 3}
"""Number of words of each action that writes, including the action itself."""
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


_SECRET_WORDS = re.compile(r"(?i)passw|secret|credential|wallet|shadow|\.pem|\.key|\.kdbx|id_rsa|token")
_TOP = names_in("/ /home /root /etc /var ~ /Users /opt /mnt")


def _find(analysis: ShellAnalysis, call: CommandCall) -> None:
    options = list(itertools.takewhile(lambda word: FIND_OPTION.fullmatch(word.text), call.arguments))
    starts = find_starts(call.arguments)
    index, tests = 0, call.arguments[len(options) + len(starts) :]
    starts = starts or [Word(".")]
    for start in starts:
        analysis.add_file_effect(EffectKind.READ, start)
    any_name = find_has_any_name(tests)
    starts = [start._replace(any_name=any_name) for start in starts]
    while index < len(tests):
        index += _analyze_test(
            analysis, starts, tests[index:] if tests[index].text in _RUNS else tests[index : index + 3]
        )


def _analyze_test(analysis: ShellAnalysis, starts: list[Word], words: list[Word]) -> int:
    """Analyse the first test or action and return the number of its words."""
    text = words[0].text
    if text in _RUNS:
        return _analyze_run(analysis, starts, words)
    if text in _WRITES:
        for word in words[1:2]:
            analysis.add_file_effect(EffectKind.WRITE, word)
        return _WRITES[text]
    if text in _VALUED or _NEWER.match(text):
        for word in words[1:2]:
            _analyze_value(analysis, text, starts, word)
        return 2
    _analyze_flag(analysis, starts, words[0])
    return 1


def _analyze_flag(analysis: ShellAnalysis, starts: list[Word], word: Word) -> None:
    if word.text == "-delete":
        for start in starts:
            analysis.add_file_effect(EffectKind.DELETE, start)
    elif not word.is_resolved:
        analysis.report.add_unresolved(f"`{word.text[:64]}` is known only at run time")
    elif not word.text.startswith("-"):
        # Another value of a loop variable: `find` itself does not accept such a word here.
        _analyze_value(analysis, "-name", starts, word)
    elif word.text not in _FLAGS:
        analysis.report.add_unresolved(f"`{word.text[:64]}` is not a known test of `find`")


def _analyze_value(analysis: ShellAnalysis, test: str, starts: list[Word], value: Word) -> None:
    paths = [value.text.strip("*") or value.text, *(f"{start.text.rstrip('/')}/{value.text}" for start in starts[:64])]
    searches_secrets = _SECRET_WORDS.search(value.text) is not None and any(start.text in _TOP for start in starts)
    if test in _NAMES and (searches_secrets or any(is_secret(path) for path in paths)):
        analysis.report.add_effect(EffectKind.SECRET, value.text)
    elif test == "-perm" and _SETUID.search(value.text):
        analysis.report.add_effect(EffectKind.ADMIN, f"find -perm {value.text}")


def _ends_command(words: list[Word], index: int) -> bool:
    """Return True if the word ends the command of `-exec`; a plus sign does only after `{}`."""
    return words[index].text == ";" or (words[index].text == "+" and words[index - 1].text == "{}")


def _analyze_run(analysis: ShellAnalysis, starts: list[Word], words: list[Word]) -> int:
    end = next((index for index in range(1, len(words)) if _ends_command(words, index)), len(words))
    values = [start._replace(is_exact=False, pattern=start.is_resolved) for start in starts[:64]]
    if any("{}" in word.text and " " in word.text for word in words[1:end]):
        analysis.report.add_violation(Violation.INLINE_CODE)
    analysis.visit_command([expanded for word in words[1:end] for expanded in substitute(word, "{}", values)])
    return end + 1


RULES: dict[str, Rule] = dict.fromkeys(("find", "gfind"), _find)
