"""Claims about EXIF metadata: camera, date, location, orientation, resolution. Metadata may be forged."""

import re
from collections.abc import Callable

from qwed.engines._image.loader import Picture
from qwed.engines._image.measures import ImageFinding

ClaimCheck = Callable[[re.Match[str], Picture], ImageFinding]

_DAY = re.compile(r"(\d{4})[:-](\d\d)[:-](\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d))?)?")
_DAY_TAGS = ("DateTimeOriginal", "DateTimeDigitized", "DateTime")
_NAMES = {
    "camera": "Model",
    "camera model": "Model",
    "camera make": "Make",
    "make": "Make",
    "model": "Model",
    "manufacturer": "Make",
    "lens": "LensModel",
    "artist": "Artist",
    "author": "Artist",
    "photographer": "Artist",
    "copyright": "Copyright",
    "software": "Software",
    "description": "ImageDescription",
    "iso": "ISOSpeedRatings",
}
NAMES = "|".join(sorted(_NAMES, key=len, reverse=True))


def _find_tag(picture: Picture, name: str) -> tuple[str, str | None]:
    normalised = re.sub(r"[ _-]", "", _NAMES.get(name.casefold(), name)).casefold()
    return next(((tag, value) for tag, value in picture.exif.items() if tag.casefold() == normalised), (name, None))


def check_entry(match: re.Match[str], picture: Picture) -> ImageFinding:
    """Check `exif.Model = Canon EOS R5`: the entry exists and has this value."""
    tag, value = _find_tag(picture, match["tag"])
    if value is None:
        return ImageFinding(False, f"the file has no entry `{tag}`", {"exif": dict(list(picture.exif.items())[:20])})
    claimed = match["value"].strip("\"'\u201c\u201d ")
    holds = " ".join(value.casefold().split()) == " ".join(claimed.casefold().split())
    return ImageFinding(holds, f"the file says `{tag}` is `{value}`", {tag: value})


def check_named_entry(match: re.Match[str], picture: Picture) -> ImageFinding:
    """Check `camera make is Canon`; undecided if the file has no such entry."""
    tag, value = _find_tag(picture, match["tag"])
    return check_entry(match, picture) if value is not None else ImageFinding(None, f"the file does not say its {tag}")


def check_camera(match: re.Match[str], picture: Picture) -> ImageFinding:
    """Check `taken with Canon`: every word occurs in the make or the model."""
    camera = " ".join(value for name in ("make", "model") if (value := _find_tag(picture, name)[1]))
    if not camera:
        return ImageFinding(None, "the file does not say which camera took it")
    words = re.sub(r"^an? ", "", match["camera"].strip("\"' ").casefold()).removesuffix(" camera").split()
    holds = bool(words) and all(word in camera.casefold().split() for word in words)
    return ImageFinding(holds, f"the file says the camera was `{camera}`", {"camera": camera})


def check_date(match: re.Match[str], picture: Picture) -> ImageFinding:
    """Check `taken on 2024-05-01` or `taken in 2024`."""
    stated = next((value for tag in _DAY_TAGS if (value := _find_tag(picture, tag)[1]) and _DAY.match(value)), None)
    day = _DAY.match(stated) if stated else None
    if day is None:
        return ImageFinding(None, "the file does not say when it was taken")
    date_taken = f"{day[1]}-{day[2]}-{day[3]}"
    return ImageFinding(
        date_taken.startswith(match["day"]), f"the file says it was taken on {date_taken}", {"taken": date_taken}
    )


def check_has_exif(_match: re.Match[str], picture: Picture) -> ImageFinding:
    """Check that the file has EXIF entries."""
    count = len(picture.exif)
    return ImageFinding(count > 0, f"the file has {count} EXIF entries", {"exif_entries": count})


def check_has_location(_match: re.Match[str], picture: Picture) -> ImageFinding:
    """Check that the file has GPS entries."""
    location = {tag: value for tag, value in picture.exif.items() if tag.startswith("GPS") and tag != "GPSInfo"}
    message = "the file says where it was taken" if location else "the file has no GPS entries"
    return ImageFinding(bool(location), message, {"gps": location})


def check_orientation(match: re.Match[str], picture: Picture) -> ImageFinding:
    """Check `orientation is 6`."""
    value = _find_tag(picture, "Orientation")[1]
    if value is None:
        return ImageFinding(None, "the file does not say its orientation")
    return ImageFinding(value == match["number"], f"the file says its orientation is {value}", {"orientation": value})


def check_resolution(match: re.Match[str], picture: Picture) -> ImageFinding:
    """Check `300 dpi`, rounded to a whole number as image programs do."""
    dpi = picture.image.info.get("dpi")
    if not isinstance(dpi, tuple) or len(dpi) != 2:
        return ImageFinding(None, "the file does not say its dots per inch")
    rounded = [round(float(axis)) for axis in dpi]
    return ImageFinding(
        rounded == [int(match["number"])] * 2, f"the file says {rounded[0]}x{rounded[1]} dpi", {"dpi": rounded}
    )


EXIF_CLAIMS: tuple[tuple[str, ClaimCheck], ...] = (
    (r"exif(?:\.| )(?P<tag>[a-z][a-z0-9_]{1,40})\s*(?:==?|:|is|equals)\s*(?P<value>.{1,200})", check_entry),
    (rf"(?P<tag>{NAMES})\s*(?:==?|:|is|was)\s*(?P<value>.{{1,200}})", check_named_entry),
    (
        r"(?:taken|shot|photographed|captured) (?:with|using|on) (?:an? )?(?P<camera>[a-z][^\"]{1,80})",
        check_camera,
    ),
    (r"(?:taken|shot|photographed|captured) (?:on|in) (?P<day>\d{4}(?:-\d\d(?:-\d\d)?)?)", check_date),
    (r"(?:any )?exif(?: (?:data|metadata|entries|information))?", check_has_exif),
    (
        r"(?:any )?(?:gps|location|geo)(?: ?-?(?:data|coordinates|information|metadata|tags?|tagged))?",
        check_has_location,
    ),
    (r"(?:exif )?orientation\s*(?:==?|:|is)\s*(?P<number>[1-8])", check_orientation),
    (r"(?:resolution\s*(?:==?|:|is)\s*)?(?P<number>\d{1,5}) ?(?:dpi|dots per inch)", check_resolution),
    (r"dpi\s*(?:==?|:|is)\s*(?P<number>\d{1,5})", check_resolution),
)
