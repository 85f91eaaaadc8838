"""Guide, tool approval: every tool is safe, dangerous or unknown, and unknown is denied."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from qwed.guards.text import strings_in
from qwed.words import Record
from qwed.words.normal import UNSEEN, normalize
from qwed.words.tool_name import bare, readings

SAFE_OPERATIONS = ("read_database", "query_data", "search_web", "send_email", "log_message", "get_weather")
DANGEROUS_OPERATIONS = (
    "delete_database",
    "drop_table",
    "send_money",
    "delete_files",
    "shutdown_server",
    "revoke_access",
)
MAX_SHOWN = 128

# Tenths, because 0.5 + 0.4 + 0.2 is not 1.1.
_NAME_WEIGHTS = ((("delete", "drop"), 5), (("money", "payment"), 4))
_PARAMETER_WEIGHTS = ((("database",), 2), (("admin",), 2))
_WORST = 10
_UNSEEN = re.compile(f"[{UNSEEN}]")


class Category(StrEnum):
    """The three columns of the guide's table."""

    SAFE = "safe"
    DANGEROUS = "dangerous"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class ToolApproval(Record):
    """Whether the tool may be called, and if not why."""

    approved: bool
    blocked_reason: str | None
    risk_score: float
    category: str
    approved_by: str | None


class ToolApprovalSystem:
    """The safe and the dangerous list of tools; add a custom tool to `safe_operations` to allow it."""

    def __init__(self, safe_operations: Iterable[str] = (), dangerous_operations: Iterable[str] = ()) -> None:
        self.safe_operations: set[str] = {*SAFE_OPERATIONS, *safe_operations}
        self.dangerous_operations: set[str] = {*DANGEROUS_OPERATIONS, *dangerous_operations}

    def approve_tool_call(self, agent_id: str, tool_name: str, tool_params: Any = None) -> ToolApproval:  # noqa: ARG002 - the published signature
        """The verdict on one call; names match exactly, and no spelling gets past the dangerous list."""
        category = self.category_of(tool_name)
        score = _risk_tenths(tool_name, tool_params) / 10
        reason = None if category is Category.SAFE else _REASONS[category].format(name=_shown(tool_name), score=score)
        return ToolApproval(
            approved=category is Category.SAFE,
            blocked_reason=reason,
            risk_score=score,
            category=category.value,
            approved_by="safe_operations" if category is Category.SAFE else None,
        )

    def category_of(self, tool_name: str) -> Category:
        """Dangerous where any spelling of the name is on that list, safe where this very name is on the other."""
        if not isinstance(tool_name, str):
            return Category.UNKNOWN
        plain = folded(tool_name)
        # Whichever server offers it: what it is called says what it does.
        if not {plain, *readings(plain)}.isdisjoint(map(folded, self.dangerous_operations)):
            return Category.DANGEROUS
        if tool_name in self.safe_operations and not _is_disguised(tool_name, plain):
            return Category.SAFE
        return Category.UNKNOWN


_REASONS = {
    Category.DANGEROUS: "Dangerous operation '{name}' requires manual approval",
    Category.UNKNOWN: "Unknown tool '{name}' requires explicit allowlisting (risk_score={score:.1f})",
}


def folded(name: str) -> str:
    """The name as a careless reader sees it: compatible letters, one case, nothing invisible, no blanks around."""
    if name.isascii():
        return name.lower().strip()
    visible = "".join(filter(_is_seen, normalize("NFKC", name)))
    return normalize("NFKC", visible.casefold()).strip()


def _is_seen(each: str) -> bool:
    return unicodedata.category(each) != "Cf" and _UNSEEN.match(each) is None


def _is_disguised(name: str, plain: str) -> bool:
    """Whether the name only resembles a plain one; capitals in a listed `getWeather` are its own spelling."""
    return plain != (name.lower() if name.isascii() else name)


def _risk_tenths(tool_name: str, tool_params: Any) -> int:
    """The guide's heuristic, for the message and the log; it never approves anything."""
    name = bare(folded(tool_name[:MAX_SHOWN])) if isinstance(tool_name, str) else ""
    strings = strings_in(tool_params)
    if not strings.complete:
        return _WORST
    mentioned = "\n".join(text for _, text in strings).lower()
    tenths = sum(weight for words, weight in _NAME_WEIGHTS if any(word in name for word in words))
    tenths += sum(weight for words, weight in _PARAMETER_WEIGHTS if any(word in mentioned for word in words))
    return min(tenths, _WORST)


def _shown(tool_name: object) -> str:
    name = tool_name if isinstance(tool_name, str) else type(tool_name).__name__
    name = name if len(name) <= MAX_SHOWN else f"{name[:MAX_SHOWN]}..."
    return name if name.isprintable() else ascii(name)[1:-1]
