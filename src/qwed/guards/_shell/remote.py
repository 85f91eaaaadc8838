"""Rules for programs that log in to other machines and copy files to and from them: ssh, scp, rsync."""

import re

from qwed.guards._shell.builtins import run_text
from qwed.guards._shell.command_model import (
    CommandCall,
    DataSource,
    PipeData,
    ShellAnalysis,
    Violation,
    Word,
    join_words,
)
from qwed.guards._shell.options import ProgramSpec, Rule, parse_options, values_of
from qwed.model import EffectKind

_SSH = ProgramSpec(free=True, valued="pilLRDJbcemEOQWwBo", runs=frozenset({"-F", "-I", "-S"}))
_SSH_RUNS = re.compile(r"(?i)-?o?\s*(?:ProxyCommand|LocalCommand|PermitLocalCommand|KnownHostsCommand|Match)\b")


def _ssh_option(analysis: ShellAnalysis, option: str, value: Word) -> None:
    """Report an option of ssh, scp or sftp that runs a local program or opens a tunnel."""
    if option in _SSH.runs or (option == "-o" and _SSH_RUNS.match(value.text)):
        analysis.report.add_violation(Violation.ESCAPE)
    elif option == "-E":
        analysis.add_file_effect(EffectKind.WRITE, value)


def _ssh(analysis: ShellAnalysis, call: CommandCall) -> None:
    count = next((index for index, word in enumerate(_ssh_words(call.arguments)) if not word), len(call.arguments))
    options = parse_options(_SSH, call.arguments[:count])
    for option, value in options.options:
        if value is not None:
            _ssh_option(analysis, option, value)
        if option in ("-R", "-D", "-L", "-w") and value is not None:
            analysis.report.add_effect(EffectKind.ADMIN, f"ssh {option} {value.text}")
    if count < len(call.arguments):
        _remote_command(analysis, call.name, call.arguments[count], call.arguments[count + 1 :], call.stdin)


def _ssh_words(arguments: list[Word]) -> list[bool]:
    """Return True for each word before the host (options and their values), then False."""
    flags: list[bool] = []
    value = False
    for word in arguments:
        if not value and not word.is_option:
            return [*flags, False]
        flags.append(True)
        letters = "" if value else word.text[1:]
        takes = next((index for index, letter in enumerate(letters) if _ssh_takes(letter)), -1)
        value = takes >= 0 and takes == len(letters) - 1
    return flags


def _ssh_takes(letter: str) -> bool:
    return letter in _SSH.valued or f"-{letter}" in _SSH.runs


def _remote_command(analysis: ShellAnalysis, name: str, host: Word, command: list[Word], stdin: PipeData) -> None:
    analysis.report.add_effect(EffectKind.NETWORK, host.text.rpartition("@")[2])
    analysis.report.add_effect(EffectKind.EXECUTE, join_words([Word(name), host, *command]))
    if command:
        run_text(analysis, command, stdin)
    elif stdin.source is DataSource.TEXT:
        analysis.visit_script(stdin.text)
        analysis.report.add_violation(stdin.violation)
    elif stdin.source is not DataSource.NOTHING:
        analysis.report.add_violation(stdin.violation)


_REMOTE_PATH = re.compile(r"(?:[\w.-]+@)?[\w.-]+::?(?!\\)|rsync://|\[")


_DEEP = re.compile(r"-[a-zA-Z]*[ar]|--archive|--recursive")


def _copy(analysis: ShellAnalysis, call: CommandCall) -> None:
    """Analyse scp and rsync: sources are read, the destination is written, a colon means another machine."""
    paths = _rsync_paths(analysis, call) if call.name == "rsync" else _scp_paths(analysis, call)
    for index, word in enumerate(paths):
        last = index == len(paths) - 1 and index > 0
        _report_copy(analysis, word, EffectKind.WRITE if last else EffectKind.READ)
        if not last and any(map(_DEEP.match, call.texts)):
            analysis.add_tree_read(word)
        if any(text.startswith("--delete" if last else "--remove-source") for text in call.texts):
            _report_copy(analysis, word, EffectKind.DELETE)


def _rsync_paths(analysis: ShellAnalysis, call: CommandCall) -> list[Word]:
    paths: list[Word] = []
    rest = iter(call.arguments)
    for word in rest:
        if re.match(r"-[a-zA-Z]*e\Z|--rsh", word.text):
            value = word.text.partition("=")[2] or next(rest, Word("")).text
            if not re.match(r"(?:/usr/bin/)?ssh\b", value) or _SSH_RUNS.search(value):
                analysis.report.add_violation(Violation.ESCAPE)
        elif word.text.startswith(("--rsync-path", "--daemon", "--config")):
            analysis.report.add_violation(Violation.ESCAPE)
        elif not word.is_option:
            paths.append(word)
    _rsync_files(analysis, call.arguments)
    return paths


_RSYNC_READS = ("--files-from", "--exclude-from", "--include-from", "--read-batch", "--password-file")
_RSYNC_WRITES = ("--log-file", "--write-batch", "--only-write-batch", "--backup-dir", "--temp-dir", "--partial-dir")


def _rsync_files(analysis: ShellAnalysis, words: list[Word]) -> None:
    for word in values_of(words, _RSYNC_READS):
        analysis.add_file_effect(EffectKind.READ, word)
    for word in values_of(words, _RSYNC_WRITES):
        analysis.add_file_effect(EffectKind.WRITE, word)


_SCP = ProgramSpec(free=True, valued="iPlcJoX", runs=frozenset({"-F", "-S", "-D"}))


def _scp_paths(analysis: ShellAnalysis, call: CommandCall) -> list[Word]:
    options = parse_options(_SCP, call.arguments)
    for option, value in options.options:
        if option in _SCP.runs or (option == "-o" and value is not None and _SSH_RUNS.match(value.text)):
            analysis.report.add_violation(Violation.ESCAPE)
    return options.operands


def _report_copy(analysis: ShellAnalysis, word: Word, kind: EffectKind) -> None:
    if _REMOTE_PATH.match(word.text) and not word.text.startswith(("/", ".")):
        host = word.text if "://" in word.text else word.text.partition(":")[0].rpartition("@")[2]
        analysis.report.add_effect(EffectKind.NETWORK, host or word.text)
    else:
        analysis.add_file_effect(kind, word)


RULES: dict[str, Rule] = {
    **dict.fromkeys(("ssh", "autossh", "mosh", "rsh", "dbclient", "sshpass_"), _ssh),
    **dict.fromkeys(("scp", "rsync"), _copy),
}
