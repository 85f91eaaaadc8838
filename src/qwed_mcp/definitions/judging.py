"""Which tools of a listing are shown, which are held, and what is pinned afterwards."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from mcp_types import Tool
from msgspec.structs import replace

from qwed.guards.instructions import Finding
from qwed.guards.visible import plain_name
from qwed.kernel.tools import TOOLS
from qwed_mcp.definitions.changes import changes
from qwed_mcp.definitions.held import Held, Screened
from qwed_mcp.definitions.names import Known, Names, in_other_letters, unfit
from qwed_mcp.definitions.pages import Pages, Pin
from qwed_mcp.definitions.screening import findings
from qwed_mcp.definitions.shadowing import Foreign, foreign_names
from qwed_mcp.definitions.wire import TooLarge, definition_of, digest_of, written

MAX_TOOLS = 1_000
MAX_LISTING = 1 << 20
FIRST_SIGHT = "first sight"
_NEW = "is new since the server was pinned"


class _Read(NamedTuple):
    tool: Tool
    definition: dict[str, Any]
    digest: str
    problems: tuple[str, ...]


class _Known(NamedTuple):
    names: Names
    foreign: Foreign


def judge(pages: Pages, tools: Sequence[Tool], beside: Iterable[Known]) -> tuple[Screened, Pages]:
    """The listing told apart, and the pages as they read from now on."""
    if len(tools) > MAX_TOOLS:
        reason = f"too large: the server lists {len(tools):,} tools, and at most {MAX_TOOLS:,} are read"
        return Screened((), tuple(_refused(pages, tool, (reason,)) for tool in tools)), pages
    listed = _read_all(pages.server, tools)
    others = (*_built_in(), *beside)
    own = _own(pages, tools)
    known = _Known(Names([*others, *own]), foreign_names(others, (each.name for each in own)))
    passed: list[Tool] = []
    held: list[Held] = []
    pins = dict(pages.pins)
    for each in listed:
        found = _held(pages, each, known)
        if found is not None:
            held.append(found)
            continue
        passed.append(each.tool)
        pins.setdefault(each.tool.name, Pin(each.digest, FIRST_SIGHT, each.definition))
    return Screened(tuple(passed), tuple(held)), replace(pages, listed=pages.listed or bool(tools), pins=pins)


def released(pages: Pages, held: Held, by: str) -> Pages:
    """The pages once a person has released exactly what is held."""
    pin = Pin(held.digest, by, definition_of(held.tool))
    return replace(pages, pins={**pages.pins, held.tool.name: pin})


def _held(pages: Pages, each: _Read, known: _Known) -> Held | None:
    if each.problems:
        return _refused(pages, each.tool, each.problems, each.digest)
    pin = pages.pins.get(each.tool.name)
    if pin is not None and pin.digest == each.digest:
        return None
    try:
        said = findings(each.definition, known.foreign)
    except TooLarge as problem:
        return _refused(pages, each.tool, (f"too large: {problem}",), each.digest)
    reasons = (
        *_differences(pages, pin, each),
        *_misleading(each.tool.name, known.names),
        *(found.reason for found in said),
    )
    if not reasons:
        return None
    previous = pin.digest if pin is not None else ""
    return Held(each.tool, each.digest, reasons, pages.server, previous, found=_words(said))


def _words(said: Iterable[Finding]) -> tuple[str, ...]:
    return tuple(found.words for found in said if found.words)


def _differences(pages: Pages, pin: Pin | None, each: _Read) -> tuple[str, ...]:
    if pin is not None:
        return changes(pin.definition, each.definition)
    return (_NEW,) if pages.listed else ()


def _misleading(name: str, names: Names) -> Iterable[str]:
    if in_other_letters(name):
        yield "its name is written in letters that look like others"
    known = names.taken_for(name)
    if known is not None:
        yield f"its name looks like `{plain_name(known.name)}`, {known.owner}"


def _read_all(server: str, tools: Sequence[Tool]) -> list[_Read]:
    counts = Counter(tool.name for tool in tools)
    left = MAX_LISTING
    listed: list[_Read] = []
    for tool in tools:
        each, size = _read(server, tool, left)
        left -= size
        twice = ("its name is listed more than once",) if counts[tool.name] > 1 else ()
        listed.append(each._replace(problems=(*each.problems, *twice)))
    return listed


def _read(server: str, tool: Tool, left: int) -> tuple[_Read, int]:
    problems = tuple(unfit(tool.name, server))
    try:
        definition = definition_of(tool)
        size = len(written(definition))
        if size > left:
            raise TooLarge(f"the whole listing has more than {MAX_LISTING:,} bytes")
        return _Read(tool, definition, digest_of(definition), problems), size
    except (TooLarge, RecursionError) as problem:
        return _Read(tool, {}, "", (f"too large: {problem}", *problems)), 0


def _refused(pages: Pages, tool: Tool, reasons: tuple[str, ...], digest: str = "") -> Held:
    """What nobody can release: it has to change."""
    return Held(tool, digest, reasons, pages.server, releasable=False)


def _built_in() -> Iterable[Known]:
    return (Known(name, "a built-in tool", here=False) for name in TOOLS)


def _own(pages: Pages, tools: Sequence[Tool]) -> tuple[Known, ...]:
    mine = dict.fromkeys([*pages.pins, *(tool.name for tool in tools if not any(unfit(tool.name, pages.server)))])
    return tuple(Known(name, "another tool of this server", here=True) for name in mine)
