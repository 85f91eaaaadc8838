"""Checks of the image engine, one for each kind of claim."""

import re
from collections.abc import Callable
from fractions import Fraction

from qwed.engines._image import colours, measures
from qwed.engines._image.loader import FORMATS, Picture
from qwed.engines._image.measures import ImageFinding
from qwed.engines._image.ocr import recognise_text

ClaimCheck = Callable[[re.Match[str], Picture], ImageFinding]

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


def check_size(match: re.Match[str], picture: Picture) -> ImageFinding:
    """Check `640x480`."""
    claimed = int(match["width"].replace(",", "")), int(match["height"].replace(",", ""))
    actual = picture.width, picture.height
    measured = {"width": actual[0], "height": actual[1]}
    return ImageFinding(actual == claimed, f"the image is {actual[0]}x{actual[1]}", measured)


_FRACTIONS = frozenset({"aspect", "megapixels"})
_ROTATION_INVARIANT = frozenset({"pixels", "megapixels", "frames"})


def check_comparison(match: re.Match[str], picture: Picture) -> ImageFinding:
    """Check `width = 640` or `height > width`."""
    name = _MEASURES[match["measure"].casefold()]
    other = match["other"]
    if other is None:
        number = match["number"]
        decimals = measures.count_decimals(number) if name in _FRACTIONS else 0
        return measures.compare_measure(
            name, match["operator"] or "=", measures.parse_number(number), picture, decimals
        )
    other_value = measures.measure(_MEASURES[other.casefold()], picture)
    if other_value is None:
        return ImageFinding(None, "the frames could not be counted")
    return measures.compare_measure(name, match["operator"], other_value, picture)


def check_extent(match: re.Match[str], picture: Picture) -> ImageFinding:
    """Check `at least 640 pixels wide`."""
    return measures.compare_measure(
        _MEASURES[match["measure"].casefold()],
        match["operator"] or "=",
        measures.parse_number(match["number"]),
        picture,
    )


def check_longer_than(match: re.Match[str], picture: Picture) -> ImageFinding:
    """Check `wider than 640`."""
    return measures.compare_measure(
        _MEASURES[match["measure"].casefold()], ">", measures.parse_number(match["number"]), picture
    )


def check_aspect_ratio(match: re.Match[str], picture: Picture) -> ImageFinding:
    """Check `aspect ratio is 16:9`."""
    claimed = measures.parse_number(match["a"]) / (measures.parse_number(match["b"]) or 1)
    return measures.compare_measure("aspect", match["operator"] or "=", claimed, picture)


def check_landscape(_match: re.Match[str], picture: Picture) -> ImageFinding:
    """Check that the image is wider than high."""
    return _side_finding(picture, picture.width > picture.height)


def check_portrait(_match: re.Match[str], picture: Picture) -> ImageFinding:
    """Check that the image is higher than wide."""
    return _side_finding(picture, picture.width < picture.height)


def check_square(_match: re.Match[str], picture: Picture) -> ImageFinding:
    """Check that the image is as wide as high."""
    return _side_finding(picture, picture.width == picture.height)


def _side_finding(picture: Picture, holds: bool) -> ImageFinding:
    measured = {"width": picture.width, "height": picture.height}
    return ImageFinding(holds, f"the image is {picture.width}x{picture.height}", measured)


def check_file_size(match: re.Match[str], picture: Picture) -> ImageFinding:
    """Check `file size < 2 MB`."""
    return measures.compare_file_size(match["operator"] or "=", match["number"], match["unit"], picture)


def check_format(match: re.Match[str], picture: Picture) -> ImageFinding:
    """Check `format is PNG`."""
    claimed = _FORMATS.get(match["format"].casefold())
    return ImageFinding(picture.format == claimed, f"the format is {picture.format}", {"format": picture.format})


def check_mode(match: re.Match[str], picture: Picture) -> ImageFinding:
    """Check `mode is RGB`."""
    mode = picture.image.mode
    return ImageFinding(mode.casefold() == match["mode"].casefold(), f"the mode is {mode}", {"mode": mode})


def check_animated(_match: re.Match[str], picture: Picture) -> ImageFinding:
    """Check that the image has more than one frame."""
    frames = picture.frames
    count = "more frames than are counted" if frames is None else f"{frames} frames"
    return ImageFinding(frames is None or frames > 1, f"the image has {count}", {"frames": frames})


