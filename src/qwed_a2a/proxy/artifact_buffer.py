"""Buffer for streamed artifacts, held until they are complete so that split content is checked as a whole."""

from collections.abc import Iterator
from itertools import count, pairwise
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from qwed_a2a.proxy.content import MessageContent, content_of_artifact
from qwed_a2a.proxy.errors import CallRefusedError, ErrorKind
from qwed_a2a.proxy.message_schema import Artifact, ArtifactUpdate, Task

_encode = msgspec.json.Encoder().encode


class _Chunk(NamedTuple):
    number: int
    update: ArtifactUpdate


class ArtifactBuffer:
    """Artifact chunks of one stream, which is about one task."""

    def __init__(self, max_bytes: int) -> None:
        self._free_bytes = max_bytes
        self._numbers = count()
        self._known: dict[str, list[Artifact]] = {}
        """Chunks of each artifact that the client has."""
        self._held: dict[str, list[_Chunk]] = {}
        """Chunks that the client does not have yet."""

    def set_known(self, task: Task) -> None:
        """Replace what the client has of the artifacts by those of the task."""
        for artifact in task.artifacts:
            self._forget(artifact.artifact_id)
            self._reserve(artifact)
            self._known[artifact.artifact_id] = [artifact]

    def add(self, update: ArtifactUpdate) -> bool:
        """Add a chunk and return True if its artifact is complete."""
        name = update.artifact.artifact_id
        chunks = self._held.setdefault(name, [])
        if not update.append and not chunks:
            self._forget(name)
        self._reserve(update.artifact)
        chunks.append(_Chunk(next(self._numbers), update))
        return update.last_chunk

    def contents(self, artifact_id: str | None = None) -> list[MessageContent]:
        """Return the held chunks of one artifact, or of all, joined with the earlier ones."""
        names = [name for name in self._held if artifact_id in (None, name)]
        return [content for name in names for content in self._contents(name) if content]

    def release(self, artifact_id: str | None = None) -> list[ArtifactUpdate]:
        """Return the chunks of one artifact, or of all, in the order of arrival, and count them as delivered."""
        released: list[_Chunk] = []
        for name in [name for name in self._held if artifact_id in (None, name)]:
            chunks = self._held.pop(name)
            self._known.setdefault(name, []).extend(chunk.update.artifact for chunk in chunks)
            released += chunks
        return [chunk.update for chunk in sorted(released)]

    def _contents(self, name: str) -> Iterator[MessageContent]:
        """Yield the artifact in each way that a client may join it, and the metadata of its chunks."""
        updates = [item.update for item in self._held[name]]
        task = updates[-1].task_id
        delivered = self._known.get(name, [])
        yield from _joined_contents([*delivered, *(item.artifact for item in updates)], task)
        # After a chunk that starts over, a client may have discarded the earlier ones.
        restarts = [index for index, item in enumerate(updates) if not item.append and (index or delivered)]
        for begin, end in pairwise([*restarts, len(updates)]):
            yield from _joined_contents([item.artifact for item in updates[begin:end]], task)
        for item in updates:
            yield MessageContent(metadata=item.metadata or {}, scope=(task, name))

    def _forget(self, name: str) -> None:
        for artifact in self._known.pop(name, ()):
            self._free_bytes += len(_encode(artifact))

    def _reserve(self, artifact: Artifact) -> None:
        self._free_bytes -= len(_encode(artifact))
        if self._free_bytes < 0:
            message = "the agent did not answer: the artifacts of its stream are too large to be buffered"
            raise CallRefusedError(ErrorKind.INVALID_AGENT_RESPONSE, message, {"source": "upstream"}, http=502)


def _joined_contents(chunks: list[Artifact], task: str) -> Iterator[MessageContent]:
    yield content_of_artifact(replace(chunks[0], parts=tuple(part for chunk in chunks for part in chunk.parts)), task)
    variants = {_encode(bare): bare for chunk in chunks[1:] if (bare := replace(chunk, parts=()))}
    variants.pop(_encode(replace(chunks[0], parts=())), None)
    yield from (content_of_artifact(bare, task) for bare in variants.values())
