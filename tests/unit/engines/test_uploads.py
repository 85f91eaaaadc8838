"""Detection and validation of uploaded files (DESIGN 4.22)."""

import base64

import pytest

from qwed.engines.uploads import MAX_BYTES, UploadError, read_upload, sniff


def parameters_with(content: bytes) -> dict[str, str]:
    return {"content_base64": base64.b64encode(content).decode()}


@pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"\x00\xff", b"x" * 100_000, b"x" * MAX_BYTES])
def test_a_file_comes_back_byte_for_byte(content):
    assert read_upload(parameters_with(content)) == content


def test_lines_of_an_encoder_are_joined():
    content = bytes(range(256)) * 10
    assert read_upload({"content_base64": base64.encodebytes(content).decode()}) == content


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"content_base64": None},
        {"content_base64": ""},
        {"content_base64": "  \n "},
        {"content_base64": 7},
        {"content_base64": ["YQ=="]},
        {"content_base64": b"YQ=="},
        {"content_base64": "YQ"},
        {"content_base64": "Y!=="},
        {"content_base64": "YQ==YQ=="},
        {"content_base64": "data:text/csv;base64,YQ=="},
        {"content_base64": "_-8="},
        {"content_base64": "ÿ" * 8},
        {"content_base64": "\ud800"},
        {"path": "/etc/passwd"},
        {"content": "a,b"},
    ],
    ids=str,
)
def test_what_is_no_base64_is_refused_with_what_to_send(parameters):
    with pytest.raises(UploadError, match="base64"):
        read_upload(parameters)


def test_a_file_of_one_byte_too_many_is_refused():
    with pytest.raises(UploadError, match="larger than 10485760 bytes"):
        read_upload(parameters_with(b"x" * (MAX_BYTES + 1)))


def test_a_text_that_can_only_be_too_large_is_not_decoded():
    with pytest.raises(UploadError, match="larger"):
        read_upload({"content_base64": "!" * (2 * MAX_BYTES)})


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"PAR1....PAR1", "parquet"),
        (b"\x1f\x8b\x08", "gzip"),
        (b"PK\x03\x04", "zip"),
        (b"\x89PNG\r\n\x1a\n....", "png"),
        (b"\xff\xd8\xff\xe0", "jpeg"),
        (b"GIF89a", "gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "webp"),
        (b"RIFF\x00\x00\x00\x00WAVE", "unknown"),
        (b"SQLite format 3\x00", "sqlite"),
        (b"a,b\n1,2", "unknown"),
        (b"", "unknown"),
    ],
)
def test_a_file_is_what_its_first_bytes_say(content, kind):
    assert sniff(content) == kind
