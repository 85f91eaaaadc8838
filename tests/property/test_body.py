"""The fast parser returns the same result as the full one, or defers to it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwed.api.server.body import NEEDS_FULL_PARSE, RequestRejectedError, parse_fast, parse_json

SPACES = st.sampled_from(["", "", "", " ", "\t", "\n", "\r\n", "\x0b", "\x00"])
NUMBERS = st.sampled_from(
    [
        "0",
        "-0",
        "-0.0",
        "1",
        "-1",
        "01",
        "1.",
        ".5",
        "+1",
        "1e5",
        "1E5",
        "1e+5",
        "1e400",
        "-1e400",
        "1e-400",
        "0.1",
        "1.10",
        "9007199254740993",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551616",
        "-9223372036854775809",
        "123456789012345678901234567890",
        "1_0",
        "0x1",
        "NaN",
        "Infinity",
        "-Infinity",
        "true",
        "false",
        "null",
        "nul",
    ]
)
WORDS = st.sampled_from([*"aab:[{,\x01\x7f\t\u00e9\u2028\ud800", '":', '\\"', "\\u0061", "\\ud800", "\\"])
TEXTS = st.lists(WORDS, max_size=3).map(lambda words: f'"{"".join(words)}"')


def _listed(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(items, max_size=4).map(lambda each: f"[{','.join(each)}]")


def _object(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.tuples(SPACES, TEXTS, SPACES, SPACES, values, SPACES).map(
        lambda part: f"{part[0]}{part[1]}{part[2]}:{part[3]}{part[4]}{part[5]}"
    )
    return st.lists(pairs, max_size=4).map(lambda each: f"{{{','.join(each)}}}")


JSON = st.recursive(NUMBERS | TEXTS, lambda inner: _listed(inner) | _object(inner), max_leaves=8)


def _with_care(body: bytes) -> str:
    try:
        # The escape sends it to the full parser.
        return repr(parse_json(b"[" + body + b',"\\u0061"]')[0])
    except RequestRejectedError as refused:
        return f"refused: {refused.problem.message}"


@given(st.tuples(SPACES, _object(JSON) | JSON, SPACES).map("".join), st.sampled_from(["utf-8", "latin-1", "utf-16"]))
def test_what_is_read_quickly_is_what_is_read_with_care(text: str, encoding: str) -> None:
    body = text.encode(encoding, "surrogatepass" if encoding == "utf-8" else "replace")
    quickly = parse_fast(body)
    assert quickly is NEEDS_FULL_PARSE or repr(quickly) == _with_care(body)


@pytest.mark.parametrize(
    "text", ['{"a":1,"a":1}', '{"a" :1,"a" :2,"b":":x"}', '{"":{"b":1,"b":1}}', '[{"a":"a","a":"a"}]']
)
def test_a_key_that_stands_twice_is_never_overlooked(text: str) -> None:
    assert parse_fast(text.encode()) is NEEDS_FULL_PARSE
    with pytest.raises(RequestRejectedError, match="duplicate key"):
        parse_json(text.encode())


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_an_honest_body_is_read_quickly_unless_something_in_it_is_escaped(value: object) -> None:
    body = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    quickly = parse_fast(body)
    assert quickly == value or (quickly is NEEDS_FULL_PARSE and b"\\" in body)
