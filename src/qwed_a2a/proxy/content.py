"""Readable content of messages and answers, separated from its position."""

import hashlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from qwed_a2a.proxy.message_schema import (
    A2AMessage,
    A2APart,
    Artifact,
    Metadata,
    Role,
    StatusUpdate,
    StreamResponse,
    Task,
)

_encode = msgspec.json.Encoder().encode


NO_METADATA: Metadata = {}


class MessageContent(NamedTuple):
    """Parts that belong together, and their metadata."""

    parts: tuple[A2APart, ...] = ()
    metadata: Metadata = NO_METADATA
    extras: Metadata = NO_METADATA
    """Names, descriptions, and metadata of the enclosing object."""
    scope: tuple[str, ...] | None = None
    """Position of the content: equal content in the same scope was sent before. None if it is new each time."""

    def digest(self) -> bytes:
        """Return the SHA-256 of the content and its scope."""
        return hashlib.sha256(_encode(self)).digest()

    def with_request_metadata(self, metadata: Metadata) -> "MessageContent":
        """Return the content with the metadata of its request."""
        return self._replace(extras={**self.extras, "request": metadata}) if metadata else self

    def __bool__(self) -> bool:
        return bool(self.parts or self.metadata or self.extras)


def content_of_message(message: A2AMessage, task_id: str = "") -> MessageContent:
    """Return the content of a message."""
    # A client's own message has no task in its scope: it was sent before the task existed.
    scope = (message.message_id,) if message.role is Role.USER else (task_id, message.message_id)
    extras = _without_empty(extensions=message.extensions, references=message.reference_task_ids)
    return MessageContent(message.parts, message.metadata or NO_METADATA, extras, scope)


def content_of_artifact(artifact: Artifact, task_id: str) -> MessageContent:
    """Return the content of an artifact."""
    extras = _without_empty(name=artifact.name, description=artifact.description, extensions=artifact.extensions)
    return MessageContent(artifact.parts, artifact.metadata or NO_METADATA, extras, (task_id, artifact.artifact_id))


def contents_of_answer(answer: StreamResponse | Task) -> list[MessageContent]:
    """Return all contents of an answer, oldest first, without artifact chunks."""
    return [content for content in _iterate_contents(answer) if content]


def _iterate_contents(answer: Any) -> Iterator[MessageContent]:
    return _READERS[type(answer)](answer)


def _contents_of_event(event: StreamResponse) -> Iterator[MessageContent]:
    members = (event.task, event.message, event.status_update)
    return _iterate_contents(next(member for member in members if member is not UNSET))


def _contents_of_task(task: Task) -> Iterator[MessageContent]:
    yield from (content_of_message(message, task.id) for message in task.history)
    yield from (content_of_artifact(artifact, task.id) for artifact in task.artifacts)
    yield from _contents_of_status(StatusUpdate(task_id=task.id, status=task.status, metadata=task.metadata))


def _contents_of_status(update: StatusUpdate) -> Iterator[MessageContent]:
    yield MessageContent(metadata=update.metadata or NO_METADATA, scope=(update.task_id,))
    if update.status.message is not UNSET:
        yield content_of_message(update.status.message, update.task_id)


def _contents_of_message(message: A2AMessage) -> Iterator[MessageContent]:
    yield content_of_message(message)._replace(scope=None)


_READERS: dict[type, Callable[[Any], Iterator[MessageContent]]] = {
    StreamResponse: _contents_of_event,
    Task: _contents_of_task,
    StatusUpdate: _contents_of_status,
    A2AMessage: _contents_of_message,
}


def _without_empty(**notes: object) -> Metadata:
    return {name: value for name, value in notes.items() if value and value is not UNSET}
