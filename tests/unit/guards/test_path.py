"""Where a path leads, read off its text."""

import json
from pathlib import Path

import pytest

from qwed.guards.path import MAX_LENGTH, Place, resolve

DATA = Path(__file__).parents[2] / "data"


def rows(name):
    return [json.loads(line) for line in (DATA / name).read_text().splitlines()]


def check(row):
    allowed = None if row["allowed"] is None else tuple(row["allowed"])
    found = resolve(row["target"], allowed)
    assert (found.place, found.sensitive) == (row["place"], row["sensitive"]), found
    assert found.path == row.get("path", found.path)
    return found


@pytest.mark.parametrize("row", rows("path_attacks.jsonl"), ids=lambda row: ascii(row["target"])[:60])
def test_an_escape_or_a_secret_file_is_seen(row):
    found = check(row)
    assert found.place is not Place.INSIDE or found.sensitive
    assert found.reason or found.place is Place.INSIDE


@pytest.mark.parametrize("row", rows("path_honest.jsonl"), ids=lambda row: ascii(row["target"])[:60])
def test_an_honest_path_is_inside(row):
    assert check(row).reason == ""


def test_the_file_system_is_not_consulted(tmp_path):
    (tmp_path / "link").symlink_to("/etc")
    assert resolve(str(tmp_path / "link" / "hosts"), (str(tmp_path),)).place is Place.INSIDE
    assert resolve(str(tmp_path / "link" / ".." / "x"), (str(tmp_path),)).path == str(tmp_path / "x")


def test_what_is_inside_never_climbs_out_whatever_is_put_before_it():
    for climb in ("..", "%2e%2e", "\uff0e\uff0e", "..%2f..", "x/../..", "./..", "%252e%252e"):
        for slash in ("/", "\\", "%2f", "\uff0f", "//"):
            target = slash.join((climb, climb, "etc", "passwd"))
            assert resolve(target, ("/data",)).place is not Place.INSIDE, target


def test_length_is_bounded():
    assert resolve("/data/" + "a" * (MAX_LENGTH - 6), ("/data",)).place is Place.INSIDE
    assert resolve("/data/" + "a" * MAX_LENGTH, ("/data",)).place is Place.UNRESOLVABLE


@pytest.mark.parametrize(
    "unit", ["a", "/", ".", "../", "%25", "%", "\\", "~", " ", ". ", "[", "\u2025", "\0", "$", "a/"]
)
@pytest.mark.parametrize("size", [MAX_LENGTH, 1 << 20])
def test_long_hostile_paths_are_answered(unit, size):
    found = resolve((unit * size)[:size], ("/data",))
    assert found.place in Place
    assert len(found.path) <= MAX_LENGTH + len("/data/")
