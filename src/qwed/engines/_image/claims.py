"""The sentences about an image that can be decided: a table of patterns, and the look each of them takes."""

import re
from typing import NamedTuple

from qwed.engines._image import looks
from qwed.engines._image.exif import EXIF_CLAIMS
from qwed.engines._image.file import Picture
from qwed.engines._image.looks import Look, on_plain, on_upright
from qwed.engines._image.measures import BYTES, NUMBER, OPERATOR, Finding

MAX_CLAIM = 500
MAX_PARTS = 10

_MEASURE = "width|height|pixel count|number of pixels|megapixels|frame count|number of frames|aspect ratio"
_COLOUR = r"(?P<colour>#[0-9a-f]{3}(?:[0-9a-f]{3})?|rgb\([^)]{5,20}\)|\(\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\)|[a-z]+)"
_PX = r"\s*(?:px|pixels?)?"
_COUNT = rf"(?:(?P<operator>{OPERATOR})\s*)?(?P<number>{NUMBER})\s*"
_KIND = r"(?: (?:image|file|picture|photo|format))?"
_PIXELS = r"(?: of)?(?: (?:the|its|all))*(?: (?:pixels?|image|area|picture))?(?: (?:is|are))? "
_QUOTED = r"[\"'\u201c\u2018](?P<text>[^\"'\u201d\u2019]{1,200})[\"'\u201d\u2019]"

_CLAIMS: tuple[tuple[str, Look], ...] = (
    (
        r"(?:(?:size|dimensions?|resolution)\s*(?:=|:|is|are|of)?\s*)?"
        rf"(?P<width>\d[\d,]{{0,9}}){_PX}\s*(?:x|\u00d7|by|\*)\s*(?P<height>\d[\d,]{{0,9}}){_PX}(?: large| in size)?",
        on_upright(looks.size),
    ),
    (
        rf"(?P<measure>{_MEASURE}|frames|pixels)\s*(?P<operator>{OPERATOR})\s*"
        rf"(?:(?P<number>{NUMBER})\s*(?:px|pixels?|mp|megapixels?|frames?)?|(?:the |its )?(?P<other>{_MEASURE}))",
        on_upright(looks.compare),
    ),
    (
        rf"{_COUNT}(?:px |pixels? )?(?P<measure>wide|high|tall|frames?|megapixels|mp)(?: in (?:all|total))?",
        on_upright(looks.extent),
    ),
    (rf"(?P<measure>wider|taller|higher) than (?P<number>{NUMBER}){_PX}", on_upright(looks.longer)),
    (
        rf"aspect ratio\s*(?P<operator>{OPERATOR})\s*(?P<a>{NUMBER})\s*[:/]\s*(?P<b>[1-9]\d{{0,6}})",
        on_upright(looks.ratio),
    ),
    (
        rf"(?:an? )?(?:in )?landscape(?: orientation)?{_KIND}|wider than (?:it is )?(?:tall|high)",
        on_upright(looks.landscape),
    ),
    (
        rf"(?:an? )?(?:in )?portrait(?: orientation)?{_KIND}|(?:taller|higher) than (?:it is )?wide",
        on_upright(looks.portrait),
    ),
    (rf"(?:an? )?square{_KIND}", looks.square),
    (rf"(?:file ?size|size|file)\s*(?P<operator>{OPERATOR})\s*(?P<number>{NUMBER})\s*{BYTES}", looks.file_size),
    (rf"{_COUNT}{BYTES}(?: (?:large|big|long|in size))?", looks.file_size),
    (r"(?:file )?(?:format|type)\s*(?:=|==|:|is|equals)\s*(?:an? )?(?P<format>[a-z]{3,6})", looks.file_format),
    (
        rf"(?:in |saved as |encoded as )?(?:an? )?\.?(?P<format>png|jpe?g|gif|webp|bmp|tiff?|bitmap){_KIND}",
        looks.file_format,
    ),
    (r"(?:colou?r )?mode\s*(?:=|==|:|is|equals)\s*(?P<mode>[a-z0-9;]{1,6})", looks.mode),
    (r"(?P<mode>rgba?|cmyk|la?|p)(?: colou?r)?(?: mode| image)", looks.mode),
    (r"(?P<colour>[a-z]+) is the (?:dominant|main|primary|most (?:common|frequent)) colou?r", on_plain(looks.dominant)),
    (r"(?:an? )?animated(?: (?:image|gif|picture))?|an? animation", looks.animated),
    (rf"(?:an? )?(?:still|static){_KIND}", looks.still),
    (rf"(?:in |an? )*(?:gr[ae]y ?-?scale|gr[ae]y|monochrome){_KIND}", on_plain(looks.gray)),
    (rf"(?:in |an? )*(?:colou?r|coloured|colored){_KIND}", on_plain(looks.coloured)),
    (
        r"(?:any )?(?:transparency|transparent pixels|(?:an? )?transparent (?:background|areas?|parts?))"
        r"|(?:partly |partially )transparent",
        on_plain(looks.transparent),
    ),
    (r"(?:fully |completely )?opaque", on_plain(looks.opaque)),
    (r"(?:an? )?alpha(?: channel)?", looks.alpha),
    (
        r"(?:dominant|main|primary|most (?:common|frequent)) colou?r\s*(?:=|:|is)\s*(?P<colour>[a-z]+)",
        on_plain(looks.dominant),
    ),
    (
        rf"(?:(?P<operator>{OPERATOR})\s*)?(?P<percent>{NUMBER})\s*(?:%|percent){_PIXELS}{_COLOUR}",
        on_plain(looks.share),
    ),
    (
        rf"(?:(?P<operator>{OPERATOR})\s*)?(?P<share>half|a third|a quarter|all){_PIXELS}{_COLOUR}",
        on_plain(looks.share),
    ),
    (
        rf"(?:every|each) pixel is {_COLOUR}|(?:only|all) {_COLOUR.replace('colour', 'only')} pixels",
        on_plain(looks.share),
    ),
    (rf"(?:entirely|completely|fully|purely|solid|solidly) {_COLOUR}", on_plain(looks.share)),
    (rf"(?:mostly|mainly|predominantly|largely) {_COLOUR}", on_plain(looks.mostly)),
    (
        rf"(?:any |some )?{_COLOUR} pixels?|some pixels? (?:is|are) {_COLOUR.replace('colour', 'some')}",
        on_plain(looks.some),
    ),
    (
        r"(?:the )?pixel (?:at )?\(?\s*(?P<x>\d{1,6})\s*,\s*(?P<y>\d{1,6})\s*\)?\s*"
        rf"(?:==?|is|has (?:the )?colou?r)\s*{_COLOUR}",
        on_plain(looks.pixel),
    ),
    (rf"(?:the )?(?:text|words?|phrase) {_QUOTED}|(?:reads|says) {_QUOTED.replace('text', 'read')}", looks.text),
)


