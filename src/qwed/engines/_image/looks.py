"""What is looked at for each kind of claim about an image."""

import re
from collections.abc import Callable
from fractions import Fraction

from qwed.engines._image import colours, measures
from qwed.engines._image.file import FORMATS, Picture
from qwed.engines._image.measures import Finding
from qwed.engines._image.text import text_of

Look = Callable[[re.Match[str], Picture], Finding]

_MEASURES = {
    "width": "width",
    "height": "height",
    "pixels": "pixels",
    "pixel count": "pixels",
    "number of pixels": "pixels",
    "megapixels": "megapixels",
    "mp": "megapixels",
    "frames": "frames",
    "frame": "frames",
    "frame count": "frames",
    "number of frames": "frames",
    "aspect ratio": "aspect",
    "wide": "width",
    "high": "height",
    "tall": "height",
    "wider": "width",
    "taller": "height",
    "higher": "height",
}
_FORMATS = {name.casefold(): name for name in FORMATS} | {"jpg": "JPEG", "tif": "TIFF", "bitmap": "BMP"}
_SHARES = {"half": Fraction(1, 2), "a third": Fraction(1, 3), "a quarter": Fraction(1, 4), "all": Fraction(1)}


def size(match: re.Match[str], picture: Picture) -> Finding:
    """`640x480`."""
    wanted = int(match["width"].replace(",", "")), int(match["height"].replace(",", ""))
    found = picture.width, picture.height
    measured = {"width": found[0], "height": found[1]}
    return Finding(found == wanted, f"the image is {found[0]}x{found[1]}", measured)


_FRACTIONS = frozenset({"aspect", "megapixels"})
_TURN_PROOF = frozenset({"pixels", "megapixels", "frames"})


def compare(match: re.Match[str], picture: Picture) -> Finding:
    """`width = 640`, `height > width`."""
    name = _MEASURES[match["measure"].casefold()]
    other = match["other"]
    if other is None:
        number = match["number"]
        decimals = measures.decimals_of(number) if name in _FRACTIONS else 0
        return measures.compared(name, match["operator"] or "=", measures.number_of(number), picture, decimals)
    wanted = measures.measure(_MEASURES[other.casefold()], picture)
    if wanted is None:
        return Finding(None, "the frames could not be counted")
    return measures.compared(name, match["operator"], wanted, picture)


def extent(match: re.Match[str], picture: Picture) -> Finding:
    """`at least 640 pixels wide`."""
    return measures.compared(
        _MEASURES[match["measure"].casefold()], match["operator"] or "=", measures.number_of(match["number"]), picture
    )


def longer(match: re.Match[str], picture: Picture) -> Finding:
    """`wider than 640`."""
    return measures.compared(_MEASURES[match["measure"].casefold()], ">", measures.number_of(match["number"]), picture)


def ratio(match: re.Match[str], picture: Picture) -> Finding:
    """`aspect ratio is 16:9`."""
    wanted = measures.number_of(match["a"]) / (measures.number_of(match["b"]) or 1)
    return measures.compared("aspect", match["operator"] or "=", wanted, picture)


def landscape(_match: re.Match[str], picture: Picture) -> Finding:
    """Wider than high."""
    return _by_sides(picture, picture.width > picture.height)


def portrait(_match: re.Match[str], picture: Picture) -> Finding:
    """Higher than wide."""
    return _by_sides(picture, picture.width < picture.height)


def square(_match: re.Match[str], picture: Picture) -> Finding:
    """As wide as high."""
    return _by_sides(picture, picture.width == picture.height)


def _by_sides(picture: Picture, holds: bool) -> Finding:
    measured = {"width": picture.width, "height": picture.height}
    return Finding(holds, f"the image is {picture.width}x{picture.height}", measured)


def file_size(match: re.Match[str], picture: Picture) -> Finding:
    """`file size < 2 MB`."""
    return measures.compared_bytes(match["operator"] or "=", match["number"], match["unit"], picture)


