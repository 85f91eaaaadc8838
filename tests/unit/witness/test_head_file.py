"""Files of log heads."""

import json
from pathlib import Path

import pytest

from qwed.witness.head_file import MAX_LINE_BYTES, HeadLine, heads_in

HEAD = {"log_id": "org_1", "size": 1, "root": "00", "time": "t", "signature": "a.b.c"}


def lines(file: Path, text: str | bytes) -> list[HeadLine]:
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return list(heads_in(file))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "heads"


def test_the_saved_answer_of_a_server_is_one_head_however_it_is_printed(file: Path) -> None:
    assert lines(file, json.dumps(HEAD)) == [HeadLine(1, HEAD)]
    assert lines(file, json.dumps(HEAD, indent=4) + "\n\n") == [HeadLine(1, HEAD)]


def test_a_witness_is_many_lines_with_or_without_a_name_on_them(file: Path) -> None:
    both = f"{json.dumps(HEAD)}\n{json.dumps({'qwed_head': HEAD})}\n"
    assert lines(file, both) == [HeadLine(1, HEAD), HeadLine(2, HEAD)]


def test_the_output_of_a_server_may_be_kept_as_it_is(file: Path) -> None:
    printed = f"qwed listens on http://127.0.0.1:8000\n\n{json.dumps({'qwed_head': HEAD})}\nregister an agent\n"
    assert lines(file, printed) == [HeadLine(1, None), HeadLine(3, HEAD), HeadLine(4, None)]


@pytest.mark.parametrize(
    "text", ["[]", "3", "null", '{"size": 1}', '{"qwed_head": 3}', "{", "\x00", "[" * 10_000, b"\xff\xfe"]
)
def test_a_line_that_holds_no_head_is_told_as_such(file: Path, text: str | bytes) -> None:
    assert lines(file, text) == [HeadLine(1, None)]


def test_an_empty_file_holds_nothing(file: Path) -> None:
    assert lines(file, "") == lines(file, "\n \n") == []


def test_a_line_without_an_end_is_passed_over_in_little_memory(file: Path) -> None:
    text = b"x" * (3 * MAX_LINE_BYTES) + b"\n" + json.dumps(HEAD).encode() + b"\n"
    assert lines(file, text) == [HeadLine(1, None), HeadLine(2, HEAD)]


def test_a_file_that_is_not_there_is_an_error(file: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(heads_in(file))
