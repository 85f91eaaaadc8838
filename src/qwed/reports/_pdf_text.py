"""Typefaces and the text that can be set in them: what has no glyph is shown as U+XXXX, never as a box."""

import threading
import unicodedata
from collections.abc import Iterator
from functools import cache
from html import escape
from itertools import groupby
from typing import Any, cast

from reportlab.lib import colors
from reportlab.lib.enums import TA_RIGHT
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.platypus import Flowable
from reportlab.platypus import Paragraph as Plain

from qwed.reports._pdf_accents import add_accents, has_glyph
from qwed.reports.turns import turn
from qwed.words.normal import normalize

Story = list[Flowable]

PLAIN, BOLD, MONO = "QwedVera", "QwedVeraBold", "Courier"
INK, FAINT, RULE, BAND = (colors.HexColor(code) for code in ("#1f2933", "#627080", "#cbd2d9", "#f1f4f7"))
LONGEST_CELL = 700
"""Characters in one cell of a table: more would make a row higher than a page."""
BLANK = "\u2013"
"""Where there is nothing to say."""
CUT = " … (cut here; the JSON report has all of it)"
_FILES = {PLAIN: "Vera.ttf", BOLD: "VeraBd.ttf"}
_lock = threading.Lock()


@cache
def _load() -> Any:
    for name, file in _FILES.items():
        font = TTFont(name, file)
        add_accents(font.face)
        pdfmetrics.registerFont(font)
    return cast("TTFont", pdfmetrics.getFont(PLAIN)).face


def load_fonts() -> None:
    """Have the typefaces ready; any number of times, from any thread."""
    with _lock:
        _load()


def _kind(character: str) -> str:
    if character.isspace() or unicodedata.category(character) == "Cc":
        return "blank"
    return "shown" if has_glyph(_load(), ord(character)) else "escaped"


def printable(text: str) -> str:
    """The text as it can be printed: `[U+4E2D U+6587]` for what the typefaces have no glyph for."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_pieces(normalize("NFC", text)))


def _pieces(text: str) -> Iterator[str]:
    for kind, characters in groupby(text, _kind):
        if kind == "blank":
            yield " "
        elif kind == "shown":
            yield from characters
        else:
            yield "[" + " ".join(f"U+{ord(character):04X}" for character in characters) + "]"


def shortened(text: str, most: int = LONGEST_CELL) -> str:
    """The printable text, cut where it is too long for a cell, with words that say so."""
    shown = printable(text[: most + 1])
    return shown if len(shown) <= most else shown[:most] + CUT


def _style(name: str, **more: Any) -> ParagraphStyle:
    base: dict[str, Any] = {"fontName": PLAIN, "fontSize": 8, "leading": 10.5, "textColor": INK}
    return ParagraphStyle(name, **(base | more))


TITLE = _style("title", fontName=BOLD, fontSize=20, leading=25)
HEADING = _style("heading", fontName=BOLD, fontSize=12, leading=15, spaceBefore=14, spaceAfter=5, keepWithNext=1)
MINOR = _style("minor", fontName=BOLD, fontSize=9, leading=12, spaceBefore=8, spaceAfter=3, keepWithNext=1)
BODY = _style("body", spaceAfter=5)
NOTE = _style("note", fontSize=7.5, leading=10, textColor=FAINT, spaceAfter=4)
CELL = _style("cell", fontSize=7, leading=9, splitLongWords=1)
HEAD = _style("head", fontName=BOLD, fontSize=7, leading=9)
HEAD_RIGHT = _style("head right", fontName=BOLD, fontSize=7, leading=9, alignment=TA_RIGHT)
NUMBER = _style("number", fontSize=7, leading=9, alignment=TA_RIGHT)
LABEL = _style("label", fontSize=7.5, leading=10.5, textColor=FAINT)
ID = _style("id", fontName=MONO, fontSize=7, leading=9, wordWrap="CJK")
FIGURE = _style("figure", fontName=BOLD, fontSize=13, leading=16)


class Paragraph(Plain):
    """A paragraph that lets others have their turn: thousands of them are set one after the other."""

    def wrap(self, width: float, height: float) -> tuple[float, float]:
        """The space it takes."""
        turn()
        return super().wrap(width, height)

    def draw(self) -> None:
        """Onto the page."""
        turn()
        super().draw()


def said(text: str | None, style: ParagraphStyle = CELL) -> Paragraph:
    """A text that came from outside, as a paragraph; a dash where there is none."""
    return Paragraph(BLANK if text is None else escape(shortened(text), quote=False), style)


def marked_up(text: str, style: ParagraphStyle = BODY) -> Paragraph:
    """A sentence of ours, with what stands in backticks in the typeface of commands."""
    parts = escape(printable(text), quote=False).split("`")
    for place in range(1, len(parts), 2):
        parts[place] = f'<font name="{MONO}">{parts[place]}</font>'
    return Paragraph("".join(parts), style)


def identifier(text: str | None) -> Paragraph:
    """An id, a hash or a signature: equal widths, broken wherever the line ends."""
    if text is None:
        return said(None)
    return Paragraph(escape("".join(_ascii(text)), quote=False), ID)


def _ascii(text: str) -> Iterator[str]:
    for character in text:
        yield character if " " <= character <= "~" else f"[U+{ord(character):04X}]"


def moment(time: str | None) -> str | None:
    """A time as a person reads it; that it is UTC is said once."""
    return None if time is None else time.replace("T", " ").removesuffix("Z")


def money(amount: float) -> str:
    """US dollars, to the cent or as exactly as they are known."""
    cents, exact = f"{amount:,.2f}", f"{amount:,.6f}".rstrip("0")
    return max(cents, exact, key=len)


def worded(name: str) -> str:
    """A name of the interface as a person would write it."""
    return name.replace("_", " ").capitalize().replace(" usd", ", USD")
