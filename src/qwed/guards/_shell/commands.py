"""One command, by its words: whose rules it falls under, and what is wrong with its name alone."""

from qwed.guards._shell import (
    builtins,
    databases,
    files,
    find,
    git,
    interpreters,
    network,
    programs,
    remote,
    runners,
    text,
    tools,
    wrappers,
)
from qwed.guards._shell.model import Call, Feed, Look, Violation, Word, joined, names_in
from qwed.guards._shell.options import Rule, judge_operands
from qwed.guards._shell.spelling import in_full_words
from qwed.guards._shell.windows import is_windows_name, judge_windows
from qwed.words import EffectKind
from qwed.words.normal import normalize

_SYSTEM_DIRECTORIES = frozenset(
    {"/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin"}
)
_SPEAKS_OF_ITSELF = frozenset({"--version", "--help", "-version", "-V"})
_VERSION_BY_LETTER = names_in(
    "mvn gradle gcc g++ cc clang clang++ make tsc dotnet jest mocha hugo ansible sbt scala ghc cmake"
)
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-[:!")

RULES: dict[str, Rule] = {
    **tools.RULES,
    **files.RULES,
    **text.RULES,
    **network.RULES,
    **remote.RULES,
    **databases.RULES,
    **git.RULES,
    **interpreters.RULES,
    **builtins.RULES,
    **wrappers.RULES,
    **find.RULES,
}
"""The later room wins where two know a name."""


def judge(look: Look, words: list[Word], fed: Feed) -> None:
    """Report what one command does."""
    name = _name(look, words)
    if not name:
        return
    call = Call(name, in_full_words(name, words[1:]), fed)
    look.report.programs[name] = None
    if len(call.arguments) == 1 and _speaks_of_itself(name, call.texts[0]):
        return
    if not _is_only_text(name):
        _require_settled(look, call.arguments)
    rule = RULES.get(name, _by_table)
    rule(look, call)


def _by_table(look: Look, call: Call) -> None:
    """A program without a rule of its own."""
    name = call.name
    if name in programs.PROGRAMS:
        judge_operands(look, name, programs.PROGRAMS[name], call.arguments)
    elif name in runners.ADMINISTRATION or name.startswith("mkfs."):
        look.report.effect(EffectKind.ADMIN, call.line)
    elif name in runners.RUNNERS:
        look.report.effect(EffectKind.EXECUTE, call.line)
    elif is_windows_name(name):
        judge_windows(call.line, look)
    else:
        look.report.unclear(f"`{name[:64]}` is not a known program")


def _is_only_text(name: str) -> bool:
    """Whether no word behind the name can make it do something else."""
    program = programs.PROGRAMS.get(name)
    talks = program is not None and program.effect is None and not (program.reads or program.writes or program.runs)
    return name in builtins.RULES or talks


def _require_settled(look: Look, arguments: list[Word]) -> None:
    """An option, or a name with a hole in it, may become anything."""
    for word in arguments:
        if not word.settled and (word.is_option or word.spliced):
            look.report.unclear(f"`{word.text[:64]}` is decided while it runs")


def _speaks_of_itself(name: str, option: str) -> bool:
    if option in ("-v", "--info", "version"):
        return name in _VERSION_BY_LETTER
    return option in _SPEAKS_OF_ITSELF and _is_known(name)


def _is_known(name: str) -> bool:
    known = name in programs.PROGRAMS or name in runners.RUNNERS or name in runners.ADMINISTRATION
    return known or (name in RULES and name not in builtins.RULES)


def _name(look: Look, words: list[Word]) -> str:
    """The plain name of the program, or nothing where it has been dealt with."""
    word = words[0]
    if word.spliced:
        look.report.violate(Violation.OBFUSCATED)
    if word.origin is not None:
        look.report.violate(word.origin)
    if not word.known:
        return _unknown_name(look, word, words)
    folder, _, name = word.text.rpartition("/")
    if folder and folder not in _SYSTEM_DIRECTORIES:
        look.report.programs[name] = None
        look.report.effect(EffectKind.EXECUTE, joined(words))
        return ""
    name = name.removesuffix(".exe")
    if not _LETTERS.issuperset(name) and normalize("NFKD", name).isascii() and not name.isascii():
        look.report.violate(Violation.OBFUSCATED)
    if not name:
        look.report.unclear("the name of the program is empty")
    return name


def _unknown_name(look: Look, word: Word, words: list[Word]) -> str:
    if word.text.startswith("~") and not any(each in word.text for each in "*?[$"):
        look.report.effect(EffectKind.EXECUTE, joined(words))
    elif word.pattern and not word.built:
        look.report.violate(Violation.OBFUSCATED)
    elif "/" in word.text and not word.spliced and word.origin is None:
        look.report.effect(EffectKind.EXECUTE, joined(words))
        look.report.unclear(f"`{word.text[:64]}` is decided while it runs")
    else:
        look.report.unclear(f"`{word.text[:64]}` is decided while it runs")
    return ""
