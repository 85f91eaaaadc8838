"""Streams of an official agent: what is held, what is let go, and how a refusal in the middle ends them."""

from typing import Any

import pytest
from a2a.helpers.proto_helpers import new_text_message
from a2a.types import Role, SendMessageRequest, SubscribeToTaskRequest, TaskState
from a2a.utils import errors

from tests.support.a2a_proxies import Scene, words_of
from tests.support.proxies import until

CODE = "stream ```python|\nimport os|\nos.sys|tem('poi|son')\n```"


def said(text: str, **more: Any) -> Any:
    return new_text_message(text, role=Role.ROLE_USER, **more)


def shape(events: list[Any]) -> list[str]:
    return [event.WhichOneof("payload") for event in events]


def test_pieces_of_an_artifact_come_together_and_in_order_once_all_of_it_was_looked_at(between: Scene) -> None:
    events = between.send(between.client(streaming=True), said("stream one|two|three"))
    assert shape(events)[0] == "task"
    pieces = [words_of(event.artifact_update) for event in events if event.HasField("artifact_update")]
    assert pieces == ["one", "two", "three"]
    first, last = shape(events).index("artifact_update"), len(events) - shape(events)[::-1].index("artifact_update")
    assert set(shape(events)[first:last]) == {"artifact_update"}
    assert events[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED
    assert "one\ntwo\nthree" in between.kernel.texts("clerk")


def test_what_is_said_meanwhile_is_not_held(between: Scene) -> None:
    events = between.send(between.client(streaming=True), said("stream one|two|three"))
    before = events[: shape(events).index("artifact_update")]
    assert [words_of(event) for event in before if event.HasField("status_update")] == ["piece 0", "piece 1"]


def test_code_that_comes_in_pieces_is_looked_at_as_a_whole(between: Scene) -> None:
    with pytest.raises(errors.InvalidAgentResponseError) as refused:
        between.send(between.client("HTTP+JSON", streaming=True), said("forwards " + CODE[::-1]))
    assert (refused.value.data or {})["engine"] == "code_guard"
    codes = [each.message.payload for each in between.kernel.asked if each.message.payload_type == "code_execution"]
    assert codes == [{"code": "import os\nos.system('poison')", "language": "python"}]


def test_a_refusal_in_mid_stream_ends_it_with_an_error_and_cancels_the_task(between: Scene) -> None:
    seen: list[Any] = []
    with pytest.raises(errors.InvalidAgentResponseError):
        between.portal.call(_into, seen, between.client(streaming=True), said("hold nosiop"))
    assert [words_of(event) for event in seen if event.HasField("status_update")] == ["working on it"]
    # What was refused just before may be cancelled only now.
    assert until(lambda: seen[0].task.id in between.agent.cancelled)


def test_whoever_only_watches_ends_nothing(between: Scene) -> None:
    body = {"message": {"messageId": "w", "role": "ROLE_USER", "parts": [{"text": "hold nosiop"}]}}
    begun = between.rpc("SendMessage", {**body, "configuration": {"returnImmediately": True}})["result"]["task"]["id"]
    with pytest.raises(errors.InvalidAgentResponseError):
        between.portal.call(_watched, between.client(streaming=True), begun)
    assert between.rpc("GetTask", {"id": begun})["error"]["code"] == -32006
    assert begun not in between.agent.cancelled
    # What the agent says to it is refused too; that it has ended it was told.
    assert between.rpc("CancelTask", {"id": begun})["error"]["code"] == -32006
    assert begun in between.agent.cancelled


async def _watched(client: Any, task_id: str) -> None:
    async for _ in client.subscribe(SubscribeToTaskRequest(id=task_id)):
        pass


async def _into(seen: list[Any], client: Any, message: Any) -> None:
    async for event in client.send_message(SendMessageRequest(message=message)):
        seen.append(event)  # noqa: PERF401 - what comes before an error counts


def test_a_task_that_goes_on_can_be_watched_by_another_stream(between: Scene) -> None:
    body = {"message": {"messageId": "w", "role": "ROLE_USER", "parts": [{"text": "wait a moment"}]}}
    begun = between.rpc("SendMessage", {**body, "configuration": {"returnImmediately": True}})["result"]["task"]
    client = between.client(streaming=True)
    seen: list[Any] = []
    between.portal.call(_first, seen, client, begun["id"])
    assert seen[0].task.id == begun["id"]
    between.rpc("CancelTask", {"id": begun["id"]})


async def _first(seen: list[Any], client: Any, task_id: str) -> None:
    events = client.subscribe(SubscribeToTaskRequest(id=task_id))
    seen.append(await anext(events))
    await events.aclose()


def test_a_stream_that_is_refused_before_it_begins_is_a_plain_error(between: Scene) -> None:
    body = {"message": {"messageId": "w", "role": "ROLE_USER", "parts": [{"text": "poison"}]}}
    answer = between.post("/message:stream", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["details"][0]["reason"] == "INVALID_PARAMS"
