"""Where a path leads once symbolic links are followed."""

import pytest

from qwed.guards.path import Place, resolve_on_disk


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
    ("target", "place", "sensitive"),
    [
        ("notes.txt", Place.INSIDE, False),
        ("same", Place.INSIDE, False),
        ("new/file.txt", Place.INSIDE, False),
        ("./notes.txt", Place.INSIDE, False),
        ("out/x", Place.OUTSIDE, False),
        ("out/.env", Place.OUTSIDE, True),
        ("harmless.txt", Place.OUTSIDE, True),
        ("up/data/notes.txt", Place.INSIDE, False),
        ("up/x", Place.OUTSIDE, False),
        ("out/../notes.txt", Place.OUTSIDE, False),
        ("../outside/x", Place.OUTSIDE, False),
        ("/etc/shadow", Place.OUTSIDE, True),
        ("~/x", Place.OUTSIDE, False),
        ("/proc/self/root/etc/shadow", Place.UNRESOLVABLE, True),
        ("x\0y", Place.UNRESOLVABLE, False),
        ("%2e%2e/x\n", Place.UNRESOLVABLE, False),
        ("", Place.UNRESOLVABLE, False),
    ],
)
def test_links_are_followed_before_the_path_is_judged(tree, target, place, sensitive):
    found = resolve_on_disk(target, (str(tree / "data"),), start=str(tree / "data"))
    assert (found.place, found.sensitive) == (place, sensitive)


def test_a_root_that_is_a_link_itself_holds_what_lies_behind_it(tree):
    found = resolve_on_disk(str(tree / "data" / "notes.txt"), (str(tree / "alias"),))
    assert found.place is Place.INSIDE
    assert found.path == str(tree / "data" / "notes.txt")


def test_a_loop_of_links_is_no_way_in(tree):
    assert resolve_on_disk("loop/x", (str(tree / "elsewhere"),), start=str(tree / "data")).place is Place.OUTSIDE


def test_without_roots_a_link_to_a_secret_is_still_a_secret(tree):
    found = resolve_on_disk("harmless.txt", None, start=str(tree / "data"))
    assert (found.place, found.sensitive) == (Place.INSIDE, True)


def test_an_empty_root_allows_nothing(tree):
    assert resolve_on_disk("notes.txt", ("",), start=str(tree / "data")).place is Place.OUTSIDE
