"""Message verification in the client: a message is sent once, and only `forwarded` permits it (INTERFACES 6)."""

import asyncio
from typing import Any

import httpx
import pytest

from qwed_a2a import AgentMessage
from qwed_sdk import QWEDArgumentError, QWEDAsyncClient, QWEDAuthError, QWEDClient, QWEDProtocolError
from qwed_sdk.http_request import Request, Response
from qwed_sdk.models import Lists, Verdict
from qwed_sdk.operations import a2a
from tests.support.a2a_messages import WRONG
from tests.support.a2a_senders import OrganisationClient, create_organisation
from tests.support.server import Server

MESSAGE = {"sender_agent_id": "buyer", "receiver_agent_id": "seller", "payload": {"text": "good morning"}}


@pytest.fixture(scope="module")
def office(server: Server, stranger: httpx.Client) -> OrganisationClient:
    return create_organisation(stranger, server.owner_key)


def test_a_verdict_is_true_where_the_message_may_go_on_and_nowhere_else(
    server: Server, office: OrganisationClient
) -> None:
    with QWEDClient(office.keys["owner"], server.base_url) as client:
        passed = client.intercept(MESSAGE)
        blocked = client.intercept({**MESSAGE, "payload_type": "code_execution", "payload": WRONG["code_execution"]})
    assert passed
    assert (passed.forwarded, passed.status, passed["engine_used"]) == (True, "forwarded", "passthrough")
    assert not blocked
    assert (blocked.forwarded, blocked.engine_used) == (False, "code_guard")


@pytest.mark.parametrize("status", ["blocked", "error", "FORWARDED", "", None, True, "forwarded "])
def test_no_other_word_is_a_yes(status: Any) -> None:
    assert not Verdict({"status": status})


def test_a_message_may_be_the_model_of_the_document(server: Server, office: OrganisationClient) -> None:
    async def intercept() -> Verdict:
        async with QWEDAsyncClient(office.keys["owner"], server.base_url) as client:
            return await client.intercept(AgentMessage(**MESSAGE))

    assert asyncio.run(intercept()).forwarded


@pytest.mark.parametrize("message", ["text", None, 7, [MESSAGE]])
def test_what_is_no_message_is_not_sent(message: Any) -> None:
    with pytest.raises(QWEDArgumentError, match="a message must be a mapping or an AgentMessage"):
        next(a2a.intercept(message))


def test_a_token_is_shown_with_the_name_of_its_agent_and_an_unproven_sender_is_an_error(
    server: Server, office: OrganisationClient
) -> None:
    agent = office.register_agent()
    with QWEDClient(base_url=server.base_url) as client:
        own = {**MESSAGE, "sender_agent_id": agent["agent_id"]}
        assert client.intercept(own, agent["agent_token"]).forwarded
        with pytest.raises(QWEDAuthError) as raised:
            client.intercept(MESSAGE, agent["agent_token"])
    assert raised.value.code == "QWED-AUTH-002"


def request_of(operation: Any) -> Request:
    request = next(operation)
    assert isinstance(request, Request)
    return request


@pytest.mark.parametrize("name", ["agent_1", "b\u00fcrger", "a\nb", " x", ""])
def test_only_a_name_that_a_header_can_carry_stands_in_one(name: str) -> None:
    request = request_of(a2a.intercept({**MESSAGE, "sender_agent_id": name}, "qwed_agent_x"))
    assert request.headers == ({"QWED-Agent-Id": name} if name == "agent_1" else {})
    assert not request.repeatable


def test_an_answer_without_a_status_is_no_verdict() -> None:
    call = a2a.intercept(MESSAGE)
    request_of(call)
    with pytest.raises(QWEDProtocolError):
        call.send(Response(200, None, b'{"reason": "x"}', "application/json"))


def test_lists_are_changed_and_read(server: Server, office: OrganisationClient) -> None:
    with QWEDClient(office.keys["owner"], server.base_url) as client:
        client.block_agent("mallory")
        client.block_pair("shop", "payroll")
        assert client.trust_agent("ledger").listed
        lists = client.a2a_lists()
        assert isinstance(lists, Lists)
        assert (lists.blocks, lists.trusted) == (["mallory"], ["ledger"])
        assert lists.pairs == [{"sender": "shop", "receiver": "payroll"}]
        client.unblock_agent("mallory")
        client.unblock_pair("shop", "payroll")
        assert not client.revoke_agent("ledger").listed
        assert client.a2a_lists().to_dict() == {"blocks": [], "pairs": [], "trusted": []}
        assert client.a2a_health().status == "ok"
        assert client.a2a_metrics().total_intercepts >= 0
