"""Errors of the SDK; all of them derive from QWEDError, so that one `except` fails closed."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from qwed.model import Decision

if TYPE_CHECKING:
    from qwed_sdk.models import Answer


class QWEDError(Exception):
    """Base of all errors. None of them permits an action."""

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        status: int | None = None,
        details: Mapping[str, Any] | None = None,
        suggestion: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        text = f"{message} ({code})" if code else message
        super().__init__(f"{text}: {suggestion}" if suggestion else text)
        self.message = message
        """Description of the problem."""
        self.code = code
        """Error code, such as `QWED-AUTH-002`."""
        self.status = status
        """HTTP status; None if there was no answer."""
        self.details = dict(details or {})
        """Values that belong to the code."""
        self.suggestion = suggestion
        """Suggested remedy."""
        self.retry_after = retry_after
        """Seconds after which a retry may succeed."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Bypasses `__init__`, whose arguments differ by class: an error that cannot be unpickled breaks process pools.
        return _restore_error, (type(self), self.args, self.__dict__)


def _restore_error(kind: type[QWEDError], args: tuple[Any, ...], members: dict[str, Any]) -> QWEDError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(members)
    return error


def connection_advice(message: str) -> str:
    """Return advice for a person whose client could not reach a server."""
    # OpenSSL reports an answer that is not TLS this way; the server does run.
    if "WRONG_VERSION_NUMBER" in message:
        return "the server does not use TLS: write http:// instead of https://"
    return "is it running? `qwed serve` starts one"


class QWEDConnectionError(QWEDError):
    """The server was not reached, or the connection broke."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        if not sent:
            # Not in `suggestion`, which a refusal passes on to the agent: this advice is for a person.
            self.args = (f"{message}: {connection_advice(message)}",)
        self.sent = sent
        """True if the server may have received the request."""


class QWEDTimeoutError(QWEDConnectionError):
    """No answer arrived in time."""


class QWEDProtocolError(QWEDError):
    """The answer does not come from a qwed server, or contradicts itself."""


class QWEDRequestError(QWEDError):
    """The request is not valid: a field, an option, its size."""


class QWEDArgumentError(QWEDRequestError, ValueError):
    """An argument from which no request can be made: an id, a credential, a number of seconds."""


class QWEDAuthError(QWEDError):
    """The credential is missing, unknown or revoked, or its role is not sufficient."""


class QWEDNotFoundError(QWEDError):
    """The organisation has nothing with this id."""


class QWEDConflictError(QWEDError):
    """The request contradicts the current state: already decided, changed meanwhile, not enough
    evidence."""


class QWEDRateLimitError(QWEDError):
    """Too many requests; `retry_after` says when to try again."""


class QWEDServerError(QWEDError):
    """The server failed, or is overloaded."""


ERROR_CLASSES: dict[int, type[QWEDError]] = {
    401: QWEDAuthError,
    403: QWEDAuthError,
    404: QWEDNotFoundError,
    409: QWEDConflictError,
    412: QWEDConflictError,
    429: QWEDRateLimitError,
}


def error_class_of(status: int) -> type[QWEDError]:
    """Return the error class for an HTTP status."""
    if status >= 500:
        return QWEDServerError
    return ERROR_CLASSES.get(status, QWEDRequestError)


def may_have_decided(error: QWEDError) -> bool:
    """Return True if the server may have decided, and used up the step, although no answer arrived."""
    if isinstance(error, QWEDConnectionError):
        return error.sent
    return isinstance(error, QWEDServerError | QWEDProtocolError)


class ActionDenied(QWEDError):  # noqa: N818 - public name; a denial is an answer
    """A verified function was called, and may not run."""

    def __init__(
        self,
        what: str,
        reason: str,
        *,
        code: str | None = None,
        suggestion: str | None = None,
        decision: str = Decision.DENIED,
        answer: "Answer | None" = None,
    ) -> None:
        super().__init__(f"{what}: {reason}", code=code, suggestion=suggestion)
        self.what = what
        """Name of the tool or action."""
        self.reason = reason
        """Reason for the refusal."""
        self.decision = decision
        """DENIED, PENDING or BUDGET_EXCEEDED."""
        self.answer = answer
        """The whole decision; None if there is none."""

    def __str__(self) -> str:
        text = f"qwed did not permit `{self.what}`: {self.reason}"
        text = f"{text} ({self.code})" if self.code else text
        return f"{text}. {self.suggestion}" if self.suggestion else text


class ActionPending(ActionDenied):
    """A verified function was called, and a person has to decide first."""

    @property
    def approval_id(self) -> str | None:
        """Id of the approval that the person decides: `qwed approvals approve ID`."""
        return None if self.answer is None else self.answer.approval_id


class UsageError(ValueError):
    """Invalid input or configuration of a hook, proxy or command; the message says what to change."""


def quote_text(text: object) -> str:
    """Return untrusted text, shortened and in backticks."""
    plain = "".join(char if char.isprintable() and char != "`" else "?" for char in str(text)[:60])
    return f"`{plain}`"
