"""Calls on the fast path have the same results as calls with progress, which do not use it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from mcp import MCPError

from tests.support.mcp_proxies import Session, proxied

CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "text and structured content": ("get_weather", {"city": "Köln\u0000", "deep": {"a": [None, 1.5, 2**70]}}),
    "a picture and a link": ("get_picture", {}),
    "no arguments that are known": ("get_picture", {"more": []}),
    "an error of the server's own": ("read_wrongly", {}),
    "a question that may not be asked": ("check_model", {}),
    "no answer in time": ("read_forever", {}),
    "a denied call": ("read_file", {"path": "/etc/../etc/passwd"}),
    "a tool that is not there": ("made_up", {}),
}


@pytest.fixture(scope="module", params=["auto", "legacy"])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Client of the newest version, and one of an older version."""
    with proxied(tmp_path_factory.mktemp("lanes"), "--timeout", "2", mode=request.param) as session:
        session.tools()
        yield session


async def _nothing(*_: object) -> None:
    return None


def _comparable_result(client: Session, tool: str, arguments: dict[str, Any], **more: Any) -> Any:
    """Return the result of a call without the parts that differ between calls."""
    try:
        result = client.do(client.client.call_tool, tool, arguments, **more)
    except MCPError as error:
        return error.error
    wire = result.model_dump(mode="json", by_alias=True)
    for key in ("qwed/action_id", "io.modelcontextprotocol/serverInfo"):
        wire["_meta"] = {name: value for name, value in (wire["_meta"] or {}).items() if name != key}
    if wire["structuredContent"] is not None:
        structured = {name: wire["structuredContent"][name] for name in ("tool", "arguments")}
        assert json.loads(wire["content"][0]["text"]).items() >= structured.items()
        return structured, wire["isError"], wire["_meta"]
    return wire


@pytest.mark.parametrize("case", CALLS)
def test_a_call_has_the_same_result_by_either_way(client: Session, case: str) -> None:
    tool, arguments = CALLS[case]
    straight = _comparable_result(client, tool, arguments)
    assert straight == _comparable_result(client, tool, arguments, progress_callback=_nothing)


def test_what_is_told_beside_the_arguments_changes_nothing(client: Session) -> None:
    with_meta = _comparable_result(client, "get_picture", {"beside": True}, meta={"example.com/beside": 1})
    assert with_meta == _comparable_result(client, "get_picture", {"beside": True})


def test_a_result_names_its_action_by_either_way(client: Session) -> None:
    for more in ({}, {"progress_callback": _nothing}):
        result = client.do(client.client.call_tool, "get_weather", {"city": "Bonn"}, **more)
        assert result.meta["qwed/action_id"].startswith("act_")


def test_a_call_that_is_cancelled_is_cancelled_at_the_server_and_the_next_one_passes(client: Session) -> None:
    seen = client.call_passed("list_calls")["calls"].count("cancelled")
    client.cancel()
    assert client.call_passed("list_calls")["calls"].count("cancelled") == seen + 1


def test_calls_at_once_each_have_their_own_answer(client: Session) -> None:
    cities = [f"city {number}" for number in range(20)]
    calls = [client.begin(client.client.call_tool, "get_weather", {"city": city}) for city in cities]
    answers = [call.result(timeout=30).structured_content["arguments"]["city"] for call in calls]
    assert answers == cities
