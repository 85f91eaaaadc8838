"""Fenced blocks of text, as Markdown has them; wherever they stand in a line, and to the end where none closes them."""

import html
import re
import textwrap
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from qwed_a2a.payloads.budget import Budget
from qwed_a2a.payloads.languages import language_named

_OPENING = re.compile(r"(?P<before>[^`~\n]*?)(?P<marks>`{3,}|~{3,})(?P<info>[^\n]*)")
_RUN = re.compile(r"`{3,}")
_TAG = re.compile(r"<(?P<end>/?)(?P<name>script|pre|code)\b(?P<said>[^<>]{0,500})>", re.IGNORECASE)
_SAID = re.compile(r"\b(?:language|lang|brush)[-=: ]+[\"']?([\w+#-]+)", re.IGNORECASE)
_NO_SCRIPT = re.compile(r"\btype\s*=\s*[\"']?[\w/.+-]*(?:json|template|html|plain)", re.IGNORECASE)
_PROGRAM = re.compile(r"[(;|&]|\bimport\b")
"""What the attributes of a block have not."""
_QUOTED = r"(?:[ \t]*>[ \t]?)"
_DEEPEST = 64
"""Quotations in one another."""


class Fence(NamedTuple):
    """One block: the first word after its opening marks, and what is inside."""

    word: str
    body: str
    written: str
    """The block as it stands, marks and all."""


def pieces(text: str, budget: Budget) -> Iterator[str | Fence]:
    """The text in its order: prose, and the blocks in it."""
    if "```" not in text and "~~~" not in text:
        yield text
        return
    lines, prose, at = text.split("\n"), list[str](), 0
    while at < len(lines):
        opened = _opening(lines[at])
        if opened is None:
            yield from _spans(lines[at], budget)
            prose.append(lines[at])
            at += 1
            continue
        budget.take("fences")
        prose.append(opened["before"])
        yield "\n".join(prose)
        prose = []
        end = _closing(lines, at + 1, opened["marks"])
        word, said = _word(opened["info"])
        body = _inside(lines[at + 1 : end], opened)
        yield Fence(word, f"{said}\n{body}" if said else body, "\n".join(lines[at : end + 1]))
        at = end + 1
    yield "\n".join(prose)


def _opening(line: str) -> re.Match[str] | None:
    opened = _OPENING.match(line)
    # Marks that are closed on their own line are a span of the prose.
    return None if opened is None or (opened["marks"][0] == "`" and "`" in opened["info"]) else opened


def _spans(line: str, budget: Budget) -> Iterator[Fence]:
    """Blocks of one line: from as many backticks to as many, or to the next where there are none."""
    runs = list(_RUN.finditer(line)) if "```" in line else []
    alike: dict[int, list[int]] = {}
    for number, run in enumerate(runs):
        alike.setdefault(len(run[0]), []).append(number)
    at = 0
    while at < len(runs) - 1:
        budget.take("fences")
        others = alike[len(runs[at][0])]
        after = bisect_right(others, at)
        end = others[after] if after < len(others) else at + 1
        yield _span(line[runs[at].end() : runs[end].start()].strip())
        at = end + 1


def _span(text: str) -> Fence:
    word, _, rest = text.partition(" ")
    named = rest and language_named(word)
    return Fence(word if named else "", rest if named else text, "")


def _closing(lines: list[str], at: int, marks: str) -> int:
    """Where the block ends: a line of as many marks and nothing else, or the end of all."""
    for number in range(at, len(lines)):
        bare = lines[number].strip(" \t>")
        if len(bare) >= len(marks) and bare == marks[0] * len(bare):
            return number
    return len(lines)


def elements(text: str, budget: Budget) -> Iterator[Fence]:
    """Blocks as HTML has them: scripts, and code that is set apart."""
    begun: re.Match[str] | None = None
    for tag in _TAG.finditer(text) if "<" in text else ():
        if not tag["end"]:
            begun = tag
        elif begun is not None:
            yield from _element(begun, text[begun.end() : tag.start()], budget)
            begun = None
    if begun is not None:
        yield from _element(begun, text[begun.end() :], budget)


def _element(begun: re.Match[str], body: str, budget: Budget) -> Iterator[Fence]:
    said = _SAID.search(begun["said"])
    word = said[1] if said else ""
    if begun["name"].lower() == "script":
        word = "" if _NO_SCRIPT.search(begun["said"]) else word or "javascript"
    elif not said and "\n" not in body:
        return
    budget.take("fences")
    yield Fence(word, html.unescape(body).strip("\n"), "")


def _word(info: str) -> tuple[str, str]:
    """The word that names the language, and what stands after it where that may be a program."""
    word, _, rest = info.replace("{", " ").replace("}", " ").strip().partition(" ")
    return word, rest.strip() if _PROGRAM.search(rest) else ""


def _inside(lines: list[str], opened: re.Match[str]) -> str:
    """The lines without what the block stands in: a quotation, a list."""
    quoted = min(opened["before"].count(">"), _DEEPEST)
    if quoted:
        marks = _quotation(quoted)
        lines = [marks.sub("", line, count=1) for line in lines]
    return textwrap.dedent("\n".join(lines))


@cache
def _quotation(depth: int) -> re.Pattern[str]:
    return re.compile(rf"\A{_QUOTED}{{0,{depth}}}")
