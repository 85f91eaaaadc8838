"""Pieces of artifacts: whatever order an agent sends them in, nothing goes on that was not looked at."""

import pytest

from qwed_a2a.proxy.chunks import Chunks
from qwed_a2a.proxy.contents import Content
from qwed_a2a.proxy.faults import Refused
from qwed_a2a.proxy.terms import Artifact, ArtifactUpdate, Part, Task


def piece(text: str, name: str = "a", *, append: bool = True, last: bool = False) -> ArtifactUpdate:
    artifact = Artifact(artifact_id=name, parts=(Part(text=text),))
    return ArtifactUpdate(task_id="t", artifact=artifact, append=append, last_chunk=last)


def snapshot(text: str, name: str = "a") -> Task:
    return Task(id="t", artifacts=(Artifact(artifact_id=name, parts=(Part(text=text),)),))


def texts(contents: list[Content]) -> list[str]:
    return ["".join(str(part.text) for part in content.parts) for content in contents]


def test_what_is_held_is_looked_at_whatever_the_task_is_said_to_be_meanwhile() -> None:
    chunks = Chunks(10_000)
    chunks.hold(piece("poison", append=False))
    chunks.know(snapshot("harmless"))
    assert chunks.hold(piece(" end", last=True))
    assert texts(chunks.whole("a")) == ["harmlesspoison end", "poison end"]
    assert len(chunks.release("a")) == 2


def test_what_follows_a_last_piece_is_looked_at_with_what_was_before_it() -> None:
    chunks = Chunks(10_000)
    chunks.hold(piece("poi", append=False, last=True))
    chunks.release("a")
    chunks.hold(piece("son", last=True))
    assert texts(chunks.whole("a")) == ["poison"]


def test_a_piece_that_begins_anew_is_looked_at_by_itself_too() -> None:
    chunks = Chunks(10_000)
    for each in (piece("'''", append=False), piece("poi", append=False), piece("son")):
        chunks.hold(each)
    assert texts(chunks.whole("a")) == ["'''poison", "poison"]
    chunks.release()
    chunks.hold(piece("other", append=False))
    assert texts(chunks.whole("a")) == ["other"]


def test_pieces_of_several_artifacts_come_in_the_order_in_which_they_were_said() -> None:
    chunks = Chunks(10_000)
    for text, name in (("1", "a"), ("2", "b"), ("3", "a"), ("4", "b")):
        chunks.hold(piece(text, name))
    assert sorted(texts(chunks.whole())) == ["13", "24"]
    assert [each.artifact.parts[0].text for each in chunks.release()] == ["1", "2", "3", "4"]


def test_only_what_is_there_now_counts_as_room_and_there_is_not_more_of_it() -> None:
    chunks = Chunks(2_000)
    for _ in range(50):
        chunks.know(snapshot("x" * 1_000))
        chunks.hold(piece("x" * 500, "b", append=False, last=True))
        chunks.release("b")
    with pytest.raises(Refused, match="too large to be held"):
        chunks.hold(piece("x" * 2_000))
