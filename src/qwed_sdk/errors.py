"""What can go wrong between a program and the control plane: one tree, so that one `except` fails closed."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from qwed.words import Decision

if TYPE_CHECKING:
    from qwed_sdk.records import Answer


class QWEDError(Exception):
    """Base of them all. Whoever meets one has no permission to act."""

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
        said = f"{message} ({code})" if code else message
        super().__init__(f"{said}: {suggestion}" if suggestion else said)
        self.message = message
        self.code = code
        self.status = status
        """The HTTP status; None where no answer came."""
        self.details = dict(details or {})
        self.suggestion = suggestion
        self.retry_after = retry_after
        """Seconds after which it may be worth asking again."""

    def __reduce__(self) -> tuple[Any, ...]:
        # As it is, without asking its class again: one that cannot be read back breaks whole pools of processes.
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[QWEDError], args: tuple[Any, ...], members: dict[str, Any]) -> QWEDError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(members)
    return error


def unreached(said: str) -> str:
    """What a person can do where no server was reached."""
    # What OpenSSL calls an answer that is no TLS; whoever gave it does run.
    if "WRONG_VERSION_NUMBER" in said:
        return "it speaks no TLS: write http:// in place of https://"
    return "is it running? `qwed serve` starts one"


class QWEDConnectionError(QWEDError):
    """The server was not reached, or the connection broke off."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        if not sent:
            # In the text alone: whoever refuses an agent passes the suggestion on, and this one is for a person.
            self.args = (f"{message}: {unreached(message)}",)
        self.sent = sent
        """Whether the server may have read the request before it broke off."""


class QWEDTimeoutError(QWEDConnectionError):
    """No answer came in time."""


class QWEDProtocolError(QWEDError):
    """Something answered that is no qwed server, or that contradicts itself."""


class QWEDRequestError(QWEDError):
    """The request itself is wrong: a field, an option, its size."""


class QWEDArgumentError(QWEDRequestError, ValueError):
    """What no request can be made of: an id, a credential, a number of seconds that is none."""


class QWEDAuthError(QWEDError):
    """No credential, one that is unknown or revoked, or one whose role is not sufficient."""


class QWEDNotFoundError(QWEDError):
    """There is nothing of this name in the caller's organisation."""


class QWEDConflictError(QWEDError):
    """It contradicts how things stand: decided already, suspended already, not enough evidence."""


class QWEDRateLimitError(QWEDError):
    """Too many requests; `retry_after` says when to come back."""


class QWEDServerError(QWEDError):
    """The server failed, or is overloaded."""


OF_STATUS: dict[int, type[QWEDError]] = {
    401: QWEDAuthError,
    403: QWEDAuthError,
    404: QWEDNotFoundError,
    409: QWEDConflictError,
    429: QWEDRateLimitError,
}


def error_class(status: int) -> type[QWEDError]:
    """The class of an error with this HTTP status."""
    if status >= 500:
        return QWEDServerError
    return OF_STATUS.get(status, QWEDRequestError)


def perhaps_decided(error: QWEDError) -> bool:
    """Whether the server may have decided, and used the step up, without our hearing of it."""
    if isinstance(error, QWEDConnectionError):
        return error.sent
    return isinstance(error, QWEDServerError | QWEDProtocolError)


class ActionDenied(QWEDError):
    """A verified function was called and may not run. `reason` says why, `suggestion` what would pass."""

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
        self.reason = reason
        self.decision = decision
        self.answer = answer
        """The whole answer; None where none came."""

    def __str__(self) -> str:
        told = f"qwed did not permit `{self.what}`: {self.reason}"
        told = f"{told} ({self.code})" if self.code else told
        return f"{told}. {self.suggestion}" if self.suggestion else told


class ActionPending(ActionDenied):
    """A person has to decide first, and has not yet."""

    @property
    def approval_id(self) -> str | None:
        """What the person decides on: `qwed approvals approve ID`."""
        return None if self.answer is None else self.answer.approval_id
