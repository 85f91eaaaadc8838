"""Colours of an image: exact colours counted pixel by pixel, named colours by hue, saturation and brightness."""

import colorsys
import re
from collections import Counter
from functools import lru_cache
from typing import Any

from PIL import Image, ImageChops

PLAIN_MODES = frozenset({"1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "La", "RGBa"})
"""Modes whose pixels have one device-independent screen colour."""
_EXACT_COLOURS = 1 << 16
_STEP = 8

Colour = tuple[int, int, int]

# The palette in the documentation: start hue and end hue in degrees, name.
_HUES = (
    (0, 15, "red"),
    (15, 45, "orange"),
    (45, 70, "yellow"),
    (70, 165, "green"),
    (165, 195, "cyan"),
    (195, 255, "blue"),
    (255, 290, "purple"),
    (290, 345, "pink"),
    (345, 361, "red"),
)
_DARK, _LIGHT, _BROWN, _PALE = 0.2, 0.85, 0.65, 0.15
TRANSPARENT = "transparent"
NAMES = frozenset({name for _, _, name in _HUES} | {"black", "white", "gray", "brown", TRANSPARENT})
_SYNONYMS = {
    "grey": "gray",
    "violet": "purple",
    "magenta": "pink",
    "aqua": "cyan",
    "turquoise": "cyan",
    "fuchsia": "pink",
}
_HEX = re.compile(r"#([0-9a-f]{3}|[0-9a-f]{6})")
_RGB = re.compile(
    r"rgb\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)|\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)"
)


def palette_name(text: str) -> str:
    """Return the palette name of the colour, or an empty string."""
    name = _SYNONYMS.get(text.casefold(), text.casefold())
    return name if name in NAMES else ""


def parse_colour(text: str) -> Colour | None:
    """Parse `#f00`, `#ff0000` or `rgb(255, 0, 0)` into red, green and blue, or return None."""
    folded = text.casefold()
    if match := _HEX.fullmatch(folded):
        digits = match[1] if len(match[1]) == 6 else "".join(2 * digit for digit in match[1])
        return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:], 16)
    match = _RGB.fullmatch(folded)
    if match is None:
        return None
    red, green, blue = (int(part) for part in match.groups() if part is not None)
    return (red, green, blue) if max(red, green, blue) <= 255 else None


def to_hex(colour: Colour) -> str:
    """Format the colour as `#rrggbb`."""
    return "#{:02x}{:02x}{:02x}".format(*colour)


@lru_cache(maxsize=1 << 16)
def name_pixel(red: int, green: int, blue: int, alpha: int = 255) -> str:
    """Return the palette name of a pixel."""
    if alpha == 0:
        return TRANSPARENT
    hue, saturation, value = colorsys.rgb_to_hsv(red / 255, green / 255, blue / 255)
    if value < _DARK:
        return "black"
    if saturation < _PALE:
        return "white" if value >= _LIGHT else "gray"
    name = next(name for start, end, name in _HUES if start <= hue * 360 < end)
    return "brown" if name == "orange" and value < _BROWN else name


def colour_shares(image: Image.Image) -> dict[str, float]:
    """Return the share of all pixels for each palette name, largest first.

    If there are more than 65,536 different colours, each is first rounded to a multiple of eight.
    """
    pixels = image.convert("RGBA")
    colours = pixels.getcolors(_EXACT_COLOURS)
    if colours is None:
        colours = pixels.point(lambda level: level // _STEP * _STEP + _STEP // 2 if level else 0).getcolors(1 << 20)
    counted: Counter[str] = Counter()
    for count, colour in colours or ():
        counted[name_pixel(*_rgba(colour))] += count
    total = image.width * image.height
    return {name: count / total for name, count in counted.most_common()}


def _rgba(colour: Any) -> tuple[int, int, int, int]:
    red, green, blue, alpha = colour
    return int(red), int(green), int(blue), int(alpha)


def count_pixels(image: Image.Image, colour: Colour) -> int:
    """Count the visible pixels with exactly this colour."""
    red, green, blue, alpha = image.convert("RGBA").split()
    bands = [
        band.point([255 * (level == target) for level in range(256)])
        for band, target in zip((red, green, blue), colour, strict=True)
    ]
    matching = alpha.point([255 * (level > 0) for level in range(256)])
    for band in bands:
        matching = ImageChops.darker(matching, band)
    return matching.histogram()[255]


def pixel_at(image: Image.Image, x: int, y: int) -> tuple[Colour, int]:
    """Return the colour and the opacity of one pixel; the origin is the upper left corner."""
    red, green, blue, alpha = _rgba(image.crop((x, y, x + 1, y + 1)).convert("RGBA").getpixel((0, 0)))
    return (red, green, blue), alpha


def is_gray(image: Image.Image) -> bool:
    """Return True if red, green and blue are equal in every pixel."""
    red, green, blue = image.convert("RGB").split()
    return not (ImageChops.difference(red, green).getbbox() or ImageChops.difference(green, blue).getbbox())


def lowest_alpha(image: Image.Image) -> int:
    """Return the lowest alpha of any pixel; 255 if all are opaque."""
    low, _ = image.convert("RGBA").getchannel("A").getextrema()
    return int(low)  # type: ignore[arg-type]  # one band has one pair
