"""Rules for text tools with a language or escapes of their own: awk, sed, jq, pagers, editors, listings."""

import re

from qwed.guards._shell import awk_sed
from qwed.guards._shell.command_model import CommandCall, DataSource, ShellAnalysis, Violation, Word, names_in
from qwed.guards._shell.options import ProgramSpec, Rule, analyze_parsed, parse_options, values_of
from qwed.guards._shell.programs import PROGRAMS
from qwed.guards.file_effects import is_secret
from qwed.model import EffectKind

_AWK = ProgramSpec(
    flags="bcCghIklnOPrsStvV",
    valued="Fv",
    words=names_in("--posix --csv --lint --re-interval --version --help --traditional --sandbox"),
    long_valued=names_in("--field-separator --assign"),
)
_AWK_FILES = ("-f", "--file", "-E", "--exec", "-i", "-l", "--load", "-D", "-d", "-o", "-p")


def _awk(analysis: ShellAnalysis, call: CommandCall) -> None:
    if any(word.text.startswith(_AWK_FILES) for word in _before_script(call.arguments)):
        analysis.report.add_effect(EffectKind.EXECUTE, call.line)
        return
    options = parse_options(_AWK, call.arguments)
    if options.unknown_option:
        analysis.report.add_unresolved(f"`{options.unknown_option[:64]}` is not a known option of `{call.name}`")
    for index, word in enumerate(options.operands):
        if index == 0:
            _small_script(analysis, word, "awk")
        elif not re.match(r"[A-Za-z_]\w*=", word.text):
            analysis.add_file_effect(EffectKind.READ, word)


def _before_script(arguments: list[Word]) -> list[Word]:
    end = next((index for index, word in enumerate(arguments) if " " in word.text or "{" in word.text), len(arguments))
    return [word for word in arguments[:end] if word.is_option]


def _small_script(analysis: ShellAnalysis, word: Word, language: str) -> None:
    if not word.is_resolved:
        # Text inserted into a script cannot be distinguished from code.
        analysis.report.add_unresolved(f"a script of `{language}` is known only at run time")
    effects = awk_sed.awk_effects(word.text) if language == "awk" else awk_sed.sed_effects(word.text)
    if effects.runs:
        analysis.report.add_violation(Violation.ESCAPE)
        analysis.report.add_effect(EffectKind.EXECUTE, word.text)
    if effects.secret:
        analysis.report.add_effect(EffectKind.SECRET, "environment")
    if effects.unclear:
        analysis.report.add_unresolved(f"a script of `{language}` cannot be parsed")
    for kind, names in ((EffectKind.WRITE, effects.writes), (EffectKind.READ, effects.reads)):
        for name in names:
            analysis.add_file_effect(kind, Word(name))


_SED = ProgramSpec(
    flags="nrEsuzbla",
    valued="el",
    words=names_in(
        """
        --quiet --silent --regexp-extended --posix --debug --separate --unbuffered --null-data --version --help
        --sandbox --follow-symlinks
        """
    ),
    long_valued=names_in("--expression --line-length"),
)
_IN_PLACE = re.compile(r"-([nrEsuz]*)i|--in-place|-I\Z")


def _sed(analysis: ShellAnalysis, call: CommandCall) -> None:
    if any(text.startswith(("-f", "--file")) for text in call.texts):
        analysis.report.add_effect(EffectKind.EXECUTE, call.line)
        return
    in_place = any(_IN_PLACE.match(text) for text in call.texts)
    options = parse_options(
        _SED, [stripped for word in call.arguments if (stripped := _without_in_place(word)).text != "-"]
    )
    if options.unknown_option:
        analysis.report.add_unresolved(f"`{options.unknown_option[:64]}` is not a known option of `{call.name}`")
    expressions = [value for option, value in options.options if option in ("-e", "--expression") and value]
    operands = [word for word in options.operands if word.text]
    for piece in expressions or operands[:1]:
        _small_script(analysis, piece, "sed")
    for word in operands if expressions else operands[1:]:
        analysis.add_file_effect(EffectKind.WRITE if in_place else EffectKind.READ, word)


def _without_in_place(word: Word) -> Word:
    """Remove the in-place part of `-i`, `-i.bak` and `-ni`, so that the rest is parsed as usual."""
    match = _IN_PLACE.match(word.text)
    return word._replace(text=f"-{match[1] or ''}") if match else word


