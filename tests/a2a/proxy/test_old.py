"""Clients of 0.3, whose agent behind the proxy speaks 1.0 alone."""

from typing import Any

import httpx
import pytest
from a2a.client import Client, ClientConfig, ClientFactory
from a2a.helpers.proto_helpers import new_text_message
from a2a.types import GetTaskRequest, Role
from a2a.utils import errors

from tests.support.a2a_agents import card_of
from tests.support.a2a_proxies import Scene, words_of


def old_client(scene: Scene, *, streaming: bool) -> Client:
    card = card_of(scene.url, bindings=("JSONRPC",))
    card.supported_interfaces[0].url = scene.url
    card.supported_interfaces[0].protocol_version = "0.3"

    async def made() -> Client:
        http = httpx.AsyncClient(timeout=60)
        scene.keep(http)
        return ClientFactory(ClientConfig(httpx_client=http, streaming=streaming)).create(card)

    return scene.portal.call(made)


def said(text: str) -> Any:
    return new_text_message(text, role=Role.ROLE_USER)


def test_a_message_and_its_answer_pass(between: Scene) -> None:
    [event] = between.send(old_client(between, streaming=False), said("answer hello"))
    assert words_of(event.message) == "hello"
    assert between.kernel.texts("visitor") == ["answer hello"]
    assert between.kernel.texts("clerk") == ["hello"]


def test_a_stream_and_its_task_pass(between: Scene) -> None:
    client = old_client(between, streaming=True)
    events = between.send(client, said("stream one|two"))
    pieces = [words_of(event.artifact_update) for event in events if event.HasField("artifact_update")]
    assert pieces == ["one", "two"]
    task = between.portal.call(client.get_task, GetTaskRequest(id=events[0].task.id))
    assert words_of(task.artifacts) == "one|two"


@pytest.mark.parametrize("streaming", [False, True])
def test_a_refusal_is_a_typed_error(between: Scene, streaming: bool) -> None:
    with pytest.raises(errors.A2AError) as refused:
        between.send(old_client(between, streaming=streaming), said("answer poison"))
    assert "the message is refused by the code guard" in str(refused.value)
    assert between.agent.heard == []


def test_the_error_of_a_refusal_says_what_and_where(between: Scene) -> None:
    message = {"messageId": "1", "kind": "message", "role": "user", "parts": [{"kind": "text", "text": "poison"}]}
    body = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message}}
    error = between.plain.post(between.url, json=body).json()["error"]
    assert error["code"] == -32602
    assert error["data"]["engine"] == "code_guard"
    assert error["data"]["trace_id"] == "a2a_000000000001"


@pytest.mark.parametrize(
    ("params", "why"),
    [
        ({}, "the parameters are not those of A2A 0.3"),
        ({"message": {"messageId": "1", "role": "user", "parts": [{"kind": "song"}]}}, "not those of A2A 0.3"),
    ],
)
def test_what_is_not_of_its_version_is_refused(between: Scene, params: Any, why: str) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": params}
    error = between.plain.post(between.url, json=body).json()["error"]
    assert error["code"] == -32602
    assert why in error["message"]


def test_push_notifications_do_not_pass(between: Scene) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tasks/pushNotificationConfig/set", "params": {}}
    assert between.plain.post(between.url, json=body).json()["error"]["code"] == -32003
