"""Every request to the A2A proxy is refused with an error, or forwarded so that others read what was verified."""

import json
import random
from typing import Any

import msgspec
import pytest
from a2a.types import a2a_pb2
from google.protobuf.json_format import MessageToDict, ParseDict

from qwed_a2a import strict_schema
from qwed_a2a.parsing import Contents, UnparsableMessage
from qwed_a2a.proxy.codecs import parse_envelope, parse_rpc_call
from qwed_a2a.proxy.content import contents_of_answer
from qwed_a2a.proxy.errors import CallRefusedError
from qwed_a2a.proxy.message_schema import SendMessage, StreamResponse
from qwed_a2a.proxy.payloads import extract_payloads

_PARTS = [
    {"text": "a", "mediaType": "text/plain", "metadata": {"a": 1}},
    {"data": {"k": [1, 2.5, None, True, "x"]}},
    {"raw": "aGk=", "filename": "f.py"},
    {"url": "https://x.example/f"},
]
_MESSAGE = {
    "messageId": "m",
    "contextId": "c",
    "taskId": "t",
    "role": "ROLE_USER",
    "parts": _PARTS,
    "metadata": {"z": {"y": [1]}},
    "extensions": ["e"],
    "referenceTaskIds": ["r"],
}
_REQUEST = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "SendMessage",
    "params": {
        "tenant": "t",
        "message": _MESSAGE,
        "configuration": {"acceptedOutputModes": ["text"], "historyLength": 3, "returnImmediately": True},
        "metadata": {"q": 1},
    },
}
_STATUS = {"state": "TASK_STATE_WORKING", "message": _MESSAGE, "timestamp": "2026-01-15T10:00:00Z"}
_ARTIFACT = {"artifactId": "a", "name": "n", "description": "d", "parts": _PARTS, "metadata": {"m": 1}}
_TASK = {"id": "t", "contextId": "c", "status": _STATUS, "artifacts": [_ARTIFACT], "history": [_MESSAGE]}
_ANSWERS = ({"task": _TASK}, {"message": _MESSAGE}, {"statusUpdate": {"taskId": "t", "status": _STATUS}})
_VALUES = (None, True, 0, -1, 1.5, "x", "", [], {}, [1], {"a": 1}, 2**60, 1e300, "ROLE_AGENT", "\0", "9" * 30)
_NAMES = [
    "text",
    "raw",
    "url",
    "data",
    "metadata",
    "filename",
    "mediaType",
    "media_type",
    "role",
    "parts",
    "messageId",
    "message_id",
    "extra",
    "id",
    "tenant",
]


def _other(value: Any, chance: random.Random) -> Any:
    """Return the value with one part replaced."""
    if chance.random() < 0.1:
        return chance.choice(_VALUES)
    if isinstance(value, list):
        return [_other(each, chance) if chance.random() < 0.3 else each for each in value]
    if not isinstance(value, dict):
        return chance.choice(_VALUES) if chance.random() < 0.4 else value
    members = {name: _other(each, chance) if chance.random() < 0.25 else each for name, each in value.items()}
    if chance.random() < 0.15:
        members[chance.choice(_NAMES)] = chance.choice(_VALUES)
    if members and chance.random() < 0.15:
        del members[chance.choice(list(members))]
    return members


def _written(value: Any, chance: random.Random) -> bytes:
    body = bytearray(json.dumps(value).encode())
    if chance.random() < 0.1:
        body[chance.randrange(len(body))] = chance.randrange(256)
    return bytes(body)


def _numbers(value: Any) -> Any:
    """Return the value with every number as the official package reads it."""
    if isinstance(value, dict):
        return {name: _numbers(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_numbers(each) for each in value]
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _read_alike(rounds: int) -> tuple[int, int]:
    chance, passed, refused = random.Random(20), 0, 0
    for _ in range(rounds):
        try:
            asked = parse_rpc_call(parse_envelope(_written(_other(_REQUEST, chance), chance)))
        except CallRefusedError:
            refused += 1
            continue
        passed += 1
        if isinstance(asked.params, SendMessage):
            forwarded = json.loads(msgspec.json.encode(asked.params))
            theirs = MessageToDict(ParseDict(forwarded, a2a_pb2.SendMessageRequest()))
            again = strict_schema.convert_strict(strict_schema.parse(json.dumps(theirs).encode()), SendMessage)
            assert _numbers(json.loads(msgspec.json.encode(again))) == _numbers(forwarded)
    return passed, refused


def _answers_read(rounds: int) -> int:
    chance, passed = random.Random(21), 0
    for _ in range(rounds):
        try:
            event = strict_schema.convert_lenient(
                strict_schema.parse(_written(_other(chance.choice(_ANSWERS), chance), chance)), StreamResponse
            )
        except strict_schema.StrictSchemaError:
            continue
        passed += 1
        if event.artifact_update is msgspec.UNSET:
            for content in contents_of_answer(event):
                assert isinstance(extract_payloads(content), Contents | UnparsableMessage)
    return passed


def test_what_is_forwarded_is_read_by_the_official_package_as_it_was_judged() -> None:
    passed, refused = _read_alike(400)
    assert passed > 50
    assert refused > 50


def test_an_answer_is_read_whole_or_refused() -> None:
    assert _answers_read(400) > 50


@pytest.mark.drill
def test_thirty_thousand_requests_and_answers_are_read_in_one_way() -> None:
    assert _read_alike(30_000)[0] > 5_000
    assert _answers_read(30_000) > 5_000
