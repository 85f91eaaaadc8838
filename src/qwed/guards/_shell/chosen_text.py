"""Whether a command that lists names can print text which its own arguments choose, such as `date +.env`."""

import itertools
import re
from collections.abc import Sequence

from qwed.guards._shell.command_model import Word

_FIELD = r"%[-_0^#:]*[A-Za-z]"
_DATE = re.compile(rf"(?:[^+].*|\+{_FIELD}(?:[-_:.TZ ]*{_FIELD})*Z?)", re.DOTALL)
_STAT = re.compile(r"%[A-Za-z](?: %[A-Za-z])*")
_PRINTF = re.compile(r"(?:%[-\d.]*(?:[pPfhdsyYugmnilktbDFGHMSUZ]|[TAC][@YmdHMSFT+])|\\[nt0]|[ \t])*")
_LITERAL_OPTION = re.compile(r"--(?:time-style|timefmt|format|path-separator|line-prefix|output-separator|hyperlink).*")
_PLAIN_REVISION = r"HEAD[\w~^]*|@(?:\{u(?:pstream)?\})?|[A-Za-z]\w*"
_GIT_FORMATS = r"--(?:format|pretty)=(?:t?format:)?%(?:H|h|T|t|P|p|ct|at|cI|aI|cs|as|cr|ar)"
_GIT_FORMS = {
    "ls-files": re.compile(r"(?!.*--(?:format|eol))(?:.*)"),
    "diff": re.compile(r"(?!.*--(?:line-prefix|no-index|output-indicator)).*--name-only.*"),
    "status": re.compile(r"(?!.*--column).*"),
    "branch": re.compile(r"(?!.*--(?:form(?!at=%\(refname(?::short)?\)(?: |\Z))|col|edit)).*"),
    "tag": re.compile(r"(?!.*--(?:form|col)).*"),
    "describe": re.compile(r"(?!.*--(?:dirty|broken)=).*"),
    "log": re.compile(rf"(?:-1|-n ?\d+|--max-count=\d+|{_GIT_FORMATS}|{_PLAIN_REVISION}| )+"),
    "rev-list": re.compile(r"(?!.*--(?:form|pretty|header)).*"),
    "merge-base": re.compile(r".*"),
    "remote": re.compile(r"(?:-v|get-url \w+)?"),
    "rev-parse": re.compile(
        rf"(?:--(?:show-toplevel|git-dir|git-common-dir|show-prefix|show-cdup|is-[\w-]+|short(?:=\d+)?|verify|quiet"
        rf"|abbrev-ref|symbolic-full-name)|-q|{_PLAIN_REVISION}| )+"
    ),
}
"""Arguments of git with which it prints nothing but names of files, branches and revisions."""
_FORMS = {
    "mktemp": re.compile(r"(?:-d|-q| )*"),
    "ps": re.compile(r"(?!)"),
    "expr": re.compile(r"(?!)"),
    "seq": re.compile(r"(?:-w )?-?\d+(?: -?\d+){0,2}"),
    "pgrep": re.compile(r"(?:-[fnoxiuv]+ )*[\w./-]+"),
    "pidof": re.compile(r"(?:-[scnqxz]+ )*[\w./-]+"),
    "tput": re.compile(r"cols|lines|colors"),
    "test": re.compile(r"(?!)"),
}


def prints_only_names(name: str, arguments: Sequence[Word]) -> bool:
    """Return True if no argument of a listing command chooses the text that it prints."""
    texts = [word.text for word in arguments]
    form = _FORMS.get(name)
    if form is not None:
        return form.fullmatch(" ".join(texts)) is not None
    if name == "date":
        return all(_DATE.fullmatch(text) for text in texts if text.startswith("+"))
    if name == "stat":
        return _has_plain_format(texts)
    if name == "find":
        return "-fprintf" not in texts and all(_PRINTF.fullmatch(text) for text in _values_after(texts, "-printf"))
    if name == "git":
        return _prints_git_names(texts)
    return not any(_LITERAL_OPTION.match(text) for text in texts)


def _values_after(texts: Sequence[str], option: str) -> list[str]:
    return [value for text, value in itertools.pairwise(texts) if text == option]


def _has_plain_format(texts: Sequence[str]) -> bool:
    """Return True if stat prints fields only; `%n` is its operand."""
    attached = [text[2:] for text in texts if text.startswith("-c") and len(text) > 2]
    attached += [text.partition("=")[2] for text in texts if text.startswith(("--format=", "--printf="))]
    values = [*attached, *_values_after(texts, "-c"), *_values_after(texts, "--format")]
    return bool(values) and all(_STAT.fullmatch(value) for value in values)


def _prints_git_names(texts: Sequence[str]) -> bool:
    verb = next((index for index, text in enumerate(texts) if not text.startswith("-")), len(texts))
    form = _GIT_FORMS.get(texts[verb]) if verb < len(texts) else None
    return form is not None and form.fullmatch(" ".join(texts[verb + 1 :])) is not None
