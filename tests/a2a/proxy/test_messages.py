"""Messages of official clients through the proxy to an official agent and back."""

from typing import Any

import pytest
from a2a.helpers.proto_helpers import new_data_message, new_text_message
from a2a.types import CancelTaskRequest, GetTaskRequest, ListTasksRequest, Role
from a2a.utils import errors

from tests.support.a2a_proxies import TOKEN, ProxyEnvironment, texts_of

BINDINGS = ("JSONRPC", "HTTP+JSON")
BINDING_MODES = [(binding, streaming) for binding in BINDINGS for streaming in (False, True)]


def user_message(text: str, **more: Any) -> Any:
    return new_text_message(text, role=Role.ROLE_USER, **more)


@pytest.mark.parametrize(("binding", "streaming"), BINDING_MODES)
def test_a_message_passes_and_its_answer_comes_back(env: ProxyEnvironment, binding: str, streaming: bool) -> None:
    [event] = env.send(env.client(binding, streaming=streaming), user_message("answer hello"))
    assert texts_of(event.message) == "hello"
    assert env.backend.texts("visitor") == ["answer hello"]
    assert env.backend.texts("clerk") == ["hello"]


@pytest.mark.parametrize(("binding", "streaming"), BINDING_MODES)
def test_a_refused_message_is_a_typed_error_and_never_reaches_the_agent(
    env: ProxyEnvironment, binding: str, streaming: bool
) -> None:
    with pytest.raises(errors.InvalidParamsError) as refused:
        env.send(env.client(binding, streaming=streaming), user_message("answer poison"))
    assert refused.value.data == {
        "verdict": "blocked",
        "reason": "`poison` is dangerous",
        "engine": "code_guard",
        "trace_id": "a2a_000000000001",
        "attestation": "a.b.c",
    }
    assert "the message is refused by the code guard" in refused.value.message
    assert env.agent.received == []


@pytest.mark.parametrize(("binding", "streaming"), BINDING_MODES)
def test_a_refused_answer_is_replaced_by_an_error_that_repeats_nothing_of_it(
    env: ProxyEnvironment, binding: str, streaming: bool
) -> None:
    with pytest.raises(errors.InvalidAgentResponseError) as refused:
        env.send(env.client(binding, streaming=streaming), user_message("backwards nosiop"))
    assert "poison" not in repr(refused.value)
    assert (refused.value.data or {})["engine"] == "code_guard"
    assert refused.value.message.endswith("the answer of the agent is refused by the code guard")


def test_data_arrives_as_it_was_sent(env: ProxyEnvironment) -> None:
    data = {"n": 1.5, "whole": 3, "deep": [{"a": None}, True, "x"]}
    message = new_data_message(data, role=Role.ROLE_USER)
    [event] = env.send(env.client(), message)
    assert str(env.agent.received[0].parts) == str(message.parts)
    assert str(event.message.parts[-1]) == str(message.parts[0])


@pytest.mark.parametrize("binding", BINDINGS)
def test_a_task_its_list_and_its_end_pass(env: ProxyEnvironment, binding: str) -> None:
    client = env.client(binding)
    [event] = env.send(client, user_message("task all good"))
    task = event.task
    assert texts_of(task.artifacts) == "all good"
    before = len(env.backend.messages)
    current = env.portal.call(client.get_task, GetTaskRequest(id=task.id))
    assert texts_of(current.artifacts) == "all good"
    listed = env.portal.call(client.list_tasks, ListTasksRequest(context_id=task.context_id, include_artifacts=True))
    assert [item.id for item in listed.tasks] == [task.id]
    # Two read requests were verified; the content was delivered before and is not verified again.
    seen = [item.message.payload for item in env.backend.messages[before:]]
    assert [item.get("operation", item) for item in seen] == ["GetTask", "ListTasks"]
    with pytest.raises(errors.TaskNotCancelableError):
        env.portal.call(client.cancel_task, CancelTaskRequest(id=task.id))
    with pytest.raises(errors.TaskNotFoundError):
        env.portal.call(client.get_task, GetTaskRequest(id="nobody's"))