def check_still(match: re.Match[str], picture: Picture) -> ImageFinding:
    """Check that the image has one frame."""
    finding = check_animated(match, picture)
    return ImageFinding(not finding.holds, finding.message, finding.measured)


def require_plain_colours(check: ClaimCheck) -> ClaimCheck:
    """Wrap a colour check: undecided unless the image has one frame and a mode with device-independent colours."""

    def guarded(match: re.Match[str], picture: Picture) -> ImageFinding:
        if picture.frames != 1:
            return ImageFinding(
                None, "the image has several frames, which may differ in colour: send the one that is meant"
            )
        if picture.image.mode in colours.PLAIN_MODES:
            return check(match, picture)
        return ImageFinding(None, f"the colours of mode {picture.image.mode} depend on the viewer")

    return guarded


def require_upright(check: ClaimCheck) -> ClaimCheck:
    """Wrap a check of width or height: undecided if the EXIF orientation swaps the two."""

    def guarded(match: re.Match[str], picture: Picture) -> ImageFinding:
        measure = match.groupdict().get("measure") or "width"
        if not picture.is_sideways or _MEASURES[measure.casefold()] in _ROTATION_INVARIANT:
            return check(match, picture)
        stored, displayed = f"{picture.width}x{picture.height}", f"{picture.height}x{picture.width}"
        return ImageFinding(
            None,
            f"the image is {stored} as stored and {displayed} as displayed: its EXIF orientation turns it on its side",
        )

    return guarded


def check_gray(_match: re.Match[str], picture: Picture) -> ImageFinding:
    """Check that every pixel is gray."""
    gray = colours.is_gray(picture.image)
    return ImageFinding(gray, "every pixel is gray" if gray else "some pixels have a colour", {"grayscale": gray})


def check_coloured(match: re.Match[str], picture: Picture) -> ImageFinding:
    """Check that some pixel is not gray."""
    finding = check_gray(match, picture)
    return ImageFinding(not finding.holds, finding.message, finding.measured)


def check_transparent(_match: re.Match[str], picture: Picture) -> ImageFinding:
    """Check that some pixel is not opaque."""
    least = colours.lowest_alpha(picture.image)
    message = "every pixel is opaque" if least == 255 else f"the most transparent pixel has alpha {least}"
    return ImageFinding(least < 255, message, {"least_alpha": least})


def check_opaque(match: re.Match[str], picture: Picture) -> ImageFinding:
    """Check that every pixel is opaque."""
    finding = check_transparent(match, picture)
    return ImageFinding(not finding.holds, finding.message, finding.measured)


def check_alpha_channel(_match: re.Match[str], picture: Picture) -> ImageFinding:
    """Check that the image has an alpha channel, used or not."""
    has = picture.image.has_transparency_data
    return ImageFinding(has, f"the mode is {picture.image.mode}", {"alpha_channel": has})


def _claimed_colour(match: re.Match[str]) -> str:
    """Return the colour named in the claim, from any of its groups."""
    return next(value for name, value in match.groupdict().items() if name in _COLOUR_GROUPS and value is not None)


_COLOUR_GROUPS = frozenset({"colour", "only", "some"})


def check_dominant_colour(match: re.Match[str], picture: Picture) -> ImageFinding:
    """Check `dominant colour is red`."""
    claimed = colours.palette_name(_claimed_colour(match))
    if not claimed:
        return ImageFinding(
            None, f"`{_claimed_colour(match)}` is not a colour of the palette: {', '.join(sorted(colours.NAMES))}"
        )
    shares = colours.colour_shares(picture.image)
    first, *others = shares.items()
    measured = {"colours": _rounded_shares(shares)}
    if others and others[0][1] == first[1] and claimed in (first[0], others[0][0]):
        return ImageFinding(None, f"{first[0]} and {others[0][0]} are equally frequent", measured)
    return ImageFinding(first[0] == claimed, f"the most frequent colour is {first[0]} ({first[1]:.1%})", measured)


