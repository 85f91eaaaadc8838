"""Effects of Windows commands (cmd.exe and PowerShell), recognised by their syntax."""

import base64
import binascii
import re

from qwed.guards._shell.command_model import ShellAnalysis, Violation, Word, names_in
from qwed.guards._shell.windows_rules import NAMES, ONLY_WINDOWS, PATTERNS, VERBS, Kinds
from qwed.model import EffectKind

_E = EffectKind
MAX_DEPTH = 3
MAX_LENGTH = 8_191

_NAMED = re.compile(
    r"(?:^|[|&;\n({=])[ \t]*@?([A-Za-z][\w.-]*)(?=[\s&|;,/\"(^]|$)"
    r"(?:[ \t]+(?:[^\s/]\S*[ \t]+)?(/[A-Za-z?](?=[\s:]|$)))?"
)
_CMDLET = re.compile(r"[A-Z][A-Za-z]{1,12}-[A-Z]\w+\Z")
_SWITCHED = names_in("dir type sort find more date time tree format shutdown start rmdir fc")
"""Names that also exist on other systems; a switch with a slash identifies the Windows program."""
_WINDOWS_SYNTAX = re.compile(
    r"(?:^|[\s\"'=(])[A-Za-z]:\\|(?:^|[\s\"'=])\\\\[\w.-]+\\\w|%0[ \t]*\||(?:\w\^){3}"
    r"|(?i:%(?:comspec|userprofile|temp|tmp|appdata|localappdata|programdata|path|username|computername|windir|systemroot"
    r"|programfiles|public|systemdrive|os|cd|errorlevel|random)(?::[^%\n]{0,80})?%)"
    r"|\[(?:System\.|Net\.|IO\.|Convert|Text\.|Reflection|Ref\]|Runtime|Diagnostics)"
    r"|(?i:\$env:\w|\b(?:dir|ls|gci|gi|gc|cat|type)[ \t]+env:)"
    r"|(?i:new-object\s|\biex[\s(]|\|[ \t]*iex\b)|(?i:\bfor[ \t]+/[fdlr]\s|\bif[ \t]+(?:not[ \t]+)?exist\s)|\w\.exe\b"
)
_CONTINUED = re.compile(r"[\\^`]\n")
_SEGMENT = re.compile(r"\|\||&&|[|&;\n]")
_QUOTED = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'")
_BLOCK = re.compile(r"\{[^{}]*\}")
_PREFIX = re.compile(
    r"(?is)[\s@(]*(?:for\s+/?[a-z]?\b.*?\bdo\s+|if\s+(?:not\s+)?(?:exist|defined|errorlevel)\s+\S+\s+)?[\s@(]*"
)
_WORDS = re.compile(r"\"([^\"]*)\"|'([^']*)'|(\S+)")
_PLAIN = re.compile(r"[^`\[\]$%^]*\Z")
_PLAIN_VARIABLE = re.compile(
    r"(?i)\$(?:_|true|false|null|pwd|home|psversiontable|env:(?:userprofile|username|temp|path|computername|home))\b"
    r"|%(?:userprofile|temp|tmp|cd|path|username|computername|appdata|windir|systemroot|programfiles|date|time|os)%"
)
_INNER = re.compile(r"(?is)(?:\S*\\)?(?:cmd|powershell|pwsh)(?:\.exe)?\"?\s+(.*)")
_INNER_SWITCHES = re.compile(
    r"(?i)(?:[-/](?:q|s|v:on|d|a|u|nologo|noprofile|noninteractive|sta|mta)\s+)*[-/](?:c|k|command)\s*"
)
_ENCODED = re.compile(r"(?i)\s[-/\u2013](?:e|ec|en[a-z]{0,20})\s+([A-Za-z0-9+/=]{8,})")
_REDIRECTION = re.compile(r"\d?>>?\s*(&\d|\"[^\"]+\"|[^\s|&;)]+)")
_NOWHERE = frozenset({"nul", "$null", "con"})
_OUTPUT_COMMANDS = (
    "write-",
    "echo",
    "get-date",
    "get-process",
    "get-service",
    "select-object",
    "where-",
    "sort-",
    "format-",
    "measure-",
)
_LISTS = frozenset({"dir", "ls", "gci", "get-childitem", "tree"})


