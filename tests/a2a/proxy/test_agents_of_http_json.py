"""Agent that supports only HTTP+JSON, with clients of JSON-RPC."""

from collections.abc import Iterator
from typing import Any

import pytest
from a2a.helpers.proto_helpers import new_text_message
from a2a.types import CancelTaskRequest, GetTaskRequest, ListTasksRequest, Role, TaskState
from a2a.utils import errors

from tests.support.a2a_proxies import ProxyEnvironment, proxy_environment, texts_of


@pytest.fixture(scope="module")
def env() -> Iterator[ProxyEnvironment]:
    with proxy_environment(bindings=("HTTP+JSON",), compat=False) as environment:
        yield environment


def user_message(text: str) -> Any:
    return new_text_message(text, role=Role.ROLE_USER)


def test_it_is_spoken_to_in_its_own_binding(env: ProxyEnvironment) -> None:
    client = env.client()
    [event] = env.send(client, user_message("task done in a minute"))
    task = env.portal.call(client.get_task, GetTaskRequest(id=event.task.id, history_length=1))
    assert texts_of(task.artifacts) == "done in a minute"
    request = ListTasksRequest(context_id=task.context_id, page_size=5, status=TaskState.TASK_STATE_COMPLETED)
    assert [task_item.id for task_item in env.portal.call(client.list_tasks, request).tasks] == [task.id]
    with pytest.raises(errors.TaskNotCancelableError):
        env.portal.call(client.cancel_task, CancelTaskRequest(id=task.id))
    with pytest.raises(errors.TaskNotFoundError):
        env.portal.call(client.get_task, GetTaskRequest(id="nobody's"))
    with pytest.raises(errors.InvalidAgentResponseError, match="HTTP status 404"):
        env.portal.call(client.get_task, GetTaskRequest(id="../tasks"))


def test_its_streams_and_their_refusals_pass(env: ProxyEnvironment) -> None:
    client = env.client(streaming=True)
    events = env.send(client, user_message("stream one|two"))
    assert [texts_of(event.artifact_update) for event in events if event.HasField("artifact_update")] == ["one", "two"]
    with pytest.raises(errors.InvalidAgentResponseError):
        env.send(client, user_message("backwards nosiop"))


def test_without_the_switch_a_client_of_0_3_is_told_so(env: ProxyEnvironment) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {}}
    assert env.http.post(env.url, json=body).json()["error"]["code"] == -32009
    answer = env.http.post(env.url, json=body, headers={"A2A-Version": "1.0"}).json()
    assert answer["error"]["code"] == -32601
