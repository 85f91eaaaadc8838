"""Clients of A2A 0.3 with an agent that supports only 1.0."""

from typing import Any

import httpx
import pytest
from a2a.client import Client, ClientConfig, ClientFactory
from a2a.helpers.proto_helpers import new_text_message
from a2a.types import GetTaskRequest, Role
from a2a.utils import errors

from tests.support.a2a_agents import make_card
from tests.support.a2a_proxies import ProxyEnvironment, texts_of


def old_client(env: ProxyEnvironment, *, streaming: bool) -> Client:
    card = make_card(env.url, bindings=("JSONRPC",))
    card.supported_interfaces[0].url = env.url
    card.supported_interfaces[0].protocol_version = "0.3"

    async def create() -> Client:
        http = httpx.AsyncClient(timeout=60)
        env.add_http_client(http)
        return ClientFactory(ClientConfig(httpx_client=http, streaming=streaming)).create(card)

    return env.portal.call(create)


def user_message(text: str) -> Any:
    return new_text_message(text, role=Role.ROLE_USER)


def test_a_message_and_its_answer_pass(env: ProxyEnvironment) -> None:
    [event] = env.send(old_client(env, streaming=False), user_message("answer hello"))
    assert texts_of(event.message) == "hello"
    assert env.backend.texts("visitor") == ["answer hello"]
    assert env.backend.texts("clerk") == ["hello"]


def test_a_stream_and_its_task_pass(env: ProxyEnvironment) -> None:
    client = old_client(env, streaming=True)
    events = env.send(client, user_message("stream one|two"))
    pieces = [texts_of(event.artifact_update) for event in events if event.HasField("artifact_update")]
    assert pieces == ["one", "two"]
    task = env.portal.call(client.get_task, GetTaskRequest(id=events[0].task.id))
    assert texts_of(task.artifacts) == "one|two"


@pytest.mark.parametrize("streaming", [False, True])
def test_a_refusal_is_a_typed_error(env: ProxyEnvironment, streaming: bool) -> None:
    with pytest.raises(errors.A2AError) as refused:
        env.send(old_client(env, streaming=streaming), user_message("answer poison"))
    assert "the message is refused by the code guard" in str(refused.value)
    assert env.agent.received == []


def test_the_error_of_a_refusal_says_what_and_where(env: ProxyEnvironment) -> None:
    message = {"messageId": "1", "kind": "message", "role": "user", "parts": [{"kind": "text", "text": "poison"}]}
    body = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message}}
    error = env.http.post(env.url, json=body).json()["error"]
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
def test_what_is_not_of_its_version_is_refused(env: ProxyEnvironment, params: Any, why: str) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": params}
    error = env.http.post(env.url, json=body).json()["error"]
    assert error["code"] == -32602
    assert why in error["message"]


def test_push_notifications_do_not_pass(env: ProxyEnvironment) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tasks/pushNotificationConfig/set", "params": {}}
    assert env.http.post(env.url, json=body).json()["error"]["code"] == -32003