def is_windows(command: str) -> bool:
    """Return True if the text looks like a command for cmd.exe or PowerShell."""
    return any(map(_is_windows_match, _NAMED.finditer(command))) or _WINDOWS_SYNTAX.search(command) is not None


def _is_windows_match(match: re.Match[str]) -> bool:
    if match.start() and match[1].lower() == "where":
        # A clause of SQL far more often than a program.
        return False
    return is_windows_name(match[1]) or (match[1].lower() in _SWITCHED and match[2] is not None)


def is_windows_name(name: str) -> bool:
    """Return True if a program of this name exists only on Windows."""
    return name.lower().removesuffix(".exe").removesuffix(".com") in ONLY_WINDOWS or _CMDLET.match(name) is not None


_DISPLAYS = names_in(
    "dir type more sort tree date ls cat ps echo hostname whoami netstat arp route fc diff cd chdir help find gc select"
)
"""Programs of both worlds that only display something, as long as their arguments have the form of Windows."""
_WINDOWS_FORM = re.compile(r"(?:[\w.:\\/*?=,@%+>\s-]|\"[^\"$`]*\"|'[^'$`]*'|\{[^{}`]*\})*")
_FIND_FORM = re.compile(r"(?i)find(?:\.exe)?(?:[ \t]+(?:/[a-z]+|\"[^\"$`]*\"|[\w.:\\*]+))*[ \t]*")


def may_be_posix(command: str) -> bool:
    """Return True if a part of the command, which has the form of Windows, may mean something else to another shell."""
    segments = [segment[_prefix_end(segment) :].strip() for segment in _segments(_CONTINUED.sub(" ", command))]
    return any(_may_be_posix(segment) for segment in segments if segment)


def _may_be_posix(segment: str) -> bool:
    name = segment.split()[0].strip("\"'").lower().removesuffix(".exe")
    if name in ONLY_WINDOWS or name not in NAMES:
        return False
    form = _FIND_FORM if name == "find" else _WINDOWS_FORM
    return name not in _DISPLAYS or form.fullmatch(segment) is None


def analyze_windows(command: str, analysis: ShellAnalysis, depth: int = 0) -> None:
    """Report the effects of the command; an unknown segment is UNRESOLVED."""
    analysis.report.facts.note_unlisted()
    if len(command) > MAX_LENGTH:
        analysis.report.add_unresolved(f"the command is longer than the {MAX_LENGTH} characters that cmd.exe accepts")
        return
    plain = _CONTINUED.sub(" ", command).replace("^", "")
    if re.search(r"\w\^\w", command):
        analysis.report.add_violation(Violation.OBFUSCATED)
    _analyze_patterns(plain, analysis)
    hidden = _decode_encoded_command(plain)
    if hidden and depth < MAX_DEPTH:
        analyze_windows(hidden, analysis, depth + 1)
    for segment in _segments(plain):
        _analyze_segment(segment, analysis, depth)


def _analyze_patterns(plain: str, analysis: ShellAnalysis) -> None:
    for rule in PATTERNS:
        if rule.pattern.search(plain):
            _report(analysis, rule.kinds, plain)
            if rule.violation is not None:
                analysis.report.add_violation(rule.violation)


def _report(analysis: ShellAnalysis, kinds: Kinds, target: str) -> None:
    for kind in kinds:
        if kind in (_E.WRITE, _E.DELETE):
            for file in _files(target) or ["."]:
                analysis.report.add_effect(kind, file)
                analysis.report.facts.add_path(kind, file, certain=False)
        else:
            analysis.report.add_effect(kind, target.strip())


def _files(segment: str) -> list[str]:
    """Return the words after the name that are not switches."""
    words = [next((group for group in match.groups() if group), "") for match in _WORDS.finditer(segment)]
    return [word.replace("\\", "/") for word in words[1:] if word and not word.startswith(("/", "-", "{", ">", "("))]


def _decode_encoded_command(command: str) -> str:
    """Return the text of `-EncodedCommand`, or ""."""
    encoded = _ENCODED.search(command)
    if not encoded:
        return ""
    try:
        return base64.b64decode(encoded[1] + "=" * (-len(encoded[1]) % 4)).decode("utf-16-le", "ignore")[:4096]
    except (binascii.Error, ValueError):
        return ""


