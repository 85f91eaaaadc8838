"""Programs on text with languages or escapes of their own: awk, sed, jq, pagers, editors, listings."""

import re

from qwed.guards._shell import scripts
from qwed.guards._shell.model import Call, Look, Source, Violation, Word, names_in
from qwed.guards._shell.options import Program, Rule, judge_parsed, parsed, values_of
from qwed.guards._shell.programs import PROGRAMS
from qwed.guards.files import is_secret
from qwed.words import EffectKind

_AWK = Program(
    flags="bcCghIklnOPrsStvV",
    valued="Fv",
    words=names_in("--posix --csv --lint --re-interval --version --help --traditional --sandbox"),
    long_valued=names_in("--field-separator --assign"),
)
_AWK_FILES = ("-f", "--file", "-E", "--exec", "-i", "-l", "--load", "-D", "-d", "-o", "-p")


def _awk(look: Look, call: Call) -> None:
    if any(word.text.startswith(_AWK_FILES) for word in _before_script(call.arguments)):
        look.report.effect(EffectKind.EXECUTE, call.line)
        return
    found = parsed(_AWK, call.arguments)
    if found.strange:
        look.report.unclear(f"`{found.strange[:64]}` is not a known option of `{call.name}`")
    for at, word in enumerate(found.operands):
        if at == 0:
            _small_script(look, word, "awk")
        elif not re.match(r"[A-Za-z_]\w*=", word.text):
            look.file(EffectKind.READ, word)


def _before_script(arguments: list[Word]) -> list[Word]:
    end = next((at for at, word in enumerate(arguments) if " " in word.text or "{" in word.text), len(arguments))
    return [word for word in arguments[:end] if word.is_option]


def _small_script(look: Look, word: Word, language: str) -> None:
    if not word.settled:
        # Text inserted into a script cannot be told from a call.
        look.report.unclear(f"a script of `{language}` is decided while it runs")
    deeds = scripts.awk(word.text) if language == "awk" else scripts.sed(word.text)
    if deeds.runs:
        look.report.violate(Violation.ESCAPE)
        look.report.effect(EffectKind.EXECUTE, word.text)
    if deeds.secret:
        look.report.effect(EffectKind.SECRET, "environment")
    if deeds.unclear:
        look.report.unclear(f"a script of `{language}` cannot be read")
    for kind, names in ((EffectKind.WRITE, deeds.writes), (EffectKind.READ, deeds.reads)):
        for name in names:
            look.file(kind, Word(name))


