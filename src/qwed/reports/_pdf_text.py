"""Fonts and text of the PDF report; characters that the font cannot print are printed as U+XXXX."""

import re
import threading
import unicodedata
from collections.abc import Iterator
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, Final

from reportlab.lib import colors
from reportlab.lib.enums import TA_RIGHT
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.platypus import Flowable
from reportlab.platypus import Paragraph as Plain

from qwed.model.unicode_normal import normalize
from qwed.reports.yield_gil import yield_gil

Story = list[Flowable]

PLAIN, BOLD, MONO = "QwedDejaVu", "QwedVeraBold", "Courier"
INK, FAINT, RULE, BAND = (colors.HexColor(code) for code in ("#1f2933", "#627080", "#cbd2d9", "#f1f4f7"))
MAX_CELL_LENGTH = 700
"""Characters per table cell; more would make a row taller than a page."""
BLANK = "\u2013"
"""Placeholder for a missing value."""
TRUNCATED = " … (cut here; the JSON report has all of it)"
_FONT_FILE: Final = Path(__file__).parent / "fonts" / "DejaVuSans.ttf"
_CONTROL = re.compile(r"[\s\x00-\x1f\x7f-\x9f]")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_RIGHT_TO_LEFT = ("R", "AL", "AN")
_lock = threading.Lock()


@cache
def _load() -> Any:
    font = TTFont(PLAIN, _FONT_FILE)
    pdfmetrics.registerFont(font)
    # Bold is for our own headings; reportlab ships the Latin part of the same design.
    pdfmetrics.registerFont(TTFont(BOLD, "VeraBd.ttf"))
    return font.face.charToGlyph


def load_fonts() -> None:
    """Register the fonts. Idempotent and thread-safe."""
    with _lock:
        _load()


def printable(text: str) -> str:
    """Return the text with `[U+4E2D U+6587]` for characters that cannot be printed."""
    if text.isascii() and text.isprintable():
        return text
    return _NOT_ASCII.sub(_escape, _CONTROL.sub(" ", normalize("NFC", text)))


def _escape(run: re.Match[str]) -> str:
    marked = (c if _is_shown(c) else f"[U+{ord(c):04X}]" for c in run[0])
    return "".join(marked).replace("][", " ")


def _is_shown(character: str) -> bool:
    """Return True if the font prints it readably; right-to-left scripts and combining marks need shaping."""
    category = unicodedata.category(character)
    return (
        ord(character) in _load()
        and character.isprintable()
        and category[0] != "M"
        and unicodedata.bidirectional(character) not in _RIGHT_TO_LEFT
    )


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