def _grep(analysis: ShellAnalysis, call: CommandCall) -> None:
    options = parse_options(PROGRAMS["grep"], call.arguments)
    analyze_parsed(analysis, call.name, PROGRAMS["grep"], options)
    recursive = options.has("-r", "-R", "--recursive", "--dereference-recursive")
    targets = options.operands if options.has("-e", "-f") else options.operands[1:]
    for word in targets if recursive else ():
        analysis.add_tree_read(word)
    if recursive and not targets:
        analysis.add_file_effect(EffectKind.READ, Word("."))


_PAGER_RUNS = re.compile(r"\+|-[A-Za-z]*[oOkPt]|--(?:log-file|LOG-FILE|lesskey|prompt|pager|html|tag)")
_PAGER_JUMPS = re.compile(r"\+(?:\d+|G|F)\Z")


def _pager(analysis: ShellAnalysis, call: CommandCall) -> None:
    for word in call.arguments:
        if not (word.is_option or word.text.startswith("+")):
            analysis.add_file_effect(EffectKind.READ, word)
        elif _PAGER_RUNS.match(word.text) and not _PAGER_JUMPS.match(word.text):
            analysis.report.add_violation(Violation.ESCAPE)


_MAN_RUNS = ("-P", "--pager", "-H", "--html", "-C", "--config-file", "-M", "-l", "-X", "--gxditview", "--preprocessor")


def _man(analysis: ShellAnalysis, call: CommandCall) -> None:
    if any(text.startswith(_MAN_RUNS) for text in call.texts):
        analysis.report.add_violation(Violation.ESCAPE)


_EDITORS = names_in(
    """
    vi vim nvim view vimdiff rvim nano pico emacs ed ex red joe micro code subl gedit kate hx
    """
)
_EDITOR_RUNS = re.compile(r"(?:--?(?:c|cmd|es|S|command|eval|e|s|u|rcfile|batch|script)\b|-[a-zA-Z]*[cSsu]|\+.*[!:(])")


def _editor(analysis: ShellAnalysis, call: CommandCall) -> None:
    if any(_EDITOR_RUNS.match(text) for text in call.texts) or call.stdin.source is not DataSource.NOTHING:
        analysis.report.add_violation(Violation.ESCAPE)
    analysis.report.add_effect(EffectKind.EXECUTE, call.line)
    for word in call.operands:
        if not word.text.startswith("+"):
            analysis.add_file_effect(EffectKind.WRITE, word)


_JQ = ProgramSpec(
    flags="acCehjMnrRsSV",
    text_first=True,
    words=names_in(
        """
        --raw-output --compact-output --slurp --null-input --exit-status --sort-keys --color-output --monochrome-output
        --tab --join-output --raw-input --args --jsonargs --ascii-output --seq --stream --help --version --raw-output0
        --unbuffered
        """
    ),
    pattern_options=names_in("-f --from-file"),
    reads=names_in("-f --from-file -L"),
)
_JQ_TAKES = {"--arg": 2, "--argjson": 2, "--indent": 1}
_JQ_ENVIRONMENT = re.compile(r"\benv\b(?!\s*:)|\$ENV")


def _jq(analysis: ShellAnalysis, call: CommandCall) -> None:
    remaining: list[Word] = []
    rest = iter(call.arguments)
    for word in rest:
        if word.text in ("--slurpfile", "--rawfile"):
            next(rest, None)
            analysis.add_file_effect(EffectKind.READ, next(rest, Word("")))
        elif word.text in _JQ_TAKES:
            for _ in range(_JQ_TAKES[word.text]):
                next(rest, None)
        else:
            remaining.append(word)
    options = parse_options(_JQ, remaining)
    if options.operands and _JQ_ENVIRONMENT.search(options.operands[0].text):
        analysis.report.add_effect(EffectKind.SECRET, "environment")
    analyze_parsed(analysis, call.name, _JQ, options)


def _yq(analysis: ShellAnalysis, call: CommandCall) -> None:
    in_place = bool({"-i", "--inplace"} & set(call.texts))
    if values_of(call.arguments, ("-s", "--split-exp", "--split-exp-file")):
        analysis.add_file_effect(EffectKind.WRITE, Word("."))
    words = call.operands
    if words and words[0].text in ("eval", "e", "ea", "eval-all"):
        words = words[1:]
    if words and re.search(r"\benv\(|strenv|load", words[0].text):
        analysis.report.add_effect(EffectKind.SECRET, "environment")
    for word in words[1:]:
        analysis.add_file_effect(EffectKind.WRITE if in_place else EffectKind.READ, word)


