"""Markdown code fences and HTML code blocks, wherever they begin in a line; an unclosed fence extends to the end."""

import html
import re
import textwrap
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from qwed_a2a.parsing.language_detection import language_named
from qwed_a2a.parsing.parse_limits import ParseBudget

_OPENING = re.compile(r"(?P<before>[^`~\n]*?)(?P<marks>`{3,}|~{3,})(?P<info>[^\n]*)")
_RUN = re.compile(r"`{3,}")
_TAG = re.compile(r"<(?P<end>/?)(?P<name>script|pre|code)\b(?P<attributes>[^<>]{0,500})>", re.IGNORECASE)
_LANGUAGE = re.compile(r"\b(?:language|lang|brush)[-=: ]+[\"']?([\w+#-]+)", re.IGNORECASE)
_NO_SCRIPT = re.compile(r"\btype\s*=\s*[\"']?[\w/.+-]*(?:json|template|html|plain)", re.IGNORECASE)
_PROGRAM = re.compile(r"[(;|&]|\bimport\b")
"""Characters that the attributes of a block do not contain."""
_QUOTED = r"(?:[ \t]*>[ \t]?)"
_MAX_QUOTE_DEPTH = 64
"""Nested quotations."""


class Fence(NamedTuple):
    """One code block: the first word after its opening marks, and its content."""

    word: str
    body: str
    written: str
    """The source of the block, including its marks."""


def split_fences(text: str, budget: ParseBudget) -> Iterator[str | Fence]:
    """Yield prose and code blocks in the order of the text."""
    if "```" not in text and "~~~" not in text:
        yield text
        return
    lines, prose, position = text.split("\n"), list[str](), 0
    while position < len(lines):
        opened = _match_opening(lines[position])
        if opened is None:
            yield from _inline_fences(lines[position], budget)
            prose.append(lines[position])
            position += 1
            continue
        budget.take("fences")
        prose.append(opened["before"])
        yield "\n".join(prose)
        prose = []
        end = _closing_line(lines, position + 1, opened["marks"])
        word, attributes = _parse_info(opened["info"])
        body = _unindent(lines[position + 1 : end], opened)
        yield Fence(word, f"{attributes}\n{body}" if attributes else body, "\n".join(lines[position : end + 1]))
        position = end + 1
    yield "\n".join(prose)


def _match_opening(line: str) -> re.Match[str] | None:
    opened = _OPENING.match(line)
    # Marks that are closed on the same line are an inline span.
    return None if opened is None or (opened["marks"][0] == "`" and "`" in opened["info"]) else opened


def _inline_fences(line: str, budget: ParseBudget) -> Iterator[Fence]:
    """Yield blocks of one line: from a run of backticks to the next run of the same length, else to the next run."""
    runs = list(_RUN.finditer(line)) if "```" in line else []
    runs_by_length: dict[int, list[int]] = {}
    for number, run in enumerate(runs):
        runs_by_length.setdefault(len(run[0]), []).append(number)
    position = 0
    while position < len(runs) - 1:
        budget.take("fences")
        same_length = runs_by_length[len(runs[position][0])]
        after = bisect_right(same_length, position)
        end = same_length[after] if after < len(same_length) else position + 1
        yield _inline_fence(line[runs[position].end() : runs[end].start()].strip())
        position = end + 1


def _inline_fence(text: str) -> Fence:
    word, _, rest = text.partition(" ")
    named = rest and language_named(word)
    return Fence(word if named else "", rest if named else text, "")


def _closing_line(lines: list[str], at: int, marks: str) -> int:
    """Return the line that closes the block, or the number of lines if none does."""
    for number in range(at, len(lines)):
        bare = lines[number].strip(" \t>")
        if len(bare) >= len(marks) and bare == marks[0] * len(bare):
            return number
    return len(lines)


def html_code_blocks(text: str, budget: ParseBudget) -> Iterator[Fence]:
    """Yield the blocks of HTML: scripts and preformatted code."""
    opening: re.Match[str] | None = None
    for tag in _TAG.finditer(text) if "<" in text else ():
        if not tag["end"]:
            opening = tag
        elif opening is not None:
            yield from _html_code_block(opening, text[opening.end() : tag.start()], budget)
            opening = None
    if opening is not None:
        yield from _html_code_block(opening, text[opening.end() :], budget)


def _html_code_block(opening: re.Match[str], body: str, budget: ParseBudget) -> Iterator[Fence]:
    language = _LANGUAGE.search(opening["attributes"])
    word = language[1] if language else ""
    if opening["name"].lower() == "script":
        word = "" if _NO_SCRIPT.search(opening["attributes"]) else word or "javascript"
    elif not language and "\n" not in body:
        return
    budget.take("fences")
    yield Fence(word, html.unescape(body).strip("\n"), "")


def _parse_info(info: str) -> tuple[str, str]:
    """Return the word that names the language, and the text after it if that may be a program."""
    word, _, rest = info.replace("{", " ").replace("}", " ").strip().partition(" ")
    return word, rest.strip() if _PROGRAM.search(rest) else ""


def _unindent(lines: list[str], opened: re.Match[str]) -> str:
    """Return the lines without the quotation marks or indentation around the block."""
    quoted = min(opened["before"].count(">"), _MAX_QUOTE_DEPTH)
    if quoted:
        marks = _quote_prefix(quoted)
        lines = [marks.sub("", line, count=1) for line in lines]
    return textwrap.dedent("\n".join(lines))


@cache
def _quote_prefix(depth: int) -> re.Pattern[str]:
    return re.compile(rf"\A{_QUOTED}{{0,{depth}}}")
