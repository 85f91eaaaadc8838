"""Open approval requests, stored between sessions so that a repeated call finds its answer, once."""

from typing import NamedTuple

from qwed_sdk.session_store import hashed_name, locked_session


class PendingApproval(NamedTuple):
    """Action that waits for an approver."""

    action_id: str
    approval_id: str


class PendingApprovals:
    """Open approval requests of one agent. Reads of the file are avoided when there are none: most calls are answered
    at once."""

    def __init__(self, protocol: str, *owner: str) -> None:
        self._name = hashed_name(protocol, *owner)
        with locked_session(self._name) as session:
            self._open = dict(session.waiting)

    @property
    def empty(self) -> bool:
        """True if there are no open requests."""
        return not self._open

    def find(self, key: str) -> PendingApproval | None:
        """Return the open request with this key, or None."""
        text = self._open.get(key)
        return None if text is None else PendingApproval(*text.split(" ", 1))

    def add(self, key: str, pending: PendingApproval) -> None:
        """Store an open request."""
        self._open[key] = " ".join(pending)
        with locked_session(self._name) as session:
            session.waiting.pop(key, None)
            session.waiting[key] = " ".join(pending)
            session.save()

    def claim(self, key: str, action_id: str) -> bool:
        """Remove the request and return True if it was still there; an answer is used only once."""
        self._open.pop(key, None)
        with locked_session(self._name) as session:
            is_open = session.waiting.get(key, "").split(" ", 1)[0] == action_id
            if is_open:
                del session.waiting[key]
                session.save()
        return is_open