def check_share(match: re.Match[str], picture: Picture) -> ImageFinding:
    """Check `at least 50% of pixels are red`."""
    words = match.groupdict()
    phrase = words.get("operator") or "="
    claimed = _claimed_share(words)
    actual, measured = _measured_share(_claimed_colour(match), picture)
    if actual is None:
        return ImageFinding(
            None, f"`{_claimed_colour(match)}` is not a colour of the palette: {', '.join(sorted(colours.NAMES))}"
        )
    sign, compare = measures.parse_operator(phrase)
    decimals = len((words.get("percent") or "").partition(".")[2])
    # A percentage without a comparison is taken as rounded.
    bare = sign in ("=", "!=") and claimed not in (0, 1)
    holds = compare(round(actual * 100, decimals), claimed * 100) if bare else compare(actual, claimed)
    return ImageFinding(holds, f"{float(actual):.4%} of the pixels are {_claimed_colour(match)}", measured)


def _claimed_share(words: dict[str, str | None]) -> Fraction:
    percent, word = words.get("percent"), words.get("share")
    return measures.parse_number(percent) / 100 if percent else _SHARES.get((word or "all").casefold(), Fraction(1))


def _measured_share(text: str, picture: Picture) -> tuple[Fraction | None, dict[str, object]]:
    total = picture.width * picture.height
    colour = colours.parse_colour(text)
    if colour is not None:
        count = colours.count_pixels(picture.image, colour)
        return Fraction(count, total), {"pixels": count, "of": total}
    name = colours.palette_name(text)
    if not name:
        return None, {}
    shares = colours.colour_shares(picture.image)
    return Fraction(round(shares.get(name, 0.0) * total), total), {"colours": _rounded_shares(shares)}


def _rounded_shares(shares: dict[str, float]) -> dict[str, float]:
    return {name: round(share, 6) for name, share in shares.items()}


def check_some_pixels(match: re.Match[str], picture: Picture) -> ImageFinding:
    """Check `red pixels`."""
    actual, measured = _measured_share(_claimed_colour(match), picture)
    if actual is None:
        return ImageFinding(
            None, f"`{_claimed_colour(match)}` is not a colour of the palette: {', '.join(sorted(colours.NAMES))}"
        )
    return ImageFinding(actual > 0, f"{float(actual):.4%} of the pixels are {_claimed_colour(match)}", measured)


def check_mostly(match: re.Match[str], picture: Picture) -> ImageFinding:
    """Check that more than half of the pixels have the colour."""
    actual, measured = _measured_share(_claimed_colour(match), picture)
    if actual is None:
        return ImageFinding(
            None, f"`{_claimed_colour(match)}` is not a colour of the palette: {', '.join(sorted(colours.NAMES))}"
        )
    return ImageFinding(
        actual > Fraction(1, 2), f"{float(actual):.4%} of the pixels are {_claimed_colour(match)}", measured
    )


def check_pixel(match: re.Match[str], picture: Picture) -> ImageFinding:
    """Check `pixel (10, 20) is #ff0000`."""
    if picture.is_rotated:
        return ImageFinding(None, "the EXIF orientation rotates the image: pixel coordinates are ambiguous")
    x, y = int(match["x"]), int(match["y"])
    if x >= picture.width or y >= picture.height:
        message = f"there is no pixel ({x}, {y}) in an image of {picture.width}x{picture.height}"
        return ImageFinding(False, message, {"width": picture.width, "height": picture.height})
    colour, alpha = colours.pixel_at(picture.image, x, y)
    claimed, name = colours.parse_colour(_claimed_colour(match)), colours.palette_name(_claimed_colour(match))
    measured = {"pixel": colours.to_hex(colour), "alpha": alpha, "name": colours.name_pixel(*colour, alpha)}
    if claimed is None and not name:
        return ImageFinding(None, f"`{_claimed_colour(match)}` is not a colour of the palette", measured)
    holds = colour == claimed and alpha > 0 if claimed is not None else measured["name"] == name
    return ImageFinding(holds, f"pixel ({x}, {y}) is {measured['pixel']} ({measured['name']})", measured)


def check_text(match: re.Match[str], picture: Picture) -> ImageFinding:
    """Check `the text 'INVOICE'`."""
    recognised = recognise_text(picture.image)
    if recognised is None:
        return ImageFinding(None, "no text recognition is installed")
    claimed = " ".join((match["text"] or match["read"]).casefold().split())
    normalised = " ".join(recognised.split())
    if claimed in normalised.casefold():
        return ImageFinding(True, "the text was recognised", {"text": normalised[:500]})
    # Undecided: OCR may miss text that is there.
    return ImageFinding(None, "the text was not recognised", {"text": normalised[:500]})
