"""Queries that share a cache entry, and queries that never do."""

import pytest

from qwed_sdk.cache.normalize import exact_form, normalize_query
from tests.support.case_tables import each, rows


@each("row", rows("cache_together.jsonl"), ids=lambda row: row["one"])
def test_one_query_spelled_in_two_ways_is_one(row: dict[str, str]) -> None:
    assert normalize_query(row["one"]) == normalize_query(row["other"])


@each("row", rows("cache_apart.jsonl"), ids=lambda row: row["because"])
def test_two_queries_that_may_mean_two_things_stay_two(row: dict[str, str]) -> None:
    assert normalize_query(row["one"]) != normalize_query(row["other"])


@each("row", rows("cache_apart.jsonl") + rows("cache_together.jsonl"), ids=lambda row: row["one"])
def test_without_normalising_every_spelling_is_its_own(row: dict[str, str]) -> None:
    assert exact_form(row["one"]) != exact_form(row["other"])


@pytest.mark.parametrize(
    "unit", ["x", "xy\n", "go\n", "a ", "is the ", "'", "'a' ", "what's ", "as ( ", " ", "1,", "/", "a.", "\\", "é'"]
)
def test_the_longest_queries_are_normalised_at_all(unit: str) -> None:
    """Normalisation with quadratic time would not finish here."""
    for start in ("", "select ", "with ", "is the "):
        assert normalize_query((start + unit * 150_000)[:150_000])
