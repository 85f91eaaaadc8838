"""Where a path leads, read off its text."""

import pytest

from qwed.guards import path
from qwed.guards.path import MAX_LENGTH, Place, resolve
from tests.support.tables import each, rows


def check(row):
    allowed = None if row["allowed"] is None else tuple(row["allowed"])
    found = resolve(row["target"], allowed)
    assert (found.place, found.sensitive) == (row["place"], row["sensitive"]), found
    assert found.path == row.get("path", found.path)
    return found


@each("row", rows("path_attacks.jsonl"), ids=lambda row: ascii(row["target"])[:60])
def test_an_escape_or_a_secret_file_is_seen(row):
    found = check(row)
    assert found.place is not Place.INSIDE or found.sensitive
    assert found.reason or found.place is Place.INSIDE


@each("row", rows("path_honest.jsonl"), ids=lambda row: ascii(row["target"])[:60])
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


ROOTS = tuple(f"/srv/d{number}" for number in range(100))


@pytest.mark.parametrize(
    ("form", "roots", "place"),
    [
        ("{}", ROOTS, Place.INSIDE),
        (".{}", ROOTS, Place.INSIDE),
        ("../d99/{}", ROOTS, Place.INSIDE),
        ("../../srv/d99/{}", ROOTS, Place.INSIDE),
        ("../{}", ROOTS, Place.OUTSIDE),
        ("/srv/d99/{}", ROOTS, Place.INSIDE),
        ("{}", tuple(f"/var/www/{number}.example.com" for number in range(100)), Place.INSIDE),
    ],
)
def test_thousands_of_files_are_held_to_a_hundred_roots(form, roots, place, monkeypatch):
    judged = []
    monkeypatch.setattr(path, "_is_sensitive", lambda each: judged.append(each) or False)
    assert {resolve(form.format(number), roots).place for number in range(3_500)} == {place}
    assert len(judged) <= 2 * 3_500 + 2 * len(roots)


@pytest.mark.parametrize(
    ("target", "roots", "place", "sensitive"),
    [
        ("shadow", ("/srv/a", "/srv/b", "/etc"), Place.INSIDE, True),
        ("gcloud/x", ("/srv/a", "/srv/b", "/home/u/.config"), Place.INSIDE, True),
        ("lib/docker/x", ("/srv/a", "/srv/b", "/var"), Place.INSIDE, True),
        ("docker.sock", ("/srv/a", "/srv/b", "/var/run"), Place.INSIDE, True),
        (".", ("/srv/a", "/srv/b", "/srv/credentials"), Place.INSIDE, True),
        ("1/environ", ("/srv/a", "/srv/b", "/proc"), Place.INSIDE, True),
        ("root/x", ("/srv/a", "/srv/b", "/proc/1"), Place.OUTSIDE, False),
        ("fd/1", ("/dev", "."), Place.OUTSIDE, False),
        ("x.pem", ("/srv/a", "/srv/b"), Place.INSIDE, True),
        ("../b/x", ("/srv/a", "/srv/b"), Place.INSIDE, False),
        ("../b/x", ("/srv/a", "/srv/b", "/opt/c"), Place.OUTSIDE, False),
        ("/srv/abc", ("/srv/a", "/srv/ab"), Place.OUTSIDE, False),
        ("/srv/a/b/c", ("/srv/a", "/srv/a-", "/srv/a/b/d"), Place.INSIDE, False),
        ("/srv", ("/",), Place.INSIDE, False),
        ("x", (), Place.OUTSIDE, False),
    ],
)
def test_every_root_counts_whatever_its_company(target, roots, place, sensitive):
    for turned in (roots, roots[::-1]):
        found = resolve(target, turned)
        assert (found.place, found.sensitive) == (place, sensitive)


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
