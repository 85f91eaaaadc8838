"""The typed errors of A2A: what a client is told in place of an answer."""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple


class _Row(NamedTuple):
    code: int
    """Of JSON-RPC."""
    http: int
    status: str
    """Of HTTP+JSON, as google.rpc names it."""
    meaning: str


class Fault(Enum):
    """The errors that the protocol knows; the name is its `reason`."""

    # fmt: off
    TASK_NOT_FOUND = _Row(-32001, 404, "NOT_FOUND", "no such task")
    TASK_NOT_CANCELABLE = _Row(-32002, 400, "FAILED_PRECONDITION", "the task cannot be cancelled")
    PUSH_NOTIFICATION_NOT_SUPPORTED = _Row(-32003, 400, "FAILED_PRECONDITION", "push notifications do not pass here")
    UNSUPPORTED_OPERATION = _Row(-32004, 400, "FAILED_PRECONDITION", "the operation is not supported")
    CONTENT_TYPE_NOT_SUPPORTED = _Row(-32005, 400, "INVALID_ARGUMENT", "the content type is not supported")
    INVALID_AGENT_RESPONSE = _Row(-32006, 500, "INTERNAL", "the answer of the agent is not passed on")
    EXTENDED_AGENT_CARD_NOT_CONFIGURED = _Row(-32007, 400, "FAILED_PRECONDITION", "there is no extended card")
    EXTENSION_SUPPORT_REQUIRED = _Row(-32008, 400, "FAILED_PRECONDITION", "the agent asks for an extension")
    VERSION_NOT_SUPPORTED = _Row(-32009, 400, "FAILED_PRECONDITION", "this version of the protocol is not spoken")
    INVALID_PARAMS = _Row(-32602, 400, "INVALID_ARGUMENT", "the parameters are not valid")
    INVALID_REQUEST = _Row(-32600, 400, "INVALID_ARGUMENT", "the request is not valid")
    METHOD_NOT_FOUND = _Row(-32601, 404, "NOT_FOUND", "no such method")
    INTERNAL_ERROR = _Row(-32603, 500, "INTERNAL", "the request could not be answered")
    PARSE_ERROR = _Row(-32700, 400, "INVALID_ARGUMENT", "the body is not JSON")
    # fmt: on

    @property
    def reason(self) -> str:
        """As a client of HTTP+JSON knows it."""
        return "INVALID_REQUEST" if self is Fault.PARSE_ERROR else self.name


BY_CODE = {fault.value.code: fault for fault in Fault}
_OLDEST, _NEWEST = Fault.EXTENDED_AGENT_CARD_NOT_CONFIGURED, Fault.TASK_NOT_FOUND
_DOMAIN = "a2a-protocol.org"
_INFO = "type.googleapis.com/google.rpc.ErrorInfo"


class Refused(Exception):
    """A call ends here, and its client is told why."""

    def __init__(
        self,
        fault: Fault,
        message: str | None = None,
        data: Mapping[str, str] | None = None,
        retry_after: int | None = None,
        http: int | None = None,
    ) -> None:
        super().__init__(message or fault.value.meaning)
        self.fault = fault
        self.message = message or fault.value.meaning
        self.data = dict(data or {})
        if retry_after is not None:
            self.data["retry_after"] = str(retry_after)
        self.retry_after = retry_after
        self.http = http
        """Where HTTP has a better word than the protocol."""

    def details(self) -> list[dict[str, object]]:
        """As A2A 1.0 carries them."""
        return [{"@type": _INFO, "reason": self.fault.reason, "domain": _DOMAIN, "metadata": self.data}]
