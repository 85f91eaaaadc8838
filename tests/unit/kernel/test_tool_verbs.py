"""Meaning of tool names: the verbs of public MCP servers, and verbs that do more than they seem to."""

import pytest

from qwed.kernel.tool_verbs import UNKNOWN, meaning_of, meaning_with, verbs_by_meaning, words_of
from tests.support.case_tables import each, rows

TABLE = rows("tool_names.jsonl")


@each("row", TABLE, ids=lambda row: row["name"])
def test_a_name_means_what_its_verb_and_its_object_mean(row: dict[str, str]) -> None:
    assert meaning_of(row["name"]) == row["meaning"]


@pytest.mark.parametrize(
    "name", ["list_things", "listThings", "list-things", "LIST_THINGS", "list.things", "list2_things"]
)
def test_a_verb_is_found_in_every_way_of_writing_a_name(name: str) -> None:
    assert meaning_of(name) == meaning_of(f"mcp__server__{name}") == "READ"


@pytest.mark.parametrize(
    "name",
    ["frobnicate", "", "___", "x" * 10_000, "mcp____list_things", "MCP__files__list_things", "mcp__files__", "do_it"],
)
def test_a_name_without_a_known_verb_is_not_harmless(name: str) -> None:
    assert meaning_of(name) not in ("READ", "interact", "COMMUNICATE")


@pytest.mark.parametrize(
    ("deed", "meaning"),
    [("rename", "WRITE"), ("delete", "DELETE"), ("list", "READ"), ("update", "ADMIN"), ("frobnicate", UNKNOWN)],
)
def test_a_tool_of_many_deeds_does_what_is_stated(deed: str, meaning: str) -> None:
    assert meaning_with("mcp__crm__manage_user", deed) == meaning


def test_no_verb_has_two_meanings() -> None:
    words = [verb for verbs in verbs_by_meaning().values() for verb in verbs]
    assert len(words) == len({*words}) > 700
    assert all(word == "_".join(words_of(word)) for word in words)
