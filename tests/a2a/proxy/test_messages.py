"""Messages of official clients through the proxy to an official agent, and back."""

from typing import Any

import pytest
from a2a.helpers.proto_helpers import new_data_message, new_text_message
from a2a.types import CancelTaskRequest, GetTaskRequest, ListTasksRequest, Role
from a2a.utils import errors

from tests.support.a2a_proxies import TOKEN, Scene, words_of

BINDINGS = ("JSONRPC", "HTTP+JSON")
WAYS = [(binding, streaming) for binding in BINDINGS for streaming in (False, True)]


def said(text: str, **more: Any) -> Any:
    return new_text_message(text, role=Role.ROLE_USER, **more)


@pytest.mark.parametrize(("binding", "streaming"), WAYS)
def test_a_message_passes_and_its_answer_comes_back(between: Scene, binding: str, streaming: bool) -> None:
    [event] = between.send(between.client(binding, streaming=streaming), said("answer hello"))
    assert words_of(event.message) == "hello"
    assert between.kernel.texts("visitor") == ["answer hello"]
    assert between.kernel.texts("clerk") == ["hello"]


@pytest.mark.parametrize(("binding", "streaming"), WAYS)
def test_a_refused_message_is_a_typed_error_and_never_reaches_the_agent(
    between: Scene, binding: str, streaming: bool
) -> None:
    with pytest.raises(errors.InvalidParamsError) as refused:
        between.send(between.client(binding, streaming=streaming), said("answer poison"))
    assert refused.value.data == {
        "verdict": "blocked",
        "reason": "`poison` is dangerous",
        "engine": "code_guard",
        "trace_id": "a2a_000000000001",
        "attestation": "a.b.c",
    }
    assert "the message is refused by the code guard" in refused.value.message
    assert between.agent.heard == []


@pytest.mark.parametrize(("binding", "streaming"), WAYS)
def test_a_refused_answer_is_replaced_by_an_error_that_repeats_nothing_of_it(
    between: Scene, binding: str, streaming: bool
) -> None:
    with pytest.raises(errors.InvalidAgentResponseError) as refused:
        between.send(between.client(binding, streaming=streaming), said("backwards nosiop"))
    assert "poison" not in repr(refused.value)
    assert (refused.value.data or {})["engine"] == "code_guard"
    assert refused.value.message.endswith("the answer of the agent is refused by the code guard")


def test_data_arrives_as_it_was_sent(between: Scene) -> None:
    data = {"n": 1.5, "whole": 3, "deep": [{"a": None}, True, "x"]}
    message = new_data_message(data, role=Role.ROLE_USER)
    [event] = between.send(between.client(), message)
    assert str(between.agent.heard[0].parts) == str(message.parts)
    assert str(event.message.parts[-1]) == str(message.parts[0])


@pytest.mark.parametrize("binding", BINDINGS)
def test_a_task_its_list_and_its_end_pass(between: Scene, binding: str) -> None:
    client = between.client(binding)
    [event] = between.send(client, said("task all good"))
    task = event.task
    assert words_of(task.artifacts) == "all good"
    asked = len(between.kernel.asked)
    shown = between.portal.call(client.get_task, GetTaskRequest(id=task.id))
    assert words_of(shown.artifacts) == "all good"
    listed = between.portal.call(
        client.list_tasks, ListTasksRequest(context_id=task.context_id, include_artifacts=True)
    )
    assert [each.id for each in listed.tasks] == [task.id]
    # Twice it was asked whether the client may read; what it reads it has seen before.
    seen = [each.message.payload for each in between.kernel.asked[asked:]]
    assert [each.get("operation", each) for each in seen] == ["GetTask", "ListTasks"]
    with pytest.raises(errors.TaskNotCancelableError):
        between.portal.call(client.cancel_task, CancelTaskRequest(id=task.id))
    with pytest.raises(errors.TaskNotFoundError):
        between.portal.call(client.get_task, GetTaskRequest(id="nobody's"))


def test_what_one_sender_was_shown_is_asked_about_again_for_another(between: Scene) -> None:
    [event] = between.send(between.client(), said("task for the first one"))
    asked = len(between.kernel.asked)
    other = between.client(QWED_Agent_Id="mallory", QWED_Agent_Token=TOKEN)
    between.portal.call(other.get_task, GetTaskRequest(id=event.task.id))
    receivers = [each.message.receiver_agent_id for each in between.kernel.asked[asked:]]
    assert receivers == ["clerk", "mallory"]
    said_to = between.kernel.asked[-1].message.payload
    assert [each["text"] for each in said_to["said"]] == ["task for the first one", "for the first one", "done"]


def test_refused_content_stays_refused_when_its_task_is_asked_for_later(between: Scene) -> None:
    client = between.client()
    with pytest.raises(errors.InvalidAgentResponseError) as refused:
        between.send(client, said("backwards nosiop", context_id="later"))
    listed = between.rpc("ListTasks", {"contextId": "later", "includeArtifacts": True})
    assert listed["error"]["code"] == -32006
    assert "poison" not in str(listed)
    assert "poison" not in repr(refused.value)


def test_a_conversation_is_the_context_or_a_rolling_one(between: Scene) -> None:
    client = between.client(QWED_Agent_Id="mallory", QWED_Agent_Token=TOKEN)
    between.send(client, said("answer one"))
    between.send(client, said("answer two"))
    between.send(client, said("answer three", context_id="ours"))
    named = [(each.message.metadata or {})["conversation_id"] for each in between.kernel.asked]
    assert named[0] == named[1] == named[2] == named[3]
    assert named[0].startswith("a2a-rolling-")
    assert named[4:] == ["ours", "ours"]


