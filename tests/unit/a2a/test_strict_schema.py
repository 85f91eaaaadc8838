"""Strict JSON and schema: requests are unambiguous or refused with a reason."""

import json
from typing import Any

import pytest

from qwed_a2a import strict_schema
from qwed_a2a.proxy.codecs import parse_envelope, parse_rest_call, parse_rpc_call
from qwed_a2a.proxy.errors import CallRefusedError, ErrorKind
from qwed_a2a.proxy.methods import A2AMethod
from tests.support.case_tables import each, rows


@each("row", rows("a2a_requests.jsonl"))
def test_what_could_be_read_in_two_ways_is_refused_by_name(row: dict[str, Any]) -> None:
    with pytest.raises(CallRefusedError) as refused:
        parse_rpc_call(parse_envelope(row["body"].encode()))
    assert refused.value.error_kind is ErrorKind[row["fault"]]
    assert row["says"] in refused.value.message


def test_what_is_deep_or_many_is_refused_before_it_costs_anything() -> None:
    for body, reason in (
        (b"[" * 100 + b"]" * 100, "nested deeper than 64"),
        (b"[" * 100_000, "more than 20000 values"),
        (b"[" * 15_000, "nested deeper than 64"),
        (b"[" + b"0," * 30_000 + b"0]", "more than 20000 values"),
        (b"\xff", "not UTF-8"),
        (b"1" * 400, "too large to be read exactly"),
    ):
        with pytest.raises(strict_schema.StrictSchemaError, match=reason):
            strict_schema.parse(body)


def test_commas_in_text_are_no_values() -> None:
    text = "," * 100_000
    assert strict_schema.parse(json.dumps([text]).encode()) == [text]


def test_numbers_arrive_as_they_were_looked_at() -> None:
    assert strict_schema.parse(b"[1, -7, 0.1, 1.10, 9007199254740992, 100000000000000000000, 1e3]") == [
        1,
        -7,
        0.1,
        1.1,
        2**53,
        1e20,
        1000.0,
    ]


REST = [
    ("POST", "/message:send", "", b'{"message":{}}', A2AMethod.SEND, {}),
    ("POST", "/acme/message:stream", "", b'{"message":{}}', A2AMethod.STREAM, {"tenant": "acme"}),
    ("GET", "/tasks/t1", "historyLength=3", b"", A2AMethod.GET, {"id": "t1", "history_length": 3}),
    ("GET", "/acme/tasks/a%2Fb", "", b"", A2AMethod.GET, {"id": "a/b", "tenant": "acme"}),
    ("POST", "/tasks/t1:cancel", "", b'{"id":"t1"}', A2AMethod.CANCEL, {"id": "t1"}),
    ("POST", "/tasks/t:1:subscribe", "", b"", A2AMethod.SUBSCRIBE, {"id": "t:1"}),
    (
        "GET",
        "/tasks",
        "pageSize=5&includeArtifacts=true",
        b"",
        A2AMethod.LIST,
        {"page_size": 5, "include_artifacts": True},
    ),
    ("GET", "/extendedAgentCard", "", b"", A2AMethod.CARD, {}),
    ("DELETE", "/tasks/t/pushNotificationConfigs/1", "", b"", A2AMethod.PUSH, None),
]


@pytest.mark.parametrize(("http_method", "path", "query", "body", "method", "expected"), REST)
def test_a_path_of_http_json_is_a_method(
    http_method: str, path: str, query: str, body: bytes, method: A2AMethod, expected: dict[str, Any] | None
) -> None:
    call = parse_rest_call(http_method, path, query.encode(), body)
    assert call.method is method
    for name, value in (expected or {}).items():
        assert getattr(call.params, name) == value


INVALID_REST = [
    ("POST", "/tasks/t1:cancel", "", b'{"id":"t2"}', ErrorKind.INVALID_PARAMS),
    ("POST", "/acme/message:send", "", b'{"tenant":"b","message":{}}', ErrorKind.INVALID_PARAMS),
    ("GET", "/tasks/t1", "historyLength=3&historyLength=4", b"", ErrorKind.INVALID_PARAMS),
    ("GET", "/tasks/t1", "id=t2", b"", ErrorKind.INVALID_PARAMS),
    ("GET", "/tasks/t1", "history=3", b"", ErrorKind.INVALID_PARAMS),
    ("GET", "/message:send", "", b"", ErrorKind.METHOD_NOT_FOUND),
    ("POST", "/tasks/t1", "", b"", ErrorKind.METHOD_NOT_FOUND),
    ("GET", "/a/b/c/d/e", "", b"", ErrorKind.METHOD_NOT_FOUND),
    ("POST", "/message:send", "", b"[]", ErrorKind.INVALID_REQUEST),
    ("POST", "/message:send", "", b"{", ErrorKind.PARSE_ERROR),
    ("POST", "/message:send", "", b"", ErrorKind.INVALID_PARAMS),
]


@pytest.mark.parametrize(("http_method", "path", "query", "body", "kind"), INVALID_REST)
def test_a_path_that_says_something_else_than_the_rest_is_refused(
    http_method: str, path: str, query: str, body: bytes, kind: ErrorKind
) -> None:
    with pytest.raises(CallRefusedError) as refused:
        parse_rest_call(http_method, path, query.encode(), body)
    assert refused.value.error_kind is kind