def file_format(match: re.Match[str], picture: Picture) -> Finding:
    """`format is PNG`."""
    wanted = _FORMATS.get(match["format"].casefold())
    return Finding(picture.format == wanted, f"the format is {picture.format}", {"format": picture.format})


def mode(match: re.Match[str], picture: Picture) -> Finding:
    """`mode is RGB`."""
    mode = picture.image.mode
    return Finding(mode.casefold() == match["mode"].casefold(), f"the mode is {mode}", {"mode": mode})


def animated(_match: re.Match[str], picture: Picture) -> Finding:
    """More than one frame."""
    frames = picture.frames
    told = "more frames than are counted" if frames is None else f"{frames} frames"
    return Finding(frames is None or frames > 1, f"the image has {told}", {"frames": frames})


def still(match: re.Match[str], picture: Picture) -> Finding:
    """One frame."""
    found = animated(match, picture)
    return Finding(not found.holds, found.message, found.measured)


def on_plain(look: Look) -> Look:
    """Looks at colours only where every pixel has a plain one, and one frame is all there is."""

    def looked(match: re.Match[str], picture: Picture) -> Finding:
        if picture.frames != 1:
            return Finding(None, "the image has several frames, which may differ in colour: send the one that is meant")
        if picture.image.mode in colours.MODES:
            return look(match, picture)
        return Finding(None, f"the colours of mode {picture.image.mode} depend on who shows it")

    return looked


def on_upright(look: Look) -> Look:
    """Looks at width and height only where they are the same as stored and as shown."""

    def looked(match: re.Match[str], picture: Picture) -> Finding:
        named = match.groupdict().get("measure") or "width"
        if not picture.on_its_side or _MEASURES[named.casefold()] in _TURN_PROOF:
            return look(match, picture)
        stored, shown = f"{picture.width}x{picture.height}", f"{picture.height}x{picture.width}"
        return Finding(None, f"the image is {stored} as stored and {shown} as shown: it says that it lies on its side")

    return looked


def gray(_match: re.Match[str], picture: Picture) -> Finding:
    """No pixel has a colour."""
    gray = colours.is_gray(picture.image)
    return Finding(gray, "every pixel is gray" if gray else "some pixels have a colour", {"grayscale": gray})


def coloured(match: re.Match[str], picture: Picture) -> Finding:
    """Some pixel has a colour."""
    found = gray(match, picture)
    return Finding(not found.holds, found.message, found.measured)


def transparent(_match: re.Match[str], picture: Picture) -> Finding:
    """Some pixel is not opaque."""
    least = colours.least_opacity(picture.image)
    told = "every pixel is opaque" if least == 255 else f"the most transparent pixel has alpha {least}"
    return Finding(least < 255, told, {"least_alpha": least})


def opaque(match: re.Match[str], picture: Picture) -> Finding:
    """Every pixel is opaque."""
    found = transparent(match, picture)
    return Finding(not found.holds, found.message, found.measured)


def alpha(_match: re.Match[str], picture: Picture) -> Finding:
    """There is room for transparency, used or not."""
    has = picture.image.has_transparency_data
    return Finding(has, f"the mode is {picture.image.mode}", {"alpha_channel": has})


def _colour(match: re.Match[str]) -> str:
    """The colour that was named, in whichever of its places."""
    return next(value for name, value in match.groupdict().items() if name in _PLACES and value is not None)


_PLACES = frozenset({"colour", "only", "some"})


def dominant(match: re.Match[str], picture: Picture) -> Finding:
    """`dominant colour is red`."""
    wanted = colours.named(_colour(match))
    if not wanted:
        return Finding(None, f"`{_colour(match)}` is no colour of the palette: {', '.join(sorted(colours.NAMES))}")
    found = colours.shares(picture.image)
    first, *others = found.items()
    measured = {"colours": _rounded(found)}
    if others and others[0][1] == first[1] and wanted in (first[0], others[0][0]):
        return Finding(None, f"{first[0]} and {others[0][0]} are equally frequent", measured)
    return Finding(first[0] == wanted, f"the most frequent colour is {first[0]} ({first[1]:.1%})", measured)


