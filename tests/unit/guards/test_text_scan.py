"""Collection of the strings of a JSON value, within limits."""

from qwed.guards.text_scan import MAX_DEPTH, MAX_STRINGS, strings_in


def nested(depth):
    value = "deep"
    for _ in range(depth):
        value = [value]
    return value


def test_strings_come_in_document_order_with_their_paths():
    strings = strings_in({"to": "bob", "items": [{"name": "x"}, "y"], "count": 3, "none": None, "yes": True})
    assert strings.complete
    assert [pair for pair in strings if pair[1] in ("bob", "x", "y")] == [
        ("to", "bob"),
        ("items.0.name", "x"),
        ("items.1", "y"),
    ]


def test_keys_are_text_too():
    assert ("AKIA", "AKIA") in strings_in({"AKIA": 1}).pairs


def test_a_whole_number_long_enough_to_be_a_card_is_text():
    assert strings_in([4111111111111111, 4111111111111111.0, 42, 10**30, float("nan")]).pairs == (
        ("0", "4111111111111111"),
        ("1", "4111111111111111"),
    )


def test_a_bare_string_and_an_empty_value_are_fine():
    assert strings_in("x").pairs == (("", "x"),)
    assert strings_in({}).pairs == strings_in(None).pairs == ()


def test_depth_is_bounded_and_said_so():
    assert strings_in(nested(MAX_DEPTH)).complete
    assert not strings_in(nested(MAX_DEPTH + 1)).complete
    assert not strings_in(nested(100_000)).complete


def test_count_is_bounded_and_said_so():
    assert strings_in(["x"] * MAX_STRINGS).complete
    assert not strings_in(["x"] * (MAX_STRINGS + 1)).complete
    assert not strings_in([["x"] * 200] * 200).complete


def test_values_that_are_no_json_are_passed_over():
    assert strings_in({1: object(), None: b"x"}).complete


def test_a_long_key_is_cut_in_the_path_and_whole_in_the_text():
    ((path, key), _) = strings_in({"k" * 1000: "v"}).pairs
    assert (len(path), len(key)) == (64, 1000)
