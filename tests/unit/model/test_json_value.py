"""How deep a JSON value is, and whether it can be written down again."""

import pytest

from qwed.model.json_value import depth_of, has_lone_surrogates, is_deeper_than


@pytest.mark.parametrize(
    ("value", "depth"), [(1, 0), ("[[", 0), ([], 1), ({"a": 1}, 1), ([1, [2]], 2), ({"a": [{"b": {}}], "c": 1}, 4)]
)
def test_a_value_is_as_deep_as_what_stands_in_one_another(value: object, depth: int) -> None:
    assert depth_of(value) == depth


def test_a_value_that_is_deeper_than_python_goes_is_measured_all_the_same() -> None:
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    assert depth_of(value) == 100_001


def test_a_value_that_contains_itself_is_deeper_than_any_limit() -> None:
    value: list[object] = [1]
    value += [value, value]
    assert is_deeper_than({"a": value}, 500)
    assert not is_deeper_than({"a": [(1, [])]}, 4)
    assert is_deeper_than({"a": [(1, [])]}, 3)


@pytest.mark.parametrize(
    ("value", "half"),
    [("a", False), ("\ud83d\ude00", True), ("\U0001f600", False), ({"\udc00": 1}, True), (["\ud800"], True)],
)
def test_half_of_a_pair_is_found_wherever_it_stands(value: object, half: bool) -> None:
    assert has_lone_surrogates(value) is half
