"""Screening of a tool listing: which tools pass, which are quarantined, and the updated pins."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from mcp_types import Tool
from msgspec.structs import replace

from qwed.guards.prompt_injection import InjectionFinding
from qwed.guards.safe_display import plain_name
from qwed.kernel.tools import TOOLS
from qwed_mcp.tool_pinning.diff import describe_changes
from qwed_mcp.tool_pinning.digest import DefinitionTooLargeError, canonical_bytes, definition_of, digest_of
from qwed_mcp.tool_pinning.injection_scan import scan_definition
from qwed_mcp.tool_pinning.lookalikes import KnownTool, LookalikeIndex, has_confusable_letters, name_problems
from qwed_mcp.tool_pinning.pin_file import Pin, PinFile
from qwed_mcp.tool_pinning.quarantined import QuarantinedTool, ScreeningResult
from qwed_mcp.tool_pinning.shadowing import ForeignTools, index_foreign_tools

MAX_TOOLS = 1_000
MAX_LISTING = 1 << 20
FIRST_SIGHT = "first sight"
_NEW = "is new since the server was pinned"


class _ListedTool(NamedTuple):
    tool: Tool
    definition: dict[str, Any]
    digest: str
    problems: tuple[str, ...]


class _KnownNames(NamedTuple):
    names: LookalikeIndex
    foreign: ForeignTools


def screen_tools(
    pinned: PinFile, tools: Sequence[Tool], other_tools: Iterable[KnownTool]
) -> tuple[ScreeningResult, PinFile]:
    """Screen a listing; return the result and the updated pins."""
    if len(tools) > MAX_TOOLS:
        reason = f"too large: the server lists {len(tools):,} tools, at most {MAX_TOOLS:,} are allowed"
        return ScreeningResult((), tuple(_unreleasable(pinned, tool, (reason,)) for tool in tools)), pinned
    listed = _read_all(pinned.server, tools)
    others = (*_built_in_tools(), *other_tools)
    own = _own_tools(pinned, tools)
    known_names = _KnownNames(
        LookalikeIndex([*others, *own]), index_foreign_tools(others, (entry.name for entry in own))
    )
    passed: list[Tool] = []
    quarantined: list[QuarantinedTool] = []
    pins = dict(pinned.pins)
    for entry in listed:
        quarantined_tool = _quarantine(pinned, entry, known_names)
        if quarantined_tool is not None:
            quarantined.append(quarantined_tool)
            continue
        passed.append(entry.tool)
        pins.setdefault(entry.tool.name, Pin(entry.digest, FIRST_SIGHT, entry.definition))
    return ScreeningResult(tuple(passed), tuple(quarantined)), replace(
        pinned, listed=pinned.listed or bool(tools), pins=pins
    )


def with_release(pinned: PinFile, quarantined: QuarantinedTool, by: str) -> PinFile:
    """Return the pins with exactly the quarantined definition released."""
    pin = Pin(quarantined.digest, by, definition_of(quarantined.tool))
    return replace(pinned, pins={**pinned.pins, quarantined.tool.name: pin})


def _quarantine(pinned: PinFile, entry: _ListedTool, known_names: _KnownNames) -> QuarantinedTool | None:
    if entry.problems:
        return _unreleasable(pinned, entry.tool, entry.problems, entry.digest)
    pin = pinned.pins.get(entry.tool.name)
    if pin is not None and pin.digest == entry.digest:
        return None
    try:
        findings = scan_definition(entry.definition, known_names.foreign)
    except DefinitionTooLargeError as problem:
        return _unreleasable(pinned, entry.tool, (f"too large: {problem}",), entry.digest)
    reasons = (
        *_differences(pinned, pin, entry),
        *_name_warnings(entry.tool.name, known_names.names),
        *(finding.reason for finding in findings),
    )
    if not reasons:
        return None
    pinned_digest = pin.digest if pin is not None else ""
    return QuarantinedTool(
        entry.tool, entry.digest, reasons, pinned.server, pinned_digest, matched_words=_matched_words(findings)
    )


def _matched_words(findings: Iterable[InjectionFinding]) -> tuple[str, ...]:
    return tuple(finding.words for finding in findings if finding.words)


def _differences(pinned: PinFile, pin: Pin | None, entry: _ListedTool) -> tuple[str, ...]:
    if pin is not None:
        return describe_changes(pin.definition, entry.definition)
    return (_NEW,) if pinned.listed else ()


def _name_warnings(name: str, names: LookalikeIndex) -> Iterable[str]:
    if has_confusable_letters(name):
        yield "its name is written in letters that look like others"
    lookalike = names.find_lookalike(name)
    if lookalike is not None:
        yield f"its name looks like `{plain_name(lookalike.name)}`, {lookalike.owner}"


def _read_all(server: str, tools: Sequence[Tool]) -> list[_ListedTool]:
    counts = Counter(tool.name for tool in tools)
    bytes_left = MAX_LISTING
    listed: list[_ListedTool] = []
    for tool in tools:
        entry, size = _read(server, tool, bytes_left)
        bytes_left -= size
        twice = ("its name is listed more than once",) if counts[tool.name] > 1 else ()
        listed.append(entry._replace(problems=(*entry.problems, *twice)))
    return listed


def _read(server: str, tool: Tool, bytes_left: int) -> tuple[_ListedTool, int]:
    problems = tuple(name_problems(tool.name, server))
    try:
        definition = definition_of(tool)
        size = len(canonical_bytes(definition))
        if size > bytes_left:
            raise DefinitionTooLargeError(f"the whole listing has more than {MAX_LISTING:,} bytes")
        return _ListedTool(tool, definition, digest_of(definition), problems), size
    except (DefinitionTooLargeError, RecursionError) as problem:
        return _ListedTool(tool, {}, "", (f"too large: {problem}", *problems)), 0


def _unreleasable(pinned: PinFile, tool: Tool, reasons: tuple[str, ...], digest: str = "") -> QuarantinedTool:
    """Return a quarantined tool that only a change by the server can release."""
    return QuarantinedTool(tool, digest, reasons, pinned.server, releasable=False)


def _built_in_tools() -> Iterable[KnownTool]:
    return (KnownTool(name, "a built-in tool", same_server=False) for name in TOOLS)


def _own_tools(pinned: PinFile, tools: Sequence[Tool]) -> tuple[KnownTool, ...]:
    names = dict.fromkeys(
        [*pinned.pins, *(tool.name for tool in tools if not any(name_problems(tool.name, pinned.server)))]
    )
    return tuple(KnownTool(name, "another tool of this server", same_server=True) for name in names)
