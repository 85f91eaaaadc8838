"""Claim grammar of the image engine: a table of patterns, each with its check."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from qwed.engines._image import claim_checks
from qwed.engines._image.claim_checks import ClaimCheck, require_plain_colours, require_upright
from qwed.engines._image.exif import EXIF_CLAIMS
from qwed.engines._image.loader import Picture
from qwed.engines._image.measures import BYTES, NUMBER, OPERATOR, ImageFinding
from qwed.model.data_files import read_patterns

MAX_CLAIM = 500
MAX_PARTS = 10


class _ClaimPattern(NamedTuple):
    pattern: re.Pattern[str]
    check: ClaimCheck


_REQUIRE: dict[str, Callable[[ClaimCheck], ClaimCheck]] = {
    "": lambda check: check,
    "upright": require_upright,
    "plain_colours": require_plain_colours,
}


def _claims() -> Iterator[tuple[str, ClaimCheck]]:
    for heading, patterns in read_patterns(
        __file__, "claims.txt", {"OPERATOR": OPERATOR, "NUMBER": NUMBER, "BYTES": BYTES}
    ):
        name, _, required = heading.partition(" ")
        check = _REQUIRE[required](getattr(claim_checks, name))
        yield from ((pattern, check) for pattern in patterns)


_PATTERNS = tuple(
    _ClaimPattern(re.compile(pattern, re.IGNORECASE), check) for pattern, check in (*_claims(), *EXIF_CLAIMS)
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
