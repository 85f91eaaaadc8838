"""Multipart forms: the fields of the JSON body, and one file."""

import base64
import json
from types import SimpleNamespace
from typing import Any

import pytest

from qwed.api.server.body import RequestRejectedError, parse_json
from qwed.api.server.multipart import MAX_FIELD_BYTES, MAX_PARTS, read_form

EDGE = "----edge"


def part(name: str, content: bytes, filename: str | None = None) -> bytes:
    named = f'Content-Disposition: form-data; name="{name}"'
    named += "" if filename is None else f'; filename="{filename}"'
    return f"--{EDGE}\r\n{named}\r\n\r\n".encode() + content + b"\r\n"


def call_of(body: bytes, kind: str = f"multipart/form-data; boundary={EDGE}", most: int = 1 << 20) -> Any:
    settings = SimpleNamespace(max_upload_bytes=most)
    return SimpleNamespace(body=body, header=lambda _name: kind, services=SimpleNamespace(settings=settings))


def read(*parts: bytes, end: bytes = f"--{EDGE}--\r\n".encode(), most: int = 1 << 20) -> dict[str, Any]:
    return read_form(call_of(b"".join(parts) + end, most=most))


def test_fields_and_the_file_become_one_body() -> None:
    fields = read(part("query", b"rows = 2"), part("file", b"a\n1\n2\n", "a.csv"), part("format", b"csv"))
    assert fields == {"query": "rows = 2", "content_base64": base64.b64encode(b"a\n1\n2\n").decode(), "format": "csv"}


def test_any_bytes_may_stand_in_the_file() -> None:
    content = bytes(range(256)) * 10 + b"\r\n--" + EDGE[:-1].encode() + b"\r\n"
    fields = read(part("anything", content, "../../etc/passwd"))
    assert base64.b64decode(fields["content_base64"]) == content


def test_options_and_params_are_json() -> None:
    fields = read(part("options", b'{"timeout_ms": 2000}'), part("params", b'{"format": "csv"}'))
    assert fields == {"options": {"timeout_ms": 2000}, "params": {"format": "csv"}}


def test_letters_of_any_language_may_stand_in_a_field() -> None:
    assert read(part("query", "größe = 2".encode())) == {"query": "größe = 2"}


WRONG: list[tuple[str, bytes, str]] = [
    ("no end", part("query", b"1"), "ends before"),
    ("nothing", b"", "not valid multipart|ends before"),
    ("another edge", part("query", b"1").replace(EDGE.encode(), b"----other"), "not valid multipart|ends before"),
    ("cut in a header", f"--{EDGE}\r\nContent-Disp".encode(), "not valid multipart|ends before"),
    ("no name", f"--{EDGE}\r\nContent-Type: a\r\n\r\n1\r\n--{EDGE}--\r\n".encode(), "no name"),
    ("twice", part("query", b"1") * 2 + f"--{EDGE}--\r\n".encode(), "repeated"),
    ("two files", part("a", b"1", "a") + part("b", b"1", "b") + f"--{EDGE}--\r\n".encode(), "repeated"),
    ("no text", part("query", b"\xff\xfe") + f"--{EDGE}--\r\n".encode(), "not UTF-8"),
    ("no json", part("options", b"{") + f"--{EDGE}--\r\n".encode(), "not JSON"),
    ("deep json", part("options", b"[" * 60_000) + f"--{EDGE}--\r\n".encode(), "not JSON"),
    ("a key twice", part("params", b'{"a": 1, "a": 2}') + f"--{EDGE}--\r\n".encode(), "duplicate key"),
    ("half a letter", part("params", b'{"a": "\\ud800"}') + f"--{EDGE}--\r\n".encode(), "surrogate"),
    ("long field", part("query", b"1" * (MAX_FIELD_BYTES + 1)) + f"--{EDGE}--\r\n".encode(), "longer than"),
    (
        "many parts",
        b"".join(part(f"p{n}", b"1") for n in range(MAX_PARTS + 1)) + f"--{EDGE}--\r\n".encode(),
        "more than",
    ),
]


@pytest.mark.parametrize(("name", "body", "message"), WRONG, ids=[name for name, _, _ in WRONG])
def test_a_form_that_is_none_is_refused_and_says_why(name: str, body: bytes, message: str) -> None:
    with pytest.raises(RequestRejectedError, match=message):
        read_form(call_of(body))


def test_a_form_without_an_edge_is_refused() -> None:
    with pytest.raises(RequestRejectedError, match="boundary"):
        read_form(call_of(b"", "multipart/form-data"))


def test_a_file_has_a_largest_size() -> None:
    assert read(part("file", b"123", "a"), most=3)
    with pytest.raises(RequestRejectedError, match="larger than 3 bytes") as raised:
        read(part("file", b"1234", "a"), most=3)
    assert raised.value.problem.code == "QWED-REQ-002"


LARGE = base64.b64encode(bytes(400_000)).decode()


@pytest.mark.parametrize("gap", ["", " ", "\n  "])
def test_a_large_file_in_json_is_read_like_any_text(gap: str) -> None:
    text = f'{{"a": [1, {{"content_base64"{gap}:{gap}"{LARGE}", "format": "csv"}}], "b": "content_base64"}}'
    assert parse_json(text.encode()) == json.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        f'{{"content_base64": "{LARGE}\\u0041", "b": 1}}',
        f'{{"content_base64": "{LARGE}é", "b": 1}}',
        f'{{"content_base64": "{LARGE}\\u002b\\/\\r\\n", "b": 1}}',
        f'{{"content_base64": "{LARGE}\\"", "b": "\\"content_base64\\": \\""}}',
        f'{{"x\\"content_base64": "{LARGE}", "b": 1}}',
        f'{{"b": "\\"content_base64\\": \\"{LARGE}\\""}}',
        f'{{"content_base64": ["{LARGE}"]}}',
    ],
)
def test_what_only_looks_like_a_file_is_read_like_any_text(text: str) -> None:
    assert parse_json(text.encode()) == json.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        f'{{"content_base64": "{LARGE}',
        f'{{"content_base64": "{LARGE}", "content_base64": "x"}}',
        f'{{"content_base64": "{LARGE}", }}',
        f'{{"content_base64": "{LARGE}\n"}}',
        f'{{"content_base64": "{LARGE}\x01"}}',
        f'{{"content_base64": "{LARGE}\\ud800"}}',
        f'{{"content_base64": "{LARGE}\\x"}}',
        f'{{"content_base64": "{LARGE}\\"}}',
        f'{{"content_base64": "{LARGE}"',
    ],
)
def test_json_that_is_none_is_refused_with_a_file_in_it_too(text: str) -> None:
    with pytest.raises(RequestRejectedError):
        parse_json(text.encode())


def test_beside_the_file_nothing_may_be_large() -> None:
    text = f'{{"query": "1", "content_base64": "{LARGE}"}}'.encode()
    assert parse_json(text, 1000) == json.loads(text)
    with pytest.raises(RequestRejectedError, match="larger than 1000 bytes"):
        parse_json(text.replace(b'"1"', b'"%b"' % (b"1" * 1000)), 1000)
    with pytest.raises(RequestRejectedError, match="larger than 1000 bytes"):
        parse_json(text.replace(b"content_base64", b"content_base65"), 1000)
