"""Artifact chunks: in any order, only verified content is delivered."""

import pytest

from qwed_a2a.proxy.artifact_buffer import ArtifactBuffer
from qwed_a2a.proxy.content import MessageContent
from qwed_a2a.proxy.errors import CallRefusedError
from qwed_a2a.proxy.message_schema import A2APart, Artifact, ArtifactUpdate, Task


def chunk(text: str, name: str = "a", *, append: bool = True, last: bool = False) -> ArtifactUpdate:
    artifact = Artifact(artifact_id=name, parts=(A2APart(text=text),))
    return ArtifactUpdate(task_id="t", artifact=artifact, append=append, last_chunk=last)


def snapshot(text: str, name: str = "a") -> Task:
    return Task(id="t", artifacts=(Artifact(artifact_id=name, parts=(A2APart(text=text),)),))


def texts(contents: list[MessageContent]) -> list[str]:
    return ["".join(str(part.text) for part in content.parts) for content in contents]


def test_what_is_held_is_looked_at_whatever_the_task_is_said_to_be_meanwhile() -> None:
    buffer = ArtifactBuffer(10_000)
    buffer.add(chunk("poison", append=False))
    buffer.set_known(snapshot("harmless"))
    assert buffer.add(chunk(" end", last=True))
    assert texts(buffer.contents("a")) == ["harmlesspoison end", "poison end"]
    assert len(buffer.release("a")) == 2


def test_what_follows_a_last_piece_is_looked_at_with_what_was_before_it() -> None:
    buffer = ArtifactBuffer(10_000)
    buffer.add(chunk("poi", append=False, last=True))
    buffer.release("a")
    buffer.add(chunk("son", last=True))
    assert texts(buffer.contents("a")) == ["poison"]


def test_a_piece_that_begins_anew_is_looked_at_by_itself_too() -> None:
    buffer = ArtifactBuffer(10_000)
    for item in (chunk("'''", append=False), chunk("poi", append=False), chunk("son")):
        buffer.add(item)
    assert texts(buffer.contents("a")) == ["'''poison", "poison"]
    buffer.release()
    buffer.add(chunk("other", append=False))
    assert texts(buffer.contents("a")) == ["other"]


def test_pieces_of_several_artifacts_come_in_the_order_in_which_they_were_said() -> None:
    buffer = ArtifactBuffer(10_000)
    for text, name in (("1", "a"), ("2", "b"), ("3", "a"), ("4", "b")):
        buffer.add(chunk(text, name))
    assert sorted(texts(buffer.contents())) == ["13", "24"]
    assert [item.artifact.parts[0].text for item in buffer.release()] == ["1", "2", "3", "4"]


def test_only_what_is_there_now_counts_as_room_and_there_is_not_more_of_it() -> None:
    buffer = ArtifactBuffer(2_000)
    for _ in range(50):
        buffer.set_known(snapshot("x" * 1_000))
        buffer.add(chunk("x" * 500, "b", append=False, last=True))
        buffer.release("b")
    with pytest.raises(CallRefusedError, match="too large to be buffered"):
        buffer.add(chunk("x" * 2_000))
