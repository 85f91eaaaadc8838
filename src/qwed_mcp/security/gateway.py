"""Decision about a tool call before it is dispatched (seed 004, RiskBasedExecutionGateway)."""

import hashlib
import secrets
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from qwed.guards.code_guard import CodeGuard, CodeSafety
from qwed.model import Record
from qwed.model.canonical import canonical
from qwed_mcp.settings import McpSettings, mcp_settings_from

EXECUTE, STATUS = "execute_python_code", "verification_status"
ALLOW_VERIFIED, BLOCKED, BLOCKED_ADMIN_POLICY = "ALLOW_VERIFIED", "BLOCKED", "BLOCKED_ADMIN_POLICY"
MAX_NAME_CHARS = 100
"""Characters of a name from a request that a message repeats."""
MAX_ISSUES = 20
_UNSAFE = "QWED blocked python execution: {}"
_DISABLED = (
    "Python execution was verified, but server policy keeps code execution disabled "
    "until QWED_MCP_TRUSTED_CODE_EXECUTION=true."
)


class ToolPolicy(NamedTuple):
    """Row of the table of tool policies (seed 004)."""

    risk_level: str
    requires_verification: bool


POLICIES: Mapping[str, ToolPolicy] = {EXECUTE: ToolPolicy("high", True), STATUS: ToolPolicy("low", True)}
_DEFAULT_POLICY = ToolPolicy("high", True)


@dataclass(frozen=True)
class Decision(Record):
    """Decision of the gateway (seed 004); `verified` is True if the call may be carried out."""

    verified: bool
    status: str
    risk_level: str
    verification_id: str
    normalized_arguments: dict[str, Any]
    message: str


@dataclass(frozen=True)
class BlockedDecision(Decision):
    """Decision that blocks the call."""

    error_code: str

    @property
    def text(self) -> str:
        """Text of the tool result."""
        return f"{self.status}: {self.message} (verification_id={self.verification_id})"


class _CheckResult(NamedTuple):
    """Result of a tool's checks: the normalized arguments, and an error code if the call is blocked."""

    arguments: dict[str, Any]
    message: str
    error_code: str = ""
    status: str = BLOCKED


class RiskBasedExecutionGateway:
    """Gateway that checks each tool call.

    The order is: tool policy, arguments, safety of the code, policy of the administrator. The first refusal is final.
    """

    def __init__(
        self,
        settings: McpSettings | None = None,
        *,
        verify_code: Callable[[str], CodeSafety] | None = None,
        policies: Mapping[str, ToolPolicy] = POLICIES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.server_instance_id = secrets.token_hex(16)
        self._settings = mcp_settings_from() if settings is None else settings
        self._verify_code = verify_code or partial(CodeGuard().verify_safety, allow_unresolved=True)
        self._policies = policies
        self._clock = clock
        self._handlers = {EXECUTE: self._check_execution, STATUS: self._check_status}

    def evaluate_and_route(self, name: str, arguments: Mapping[str, Any] | None) -> Decision:
        """Decide about a call of the tool `name`; invalid input never raises."""
        tool = name if isinstance(name, str) else ""
        return self._build_decision(tool, self._check(tool, arguments if isinstance(arguments, Mapping) else {}))

    def _check(self, tool: str, arguments: Mapping[str, Any]) -> _CheckResult:
        if tool not in self._policies:
            return _CheckResult({}, f"Unknown MCP tool '{sanitize(tool)}' is blocked by default.", "QWED-MCP-RISK-001")
        handler = self._handlers.get(tool)
        if handler is None:
            return _CheckResult({}, f"MCP tool '{sanitize(tool)}' has no governance handler.", "QWED-MCP-RISK-002")
        return handler(arguments)

    def _build_decision(self, tool: str, checked: _CheckResult) -> Decision:
        policy = self._policies.get(tool, _DEFAULT_POLICY)
        fingerprint = self._fingerprint(tool, checked.arguments)
        if not checked.error_code:
            return Decision(True, ALLOW_VERIFIED, policy.risk_level, fingerprint, checked.arguments, checked.message)
        return BlockedDecision(
            False,
            checked.status,
            policy.risk_level,
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

    def _check_execution(self, arguments: Mapping[str, Any]) -> _CheckResult:
        code, background = arguments.get("code"), arguments.get("background", False)
        if not isinstance(code, str) or not code.strip():
            return _CheckResult({}, "Missing required non-empty 'code' argument.", "QWED-MCP-RISK-003")
        if not isinstance(background, bool):
            return _CheckResult({}, "'background' must be a boolean when provided.", "QWED-MCP-RISK-004")
        if not _is_encodable(code):
            return _CheckResult({}, _UNSAFE.format("the code is not valid Unicode"), "QWED-MCP-RISK-005")
        return self._check_safety({"code": code, "background": background})

    def _check_safety(self, normalized: dict[str, Any]) -> _CheckResult:
        try:
            safety = self._verify_code(normalized["code"])
        except Exception:  # noqa: BLE001 - the MCP boundary: seed 004 counts an error of the guard as a refusal
            return _CheckResult(normalized, _UNSAFE.format("its verification raised an error"), "QWED-MCP-RISK-005")
        if safety.verified is not True:
            return _CheckResult(normalized, _UNSAFE.format(_format_violations(safety)), "QWED-MCP-RISK-005")
        if not self._settings.trusted_code_execution:
            return _CheckResult(normalized, _DISABLED, "QWED-MCP-RISK-006", BLOCKED_ADMIN_POLICY)
        findings = safety.message.partition("; ")[2]
        return _CheckResult(
            normalized, f"Python execution was verified{': ' if findings else ''}{sanitize(findings, 200)}."
        )

    def _check_status(self, arguments: Mapping[str, Any]) -> _CheckResult:
        job_id = arguments.get("job_id")
        if not isinstance(job_id, str) or not job_id.strip():
            return _CheckResult({}, "Missing required non-empty 'job_id' argument.", "QWED-MCP-RISK-007")
        if not _is_canonical_uuid(job_id):
            return _CheckResult({}, "Invalid job_id format. Expected a canonical UUID.", "QWED-MCP-RISK-008")
        return _CheckResult({"job_id": job_id.lower()}, "The request for the state of a job was verified.")


def block_by_policy(decision: Decision, reason: str) -> BlockedDecision:
    """Return the decision as a refusal by server policy, because no sandbox can run the code."""
    return BlockedDecision(
        False,
        BLOCKED_ADMIN_POLICY,
        decision.risk_level,
        decision.verification_id,
        decision.normalized_arguments,
        reason,
        "QWED-MCP-RISK-006",
    )


def sanitize(text: str, most: int = MAX_NAME_CHARS) -> str:
    """Return text of a request as a message may repeat it: shortened, with unprintable characters escaped."""
    plain = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text[:most])
    return plain if len(text) <= most else f"{plain}..."


def _format_violations(safety: CodeSafety) -> str:
    listed = "; ".join(sanitize(issue, 200) for issue in safety.violations[:MAX_ISSUES])
    left = len(safety.violations) - MAX_ISSUES
    return f"{listed}; and {left} more" if left > 0 else listed or "it could not be verified"


def _is_encodable(code: str) -> bool:
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