class _Row(NamedTuple):
    pattern: re.Pattern[str]
    look: Look


_TABLE = tuple(_Row(re.compile(pattern, re.IGNORECASE), look) for pattern, look in (*_CLAIMS, *EXIF_CLAIMS))

_SUBJECT = re.compile(
    r"(?:(?:the|this|that|an?|my|our|attached|uploaded|given)\s+)*"
    r"(?:(?:image|picture|photo(?:graph)?|file|graphic|screenshot)(?:'s)?|it(?:s|'s)?)\s+(?=\S)|(?:this|that)\s+(?=is|was|has)",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"\A(?:the|its|an?)\s+", re.IGNORECASE)
_OF_IMAGE = re.compile(r"\s+(?:of|in) (?:the|this|that) (?:image|picture|photo|photograph|file)\b", re.IGNORECASE)
_DENIAL = re.compile(
    r"(?:(?:is|are|was) not|isn't|aren't|wasn't|does not (?:have|contain|use)|doesn't (?:have|contain|use)|has no"
    r"|contains no|has not|no|not|without|lacks)\s+(?!more|less|fewer)",
    re.IGNORECASE,
)
_IS_NOT = re.compile(r"\b(is|are|was) not\b", re.IGNORECASE)
_VERB = re.compile(r"(?:is|are|was|has|have|contains?|uses?|there (?:is|are)|measures)\s+", re.IGNORECASE)


_OWN = re.compile(rf"(?:{_DENIAL.pattern})|(?:{_VERB.pattern})|(?:{_SUBJECT.pattern})", re.IGNORECASE)
"""What begins a part of its own: behind a denial, anything else may be denied with it."""


class Reading(NamedTuple):
    """One part of a claim, ready to be looked at."""

    look: Look
    match: re.Match[str]
    denied: bool

    def finding(self, picture: Picture) -> Finding:
        """Whether this part holds."""
        found = self.look(self.match, picture)
        if not self.denied or found.holds is None:
            return found
        return Finding(not found.holds, found.message, found.measured)


def read(claim: str) -> list[Reading] | None:
    """The parts of a claim, all of which must hold; None where any of them is not in the grammar."""
    text = " ".join(claim.split()).rstrip(".! ")
    if not text or len(claim) > MAX_CLAIM:
        return None
    parts = _parts(text)
    readings = [_read(part) for part in parts]
    whole = [reading for reading in readings if reading is not None]
    following = zip(readings, parts[1:], strict=False)
    if any(before is not None and before.denied and not _OWN.match(part) for before, part in following):
        return None
    return whole if len(whole) == len(parts) <= MAX_PARTS else None


def _parts(text: str) -> list[str]:
    """The claim cut at its commas and ands, outside quotation marks and parentheses."""
    return [part for part in _CUTS.sub(lambda match: match[1] or "\n", text).split("\n") if part.strip()]


_CUTS = re.compile(
    r"(\"[^\"]*\"|(?<!\w)'[^']*'|\u201c[^\u201d]*\u201d|\([^()]*\)|\d,\d{3}(?!\d))"
    r"|\s*(?:,\s*and\s|,\s|;\s|\sand\s|\sbut\s)\s*(?:also\s)?",
    re.IGNORECASE,
)


def _read(part: str) -> Reading | None:
    bare = _OF_IMAGE.sub("", part.strip())
    bare = _SUBJECT.sub("", bare, count=1) if _SUBJECT.match(bare) else bare
    for text, denied in _spellings(bare):
        for row in _TABLE:
            if match := row.pattern.fullmatch(text):
                return Reading(row.look, match, denied)
    return None


def _spellings(bare: str) -> list[tuple[str, bool]]:
    """The part with and without its article, its verb and its denial."""
    plain = _ARTICLE.sub("", bare, count=1)
    said = [(bare, False), (plain, False)]
    denial, verb = _DENIAL.match(plain), _VERB.match(plain)
    if denial:
        said.append((_ARTICLE.sub("", plain[denial.end() :], count=1), True))
    elif verb:
        said.append((_ARTICLE.sub("", plain[verb.end() :], count=1), False))
    # The denial of what comes after a subject of its own, as in `dominant colour is not red`.
    return [*said, (_IS_NOT.sub(r"\1", plain, count=1), True)] if _IS_NOT.search(plain) else said
