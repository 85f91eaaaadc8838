"""Seed 004, RiskBasedExecutionGateway: what is decided about a tool call before anything is dispatched."""

import hashlib
import secrets
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from qwed.guards.code_guard import CodeGuard, CodeSafety
from qwed.words import Record
from qwed.words.canonical import canonical
from qwed_mcp.settings import McpSettings, mcp_settings_from

EXECUTE, STATUS = "execute_python_code", "verification_status"
ALLOW_VERIFIED, BLOCKED, BLOCKED_ADMIN_POLICY = "ALLOW_VERIFIED", "BLOCKED", "BLOCKED_ADMIN_POLICY"
MAX_SHOWN = 100
"""Characters of a name that came in a request, where a message repeats it."""
MAX_ISSUES = 20
_UNSAFE = "QWED blocked python execution: {}"
_DISABLED = (
    "Python execution was verified, but server policy keeps code execution disabled "
    "until QWED_MCP_TRUSTED_CODE_EXECUTION=true."
)


class Policy(NamedTuple):
    """Seed 004, Tool policies: one row."""

    risk_level: str
    requires_verification: bool


POLICIES: Mapping[str, Policy] = {EXECUTE: Policy("high", True), STATUS: Policy("low", True)}
_UNKNOWN = Policy("high", True)


@dataclass(frozen=True)
class Decision(Record):
    """Seed 004, Decision response fields; `verified` says whether the call may be carried out."""

    verified: bool
    status: str
    risk_level: str
    verification_id: str
    normalized_arguments: dict[str, Any]
    message: str


@dataclass(frozen=True)
class Refusal(Decision):
    """A decision that blocks."""

    error_code: str

    @property
    def text(self) -> str:
        """What the caller of the tool reads."""
        return f"{self.status}: {self.message} (verification_id={self.verification_id})"


class _Checked(NamedTuple):
    """What came of a tool's own checks: an error code where it is blocked, and the arguments that were good."""

    arguments: dict[str, Any]
    message: str
    error_code: str = ""
    status: str = BLOCKED


class RiskBasedExecutionGateway:
    """Policy, arguments, safety of the code, policy of the administrator: in this order, and the first no is final."""

    def __init__(
        self,
        settings: McpSettings | None = None,
        *,
        verify_code: Callable[[str], CodeSafety] | None = None,
        policies: Mapping[str, Policy] = POLICIES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.server_instance_id = secrets.token_hex(16)
        self._settings = mcp_settings_from() if settings is None else settings
        self._verify_code = verify_code or CodeGuard().verify_safety
        self._policies = policies
        self._clock = clock
        self._handlers = {EXECUTE: self._execution, STATUS: self._status}

    def evaluate_and_route(self, name: str, arguments: Mapping[str, Any] | None) -> Decision:
        """What is decided about calling the tool `name`; nothing that is given makes it raise."""
        tool = name if isinstance(name, str) else ""
        return self._decided(tool, self._checked(tool, arguments if isinstance(arguments, Mapping) else {}))

    def _checked(self, tool: str, arguments: Mapping[str, Any]) -> _Checked:
        if tool not in self._policies:
            return _Checked({}, f"Unknown MCP tool '{shown(tool)}' is blocked by default.", "QWED-MCP-RISK-001")
        handler = self._handlers.get(tool)
        if handler is None:
            return _Checked({}, f"MCP tool '{shown(tool)}' has no governance handler.", "QWED-MCP-RISK-002")
        return handler(arguments)

    def _decided(self, tool: str, checked: _Checked) -> Decision:
        known = self._policies.get(tool, _UNKNOWN)
        fingerprint = self._fingerprint(tool, checked.arguments)
        if not checked.error_code:
            return Decision(True, ALLOW_VERIFIED, known.risk_level, fingerprint, checked.arguments, checked.message)
        return Refusal(
            False,
            checked.status,
            known.risk_level,
            fingerprint,
            checked.arguments,
            checked.message,
            checked.error_code,
        )

    def _fingerprint(self, tool: str, arguments: dict[str, Any]) -> str:
        bound = {
            "tool": tool.encode("utf-8", "backslashreplace").decode(),
            "normalized_arguments": arguments,
            "nonce": secrets.token_hex(16),
            "timestamp": self._clock(),
            "server_instance_id": self.server_instance_id,
        }
        return hashlib.sha256(canonical(bound)).hexdigest()

    def _execution(self, arguments: Mapping[str, Any]) -> _Checked:
        code, background = arguments.get("code"), arguments.get("background", False)
        if not isinstance(code, str) or not code.strip():
            return _Checked({}, "Missing required non-empty 'code' argument.", "QWED-MCP-RISK-003")
        if not isinstance(background, bool):
            return _Checked({}, "'background' must be a boolean when provided.", "QWED-MCP-RISK-004")
        if not _is_text(code):
            return _Checked({}, _UNSAFE.format("the code is not valid Unicode"), "QWED-MCP-RISK-005")
        return self._safe({"code": code, "background": background})

    def _safe(self, normalized: dict[str, Any]) -> _Checked:
        try:
            found = self._verify_code(normalized["code"])
        except Exception:  # noqa: BLE001 - the MCP boundary: seed 004 counts a surprise of the guard as a no
            return _Checked(normalized, _UNSAFE.format("its verification raised an error"), "QWED-MCP-RISK-005")
        if found.verified is not True:
            return _Checked(normalized, _UNSAFE.format(_issues(found)), "QWED-MCP-RISK-005")
        if not self._settings.trusted_code_execution:
            return _Checked(normalized, _DISABLED, "QWED-MCP-RISK-006", BLOCKED_ADMIN_POLICY)
        return _Checked(normalized, "Python execution was verified.")

    def _status(self, arguments: Mapping[str, Any]) -> _Checked:
        job_id = arguments.get("job_id")
        if not isinstance(job_id, str) or not job_id.strip():
            return _Checked({}, "Missing required non-empty 'job_id' argument.", "QWED-MCP-RISK-007")
        if not _is_canonical_uuid(job_id):
            return _Checked({}, "Invalid job_id format. Expected a canonical UUID.", "QWED-MCP-RISK-008")
        return _Checked({"job_id": job_id.lower()}, "The request for the state of a job was verified.")


def held_back(decision: Decision, reason: str) -> Refusal:
    """The decision, now that there is nowhere to run the code: policy of the server, like a tool that is disabled."""
    return Refusal(
        False,
        BLOCKED_ADMIN_POLICY,
        decision.risk_level,
        decision.verification_id,
        decision.normalized_arguments,
        reason,
        "QWED-MCP-RISK-006",
    )


def shown(text: str, most: int = MAX_SHOWN) -> str:
    """Text of a request as a message may repeat it: bounded, and nothing in it that a reader would obey."""
    plain = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text[:most])
    return plain if len(text) <= most else f"{plain}..."


def _issues(found: CodeSafety) -> str:
    told = "; ".join(shown(issue, 200) for issue in found.violations[:MAX_ISSUES])
    left = len(found.violations) - MAX_ISSUES
    return f"{told}; and {left} more" if left > 0 else told or "it could not be verified"


def _is_text(code: str) -> bool:
    try:
        code.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_canonical_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False
