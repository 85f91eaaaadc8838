"""Accented letters that the font lacks, composed of letters and accents it has.

The font shipped with reportlab covers Western Europe. With this it also covers the Latin alphabets of Central and
Eastern Europe, the Baltics and Turkey.
"""

import struct
from typing import Any, NamedTuple

from qwed.model.unicode_normal import normalize

_LETTERS = (
    *range(0x100, 0x180),
    *range(0x1CD, 0x1DD),
    *range(0x1E6, 0x1F6),
    *range(0x218, 0x21C),
    *range(0x1E00, 0x1EFA),
)
_ABOVE = {
    "\u0300": "`",
    "\u0301": "\u00b4",
    "\u0302": "\u02c6",
    "\u0303": "\u02dc",
    "\u0304": "\u00af",
    "\u0306": "\u02d8",
    "\u0307": "\u02d9",
    "\u0308": "\u00a8",
    "\u030a": "\u02da",
    "\u030b": "\u02dd",
    "\u030c": "\u02c7",
}
_BELOW = {"\u0327": "\u00b8", "\u0328": "\u02db", "\u0326": ","}
_SUBSTITUTES = {"\u010f": "\u2019", "\u0165": "\u2019", "\u013e": "\u2019", "\u013d": "\u2019"}
"""Letters whose caron is printed as an apostrophe."""
_APOSTROPHE, _OGONEK = 0x2019, 0x2DB
_DOTLESS = {"i": "\u0131"}
_MORE, _ARE_WORDS, _ARE_OFFSETS = 0x20, 0x01, 0x02
_GAP = 0.05
"""Distance between a letter and its accent, in em."""


class _Box(NamedTuple):
    x_min: int
    y_min: int
    x_max: int
    y_max: int

    @property
    def middle(self) -> int:
        return (self.x_min + self.x_max) // 2


def add_accents(face: Any) -> None:
    """Add to a TrueType face every letter that can be composed of two of its glyphs."""
    start = face.get_table_pos("glyf")[0]
    position = len(face._ttf_data) - start
    # One glyph number is skipped: its record would span from the end of the old table to the start of the new one.
    face.hmetrics.append(face.hmetrics[0])
    face.glyphPos.append(position)
    records = []
    for code in _LETTERS:
        parts = None if has_glyph(face, code) else _parts_of(face, chr(code))
        if parts is None:
            continue
        record = _composite_glyph(face, start, *parts)
        records.append(record)
        position += len(record)
        face.glyphPos.append(position)
        _set_width(face, code, parts, record)
    face._ttf_data += b"".join(records)
    face.table["glyf"]["length"] = len(face._ttf_data) - start


def has_glyph(face: Any, code: int) -> bool:
    """Return True if the character can be printed; some mapped characters lead to the missing-glyph box."""
    return bool(face.charToGlyph.get(code))


def _set_width(face: Any, code: int, parts: tuple[int, int, bool], record: bytes) -> None:
    base, accent, _ = parts
    width = face.hmetrics[face.charToGlyph[base]][0]
    # The left side bearing must equal the record's x_min; a viewer shifts the glyph by the difference.
    (bearing,) = struct.unpack(">H", record[2:4])
    if accent == _APOSTROPHE:
        width += face.hmetrics[face.charToGlyph[accent]][0] // 2
    face.charToGlyph[code] = len(face.hmetrics)
    face.charWidths[code] = width * 1000 / face.unitsPerEm
    face.hmetrics.append((width, bearing))


def _parts_of(face: Any, letter: str) -> tuple[int, int, bool] | None:
    """Return the codes of letter and accent and whether the accent is above, or None if one is missing."""
    decomposed = normalize("NFD", letter)
    if len(decomposed) != 2:
        return None
    base, mark = decomposed[0], decomposed[1]
    above = mark in _ABOVE
    accent = _SUBSTITUTES.get(letter) or _ABOVE.get(mark) or _BELOW.get(mark)
    if above and letter not in _SUBSTITUTES:
        base = _DOTLESS.get(base, base)
    if accent is None or not has_glyph(face, ord(base)) or not has_glyph(face, ord(accent)):
        return None
    return ord(base), ord(accent), above


def _composite_glyph(face: Any, start: int, base: int, accent: int, above: bool) -> bytes:
    """Return the record of a composite glyph."""
    letter, mark = _box(face, start, base), _box(face, start, accent)
    right, up = _offset(face, letter, mark, accent, above)
    whole = _Box(
        min(letter.x_min, mark.x_min + right),
        min(letter.y_min, mark.y_min + up),
        max(letter.x_max, mark.x_max + right),
        max(letter.y_max, mark.y_max + up),
    )
    flags = _ARE_WORDS | _ARE_OFFSETS
    record = struct.pack(">h4h", -1, *whole)
    record += struct.pack(">HHhh", flags | _MORE, face.charToGlyph[base], 0, 0)
    record += struct.pack(">HHhh", flags, face.charToGlyph[accent], right, up)
    return record.ljust((len(record) + 3) // 4 * 4, b"\0")


def _offset(face: Any, letter: _Box, mark: _Box, accent: int, above: bool) -> tuple[int, int]:
    gap = int(face.unitsPerEm * _GAP)
    if accent == _APOSTROPHE:
        return letter.x_max - mark.x_min, letter.y_max - mark.y_max
    if accent == _OGONEK:
        return letter.x_max - mark.x_max, 0
    if accent == ord(","):
        return letter.middle - mark.middle, letter.y_min - gap - mark.y_max
    if not above:
        return letter.middle - mark.middle, 0
    return letter.middle - mark.middle, max(letter.y_max + gap - mark.y_min, 0)


def _box(face: Any, start: int, code: int) -> _Box:
    at = start + face.glyphPos[face.charToGlyph[code]]
    return _Box(*struct.unpack(">4h", face._ttf_data[at + 2 : at + 10]))
