"""Streams of an official agent: which events are held, when they are released, and how a refusal ends them."""

from typing import Any

import pytest
from a2a.helpers.proto_helpers import new_text_message
from a2a.types import Role, SendMessageRequest, SubscribeToTaskRequest, TaskState
from a2a.utils import errors

from tests.support.a2a_proxies import ProxyEnvironment, texts_of
from tests.support.mcp_proxies import until

CODE = "stream ```python|\nimport os|\nos.sys|tem('poi|son')\n```"


def user_message(text: str, **more: Any) -> Any:
    return new_text_message(text, role=Role.ROLE_USER, **more)


def event_kinds(events: list[Any]) -> list[str]:
    return [event.WhichOneof("payload") for event in events]


def test_pieces_of_an_artifact_come_together_and_in_order_once_all_of_it_was_looked_at(env: ProxyEnvironment) -> None:
    events = env.send(env.client(streaming=True), user_message("stream one|two|three"))
    assert event_kinds(events)[0] == "task"
    pieces = [texts_of(event.artifact_update) for event in events if event.HasField("artifact_update")]
    assert pieces == ["one", "two", "three"]
    first, last = (
        event_kinds(events).index("artifact_update"),
        len(events) - event_kinds(events)[::-1].index("artifact_update"),
    )
    assert set(event_kinds(events)[first:last]) == {"artifact_update"}
    assert events[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED
    assert "one\ntwo\nthree" in env.backend.texts("clerk")


def test_what_is_said_meanwhile_is_not_held(env: ProxyEnvironment) -> None:
    events = env.send(env.client(streaming=True), user_message("stream one|two|three"))
    before = events[: event_kinds(events).index("artifact_update")]
    assert [texts_of(event) for event in before if event.HasField("status_update")] == ["piece 0", "piece 1"]


def test_code_that_comes_in_pieces_is_looked_at_as_a_whole(env: ProxyEnvironment) -> None:
    with pytest.raises(errors.InvalidAgentResponseError) as refused:
        env.send(env.client("HTTP+JSON", streaming=True), user_message("forwards " + CODE[::-1]))
    assert (refused.value.data or {})["engine"] == "code_guard"
    codes = [item.message.payload for item in env.backend.messages if item.message.payload_type == "code_execution"]
    assert codes == [{"code": "import os\nos.system('poison')", "language": "python"}]


def test_a_refusal_in_mid_stream_ends_it_with_an_error_and_cancels_the_task(env: ProxyEnvironment) -> None:
    seen: list[Any] = []
    with pytest.raises(errors.InvalidAgentResponseError):
        env.portal.call(_send_into, seen, env.client(streaming=True), user_message("hold nosiop"))
    assert [texts_of(event) for event in seen if event.HasField("status_update")] == ["working on it"]
    # The cancellation may follow the refusal a little later.
    assert until(lambda: seen[0].task.id in env.agent.cancelled)


def test_whoever_only_watches_ends_nothing(env: ProxyEnvironment) -> None:
    body = {"message": {"messageId": "w", "role": "ROLE_USER", "parts": [{"text": "hold nosiop"}]}}
    begun = env.rpc("SendMessage", {**body, "configuration": {"returnImmediately": True}})["result"]["task"]["id"]
    with pytest.raises(errors.InvalidAgentResponseError):
        env.portal.call(_subscribe, env.client(streaming=True), begun)
    assert env.rpc("GetTask", {"id": begun})["error"]["code"] == -32006
    assert begun not in env.agent.cancelled
    # The agent's answer is refused too, but the cancellation reached it.
    assert env.rpc("CancelTask", {"id": begun})["error"]["code"] == -32006
    assert begun in env.agent.cancelled


async def _subscribe(client: Any, task_id: str) -> None:
    async for _ in client.subscribe(SubscribeToTaskRequest(id=task_id)):
        pass


async def _send_into(seen: list[Any], client: Any, message: Any) -> None:
    async for event in client.send_message(SendMessageRequest(message=message)):
        seen.append(event)  # noqa: PERF401 - events before an error count


def test_a_task_that_goes_on_can_be_watched_by_another_stream(env: ProxyEnvironment) -> None:
    body = {"message": {"messageId": "w", "role": "ROLE_USER", "parts": [{"text": "wait a moment"}]}}
    begun = env.rpc("SendMessage", {**body, "configuration": {"returnImmediately": True}})["result"]["task"]
    client = env.client(streaming=True)
    seen: list[Any] = []
    env.portal.call(_first_event_into, seen, client, begun["id"])
    assert seen[0].task.id == begun["id"]
    env.rpc("CancelTask", {"id": begun["id"]})


async def _first_event_into(seen: list[Any], client: Any, task_id: str) -> None:
    events = client.subscribe(SubscribeToTaskRequest(id=task_id))
    seen.append(await anext(events))
    await events.aclose()


def test_a_stream_that_is_refused_before_it_begins_is_a_plain_error(env: ProxyEnvironment) -> None:
    body = {"message": {"messageId": "w", "role": "ROLE_USER", "parts": [{"text": "poison"}]}}
    answer = env.post("/message:stream", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["details"][0]["reason"] == "INVALID_PARAMS"
