"""Claim grammar of the image engine: a table of patterns, each with its check."""

import re
from typing import NamedTuple

from qwed.engines._image import claim_checks
from qwed.engines._image.claim_checks import ClaimCheck, require_plain_colours, require_upright
from qwed.engines._image.exif import EXIF_CLAIMS
from qwed.engines._image.loader import Picture
from qwed.engines._image.measures import BYTES, NUMBER, OPERATOR, ImageFinding

MAX_CLAIM = 500
MAX_PARTS = 10

_MEASURE = "width|height|pixel count|number of pixels|megapixels|frame count|number of frames|aspect ratio"
_COLOUR = r"(?P<colour>#[0-9a-f]{3}(?:[0-9a-f]{3})?|rgb\([^)]{5,20}\)|\(\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\)|[a-z]+)"
_PX = r"\s*(?:px|pixels?)?"
_COUNT = rf"(?:(?P<operator>{OPERATOR})\s*)?(?P<number>{NUMBER})\s*"
_KIND = r"(?: (?:image|file|picture|photo|format))?"
_PIXELS = r"(?: of)?(?: (?:the|its|all))*(?: (?:pixels?|image|area|picture))?(?: (?:is|are))? "
_QUOTED = r"[\"'\u201c\u2018](?P<text>[^\"'\u201d\u2019]{1,200})[\"'\u201d\u2019]"

_CLAIMS: tuple[tuple[str, ClaimCheck], ...] = (
    (
        r"(?:(?:size|dimensions?|resolution)\s*(?:=|:|is|are|of)?\s*)?"
        rf"(?P<width>\d[\d,]{{0,9}}){_PX}\s*(?:x|\u00d7|by|\*)\s*(?P<height>\d[\d,]{{0,9}}){_PX}(?: large| in size)?",
        require_upright(claim_checks.check_size),
    ),
    (
        rf"(?P<measure>{_MEASURE}|frames|pixels)\s*(?P<operator>{OPERATOR})\s*"
        rf"(?:(?P<number>{NUMBER})\s*(?:px|pixels?|mp|megapixels?|frames?)?|(?:the |its )?(?P<other>{_MEASURE}))",
        require_upright(claim_checks.check_comparison),
    ),
    (
        rf"{_COUNT}(?:px |pixels? )?(?P<measure>wide|high|tall|frames?|megapixels|mp)(?: in (?:all|total))?",
        require_upright(claim_checks.check_extent),
    ),
    (
        rf"(?P<measure>wider|taller|higher) than (?P<number>{NUMBER}){_PX}",
        require_upright(claim_checks.check_longer_than),
    ),
    (
        rf"aspect ratio\s*(?P<operator>{OPERATOR})\s*(?P<a>{NUMBER})\s*[:/]\s*(?P<b>[1-9]\d{{0,6}})",
        require_upright(claim_checks.check_aspect_ratio),
    ),
    (
        rf"(?:an? )?(?:in )?landscape(?: orientation)?{_KIND}|wider than (?:it is )?(?:tall|high)",
        require_upright(claim_checks.check_landscape),
    ),
    (
        rf"(?:an? )?(?:in )?portrait(?: orientation)?{_KIND}|(?:taller|higher) than (?:it is )?wide",
        require_upright(claim_checks.check_portrait),
    ),
    (rf"(?:an? )?square{_KIND}", claim_checks.check_square),
    (
        rf"(?:file ?size|size|file)\s*(?P<operator>{OPERATOR})\s*(?P<number>{NUMBER})\s*{BYTES}",
        claim_checks.check_file_size,
    ),
    (rf"{_COUNT}{BYTES}(?: (?:large|big|long|in size))?", claim_checks.check_file_size),
    (r"(?:file )?(?:format|type)\s*(?:=|==|:|is|equals)\s*(?:an? )?(?P<format>[a-z]{3,6})", claim_checks.check_format),
    (
        rf"(?:in |saved as |encoded as )?(?:an? )?\.?(?P<format>png|jpe?g|gif|webp|bmp|tiff?|bitmap){_KIND}",
        claim_checks.check_format,
    ),
    (r"(?:colou?r )?mode\s*(?:=|==|:|is|equals)\s*(?P<mode>[a-z0-9;]{1,6})", claim_checks.check_mode),
    (r"(?P<mode>rgba?|cmyk|la?|p)(?: colou?r)?(?: mode| image)", claim_checks.check_mode),
    (
        r"(?P<colour>[a-z]+) is the (?:dominant|main|primary|most (?:common|frequent)) colou?r",
        require_plain_colours(claim_checks.check_dominant_colour),
    ),
    (r"(?:an? )?animated(?: (?:image|gif|picture))?|an? animation", claim_checks.check_animated),
    (rf"(?:an? )?(?:still|static){_KIND}", claim_checks.check_still),
    (rf"(?:in |an? )*(?:gr[ae]y ?-?scale|gr[ae]y|monochrome){_KIND}", require_plain_colours(claim_checks.check_gray)),
    (rf"(?:in |an? )*(?:colou?r|coloured|colored){_KIND}", require_plain_colours(claim_checks.check_coloured)),
    (
        r"(?:any )?(?:transparency|transparent pixels|(?:an? )?transparent (?:background|areas?|parts?))"
        r"|(?:partly |partially )transparent",
        require_plain_colours(claim_checks.check_transparent),
    ),
    (r"(?:fully |completely )?opaque", require_plain_colours(claim_checks.check_opaque)),
    (r"(?:an? )?alpha(?: channel)?", claim_checks.check_alpha_channel),
    (
        r"(?:dominant|main|primary|most (?:common|frequent)) colou?r\s*(?:=|:|is)\s*(?P<colour>[a-z]+)",
        require_plain_colours(claim_checks.check_dominant_colour),
    ),
    (
        rf"(?:(?P<operator>{OPERATOR})\s*)?(?P<percent>{NUMBER})\s*(?:%|percent){_PIXELS}{_COLOUR}",
        require_plain_colours(claim_checks.check_share),
    ),
    (
        rf"(?:(?P<operator>{OPERATOR})\s*)?(?P<share>half|a third|a quarter|all){_PIXELS}{_COLOUR}",
        require_plain_colours(claim_checks.check_share),
    ),
    (
        rf"(?:every|each) pixel is {_COLOUR}|(?:only|all) {_COLOUR.replace('colour', 'only')} pixels",
        require_plain_colours(claim_checks.check_share),
    ),
    (rf"(?:entirely|completely|fully|purely|solid|solidly) {_COLOUR}", require_plain_colours(claim_checks.check_share)),
    (rf"(?:mostly|mainly|predominantly|largely) {_COLOUR}", require_plain_colours(claim_checks.check_mostly)),
    (
        rf"(?:any |some )?{_COLOUR} pixels?|some pixels? (?:is|are) {_COLOUR.replace('colour', 'some')}",
        require_plain_colours(claim_checks.check_some_pixels),
    ),
    (
        r"(?:the )?pixel (?:at )?\(?\s*(?P<x>\d{1,6})\s*,\s*(?P<y>\d{1,6})\s*\)?\s*"
        rf"(?:==?|is|has (?:the )?colou?r)\s*{_COLOUR}",
        require_plain_colours(claim_checks.check_pixel),
    ),
    (
        rf"(?:the )?(?:text|words?|phrase) {_QUOTED}|(?:reads|says) {_QUOTED.replace('text', 'read')}",
        claim_checks.check_text,
    ),
)


