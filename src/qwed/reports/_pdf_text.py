"""Fonts and text of the PDF report; characters without a glyph are printed as U+XXXX."""

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

from qwed.model.unicode_normal import normalize
from qwed.reports._pdf_accents import add_accents, has_glyph
from qwed.reports.yield_gil import yield_gil

Story = list[Flowable]

PLAIN, BOLD, MONO = "QwedVera", "QwedVeraBold", "Courier"
INK, FAINT, RULE, BAND = (colors.HexColor(code) for code in ("#1f2933", "#627080", "#cbd2d9", "#f1f4f7"))
MAX_CELL_LENGTH = 700
"""Characters per table cell; more would make a row taller than a page."""
BLANK = "\u2013"
"""Placeholder for a missing value."""
TRUNCATED = " … (cut here; the JSON report has all of it)"
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
    """Register the fonts. Idempotent and thread-safe."""
    with _lock:
        _load()


def _kind(character: str) -> str:
    if character.isspace() or unicodedata.category(character) == "Cc":
        return "blank"
    return "shown" if has_glyph(_load(), ord(character)) else "escaped"


def printable(text: str) -> str:
    """Return the text with `[U+4E2D U+6587]` for characters without a glyph."""
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


def truncate(text: str, most: int = MAX_CELL_LENGTH) -> str:
    """Return the printable text, truncated to fit a cell, with a note."""
    text_printed = printable(text[: most + 1])
    return text_printed if len(text_printed) <= most else text_printed[:most] + TRUNCATED


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
    """Paragraph that yields the interpreter lock: a report lays out thousands of them."""

    def wrap(self, width: float, height: float) -> tuple[float, float]:
        """Return the size it takes."""
        yield_gil()
        return super().wrap(width, height)

    def draw(self) -> None:
        """Draw it on the page."""
        yield_gil()
        super().draw()


def text_cell(text: str | None, style: ParagraphStyle = CELL) -> Paragraph:
    """Return a paragraph of untrusted text, or a dash if there is none."""
    return Paragraph(BLANK if text is None else escape(truncate(text), quote=False), style)


def marked_up(text: str, style: ParagraphStyle = BODY) -> Paragraph:
    """Return a paragraph of our own text, with backticked parts in the monospace font."""
    parts = escape(printable(text), quote=False).split("`")
    for index in range(1, len(parts), 2):
        parts[index] = f'<font name="{MONO}">{parts[index]}</font>'
    return Paragraph("".join(parts), style)


def identifier(text: str | None) -> Paragraph:
    """Return an id, hash or signature in monospace, broken at the end of the line."""
    if text is None:
        return text_cell(None)
    return Paragraph(escape("".join(_ascii(text)), quote=False), ID)


def _ascii(text: str) -> Iterator[str]:
    for character in text:
        yield character if " " <= character <= "~" else f"[U+{ord(character):04X}]"


def format_time(time: str | None) -> str | None:
    """Format an RFC 3339 time for people; the report states once that times are UTC."""
    return None if time is None else time.replace("T", " ").removesuffix("Z")


def format_usd(amount: float) -> str:
    """Format US dollars to the cent, or to all known decimals."""
    cents, exact = f"{amount:,.2f}", f"{amount:,.6f}".rstrip("0")
    return max(cents, exact, key=len)


def humanize(name: str) -> str:
    """Format an interface name for people."""
    return name.replace("_", " ").capitalize().replace(" usd", ", USD")
