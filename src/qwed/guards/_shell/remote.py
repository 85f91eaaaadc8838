"""Programs that log in on other machines and copy to and from them: ssh, scp, rsync."""

import re

from qwed.guards._shell.builtins import run_text
from qwed.guards._shell.model import Call, Feed, Look, Source, Violation, Word, joined
from qwed.guards._shell.options import Program, Rule, parsed, values_of
from qwed.words import EffectKind

_SSH = Program(free=True, valued="pilLRDJbcemEOQWwBo", runs=frozenset({"-F", "-I", "-S"}))
_SSH_RUNS = re.compile(r"(?i)-?o?\s*(?:ProxyCommand|LocalCommand|PermitLocalCommand|KnownHostsCommand|Match)\b")


def _ssh_option(look: Look, option: str, value: Word) -> None:
    """An option of ssh, scp or sftp that runs a program here or opens a way in."""
    if option in _SSH.runs or (option == "-o" and _SSH_RUNS.match(value.text)):
        look.report.violate(Violation.ESCAPE)
    elif option == "-E":
        look.file(EffectKind.WRITE, value)


def _ssh(look: Look, call: Call) -> None:
    count = next((at for at, word in enumerate(_ssh_words(call.arguments)) if not word), len(call.arguments))
    found = parsed(_SSH, call.arguments[:count])
    for option, value in found.options:
        if value is not None:
            _ssh_option(look, option, value)
        if option in ("-R", "-D", "-L", "-w") and value is not None:
            look.report.effect(EffectKind.ADMIN, f"ssh {option} {value.text}")
    if count < len(call.arguments):
        _remote(look, call.name, call.arguments[count], call.arguments[count + 1 :], call.fed)


def _ssh_words(arguments: list[Word]) -> list[bool]:
    """For every word before the host, that it is an option or the value of one; then a False."""
    told: list[bool] = []
    value = False
    for word in arguments:
        if not value and not word.is_option:
            return [*told, False]
        told.append(True)
        letters = "" if value else word.text[1:]
        takes = next((at for at, letter in enumerate(letters) if _ssh_takes(letter)), -1)
        value = takes >= 0 and takes == len(letters) - 1
    return told


def _ssh_takes(letter: str) -> bool:
    return letter in _SSH.valued or f"-{letter}" in _SSH.runs


def _remote(look: Look, name: str, host: Word, command: list[Word], fed: Feed) -> None:
    look.report.effect(EffectKind.NETWORK, host.text.rpartition("@")[2])
    look.report.effect(EffectKind.EXECUTE, joined([Word(name), host, *command]))
    if command:
        run_text(look, command, fed)
    elif fed.source is Source.TEXT:
        look.script(fed.text)
        look.report.violate(fed.violation)
    elif fed.source is not Source.NOTHING:
        look.report.violate(fed.violation)


_REMOTE_PLACE = re.compile(r"(?:[\w.-]+@)?[\w.-]+::?(?!\\)|rsync://|\[")


_DEEP = re.compile(r"-[a-zA-Z]*[ar]|--archive|--recursive")


def _copy(look: Look, call: Call) -> None:
    """scp and rsync: sources are read, the destination is written, a colon is another machine."""
    places = _rsync_places(look, call) if call.name == "rsync" else _scp_places(look, call)
    for at, word in enumerate(places):
        last = at == len(places) - 1 and at > 0
        _copied(look, word, EffectKind.WRITE if last else EffectKind.READ)
        if not last and any(map(_DEEP.match, call.texts)):
            look.tree(word)
        if any(text.startswith("--delete" if last else "--remove-source") for text in call.texts):
            _copied(look, word, EffectKind.DELETE)


def _rsync_places(look: Look, call: Call) -> list[Word]:
    places: list[Word] = []
    rest = iter(call.arguments)
    for word in rest:
        if re.match(r"-[a-zA-Z]*e\Z|--rsh", word.text):
            value = word.text.partition("=")[2] or next(rest, Word("")).text
            if not re.match(r"(?:/usr/bin/)?ssh\b", value) or _SSH_RUNS.search(value):
                look.report.violate(Violation.ESCAPE)
        elif word.text.startswith(("--rsync-path", "--daemon", "--config")):
            look.report.violate(Violation.ESCAPE)
        elif not word.is_option:
            places.append(word)
    _rsync_files(look, call.arguments)
    return places


_RSYNC_READS = ("--files-from", "--exclude-from", "--include-from", "--read-batch", "--password-file")
_RSYNC_WRITES = ("--log-file", "--write-batch", "--only-write-batch", "--backup-dir", "--temp-dir", "--partial-dir")


def _rsync_files(look: Look, words: list[Word]) -> None:
    for word in values_of(words, _RSYNC_READS):
        look.file(EffectKind.READ, word)
    for word in values_of(words, _RSYNC_WRITES):
        look.file(EffectKind.WRITE, word)


_SCP = Program(free=True, valued="iPlcJoX", runs=frozenset({"-F", "-S", "-D"}))


def _scp_places(look: Look, call: Call) -> list[Word]:
    found = parsed(_SCP, call.arguments)
    for option, value in found.options:
        if option in _SCP.runs or (option == "-o" and value is not None and _SSH_RUNS.match(value.text)):
            look.report.violate(Violation.ESCAPE)
    return found.operands


def _copied(look: Look, word: Word, kind: EffectKind) -> None:
    if _REMOTE_PLACE.match(word.text) and not word.text.startswith(("/", ".")):
        host = word.text if "://" in word.text else word.text.partition(":")[0].rpartition("@")[2]
        look.report.effect(EffectKind.NETWORK, host or word.text)
    else:
        look.file(kind, word)


RULES: dict[str, Rule] = {
    **dict.fromkeys(("ssh", "autossh", "mosh", "rsh", "dbclient", "sshpass_"), _ssh),
    **dict.fromkeys(("scp", "rsync"), _copy),
}
