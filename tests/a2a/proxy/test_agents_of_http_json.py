"""An agent that speaks HTTP+JSON alone, and clients that speak JSON-RPC."""

from collections.abc import Iterator
from typing import Any

import pytest
from a2a.helpers.proto_helpers import new_text_message
from a2a.types import CancelTaskRequest, GetTaskRequest, ListTasksRequest, Role, TaskState
from a2a.utils import errors

from tests.support.a2a_proxies import Scene, scene, words_of


@pytest.fixture(scope="module")
def between() -> Iterator[Scene]:
    with scene(bindings=("HTTP+JSON",), compat=False) as found:
        yield found


def said(text: str) -> Any:
    return new_text_message(text, role=Role.ROLE_USER)


def test_it_is_spoken_to_in_its_own_binding(between: Scene) -> None:
    client = between.client()
    [event] = between.send(client, said("task done in a minute"))
    task = between.portal.call(client.get_task, GetTaskRequest(id=event.task.id, history_length=1))
    assert words_of(task.artifacts) == "done in a minute"
    asked = ListTasksRequest(context_id=task.context_id, page_size=5, status=TaskState.TASK_STATE_COMPLETED)
    assert [each.id for each in between.portal.call(client.list_tasks, asked).tasks] == [task.id]
    with pytest.raises(errors.TaskNotCancelableError):
        between.portal.call(client.cancel_task, CancelTaskRequest(id=task.id))
    with pytest.raises(errors.TaskNotFoundError):
        between.portal.call(client.get_task, GetTaskRequest(id="nobody's"))
    with pytest.raises(errors.InvalidAgentResponseError, match="HTTP status 404"):
        between.portal.call(client.get_task, GetTaskRequest(id="../tasks"))


def test_its_streams_and_their_refusals_pass(between: Scene) -> None:
    client = between.client(streaming=True)
    events = between.send(client, said("stream one|two"))
    assert [words_of(event.artifact_update) for event in events if event.HasField("artifact_update")] == ["one", "two"]
    with pytest.raises(errors.InvalidAgentResponseError):
        between.send(client, said("backwards nosiop"))


def test_without_the_switch_a_client_of_0_3_is_told_so(between: Scene) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {}}
    assert between.plain.post(between.url, json=body).json()["error"]["code"] == -32009
    known = between.plain.post(between.url, json=body, headers={"A2A-Version": "1.0"}).json()
    assert known["error"]["code"] == -32601