_SED = Program(
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


def _sed(look: Look, call: Call) -> None:
    if any(text.startswith(("-f", "--file")) for text in call.texts):
        look.report.effect(EffectKind.EXECUTE, call.line)
        return
    in_place = any(_IN_PLACE.match(text) for text in call.texts)
    found = parsed(_SED, [kept for word in call.arguments if (kept := _without_in_place(word)).text != "-"])
    if found.strange:
        look.report.unclear(f"`{found.strange[:64]}` is not a known option of `{call.name}`")
    given = [value for option, value in found.options if option in ("-e", "--expression") and value]
    operands = [word for word in found.operands if word.text]
    for piece in given or operands[:1]:
        _small_script(look, piece, "sed")
    for word in operands if given else operands[1:]:
        look.file(EffectKind.WRITE if in_place else EffectKind.READ, word)


def _without_in_place(word: Word) -> Word:
    """`-i`, `-i.bak` and `-ni` without the in-place part, so that what is left is told apart as usual."""
    match = _IN_PLACE.match(word.text)
    return word._replace(text=f"-{match[1] or ''}") if match else word


def _grep(look: Look, call: Call) -> None:
    found = parsed(PROGRAMS["grep"], call.arguments)
    judge_parsed(look, call.name, PROGRAMS["grep"], found)
    recursive = found.has("-r", "-R", "--recursive", "--dereference-recursive")
    targets = found.operands if found.has("-e", "-f") else found.operands[1:]
    for word in targets if recursive else ():
        look.tree(word)
    if recursive and not targets:
        look.file(EffectKind.READ, Word("."))


_PAGER_RUNS = re.compile(r"\+|-[A-Za-z]*[oOkPt]|--(?:log-file|LOG-FILE|lesskey|prompt|pager|html|tag)")
_PAGER_JUMPS = re.compile(r"\+(?:\d+|G|F)\Z")


def _pager(look: Look, call: Call) -> None:
    for word in call.arguments:
        if not (word.is_option or word.text.startswith("+")):
            look.file(EffectKind.READ, word)
        elif _PAGER_RUNS.match(word.text) and not _PAGER_JUMPS.match(word.text):
            look.report.violate(Violation.ESCAPE)


_MAN_RUNS = ("-P", "--pager", "-H", "--html", "-C", "--config-file", "-M", "-l", "-X", "--gxditview", "--preprocessor")


def _man(look: Look, call: Call) -> None:
    if any(text.startswith(_MAN_RUNS) for text in call.texts):
        look.report.violate(Violation.ESCAPE)


_EDITORS = names_in(
    """
    vi vim nvim view vimdiff rvim nano pico emacs ed ex red joe micro code subl gedit kate hx
    """
)
_EDITOR_RUNS = re.compile(r"(?:--?(?:c|cmd|es|S|command|eval|e|s|u|rcfile|batch|script)\b|-[a-zA-Z]*[cSsu]|\+.*[!:(])")


def _editor(look: Look, call: Call) -> None:
    if any(_EDITOR_RUNS.match(text) for text in call.texts) or call.fed.source is not Source.NOTHING:
        look.report.violate(Violation.ESCAPE)
    look.report.effect(EffectKind.EXECUTE, call.line)
    for word in call.operands:
        if not word.text.startswith("+"):
            look.file(EffectKind.WRITE, word)


_JQ = Program(
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


def _jq(look: Look, call: Call) -> None:
    kept: list[Word] = []
    rest = iter(call.arguments)
    for word in rest:
        if word.text in ("--slurpfile", "--rawfile"):
            next(rest, None)
            look.file(EffectKind.READ, next(rest, Word("")))
        elif word.text in _JQ_TAKES:
            for _ in range(_JQ_TAKES[word.text]):
                next(rest, None)
        else:
            kept.append(word)
    found = parsed(_JQ, kept)
    if found.operands and _JQ_ENVIRONMENT.search(found.operands[0].text):
        look.report.effect(EffectKind.SECRET, "environment")
    judge_parsed(look, call.name, _JQ, found)


def _yq(look: Look, call: Call) -> None:
    in_place = bool({"-i", "--inplace"} & set(call.texts))
    if values_of(call.arguments, ("-s", "--split-exp", "--split-exp-file")):
        look.file(EffectKind.WRITE, Word("."))
    words = call.operands
    if words and words[0].text in ("eval", "e", "ea", "eval-all"):
        words = words[1:]
    if words and re.search(r"\benv\(|strenv|load", words[0].text):
        look.report.effect(EffectKind.SECRET, "environment")
    for word in words[1:]:
        look.file(EffectKind.WRITE if in_place else EffectKind.READ, word)


_DATE_ASKS = re.compile(r"\+|-u|-R|-I|--utc|--iso-8601|--rfc|--universal|--date=|-d|-v|-n\Z|@")


def _date(look: Look, call: Call) -> None:
    rest = iter(call.arguments)
    for word in rest:
        if word.text in ("-d", "--date", "-v", "-j", "-z"):
            next(rest, None)
        elif word.text in ("-r", "--reference", "-f", "--file"):
            look.file(EffectKind.READ, next(rest, Word("")))
        elif not _DATE_ASKS.match(word.text) and word.known:
            look.report.effect(EffectKind.ADMIN, call.line)


def _ps(look: Look, call: Call) -> None:
    """A bare `e` among the letters, as in `ps auxe`, shows the environment of every process."""
    first = call.texts[0] if call.texts else ""
    if ("e" in first and first.isalpha()) or any(re.fullmatch(r"-[A-Za-z]*E|.*environ.*", text) for text in call.texts):
        look.report.effect(EffectKind.SECRET, "environment")


def _cat(look: Look, call: Call) -> None:
    for word in parsed(PROGRAMS["tac"], call.arguments).operands:
        look.file(EffectKind.READ, word)
        if word.text == "/dev/zero":
            look.report.unclear(f"`{word.text}` never ends")


_UNTRUSTED = frozenset({Source.UNKNOWN, Source.REMOTE, Source.DECODED})


def _dc(look: Look, call: Call) -> None:
    texts = [*call.texts, call.fed.text]
    if any("!" in text for text in texts) or call.fed.source in _UNTRUSTED:
        look.report.violate(Violation.ESCAPE)


def _locate(look: Look, call: Call) -> None:
    for word in call.operands:
        if is_secret(word.text.strip("*")):
            look.report.effect(EffectKind.SECRET, word.text)


def _fd(look: Look, call: Call) -> None:
    """`-x` runs a command for what it finds, in the directory it is given."""
    start = call.operands[1] if len(call.operands) > 1 else Word(".")
    look.file(EffectKind.READ, start)
    for place in values_of(call.arguments, ("--base-directory", "--search-path")):
        look.file(EffectKind.READ, place)
    run = next((at for at, text in enumerate(call.texts) if _FD_RUNS.match(text)), -1)
    if run >= 0:
        first = _FD_RUNS.sub("", call.texts[run], count=1)
        inner = [call.arguments[run]._replace(text=first)] if first else []
        look.command([*inner, *call.arguments[run + 1 :], start._replace(known=False, pattern=True, built=True)])


_FD_RUNS = re.compile(r"(?:-[A-Za-z]*?[xX]|--exec(?:-batch)?(?:=|\Z))")


def _escapes(look: Look, call: Call) -> None:
    """Programs with a language that runs others: harmless only when asked about themselves."""
    look.report.violate(Violation.ESCAPE)
    look.report.effect(EffectKind.EXECUTE, call.line)


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
