"""What a shell command would do, read off its words.

A command of plain words whose program and options are in the tables is resolved; everything else (pipes, redirections,
expansions, unknown programs and options) is UNRESOLVED, and the shapes that exist to run text as code are violations.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from qwed.guards import _shell_programs as programs
from qwed.guards._shell_programs import Program
from qwed.guards._shell_words import Segment, Word, cut
from qwed.guards.path import resolve
from qwed.words import Effect, EffectKind

MAX_LENGTH = 1 << 14
MAX_TARGET = 256


class Violation(StrEnum):
    """Shapes refused whoever asks, in the words the answer uses."""

    SUBSTITUTION = "builds part of the command by running another"
    INLINE_CODE = "runs text as code"
    REMOTE_TO_SHELL = "downloads text and runs it as a script"
    DECODED_TO_SHELL = "decodes text and runs it as a script"
    PIPED_TO_SHELL = "feeds text to a shell"
    FORK_BOMB = "starts copies of itself without end"
    REVERSE_SHELL = "opens a shell to another machine"
    OBFUSCATED = "hides the name of what it runs"


@dataclass(frozen=True, slots=True)
class ShellFindings:
    """What the command does, which shapes are refused at every trust level, and what could not be resolved."""

    effects: tuple[Effect, ...] = ()
    violations: tuple[str, ...] = ()
    unresolved: tuple[str, ...] = ()


_FORK_BOMB = re.compile(r"([\w:.]{1,32})\s{0,8}\(\)\s{0,8}\{\s{0,8}\1\s{0,8}\|\s{0,8}\1\s{0,8}&")
_SOCKET = re.compile(r"/dev/(?:tcp|udp)/")
_SPLICED = re.compile(r"[\w./-]+(?:\\\w|'\w*'|\"\w*\")|(?:'\w*'|\"\w*\")\w")
_SEPARATOR_VARIABLE = re.compile(r"\$\{?IFS\b")
_VERSION = re.compile(r"[\d.]+\Z")
_SYSTEM_DIRECTORIES = frozenset({"/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin"})
_SHELL_OPTIONS_WITH_VALUE = frozenset({"-o", "+o", "-O", "+O", "--rcfile", "--init-file"})
_SED_PRINT = re.compile(r"\d{1,9}(?:,(?:\d{1,9}|\$))?p")


def findings(command: str) -> ShellFindings:
    """Effects, violations and what is left unresolved of one command line; it never raises."""
    if len(command) > MAX_LENGTH:
        return _unresolved(f"the command is longer than {MAX_LENGTH} characters")
    if not command.strip():
        return _unresolved("the command is empty")
    if not command.isprintable() and any(not (each.isprintable() or each in "\n\t") for each in command):
        return _unresolved("the command holds invisible characters")
    line = cut(command)
    effects: list[Effect] = []
    reasons = _joints(line.segments)
    for segment in line.segments:
        found = _segment_findings(segment)
        effects += found.effects
        reasons += found.unresolved
    violations = _violations(command, line.segments, line.substitutes)
    if violations and not reasons:
        reasons.append("what is run is decided while it runs")
    return _together(effects, violations, reasons)


def _unresolved(reason: str) -> ShellFindings:
    return _together([], [], [reason])


def _together(effects: list[Effect], violations: list[str], reasons: list[str]) -> ShellFindings:
    unresolved = tuple(dict.fromkeys(reasons))
    effects = [*effects, *_secrets_touched(effects)]
    if unresolved:
        effects = [*effects, Effect(EffectKind.UNRESOLVED, unresolved[0])]
    return ShellFindings(tuple(dict.fromkeys(effects)), tuple(dict.fromkeys(violations)), unresolved)


def _secrets_touched(effects: list[Effect]) -> list[Effect]:
    files = dict.fromkeys(effect.target for effect in effects if effect.kind in _ON_FILES)
    return [Effect(EffectKind.SECRET, target) for target in files if resolve(target, None).sensitive]


_ON_FILES = frozenset({EffectKind.READ, EffectKind.WRITE, EffectKind.DELETE})


def _joints(segments: list[Segment]) -> list[str]:
    reasons = []
    if any(each.joint.strip() for each in segments) or len(segments) != 1:
        reasons.append("several commands are joined")
    if any(each.redirections for each in segments):
        reasons.append("input or output is redirected")
    return reasons


def _violations(command: str, segments: list[Segment], substitutes: bool) -> list[str]:
    found: list[str] = [Violation.SUBSTITUTION] if substitutes else []
    if "{" in command and _FORK_BOMB.search(command):
        found.append(Violation.FORK_BOMB)
    if _SOCKET.search(command):
        found.append(Violation.REVERSE_SHELL)
    if "IFS" in command and _SEPARATOR_VARIABLE.search(command):
        found.append(Violation.OBFUSCATED)
    source: Violation = Violation.PIPED_TO_SHELL
    for segment in segments:
        if segment.joint not in ("|", "|&"):
            source = Violation.PIPED_TO_SHELL
        found += _segment_violations(segment, source)
        source = _source(segment, source)
    return found


def _source(segment: Segment, before: Violation) -> Violation:
    """How the output of this segment would be called if a shell ran it."""
    names = {_name(word) for word in segment.words[:8]}
    if before is Violation.REMOTE_TO_SHELL or names & programs.DOWNLOADERS:
        return Violation.REMOTE_TO_SHELL
    if before is Violation.DECODED_TO_SHELL or names & programs.DECODERS:
        return Violation.DECODED_TO_SHELL
    return Violation.PIPED_TO_SHELL


def _segment_violations(segment: Segment, source: Violation) -> list[str]:
    if not segment.words:
        return []
    found: list[str] = []
    first = segment.words[0]
    if _SPLICED.match(first.raw) or first.raw.startswith("$'"):
        found.append(Violation.OBFUSCATED)
    if first.text == "eval":
        found.append(Violation.INLINE_CODE)
    if _name(first) in ("nc", "ncat", "netcat") and any(_is_execute_option(word.text) for word in segment.words):
        found.append(Violation.REVERSE_SHELL)
    runner = _runner(segment.words)
    if runner:
        found += _runner_violations(runner, segment, source)
    return found


def _is_execute_option(text: str) -> bool:
    return text in ("--exec", "--sh-exec") or (text.startswith("-") and not text.startswith("--") and "e" in text)


def _runner(words: list[Word]) -> list[Word]:
    """The words from the shell or interpreter on that this command starts, wrappers skipped."""
    if _is_runner(words[0]):
        return words
    if _name(words[0]) not in programs.WRAPPERS and "=" not in words[0].text:
        return []
    return next((words[at:] for at, word in enumerate(words) if _is_runner(word)), [])


def _is_runner(word: Word) -> bool:
    return _VERSION.sub("", _name(word)) in programs.INTERPRETERS


def _runner_violations(runner: list[Word], segment: Segment, source: Violation) -> list[str]:
    inline = programs.INTERPRETERS[_VERSION.sub("", _name(runner[0]))]
    arguments = iter(runner[1:])
    for word in arguments:
        if inline.fullmatch(word.text):
            return [Violation.INLINE_CODE]
        if word.text in _SHELL_OPTIONS_WITH_VALUE:
            next(arguments, None)
        elif word.text in ("-m", "-n") or not word.text.startswith(("-", "+")):
            return []
    if segment.joint in ("|", "|&") or any("<" in each for each in segment.redirections):
        return [_fed_by(segment, source)]
    return []


def _fed_by(segment: Segment, source: Violation) -> Violation:
    return source if segment.joint in ("|", "|&") else Violation.PIPED_TO_SHELL


def _name(word: Word) -> str:
    return word.text.rpartition("/")[2]


def _segment_findings(segment: Segment) -> ShellFindings:
    words = segment.words
    own = next((at for at, word in enumerate(words) if _name(word) not in programs.RAISERS), len(words))
    inner = _command_findings(words[own:])
    if not own:
        return inner
    raised = Effect(EffectKind.ADMIN, " ".join(word.text for word in words[:MAX_TARGET])[:MAX_TARGET])
    return ShellFindings((raised, *inner.effects), unresolved=inner.unresolved)


def _command_findings(words: list[Word]) -> ShellFindings:
    if not words:
        return ShellFindings()
    unclear = next((word for word in words if not word.clear), None)
    if unclear is not None:
        return ShellFindings(unresolved=(f"`{unclear.raw[:64]}` depends on the shell that reads it",))
    name = _name(words[0])
    if words[0].text != name and words[0].text.rpartition("/")[0] not in _SYSTEM_DIRECTORIES:
        return ShellFindings(unresolved=(f"`{words[0].text[:64]}` is not a known program",))
    return _program_findings(name, [word.text for word in words[1:]])


def _program_findings(name: str, arguments: list[str]) -> ShellFindings:
    if name in programs.ADMINISTRATION or name.startswith("mkfs."):
        return ShellFindings((Effect(EffectKind.ADMIN, " ".join((name, *arguments))[:MAX_TARGET]),))
    special = _SPECIAL.get(name)
    if special is not None:
        return special(arguments)
    program = programs.READERS.get(name) or programs.CHANGERS.get(name)
    if program is None:
        return ShellFindings(unresolved=(f"`{name[:64]}` is not a known program",))
    return _operand_findings(name, program, arguments)


def _operand_findings(name: str, program: Program, arguments: list[str]) -> ShellFindings:
    operands, strange = _operands(program, arguments)
    unresolved = [f"`{strange[:64]}` is not a known option of `{name}`"] if strange else []
    if len(operands) < program.least or (program.most is not None and len(operands) > program.most):
        unresolved.append(f"`{name}` with {len(operands)} operands is not known")
    pattern_given = any(argument.startswith(("-e", "--regexp")) for argument in arguments)
    targets = operands[1:] if program.text_first and not pattern_given else operands
    targets = targets or ([program.default] if program.default else [])
    effects = [] if program.effect is None else [Effect(program.effect, each) for each in targets if each != "-"]
    if program.last and effects:
        effects[-1] = Effect(program.last, effects[-1].target)
    return ShellFindings(tuple(effects), unresolved=tuple(unresolved))


def _operands(program: Program, arguments: list[str]) -> tuple[list[str], str]:
    """The operands, and the first option that is not in the table."""
    operands: list[str] = []
    strange = ""
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            operands += rest
        elif argument == "-" or not argument.startswith("-"):
            operands.append(argument)
        elif argument.startswith("--"):
            strange = strange or ("" if f" {argument.partition('=')[0]} " in program.words else argument)
        elif not _is_known_cluster(program, argument[1:]):
            strange = strange or argument
        elif argument[-1] in program.valued and not any(each in program.valued for each in argument[1:-1]):
            next(rest, None)
    return operands, strange


def _is_known_cluster(program: Program, letters: str) -> bool:
    for letter in letters:
        if letter in program.valued:
            return True
        if letter not in program.flags:
            return False
    return True


def _find(arguments: list[str]) -> ShellFindings:
    first_test = next((at for at, each in enumerate(arguments) if each.startswith(("-", "("))), len(arguments))
    effects = tuple(Effect(EffectKind.READ, each) for each in arguments[:first_test] or ["."])
    rest = iter(arguments[first_test:])
    for argument in rest:
        if argument in programs.FIND_VALUED:
            next(rest, None)
        elif argument not in programs.FIND_FLAGS:
            return ShellFindings(effects, unresolved=(f"`{argument[:64]}` is not a known test of `find`",))
    return ShellFindings(effects)


def _sed(arguments: list[str]) -> ShellFindings:
    """Printing lines by number is all that is known: the language of sed can write and execute."""
    if len(arguments) >= 2 and arguments[0] == "-n" and _SED_PRINT.fullmatch(arguments[1]):
        files = [each for each in arguments[2:] if each != "-"]
        if not any(each.startswith("-") for each in files):
            return ShellFindings(tuple(Effect(EffectKind.READ, each) for each in files))
    return ShellFindings(unresolved=("a `sed` script may write files or run programs",))


def _date(arguments: list[str]) -> ShellFindings:
    if all(each in ("-u", "-R", "--utc", "-I", "-Iseconds") or each.startswith("+") for each in arguments):
        return ShellFindings()
    return ShellFindings(unresolved=("`date` may set the clock",))


def _ps(arguments: list[str]) -> ShellFindings:
    if all(each in programs.PS_LISTINGS for each in arguments):
        return ShellFindings()
    return ShellFindings(unresolved=("`ps` may show the environment of other processes",))


def _curl(arguments: list[str]) -> ShellFindings:
    effects: list[Effect] = []
    unresolved: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument in programs.CURL_OUTPUT:
            effects.append(Effect(EffectKind.WRITE, next(rest, "")))
        elif argument in programs.CURL_DATA or argument in programs.CURL_VALUED:
            if next(rest, "@").startswith("@"):
                unresolved.append("`curl` sends a file or reads one")
        elif not argument.startswith("-"):
            effects.append(_request(argument))
        elif argument not in programs.CURL_FLAGS:
            unresolved.append(f"`{argument[:64]}` is not a known option of `curl`")
    if not any(effect.kind is EffectKind.NETWORK for effect in effects):
        unresolved.append("`curl` without an http address is not known")
    return ShellFindings(tuple(effects), unresolved=tuple(unresolved))


def _request(address: str) -> Effect:
    scheme, separator, _ = address.partition("://")
    if separator and scheme.lower() not in ("http", "https"):
        return Effect(EffectKind.UNRESOLVED, address)
    return Effect(EffectKind.NETWORK, address)


def _wget(arguments: list[str]) -> ShellFindings:
    addresses = [each for each in arguments if not each.startswith("-")]
    effects = [_request(each) for each in addresses]
    if all(each in ("-q", "-nv", "--quiet", "--spider") for each in arguments if each.startswith("-")) and addresses:
        kept = () if "--spider" in arguments else (Effect(EffectKind.WRITE, "."),)
        return ShellFindings((*effects, *kept))
    return ShellFindings(tuple(effects), unresolved=("an option of `wget` may write files or run programs",))


_SPECIAL = {"find": _find, "sed": _sed, "date": _date, "ps": _ps, "curl": _curl, "wget": _wget}