def test_clients_that_show_nothing_and_ask_the_same_go_round_in_no_circle(between: Scene) -> None:
    for _ in range(3):
        between.send(between.client(), said("answer one"))
    assert [each.message.metadata for each in between.kernel.asked] == [None] * 6


def test_who_sends_is_who_the_headers_say_and_prove(between: Scene) -> None:
    between.send(between.client(QWED_Agent_Id="mallory", QWED_Agent_Token=TOKEN), said("answer yes"))
    assert between.kernel.asked[0].sender == ("mallory", TOKEN)
    assert [each.message.receiver_agent_id for each in between.kernel.asked] == ["clerk", "mallory"]
    assert "qwed-agent-id" not in between.agent.headers[0]
    assert "qwed-agent-token" not in between.agent.headers[0]
    with pytest.raises(errors.InvalidRequestError) as refused:
        between.send(between.client(QWED_Agent_Id="mallory"), said("answer yes"))
    assert (refused.value.data or {})["code"] == "QWED-AUTH-002"
    assert "refused: this agent is not proven; send the token of that agent in `QWED-Agent-Token`" in str(refused.value)


def test_a_conversation_that_has_had_all_its_steps_is_told_how_to_go_on(between: Scene) -> None:
    with pytest.raises(errors.UnsupportedOperationError) as refused:
        between.send(between.client(), said("answer endless", context_id="ours"))
    assert "begin another conversation, with another `contextId` or none" in str(refused.value)


def test_whoever_does_not_prove_who_they_are_reads_nothing_either(between: Scene) -> None:
    [event] = between.send(between.client(), said("task secret plan"))
    for method in ("GetTask", "SubscribeToTask", "CancelTask"):
        answer = between.rpc(method, {"id": event.task.id}, **{"QWED-Agent-Id": "mallory"})
        assert answer["error"]["code"] == -32600, method
        assert "secret plan" not in str(answer)


def test_the_agent_sees_few_of_the_clients_headers(between: Scene) -> None:
    sent = {"Authorization": "Bearer t", "X-API-Key": "k", "Cookie": "c=1", "X-Forwarded-For": "10.0.0.1"}
    answer = between.rpc(
        "SendMessage", {"message": {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "answer"}]}}, **sent
    )
    assert "result" in answer
    [seen] = between.agent.headers
    assert (seen["authorization"], seen["x-api-key"]) == ("Bearer t", "k")
    assert not {"cookie", "x-forwarded-for", "user-agent"} & set(seen)


def test_a_flood_is_told_when_to_try_again(between: Scene) -> None:
    with pytest.raises(errors.UnsupportedOperationError) as refused:
        between.send(between.client(), said("answer flood"))
    assert (refused.value.data or {})["retry_after"] == "7"
    assert (refused.value.data or {})["code"] == "QWED-SYS-001"
    body = {"message": {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "flood"}]}}
    assert between.post("/message:send", json=body).headers["retry-after"] == "7"


@pytest.mark.parametrize("text", ["answer unreachable", "answer hang"])
def test_a_kernel_that_does_not_answer_refuses(between: Scene, text: str) -> None:
    with pytest.raises(errors.InternalError) as refused:
        between.send(between.client(), said(text))
    assert (refused.value.data or {})["verdict"] == "error"
    assert between.agent.heard == []


def test_while_a_card_is_held_no_message_passes(between: Scene) -> None:
    between.book.held = "the card of the agent has changed: `qwed a2a cards` shows how"
    with pytest.raises(errors.UnsupportedOperationError, match="the card of the agent has changed"):
        between.send(between.client(), said("answer hello"))
    assert between.kernel.asked == []
    assert between.agent.heard == []


def test_an_error_of_the_agent_passes_by_its_kind_and_not_in_its_words(between: Scene) -> None:
    with pytest.raises(errors.A2AError) as refused:
        between.send(between.client(), said("fail with unchecked words"))
    assert "unchecked words" not in repr(refused.value)
    assert (refused.value.data or {})["source"] == "upstream"


def test_push_notifications_do_not_pass(between: Scene) -> None:
    config = {"url": "https://elsewhere.example/hook"}
    asked = {
        "CreateTaskPushNotificationConfig": {"taskId": "t", **config},
        "GetTaskPushNotificationConfig": {"taskId": "t", "id": "1"},
        "ListTaskPushNotificationConfigs": {"taskId": "t"},
        "DeleteTaskPushNotificationConfig": {"taskId": "t", "id": "1"},
        "SendMessage": {
            "message": {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "answer"}]},
            "configuration": {"taskPushNotificationConfig": config},
        },
    }
    for method, params in asked.items():
        assert between.rpc(method, params)["error"]["code"] == -32003, method
    assert between.post("/tasks/t/pushNotificationConfigs", json=config).status_code == 400
    assert between.agent.heard == []


def test_the_extended_card_is_shown_as_the_card_is(between: Scene) -> None:
    assert between.rpc("GetExtendedAgentCard", {})["error"]["code"] == -32007
    shown = between.rpc("GetExtendedAgentCard", {}, Authorization="Bearer insider")["result"]
    assert {each["url"] for each in shown["supportedInterfaces"]} == {between.url}


def test_a_task_is_found_by_the_name_that_stands_in_its_path(between: Scene) -> None:
    for written in ("a%2Fb", "a%252Fb", "%2e%2e", "t:cancel:x"):
        answer = between.plain.get(f"{between.url}/tasks/{written}", headers={"A2A-Version": "1.0"})
        assert answer.json()["error"]["details"][0]["reason"] == "TASK_NOT_FOUND", written
    named = [each.message.payload["params"]["id"] for each in between.kernel.asked]
    assert named == ["a/b", "a%2Fb", "..", "t:cancel:x"]
