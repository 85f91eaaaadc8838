"""Parser of what precedes a citation: a signal and the names of the parties."""

import re
from typing import NamedTuple

_SIGNALS = (
    "See generally, e.g.,|See, e.g.,|See generally|See also|But see, e.g.,|But see|But cf.|See e.g.,|E.g.,|Cf. also|Cf."
    "|Accord|Contra|Compare|See,|See|Citing|Quoting|In|cf.|see also|see, e.g.,|see"
)
_VERSUS = re.compile(r" (?:v\.?|vs\.?|V\.|against|-v-) ")
_SINGLE = re.compile(
    r"(?:In re|IN RE|In Re|In the [Mm]atter of|Matter of|Ex parte|Ex Parte|Ex rel\.|Estate of|Application of"
    r"|Petition of|Re|Succession of|Marriage of|In [Mm]arriage of|Guardianship of|Adoption of|Conservatorship of"
    r"|Interest of|State ex rel\.) "
)
_NAMED = re.compile(r"(?:The )?[A-Z][^\s]{0,40}(?: [A-Za-z0-9&'.()/-]{1,40}){0,9}")
_CITATION_SHAPE = re.compile(
    r"(?<![\w.])(?!No\. )[0-9]{1,4} [A-Z][A-Za-z.]{0,12}(?: ?[A-Z0-9][A-Za-z.]{0,8}){0,3} [0-9]{1,5}(?![\w/])"
)
_ALLOWED = re.compile(r"""[\w .,'&()\[\]/#$"!:;+@%*-]{1,400}""")
_DOCKET = re.compile(
    r",? (?:No|Nos|Case No|Civ\. No|Civ\. A\. No|Civil Action No|Docket No|Dkt\. No|Crim\. No|"
    r"C\.A\. No|Cause No)\.? [A-Za-z0-9][A-Za-z0-9:.()/& -]{0,60}(?:, [A-Z0-9][A-Za-z0-9:.()"
    r"/-]{1,30}){0,3}$"
)


class Caption(NamedTuple):
    """Signal and parties; `issue` describes a defect."""

    signal: str | None
    parties: str | None
    docket: str | None = None
    year: int | None = None
    issue: str | None = None


def parse_caption(text: str) -> Caption | None:
    """Parse the text before the citation, or return None if it is not a caption."""
    signal, rest = _split_signal(text.strip())
    rest, year = _split_year(rest.rstrip(", ").removesuffix(" in"))
    docket = _DOCKET.search(rest)
    if docket:
        rest = rest[: docket.start()]
    rest = rest.rstrip(", ")
    if not rest:
        return Caption(signal, None, docket and docket[0].strip(" ,"), year)
    if not _ALLOWED.fullmatch(rest) or _CITATION_SHAPE.search(rest):
        return None
    return _check_parties(
        Caption(signal, rest, docket and docket[0].strip(" ,"), year), comma=text.rstrip().endswith((",", ")", "]"))
    )


def _split_signal(text: str) -> tuple[str | None, str]:
    for signal in _SIGNALS.split("|"):
        rest = text[len(signal) :]
        if text == signal or (text.startswith(signal + " ") and not (signal == "In" and _SINGLE.match(text))):
            return signal.rstrip(","), rest.strip()
    return None, text


def _split_year(text: str) -> tuple[str, int | None]:
    """Split off the year behind the parties, as California and others write it."""
    match = re.search(r" [(\[]([0-9]{4})[)\]]$", text)
    return (text[: match.start()], int(match[1])) if match else (text, None)


def _check_parties(caption: Caption, comma: bool) -> Caption | None:
    parties = caption.parties or ""
    if re.match(r"(?:v\.?|vs\.?) ", parties) or re.search(r" (?:v\.?|vs\.?)$", parties):
        return caption._replace(issue="one of the parties has no name")
    sides = _VERSUS.split(parties, maxsplit=1)
    if len(sides) == 2:
        return (
            caption
            if all(re.search(r"\w", side) for side in sides)
            else caption._replace(issue="one of the parties has no name")
        )
    if _SINGLE.match(parties):
        return caption
    return caption if comma and _NAMED.fullmatch(parties) else None