def _segments(command: str) -> list[str]:
    """Return the commands of the line; text in quotes or in a block belongs to the enclosing command."""
    masked = _QUOTED.sub(lambda match: "\0" * len(match[0]), command)
    masked = _BLOCK.sub(lambda match: "\0" * len(match[0]), masked)
    segments, start = [], 0
    for match in _SEGMENT.finditer(masked):
        if not (match[0] == "&" and masked[max(match.start() - 1, 0)] == ">"):
            segments.append(command[start : match.start()])
            start = match.end()
    return [segment.strip() for segment in [*segments, command[start:]] if segment.strip()]


def _analyze_segment(segment: str, analysis: ShellAnalysis, depth: int) -> None:
    segment = segment[_prefix_end(segment) :].strip()
    if not segment:
        return
    _redirections(segment, analysis)
    inner = _INNER.match(segment)
    if inner:
        _analyze_inner(segment, inner[1], analysis, depth)
        return
    name = segment.split()[0].strip("\"'").lower().rpartition("\\")[2].removesuffix(".exe").removesuffix(".com")
    analysis.report.programs[name] = None
    analysis.report.facts.add_command(name, [Word(word) for word in segment.split()[1:]])
    _analyze_blocks(segment, analysis, depth)
    kinds = _kinds(name)
    if kinds is None:
        analysis.report.add_unresolved(f"`{segment[:64]}` is not a known command")
    elif kinds == (_E.READ,):
        _report_reads(segment, analysis)
    else:
        _report(analysis, kinds, segment)


def _analyze_blocks(segment: str, analysis: ShellAnalysis, depth: int) -> None:
    """Analyse the commands in a PowerShell block; text that starts with a value is a comparison."""
    for block in _BLOCK.findall(segment):
        for inner in _segments(block[1:-1]):
            if not inner.startswith(("$", "(", "-", "'", '"')) and depth < MAX_DEPTH:
                _analyze_segment(inner, analysis, depth + 1)


def _prefix_end(segment: str) -> int:
    match = _PREFIX.match(segment)
    return match.end() if match else 0


def _kinds(name: str) -> Kinds | None:
    if name in NAMES:
        return NAMES[name]
    verb, dash, _ = name.partition("-")
    return VERBS.get(verb) if dash else None


def _analyze_inner(segment: str, rest: str, analysis: ShellAnalysis, depth: int) -> None:
    """Analyse the command of `cmd /c ...` and `powershell -Command ...`; without such a switch they run a file."""
    switches = _INNER_SWITCHES.match(rest)
    text = rest[switches.end() :].strip().strip("\"'") if switches else ""
    if text and depth < MAX_DEPTH:
        for inner in _segments(text):
            _analyze_segment(inner, analysis, depth + 1)
    else:
        analysis.report.add_effect(_E.EXECUTE, segment)
    if switches is None and not re.fullmatch(r"(?i)[-/](?:\?|version|help)", rest.strip()):
        analysis.report.add_unresolved("the command for the Windows shell is missing")


def _redirections(segment: str, analysis: ShellAnalysis) -> None:
    masked = _QUOTED.sub(lambda match: match[0].replace(">", "\0"), segment)
    for match in _REDIRECTION.finditer(masked):
        target = match[1].strip('"')
        if target.lower() not in _NOWHERE and not target.startswith("&"):
            analysis.report.add_effect(_E.WRITE, target)
            analysis.report.facts.add_path(_E.WRITE, target, certain=False)


def _report_reads(segment: str, analysis: ShellAnalysis) -> None:
    """Report the operands of a reading command; slashes and dashes start options."""
    if not _PLAIN.match(_PLAIN_VARIABLE.sub("", segment)) or re.search(r"\(\s*\w+-|(?i:-outfile|-filepath)\b", segment):
        analysis.report.add_unresolved(f"`{segment[:64]}` is known only at run time")
    name = segment.split()[0].lower()
    if name.startswith(_OUTPUT_COMMANDS):
        return
    files = [file for file in _files(segment) if not file.startswith("$") and re.search(r"[./*:]", file)]
    for file in files:
        analysis.report.add_effect(_E.READ, file)
        analysis.report.facts.add_path(_E.READ, file, certain=False)
    if name in _LISTS and not files:
        analysis.add_file_effect(_E.READ, Word("."))