def test_what_one_sender_was_shown_is_asked_about_again_for_another(env: ProxyEnvironment) -> None:
    [event] = env.send(env.client(), user_message("task for the first one"))
    before = len(env.backend.messages)
    other = env.client(QWED_Agent_Id="mallory", QWED_Agent_Token=TOKEN)
    env.portal.call(other.get_task, GetTaskRequest(id=event.task.id))
    receivers = [item.message.receiver_agent_id for item in env.backend.messages[before:]]
    assert receivers == ["clerk", "mallory"]
    payload = env.backend.messages[-1].message.payload
    assert [item["text"] for item in payload["said"]] == ["task for the first one", "for the first one", "done"]


def test_refused_content_stays_refused_when_its_task_is_asked_for_later(env: ProxyEnvironment) -> None:
    client = env.client()
    with pytest.raises(errors.InvalidAgentResponseError) as refused:
        env.send(client, user_message("backwards nosiop", context_id="later"))
    listed = env.rpc("ListTasks", {"contextId": "later", "includeArtifacts": True})
    assert listed["error"]["code"] == -32006
    assert "poison" not in str(listed)
    assert "poison" not in repr(refused.value)


def test_a_conversation_is_the_context_or_a_rolling_one(env: ProxyEnvironment) -> None:
    client = env.client(QWED_Agent_Id="mallory", QWED_Agent_Token=TOKEN)
    env.send(client, user_message("answer one"))
    env.send(client, user_message("answer two"))
    env.send(client, user_message("answer three", context_id="ours"))
    named = [(item.message.metadata or {})["conversation_id"] for item in env.backend.messages]
    assert named[0] == named[1] == named[2] == named[3]
    assert named[0].startswith("a2a-rolling-")
    assert named[4:] == ["ours", "ours"]


def test_clients_that_show_nothing_and_ask_the_same_go_round_in_no_circle(env: ProxyEnvironment) -> None:
    for _ in range(3):
        env.send(env.client(), user_message("answer one"))
    assert [item.message.metadata for item in env.backend.messages] == [None] * 6


def test_who_sends_is_who_the_headers_say_and_prove(env: ProxyEnvironment) -> None:
    env.send(env.client(QWED_Agent_Id="mallory", QWED_Agent_Token=TOKEN), user_message("answer yes"))
    assert env.backend.messages[0].sender == ("mallory", TOKEN)
    assert [item.message.receiver_agent_id for item in env.backend.messages] == ["clerk", "mallory"]
    assert "qwed-agent-id" not in env.agent.headers[0]
    assert "qwed-agent-token" not in env.agent.headers[0]
    with pytest.raises(errors.InvalidRequestError) as refused:
        env.send(env.client(QWED_Agent_Id="mallory"), user_message("answer yes"))
    assert (refused.value.data or {})["code"] == "QWED-AUTH-002"
    assert "refused: this agent is not proven; send the token of that agent in `QWED-Agent-Token`" in str(refused.value)


def test_a_conversation_that_has_had_all_its_steps_is_told_how_to_go_on(env: ProxyEnvironment) -> None:
    with pytest.raises(errors.UnsupportedOperationError) as refused:
        env.send(env.client(), user_message("answer endless", context_id="ours"))
    assert "start another conversation, with another `contextId` or none" in str(refused.value)


def test_whoever_does_not_prove_who_they_are_reads_nothing_either(env: ProxyEnvironment) -> None:
    [event] = env.send(env.client(), user_message("task secret plan"))
    for method in ("GetTask", "SubscribeToTask", "CancelTask"):
        answer = env.rpc(method, {"id": event.task.id}, **{"QWED-Agent-Id": "mallory"})
        assert answer["error"]["code"] == -32600, method
        assert "secret plan" not in str(answer)


