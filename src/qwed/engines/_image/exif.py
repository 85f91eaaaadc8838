"""Claims about what a file says of itself: camera, day, place, orientation, resolution. It may say what it likes."""

import re
from collections.abc import Callable

from qwed.engines._image.file import Picture
from qwed.engines._image.measures import Finding

Look = Callable[[re.Match[str], Picture], Finding]

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


def _tag(picture: Picture, name: str) -> tuple[str, str | None]:
    wanted = re.sub(r"[ _-]", "", _NAMES.get(name.casefold(), name)).casefold()
    return next(((tag, value) for tag, value in picture.exif.items() if tag.casefold() == wanted), (name, None))


def says(match: re.Match[str], picture: Picture) -> Finding:
    """`exif.Model = Canon EOS R5`: the entry is there and reads so."""
    tag, value = _tag(picture, match["tag"])
    if value is None:
        return Finding(False, f"the file has no entry `{tag}`", {"exif": dict(list(picture.exif.items())[:20])})
    wanted = match["value"].strip("\"'\u201c\u201d ")
    holds = " ".join(value.casefold().split()) == " ".join(wanted.casefold().split())
    return Finding(holds, f"the file says `{tag}` is `{value}`", {tag: value})


def named(match: re.Match[str], picture: Picture) -> Finding:
    """`camera make is Canon`: as above, and undecided where the file says nothing."""
    tag, value = _tag(picture, match["tag"])
    return says(match, picture) if value is not None else Finding(None, f"the file does not say its {tag}")


def taken_with(match: re.Match[str], picture: Picture) -> Finding:
    """`taken with Canon`: every word stands in the make or the model."""
    camera = " ".join(value for name in ("make", "model") if (value := _tag(picture, name)[1]))
    if not camera:
        return Finding(None, "the file does not say which camera took it")
    words = re.sub(r"^an? ", "", match["camera"].strip("\"' ").casefold()).removesuffix(" camera").split()
    holds = bool(words) and all(word in camera.casefold().split() for word in words)
    return Finding(holds, f"the file says the camera was `{camera}`", {"camera": camera})


def taken_on(match: re.Match[str], picture: Picture) -> Finding:
    """`taken on 2024-05-01` or `taken in 2024`."""
    stated = next((value for tag in _DAY_TAGS if (value := _tag(picture, tag)[1]) and _DAY.match(value)), None)
    day = _DAY.match(stated) if stated else None
    if day is None:
        return Finding(None, "the file does not say when it was taken")
    found = f"{day[1]}-{day[2]}-{day[3]}"
    return Finding(found.startswith(match["day"]), f"the file says it was taken on {found}", {"taken": found})


def has_exif(_match: re.Match[str], picture: Picture) -> Finding:
    """Whether the file says anything of itself."""
    count = len(picture.exif)
    return Finding(count > 0, f"the file has {count} EXIF entries", {"exif_entries": count})


def has_place(_match: re.Match[str], picture: Picture) -> Finding:
    """Whether the file says where it was taken."""
    place = {tag: value for tag, value in picture.exif.items() if tag.startswith("GPS") and tag != "GPSInfo"}
    told = "the file says where it was taken" if place else "the file has no GPS entries"
    return Finding(bool(place), told, {"gps": place})


def orientation(match: re.Match[str], picture: Picture) -> Finding:
    """`orientation is 6`."""
    value = _tag(picture, "Orientation")[1]
    if value is None:
        return Finding(None, "the file does not say its orientation")
    return Finding(value == match["number"], f"the file says its orientation is {value}", {"orientation": value})


def resolution(match: re.Match[str], picture: Picture) -> Finding:
    """`300 dpi`, rounded to a whole number as programs show it."""
    dpi = picture.image.info.get("dpi")
    if not isinstance(dpi, tuple) or len(dpi) != 2:
        return Finding(None, "the file does not say its dots per inch")
    found = [round(float(each)) for each in dpi]
    return Finding(found == [int(match["number"])] * 2, f"the file says {found[0]}x{found[1]} dpi", {"dpi": found})


EXIF_CLAIMS: tuple[tuple[str, Look], ...] = (
    (r"exif(?:\.| )(?P<tag>[a-z][a-z0-9_]{1,40})\s*(?:==?|:|is|equals)\s*(?P<value>.{1,200})", says),
    (rf"(?P<tag>{NAMES})\s*(?:==?|:|is|was)\s*(?P<value>.{{1,200}})", named),
    (
        r"(?:taken|shot|photographed|captured) (?:with|using|on) (?:an? )?(?P<camera>[a-z][^\"]{1,80})",
        taken_with,
    ),
    (r"(?:taken|shot|photographed|captured) (?:on|in) (?P<day>\d{4}(?:-\d\d(?:-\d\d)?)?)", taken_on),
    (r"(?:any )?exif(?: (?:data|metadata|entries|information))?", has_exif),
    (r"(?:any )?(?:gps|location|geo)(?: ?-?(?:data|coordinates|information|metadata|tags?|tagged))?", has_place),
    (r"(?:exif )?orientation\s*(?:==?|:|is)\s*(?P<number>[1-8])", orientation),
    (r"(?:resolution\s*(?:==?|:|is)\s*)?(?P<number>\d{1,5}) ?(?:dpi|dots per inch)", resolution),
    (r"dpi\s*(?:==?|:|is)\s*(?P<number>\d{1,5})", resolution),
)
