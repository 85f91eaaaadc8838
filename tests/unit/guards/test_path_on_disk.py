"""Path guard with symbolic links followed."""

import pytest

from qwed.guards.path import PathLocation, resolve_on_disk


@pytest.fixture
def tree(tmp_path):
    inside = tmp_path / "data"
    inside.mkdir()
    (inside / "notes.txt").write_text("x")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / ".env").write_text("x")
    (inside / "out").symlink_to(tmp_path / "outside")
    (inside / "up").symlink_to("..")
    (inside / "same").symlink_to("notes.txt")
    (inside / "harmless.txt").symlink_to(tmp_path / "outside" / ".env")
    (inside / "loop").symlink_to("loop")
    (tmp_path / "alias").symlink_to("data")
    return tmp_path


@pytest.mark.parametrize(
    ("target", "location", "sensitive"),
    [
        ("notes.txt", PathLocation.INSIDE, False),
        ("same", PathLocation.INSIDE, False),
        ("new/file.txt", PathLocation.INSIDE, False),
        ("./notes.txt", PathLocation.INSIDE, False),
        ("out/x", PathLocation.OUTSIDE, False),
        ("out/.env", PathLocation.OUTSIDE, True),
        ("harmless.txt", PathLocation.OUTSIDE, True),
        ("up/data/notes.txt", PathLocation.INSIDE, False),
        ("up/x", PathLocation.OUTSIDE, False),
        ("out/../notes.txt", PathLocation.OUTSIDE, False),
        ("../outside/x", PathLocation.OUTSIDE, False),
        ("/etc/shadow", PathLocation.OUTSIDE, True),
        ("~/x", PathLocation.OUTSIDE, False),
        ("/proc/self/root/etc/shadow", PathLocation.UNRESOLVABLE, True),
        ("x\0y", PathLocation.UNRESOLVABLE, False),
        ("%2e%2e/x\n", PathLocation.UNRESOLVABLE, False),
        ("", PathLocation.UNRESOLVABLE, False),
    ],
)
def test_links_are_followed_before_the_path_is_judged(tree, target, location, sensitive):
    finding = resolve_on_disk(target, (str(tree / "data"),), start=str(tree / "data"))
    assert (finding.location, finding.sensitive) == (location, sensitive)


def test_a_root_that_is_a_link_itself_holds_what_lies_behind_it(tree):
    finding = resolve_on_disk(str(tree / "data" / "notes.txt"), (str(tree / "alias"),))
    assert finding.location is PathLocation.INSIDE
    assert finding.path == str(tree / "data" / "notes.txt")


def test_a_loop_of_links_is_no_way_in(tree):
    assert (
        resolve_on_disk("loop/x", (str(tree / "elsewhere"),), start=str(tree / "data")).location is PathLocation.OUTSIDE
    )


def test_without_roots_a_link_to_a_secret_is_still_a_secret(tree):
    finding = resolve_on_disk("harmless.txt", None, start=str(tree / "data"))
    assert (finding.location, finding.sensitive) == (PathLocation.INSIDE, True)


def test_an_empty_root_allows_nothing(tree):
    assert resolve_on_disk("notes.txt", ("",), start=str(tree / "data")).location is PathLocation.OUTSIDE
