"""What of an answer is content: every piece of it that somebody could read, apart from where it belongs to."""

import hashlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from qwed_a2a.proxy.terms import Artifact, Event, Message, Metadata, Part, Role, StatusUpdate, Task

_encode = msgspec.json.Encoder().encode


NOTHING: Metadata = {}


class Content(NamedTuple):
    """Parts that belong together, and what is said beside them."""

    parts: tuple[Part, ...] = ()
    metadata: Metadata = NOTHING
    beside: Metadata = NOTHING
    """Names, descriptions, the metadata of whatever it came in."""
    scope: tuple[str, ...] | None = None
    """Where it belongs to: the same there is the same thing shown again. None where it is said anew each time."""

    def digest(self) -> bytes:
        """The same for the same content in the same place."""
        return hashlib.sha256(_encode(self)).digest()

    def with_note(self, noted: Metadata) -> "Content":
        """The same with what its request says beside it."""
        return self._replace(beside={**self.beside, "request": noted}) if noted else self

    def __bool__(self) -> bool:
        return bool(self.parts or self.metadata or self.beside)


def of_message(message: Message, task_id: str = "") -> Content:
    """What a message says, and what is noted beside it."""
    # What a client said it knows, before there was a task that it belongs to.
    scope = (message.message_id,) if message.role is Role.USER else (task_id, message.message_id)
    beside = _noted(extensions=message.extensions, references=message.reference_task_ids)
    return Content(message.parts, message.metadata or NOTHING, beside, scope)


def of_artifact(artifact: Artifact, task_id: str) -> Content:
    """What an artifact is."""
    beside = _noted(name=artifact.name, description=artifact.description, extensions=artifact.extensions)
    return Content(artifact.parts, artifact.metadata or NOTHING, beside, (task_id, artifact.artifact_id))


def of_answer(answer: Event | Task) -> list[Content]:
    """All that an answer says, what was said first before what was said last; pieces of artifacts apart."""
    return [content for content in _told(answer) if content]


def _told(answer: Any) -> Iterator[Content]:
    return _READ[type(answer)](answer)


def _event(event: Event) -> Iterator[Content]:
    said = (event.task, event.message, event.status_update)
    return _told(next(each for each in said if each is not UNSET))


def _task(task: Task) -> Iterator[Content]:
    yield from (of_message(message, task.id) for message in task.history)
    yield from (of_artifact(artifact, task.id) for artifact in task.artifacts)
    yield from _status(StatusUpdate(task_id=task.id, status=task.status, metadata=task.metadata))


def _status(update: StatusUpdate) -> Iterator[Content]:
    yield Content(metadata=update.metadata or NOTHING, scope=(update.task_id,))
    if update.status.message is not UNSET:
        yield of_message(update.status.message, update.task_id)


def _message(message: Message) -> Iterator[Content]:
    yield of_message(message)._replace(scope=None)


_READ: dict[type, Callable[[Any], Iterator[Content]]] = {
    Event: _event,
    Task: _task,
    StatusUpdate: _status,
    Message: _message,
}


def _noted(**notes: object) -> Metadata:
    return {name: value for name, value in notes.items() if value and value is not UNSET}
