"""Typed errors of A2A."""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple


class _Row(NamedTuple):
    code: int
    """JSON-RPC error code."""
    http: int
    status: str
    """Status of HTTP+JSON, as google.rpc names it."""
    meaning: str


class ErrorKind(Enum):
    """Errors of the protocol; the name is the `reason`."""

    # fmt: off
    TASK_NOT_FOUND = _Row(-32001, 404, "NOT_FOUND", "no such task")
    TASK_NOT_CANCELABLE = _Row(-32002, 400, "FAILED_PRECONDITION", "the task cannot be cancelled")
    PUSH_NOTIFICATION_NOT_SUPPORTED = _Row(-32003, 400, "FAILED_PRECONDITION", "push notifications are not supported")
    UNSUPPORTED_OPERATION = _Row(-32004, 400, "FAILED_PRECONDITION", "the operation is not supported")
    CONTENT_TYPE_NOT_SUPPORTED = _Row(-32005, 400, "INVALID_ARGUMENT", "the content type is not supported")
    INVALID_AGENT_RESPONSE = _Row(-32006, 500, "INTERNAL", "the answer of the agent is refused")
    EXTENDED_AGENT_CARD_NOT_CONFIGURED = _Row(-32007, 400, "FAILED_PRECONDITION", "there is no extended card")
    EXTENSION_SUPPORT_REQUIRED = _Row(-32008, 400, "FAILED_PRECONDITION", "the agent asks for an extension")
    VERSION_NOT_SUPPORTED = _Row(-32009, 400, "FAILED_PRECONDITION", "this version of the protocol is not supported")
    INVALID_PARAMS = _Row(-32602, 400, "INVALID_ARGUMENT", "the parameters are not valid")
    INVALID_REQUEST = _Row(-32600, 400, "INVALID_ARGUMENT", "the request is not valid")
    METHOD_NOT_FOUND = _Row(-32601, 404, "NOT_FOUND", "no such method")
    INTERNAL_ERROR = _Row(-32603, 500, "INTERNAL", "the request could not be answered")
    PARSE_ERROR = _Row(-32700, 400, "INVALID_ARGUMENT", "the body is not JSON")
    # fmt: on

    @property
    def reason(self) -> str:
        """Reason in HTTP+JSON errors."""
        return "INVALID_REQUEST" if self is ErrorKind.PARSE_ERROR else self.name


ERROR_BY_CODE = {kind.value.code: kind for kind in ErrorKind}
_OLDEST, _NEWEST = ErrorKind.EXTENDED_AGENT_CARD_NOT_CONFIGURED, ErrorKind.TASK_NOT_FOUND
_DOMAIN = "a2a-protocol.org"
_INFO = "type.googleapis.com/google.rpc.ErrorInfo"


class CallRefusedError(Exception):
    """Ends a call with an error for its client."""

    def __init__(
        self,
        error_kind: ErrorKind,
        message: str | None = None,
        data: Mapping[str, str] | None = None,
        retry_after: int | None = None,
        http: int | None = None,
    ) -> None:
        super().__init__(message or error_kind.value.meaning)
        self.error_kind = error_kind
        self.message = message or error_kind.value.meaning
        self.data = dict(data or {})
        if retry_after is not None:
            self.data["retry_after"] = str(retry_after)
        self.retry_after = retry_after
        self.http = http
        """HTTP status, where it is more specific than that of the protocol."""

    def details(self) -> list[dict[str, object]]:
        """Return the error details in the form of A2A 1.0."""
        return [{"@type": _INFO, "reason": self.error_kind.reason, "domain": _DOMAIN, "metadata": self.data}]
