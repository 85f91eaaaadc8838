"""Tool approval: classify every tool as safe, dangerous or unknown, and deny unknown ones (guide)."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from qwed.guards.text_scan import strings_in
from qwed.model import Record
from qwed.model.tool_name import base_tool_name, possible_tool_names
from qwed.model.unicode_normal import INVISIBLE_CHARACTERS, normalize

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
_INVISIBLE = re.compile(f"[{INVISIBLE_CHARACTERS}]")


class Category(StrEnum):
    """Tool categories of the guide's table."""

    SAFE = "safe"
    DANGEROUS = "dangerous"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class ToolApproval(Record):
    """Verdict on one tool call, with the reason if it is blocked."""

    approved: bool
    blocked_reason: str | None
    risk_score: float
    category: str
    approved_by: str | None


class ToolApprovalSystem:
    """Lists of safe and dangerous tools; a tool on neither list is denied."""

    def __init__(self, safe_operations: Iterable[str] = (), dangerous_operations: Iterable[str] = ()) -> None:
        """Create the lists.

        Args:
            safe_operations: Tools to add to the safe list.
            dangerous_operations: Tools to add to the dangerous list.
        """
        self.safe_operations: set[str] = {*SAFE_OPERATIONS, *safe_operations}
        self.dangerous_operations: set[str] = {*DANGEROUS_OPERATIONS, *dangerous_operations}

    def approve_tool_call(self, agent_id: str, tool_name: str, tool_params: Any = None) -> ToolApproval:  # noqa: ARG002 - the published signature
        """Classify a tool call, and approve it if the tool is safe.

        Args:
            agent_id: Id of the agent; it does not change the result.
            tool_name: Name of the tool. Safe names must match exactly; dangerous ones match in any spelling.
            tool_params: Arguments of the call, which count for `risk_score`.

        Returns:
            `approved`, `blocked_reason`, `risk_score`, `category` and `approved_by`.
        """
        category = self.category_of(tool_name)
        score = _risk_tenths(tool_name, tool_params) / 10
        reason = (
            None if category is Category.SAFE else _REASONS[category].format(name=_display_name(tool_name), score=score)
        )
        return ToolApproval(
            approved=category is Category.SAFE,
            blocked_reason=reason,
            risk_score=score,
            category=category.value,
            approved_by="safe_operations" if category is Category.SAFE else None,
        )

    def category_of(self, tool_name: str) -> Category:
        """Return the category of a tool.

        Args:
            tool_name: Name of the tool.

        Returns:
            `safe`, `dangerous` or `unknown`.
        """
        if not isinstance(tool_name, str):
            return Category.UNKNOWN
        plain = fold_name(tool_name)
        # A server prefix does not make a dangerous name harmless.
        if not {plain, *possible_tool_names(plain)}.isdisjoint(map(fold_name, self.dangerous_operations)):
            return Category.DANGEROUS
        if tool_name in self.safe_operations and not _is_disguised(tool_name, plain):
            return Category.SAFE
        return Category.UNKNOWN


_REASONS = {
    Category.DANGEROUS: "Dangerous operation '{name}' requires manual approval",
    Category.UNKNOWN: "Unknown tool '{name}' requires explicit allowlisting (risk_score={score:.1f})",
}


def fold_name(name: str) -> str:
    """Normalise a name to what a careless reader sees: compatibility letters, one case, no invisible characters, no
    surrounding spaces."""
    if name.isascii():
        return name.lower().strip()
    visible = "".join(filter(_is_visible, normalize("NFKC", name)))
    return normalize("NFKC", visible.casefold()).strip()


def case_key(name: str) -> str:
    """Return the name for a comparison that ignores case only; a name in any other disguise equals just itself."""
    lower = name.lower()
    return lower if fold_name(name) == lower else name


def _is_visible(character: str) -> bool:
    return unicodedata.category(character) != "Cf" and _INVISIBLE.match(character) is None


def _is_disguised(name: str, plain: str) -> bool:
    """Return True if the name only resembles a plain one; capitals in a listed `getWeather` are its own spelling."""
    return plain != (name.lower() if name.isascii() else name)


def _risk_tenths(tool_name: str, tool_params: Any) -> int:
    """Compute the guide's risk heuristic, for the message and the log; it never approves anything."""
    name = base_tool_name(fold_name(tool_name[:MAX_SHOWN])) if isinstance(tool_name, str) else ""
    strings = strings_in(tool_params)
    if not strings.complete:
        return _WORST
    mentioned = "\n".join(text for _, text in strings).lower()
    tenths = sum(weight for words, weight in _NAME_WEIGHTS if any(word in name for word in words))
    tenths += sum(weight for words, weight in _PARAMETER_WEIGHTS if any(word in mentioned for word in words))
    return min(tenths, _WORST)


def _display_name(tool_name: object) -> str:
    name = tool_name if isinstance(tool_name, str) else type(tool_name).__name__
    name = name if len(name) <= MAX_SHOWN else f"{name[:MAX_SHOWN]}..."
    return name if name.isprintable() else ascii(name)[1:-1]
