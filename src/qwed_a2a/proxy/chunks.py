"""Streamed artifacts: held until they are whole, so that nothing passes in pieces that would not pass at once."""

from collections.abc import Iterator
from itertools import count, pairwise
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from qwed_a2a.proxy.contents import Content, of_artifact
from qwed_a2a.proxy.faults import Fault, Refused
from qwed_a2a.proxy.terms import Artifact, ArtifactUpdate, Task

_encode = msgspec.json.Encoder().encode


class _Piece(NamedTuple):
    number: int
    update: ArtifactUpdate


class Chunks:
    """The pieces of the artifacts of one stream, which is about one task."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._numbers = count()
        self._known: dict[str, list[Artifact]] = {}
        """What the client has of each artifact."""
        self._held: dict[str, list[_Piece]] = {}
        """What it has not, whatever else it is shown meanwhile."""

    def know(self, task: Task) -> None:
        """What a client is shown of the artifacts at once, in place of what it had of them."""
        for artifact in task.artifacts:
            self._forget(artifact.artifact_id)
            self._keep(artifact)
            self._known[artifact.artifact_id] = [artifact]

    def hold(self, update: ArtifactUpdate) -> bool:
        """Take one more; whether its artifact is whole now."""
        name = update.artifact.artifact_id
        held = self._held.setdefault(name, [])
        if not update.append and not held:
            self._forget(name)
        self._keep(update.artifact)
        held.append(_Piece(next(self._numbers), update))
        return update.last_chunk

    def whole(self, artifact_id: str | None = None) -> list[Content]:
        """What is held of an artifact, or of all, together with what came before."""
        names = [name for name in self._held if artifact_id in (None, name)]
        return [content for name in names for content in self._contents(name) if content]

    def release(self, artifact_id: str | None = None) -> list[ArtifactUpdate]:
        """The pieces of an artifact, or of all, in the order in which they came."""
        released: list[_Piece] = []
        for name in [name for name in self._held if artifact_id in (None, name)]:
            pieces = self._held.pop(name)
            self._known.setdefault(name, []).extend(each.update.artifact for each in pieces)
            released += pieces
        return [each.update for each in sorted(released)]

    def _contents(self, name: str) -> Iterator[Content]:
        """The artifact as anybody may put it together, and whatever is said beside its pieces."""
        updates = [each.update for each in self._held[name]]
        task = updates[-1].task_id
        known = self._known.get(name, [])
        yield from _joined([*known, *(each.artifact for each in updates)], task)
        # Where a piece begins anew, a client may have nothing of what came before it.
        anew = [index for index, each in enumerate(updates) if not each.append and (index or known)]
        for begin, end in pairwise([*anew, len(updates)]):
            yield from _joined([each.artifact for each in updates[begin:end]], task)
        for each in updates:
            yield Content(metadata=each.metadata or {}, scope=(task, name))

    def _forget(self, name: str) -> None:
        for artifact in self._known.pop(name, ()):
            self._left += len(_encode(artifact))

    def _keep(self, artifact: Artifact) -> None:
        self._left -= len(_encode(artifact))
        if self._left < 0:
            said = "the agent did not answer: the artifacts of its stream are too large to be held"
            raise Refused(Fault.INVALID_AGENT_RESPONSE, said, {"source": "upstream"}, http=502)


def _joined(pieces: list[Artifact], task: str) -> Iterator[Content]:
    yield of_artifact(replace(pieces[0], parts=tuple(part for each in pieces for part in each.parts)), task)
    said = {_encode(bare): bare for each in pieces[1:] if (bare := replace(each, parts=()))}
    said.pop(_encode(replace(pieces[0], parts=())), None)
    yield from (of_artifact(bare, task) for bare in said.values())