class _ClaimPattern(NamedTuple):
    pattern: re.Pattern[str]
    check: ClaimCheck


_PATTERNS = tuple(
    _ClaimPattern(re.compile(pattern, re.IGNORECASE), check) for pattern, check in (*_CLAIMS, *EXIF_CLAIMS)
)

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


_NEW_PART = re.compile(rf"(?:{_DENIAL.pattern})|(?:{_VERB.pattern})|(?:{_SUBJECT.pattern})", re.IGNORECASE)
"""Start of a part with its own verb or subject; any other part behind a negated one may be negated with it."""


class ImageClaim(NamedTuple):
    """One parsed part of a claim."""

    check: ClaimCheck
    match: re.Match[str]
    negated: bool

    def finding(self, picture: Picture) -> ImageFinding:
        """Return whether this part holds for the picture."""
        result = self.check(self.match, picture)
        if not self.negated or result.holds is None:
            return result
        return ImageFinding(not result.holds, result.message, result.measured)


def parse_claim(claim: str) -> list[ImageClaim] | None:
    """Return the parts of the claim, all of which must hold, or None if any part is outside the grammar."""
    text = " ".join(claim.split()).rstrip(".! ")
    if not text or len(claim) > MAX_CLAIM:
        return None
    parts = _split_parts(text)
    claims = [_parse_part(part) for part in parts]
    parsed = [claim_part for claim_part in claims if claim_part is not None]
    following = zip(claims, parts[1:], strict=False)
    if any(before is not None and before.negated and not _NEW_PART.match(part) for before, part in following):
        return None
    return parsed if len(parsed) == len(parts) <= MAX_PARTS else None


def _split_parts(text: str) -> list[str]:
    """Split the claim at commas and conjunctions, outside quotation marks and parentheses."""
    return [part for part in _SEPARATORS.sub(lambda match: match[1] or "\n", text).split("\n") if part.strip()]


_SEPARATORS = re.compile(
    r"(\"[^\"]*\"|(?<!\w)'[^']*'|\u201c[^\u201d]*\u201d|\([^()]*\)|\d,\d{3}(?!\d))"
    r"|\s*(?:,\s*and\s|,\s|;\s|\sand\s|\sbut\s)\s*(?:also\s)?",
    re.IGNORECASE,
)


def _parse_part(part: str) -> ImageClaim | None:
    bare = _OF_IMAGE.sub("", part.strip())
    bare = _SUBJECT.sub("", bare, count=1) if _SUBJECT.match(bare) else bare
    for text, negated in _candidate_texts(bare):
        for row in _PATTERNS:
            if match := row.pattern.fullmatch(text):
                return ImageClaim(row.check, match, negated)
    return None


def _candidate_texts(bare: str) -> list[tuple[str, bool]]:
    """Return the part with and without its article, verb and negation, and whether each is negated."""
    plain = _ARTICLE.sub("", bare, count=1)
    candidates = [(bare, False), (plain, False)]
    denial, verb = _DENIAL.match(plain), _VERB.match(plain)
    if denial:
        candidates.append((_ARTICLE.sub("", plain[denial.end() :], count=1), True))
    elif verb:
        candidates.append((_ARTICLE.sub("", plain[verb.end() :], count=1), False))
    # A negation behind the subject, as in `dominant colour is not red`.
    return [*candidates, (_IS_NOT.sub(r"\1", plain, count=1), True)] if _IS_NOT.search(plain) else candidates
