"""Commands of Windows, told by their shape: what cmd.exe and PowerShell would do with them."""

import base64
import binascii
import re

from qwed.guards._shell.model import Look, Violation, Word, names_in
from qwed.guards._shell.windows_rules import NAMES, ONLY_WINDOWS, SHAPES, VERBS, Kinds
from qwed.words import EffectKind

_E = EffectKind
MAX_DEPTH = 3
MAX_LENGTH = 8_191

_NAMED = re.compile(
    r"(?:^|[|&;\n({=])[ \t]*@?([A-Za-z][\w.-]*)(?=[\s&|;,/\"(^]|$)"
    r"(?:[ \t]+(?:[^\s/]\S*[ \t]+)?(/[A-Za-z?](?=[\s:]|$)))?"
)
_CMDLET = re.compile(r"[A-Z][A-Za-z]{1,12}-[A-Z]\w+\Z")
_SWITCHED = names_in("dir type sort find more date time tree format shutdown start rmdir fc")
"""Names other systems have too, where a switch with a slash tells the shape."""
_SHAPE = re.compile(
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
_SPEAKS = (
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
    """Whether the text has the shape of a command for cmd.exe or PowerShell."""
    return any(map(_tells, _NAMED.finditer(command))) or _SHAPE.search(command) is not None


def _tells(match: re.Match[str]) -> bool:
    return is_windows_name(match[1]) or (match[1].lower() in _SWITCHED and match[2] is not None)


def is_windows_name(name: str) -> bool:
    """Whether only Windows has a program of this name."""
    return name.lower().removesuffix(".exe").removesuffix(".com") in ONLY_WINDOWS or _CMDLET.match(name) is not None


def judge_windows(command: str, look: Look, depth: int = 0) -> None:
    """Report what the command would do; a segment that is not known is UNRESOLVED."""
    if len(command) > MAX_LENGTH:
        look.report.unclear(f"cmd.exe takes no command longer than {MAX_LENGTH} characters")
        return
    plain = _CONTINUED.sub(" ", command).replace("^", "")
    if re.search(r"\w\^\w", command):
        look.report.violate(Violation.OBFUSCATED)
    _judge_shapes(plain, look)
    hidden = _decoded(plain)
    if hidden and depth < MAX_DEPTH:
        judge_windows(hidden, look, depth + 1)
    for segment in _segments(plain):
        _judge_segment(segment, look, depth)


def _judge_shapes(plain: str, look: Look) -> None:
    for shape in SHAPES:
        if shape.pattern.search(plain):
            _report(look, shape.kinds, plain)
            if shape.violation is not None:
                look.report.violate(shape.violation)


def _report(look: Look, kinds: Kinds, target: str) -> None:
    for kind in kinds:
        if kind in (_E.WRITE, _E.DELETE):
            for file in _files(target) or ["."]:
                look.report.effect(kind, file)
        else:
            look.report.effect(kind, target.strip())


def _files(segment: str) -> list[str]:
    """The words behind the name that are no switches."""
    words = [next((group for group in match.groups() if group), "") for match in _WORDS.finditer(segment)]
    return [word.replace("\\", "/") for word in words[1:] if word and not word.startswith(("/", "-", "{", ">", "("))]


def _decoded(command: str) -> str:
    """The text behind `-EncodedCommand`."""
    encoded = _ENCODED.search(command)
    if not encoded:
        return ""
    try:
        return base64.b64decode(encoded[1] + "=" * (-len(encoded[1]) % 4)).decode("utf-16-le", "ignore")[:4096]
    except (binascii.Error, ValueError):
        return ""


def _segments(command: str) -> list[str]:
    """The commands of the line; what stands in quotes or a block belongs to the command around it."""
    masked = _QUOTED.sub(lambda match: "\0" * len(match[0]), command)
    masked = _BLOCK.sub(lambda match: "\0" * len(match[0]), masked)
    found, start = [], 0
    for match in _SEGMENT.finditer(masked):
        if not (match[0] == "&" and masked[max(match.start() - 1, 0)] == ">"):
            found.append(command[start : match.start()])
            start = match.end()
    return [each.strip() for each in [*found, command[start:]] if each.strip()]


def _judge_segment(segment: str, look: Look, depth: int) -> None:
    segment = segment[_prefix_end(segment) :].strip()
    if not segment:
        return
    _redirections(segment, look)
    inner = _INNER.match(segment)
    if inner:
        _judge_inner(segment, inner[1], look, depth)
        return
    name = segment.split()[0].strip("\"'").lower().rpartition("\\")[2].removesuffix(".exe").removesuffix(".com")
    look.report.programs[name] = None
    _blocks(segment, look, depth)
    kinds = _kinds(name)
    if kinds is None:
        look.report.unclear(f"`{segment[:64]}` is not a known command")
    elif kinds == (_E.READ,):
        _reads(segment, look)
    else:
        _report(look, kinds, segment)


def _blocks(segment: str, look: Look, depth: int) -> None:
    """The commands in a block of PowerShell; what starts with a value is a comparison."""
    for block in _BLOCK.findall(segment):
        for inner in _segments(block[1:-1]):
            if not inner.startswith(("$", "(", "-", "'", '"')) and depth < MAX_DEPTH:
                _judge_segment(inner, look, depth + 1)


def _prefix_end(segment: str) -> int:
    match = _PREFIX.match(segment)
    return match.end() if match else 0


def _kinds(name: str) -> Kinds | None:
    if name in NAMES:
        return NAMES[name]
    verb, dash, _ = name.partition("-")
    return VERBS.get(verb) if dash else None


def _judge_inner(segment: str, rest: str, look: Look, depth: int) -> None:
    """`cmd /c ...` and `powershell -Command ...`: what they run is judged; without such a switch they run a file."""
    switches = _INNER_SWITCHES.match(rest)
    text = rest[switches.end() :].strip().strip("\"'") if switches else ""
    if text and depth < MAX_DEPTH:
        for inner in _segments(text):
            _judge_segment(inner, look, depth + 1)
    else:
        look.report.effect(_E.EXECUTE, segment)
    if switches is None and not re.fullmatch(r"(?i)[-/](?:\?|version|help)", rest.strip()):
        look.report.unclear("what the shell of Windows runs is not given")


def _redirections(segment: str, look: Look) -> None:
    masked = _QUOTED.sub(lambda match: match[0].replace(">", "\0"), segment)
    for match in _REDIRECTION.finditer(masked):
        target = match[1].strip('"')
        if target.lower() not in _NOWHERE and not target.startswith("&"):
            look.report.effect(_E.WRITE, target)


def _reads(segment: str, look: Look) -> None:
    """The operands of a reading command; slashes and dashes start its options."""
    if not _PLAIN.match(_PLAIN_VARIABLE.sub("", segment)) or re.search(r"\(\s*\w+-|(?i:-outfile|-filepath)\b", segment):
        look.report.unclear(f"`{segment[:64]}` is decided while it runs")
    name = segment.split()[0].lower()
    if name.startswith(_SPEAKS):
        return
    files = [file for file in _files(segment) if not file.startswith("$") and re.search(r"[./*:]", file)]
    for file in files:
        look.report.effect(_E.READ, file)
    if name in _LISTS and not files:
        look.file(_E.READ, Word("."))
