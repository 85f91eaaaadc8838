"""Path guard: location of a path by its text."""

import pytest

from qwed.guards import path
from qwed.guards.path import MAX_LENGTH, PathLocation, resolve
from tests.support.case_tables import each, rows


def check(row):
    allowed = None if row["allowed"] is None else tuple(row["allowed"])
    finding = resolve(row["target"], allowed)
    assert (finding.location, finding.sensitive) == (row["place"], row["sensitive"]), finding
    assert finding.path == row.get("path", finding.path)
    return finding


@each("row", rows("path_attacks.jsonl"), ids=lambda row: ascii(row["target"])[:60])
def test_an_escape_or_a_secret_file_is_seen(row):
    finding = check(row)
    assert finding.location is not PathLocation.INSIDE or finding.sensitive
    assert finding.reason or finding.location is PathLocation.INSIDE


@each("row", rows("path_honest.jsonl"), ids=lambda row: ascii(row["target"])[:60])
def test_an_honest_path_is_inside(row):
    assert check(row).reason == ""


def test_the_file_system_is_not_consulted(tmp_path):
    (tmp_path / "link").symlink_to("/etc")
    assert resolve(str(tmp_path / "link" / "hosts"), (str(tmp_path),)).location is PathLocation.INSIDE
    assert resolve(str(tmp_path / "link" / ".." / "x"), (str(tmp_path),)).path == str(tmp_path / "x")


def test_what_is_inside_never_climbs_out_whatever_is_put_before_it():
    for climb in ("..", "%2e%2e", "\uff0e\uff0e", "..%2f..", "x/../..", "./..", "%252e%252e"):
        for slash in ("/", "\\", "%2f", "\uff0f", "//"):
            target = slash.join((climb, climb, "etc", "passwd"))
            assert resolve(target, ("/data",)).location is not PathLocation.INSIDE, target


ROOTS = tuple(f"/srv/d{number}" for number in range(100))


@pytest.mark.parametrize(
    ("form", "roots", "location"),
    [
        ("{}", ROOTS, PathLocation.INSIDE),
        (".{}", ROOTS, PathLocation.INSIDE),
        ("../d99/{}", ROOTS, PathLocation.INSIDE),
        ("../../srv/d99/{}", ROOTS, PathLocation.INSIDE),
        ("../{}", ROOTS, PathLocation.OUTSIDE),
        ("/srv/d99/{}", ROOTS, PathLocation.INSIDE),
        ("{}", tuple(f"/var/www/{number}.example.com" for number in range(100)), PathLocation.INSIDE),
    ],
)
def test_thousands_of_files_are_held_to_a_hundred_roots(form, roots, location, monkeypatch):
    checked = []
    monkeypatch.setattr(path, "_is_sensitive", lambda target: checked.append(target) or False)
    assert {resolve(form.format(number), roots).location for number in range(3_500)} == {location}
    assert len(checked) <= 2 * 3_500 + 2 * len(roots)


@pytest.mark.parametrize(
    ("target", "roots", "location", "sensitive"),
    [
        ("shadow", ("/srv/a", "/srv/b", "/etc"), PathLocation.INSIDE, True),
        ("gcloud/x", ("/srv/a", "/srv/b", "/home/u/.config"), PathLocation.INSIDE, True),
        ("lib/docker/x", ("/srv/a", "/srv/b", "/var"), PathLocation.INSIDE, True),
        ("docker.sock", ("/srv/a", "/srv/b", "/var/run"), PathLocation.INSIDE, True),
        (".", ("/srv/a", "/srv/b", "/srv/credentials"), PathLocation.INSIDE, True),
        ("1/environ", ("/srv/a", "/srv/b", "/proc"), PathLocation.INSIDE, True),
        ("root/x", ("/srv/a", "/srv/b", "/proc/1"), PathLocation.OUTSIDE, False),
        ("fd/1", ("/dev", "."), PathLocation.OUTSIDE, False),
        ("x.pem", ("/srv/a", "/srv/b"), PathLocation.INSIDE, True),
        ("../b/x", ("/srv/a", "/srv/b"), PathLocation.INSIDE, False),
        ("../b/x", ("/srv/a", "/srv/b", "/opt/c"), PathLocation.OUTSIDE, False),
        ("/srv/abc", ("/srv/a", "/srv/ab"), PathLocation.OUTSIDE, False),
        ("/srv/a/b/c", ("/srv/a", "/srv/a-", "/srv/a/b/d"), PathLocation.INSIDE, False),
        ("/srv", ("/",), PathLocation.INSIDE, False),
        ("x", (), PathLocation.OUTSIDE, False),
    ],
)
def test_every_root_counts_in_any_order(target, roots, location, sensitive):
    for ordered in (roots, roots[::-1]):
        finding = resolve(target, ordered)
        assert (finding.location, finding.sensitive) == (location, sensitive)


def test_length_is_bounded():
    assert resolve("/data/" + "a" * (MAX_LENGTH - 6), ("/data",)).location is PathLocation.INSIDE
    assert resolve("/data/" + "a" * MAX_LENGTH, ("/data",)).location is PathLocation.UNRESOLVABLE


@pytest.mark.parametrize(
    "unit", ["a", "/", ".", "../", "%25", "%", "\\", "~", " ", ". ", "[", "\u2025", "\0", "$", "a/"]
)
@pytest.mark.parametrize("size", [MAX_LENGTH, 1 << 20])
def test_long_hostile_paths_are_answered(unit, size):
    finding = resolve((unit * size)[:size], ("/data",))
    assert finding.location in PathLocation
    assert len(finding.path) <= MAX_LENGTH + len("/data/")
