"""What a client sends is understood in one way or refused by name."""

import json
from typing import Any

import pytest

from qwed_a2a import strict
from qwed_a2a.proxy.bindings import envelope, rest_asked, rpc_asked
from qwed_a2a.proxy.faults import Fault, Refused
from qwed_a2a.proxy.verbs import Verb
from tests.support.tables import each, rows


@each("row", rows("a2a_requests.jsonl"))
def test_what_could_be_read_in_two_ways_is_refused_by_name(row: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refused:
        rpc_asked(envelope(row["body"].encode()))
    assert refused.value.fault is Fault[row["fault"]]
    assert row["says"] in refused.value.message


def test_what_is_deep_or_many_is_refused_before_it_costs_anything() -> None:
    for body, why in (
        (b"[" * 100 + b"]" * 100, "nested deeper than 64"),
        (b"[" * 100_000, "more than 20000 values"),
        (b"[" * 15_000, "nested deeper than 64"),
        (b"[" + b"0," * 30_000 + b"0]", "more than 20000 values"),
        (b"\xff", "not UTF-8"),
        (b"1" * 400, "too large to arrive"),
    ):
        with pytest.raises(strict.Unreadable, match=why):
            strict.parse(body)


def test_commas_in_text_are_no_values() -> None:
    text = "," * 100_000
    assert strict.parse(json.dumps([text]).encode()) == [text]


def test_numbers_arrive_as_they_were_looked_at() -> None:
    assert strict.parse(b"[1, -7, 0.1, 1.10, 9007199254740992, 100000000000000000000, 1e3]") == [
        1,
        -7,
        0.1,
        1.1,
        2**53,
        1e20,
        1000.0,
    ]


REST = [
    ("POST", "/message:send", "", b'{"message":{}}', Verb.SEND, {}),
    ("POST", "/acme/message:stream", "", b'{"message":{}}', Verb.STREAM, {"tenant": "acme"}),
    ("GET", "/tasks/t1", "historyLength=3", b"", Verb.GET, {"id": "t1", "history_length": 3}),
    ("GET", "/acme/tasks/a%2Fb", "", b"", Verb.GET, {"id": "a/b", "tenant": "acme"}),
    ("POST", "/tasks/t1:cancel", "", b'{"id":"t1"}', Verb.CANCEL, {"id": "t1"}),
    ("POST", "/tasks/t:1:subscribe", "", b"", Verb.SUBSCRIBE, {"id": "t:1"}),
    ("GET", "/tasks", "pageSize=5&includeArtifacts=true", b"", Verb.LIST, {"page_size": 5, "include_artifacts": True}),
    ("GET", "/extendedAgentCard", "", b"", Verb.CARD, {}),
    ("DELETE", "/tasks/t/pushNotificationConfigs/1", "", b"", Verb.PUSH, None),
]


@pytest.mark.parametrize(("method", "path", "query", "body", "verb", "wanted"), REST)
def test_a_path_of_http_json_is_a_method(
    method: str, path: str, query: str, body: bytes, verb: Verb, wanted: dict[str, Any] | None
) -> None:
    asked = rest_asked(method, path, query.encode(), body)
    assert asked.verb is verb
    for name, value in (wanted or {}).items():
        assert getattr(asked.params, name) == value


NOT_REST = [
    ("POST", "/tasks/t1:cancel", "", b'{"id":"t2"}', Fault.INVALID_PARAMS),
    ("POST", "/acme/message:send", "", b'{"tenant":"b","message":{}}', Fault.INVALID_PARAMS),
    ("GET", "/tasks/t1", "historyLength=3&historyLength=4", b"", Fault.INVALID_PARAMS),
    ("GET", "/tasks/t1", "id=t2", b"", Fault.INVALID_PARAMS),
    ("GET", "/tasks/t1", "history=3", b"", Fault.INVALID_PARAMS),
    ("GET", "/message:send", "", b"", Fault.METHOD_NOT_FOUND),
    ("POST", "/tasks/t1", "", b"", Fault.METHOD_NOT_FOUND),
    ("GET", "/a/b/c/d/e", "", b"", Fault.METHOD_NOT_FOUND),
    ("POST", "/message:send", "", b"[]", Fault.INVALID_REQUEST),
    ("POST", "/message:send", "", b"{", Fault.PARSE_ERROR),
    ("POST", "/message:send", "", b"", Fault.INVALID_PARAMS),
]


@pytest.mark.parametrize(("method", "path", "query", "body", "fault"), NOT_REST)
def test_a_path_that_says_something_else_than_the_rest_is_refused(
    method: str, path: str, query: str, body: bytes, fault: Fault
) -> None:
    with pytest.raises(Refused) as refused:
        rest_asked(method, path, query.encode(), body)
    assert refused.value.fault is fault