def share(match: re.Match[str], picture: Picture) -> Finding:
    """`at least 50% of pixels are red`."""
    words = match.groupdict()
    phrase = words.get("operator") or "="
    wanted = _wanted_share(words)
    found, measured = _measured_share(_colour(match), picture)
    if found is None:
        return Finding(None, f"`{_colour(match)}` is no colour of the palette: {', '.join(sorted(colours.NAMES))}")
    sign, compare = measures.compare_of(phrase)
    decimals = len((words.get("percent") or "").partition(".")[2])
    # Whoever writes a bare percentage has rounded it.
    bare = sign in ("=", "!=") and wanted not in (0, 1)
    holds = compare(round(found * 100, decimals), wanted * 100) if bare else compare(found, wanted)
    return Finding(holds, f"{float(found):.4%} of the pixels are {_colour(match)}", measured)


def _wanted_share(words: dict[str, str | None]) -> Fraction:
    percent, word = words.get("percent"), words.get("share")
    return measures.number_of(percent) / 100 if percent else _SHARES.get((word or "all").casefold(), Fraction(1))


def _measured_share(text: str, picture: Picture) -> tuple[Fraction | None, dict[str, object]]:
    total = picture.width * picture.height
    colour = colours.exact(text)
    if colour is not None:
        count = colours.count_exact(picture.image, colour)
        return Fraction(count, total), {"pixels": count, "of": total}
    name = colours.named(text)
    if not name:
        return None, {}
    found = colours.shares(picture.image)
    return Fraction(round(found.get(name, 0.0) * total), total), {"colours": _rounded(found)}


def _rounded(found: dict[str, float]) -> dict[str, float]:
    return {name: round(share, 6) for name, share in found.items()}


def some(match: re.Match[str], picture: Picture) -> Finding:
    """`red pixels`."""
    found, measured = _measured_share(_colour(match), picture)
    if found is None:
        return Finding(None, f"`{_colour(match)}` is no colour of the palette: {', '.join(sorted(colours.NAMES))}")
    return Finding(found > 0, f"{float(found):.4%} of the pixels are {_colour(match)}", measured)


def mostly(match: re.Match[str], picture: Picture) -> Finding:
    """More than half of it."""
    found, measured = _measured_share(_colour(match), picture)
    if found is None:
        return Finding(None, f"`{_colour(match)}` is no colour of the palette: {', '.join(sorted(colours.NAMES))}")
    return Finding(found > Fraction(1, 2), f"{float(found):.4%} of the pixels are {_colour(match)}", measured)


def pixel(match: re.Match[str], picture: Picture) -> Finding:
    """`pixel (10, 20) is #ff0000`."""
    if picture.turned:
        return Finding(None, "the file asks to be shown turned: pixels are counted from another corner then")
    x, y = int(match["x"]), int(match["y"])
    if x >= picture.width or y >= picture.height:
        told = f"there is no pixel ({x}, {y}) in an image of {picture.width}x{picture.height}"
        return Finding(False, told, {"width": picture.width, "height": picture.height})
    colour, alpha = colours.pixel_at(picture.image, x, y)
    wanted, name = colours.exact(_colour(match)), colours.named(_colour(match))
    measured = {"pixel": colours.written(colour), "alpha": alpha, "name": colours.name_of(*colour, alpha)}
    if wanted is None and not name:
        return Finding(None, f"`{_colour(match)}` is no colour of the palette", measured)
    holds = colour == wanted and alpha > 0 if wanted is not None else measured["name"] == name
    return Finding(holds, f"pixel ({x}, {y}) is {measured['pixel']} ({measured['name']})", measured)


def text(match: re.Match[str], picture: Picture) -> Finding:
    """`the text 'INVOICE'`."""
    found = text_of(picture.image)
    if found is None:
        return Finding(None, "no text recognition is installed")
    wanted = " ".join((match["text"] or match["read"]).casefold().split())
    read = " ".join(found.split())
    if wanted in read.casefold():
        return Finding(True, "the text was recognised", {"text": read[:500]})
    # What was not recognised may still be there.
    return Finding(None, "the text was not recognised", {"text": read[:500]})
