"""A name that is not known: those that are near it, always the same ones, and none where none is."""

from qwed.model.suggestions import closest_names, did_you_mean

NAMES = ("deadline", "citation", "claimed_net", "claimed_net_pay", "Germany", "DE", "pacs.008", "2025")
CASES: dict[str, tuple[str, ...]] = {
    "deadlin": ("deadline",),
    "DEADLINE": ("deadline",),
    "germny": ("Germany",),
    "de": ("DE",),
    "net": ("claimed_net",),
    "claimed net": ("claimed_net", "claimed_net_pay"),
    "2026": (),
    "pacs.009": (),
    "": (),
    "a": (),
    "deadline" * 10: (),
    "\u202e\ud800": (),
}


def test_what_is_near_a_name() -> None:
    assert {given: closest_names(given, NAMES) for given in CASES} == CASES
    assert [closest_names(given, NAMES) for given in (None, 1, ["deadline"], {})] == [()] * 4


def test_it_is_asked_whether_that_was_meant() -> None:
    assert did_you_mean("claimed net", NAMES) == "did you mean `claimed_net` or `claimed_net_pay`? "
    assert did_you_mean("x", NAMES) == ""


def test_of_very_many_names_the_first_are_looked_at() -> None:
    assert closest_names("aaab", (f"name{number}" for number in range(100_000_000))) == ()