def test_the_agent_sees_few_of_the_clients_headers(env: ProxyEnvironment) -> None:
    sent = {"Authorization": "Bearer t", "X-API-Key": "k", "Cookie": "c=1", "X-Forwarded-For": "10.0.0.1"}
    answer = env.rpc(
        "SendMessage", {"message": {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "answer"}]}}, **sent
    )
    assert "result" in answer
    [seen] = env.agent.headers
    assert (seen["authorization"], seen["x-api-key"]) == ("Bearer t", "k")
    assert not {"cookie", "x-forwarded-for", "user-agent"} & set(seen)


def test_a_flood_is_told_when_to_try_again(env: ProxyEnvironment) -> None:
    with pytest.raises(errors.UnsupportedOperationError) as refused:
        env.send(env.client(), user_message("answer flood"))
    assert (refused.value.data or {})["retry_after"] == "7"
    assert (refused.value.data or {})["code"] == "QWED-SYS-001"
    body = {"message": {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "flood"}]}}
    assert env.post("/message:send", json=body).headers["retry-after"] == "7"


@pytest.mark.parametrize("text", ["answer unreachable", "answer hang"])
def test_a_kernel_that_does_not_answer_refuses(env: ProxyEnvironment, text: str) -> None:
    with pytest.raises(errors.InternalError) as refused:
        env.send(env.client(), user_message(text))
    assert (refused.value.data or {})["verdict"] == "error"
    assert env.agent.received == []


def test_while_a_card_is_held_no_message_passes(env: ProxyEnvironment) -> None:
    env.cards.refusal_text = "the card of the agent has changed: `qwed a2a cards` shows how"
    with pytest.raises(errors.UnsupportedOperationError, match="the card of the agent has changed"):
        env.send(env.client(), user_message("answer hello"))
    assert env.backend.messages == []
    assert env.agent.received == []


def test_an_error_of_the_agent_passes_by_its_kind_and_not_in_its_words(env: ProxyEnvironment) -> None:
    with pytest.raises(errors.A2AError) as refused:
        env.send(env.client(), user_message("fail with unchecked words"))
    assert "unchecked words" not in repr(refused.value)
    assert (refused.value.data or {})["source"] == "upstream"


def test_push_notifications_do_not_pass(env: ProxyEnvironment) -> None:
    config = {"url": "https://elsewhere.example/hook"}
    requests = {
        "CreateTaskPushNotificationConfig": {"taskId": "t", **config},
        "GetTaskPushNotificationConfig": {"taskId": "t", "id": "1"},
        "ListTaskPushNotificationConfigs": {"taskId": "t"},
        "DeleteTaskPushNotificationConfig": {"taskId": "t", "id": "1"},
        "SendMessage": {
            "message": {"messageId": "1", "role": "ROLE_USER", "parts": [{"text": "answer"}]},
            "configuration": {"taskPushNotificationConfig": config},
        },
    }
    for method, params in requests.items():
        assert env.rpc(method, params)["error"]["code"] == -32003, method
    assert env.post("/tasks/t/pushNotificationConfigs", json=config).status_code == 400
    assert env.agent.received == []


def test_the_extended_card_is_shown_as_the_card_is(env: ProxyEnvironment) -> None:
    assert env.rpc("GetExtendedAgentCard", {})["error"]["code"] == -32007
    card = env.rpc("GetExtendedAgentCard", {}, Authorization="Bearer insider")["result"]
    assert {item["url"] for item in card["supportedInterfaces"]} == {env.url}


def test_a_task_is_found_by_the_name_that_stands_in_its_path(env: ProxyEnvironment) -> None:
    for written in ("a%2Fb", "a%252Fb", "%2e%2e", "t:cancel:x"):
        answer = env.http.get(f"{env.url}/tasks/{written}", headers={"A2A-Version": "1.0"})
        assert answer.json()["error"]["details"][0]["reason"] == "TASK_NOT_FOUND", written
    named = [item.message.payload["params"]["id"] for item in env.backend.messages]
    assert named == ["a/b", "a%2Fb", "..", "t:cancel:x"]
