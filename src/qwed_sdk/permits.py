"""Result of a decision about a tool call: a permit or a refusal."""

from typing import Any, NamedTuple

from qwed.model import CanonicalJsonError, Decision, canonical
from qwed_sdk.errors import ActionDenied, ActionPending
from qwed_sdk.models import Answer


class Permit(NamedTuple):
    """Permission to run a tool with the verified arguments."""

    tool: str
    """Name of the tool."""
    action_id: str
    """Id of the action, `act_...`."""
    arguments: dict[str, Any]
    """Arguments to run the tool with; they may be corrected."""
    answer: Answer
    """The whole decision."""

    @property
    def attestation(self) -> str | dict[str, Any] | None:
        """Proof that the call was permitted."""
        return self.answer.attestation

    def __bool__(self) -> bool:
        return True


class Refusal(NamedTuple):
    """Refusal of a tool call; false as a condition."""

    tool: str
    """Name of the tool."""
    reason: str
    """Reason for the refusal."""
    code: str | None = None
    """Error code."""
    suggestion: str | None = None
    """Suggested remedy."""
    decision: str = Decision.DENIED
    """DENIED, PENDING or BUDGET_EXCEEDED."""
    answer: Answer | None = None
    """The whole decision; None if there is none."""

    def __bool__(self) -> bool:
        # A tuple is true, and `if checkpoint.before(...)` would run what was refused.
        return False

    def __str__(self) -> str:
        return str(self.error())

    def error(self) -> ActionDenied:
        """Return the refusal as an exception to raise.

        Returns:
            `ActionPending` if a person has to decide, otherwise `ActionDenied`.
        """
        kind = ActionPending if self.decision == Decision.PENDING else ActionDenied
        return kind(
            self.tool,
            self.reason,
            code=self.code,
            suggestion=self.suggestion,
            decision=self.decision,
            answer=self.answer,
        )


def is_same_json(one: Any, other: Any) -> bool:
    """Return True if two values are the same JSON."""
    # Not `==`, for which 1 equals True.
    try:
        return canonical(one) == canonical(other)
    except CanonicalJsonError:
        return False