_DATE_ASKS = re.compile(r"\+|-u|-R|-I|--utc|--iso-8601|--rfc|--universal|--date=|-d|-v|-n\Z|@")


def _date(analysis: ShellAnalysis, call: CommandCall) -> None:
    rest = iter(call.arguments)
    for word in rest:
        if word.text in ("-d", "--date", "-v", "-j", "-z"):
            next(rest, None)
        elif word.text in ("-r", "--reference", "-f", "--file"):
            analysis.add_file_effect(EffectKind.READ, next(rest, Word("")))
        elif not _DATE_ASKS.match(word.text) and word.is_exact:
            analysis.report.add_effect(EffectKind.ADMIN, call.line)


def _ps(analysis: ShellAnalysis, call: CommandCall) -> None:
    """Report that a bare `e` among the letters, as in `ps auxe`, shows the environment of every process."""
    first = call.texts[0] if call.texts else ""
    if ("e" in first and first.isalpha()) or any(re.fullmatch(r"-[A-Za-z]*E|.*environ.*", text) for text in call.texts):
        analysis.report.add_effect(EffectKind.SECRET, "environment")


def _cat(analysis: ShellAnalysis, call: CommandCall) -> None:
    for word in parse_options(PROGRAMS["tac"], call.arguments).operands:
        analysis.add_file_effect(EffectKind.READ, word)
        if word.text == "/dev/zero":
            analysis.report.add_unresolved(f"`{word.text}` never ends")


_UNTRUSTED = frozenset({DataSource.UNKNOWN, DataSource.REMOTE, DataSource.DECODED})


def _dc(analysis: ShellAnalysis, call: CommandCall) -> None:
    texts = [*call.texts, call.stdin.text]
    if any("!" in text for text in texts) or call.stdin.source in _UNTRUSTED:
        analysis.report.add_violation(Violation.ESCAPE)


def _locate(analysis: ShellAnalysis, call: CommandCall) -> None:
    for word in call.operands:
        if is_secret(word.text.strip("*")):
            analysis.report.add_effect(EffectKind.SECRET, word.text)


def _fd(analysis: ShellAnalysis, call: CommandCall) -> None:
    """Analyse fd: `-x` runs a command for each match, below the given directory."""
    start = call.operands[1] if len(call.operands) > 1 else Word(".")
    analysis.add_file_effect(EffectKind.READ, start)
    for directory in values_of(call.arguments, ("--base-directory", "--search-path")):
        analysis.add_file_effect(EffectKind.READ, directory)
    run = next((index for index, text in enumerate(call.texts) if _FD_RUNS.match(text)), -1)
    if run >= 0:
        first = _FD_RUNS.sub("", call.texts[run], count=1)
        inner = [call.arguments[run]._replace(text=first)] if first else []
        analysis.visit_command(
            [*inner, *call.arguments[run + 1 :], start._replace(is_exact=False, pattern=True, is_computed=True)]
        )


_FD_RUNS = re.compile(r"(?:-[A-Za-z]*?[xX]|--exec(?:-batch)?(?:=|\Z))")


def _escapes(analysis: ShellAnalysis, call: CommandCall) -> None:
    """Report programs with a language that can run others; they are harmless only for version queries."""
    analysis.report.add_violation(Violation.ESCAPE)
    analysis.report.add_effect(EffectKind.EXECUTE, call.line)


RULES: dict[str, Rule] = {
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk", "original-awk"), _awk),
    **dict.fromkeys(("sed", "gsed"), _sed),
    **dict.fromkeys(("grep", "egrep", "fgrep"), _grep),
    **dict.fromkeys(("less", "more", "most", "pg", "zmore"), _pager),
    **dict.fromkeys(("man", "info"), _man),
    **dict.fromkeys(_EDITORS, _editor),
    **dict.fromkeys(("jq", "gojq"), _jq),
    "yq": _yq,
    **dict.fromkeys(("date", "gdate"), _date),
    "ps": _ps,
    "cat": _cat,
    "dc": _dc,
    **dict.fromkeys(("locate", "mlocate", "plocate", "mdfind"), _locate),
    **dict.fromkeys(("fd", "fdfind"), _fd),
    **dict.fromkeys(("gdb", "lldb", "zellij", "byobu", "cpan", "run-parts", "cpulimit", "capsh"), _escapes),
}
